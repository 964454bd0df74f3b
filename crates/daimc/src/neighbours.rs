//! Neighbourhoods: what the shared V cannot say, because it sees each instance alone.
//!
//! In every view each instance is linked to its nearest others. A view's links count as much as its neighbours agree on the
//! clusters that V has found, so that a view that knows nothing of them does no harm. The graphs of the views are fused,
//! and every link is weighted by how much V agrees with it: views in which two clusters look alike link them, V tells them
//! apart. Instances that only poorly trusted views show would be left almost without links; what they lack is made up by what
//! V and the views say of their clusters ([`anchors`]). The leading eigenvectors of that graph give clusters. Then the views are asked what they make of those: a
//! discriminant is learnt from other instances than it is asked of. Eigenvectors and answers weight the links anew, twice.

mod anchors;
mod evidence;
mod graph;
mod project;
mod search;

use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::missingness::Missingness;
use crate::model::Place;
use crate::options::{Options, ViewWeights};
use crate::scale::Scale;
use crate::scan::Scan;
use crate::source::Source;
use crate::sweep::Sweep;
use crate::watch::{Stage, Watch};
use crate::{Daimc, Error, Matrix, Result, View, Views};
use anchors::Anchors;
use evidence::Evidence;
use graph::Graph;
use search::{EXACT, Nearest};

/// Neighbours of each instance in each view.
const NEIGHBOURS: usize = 10;

/// The power of the cosine of two rows that a link is weighted by, and how often the views are asked.
const POWER: i32 = 4;
const ROUNDS: usize = 2;

/// The least agreement of neighbours that is taken for some.
const LEAST_TRUST: f64 = 1e-3;

/// Modularity of V's own clusters in the fused graph below which the graph is taken to know nothing of clusters.
const INFORMATIVE: f64 = 0.1;

/// Whether and how a fit uses who is near whom in each view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Neighbours {
    /// Not at all.
    #[default]
    Off,
    /// The clusters are cut from the fused graph of the views, its links weighted by V and by what the views say of the
    /// clusters.
    Refine,
    /// Each view is replaced by the leading eigenvectors of its own graph, and DAIMC is fitted to those.
    Embed,
    /// As [`Refine`](Self::Refine), but links are weighted by the V of both the views and their eigenvectors; not at all if
    /// the graph says nothing of clusters, if cutting it makes them less clear, if there are too many instances to compare
    /// every pair, or if the columns of V are not the clusters.
    Auto,
}

choice!(Neighbours, "neighbours": Off = "off", Refine = "refine", Embed = "embed", Auto = "auto");

impl Neighbours {
    /// Instances up to which [`Neighbours::Auto`] looks for neighbours: every pair is compared.
    pub const AUTO_MOST: usize = EXACT;

    /// Pairs that are compared in a view that shows so many instances, roughly: what a search costs is these times
    /// the features.
    #[must_use]
    pub fn pairs(instances: usize) -> f64 {
        search::pairs(instances)
    }
}

/// What was made of the neighbourhoods, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Decision {
    /// What was done: `Auto` stands for both routes combined.
    pub used: Neighbours,
    /// Why, in a sentence.
    pub reason: String,
}

impl Default for Decision {
    fn default() -> Self {
        Self { used: Neighbours::Off, reason: "neighbourhoods were not asked for".into() }
    }
}

/// Clusters found with the help of neighbourhoods.
pub(crate) struct Found {
    pub labels: Vec<usize>,
    pub confidence: Vec<f64>,
}

impl From<Place> for Found {
    fn from(Place { labels, confidence, .. }: Place) -> Self {
        Self { labels, confidence }
    }
}

/// The graphs of the views, as they are needed.
struct Graphs<'a> {
    scan: &'a Scan<'a>,
    options: &'a Options,
    watch: &'a Watch,
    nearest: Vec<Nearest>,
    importance: Vec<f64>,
}

impl<'a> Graphs<'a> {
    fn new(sweep: &'a Sweep<'a>, options: &'a Options, watch: &'a Watch) -> Result<Self> {
        let (scan, lenses) = (&sweep.scan, &sweep.lenses);
        let find = |(view, lens)| {
            watch.tell(&Stage::Search { view: scan.schema().view_name(view).into() });
            search::nearest(scan, view, lens, NEIGHBOURS, options.seed, watch)
        };
        let nearest = lenses.iter().enumerate().map(find).collect::<Result<_>>()?;
        let importance = lenses.iter().map(|lens| lens.scaling.importance).collect();
        Ok(Self { scan, options, watch, nearest, importance })
    }

    /// DAIMC on the leading eigenvectors of each view's own graph: its V.
    fn embed(&self) -> Result<Matrix> {
        let Options { clusters, seed, .. } = *self.options;
        let (n, source) = (self.scan.instances(), self.scan.source());
        let embedded = self.nearest.iter().enumerate().map(|(view, nearest)| {
            let rows = Graph::of_view(nearest, self.watch)?.spectral(None, clusters, seed, self.watch)?;
            let present: Vec<bool> = (0..n).map(|i| source.is_present(view, i)).collect();
            let (features, values) = (rows.columns(), rows.into_values());
            View::dense(source.name(view), features, values)?.mask(&present)
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

    /// How far the neighbours of each rank in each view are to be trusted, which clusters that V alone has found tell.
    fn trust(&self, labels: &[usize]) -> Vec<Vec<f32>> {
        let pairs = self.nearest.iter().zip(&self.importance);
        pairs
            .map(|(nearest, importance)| {
                let of_ranks = trust(nearest, labels, self.options.clusters);
                of_ranks.into_iter().map(|own| (importance * own) as f32).collect()
            })
            .collect()
    }

    /// Once the graphs are fused: the lists of neighbours weigh as much as a graph.
    fn forget(&mut self) {
        self.nearest = Vec::new();
    }
}

/// The clusters that neighbourhoods and V give together, if they are to be used, and the decision.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) soon after the fit was asked to stop, and when rows cannot be read.
pub(crate) fn clusters(
    sweep: &Sweep<'_>,
    options: &Options,
    v: &Matrix,
    watch: &Watch,
) -> Result<(Option<Found>, Decision)> {
    let (source, lenses) = (sweep.scan.source(), &sweep.lenses);
    let off = |reason: String| Ok((None, Decision { used: Neighbours::Off, reason }));
    let n = source.instances();
    match options.neighbours {
        Neighbours::Off => return Ok((None, Decision::default())),
        _ if options.clusters < 2 || options.clusters == n => {
            return off("there is nothing to choose with one cluster, or with one for each instance".into());
        }
        Neighbours::Auto if options.latent != options.clusters => {
            return off("the latent dimension is not the number of clusters".into());
        }
        Neighbours::Auto if n > EXACT => {
            return off(format!(
                "{n} instances are more than the {EXACT} up to which every pair is compared; `refine` finds most neighbours"
            ));
        }
        _ if source.memory().is_some() => {}
        Neighbours::Auto => {
            return off("the rows are not in memory, where they would have to be compared".into());
        }
        asked => {
            let reason = "the rows are not in memory, where they would have to be compared; use `off`, or allow more memory";
            return Err(Error::Unsuitable {
                what: "neighbours",
                value: asked.to_string(),
                reason: reason.into(),
            });
        }
    }
    let mut graphs = Graphs::new(sweep, options, watch)?;
    // A copy of V goes with the place: it is not kept.
    let plain = Found::from(Place::by_columns(v.clone(), options, &watch.stop)?.2).labels;
    let follows_missingness = |found: &Found| {
        let of = |labels: &[usize]| Missingness::of(source.schema(), labels, options.clusters, options.seed);
        of(&found.labels).exceeds(&of(&plain))
    };
    let missingness =
        "the clusters of the graph of neighbours follow which views instances have, those of V do not";
    if options.neighbours == Neighbours::Embed {
        let found = Found::from(Place::cluster(graphs.embed()?, options, &watch.stop)?.2);
        if follows_missingness(&found) {
            return off(missingness.into());
        }
        let reason = "asked for: DAIMC on the eigenvectors of each view's graph".into();
        return Ok((Some(found), Decision { used: Neighbours::Embed, reason }));
    }
    let trust = graphs.trust(&plain);
    let fused = Graph::fused(source, &graphs.nearest, &trust, watch)?;
    let lack = lack(source, &trust);
    watch.tell(&Stage::Cut);
    if options.neighbours == Neighbours::Refine {
        graphs.forget();
    }
    let before = fused.modularity(&plain, options.clusters);
    if options.neighbours == Neighbours::Auto && before < INFORMATIVE {
        return off(format!(
            "the views' nearest neighbours know nothing of the clusters: modularity {before:.2}, below {INFORMATIVE}"
        ));
    }
    let evidence = Evidence::new(&sweep.scan, lenses, options.seed, watch)?;
    let found = if options.neighbours == Neighbours::Auto {
        cut(&fused, &lack, &[v, &graphs.embed()?], &evidence, options, watch)?
    } else {
        cut(&fused, &lack, &[v], &evidence, options, watch)?
    };
    let after = fused.modularity(&found.labels, options.clusters);
    if options.neighbours == Neighbours::Auto && after < before {
        return off(format!(
            "cutting the graph of neighbours did not make its clusters clearer: modularity {before:.2}, then {after:.2}"
        ));
    }
    if follows_missingness(&found) {
        return off(missingness.into());
    }
    let reason =
        format!("modularity of the clusters in the graph of neighbours {before:.2} before, {after:.2} after");
    Ok((Some(found), Decision { used: options.neighbours, reason }))
}

/// Cuts the fused graph, its links weighted by the given rows, of which the first are V; then, for some rounds, by the
/// eigenvectors of the graph so weighted and by what the views say of the clusters so found. What instances lack in links,
/// V and the views make up.
fn cut(
    fused: &Graph,
    lack: &[f64],
    along: &[&Matrix],
    evidence: &Evidence<'_>,
    options: &Options,
    watch: &Watch,
) -> Result<Found> {
    let Options { clusters, seed, .. } = *options;
    let mut weighted = fused.weighted(along, POWER);
    let mut anchors = Anchors::new(&along[..1], lack)?;
    let mut rows = weighted.spectral(anchors.as_ref(), clusters, seed, watch)?;
    for _ in 0..ROUNDS {
        // What went before is given up before the next eigenvectors are looked for: they take most memory.
        drop((weighted, anchors));
        let labels = Found::from(Place::cluster(rows.clone(), options, &watch.stop)?.2).labels;
        let said = evidence.of(&labels, clusters, watch)?;
        weighted = fused.weighted(&[&rows, &said], POWER);
        anchors = Anchors::new(&[along[0], &said], lack)?;
        drop((rows, said));
        rows = weighted.spectral(anchors.as_ref(), clusters, seed, watch)?;
    }
    drop((weighted, anchors));
    Ok(Found::from(Place::cluster(rows, options, &watch.stop)?.2))
}

/// What each instance lacks in links, from 0 to 1: nothing where one of its views is trusted half as far as the best of all,
/// the more the less its views are.
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
    (0..source.instances()).map(of).collect()
}

/// How far the neighbours of each rank are to be trusted: the square of how much more often than by chance they are in the
/// same cluster, 1 if they always are.
fn trust(nearest: &Nearest, labels: &[usize], clusters: usize) -> Vec<f64> {
    let mut same = vec![0.0; nearest.most()];
    let mut all = vec![0.0; nearest.most()];
    let mut sizes = vec![0.0; clusters];
    for (i, label) in labels.iter().enumerate() {
        for (rank, (j, _)) in nearest.of(i).enumerate() {
            all[rank] += 1.0;
            same[rank] += f64::from(u8::from(labels[j] == *label));
        }
        sizes[*label] += f64::from(u8::from(nearest.of(i).next().is_some()));
    }
    let shown = f64::max(sizes.iter().sum(), 1.0);
    let chance: f64 = sizes.iter().map(|size| (size / shown).powi(2)).sum();
    let beyond = |(same, all): (&f64, &f64)| (same / all.max(1.0) - chance) / (1.0 - chance);
    // Where all are in one cluster, there is nothing to agree on.
    let ranks = same.iter().zip(&all).map(|rank| if chance < 1.0 { beyond(rank) } else { 0.0 });
    ranks.map(|beyond| beyond.max(LEAST_TRUST).powi(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lens::Lens;
    use crate::scale::Scaling;
    use crate::synthetic::Synthetic;

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
        let lens =
            Lens::fit(&Scan::of(&source), 0, Scaling::fit(&Scan::of(&source), 0, Scale::None).unwrap(), true)
                .unwrap();
        let nearest = search::nearest(&Scan::of(&source), 0, &lens, 5, 0, &Watch::default()).unwrap();
        // Clusters that have something to do with the data, and some that have not.
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
