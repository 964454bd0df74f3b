//! Neighbourhoods: what the shared V cannot say, because it sees each instance alone.
//!
//! In every view each instance is linked to its nearest others. The graphs of the views are fused, and every link is weighted
//! by how much V agrees with it: views in which two clusters look alike link them, V tells them apart. The leading
//! eigenvectors of that graph give the clusters; they weight the links once more, and give them again.

mod graph;
mod search;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::lens::Lens;
use crate::model::Place;
use crate::options::{Options, ViewWeights};
use crate::scale::Scale;
use crate::source::Source;
use crate::{Daimc, Error, Matrix, Result, View, Views};
use graph::Graph;
pub(crate) use search::EXACT;
use search::Nearest;

/// Neighbours of each instance in each view.
const NEIGHBOURS: usize = 10;

/// The power of the cosine of two rows that a link is weighted by, and how often.
const POWER: i32 = 4;
const ROUNDS: usize = 2;

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
    /// The clusters are cut from the fused graph of the views, its links weighted by V.
    Refine,
    /// Each view is replaced by the leading eigenvectors of its own graph, and DAIMC is fitted to those.
    Embed,
    /// The clusters are cut from the fused graph, its links weighted by the V of both the views and their
    /// eigenvectors; not at all if the graph says nothing of clusters, or if there are too many instances to compare
    /// every pair.
    Auto,
}

impl Neighbours {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Off, Self::Refine, Self::Embed, Self::Auto];

    /// The name under which it is asked for.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Refine => "refine",
            Self::Embed => "embed",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Neighbours {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Neighbours {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|one| one.name() == name);
        known.ok_or_else(|| Error::Option {
            option: "neighbours",
            value: name.into(),
            reason: "must be off, refine, embed or auto".into(),
        })
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
    source: &'a dyn Source,
    options: &'a Options,
    nearest: Vec<Nearest>,
    importance: Vec<f64>,
}

impl<'a> Graphs<'a> {
    fn new(source: &'a dyn Source, lenses: &[Lens], options: &'a Options) -> Result<Self> {
        let find = |(view, lens)| search::nearest(source, view, lens, NEIGHBOURS, options.seed);
        let nearest = lenses.iter().enumerate().map(find).collect::<Result<_>>()?;
        let importance = lenses.iter().map(|lens| lens.scaling.importance).collect();
        Ok(Self { source, options, nearest, importance })
    }

    /// DAIMC on the leading eigenvectors of each view's own graph: its V.
    fn embed(&self) -> Result<Matrix> {
        let Options { clusters, seed, .. } = *self.options;
        let n = self.source.instances();
        let embedded = self.nearest.iter().enumerate().map(|(view, nearest)| {
            let rows = Graph::of_view(nearest).spectral(clusters, seed);
            let present: Vec<bool> = (0..n).map(|i| self.source.is_present(view, i)).collect();
            let (features, values) = (rows.columns(), rows.into_values());
            View::dense(self.source.name(view), features, values)?.mask(&present)
        });
        let views = Views::new(embedded.collect::<Result<_>>()?)?;
        let fit = Daimc::from(Options {
            scale: Scale::None,
            view_scales: std::collections::BTreeMap::new(),
            view_weights: ViewWeights::Equal,
            neighbours: Neighbours::Off,
            ..self.options.clone()
        });
        let fit = fit.weighed(self.importance.clone());
        Ok(fit.fit_here(&views, |_| std::ops::ControlFlow::Continue(()))?.latent)
    }

    fn fused(&self) -> Graph {
        Graph::fused(self.source, &self.nearest, &self.importance)
    }

    /// Once the graphs are fused: the lists of neighbours weigh as much as a graph.
    fn forget(&mut self) {
        self.nearest = Vec::new();
    }
}

/// The clusters that neighbourhoods and V give together, if they are to be used, and the decision.
pub(crate) fn clusters(
    source: &dyn Source,
    lenses: &[Lens],
    options: &Options,
    v: &Matrix,
) -> Result<(Option<Found>, Decision)> {
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
        _ => {}
    }
    let mut graphs = Graphs::new(source, lenses, options)?;
    if options.neighbours == Neighbours::Embed {
        let found = Found::from(Place::cluster(graphs.embed()?, options)?.2);
        let reason = "asked for: DAIMC on the eigenvectors of each view's graph".into();
        return Ok((Some(found), Decision { used: Neighbours::Embed, reason }));
    }
    let fused = graphs.fused();
    if options.neighbours == Neighbours::Refine {
        graphs.forget();
    }
    let (_, _, plain) = Place::cluster(v.clone(), options)?;
    let before = fused.modularity(&plain.labels, options.clusters);
    if options.neighbours == Neighbours::Auto && before < INFORMATIVE {
        return off(format!(
            "the views' nearest neighbours know nothing of the clusters: modularity {before:.2}, below {INFORMATIVE}"
        ));
    }
    let found = if options.neighbours == Neighbours::Auto {
        cut(&fused, &[v, &graphs.embed()?], options)?
    } else {
        cut(&fused, &[v], options)?
    };
    let after = fused.modularity(&found.labels, options.clusters);
    if options.neighbours == Neighbours::Auto && after < before {
        return off(format!(
            "cutting the graph of neighbours did not make its clusters clearer: modularity {before:.2}, then {after:.2}"
        ));
    }
    let reason =
        format!("modularity of the clusters in the graph of neighbours {before:.2} before, {after:.2} after");
    Ok((Some(found), Decision { used: options.neighbours, reason }))
}

/// Cuts the fused graph, its links weighted by the given rows, then by the eigenvectors of the graph so weighted.
fn cut(fused: &Graph, along: &[&Matrix], options: &Options) -> Result<Found> {
    let Options { clusters, seed, .. } = *options;
    let mut rows = fused.weighted(along, POWER).spectral(clusters, seed);
    for _ in 1..ROUNDS {
        rows = fused.weighted(&[&rows], POWER).spectral(clusters, seed);
    }
    Ok(Found::from(Place::cluster(rows, options)?.2))
}
