//! Tables that stay on disk: rows are read when they are asked for.
//!
//! A `.npy` file, and arrays that an `.npz` file holds uncompressed, are read where they lie. Everything else is written once,
//! as plain numbers, to spool files, which have no name and are gone when the program ends, however it ends.

mod cells;
mod compressed;
mod dense;
mod growing;
mod options;
mod sort;
mod sparse;
mod spool;
mod watched;
mod writer;

pub(crate) use cells::store_cells;
pub(crate) use compressed::store;
pub(crate) use dense::Dense;
pub(crate) use growing::{Growing, Grown};
pub(crate) use options::Keep;
pub use options::{Disk, Progress};
pub(crate) use sort::Sorter;
pub(crate) use sparse::{Numbers, Sparse};
pub(crate) use spool::Spool;
pub(crate) use watched::Watched;
pub(crate) use writer::missing;
