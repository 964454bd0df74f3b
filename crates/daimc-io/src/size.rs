//! Estimates the memory of a table before it is read.

use std::path::Path;

use crate::archive::{self, Content};
use crate::arrow::Arrow;
use crate::format::Format;
use crate::input::{Opened, is_packed};
use crate::parquet::Parquet;
use crate::{Precision, Reading, Result, frame, hdf5, matrix_market, npy, npz};

/// The size of a table, by the first bytes and the length of its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of its values in memory: from the header, or else an estimate from the length of the file. Zero for a pipe.
    pub bytes: u64,
    /// The number of instances, if the header has it.
    pub rows: Option<usize>,
}

/// About how many bytes of text a number takes, and how many times smaller compressed text is.
const BYTES_PER_NUMBER: u64 = 9;
const COMPRESSED: u64 = 4;

/// The expected memory of a table.
///
/// # Errors
/// When the file cannot be opened, or its header cannot be read.
pub fn expected(path: &Path, variable: Option<&str>, how: Reading) -> Result<Size> {
    // A pipe can be read only once.
    if !std::fs::metadata(path).is_ok_and(|about| about.is_file() || about.is_dir()) {
        return Ok(Size::default());
    }
    let mut file = Opened::new(path, false)?;
    let Some(length) = file.length() else { return Ok(Size::default()) };
    let value = |own: Precision| if how.precision.unwrap_or(own) == Precision::F32 { 4 } else { 8 };
    let matrix = |(rows, columns, own): (usize, usize, Precision)| {
        let rows_of = if how.transpose { columns } else { rows };
        Size {
            bytes: (rows as u64).saturating_mul(columns as u64).saturating_mul(value(own)),
            rows: Some(rows_of),
        }
    };
    let guess = |values: u64| Size { bytes: values.saturating_mul(value(Precision::F64)), rows: None };
    let known = |(rows, bytes): (usize, u64)| Size { bytes, rows: Some(rows) };
    let path = file.place.path.clone();
    Ok(match Format::of(&path, file.start()) {
        Format::Npy => matrix(npy::shape(&mut file)?),
        Format::Parquet => matrix(frame::shape::<Parquet>(&mut file)?),
        Format::Arrow => matrix(frame::shape::<Arrow>(&mut file)?),
        Format::Hdf5 => known(hdf5::size(&mut file, variable, how)?),
        Format::Zip => match Content::of(&mut file)? {
            Content::Arrays => known(npz::size(&mut file, variable, how)?),
            content => guess(archive::length(&mut file, content, variable)? / BYTES_PER_NUMBER),
        },
        // The file is as large as the values, except for compression.
        Format::Mat => Size { bytes: length.saturating_mul(2), rows: None },
        Format::MatrixMarket => {
            let how = Reading { transpose: how.transpose != file.of_folder, ..how };
            known(matrix_market::size(&path, file.text()?, how)?)
        }
        Format::Text => guess(
            length.saturating_mul(if is_packed(file.start()) { COMPRESSED } else { 1 }) / BYTES_PER_NUMBER,
        ),
    })
}
