//! Tables on disk, of which rows are read on request.
//!
//! `.npy` files and uncompressed arrays of `.npz` files are read in place. All other formats are written once, as plain numbers, to
//! spool files, which have no name, so that the system removes them when the program ends.

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
