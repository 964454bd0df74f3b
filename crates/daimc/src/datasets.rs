//! Example data.

use safetensors::tensor::{Dtype, SafeTensors};

use daimc_core::View;

/// Digit: 2000 handwritten digits in six views, `fac`, `fou`, `kar`, `mor`, `pix` and `zer`, and the digit of each
/// instance. The paper uses all views but `mor`.
///
/// R. P. W. Duin, Multiple Features, UCI Machine Learning Repository, CC BY 4.0.
///
/// # Panics
/// Never: the data are compiled into the crate.
#[must_use]
pub fn digit() -> (Vec<View<'static>>, Vec<usize>) {
    const FILE: &[u8] = include_bytes!("../data/digit/digit.safetensors");
    let file = SafeTensors::deserialize(FILE).expect("the file is part of the program");
    let tensor = |name: &str| file.tensor(name).expect("the file holds all views");
    let view = |name: &str| {
        let tensor = tensor(name);
        let bytes = tensor.data();
        let values: Vec<f32> = match tensor.dtype() {
            Dtype::U8 => bytes.iter().map(|&byte| f32::from(byte)).collect(),
            Dtype::U16 => {
                bytes.as_chunks().0.iter().map(|&pair| f32::from(u16::from_le_bytes(pair))).collect()
            }
            _ => bytes.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect(),
        };
        View::dense(name, tensor.shape()[1], values).expect("the file holds whole rows")
    };
    let views = ["fac", "fou", "kar", "mor", "pix", "zer"].map(view).into();
    (views, tensor("labels").data().iter().map(|&label| usize::from(label)).collect())
}
