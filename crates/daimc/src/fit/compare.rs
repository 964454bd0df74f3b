//! The choice between two scalings. The values of a view do not show whether features with more variance are also more
//! informative. The fit therefore clusters a sample with each of the two scalings, and compares how well neighbours predict the
//! clusters ([`routes`]).

use std::sync::Arc;

use super::Daimc;
use super::explore::{self, Explored};
use super::plan::NeighbourPlan;
use crate::options::{Neighbours, Options};
use crate::routes::{self, Route};
use daimc_core::prepared::Prepared;
use daimc_core::scale::{Alternatives, Observed};
use daimc_core::scan::Scan;
use daimc_core::source::Buffer;
use daimc_core::subset::Subset;
use daimc_core::watch::Stage;
use daimc_core::{Error, Result, Scaling, Schema};
use daimc_graph::neighbours::Nearest;

/// The minimum advantage of the less likely scaling.
const MARGIN: f64 = 0.01;

impl Daimc {
    /// A scaling for each view, without its weight, out of those that apply to it.
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
        // If one view has features in different units, all views are scaled by feature unless the comparison says otherwise.
        let likely = compared().any(|own| !own.alike);
        let nothing = clusters < 2 || clusters >= scan.instances() || latent != clusters;
        if compared().next().is_none() || !self.compares || nothing {
            return Ok(all(likely));
        }
        self.watch.begin(Stage::Scaling);
        let [score, other] = match self.compare(scan, &all(likely), &all(!likely)) {
            // The fit itself reports that it was stopped.
            Err(Error::Interrupted) => return Ok(all(likely)),
            scores => scores?,
        };
        let changed = other > score + MARGIN;
        let mut chosen = all(likely != changed);
        for (own, scaling) in alternatives.iter().zip(&mut chosen) {
            let Some(by_feature) = &own.by_feature else { continue };
            let rejected = if scaling.scale == own.plain.scale { by_feature } else { &own.plain }.scale;
            let (own, other) = if changed { (other, score) } else { (score, other) };
            let close = if other > own { ", too small a difference" } else { "" };
            scaling.reason =
                format!("score {own:.2}, preferred to {rejected} with {other:.2}{close}; {}", scaling.reason);
        }
        Ok(chosen)
    }

    /// The same fit, with the chosen scaling for every view.
    pub(crate) fn resolved(&self, given: &Scan<'_>) -> Result<Self> {
        let observed = self.observe(given)?;
        let prepared = Prepared::observed(given.shared_source(), &observed)?;
        let scalings = self.scalings(&given.with_source(Arc::new(prepared)), &observed)?;
        Ok(self.scaled_by(given.schema(), &scalings))
    }

    /// The same fit, with every view scaled by the method of its given scaling.
    pub(super) fn scaled_by(&self, schema: &Schema, scalings: &[Scaling]) -> Self {
        let views = scalings.iter().enumerate();
        let scales = views.map(|(view, own)| (schema.view_name(view).to_string(), own.scale));
        let mut fit = self.clone();
        fit.options.view_scales = scales.collect();
        fit
    }

    /// The scores of the clusters of two scalings: how well neighbours predict them.
    fn compare(&self, scan: &Scan<'_>, first: &[Scaling], second: &[Scaling]) -> Result<[f64; 2]> {
        let mut fit = self.in_short(self.options.seed);
        // The scaling must not depend on whether the fit itself uses neighbourhoods.
        fit.options.neighbours = Neighbours::Auto;
        let chosen = self.sample(scan);
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

    /// Fits the sample with these scalings and finds clusters by all routes.
    fn try_out(&self, part: &Subset<'_>, scalings: &[Scaling], scan: &Scan<'_>) -> Result<Explored> {
        let stop = scan.stop();
        let (sweep, v) = self.latent_of(&Scan::new(part, stop), scalings)?;
        let plan = NeighbourPlan::new(sweep.scan.schema(), &self.options);
        explore::explore(&sweep, plan, &self.options, &v, &self.watch.within(stop))
    }
}
