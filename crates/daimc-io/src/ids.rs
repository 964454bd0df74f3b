//! Which IDs of different files name the same instance.

mod index;
mod map;
mod matching;
mod merge;
mod near;

pub(crate) use index::Index;
pub use map::IdMap;
pub use matching::{Duplicates, Matching, Pattern};
pub(crate) use merge::instances;
pub use near::{Near, near};
