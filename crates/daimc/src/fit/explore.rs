//! Clusters from the neighbourhoods of instances in single views.
//!
//! V treats each instance separately and ignores them. In every view each instance is linked to its nearest neighbours. The links
//! of a view are weighted by how often its neighbours agree on the clusters of V, so that an uninformative view does no harm. The
//! graphs of the views are fused, and every link is weighted by the similarity of the rows of V: where two clusters are similar
//! in a view, V separates them. Instances that have only views of little weight would have almost no links; links derived from V
//! and from the predictions of the views compensate for this ([`Anchors`]). The leading eigenvectors of this graph give clusters.
//! Each view then predicts these clusters by cross-fitted discriminants. Eigenvectors and predictions reweight the links, twice.
//!
//! The three signals have different weaknesses. V represents what the views share, but not the shapes of clusters. Graphs
//! represent shapes, but link clusters that a single view cannot separate. A linear discriminant of a view finds the features
//! that separate clusters that are already nearly correct. Each of them alone is worse than V weighting the links of the graph.
//! No signal is evaluated on its own output: the agreement of neighbours is measured on clusters that V found without the graph,
//! and a discriminant predicts instances that it was not fitted to. Otherwise small samples with many features would confirm any
//! clusters.
//!
//! All of them prefer clusters of similar size. A mixture that starts from them does not ([`Evidence::mixtures`]); its clusters
//! replace theirs where neighbours predict them clearly better.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Daimc;
use super::plan::NeighbourPlan;
use super::search::nearest;
use crate::missingness::Missingness;
use crate::options::{Neighbours, Options, ViewWeights};
use crate::place::Place;
use crate::routes::{Predicted, Route, score, vote, weights};
use daimc_core::accelerator::Resident;
use daimc_core::scaling::Scale;
use daimc_core::scan::Scan;
use daimc_core::source::Source;
use daimc_core::sweep::Sweep;
use daimc_core::text::list;
use daimc_core::watch::{Stage, Watch};
use daimc_core::{Error, Matrix, Result, View, Views};
use daimc_graph::neighbours::{Anchors, Evidence, Graph, Mixed, Nearest, POWER, SINGLE};

/// The number of times that links are reweighted by predictions of the views.
const ROUNDS: usize = 2;

/// The share of the true neighbours below which a graph is not used.
const LEAST_RECALL: f64 = 0.5;

/// Instances whose neighbours one thread counts at least.
const COUNTED: usize = 4096;

/// How much better neighbours predict the clusters of a mixture, at least, if it replaces others, as normalised mutual information.
const MIXTURE: f64 = 0.1;

/// The least agreement of neighbours that counts as above zero.
const LEAST_TRUST: f64 = 1e-3;

/// How neighbourhoods were used, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Decision {
    /// How they were used; `Auto` stands for the vote.
    pub used: Neighbours,
    /// The reason, in a phrase.
    pub reason: String,
    /// The share of the true neighbours that were found in each view, estimated on a sample; empty if all pairs or none were
    /// compared.
    #[serde(default)]
    pub recall: Vec<f64>,
    /// Whether the clusters are those of a mixture.
    #[serde(default)]
    pub mixture: bool,
}

impl Default for Decision {
    fn default() -> Self {
        Self::without(None)
    }
}

impl Decision {
    /// Neighbourhoods are not used, for this reason or because the options exclude them.
    pub(crate) fn without(refusal: Option<String>) -> Self {
        let reason = refusal.unwrap_or_else(|| "not requested".into());
        Self { used: Neighbours::Off, reason, recall: Vec::new(), mixture: false }
    }
}

/// Clusters found with the help of neighbourhoods.
pub(crate) struct Found {
    pub labels: Vec<usize>,
    pub confidence: Vec<f64>,
    /// The directions in which the rows of each view are longest; `None` for a view without instances.
    pub directions: Vec<Option<Matrix>>,
    /// The fused graph of the views, where a map of it is wanted.
    pub graph: Option<Graph>,
}

impl Route {
    fn new(by: Neighbours, Place { labels, confidence, .. }: Place) -> Self {
        Self { by, labels, confidence }
    }
}

/// The neighbours in all views.
struct Graphs<'a> {
    scan: &'a Scan<'a>,
    options: &'a Options,
    watch: &'a Watch,
    nearest: Vec<Nearest>,
    importance: Vec<f64>,
}

impl<'a> Graphs<'a> {
    fn new(
        sweep: &'a Sweep<'_>,
        options: &'a Options,
        given: Vec<Option<Nearest>>,
        thorough: bool,
        watch: &'a Watch,
    ) -> Result<Self> {
        let nearest = nearest(sweep, options, given, thorough, watch)?;
        let importance =
            sweep.scaled_views.iter().map(|scaled_view| scaled_view.scaling.importance).collect();
        Ok(Self { scan: &sweep.scan, options, watch, nearest, importance })
    }

    /// The V of DAIMC fitted to the leading eigenvectors of the graph of each view.
    fn embed(&self, resident: Option<&dyn Resident<'_>>) -> Result<Matrix> {
        let Options { clusters, seed, .. } = *self.options;
        let (n, source) = (self.scan.instances(), self.scan.source());
        let embedded = self.nearest.iter().enumerate().map(|(view, nearest)| {
            let graph = Graph::of_view(nearest, self.watch)?;
            let rows = graph.spectral(None, clusters, seed, resident, self.watch)?;
            let present: Vec<bool> = (0..n).map(|i| source.is_present(view, i)).collect();
            let (name, features, values) = (source.name(view), rows.columns(), rows.into_values());
            let view = if n > SINGLE {
                View::dense(name, features, values.into_iter().map(|x| x as f32).collect::<Vec<_>>())?
            } else {
                View::dense(name, features, values)?
            };
            view.mask(&present)
        });
        let views = Views::new(embedded.collect::<Result<_>>()?)?;
        let fit = Daimc::from(Options {
            scale: Scale::None,
            view_scales: std::collections::BTreeMap::new(),
            view_weights: ViewWeights::Equal,
            neighbours: Neighbours::Off,
            ..self.options.clone()
        });
        let mut fit = fit.weighed(self.importance.clone());
        fit.watch = self.watch.clone();
        let model = fit.fit_here(&views, |_| std::ops::ControlFlow::Continue(()))?;
        self.watch.check()?;
        Ok(model.latent)
    }

    /// The weight of the neighbours of each rank in each view, from the clusters of V alone.
    fn trust(&self, labels: &[usize]) -> Vec<Vec<f32>> {
        let pairs = self.nearest.iter().zip(&self.importance);
        pairs
            .map(|(nearest, importance)| {
                let of_ranks = trust(nearest, labels, self.options.clusters);
                of_ranks.into_iter().map(|own| (importance * own) as f32).collect()
            })
            .collect()
    }
}

/// The clusterings found with neighbourhoods.
pub(crate) struct Explored {
    /// The clusterings; empty if V alone is to be clustered.
    pub routes: Vec<Route>,
    /// The neighbours in each view, if they were searched for.
    pub nearest: Vec<Nearest>,
    /// The directions in which the rows of each view are longest, if clusterings were found.
    pub directions: Vec<Option<Matrix>>,
    /// The fused graph of the views, where a map of it is wanted.
    pub graph: Option<Graph>,
    /// Why there are no clusterings, or fewer than planned.
    pub refusal: Option<String>,
    /// The clusters of all clusterings together, unless one was requested by name.
    pub voted: Option<Voted>,
}

impl Explored {
    /// No clustering.
    fn without(nearest: Vec<Nearest>, refusal: Option<String>) -> Self {
        Self { routes: Vec::new(), nearest, directions: Vec::new(), graph: None, refusal, voted: None }
    }
}

/// The clusters that several clusterings find together.
pub(crate) struct Voted {
    /// One for each clustering.
    pub scores: Vec<f64>,
    pub labels: Vec<usize>,
    pub confidence: Vec<f64>,
    /// How well neighbours predict the clusters of a mixture and those of the clusterings, if the mixture replaced them.
    pub mixture: Option<[f64; 2]>,
}

/// The clusters of V; with the neighbours in each view, those of a mixture that starts from them, if it is clearly better.
pub(super) fn by_latent(
    sweep: &Sweep<'_>,
    v: Matrix,
    nearest: Option<&[Nearest]>,
    options: &Options,
    watch: &Watch,
) -> Result<Vec<usize>> {
    let routes = [Route::new(Neighbours::Off, Place::by_columns(v, options, &watch.stop)?)];
    let Some(nearest) = nearest else {
        let [plain] = routes;
        return Ok(plain.labels);
    };
    let own = Voted::new(&routes, nearest, options.clusters)?;
    let evidence = Evidence::new(&sweep.scan, &sweep.scaled_views, options.seed, watch)?;
    Ok(own.or_mixture(&routes, &evidence, nearest, options.clusters, |_| true, watch)?.labels)
}

impl Voted {
    /// The vote of the clusterings, weighted by their scores.
    ///
    /// # Errors
    /// If there is no clustering.
    fn new(routes: &[Route], nearest: &[Nearest], clusters: usize) -> Result<Self> {
        let graphs: Vec<&Nearest> = nearest.iter().collect();
        let of = |route: &Route| score(&route.labels, clusters, &graphs);
        let scores = routes.iter().map(of).collect::<Result<Vec<_>>>()?;
        let (labels, confidence) = vote(routes, &weights(&scores), clusters)?;
        Ok(Self { scores, labels, confidence, mixture: None })
    }

    /// The clusters of a mixture instead: of those that start from the vote and from each clustering, the one that neighbours predict
    /// best, if its clusters are allowed, and neighbours predict them clearly better than those of the vote.
    fn or_mixture(
        self,
        routes: &[Route],
        evidence: &Evidence<'_>,
        nearest: &[Nearest],
        clusters: usize,
        allowed: impl Fn(&[usize]) -> bool,
        watch: &Watch,
    ) -> Result<Self> {
        let mut starts: Vec<&[usize]> = vec![&self.labels];
        starts.extend(routes.iter().map(|route| &route.labels[..]).filter(|labels| *labels != self.labels));
        let views: Vec<Vec<&Nearest>> = nearest.iter().map(|own| vec![own]).collect();
        let judged = |labels: &[usize]| {
            let predicted = Predicted::new(labels, clusters, &views);
            Ok::<_, Error>((predicted.information(|_| true)?, predicted))
        };
        let (score, own) = judged(&self.labels)?;
        let mut best: Option<(f64, Predicted, Mixed)> = None;
        for mixed in evidence.mixtures(&starts, clusters, watch)? {
            let (found, predicted) = judged(&mixed.labels)?;
            if best.as_ref().is_none_or(|(known, ..)| found > *known) && allowed(&mixed.labels) {
                best = Some((found, predicted, mixed));
            }
        }
        let Some((found, predicted, mixed)) = best else { return Ok(self) };
        if !predicted.is_clearly_above(&own, MIXTURE, self.labels.len())? {
            return Ok(self);
        }
        let mixture = Some([found, score]);
        Ok(Self { labels: mixed.labels, confidence: mixed.margins, mixture, ..self })
    }
}

/// The clusters from neighbourhoods and V together, if neighbourhoods are used, and the decision.
///
/// # Errors
/// [`Error::Interrupted`](daimc_core::Error::Interrupted) after a request to stop, and an error if rows cannot be read.
pub(crate) fn clusters(
    sweep: &Sweep<'_>,
    plan: NeighbourPlan,
    options: &Options,
    v: &Matrix,
    watch: &Watch,
) -> Result<(Option<Found>, Decision)> {
    let explored = explore(sweep, plan, options, v, watch)?;
    let recall: Vec<f64> = explored.nearest.iter().filter_map(Nearest::recall).collect();
    let mixture = explored.voted.as_ref().and_then(|voted| voted.mixture);
    if mixture.is_none() && explored.routes.iter().all(|route| route.by == Neighbours::Off) {
        return Ok((None, Decision { recall, ..Decision::without(explored.refusal) }));
    }
    let Explored { routes, directions, graph, refusal, voted, .. } = explored;
    let (used, reason, labels, confidence) = match (voted, &routes[..]) {
        (Some(Voted { scores, labels, confidence, mixture }), routes) => {
            let listed = routes.iter().zip(&scores).map(|(route, score)| match route.by {
                Neighbours::Off => format!("V alone {score:.2}"),
                by => format!("{by} {score:.2}"),
            });
            let mut reason = match routes {
                [_] => list(listed),
                _ => format!(
                    "combined {} clusterings, weights by neighbour agreement: {}",
                    routes.len(),
                    list(listed)
                ),
            };
            if let Some([own, others]) = mixture {
                reason = format!(
                    "clusters of a mixture, which neighbours predict with NMI {own:.2}, instead of {others:.2} for {reason}"
                );
            }
            if let Some(refusal) = refusal {
                reason = format!("{reason}; {refusal}");
            }
            (Neighbours::Auto, reason, labels, confidence)
        }
        (None, [route]) => {
            let Route { labels, confidence, by } = route.clone();
            (by, "requested".into(), labels, confidence)
        }
        (None, _) => return Ok((None, Decision { recall, ..Decision::without(refusal) })),
    };
    let mixture = mixture.is_some();
    Ok((Some(Found { labels, confidence, directions, graph }), Decision { used, reason, recall, mixture }))
}

/// Finds the planned clusterings.
///
/// # Errors
/// As [`clusters`].
pub(crate) fn explore(
    sweep: &Sweep<'_>,
    NeighbourPlan { ways, thorough, mut refusal, given }: NeighbourPlan,
    options: &Options,
    v: &Matrix,
    watch: &Watch,
) -> Result<Explored> {
    let (source, scaled_views) = (sweep.scan.source(), &sweep.scaled_views);
    let requested = options.neighbours;
    if ways == Neighbours::Off {
        return Ok(Explored::without(Vec::new(), refusal));
    }
    let mut graphs = Graphs::new(sweep, options, given, thorough, watch)?;
    let lost = graphs.nearest.iter().filter_map(Nearest::recall).fold(1.0, f64::min);
    if lost < LEAST_RECALL {
        let refusal =
            format!("the search found only {:.0} % of the neighbours in one of the views", 100.0 * lost);
        return Ok(Explored::without(graphs.nearest, Some(refusal)));
    }
    // The copy of V is dropped with the place.
    let plain = Route::new(Neighbours::Off, Place::by_columns(v.clone(), options, &watch.stop)?);
    let filled = (0..options.clusters).filter(|cluster| plain.labels.contains(cluster)).count();
    if filled < options.clusters {
        // A graph would separate rows that are equal or nearly equal.
        let refusal = Some(format!("only {filled} of {} clusters of V have instances", options.clusters));
        let routes = vec![plain];
        let voted = Some(Voted::new(&routes, &graphs.nearest, options.clusters)?);
        return Ok(Explored { routes, voted, ..Explored::without(graphs.nearest, refusal) });
    }
    let watch = &watch.begin(Stage::Cut);
    let evidence = Evidence::new(&sweep.scan, scaled_views, options.seed, watch)?;
    let fuse = |graphs: &Graphs<'_>| {
        let trust = graphs.trust(&plain.labels);
        Ok((Graph::fused(source, &graphs.nearest, &trust, watch)?, lack(source, &trust)))
    };
    let (mut routes, mut graph) = (Vec::new(), None);
    if requested == Neighbours::Embed {
        if options.map {
            graph = Some(fuse(&graphs)?.0);
        }
        let place = Place::cluster(graphs.embed(sweep.resident())?, options, &watch.stop)?;
        routes.push(Route::new(Neighbours::Embed, place));
    } else {
        // Before the fused graph is built, so that both are not in memory at once.
        let embedded = (ways == Neighbours::Auto).then(|| graphs.embed(sweep.resident())).transpose()?;
        let (fused, lack) = fuse(&graphs)?;
        graphs.nearest.iter_mut().for_each(Nearest::forget_distances);
        let place = cut(&fused, &lack, &[v], &evidence, (options, sweep.resident()), watch)?;
        routes.push(Route::new(Neighbours::Refine, place));
        if let Some(embedded) = embedded {
            let place = cut(&fused, &lack, &[v, &embedded], &evidence, (options, sweep.resident()), watch)?;
            routes.push(Route::new(Neighbours::Auto, place));
        }
        graph = options.map.then_some(fused);
    }
    let of = |labels: &[usize]| Missingness::of(source.schema(), labels, options.clusters, options.seed);
    let before = of(&plain.labels);
    let found = routes.len();
    routes.retain(|route| !of(&route.labels).exceeds(&before));
    if routes.len() < found {
        let left_out = "clusters of the graph of neighbours that follow which views instances have, where those of V do not, \
                        were left out";
        refusal = Some(refusal.map_or(left_out.into(), |refusal| format!("{refusal}; {left_out}")));
    }
    if requested == Neighbours::Auto || routes.is_empty() {
        routes.insert(0, plain);
    }
    let voted = if requested == Neighbours::Auto {
        let allowed = |labels: &[usize]| !of(labels).exceeds(&before);
        let own = Voted::new(&routes, &graphs.nearest, options.clusters)?;
        Some(own.or_mixture(&routes, &evidence, &graphs.nearest, options.clusters, allowed, watch)?)
    } else {
        None
    };
    let directions = evidence.into_directions();
    Ok(Explored { routes, nearest: graphs.nearest, directions, graph, refusal, voted })
}

/// Cuts the fused graph. Its links are weighted by the given rows, the first of which are V; then, for [`ROUNDS`] rounds, by the
/// eigenvectors of that graph and the views' predictions of its clusters. V and the predictions link instances that have few
/// links.
fn cut(
    fused: &Graph,
    lack: &[f64],
    along: &[&Matrix],
    evidence: &Evidence<'_>,
    (options, resident): (&Options, Option<&dyn Resident<'_>>),
    watch: &Watch,
) -> Result<Place> {
    let Options { clusters, seed, .. } = *options;
    let mut weighted = fused.weighted(along, POWER);
    let mut anchors = Anchors::new(&along[..1], lack)?;
    let mut rows = weighted.spectral(anchors.as_ref(), clusters, seed, resident, watch)?;
    for _ in 0..ROUNDS {
        // Freed before the next eigenvectors are computed, which need most memory.
        drop((weighted, anchors));
        let Place { latent, labels, .. } = Place::cluster(rows, options, &watch.stop)?;
        let predicted = evidence.of(&labels, clusters, watch)?;
        weighted = fused.weighted(&[&latent, &predicted], POWER);
        anchors = Anchors::new(&[along[0], &predicted], lack)?;
        drop((latent, predicted));
        rows = weighted.spectral(anchors.as_ref(), clusters, seed, resident, watch)?;
    }
    drop((weighted, anchors));
    Place::cluster(rows, options, &watch.stop)
}

/// The lack of links of each instance, from 0 to 1: 0 if one of its views has at least half the weight of the best view, and
/// larger the less weight its views have.
fn lack(source: &dyn Source, trust: &[Vec<f32>]) -> Vec<f64> {
    let mean =
        |ranks: &Vec<f32>| ranks.iter().copied().map(f64::from).sum::<f64>() / ranks.len().max(1) as f64;
    let views: Vec<f64> = trust.iter().map(mean).collect();
    let best = views.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let of = |i: usize| {
        let own = views.iter().enumerate().filter(|(view, _)| source.is_present(*view, i));
        let own = own.map(|(_, trust)| *trust).fold(0.0, f64::max);
        (1.0 - 2.0 * own / best).max(0.0)
    };
    (0..source.instances()).into_par_iter().map(of).collect()
}

/// The weight of the neighbours of each rank: the square of the share in the same cluster, corrected for chance. It is 1 if all
/// are in the same cluster.
fn trust(nearest: &Nearest, labels: &[usize], clusters: usize) -> Vec<f64> {
    // Sums of whole numbers, exact in any order.
    let counts = labels.par_iter().enumerate().with_min_len(COUNTED).fold(
        || [vec![0.0; nearest.most()], vec![0.0; nearest.most()], vec![0.0; clusters]],
        |[mut same, mut all, mut sizes], (i, label)| {
            for (rank, (j, _)) in nearest.of(i).enumerate() {
                all[rank] += 1.0;
                same[rank] += f64::from(u8::from(labels[j] == *label));
            }
            sizes[*label] += f64::from(u8::from(nearest.of(i).next().is_some()));
            [same, all, sizes]
        },
    );
    let counts = counts.reduce_with(|mut sums, more| {
        sums.iter_mut().flatten().zip(more.iter().flatten()).for_each(|(sum, more)| *sum += more);
        sums
    });
    let [same, all, sizes] = counts.unwrap_or_default();
    let shown = f64::max(sizes.iter().sum(), 1.0);
    let chance: f64 = sizes.iter().map(|size| (size / shown).powi(2)).sum();
    let beyond = |(same, all): (&f64, &f64)| (same / all.max(1.0) - chance) / (1.0 - chance);
    // With a single cluster, agreement is meaningless.
    let ranks = same.iter().zip(&all).map(|rank| if chance < 1.0 { beyond(rank) } else { 0.0 });
    ranks.map(|beyond| beyond.max(LEAST_TRUST).powi(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;
    use daimc_core::Stop;
    use daimc_core::scaled_view::ScaledView;
    use daimc_core::scaling::Scaling;
    use daimc_graph::neighbours::nearest_in;

    #[test]
    fn instances_lack_links_where_all_their_views_are_trusted_less_than_half_as_far_as_the_best() {
        let present =
            [vec![true, true, false, false], vec![true, false, true, false], vec![false, false, false, true]];
        let view = |v: usize| {
            let values = vec![1.0; 4];
            View::dense(format!("{v}"), 1, values).unwrap().mask(&present[v]).unwrap()
        };
        let source = Views::new((0..3).map(view).collect()).unwrap();
        let of = |trust: [f32; 3]| lack(&source, &trust.map(|own| vec![own, own]));
        assert_eq!(of([0.8, 0.8, 0.8]), [0.0; 4]);
        assert_eq!(of([0.8, 0.4, 0.5]), [0.0; 4]);
        let found = of([0.8, 0.1, 0.0]);
        assert_eq!(found[..2], [0.0, 0.0]);
        assert!((found[2] - 0.75).abs() < 1e-6 && found[3] == 1.0, "{found:?}");
    }

    #[test]
    fn a_view_is_trusted_as_far_as_neighbours_agree() {
        let data = Synthetic::new(120, 3).noise(0.3).seed(4);
        let source = Views::new(vec![data.dense::<f64>("x", 8).unwrap()]).unwrap();
        let scaled_view = ScaledView::fit(
            &Scan::new(&source, &Stop::default()),
            0,
            Scaling::fit(&Scan::new(&source, &Stop::default()), 0, Scale::None).unwrap(),
            true,
        )
        .unwrap();
        let nearest = nearest_in(&Scan::new(&source, &Stop::default()), 0, &scaled_view, 5, 0).unwrap();
        // Some clusters that are related to the data, and some that are not.
        let truth = data.truth();
        let blurred: Vec<usize> = (0..120).map(|i| if i % 4 == 0 { i / 4 % 3 } else { truth[i] }).collect();
        let strange: Vec<usize> = (0..120).map(|i| i * i / 7 % 3).collect();
        for labels in [&truth, &blurred, &strange] {
            let found = trust(&nearest, labels, 3);
            let share = |k: usize| labels.iter().filter(|label| **label == k).count() as f64 / 120.0;
            let chance: f64 = (0..3).map(|k| share(k) * share(k)).sum();
            for (rank, found) in found.iter().enumerate() {
                let other = |i: usize| nearest.of(i).nth(rank).unwrap().0;
                let same = (0..120).filter(|&i| labels[other(i)] == labels[i]).count() as f64 / 120.0;
                let expected = ((same - chance) / (1.0 - chance)).max(LEAST_TRUST).powi(2);
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
        }
        assert!(trust(&nearest, &truth, 3).iter().all(|own| *own > 0.9));
        assert!(trust(&nearest, &strange, 3).iter().all(|own| *own < 0.1));
        assert!(trust(&nearest, &[0; 120], 3).iter().all(|own| *own == LEAST_TRUST.powi(2)));
    }
}
