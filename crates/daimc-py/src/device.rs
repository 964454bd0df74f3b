//! The machine that a fit is made on.

use std::sync::Arc;

use daimc::accelerator::{Accelerator, Device};
use daimc::{Daimc, Error, Result};

/// The same fit on the machine that was asked for.
pub fn bring(fit: Daimc, device: &str, precision: &str) -> Result<Daimc> {
    let precision = precision_of(precision)?;
    device.parse::<Device>()?.bring(fit, move |cards| open(cards, precision))
}

/// How products are made on a card.
#[derive(Clone, Copy)]
enum Precision {
    Single,
    Tf32,
}

fn precision_of(name: &str) -> Result<Precision> {
    match name {
        "single" => Ok(Precision::Single),
        "tf32" => Ok(Precision::Tf32),
        _ => Err(Error::Option {
            option: "precision",
            value: name.into(),
            reason: "must be single or tf32".into(),
        }),
    }
}

#[cfg(feature = "cuda")]
fn open(cards: &[usize], precision: Precision) -> Result<Arc<dyn Accelerator>, String> {
    let precision = match precision {
        Precision::Single => daimc_cuda::Precision::Single,
        Precision::Tf32 => daimc_cuda::Precision::Tf32,
    };
    daimc_cuda::Cards::new(cards.iter().copied()).precision(precision).open()
}

#[cfg(not(feature = "cuda"))]
fn open(_: &[usize], precision: Precision) -> Result<Arc<dyn Accelerator>, String> {
    let (Precision::Single | Precision::Tf32) = precision;
    Err("this package was built without support for graphics cards; use device='cpu'".into())
}
