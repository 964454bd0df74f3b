//! Fits to a sample of the instances, for decisions about the full fit.

use std::ops::ControlFlow;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::Daimc;
use super::run::{Clock, Runs};
use crate::backend::{Backend, Local};
use crate::options::{Options, Penalty, ViewWeights};
use daimc_core::scaled_view::ScaledView;
use daimc_core::scan::Scan;
use daimc_core::sweep::Sweep;
use daimc_core::{Matrix, Result, Scaling, kmeans};

/// Instances of each view in a sample, if it has as many.
const SAMPLE_OF_VIEW: usize = 100;

/// The iteration limit of these fits.
const MOST_ITERATIONS: usize = 100;
const TOLERANCE: f64 = 1e-4;

impl Daimc {
    /// A sample of this many instances, if there are as many, in increasing order, and more where a view has few of them.
    pub(super) fn sample(&self, scan: &Scan<'_>, size: usize) -> Vec<u32> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.options.seed);
        rng.set_stream(u64::MAX / 8);
        let mut chosen = kmeans::sample_instances(scan.source(), size, &mut rng);
        // Ensures a minimum number of instances of each view.
        for view in 0..scan.schema().len() {
            let shown = chosen.iter().filter(|&&i| scan.source().is_present(view, i as usize)).count();
            if shown < SAMPLE_OF_VIEW {
                chosen.extend(kmeans::sample(scan.source(), view, SAMPLE_OF_VIEW, &mut rng));
            }
        }
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// The same fit, by V alone and with the limits of a decision instead of those of the fit.
    pub(super) fn in_short(&self, seed: u64) -> Self {
        let mut fit = self.clone().alone(seed);
        fit.options = Options {
            view_weights: ViewWeights::Equal,
            runs: 1,
            max_iterations: self.options.max_iterations.min(MOST_ITERATIONS),
            tolerance: self.options.tolerance.max(TOLERANCE),
            ..fit.options
        };
        match fit.options.penalty {
            Penalty::Auto => fit.penalty(Penalty::Published),
            _ => fit,
        }
    }

    /// V of a sample with these scalings.
    pub(super) fn latent_of<'s>(
        &self,
        part: &Scan<'s>,
        scalings: &[Scaling],
    ) -> Result<(Arc<Sweep<'s>>, Matrix)> {
        let (options, stop) = (&self.options, part.stop().clone());
        let scaled_view = |(view, scaling): (usize, &Scaling)| {
            ScaledView::fit(part, view, scaling.clone(), options.equal_weight)
        };
        let scaled_views = scalings.iter().enumerate().map(scaled_view).collect::<Result<Vec<_>>>()?;
        let rows = Local::scaled(Arc::new(Sweep::new(part.clone(), scaled_views, options.latent)));
        let mut quiet = |_: &super::Iteration| ControlFlow::Continue(());
        Runs::new(self, &stop, &mut quiet, Clock::new().start).once(&rows, options, 1)?;
        stop.check()?;
        let (sweep, v) = (rows.sweep()?, rows.latent()?);
        Ok((sweep, Arc::unwrap_or_clone(v)))
    }
}
