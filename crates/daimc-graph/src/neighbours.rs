//! Nearest neighbours of instances in single views, and graphs of them.
//!
//! `search` finds the nearest neighbours of each instance in a view. `graph` fuses the graphs of several views into one,
//! weights its links and returns its leading eigenvectors; `anchors` adds links for instances that have too few. `evidence`
//! predicts clusters from single views by cross-fitted discriminants, and finds clusters of any size by a mixture; `references`
//! predicts clusters by nearest neighbours.

mod anchors;
mod descend;
mod evidence;
mod graph;
mod join;
mod links;
mod lists;
mod project;
mod references;
mod rows;
mod search;
mod shared;
mod shorten;
mod trees;

pub use anchors::Anchors;
use daimc_core::Result;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scan::Scan;
use daimc_core::watch::Watch;
pub use evidence::{Evidence, Mixed};
pub use graph::{Graph, SINGLE};
pub use references::References;
pub use references::{Predictions, ViewReferences};
pub use search::{DIRECTIONS, EXACT, Nearest, Search, all_pairs, by_accelerator, nearest, pairs};
pub use shorten::{Shortened, along, gathering, travelling};

/// Neighbours of each instance in each view.
pub const NEIGHBOURS: usize = 10;

/// The power of the cosine of two rows by which a link is weighted.
pub const POWER: i32 = 4;

/// The nearest neighbours of each instance in one view.
pub fn nearest_in(
    scan: &Scan<'_>,
    view: usize,
    scaled_view: &ScaledView,
    count: usize,
    seed: u64,
) -> Result<Nearest> {
    nearest(scan, view, scaled_view, Search { count, seed, thorough: true }, &Watch::default())
}
