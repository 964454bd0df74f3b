//! How much memory a table will take, before it is read.

use std::path::Path;

use crate::archive::{self, Content};
use crate::format::Format;
use crate::input::{Opened, is_packed};
use crate::{Precision, Reading, Result, arrow, hdf5, matrix_market, npy, npz, parquet};

/// What can be told of a table from the first bytes of its file, and from its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes that its values take in memory: as the header says, or else a guess by the length of the file. Zero for a pipe, of
    /// which nothing is known.
    pub bytes: u64,
    /// How many instances there are, if the header says.
    pub rows: Option<usize>,
}

/// Text has about so many bytes for a number; what is compressed, about so many times fewer.
const TEXT: u64 = 9;
const COMPRESSED: u64 = 4;

/// How much memory a table will take.
///
/// # Errors
/// When the file cannot be opened, or its header cannot be read.
pub fn expected(path: &Path, variable: Option<&str>, how: Reading) -> Result<Size> {
    // What comes through a pipe can be read but once, and not here.
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
    let told = |(rows, bytes): (usize, u64)| Size { bytes, rows: Some(rows) };
    let path = file.place.path.clone();
    Ok(match Format::of(&path, file.start()) {
        Format::Npy => matrix(npy::shape(&mut file)?),
        Format::Parquet => matrix(parquet::shape(&mut file)?),
        Format::Arrow => matrix(arrow::shape(&mut file)?),
        Format::Hdf5 => told(hdf5::size(&mut file, variable, how)?),
        Format::Zip => match Content::of(&mut file)? {
            Content::Arrays => told(npz::size(&mut file, variable, how)?),
            content => guess(archive::length(&mut file, content, variable)? / TEXT),
        },
        // What is stored takes as much in memory, but for compression.
        Format::Mat => Size { bytes: length.saturating_mul(2), rows: None },
        Format::MatrixMarket => {
            let how = Reading { transpose: how.transpose != file.of_folder, ..how };
            told(matrix_market::size(&path, file.text()?, how)?)
        }
        Format::Text => {
            guess(length.saturating_mul(if is_packed(file.start()) { COMPRESSED } else { 1 }) / TEXT)
        }
    })
}
