//! After the iterations: the clusters that were found become the start of one more.
//!
//! The iterations drift away from bases that are means of clusters towards bases that reconstruct better. Rows of V
//! that are computed from means of clusters are easier to cluster, and of several clusterings of V the one
//! that is clearest afterwards (highest mean confidence) is, by experience, the one closest to the truth.

use std::sync::atomic::AtomicBool;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::initialise::{FLOOR, Start};
use crate::kmeans;
use crate::lens::Lens;
use crate::model::Place;
use crate::options::Options;
use crate::parallel::block_size;
use crate::part::Part;
use crate::patterns::Patterns;
use crate::scale::Scaling;
use crate::source::{Buffer, Source, Stoppable};
use crate::state::State;
use crate::sweep::Sweep;
use crate::watch::{Stage, Watch};
use crate::{Error, Matrix, Result};

/// Clusters V, starts again from the clusters, and makes one iteration. Every start of k-means on V is a candidate; which
/// is best is found out on the instances, or on a seeded sample of them. `sweep` reads rows that are refused once
/// the fit is stopped.
///
/// # Errors
/// [`Error::Interrupted`] when the fit is stopped; V is then as it was.
pub(crate) fn consolidate<'a>(
    source: &dyn Source,
    lenses: &[Lens],
    sweep: &'a Sweep<'a>,
    options: &'a Options,
    v: &Matrix,
    watch: &Watch,
) -> Result<State<'a>> {
    watch.check()?;
    watch.tell(&Stage::Consolidate);
    let work = || {
        let labels = clusters(source, lenses, options, v, watch)?;
        let empty = Matrix::zeros(v.rows(), v.columns());
        from_clusters(sweep, options, restart(empty, &labels, options.clusters))
    };
    work().map_err(|error| if watch.stopped() { Error::Interrupted } else { error })
}

/// The clusters to start again from.
fn clusters(
    source: &dyn Source,
    lenses: &[Lens],
    options: &Options,
    v: &Matrix,
    watch: &Watch,
) -> Result<Vec<usize>> {
    let rows = Place::rows(v)?;
    let scaling = Scaling::fit(&rows, 0, options.latent_scale)?;
    let lens = Lens::new(&rows, 0, scaling.clone())?;
    let first = Place::first(v, &rows, &lens, options)?;
    let candidates = kmeans::candidates(&rows, &lens, &options.kmeans(first.as_ref(), watch))?;
    let best = match candidates.len() {
        1 => 0,
        _ => clearest(source, lenses, options, v, &scaling, &candidates, watch)?,
    };
    let found = kmeans::assign(&rows, 0, &lens, &candidates[best])?;
    Ok(found.labels.into_iter().map(|label| label as usize).collect())
}

/// One iteration from a V that stands for clusters.
pub(crate) fn from_clusters<'a>(sweep: &'a Sweep<'a>, options: &'a Options, v: Matrix) -> Result<State<'a>> {
    let mut state = State::new(sweep, options, Start { v, bases: Vec::new() })?;
    state.iterate()?;
    state.settle()?;
    Ok(state)
}

/// The candidate whose clusters are clearest after one iteration from them.
fn clearest(
    source: &dyn Source,
    lenses: &[Lens],
    options: &Options,
    v: &Matrix,
    scaling: &Scaling,
    candidates: &[Matrix],
    watch: &Watch,
) -> Result<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    rng.set_stream(u64::MAX / 2);
    let chosen = kmeans::sample_instances(source, kmeans::sample_size(options.clusters), &mut rng);
    let mut buffers: Vec<Buffer> = lenses.iter().map(|_| Buffer::default()).collect();
    let some = Part::pick(source, &chosen, &mut buffers)?;
    let lens = |(view, lens): (usize, &Lens)| Lens::new(&some, view, lens.scaling.clone());
    let lenses = lenses.iter().enumerate().map(lens).collect::<Result<Vec<_>>>()?;
    let never = AtomicBool::new(false);
    let some = Stoppable { source: &some, stop: watch.stop.as_deref().unwrap_or(&never) };
    let patterns = Patterns::new(&some, block_size(chosen.len()));
    let sweep = Sweep::new(&some, &lenses, &patterns, options.latent);
    let rows = Matrix::from_fn(chosen.len(), v.columns(), |i, k| v[(chosen[i] as usize, k)]);
    // Of many clusters a candidate's own are a good start, and others are dear.
    let restarts = if options.clusters > kmeans::FEW { 1 } else { options.restarts };
    let own = Options { restarts, ..options.clone() };
    let clarity = |centres: &Matrix| -> Result<f64> {
        let Place { latent, labels, .. } = Place::new(rows.clone(), scaling, centres)?;
        let mut state = from_clusters(&sweep, options, restart(latent, &labels, options.clusters))?;
        let (_, _, place) = Place::by_columns(state.take_v(), &own, watch)?;
        Ok(place.confidence.iter().sum())
    };
    let clarities: Vec<f64> = candidates.par_iter().map(clarity).collect::<Result<_>>()?;
    let better = |best: usize, other: usize| clarities[other] > clarities[best];
    Ok((1..clarities.len()).fold(0, |best, other| if better(best, other) { other } else { best }))
}

/// The V of a start from clusters: their one-hot labels plus a floor, columns summing to one as after an iteration. `v` is
/// overwritten.
pub(crate) fn restart(mut v: Matrix, labels: &[usize], clusters: usize) -> Matrix {
    let mut sizes = vec![0.0; clusters];
    labels.iter().for_each(|&label| sizes[label] += 1.0);
    let floor = FLOOR * labels.len() as f64;
    for (i, &label) in labels.iter().enumerate() {
        for (k, value) in v.row_mut(i).iter_mut().enumerate() {
            let own = if k == label { 1.0 } else { 0.0 };
            *value = (own + FLOOR) / (sizes[k] + floor);
        }
    }
    v
}
