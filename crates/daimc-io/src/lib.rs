//! Reads views from the files people have: CSV and TSV (plain, `.gz`, `.zst`), `.npy`, `.npz`, MATLAB v5 `.mat`,
//! Matrix Market, Parquet.
//!
//! [`read`] makes a [`Table`] of one file; [`assemble`] joins tables into [`daimc::Views`]. Sparse stays sparse
//! and `f32` stays `f32`.

mod assemble;
mod chunks;
mod dense;
mod error;
mod fault;
mod input;
mod labels;
mod location;
mod mat;
mod matrix_market;
mod npy;
mod npz;
mod number;
mod parquet;
mod real;
mod sparse;
mod table;
mod text;
mod transpose;

use std::path::Path;

pub use assemble::{Account, Assembly, Nan, ViewAccount, assemble};
pub use error::{Error, Place, Result};
pub use labels::{Labels, read_labels};
pub use location::Location;
pub use matrix_market::companions;
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

/// Reads one table; the format is told by the name of the file. `variable` picks an array in a container.
///
/// # Errors
/// When the file cannot be read or is not what its name says; the message names the file and the place in it.
pub fn read(path: &Path, variable: Option<&str>, how: Reading) -> Result<Table> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let ends = |end: &str| name.ends_with(end);
    if ends(".npy") {
        npy::read(path, how)
    } else if ends(".npz") {
        npz::read(path, variable, how)
    } else if ends(".mat") {
        mat::read(path, variable, how)
    } else if ends(".parquet") || ends(".pq") {
        parquet::read(path, how)
    } else if [".mtx", ".mtx.gz", ".mtx.zst"].into_iter().any(ends) {
        matrix_market::read(path, how)
    } else {
        text::read(path, how)
    }
}
