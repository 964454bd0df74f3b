//! The choice between scalings. The values of a view do not show which features are informative. The fit therefore clusters a sample
//! with each candidate, and measures how well the neighbours of instances in single views predict the clusters
//! ([`Predicted`]): neighbours in every candidate scaling, so that none is judged by itself. It takes the candidate with the best
//! prediction if it is clearly better than the likeliest one: by more than [`MARGIN`] and by more than twice its standard error.
//!
//! Sample and starts do not depend on the seed of the fit.

use std::sync::Arc;

use super::Daimc;
use super::explore;
use super::plan::NeighbourPlan;
use crate::estimate::compared;
use crate::options::{Neighbours, Options};
use crate::routes::Predicted;
use daimc_core::prepared::Prepared;
use daimc_core::scale::{Observed, assignments};
use daimc_core::scan::Scan;
use daimc_core::source::Buffer;
use daimc_core::subset::Subset;
use daimc_core::text::list;
use daimc_core::watch::Stage;
use daimc_core::{Error, Result, Scale, Scaling, Schema};
use daimc_graph::neighbours::Nearest;

/// The least advantage of a scaling over the likeliest one, as normalised mutual information.
const MARGIN: f64 = 0.02;

impl Daimc {
    /// A scaling for each view, without its weight, out of those that apply to it.
    pub(super) fn scalings(&self, scan: &Scan<'_>, observed: &[Observed]) -> Result<Vec<Scaling>> {
        let Options { clusters, latent, .. } = self.options;
        let mut candidates = assignments(observed);
        let trivial = clusters < 2 || clusters >= scan.instances() || latent != clusters;
        if candidates.len() == 1 || !self.compares || trivial {
            return Ok(candidates.swap_remove(0));
        }
        self.watch.begin(Stage::Scaling);
        let Comparison { scores, best, clearly } = match self.compare(scan, &candidates) {
            // The fit itself reports that it was stopped.
            Err(Error::Interrupted) => return Ok(candidates.swap_remove(0)),
            compared => compared?,
        };
        let taken = if clearly { best } else { 0 };
        let mut chosen = candidates[taken].clone();
        for (view, scaling) in chosen.iter_mut().enumerate() {
            // The best score of each of the view's scalings.
            let mut known: Vec<(Scale, f64)> = Vec::new();
            for (candidate, score) in candidates.iter().zip(&scores) {
                let scale = candidate[view].scale;
                match known.iter_mut().find(|(other, _)| *other == scale) {
                    Some((_, known)) => *known = known.max(*score),
                    None => known.push((scale, *score)),
                }
            }
            if known.len() == 1 {
                continue;
            }
            let own = scores[taken];
            let others = known.into_iter().filter(|(scale, _)| *scale != scaling.scale);
            let others = list(others.map(|(scale, score)| format!("{score:.2} with {scale}")));
            let close = if best == taken { "" } else { ", too small a difference" };
            scaling.reason = format!(
                "neighbours predict the clusters with NMI {own:.2}, {others}{close}; {}",
                scaling.reason
            );
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

    /// Compares the clusters that fits to a sample find with each candidate.
    fn compare(&self, scan: &Scan<'_>, candidates: &[Vec<Scaling>]) -> Result<Comparison> {
        let mut fit = self.in_short(0);
        // The scaling must not depend on whether the fit itself uses neighbourhoods.
        fit.options.neighbours = Neighbours::Auto;
        let clusters = fit.options.clusters;
        let chosen = fit.sample(scan, compared(clusters));
        let mut buffers: Vec<Buffer> = candidates[0].iter().map(|_| Buffer::default()).collect();
        let part = Subset::pick(scan, &chosen, &mut buffers)?;
        let tried = candidates.iter().map(|scalings| fit.try_out(&part, scalings, scan));
        let tried = tried.collect::<Result<Vec<Tried>>>()?;
        // The neighbours in each view, once for each of its scalings.
        let of_view = |view: usize| {
            let scale = |at: usize| candidates[at][view].scale;
            let first = |at: &usize| (0..*at).all(|before| scale(before) != scale(*at));
            (0..candidates.len()).filter(first).filter_map(|at| tried[at].nearest.get(view)).collect()
        };
        let views: Vec<Vec<&Nearest>> = (0..candidates[0].len()).map(of_view).collect();
        let predicted: Vec<Predicted> =
            tried.iter().map(|tried| Predicted::new(&tried.labels, clusters, &views)).collect();
        let scores = predicted.iter().map(|own| own.information(|_| true)).collect::<Result<Vec<f64>>>()?;
        let best = (1..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best });
        let clearly = predicted[best].is_clearly_above(&predicted[0], MARGIN, chosen.len())?;
        Ok(Comparison { scores, best, clearly })
    }

    /// Fits the sample with these scalings and finds clusters by all routes.
    fn try_out(&self, part: &Subset<'_>, scalings: &[Scaling], scan: &Scan<'_>) -> Result<Tried> {
        let stop = scan.stop();
        let (sweep, v) = self.latent_of(&Scan::new(part, stop), scalings)?;
        // Without the fit to eigenvectors, which doubles the time and did not improve the choice (14 real sets, 7 planted families).
        let plan = NeighbourPlan {
            ways: Neighbours::Refine,
            ..NeighbourPlan::new(sweep.scan.schema(), &self.options)
        };
        let explored = explore::explore(&sweep, plan, &self.options, &v, &self.watch.within(stop))?;
        // Without a clustering, all are in one cluster, which says nothing.
        let none = || vec![0; sweep.scan.instances()];
        let labels = explored.voted.map_or_else(none, |voted| voted.labels);
        Ok(Tried { labels, nearest: explored.nearest })
    }
}

/// What the fits to a sample with each candidate say of them.
struct Comparison {
    /// How well neighbours predict the clusters of each candidate.
    scores: Vec<f64>,
    /// The candidate with the highest score.
    best: usize,
    /// Whether it is clearly better than the first.
    clearly: bool,
}

/// The clusters of a sample, and its neighbours in each view.
struct Tried {
    labels: Vec<usize>,
    nearest: Vec<Nearest>,
}
