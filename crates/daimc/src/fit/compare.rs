//! Which scaling: no rule that looks at the values of a view alone can know whether features that vary more also say more.
//! So the clusters that each of two scalings leads to are compared, on a sample of the instances, by how well neighbours
//! predict them ([`routes`]).

use std::ops::ControlFlow;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::Daimc;
use super::run::{Clock, Work};
use crate::lens::Lens;
use crate::neighbours::{self, Explored, Nearest, Neighbours};
use crate::options::{Options, Penalty, ViewWeights};
use crate::prepared::Prepared;
use crate::routes::{self, Route};
use crate::scale::{Alternatives, Observed, Scaling};
use crate::scan::Scan;
use crate::source::Buffer;
use crate::subset::Subset;
use crate::sweep::Sweep;
use crate::watch::Stage;
use crate::{Error, Result, kmeans};

/// Instances that scalings are compared on, for each cluster at least, and of each view, if it has so many.
const SAMPLE: usize = 500;
const SAMPLE_OF_CLUSTER: usize = 20;
const SAMPLE_OF_VIEW: usize = 100;

/// How far the fits to the sample go.
const MOST_ITERATIONS: usize = 100;
const TOLERANCE: f64 = 1e-4;

/// How much better the clusters of the less likely scaling must be predicted.
const MARGIN: f64 = 0.01;

impl Daimc {
    /// A scaling for each view, still without its weight, of those that were found for it.
    pub(super) fn scalings(&self, scan: &Scan<'_>, observed: &[Observed]) -> Result<Vec<Scaling>> {
        let Options { clusters, latent, .. } = self.options;
        let alternatives: Vec<&Alternatives> = observed.iter().map(|view| &view.scalings).collect();
        let compared = || alternatives.iter().filter(|own| own.by_feature.is_some());
        let all = |by_feature: bool| -> Vec<Scaling> {
            let of = |own: &&Alternatives| {
                own.by_feature.as_ref().filter(|_| by_feature).unwrap_or(&own.plain).clone()
            };
            alternatives.iter().map(of).collect()
        };
        // If one view is in different units, all are scaled by feature unless something speaks against it.
        let likely = compared().any(|own| !own.alike);
        let nothing = clusters < 2 || clusters >= scan.instances() || latent != clusters;
        if compared().next().is_none() || !self.compares || nothing {
            return Ok(all(likely));
        }
        self.watch.tell(&Stage::Scaling);
        let [score, other] = match self.compare(scan, &all(likely), &all(!likely)) {
            // The fit itself will say that it was stopped.
            Err(Error::Interrupted) => return Ok(all(likely)),
            scores => scores?,
        };
        let changed = other > score + MARGIN;
        let mut chosen = all(likely != changed);
        for (own, scaling) in alternatives.iter().zip(&mut chosen) {
            let Some(by_feature) = &own.by_feature else { continue };
            let rejected = if scaling.scale == own.plain.scale { by_feature } else { &own.plain }.scale;
            let (own, other) = if changed { (other, score) } else { (score, other) };
            let close = if other > own { ", too close to matter" } else { "" };
            scaling.reason = format!(
                "neighbours predict {own:.2} of its clusters, {other:.2} of those of {rejected}{close}; {}",
                scaling.reason
            );
        }
        Ok(chosen)
    }

    /// The same fit, every view with the scaling that is chosen for it.
    pub(crate) fn resolved(&self, given: &Scan<'_>) -> Result<Self> {
        let observed = self.observe(given)?;
        let prepared = Prepared::observed(given.source(), &observed)?;
        let scalings = self.scalings(&given.as_source(&prepared), &observed)?;
        Ok(self.scaled_by(given, &scalings))
    }

    /// The same fit, every view with a scaling of this kind.
    pub(super) fn scaled_by(&self, scan: &Scan<'_>, scalings: &[Scaling]) -> Self {
        let views = scalings.iter().enumerate();
        let scales = views.map(|(view, own)| (scan.schema().view_name(view).to_string(), own.scale));
        let mut fit = self.clone();
        fit.options.view_scales = scales.collect();
        fit
    }

    /// How well neighbours predict the clusters that each of two scalings leads to.
    fn compare(&self, scan: &Scan<'_>, first: &[Scaling], second: &[Scaling]) -> Result<[f64; 2]> {
        let mut fit = self.clone().alone(self.options.seed);
        fit.options = Options {
            // Whatever the fit itself makes of neighbourhoods: its scaling does not hang on that.
            neighbours: Neighbours::Auto,
            view_weights: ViewWeights::Equal,
            runs: 1,
            // A choice needs no more, however far the fit itself is to go.
            max_iterations: self.options.max_iterations.min(MOST_ITERATIONS),
            tolerance: self.options.tolerance.max(TOLERANCE),
            ..fit.options
        };
        if fit.options.penalty == Penalty::Auto {
            fit = fit.penalty(Penalty::Published);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.options.seed);
        rng.set_stream(u64::MAX / 8);
        let size = SAMPLE.max(SAMPLE_OF_CLUSTER * self.options.clusters);
        let mut chosen = kmeans::sample_instances(scan.source(), size, &mut rng);
        // A view that shows few instances shows enough of them here.
        for view in 0..scan.schema().len() {
            let shown = chosen.iter().filter(|&&i| scan.source().is_present(view, i as usize)).count();
            if shown < SAMPLE_OF_VIEW {
                chosen.extend(kmeans::sample(scan.source(), view, SAMPLE_OF_VIEW, &mut rng));
            }
        }
        chosen.sort_unstable();
        chosen.dedup();
        let mut buffers: Vec<Buffer> = first.iter().map(|_| Buffer::default()).collect();
        let part = Subset::pick(scan, &chosen, &mut buffers)?;
        let (a, b) = (fit.try_out(&part, first, scan)?, fit.try_out(&part, second, scan)?);
        let graphs: Vec<&Nearest> = a.nearest.iter().chain(&b.nearest).collect();
        let score = |explored: &Explored| -> Result<f64> {
            let of = |route: &Route| routes::score(&route.labels, self.options.clusters, &graphs);
            Ok(routes::together(&explored.routes.iter().map(of).collect::<Result<Vec<_>>>()?))
        };
        Ok([score(&a)?, score(&b)?])
    }

    /// Fits the sample with these scalings and finds clusters in every way.
    fn try_out(&self, part: &Subset<'_>, scalings: &[Scaling], scan: &Scan<'_>) -> Result<Explored> {
        let (options, stop) = (&self.options, scan.stop());
        let part = Scan::new(part, stop);
        let lens = |(view, scaling): (usize, &Scaling)| {
            Lens::fit(&part, view, scaling.clone(), options.equal_weight)
        };
        let lenses = scalings.iter().enumerate().map(lens).collect::<Result<Vec<_>>>()?;
        let sweep = Arc::new(Sweep::new(part, lenses, options.latent));
        let mut quiet = |_: &super::Iteration| ControlFlow::Continue(());
        let (_, v, _) =
            Work::new(self, sweep.clone(), stop, &mut quiet, Clock::new().start).once(options, 1)?;
        stop.check()?;
        neighbours::explore(&sweep, options, &v, &self.watch.within(stop))
    }
}
