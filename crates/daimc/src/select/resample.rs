//! Resamples: parts of the data, and the clusters and predictions of a fit to each.

use std::ops::ControlFlow;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::Daimc;
use crate::fit::held_out::{By, Hidden, explained};
use daimc_core::kmeans::{sample, sample_instances};
use daimc_core::scan::Scan;
use daimc_core::source::{Buffer, MISSING, Source};
use daimc_core::subset::Subset;
use daimc_core::{Result, Stop};

/// The part of the data that a fit uses.
pub(super) struct Resample {
    seed: u64,
    kept: Kept,
}

enum Kept {
    /// All instances, some without one of their views.
    Cells(Hidden),
    /// Some instances: no instance is seen in two views.
    Instances(Vec<u32>),
}

/// The share of left-out instances that corresponds to a hidden share of 1 of the cells.
const LEFT_OUT: f64 = 0.4;

/// The result of a fit to a resample.
pub(super) struct Sample {
    /// The cluster of each instance; [`MISSING`] for those that were left out.
    labels: Vec<u32>,
    /// The share of the variance of hidden rows that the clusters predict.
    pub explained: Option<f64>,
}

impl Resample {
    /// Hides a share of the data: the `number`th of the resamples of a seed.
    pub fn draw(part: &Subset<'_>, share: f64, seed: u64, number: usize) -> Self {
        let seed = seed.wrapping_add((number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let kept = Hidden::draw(part, share, seed).map_or_else(
            || {
                let kept = ((1.0 - LEFT_OUT * share) * part.instances() as f64).ceil() as usize;
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let mut kept = sample_instances(part, kept, &mut rng);
                // A view with few instances may have lost them all: it keeps one.
                for view in 0..part.views() {
                    if !kept.iter().any(|&i| part.is_present(view, i as usize)) {
                        kept.extend(sample(part, view, 1, &mut rng));
                    }
                }
                kept.sort_unstable();
                Kept::Instances(kept)
            },
            Kept::Cells,
        );
        Self { seed, kept }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Fits a model; `None` if it was stopped.
    pub fn fit(&self, fit: &Daimc, part: &Subset<'_>, stop: &Stop) -> Result<Option<Sample>> {
        match self.sample(fit, part, stop) {
            // The results of an interrupted fit are meaningless.
            _ if stop.is_set() => Ok(None),
            found => found.map(Some),
        }
    }

    fn sample(&self, fit: &Daimc, part: &Subset<'_>, stop: &Stop) -> Result<Sample> {
        let fit = |source: &Subset<'_>| fit.fit_here(source, |_| ControlFlow::Continue(()));
        match &self.kept {
            Kept::Cells(hidden) => {
                let fitted = fit(&hidden.rest(part))?;
                let labels = fitted.labels.iter().map(|&label| daimc_core::index::index(label)).collect();
                let of_views = explained(&fitted, part, hidden, By::Cluster, stop)?;
                let known: Vec<f64> = of_views.into_iter().flatten().collect();
                let mean = known.iter().sum::<f64>() / known.len() as f64;
                Ok(Sample { labels, explained: (!known.is_empty()).then_some(mean) })
            }
            Kept::Instances(instances) => {
                let mut buffers: Vec<Buffer> = (0..part.views()).map(|_| Buffer::default()).collect();
                let scan = Scan::new(part, stop);
                let fitted = fit(&Subset::pick(&scan, instances, &mut buffers)?)?;
                let mut labels = vec![MISSING; part.instances()];
                for (&i, &label) in instances.iter().zip(&fitted.labels) {
                    labels[i as usize] = daimc_core::index::index(label);
                }
                Ok(Sample { labels, explained: None })
            }
        }
    }
}

impl Sample {
    /// The clusters of the instances in both resamples.
    pub fn common(&self, other: &Self) -> (Vec<usize>, Vec<usize>) {
        let pairs = self.labels.iter().zip(&other.labels);
        let kept = pairs.filter(|(a, b)| **a != MISSING && **b != MISSING);
        kept.map(|(a, b)| (*a as usize, *b as usize)).unzip()
    }
}
