//! Reads views from files: CSV and TSV (plain, `.gz`, `.bz2`, `.xz`, `.zst`, or in a `.zip`), GCT, `.npy`, `.npz`, MATLAB `.mat`,
//! Matrix Market, Parquet, Arrow (`.feather`, `.arrow`), spreadsheets (`.xlsx`, `.ods`), and HDF5: `.h5ad`, `.h5mu`, and the files
//! and folders of 10x Genomics.
//!
//! [`read`] returns one file as a [`Table`]; [`assemble`] joins tables into [`daimc_core::Views`]. Sparse matrices stay sparse, and
//! `f32` stays `f32`.

mod annotate;
mod archive;
mod arrow;
mod assemble;
mod attributes;
mod cell_ranger;
mod chunks;
mod dense;
mod disk;
mod error;
mod fault;
mod feature_types;
mod foreign;
mod format;
mod frame;
mod hdf5;
mod ids;
mod input;
mod labels;
mod listing;
mod location;
mod mat;
mod matrix_market;
pub mod memory;
mod names;
mod npy;
mod npz;
mod number;
mod parquet;
mod paths;
mod positioned;
mod quiet;
mod read;
mod reading;
mod real;
mod records;
mod sheet;
mod size;
mod sparse;
mod table;
mod text;
mod transpose;

pub use annotate::{Annotation, annotate};
pub use assemble::{Account, Assembly, Nan, ViewAccount, assemble, shown};
pub use attributes::{Attributes, read_attributes};
pub use disk::{Disk, Progress};
pub use error::{Error, Position, Result};
pub use ids::{Duplicates, IdMap, Matching, Near, Pattern, near};
pub use input::sha256;
pub use labels::{Labels, read_labels};
pub use location::{Column, Location};
pub use matrix_market::companions;
pub use parquet::{Values, write_parquet};
pub use read::{parts, read, read_hashed, read_stored, read_within};
pub use reading::{Precision, Reading};
pub use size::{Size, expected};
pub use table::{Cells, Csr, Stored, Table};
