//! Several ways from the same rows to clusters, judged without labels and put together by a vote.
//!
//! A way is judged by the neighbours of instances in single views, which no way was fitted to reproduce: an instance's
//! cluster is predicted by the cluster of most of its nearest others in one view, itself left out. The score is the mutual
//! information of clusters and predictions in units of `ln K`, the mean over the views. Clusters that are there by chance
//! are not predicted, and a cluster that holds nearly everybody is predicted but says nothing: both score low.
//!
//! Ways vote with a weight that falls by e with each [`PRECISION`] of the score, so that a difference that means nothing
//! decides nothing.

use crate::options::Neighbours;
use daimc_core::metrics::{Contingency, Normalisation, matching, nmi};
use daimc_core::{Error, Result};
use daimc_graph::neighbours::Nearest;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Random halves for a standard error.
const HALVES: usize = 32;

/// Instances on which two clusterings are compared, at most about.
const JUDGED: usize = 20_000;

/// The least advantage of a clustering over the one that is kept otherwise, in standard errors.
const ERRORS: f64 = 2.0;

/// About the difference of two scores that can be chance.
const PRECISION: f64 = 0.02;

/// Clusters, and the way that they were found.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// What it makes of neighbourhoods.
    pub by: Neighbours,
    pub labels: Vec<usize>,
    pub confidence: Vec<f64>,
}

/// Some instances that have neighbours in a graph, their clusters, and what their neighbours predict: each votes for its cluster with
/// the weight of its rank, which counts from 1.
fn predicted(
    labels: &[usize],
    clusters: usize,
    graph: &Nearest,
    weight: impl Fn(f64) -> f64,
    every: usize,
) -> [Vec<usize>; 3] {
    let mut votes = vec![0.0; clusters];
    let [mut shown, mut known, mut winners] = [Vec::new(), Vec::new(), Vec::new()];
    for i in (0..labels.len()).step_by(every) {
        votes.fill(0.0);
        graph.of(i).zip(1..).for_each(|((other, _), rank)| votes[labels[other]] += weight(f64::from(rank)));
        let most = votes.iter().copied().fold(0.0, f64::max);
        // Of clusters with equal votes, that of the nearest instance.
        if let Some(winner) = graph.of(i).map(|(other, _)| labels[other]).find(|&label| votes[label] == most)
        {
            shown.push(i);
            known.push(labels[i]);
            winners.push(winner);
        }
    }
    [shown, known, winners]
}

/// How well the neighbours in each of these graphs predict the clusters, from 0 to 1: the mean over the graphs in which instances
/// have neighbours.
pub(crate) fn score(labels: &[usize], clusters: usize, graphs: &[&Nearest]) -> Result<f64> {
    let mut scores = Vec::with_capacity(graphs.len());
    for graph in graphs {
        let [_, known, predicted] = predicted(labels, clusters, graph, |_| 1.0, 1);
        if !known.is_empty() {
            scores.push(Contingency::new(&known, &predicted)?.mutual_information());
        }
    }
    let unit = (clusters.max(2) as f64).ln() * scores.len().max(1) as f64;
    Ok(scores.iter().sum::<f64>() / unit)
}

/// Clusters and their predictions by neighbours in single views, each view in several scalings. A neighbour votes with a weight of
/// 1 / rank, so that members of a cluster with fewer instances than there are neighbours can be predicted, too.
pub(crate) struct Predicted {
    /// For each view and each graph, the instances that have neighbours, their clusters, and the predictions.
    views: Vec<Vec<[Vec<usize>; 3]>>,
}

impl Predicted {
    /// For each view, its graphs.
    pub fn new(labels: &[usize], clusters: usize, views: &[Vec<&Nearest>]) -> Self {
        let every = labels.len().div_ceil(JUDGED).max(1);
        let of = |graph: &&Nearest| predicted(labels, clusters, graph, |rank| 1.0 / rank, every);
        Self { views: views.iter().map(|graphs| graphs.iter().map(of).collect()).collect() }
    }

    /// How well neighbours predict the clusters of some instances, as normalised mutual information: the mean over the graphs of a
    /// view, then over the views. Unlike [`score`], it does not prefer clusters of equal size.
    pub fn information(&self, keep: impl Fn(usize) -> bool) -> Result<f64> {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let mut means = Vec::with_capacity(self.views.len());
        for graphs in &self.views {
            let mut of_view = Vec::with_capacity(graphs.len());
            for [shown, known, predicted] in graphs {
                let kept = |all: &[usize]| -> Vec<usize> {
                    shown.iter().zip(all).filter(|(i, _)| keep(**i)).map(|(_, label)| *label).collect()
                };
                let (known, predicted) = (kept(known), kept(predicted));
                if !known.is_empty() {
                    of_view.push(nmi(&known, &predicted, Normalisation::Arithmetic)?);
                }
            }
            if !of_view.is_empty() {
                means.push(mean(&of_view));
            }
        }
        Ok(mean(&means))
    }

    /// Whether these clusters are better predicted than others of the same instances by more than this margin, and by more than chance.
    pub fn is_clearly_above(&self, other: &Self, margin: f64, instances: usize) -> Result<bool> {
        let (advantage, error) = self.advantage(other, instances)?;
        Ok(advantage > margin.max(ERRORS * error))
    }

    /// How much better these clusters are predicted than others of the same instances, and the standard error of the difference, from
    /// random halves of the instances.
    fn advantage(&self, other: &Self, instances: usize) -> Result<(f64, f64)> {
        let difference = |keep: &dyn Fn(usize) -> bool| -> Result<f64> {
            Ok(self.information(keep)? - other.information(keep)?)
        };
        let whole = difference(&|_| true)?;
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut half: Vec<bool> = (0..instances).map(|i| i % 2 == 0).collect();
        let mut squares = 0.0;
        for _ in 0..HALVES {
            half.shuffle(&mut rng);
            squares += (difference(&|i| half[i])? - whole).powi(2);
        }
        Ok((whole, (squares / HALVES as f64).sqrt()))
    }
}

/// How far neighbours agree on the clusters: the mutual information of an instance's cluster and that of one of its neighbours,
/// relative to the entropy of the cluster, the mean over the views. It says less of who is in the wrong cluster than [`score`] does,
/// and is more sensitive to whether there are clusters at all.
pub(crate) fn agreement(labels: &[usize], clusters: usize, graphs: &[Nearest]) -> f64 {
    let mut total = 0.0;
    for graph in graphs {
        let mut pairs = vec![0.0; clusters * clusters];
        let mut count = 0.0_f64;
        for (i, label) in labels.iter().enumerate() {
            graph.of(i).for_each(|(other, _)| {
                pairs[label * clusters + labels[other]] += 1.0;
                count += 1.0;
            });
        }
        let of_own = |k: usize| (0..clusters).map(|l| pairs[k * clusters + l]).sum::<f64>();
        let of_other = |l: usize| (0..clusters).map(|k| pairs[k * clusters + l]).sum::<f64>();
        let (own, other): (Vec<f64>, Vec<f64>) = (0..clusters).map(|k| (of_own(k), of_other(k))).unzip();
        let term = |(at, pairs): (usize, &f64)| {
            let by_chance = own[at / clusters] * other[at % clusters] / count;
            if *pairs > 0.0 { pairs * (pairs / by_chance).ln() } else { 0.0 }
        };
        let entropy: f64 = own.iter().filter(|own| **own > 0.0).map(|own| own * (count / own).ln()).sum();
        if entropy > 0.0 {
            total += pairs.iter().enumerate().map(term).sum::<f64>() / entropy;
        }
    }
    total / graphs.len().max(1) as f64
}

/// The weight of each score relative to the best, whose weight is 1.
pub(crate) fn weights(scores: &[f64]) -> Vec<f64> {
    let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter().map(|score| ((score - best) / PRECISION).exp()).collect()
}

/// The clusters that the routes find together: those of the heaviest, to which the clusters of the others are matched, and
/// each instance in the one that has most weight for it. The confidence of an instance is what those who agree have, by
/// weight.
pub(crate) fn vote(routes: &[Route], weights: &[f64], clusters: usize) -> Result<(Vec<usize>, Vec<f64>)> {
    let heavier = |best: usize, other: usize| if weights[other] > weights[best] { other } else { best };
    let leader = (1..routes.len()).fold(0, heavier);
    let Some(reference) = routes.get(leader) else {
        return Err(Error::EmptyInput { what: "routes".into() });
    };
    let total: f64 = weights.iter().sum();
    let matched = |route: &Route| -> Result<Vec<usize>> {
        let mut names: Vec<Option<usize>> = vec![None; clusters];
        for (own, other) in matching(&reference.labels, &route.labels)? {
            names[other] = Some(own);
        }
        // Clusters that match none keep what is left.
        let mut left = (0..clusters).filter(|k| !names.contains(&Some(*k))).collect::<Vec<_>>().into_iter();
        Ok(names.iter().map(|name| name.or_else(|| left.next()).unwrap_or(0)).collect())
    };
    let names = routes.iter().map(matched).collect::<Result<Vec<_>>>()?;
    let (mut labels, mut confidence) = (reference.labels.clone(), reference.confidence.clone());
    let mut share = vec![0.0; clusters];
    for i in 0..labels.len() {
        share.fill(0.0);
        for ((route, names), weight) in routes.iter().zip(&names).zip(weights) {
            share[names[route.labels[i]]] += weight;
        }
        // The leader's own, unless another has more.
        let most = share.iter().copied().fold(share[labels[i]], f64::max);
        if share[labels[i]] < most {
            labels[i] = share.iter().position(|own| *own == most).unwrap_or(labels[i]);
        }
        let agreed = routes.iter().zip(&names).zip(weights);
        let agreed = agreed.filter(|((route, names), _)| names[route.labels[i]] == labels[i]);
        confidence[i] = agreed.map(|((route, _), weight)| weight * route.confidence[i]).sum::<f64>() / total;
    }
    Ok((labels, confidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;
    use daimc_core::Stop;
    use daimc_core::scaled_view::ScaledView;
    use daimc_core::scaling::{Scale, Scaling};
    use daimc_core::scan::Scan;
    use daimc_core::{View, Views};
    use daimc_graph::neighbours::nearest_in;

    fn graphs(views: Vec<View<'static>>) -> Vec<Nearest> {
        let source = Views::new(views).unwrap();
        let scan = Scan::new(&source, &Stop::default());
        let of = |view| {
            let scaled_view =
                ScaledView::fit(&scan, view, Scaling::fit(&scan, view, Scale::None).unwrap(), true).unwrap();
            nearest_in(&scan, view, &scaled_view, 5, 0).unwrap()
        };
        (0..source.len()).map(of).collect()
    }

    #[test]
    fn the_score_is_the_information_that_neighbours_have_of_the_clusters() {
        let data = Synthetic::new(200, 4).noise(1.0).seed(5);
        let present: Vec<bool> = (0..200).map(|i| i % 3 > 0).collect();
        let own = graphs(vec![
            data.dense::<f64>("a", 6).unwrap(),
            data.dense::<f64>("b", 8).unwrap().mask(&present).unwrap(),
        ]);
        let truth = data.truth();
        let literal = |labels: &[usize]| {
            let of = |graph: &Nearest| {
                let asked: Vec<usize> = (0..200).filter(|&i| graph.of(i).next().is_some()).collect();
                let predict = |&i: &usize| {
                    let others: Vec<usize> = graph.of(i).map(|(other, _)| labels[other]).collect();
                    let votes = |label: &usize| others.iter().filter(|other| *other == label).count();
                    let most = others.iter().map(votes).max().unwrap();
                    *others.iter().find(|label| votes(label) == most).unwrap()
                };
                let predicted: Vec<usize> = asked.iter().map(predict).collect();
                let known: Vec<usize> = asked.iter().map(|&i| labels[i]).collect();
                // NMI × the larger entropy, which that of equal partitions is.
                let larger =
                    |labels: &[usize]| Contingency::new(labels, labels).unwrap().mutual_information();
                nmi(&known, &predicted, Normalisation::Max).unwrap() * larger(&known).max(larger(&predicted))
            };
            own.iter().map(of).sum::<f64>() / 2.0 / 4.0_f64.ln()
        };
        let all: Vec<&Nearest> = own.iter().collect();
        let strange: Vec<usize> = (0..200).map(|i| i * i / 7 % 4).collect();
        let one: Vec<usize> = (0..200).map(|i| usize::from(i == 0)).collect();
        for labels in [&truth, &strange, &one] {
            assert!((score(labels, 4, &all).unwrap() - literal(labels)).abs() < 1e-12);
        }
        let of = |labels: &[usize]| score(labels, 4, &all).unwrap();
        assert!(of(&truth) > 0.5 && of(&strange) < 0.1 && of(&one) < 0.02);
        assert_eq!(score(&truth, 4, &[]).unwrap(), 0.0);
    }

    #[test]
    fn predictions_are_averaged_over_scalings_and_then_over_views() {
        let data = Synthetic::new(200, 4).noise(1.0).seed(5);
        let own = graphs(vec![data.dense::<f64>("a", 6).unwrap(), data.dense::<f64>("b", 8).unwrap()]);
        let of = |labels: &[usize], views: &[Vec<&Nearest>]| {
            Predicted::new(labels, 4, views).information(|_| true).unwrap()
        };
        let truth = data.truth();
        let single = |graph: &Nearest| {
            let asked: Vec<usize> = (0..200).filter(|&i| graph.of(i).next().is_some()).collect();
            let predict = |&i: &usize| {
                let votes = |label: usize| {
                    let own = graph.of(i).enumerate().filter(|(_, (other, _))| truth[*other] == label);
                    own.map(|(rank, _)| 1.0 / (rank + 1) as f64).sum::<f64>()
                };
                (0..4).max_by(|a, b| votes(*a).total_cmp(&votes(*b))).unwrap()
            };
            let predicted: Vec<usize> = asked.iter().map(predict).collect();
            let known: Vec<usize> = asked.iter().map(|&i| truth[i]).collect();
            nmi(&known, &predicted, Normalisation::Arithmetic).unwrap()
        };
        let (a, b) = (single(&own[0]), single(&own[1]));
        let found = of(&truth, &[vec![&own[0], &own[1]], vec![&own[1]]]);
        assert!((found - f64::midpoint(f64::midpoint(a, b), b)).abs() < 1e-12, "{found} {a} {b}");
        let strange: Vec<usize> = (0..200).map(|i| i * i / 7 % 4).collect();
        assert!(of(&truth, &[vec![&own[0]]]) > 0.5 && of(&strange, &[vec![&own[0]]]) < 0.1);
        assert_eq!((of(&truth, &[]), of(&truth, &[vec![], vec![]])), (0.0, 0.0));
    }

    #[test]
    fn the_error_of_an_advantage_is_that_of_repeated_data() {
        // Two clusterings of the truth, each wrong about other instances: neither is better.
        let advantage = |seed: u64| {
            let data = Synthetic::new(300, 3).noise(0.8).seed(seed);
            let own = graphs(vec![data.dense::<f64>("a", 6).unwrap()]);
            let truth = data.truth();
            let blurred = |rest: usize| -> Vec<usize> {
                let other = |i: usize| (i as u64 * 7919 + seed * 31) as usize % 6;
                (0..300).map(|i| if other(i) == rest { (truth[i] + 1) % 3 } else { truth[i] }).collect()
            };
            let of = |labels: &[usize]| Predicted::new(labels, 3, &[vec![&own[0]]]);
            of(&blurred(0)).advantage(&of(&blurred(1)), 300).unwrap()
        };
        let found: Vec<(f64, f64)> = (0..40).map(advantage).collect();
        let spread = (found.iter().map(|(by, _)| by * by).sum::<f64>() / 40.0).sqrt();
        let error = found.iter().map(|(_, error)| error).sum::<f64>() / 40.0;
        assert!((0.6..1.7).contains(&(error / spread)), "{error} {spread}");
    }

    #[test]
    fn agreement_is_the_information_that_one_neighbour_has() {
        let data = Synthetic::new(120, 3).noise(1.0).seed(5);
        let own = graphs(vec![data.dense::<f64>("a", 6).unwrap()]);
        let truth = data.truth();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for i in 0..120 {
            own[0].of(i).for_each(|(other, _)| {
                first.push(truth[i]);
                second.push(truth[other]);
            });
        }
        let information = |a: &[usize], b: &[usize]| Contingency::new(a, b).unwrap().mutual_information();
        let expected = information(&first, &second) / information(&first, &first);
        assert!((agreement(&truth, 3, &own) - expected).abs() < 1e-12);
        assert_eq!((agreement(&truth, 3, &[]), agreement(&[0; 120], 1, &own)), (0.0, 0.0));
    }

    fn route(labels: &[usize]) -> Route {
        Route { by: Neighbours::Off, labels: labels.to_vec(), confidence: vec![1.0; labels.len()] }
    }

    #[test]
    fn routes_vote_under_one_name_for_a_cluster() {
        // The same clusters under three names, with one instance that only the heaviest puts into another.
        let routes = [route(&[0, 0, 1, 1, 1, 2]), route(&[2, 2, 0, 0, 1, 1]), route(&[1, 1, 2, 2, 0, 0])];
        let (labels, confidence) = vote(&routes, &[1.0, 0.8, 0.8], 3).unwrap();
        assert_eq!(labels, [0, 0, 1, 1, 2, 2]);
        assert!((confidence[0] - 1.0).abs() < 1e-12 && (confidence[4] - 1.6 / 2.6).abs() < 1e-12);
        // It keeps its way where it weighs more than all others together.
        assert_eq!(vote(&routes, &[1.0, 0.3, 0.3], 3).unwrap().0, [0, 0, 1, 1, 1, 2]);
        // An empty cluster, and a single route.
        assert_eq!(vote(&routes[..1], &[1.0], 4).unwrap().0, routes[0].labels);
        assert!(vote(&[], &[], 3).is_err());
    }

    #[test]
    fn a_difference_that_can_be_chance_hardly_weighs() {
        let weights = weights(&[0.5, 0.499, 0.3]);
        assert!((weights[0] - 1.0).abs() < 1e-12 && weights[1] > 0.9 && weights[2] < 1e-4);
    }
}
