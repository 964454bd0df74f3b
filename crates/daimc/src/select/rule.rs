//! The rule that turns the results of the resamples into a recommendation.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Candidate, Estimate, Selection};
use crate::Significance;

/// The results of all resamples for one number of clusters.
pub(super) struct Records {
    pub clusters: usize,
    /// Adjusted Rand index of each pair of resamples.
    pub agreement: Vec<Vec<f64>>,
    /// The explained variance of each resample.
    pub explained: Vec<Option<f64>>,
}

/// The number of bootstrap samples of the resamples.
const BOOTSTRAPS: usize = 1000;

impl Records {
    /// The median agreement of the pairs among some of the resamples, excluding pairs of a resample with itself.
    fn stability(&self, of: &[usize]) -> f64 {
        let pairs = of.iter().enumerate().flat_map(|(n, &i)| of[..n].iter().map(move |&j| (i, j)));
        median(pairs.filter(|(i, j)| i != j).map(|(i, j)| self.agreement[i][j]).collect()).unwrap_or(0.0)
    }

    /// The median explained variance of some of the resamples.
    fn explained(&self, of: &[usize]) -> Option<f64> {
        median(of.iter().filter_map(|&i| self.explained[i]).collect())
    }
}

/// The median, which unlike the mean is robust against a failed fit.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { 0.5 * (values[middle - 1] + upper) })
}

/// Scores within this share of the best are considered equal to it.
const TOLERANCE: f64 = 0.1;

/// The same if stability alone decides, which falls only a little if one of several clusters is split at random.
const TOLERANCE_OF_STABILITY: f64 = 0.05;

/// The scores of all numbers of clusters on some of the resamples, and the index of the recommended one: the smallest of those
/// whose score is close to the best. If no clusters explain variance, or nothing could be hidden, stability decides; because few
/// clusters are always rather stable, the largest such number is then recommended.
fn decide(records: &[Records], of: &[usize]) -> (Vec<f64>, usize) {
    let explained: Vec<Option<f64>> = records.iter().map(|record| record.explained(of)).collect();
    let any = explained.iter().flatten().any(|&share| share > 0.0);
    let score = |(record, explained): (&Records, Option<f64>)| {
        record.stability(of).max(0.0) * if any { explained.unwrap_or(0.0).max(0.0) } else { 1.0 }
    };
    let scores: Vec<f64> = records.iter().zip(explained).map(score).collect();
    let best = scores.iter().copied().fold(0.0, f64::max);
    let tolerance = if any { TOLERANCE } else { TOLERANCE_OF_STABILITY };
    let good = |score: &f64| *score >= (1.0 - tolerance) * best;
    let chosen = if any { scores.iter().position(good) } else { scores.iter().rposition(good) };
    (scores, chosen.unwrap_or(0))
}

/// The standard deviation of values.
fn deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    (values.map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// The recommendation and the results behind it.
pub(super) fn recommend(records: &[Records], seed: u64) -> Selection {
    let resamples = records[0].agreement.len();
    let all: Vec<usize> = (0..resamples).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let draws: Vec<Vec<usize>> = (0..BOOTSTRAPS)
        .map(|_| (0..resamples).map(|_| rng.random_range(0..resamples)).collect::<Vec<_>>())
        // A single resample has no pairs.
        .filter(|draw| draw.iter().any(|i| *i != draw[0]))
        .collect();
    let drawn: Vec<(Vec<f64>, usize)> = draws.iter().map(|draw| decide(records, draw)).collect();
    let error = |k: usize| deviation(drawn.iter().map(|(scores, _)| scores[k]));
    let (found, chosen) = decide(records, &all);
    let vote = |k: usize| drawn.iter().filter(|(_, chosen)| *chosen == k).count() as f64;
    let votes: Vec<f64> = (0..records.len()).map(|k| vote(k) / drawn.len() as f64).collect();
    let candidates: Vec<Candidate> = records
        .iter()
        .enumerate()
        .map(|(k, record)| Candidate {
            clusters: record.clusters,
            stability: Estimate {
                value: record.stability(&all),
                error: deviation(draws.iter().map(|draw| record.stability(draw))),
            },
            explained: record.explained(&all).map(|value| Estimate {
                value,
                error: deviation(draws.iter().filter_map(|draw| record.explained(draw))),
            }),
            score: Estimate { value: found[k], error: error(k) },
            votes: votes[k],
        })
        .collect();
    let reason = reason(&candidates, chosen);
    Selection {
        recommended: candidates[chosen].clusters,
        confidence: votes[chosen],
        significance: None,
        reason,
        resamples,
        interrupted: false,
        candidates,
    }
}

/// The recommendation, or a single cluster if the recommended clusters are no clearer than chance.
pub(super) fn against_chance(mut selection: Selection, found: Option<Significance>) -> Selection {
    selection.significance = found;
    if let Some(found) = found.filter(|found| !found.is_clear()) {
        selection.reason = format!(
            "nothing to separate: the best number of those tried is {}, but its clusters are no clearer than chance ({})",
            selection.recommended,
            found.text()
        );
        (selection.recommended, selection.confidence) = (1, f64::NAN);
    }
    selection
}

fn reason(candidates: &[Candidate], chosen: usize) -> String {
    let Candidate { clusters, stability, explained, .. } = &candidates[chosen];
    let stable = format!("resamples agree on the {clusters} clusters by {:.2}", stability.value);
    let clear = |share: Estimate| share.value > 2.0 * share.error;
    let useful = candidates.iter().any(|other| other.explained.is_some_and(clear));
    let last = chosen + 1 == candidates.len() && candidates.len() > 1;
    let why = if last {
        "it is the largest number tried, and the best may be larger: try more"
    } else {
        "more clusters do not raise the product of the two by more than a tenth"
    };
    match explained {
        Some(share) if useful => format!(
            "{stable} (adjusted Rand index), and the clusters predict {:.1} % of the variance of hidden rows; {why}",
            100.0 * share.value
        ),
        Some(_) => format!(
            "{stable} (adjusted Rand index), but no number of clusters predicts hidden rows clearly better than their mean: there may be \
             no clusters that the views share"
        ),
        None => format!(
            "{stable} (adjusted Rand index); no instance is seen in two views, so that stability alone decides: \
             it is the largest number that is about as stable as any"
        ),
    }
}
