//! Consolidation, after the iterations: one more iteration that starts from the clusters found so far.
//!
//! The iterations drift from bases that are means of clusters towards bases that reconstruct the data better. Rows of V computed
//! from means of clusters are easier to cluster. Of several clusterings of V, the one with the highest mean confidence after that
//! iteration is usually the closest to the truth.
//!
//! With more than 20 clusters ([`kmeans::FEW`]) the number of candidates falls in proportion, which keeps their cost linear in K.
//! One candidate starts from the clusters that the columns of V stand for; it is better than ten random starts.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::backend::{AllRows, Backend};
use crate::descent::Descent;
use crate::options::Options;
use crate::partition::TableId;
use crate::partition::clusters::{Assign, Sizes};
use crate::partition::latent::{Accept, Rescale, Restart, Restore, Save, restart};
use crate::place::{self, Place};
use daimc_core::kmeans;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scan::Scan;
use daimc_core::shard::{Shard, VStep};
use daimc_core::source::{Buffer, Rows};
use daimc_core::statistics::Statistics;
use daimc_core::steps::basis::Bases;
use daimc_core::steps::latent::Solver;
use daimc_core::subset::Subset;
use daimc_core::sweep::{Cpu, Sweep};
use daimc_core::table::Table;
use daimc_core::watch::{Stage, Watch};
use daimc_core::{Error, Matrix, Result, Scaling, Stop};

/// Tries to replace V by a better one. If the work is interrupted, restores the previous V and returns `None`.
///
/// # Errors
/// Other errors of the work.
pub(crate) fn attempt<'a, T>(rows: &impl Backend<'a>, work: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    rows.run(Save)?;
    match work() {
        Err(Error::Interrupted) => rows.run(Restore).map(|()| None),
        done => {
            rows.run(Accept)?;
            done.map(Some)
        }
    }
}

/// Clusters V, starts again from these clusters, and makes one iteration. Every start of k-means on V is a candidate; the best is
/// chosen on all instances or on a seeded sample.
///
/// # Errors
/// [`Error::Interrupted`] when the fit is stopped.
pub(crate) fn consolidate<'a>(rows: &impl Backend<'a>, options: &Options, watch: &Watch) -> Result<Descent> {
    watch.begin(Stage::Consolidate);
    let (scaled_view, centres) = {
        let (prepared, latent) =
            (rows.table(TableId::Prepared, rows.stop())?, rows.table(TableId::Latent, rows.stop())?);
        clusters(prepared.rows(), &rows.scaled_views()?, &latent, options)?
    };
    let found = rows.run(Assign { table: TableId::Latent, scaled_view: scaled_view.parts(), centres })?;
    restarted(rows, options, found.sizes)
}

/// One iteration from the present clusters, which have these sizes, after which V is optimal for the resulting bases: two passes
/// over the data.
pub(crate) fn restarted<'a>(
    rows: &impl Backend<'a>,
    options: &Options,
    sizes: Vec<usize>,
) -> Result<Descent> {
    let statistics = rows.run(Restart { sizes })?;
    let mut descent = iterated(&mut AllRows(rows), options, squares(rows)?, statistics, rows.stop())?;
    rows.run(Rescale(descent.take_scale()))?;
    Ok(descent)
}

/// `Σ_j w_j ‖x_j‖²` of each view.
pub(crate) fn squares<'a>(rows: &impl Backend<'a>) -> Result<Vec<f64>> {
    Ok(rows.scaled_views()?.iter().map(|scaled_view| scaled_view.sum_squares).collect())
}

/// The clusters to start again from: the scaling of the rows of V, and the centres.
fn clusters(
    scan: &Scan<'_>,
    scaled_views: &[ScaledView],
    rows: &impl Table,
    options: &Options,
) -> Result<(ScaledView, Matrix)> {
    let (scaling, scaled_view) = place::scaled(rows, options)?;
    let first = place::first(rows, &scaled_view, options)?;
    let mut candidates =
        kmeans::candidates(rows.rows(), &scaled_view, &options.kmeans(first.as_ref(), scan.stop()))?;
    let several = candidates.len() > 1;
    let best =
        if several { clearest(scan, scaled_views, options, rows.rows(), &scaling, &candidates)? } else { 0 };
    Ok((scaled_view, candidates.swap_remove(best)))
}

/// One iteration on a sample, as in [`iterated`].
fn from_clusters(sweep: &Arc<Sweep<'_>>, options: &Options, v: Matrix) -> Result<Matrix> {
    let stop = sweep.scan.stop();
    let mut shard = Cpu::of(sweep.clone());
    let statistics = shard.start(v, stop)?;
    let mut descent = iterated(&mut shard, options, sweep.sums_of_squares(), statistics, stop)?;
    let mut v = shard.into_latent();
    descent.apply_scale(&mut v);
    Ok(v)
}

/// One iteration from the statistics of a V that stands for clusters, after which V is optimal for the resulting bases. The
/// caller has to apply the scale.
fn iterated(
    shard: &mut dyn Shard,
    options: &Options,
    squares: Vec<f64>,
    statistics: Statistics,
    stop: &Stop,
) -> Result<Descent> {
    let mut descent = Descent::new(options, squares, Bases::Fitted, statistics)?;
    let Options { solver, passes, .. } = *options;
    if solver == Solver::Coordinate {
        let statistics = shard.sweep(descent.solve()?, VStep::Solve { after: Some(passes) }, stop)?;
        descent.absorb(statistics)?;
    } else {
        let statistics = shard.sweep(descent.solve()?, VStep::Update { solver, passes }, stop)?;
        descent.absorb(statistics)?;
        solve_to_optimality(shard, &mut descent, stop)?;
    }
    Ok(descent)
}

/// Makes V optimal for the bases, starting from zero, as for new instances: where the optimum is not unique, both get the same
/// one.
pub(crate) fn solve_to_optimality(shard: &mut dyn Shard, descent: &mut Descent, stop: &Stop) -> Result<()> {
    let statistics = shard.sweep(descent.factors(), VStep::Solve { after: None }, stop)?;
    descent.finish(statistics).map(|_| ())
}

/// The candidate with the clearest clusters after one iteration from it.
fn clearest(
    scan: &Scan<'_>,
    scaled_views: &[ScaledView],
    options: &Options,
    latent: &Scan<'_>,
    scaling: &Scaling,
    candidates: &[Matrix],
) -> Result<usize> {
    let stop = scan.stop();
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    rng.set_stream(u64::MAX / 2);
    let chosen = kmeans::sample_instances(scan.source(), kmeans::sample_size(options.clusters), &mut rng);
    let mut buffers: Vec<Buffer> = scaled_views.iter().map(|_| Buffer::default()).collect();
    let some = Subset::pick(scan, &chosen, &mut buffers)?;
    let some = Scan::new(&some, stop);
    let scaled_view =
        |(view, scaled_view): (usize, &ScaledView)| ScaledView::new(&some, view, scaled_view.scaling.clone());
    let scaled_views = scaled_views.iter().enumerate().map(scaled_view).collect::<Result<Vec<_>>>()?;
    let sweep = Arc::new(Sweep::new(some, scaled_views, options.latent));
    let rows = rows_of(latent, &chosen)?;
    // With many clusters, a candidate's own clusters are a good start, and further starts are expensive.
    let restarts = if options.clusters > kmeans::FEW { 1 } else { options.restarts };
    let own = Options { restarts, ..options.clone() };
    let clarity = |centres: &Matrix| -> Result<f64> {
        let Place { labels, .. } = Place::new(rows.clone(), scaling, centres, stop)?;
        let sizes = Sizes::of(&labels, options.clusters, 0).sizes;
        let v = from_clusters(&sweep, options, restart(&labels, &sizes))?;
        let place = Place::by_columns(v, &own, stop)?;
        Ok(place.confidence.iter().sum())
    };
    let clarities: Vec<f64> = candidates.par_iter().map(clarity).collect::<Result<_>>()?;
    let better = |best: usize, other: usize| clarities[other] > clarities[best];
    Ok((1..clarities.len()).fold(0, |best, other| if better(best, other) { other } else { best }))
}

/// The rows of V of some instances.
pub(crate) fn rows_of(latent: &impl Table, instances: &[u32]) -> Result<Matrix> {
    let (mut buffer, columns) = (Buffer::default(), latent.schema().view(0).features());
    let block = latent.pick(0, instances, &mut buffer)?;
    let mut rows = Matrix::zeros(instances.len(), columns);
    if let Rows::DenseF64(values) = block.rows {
        for (i, row) in (0..instances.len()).filter_map(|i| Some((i, block.index.row(i)?))) {
            rows.row_mut(i).copy_from_slice(&values[row * columns..(row + 1) * columns]);
        }
    }
    Ok(rows)
}
