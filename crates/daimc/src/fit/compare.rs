//! Which scaling: no rule that looks at the values of a view alone can know whether features that vary more also say more.
//! So the clusters that each of two scalings leads to are compared, on a sample of the instances, by how well neighbours
//! predict them ([`routes`]).

use std::sync::Arc;

use super::Daimc;
use super::explore::{self, Explored};
use super::plan::Plan;
use crate::neighbours::Nearest;
use crate::options::{Neighbours, Options};
use crate::prepared::Prepared;
use crate::routes::{self, Route};
use crate::scale::{Alternatives, Observed, Scaling};
use crate::scan::Scan;
use crate::source::Buffer;
use crate::subset::Subset;
use crate::watch::Stage;
use crate::{Error, Result, Schema};

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
        self.watch.begin(Stage::Scaling);
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
        let prepared = Prepared::observed(given.shared_source(), &observed)?;
        let scalings = self.scalings(&given.with_source(Arc::new(prepared)), &observed)?;
        Ok(self.scaled_by(given.schema(), &scalings))
    }

    /// The same fit, every view with a scaling of this kind.
    pub(super) fn scaled_by(&self, schema: &Schema, scalings: &[Scaling]) -> Self {
        let views = scalings.iter().enumerate();
        let scales = views.map(|(view, own)| (schema.view_name(view).to_string(), own.scale));
        let mut fit = self.clone();
        fit.options.view_scales = scales.collect();
        fit
    }

    /// How well neighbours predict the clusters that each of two scalings leads to.
    fn compare(&self, scan: &Scan<'_>, first: &[Scaling], second: &[Scaling]) -> Result<[f64; 2]> {
        let mut fit = self.in_short(self.options.seed);
        // Whatever the fit itself makes of neighbourhoods: its scaling does not hang on that.
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

    /// Fits the sample with these scalings and finds clusters in every way.
    fn try_out(&self, part: &Subset<'_>, scalings: &[Scaling], scan: &Scan<'_>) -> Result<Explored> {
        let stop = scan.stop();
        let (sweep, v) = self.latent_of(Scan::new(part, stop), scalings)?;
        let plan = Plan::new(sweep.scan.schema(), &self.options);
        explore::explore(&sweep, plan, &self.options, &v, &self.watch.within(stop))
    }
}
