//! Combines several runs from different starts: their rows of V, each scaled to length 1, are concatenated and clustered
//! together. The majority of the runs decides; the share of runs that agree is the confidence.

use crate::backend::Backend;
use crate::consolidate::restarted;
use crate::descent::Descent;
use crate::options::Options;
use crate::partition::TableId;
use crate::partition::clusters::Assign;
use crate::partition::runs::{Agree, CompareRun, Stack, overlaps};
use daimc_core::index::index;
use daimc_core::kmeans;
use daimc_core::metrics::matching_of;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scaling::Scale;
use daimc_core::table::Table;
use daimc_core::{Result, Scaling, Stop};

/// Clusters the rows of V of all kept runs, and makes one iteration from these clusters.
pub(crate) fn combine<'a>(rows: &impl Backend<'a>, options: &Options, runs: usize) -> Result<Descent> {
    rows.run(Stack)?;
    let table = TableId::Runs(runs * options.latent);
    let (scaled_view, centres) = {
        let stacked = rows.table(table, &Stop::new())?;
        let scaled_view = ScaledView::new(&stacked, 0, Scaling::fit(&stacked, 0, Scale::None)?)?;
        let centres = kmeans::centres(&stacked, &scaled_view, &options.kmeans(None, stacked.stop()))?;
        (scaled_view, centres)
    };
    let found = rows.run(Assign { table, scaled_view: scaled_view.parts(), centres })?;
    restarted(rows, options, found.sizes)
}

/// Matched pairs of a final cluster and a cluster of a run.
pub(crate) type Matched = Vec<(usize, usize)>;

/// Compares the final clusters with those of this many runs. The confidence of an instance becomes the share of the runs that
/// agree with its cluster. Returns the matched clusters, and the share of the instances on which each run agrees.
pub(crate) fn agreement<'a>(
    rows: &impl Backend<'a>,
    runs: usize,
    instances: usize,
) -> Result<(Vec<Matched>, Vec<f64>)> {
    let compare = |run: usize| Ok(matching_of(&overlaps(rows.run(CompareRun(index(run)))?)));
    let matched = (0..runs).map(compare).collect::<Result<Vec<_>>>()?;
    let agreed = rows.run(Agree(matched.clone()))?;
    let shares = agreed.0.into_iter().map(|count| count as f64 / instances as f64).collect();
    Ok((matched, shares))
}
