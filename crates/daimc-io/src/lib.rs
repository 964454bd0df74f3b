//! Reads views from the files people have: CSV and TSV (plain, `.gz`, `.zst`), `.npy`, `.npz`, MATLAB v5 `.mat`,
//! Matrix Market, Parquet.
//!
//! [`read`] makes a [`Table`] of one file; [`assemble`] joins tables into [`daimc::Views`]. Sparse stays sparse
//! and `f32` stays `f32`.

mod assemble;
mod chunks;
mod dense;
mod disk;
mod error;
mod fault;
mod format;
mod input;
mod labels;
mod location;
mod mat;
mod matrix_market;
pub mod memory;
mod npy;
mod npz;
mod number;
mod parquet;
mod quiet;
mod real;
mod size;
mod sparse;
mod table;
mod text;
mod transpose;

use std::path::Path;

use format::Format;
use input::Opened;

pub use assemble::{Account, Assembly, Nan, ViewAccount, assemble, shown};
pub use disk::Stored;
pub use error::{Error, Place, Result};
pub use input::sha256;
pub use labels::{Labels, read_labels};
pub use location::{Column, Location};
pub use matrix_market::companions;
pub use size::{Size, expected};
pub use table::{Cells, Csr, Table};

/// How a file is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Instances are in columns, features in rows.
    pub transpose: bool,
    /// The file has no IDs: its first column holds values like the others.
    pub no_ids: bool,
    /// The type of the values; where `None`, that of the file (`f64` for text).
    pub precision: Option<Precision>,
}

/// The type of the values of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

/// Reads one table. `-` is standard input, and pipes and devices are read as files are. `variable` picks an array in a
/// container.
///
/// The format is told by the name of the file, or by its first bytes where the name does not tell, as that of a pipe.
///
/// # Errors
/// When the file cannot be read or is not what its name says; the message names the file and the place in it.
pub fn read(path: &Path, variable: Option<&str>, how: Reading) -> Result<Table> {
    parse(&mut Opened::new(path, false)?, variable, how, None)
}

/// Reads one table as [`read`] does, and returns with it the SHA-256 of the file in hexadecimal digits: that of the bytes
/// the table was made of, which are read once.
///
/// # Errors
/// As [`read`].
pub fn read_hashed(path: &Path, variable: Option<&str>, how: Reading) -> Result<(Table, String)> {
    let mut file = Opened::new(path, true)?;
    let table = parse(&mut file, variable, how, None)?;
    Ok((table, file.sha256()?))
}

/// As [`read_hashed`], but the values stay on disk: in the file itself if it is a `.npy`, else in a spool file in a folder,
/// which has no name and is gone with the table. Text and Parquet are written to it as they are read; what is in
/// other formats, and what comes through a pipe, is in memory meanwhile.
///
/// # Errors
/// As [`read`], and when the spool file cannot be written.
pub fn read_stored(
    path: &Path,
    variable: Option<&str>,
    how: Reading,
    folder: &Path,
) -> Result<(Table, String)> {
    let mut file = Opened::new(path, true)?;
    let mut table = parse(&mut file, variable, how, Some(folder))?;
    let cells = std::mem::replace(&mut table.cells, Cells::DenseF32(Vec::new()));
    table.cells = Cells::Stored(disk::Spool::cells(folder, table.rows, table.columns, cells)?);
    Ok((table, file.sha256()?))
}

fn parse(file: &mut Opened, variable: Option<&str>, how: Reading, spool: Option<&Path>) -> Result<Table> {
    let path = file.place.path.clone();
    match Format::of(&path, file.start()) {
        Format::Npy if spool.is_some() && file.is_on_disk() => npy::store(file, how),
        Format::Npy => npy::read(file, how),
        Format::Npz => npz::read(file, variable, how),
        Format::Mat => mat::read(file, variable, how),
        Format::Parquet => parquet::read(file, how, spool),
        Format::MatrixMarket => matrix_market::read(&path, file.text()?, how),
        Format::Text => {
            let mut input = file.text()?;
            let matrix = input.starts_with(b"%%MatrixMarket").map_err(|error| input::failed(&path, error))?;
            if matrix { matrix_market::read(&path, input, how) } else { text::read(&path, input, how, spool) }
        }
    }
}
