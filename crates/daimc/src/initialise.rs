//! Where V and the bases start.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::kmeans::{self, Points};
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

/// Added to every entry of the first V, so that none is stuck at zero.
const FLOOR: f64 = 0.1;

pub(crate) struct Start {
    pub v: Matrix,
    pub bases: Vec<Matrix>,
}

/// The label of every instance in one view and the centres of the labels.
struct Labelled {
    labels: Vec<u32>,
    centres: Matrix,
    present: usize,
}

pub(crate) fn initialise(
    how: Initialisation,
    source: &dyn Source,
    lenses: &[Lens],
    latent: usize,
    starts: usize,
    seed: u64,
) -> Result<Start> {
    let fill = how == Initialisation::Paper;
    let views = (0..lenses.len())
        .map(|view| label(source, view, &lenses[view], latent, starts, seed, fill))
        .collect::<Result<Vec<_>>>()?;
    Ok(match how {
        Initialisation::Aligned => aligned(source.instances(), latent, views),
        Initialisation::Paper => averaged(source.instances(), latent, views),
    })
}

/// K-means in one view. With `fill` the missing rows take part as copies of the mean.
fn label(
    source: &dyn Source,
    view: usize,
    lens: &Lens,
    latent: usize,
    starts: usize,
    seed: u64,
    fill: bool,
) -> Result<Labelled> {
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
    let found = points.cluster(latent, starts, seed.wrapping_add(view as u64));
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
    Ok(Labelled { labels, centres, present })
}

/// Matches the clusters of each view to the consensus so far, the view that shows most instances first.
fn aligned(instances: usize, latent: usize, views: Vec<Labelled>) -> Start {
    let mut order: Vec<usize> = (0..views.len()).collect();
    order.sort_by_key(|&view| std::cmp::Reverse(views[view].present));
    let mut votes = Matrix::zeros(instances, latent);
    let mut bases: Vec<Matrix> = vec![Matrix::default(); views.len()];
    for view in order {
        let Labelled { labels, centres, .. } = &views[view];
        let seen = || labels.iter().enumerate().filter(|(_, label)| **label != MISSING);
        let mut overlap = vec![0_i64; latent * latent];
        for (i, &label) in seen() {
            for (overlap, votes) in overlap[label as usize * latent..].iter_mut().zip(votes.row(i)) {
                *overlap += *votes as i64;
            }
        }
        let matched = best_assignment(latent, latent, |a, k| overlap[a * latent + k]);
        let target = |label: usize| matched[label].unwrap_or(label);
        for (i, &label) in seen() {
            votes[(i, target(label as usize))] += 1.0;
        }
        let mut basis = Matrix::zeros(centres.rows(), latent);
        for f in 0..centres.rows() {
            for k in 0..latent {
                basis[(f, target(k))] = centres[(f, k)];
            }
        }
        bases[view] = basis;
    }
    for i in 0..instances {
        let row = votes.row_mut(i);
        let total: f64 = row.iter().sum::<f64>().max(1.0);
        row.iter_mut().for_each(|vote| *vote = *vote / total + FLOOR);
    }
    Start { v: votes, bases }
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
