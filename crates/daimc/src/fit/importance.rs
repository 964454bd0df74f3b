//! The weight of each view, learned from how well the other views predict it.
//!
//! Rows of the views are hidden, a model is fitted to the rest, and the mean of an instance's cluster predicts its hidden rows.
//! For a view that shares the clusters of the others, part of the variance is explained; for noise, none. A view that is
//! explained at least a quarter as well as the best one has full weight, so that good views do not change. A view that is not
//! explained has the weight 1e-6, which suffices for instances without any other view.

use std::ops::ControlFlow;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::Daimc;
use super::held_out::{By, Hidden, explained};
use daimc_core::Result;
use daimc_core::kmeans::sample;
use daimc_core::scan::Scan;
use daimc_core::source::{Buffer, Source};
use daimc_core::subset::Subset;
use daimc_core::watch::Watch;

/// The second round uses the weights of the first, so that uninformative views do not affect the clusters.
const ROUNDS: u64 = 2;

/// Hidden subsets in each round.
const HIDINGS: u64 = 3;

/// The share of cells that is hidden, in addition to the one that each instance keeps.
const SHARE: f64 = 0.5;

/// Sample size for each view of larger data.
const SAMPLE: usize = 10_000;

/// A view that is explained at least this share as well as the best has full weight.
const ENOUGH: f64 = 0.25;

/// The least weight of a view.
const LEAST: f64 = 1e-6;

/// All instances, or a seeded sample with enough instances of each view, in increasing order.
pub(crate) fn sampled(source: &dyn Source, seed: u64) -> Vec<u32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::MAX / 4);
    let mut instances: Vec<u32> =
        (0..source.views()).flat_map(|view| sample(source, view, SAMPLE, &mut rng)).collect();
    instances.sort_unstable();
    instances.dedup();
    instances
}

/// The importance of each view, from [`LEAST`] to 1. All are 1 if there is one view, if no instance has two views, or if nothing
/// is explained. A stopped fit returns the result of the last complete round.
pub(crate) fn learn(fit: &Daimc, scan: &Scan<'_>, watch: &Watch) -> Result<Vec<f64>> {
    let mut importance = vec![1.0; scan.schema().len()];
    let options = fit.options();
    let instances = sampled(scan.source(), options.seed);
    let mut buffers: Vec<Buffer> = importance.iter().map(|_| Buffer::default()).collect();
    let part = Subset::pick(scan, &instances, &mut buffers)?;
    let tried = watch.pieces((ROUNDS * HIDINGS) as usize);
    for round in 0..ROUNDS {
        let mut shares = vec![(0.0, 0.0); importance.len()];
        for hiding in 0..HIDINGS {
            let seed = options.seed.wrapping_sub(1 + round * HIDINGS + hiding);
            let Some(hidden) = Hidden::draw(&part, SHARE, seed) else { return Ok(importance) };
            let own = fit.clone().runs(1).weighed(importance.clone()).alone(seed);
            let fitted = own.fit_here(&hidden.rest(&part), |_| ControlFlow::Continue(()));
            let found =
                fitted.and_then(|fitted| explained(&fitted, &part, &hidden, By::Cluster, scan.stop()));
            if scan.stop().is_set() {
                return Ok(importance);
            }
            let found = found?;
            for ((sum, count), share) in shares.iter_mut().zip(found) {
                *sum += share.unwrap_or(0.0);
                *count += f64::from(u8::from(share.is_some()));
            }
            tried();
        }
        let known = |(sum, count): &(f64, f64)| (*count > 0.0).then(|| sum / count);
        let best = shares.iter().filter_map(known).fold(0.0, f64::max);
        if best <= 0.0 {
            return Ok(vec![1.0; importance.len()]);
        }
        // A view without hidden cells keeps its weight.
        for (importance, share) in importance.iter_mut().zip(&shares) {
            *importance = known(share).map_or(*importance, |share| (share / best / ENOUGH).clamp(LEAST, 1.0));
        }
    }
    Ok(importance)
}
