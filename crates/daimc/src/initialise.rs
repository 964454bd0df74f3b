//! Where V and the bases start.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::kmeans::{self, Plan, Points};
use crate::lens::Lens;
use crate::metrics::best_assignment;
use crate::source::{Buffer, MISSING, Source};
use crate::{Matrix, Result};

/// How a fit starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Initialisation {
    /// K-means in each view on the rows it shows, the clusters of each view matched to the consensus of the
    /// views before it; V is the mean of the views' one-hot labels, plus 0.1, and U the matched centres.
    #[default]
    Aligned,
    /// As published: k-means in each view with its missing rows filled by the mean, the one-hot labels averaged as
    /// they come.
    Paper,
}

choice!(Initialisation, "initialisation": Aligned = "aligned", Paper = "paper");

/// Added to every entry of the first V, so that none is stuck at zero.
pub(crate) const FLOOR: f64 = 0.1;

pub(crate) struct Start {
    pub v: Matrix,
    pub bases: Vec<Matrix>,
}

/// The label of every instance in one view and the centres of the labels.
struct Labelled {
    labels: Vec<u32>,
    centres: Matrix,
    present: usize,
    importance: f64,
}

pub(crate) fn initialise(
    how: Initialisation,
    source: &dyn Source,
    lenses: &[Lens],
    plan: &Plan<'_>,
) -> Result<Start> {
    let latent = plan.clusters;
    let fill = how == Initialisation::Paper;
    let views = (0..lenses.len())
        .map(|view| label(source, view, &lenses[view], plan, fill))
        .collect::<Result<Vec<_>>>()?;
    Ok(match how {
        Initialisation::Aligned => aligned(source.instances(), latent, views),
        Initialisation::Paper => averaged(source.instances(), latent, views),
    })
}

/// K-means in one view. With `fill` the missing rows take part as copies of the mean.
fn label(source: &dyn Source, view: usize, lens: &Lens, plan: &Plan<'_>, fill: bool) -> Result<Labelled> {
    let Plan { clusters: latent, seed, .. } = *plan;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::MAX - view as u64);
    let present = (0..source.instances()).filter(|&i| source.is_present(view, i)).count();
    let sampled = kmeans::sample(source, view, kmeans::sample_size(latent), &mut rng);
    let mut buffer = Buffer::default();
    let mut points = Points::new(source, view, lens, &sampled, &mut buffer)?;
    let missing = source.instances() - present;
    if fill && missing > 0 {
        let share = sampled.len() as f64 / present as f64;
        let mean = points.mean();
        points = points.with_extra(mean, share * missing as f64);
    }
    let found = points.cluster(&Plan { seed: seed.wrapping_add(view as u64), ..*plan })?;
    let centres = found.centres;
    let mut labels = vec![if fill { found.extra_label } else { MISSING }; source.instances()];
    if sampled.len() == present {
        for (&instance, label) in sampled.iter().zip(&found.labels) {
            labels[instance as usize] = *label;
        }
    } else {
        let all = kmeans::assign(source, view, lens, &centres)?;
        let seen = labels.iter_mut().zip(&all.labels).filter(|(_, label)| **label != MISSING);
        seen.for_each(|(own, label)| *own = *label);
    }
    Ok(Labelled { labels, centres, present, importance: lens.scaling.importance })
}

/// Parts of a vote that count; votes are whole numbers unless views differ in importance.
const PARTS: f64 = 1024.0;

/// Rounds over the views in which their matching may still change.
const ROUNDS: usize = 10;

/// Matches the clusters of each view to the consensus of the others: first of those before it, the view that shows
/// most instances first (if all views are as important), then in rounds until nothing changes.
fn aligned(instances: usize, latent: usize, views: Vec<Labelled>) -> Start {
    let mut order: Vec<usize> = (0..views.len()).collect();
    let says = |view: usize| views[view].importance * views[view].present as f64;
    order.sort_by(|&a, &b| says(b).total_cmp(&says(a)));
    let mut votes = Matrix::zeros(instances, latent);
    let mut targets: Vec<Vec<usize>> = vec![Vec::new(); views.len()];
    for _ in 0..ROUNDS {
        let before = targets.clone();
        for &view in &order {
            vote(&mut votes, &views[view], &targets[view], -views[view].importance);
            targets[view] = views[view].match_to(&votes);
            vote(&mut votes, &views[view], &targets[view], views[view].importance);
        }
        if targets == before {
            break;
        }
    }
    for i in 0..instances {
        let row = votes.row_mut(i);
        let total: f64 = row.iter().sum::<f64>().max(1.0);
        row.iter_mut().for_each(|vote| *vote = *vote / total + FLOOR);
    }
    let permuted = |(view, target): (Labelled, &Vec<usize>)| {
        let mut basis = Matrix::zeros(view.centres.rows(), latent);
        for f in 0..basis.rows() {
            for (k, &to) in target.iter().enumerate() {
                basis[(f, to)] = view.centres[(f, k)];
            }
        }
        basis
    };
    let mut bases: Vec<Matrix> = views.into_iter().zip(&targets).map(permuted).collect();
    // Columns of V sum to one from the start, as after every iteration: B then starts at the scale of the bases
    // to come. At another scale the first U step would be all alignment and lose what k-means has found.
    let mut sums = vec![0.0; latent];
    for row in votes.iter_rows() {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    votes.scale_columns(&sums.iter().map(|sum| 1.0 / sum).collect::<Vec<_>>());
    bases.iter_mut().for_each(|basis| basis.scale_columns(&sums));
    Start { v: votes, bases }
}

/// Adds `weight` to the entry of each instance that its label in a view stands for.
fn vote(votes: &mut Matrix, view: &Labelled, target: &[usize], weight: f64) {
    if target.is_empty() {
        return;
    }
    for (i, label) in view.seen() {
        votes[(i, target[label])] += weight;
    }
}

impl Labelled {
    /// The instances that the view shows, with their labels.
    fn seen(&self) -> impl Iterator<Item = (usize, usize)> {
        let labels = self.labels.iter().enumerate();
        labels.filter(|(_, label)| **label != MISSING).map(|(i, &label)| (i, label as usize))
    }

    /// For each label the column of `votes` that it overlaps with most, each column once (Hungarian method).
    fn match_to(&self, votes: &Matrix) -> Vec<usize> {
        let latent = votes.columns();
        let mut overlap = vec![0_i64; latent * latent];
        for (i, label) in self.seen() {
            for (overlap, votes) in overlap[label * latent..].iter_mut().zip(votes.row(i)) {
                *overlap += (*votes * PARTS).round() as i64;
            }
        }
        let matched = best_assignment(latent, latent, |label, k| overlap[label * latent + k]);
        matched.into_iter().enumerate().map(|(label, k)| k.unwrap_or(label)).collect()
    }
}

/// Averages the labels of the views without matching them.
fn averaged(instances: usize, latent: usize, views: Vec<Labelled>) -> Start {
    let share = 1.0 / views.len() as f64;
    let mut v = Matrix::from_fn(instances, latent, |_, _| FLOOR);
    for view in &views {
        for (i, &label) in view.labels.iter().enumerate() {
            v[(i, label as usize)] += share;
        }
    }
    Start { v, bases: views.into_iter().map(|view| view.centres).collect() }
}
