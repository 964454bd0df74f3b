//! The neighbours of each instance, found on the CPU or by an accelerator.

use crate::options::Options;
use daimc_core::Result;
use daimc_core::accelerator::Resident;
use daimc_core::sweep::Sweep;
use daimc_core::watch::{Stage, Watch};
use daimc_graph::neighbours::{self, NEIGHBOURS, Nearest, Search};

/// The neighbours of each instance in each view; searched for unless given.
pub(super) fn nearest(
    sweep: &Sweep<'_>,
    options: &Options,
    given: Vec<Option<Nearest>>,
    thorough: bool,
    watch: &Watch,
) -> Result<Vec<Nearest>> {
    let search = Search { count: NEIGHBOURS, seed: options.seed, thorough };
    let mut given = given.into_iter();
    let find = |(view, scaled_view)| match given.next().flatten() {
        Some(found) => Ok(found),
        None => neighbours::nearest(&sweep.scan, view, scaled_view, search, &searching(sweep, view, watch)),
    };
    sweep.scaled_views.iter().enumerate().map(find).collect()
}

/// The same, found by an accelerator; `None` for views that it does not support and views that `looks` excludes.
pub(super) fn accelerated(
    sweep: &Sweep<'_>,
    resident: &dyn Resident<'_>,
    looks: impl Fn(usize) -> bool,
    seed: u64,
    watch: &Watch,
) -> Result<Vec<Option<Nearest>>> {
    let search = Search { count: NEIGHBOURS, seed, thorough: true };
    let find = |(view, scaled_view)| {
        if !looks(view) {
            return Ok(None);
        }
        let watch = searching(sweep, view, watch);
        neighbours::by_accelerator(resident, &sweep.scan, view, scaled_view, search, &watch)
    };
    sweep.scaled_views.iter().enumerate().map(find).collect()
}

fn searching(sweep: &Sweep<'_>, view: usize, watch: &Watch) -> Watch {
    watch.begin(Stage::Search { view: sweep.scan.schema().view_name(view).into() })
}
