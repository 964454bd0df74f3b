//! Where V and the bases start.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::descent::Bases;
use crate::kmeans::{self, Centres, Plan, Points};
use crate::lens::{Lens, Scratch};
use crate::metrics::best_assignment;
use crate::scan::{Piece, Scan};
use crate::source::{Buffer, MISSING};
use crate::statistics::Statistics;
use crate::sweep::Sweep;
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

/// The first V, its statistics, and the bases to begin with.
pub(crate) struct Start {
    pub v: Matrix,
    pub statistics: Statistics,
    pub bases: Bases,
}

/// The clusters that k-means finds in one view.
struct Clustered {
    centres: Matrix,
    /// The label of every instance, [`MISSING`] where the view does not show it, if k-means has seen all of them.
    labels: Option<Vec<u32>>,
    /// What is written for an instance that the view does not show.
    missing: u32,
    present: usize,
    importance: f64,
}

/// Clusters each view by itself and makes the first V of the labels, in one pass over the data.
pub(crate) fn initialise(
    how: Initialisation,
    sweep: &Sweep<'_>,
    restarts: usize,
    seed: u64,
) -> Result<Start> {
    let (scan, latent) = (&sweep.scan, sweep.latent());
    let plan = Plan { clusters: latent, restarts, seed, first: None, stop: scan.stop() };
    let fill = how == Initialisation::Paper;
    let views = (0..sweep.lenses.len())
        .map(|view| cluster(scan, view, &sweep.lenses[view], &plan, fill))
        .collect::<Result<Vec<_>>>()?;
    let targets = match how {
        Initialisation::Aligned if views.len() > 1 => {
            matched(latent, &views, &overlaps(sweep, &views, seed)?)
        }
        Initialisation::Aligned | Initialisation::Paper => vec![(0..latent).collect(); views.len()],
    };
    let mut v = Matrix::zeros(scan.instances(), latent);
    let labels: Vec<Labels<'_>> =
        views.iter().zip(&sweep.lenses).map(|(view, lens)| view.labels(lens)).collect();
    let share = 1.0 / views.len() as f64;
    let statistics = sweep.begin(&mut v, |piece, v| {
        for (view, ((labels, own), target)) in labels.iter().zip(&views).zip(&targets).enumerate() {
            let vote = if fill { share } else { own.importance };
            labels.each(piece, view, |i, label| v[i * latent + target[label as usize]] += vote);
        }
        for row in v.chunks_exact_mut(latent) {
            let total = if fill { 1.0 } else { row.iter().sum::<f64>().max(1.0) };
            row.iter_mut().for_each(|vote| *vote = *vote / total + FLOOR);
        }
        Ok(())
    })?;
    let permuted = |(view, target): (Clustered, &Vec<usize>)| {
        let mut basis = Matrix::zeros(view.centres.rows(), latent);
        for f in 0..basis.rows() {
            for (k, &to) in target.iter().enumerate() {
                basis[(f, to)] = view.centres[(f, k)];
            }
        }
        basis
    };
    drop(labels);
    let bases = views.into_iter().zip(&targets).map(permuted).collect();
    let bases = if fill { Bases::Given(bases) } else { Bases::Normalised(bases) };
    Ok(Start { v, statistics, bases })
}

/// K-means in one view. With `fill` the missing rows take part as copies of the mean.
fn cluster(scan: &Scan<'_>, view: usize, lens: &Lens, plan: &Plan<'_>, fill: bool) -> Result<Clustered> {
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    rng.set_stream(u64::MAX - view as u64);
    let present = scan.schema().view(view).present();
    let sampled = kmeans::sample(scan.source(), view, kmeans::sample_size(plan.clusters), &mut rng);
    let mut buffer = Buffer::default();
    let mut points = Points::new(scan, view, lens, &sampled, &mut buffer)?;
    let missing = scan.instances() - present;
    if fill && missing > 0 {
        let share = sampled.len() as f64 / present as f64;
        let mean = points.mean();
        points = points.with_extra(mean, share * missing as f64);
    }
    let found = points.cluster(&Plan { seed: plan.seed.wrapping_add(view as u64), ..*plan })?;
    let missing = if fill { found.extra_label } else { MISSING };
    let labels = (sampled.len() == present).then(|| {
        let mut labels = vec![missing; scan.instances()];
        sampled.iter().zip(&found.labels).for_each(|(&i, label)| labels[i as usize] = *label);
        labels
    });
    Ok(Clustered { centres: found.centres, labels, missing, present, importance: lens.scaling.importance })
}

/// How the label of an instance in a view is told.
enum Labels<'a> {
    Known(&'a [u32]),
    Nearest { centres: Centres<'a>, missing: u32 },
}

impl Clustered {
    fn labels<'a>(&'a self, lens: &'a Lens) -> Labels<'a> {
        match &self.labels {
            Some(labels) => Labels::Known(labels),
            None => Labels::Nearest { centres: Centres::new(lens, &self.centres), missing: self.missing },
        }
    }
}

impl Labels<'_> {
    /// Calls `each` with the number within the block and the label of every instance that has one in a view.
    fn each(&self, piece: &Piece<'_>, view: usize, mut each: impl FnMut(usize, u32)) {
        let start = piece.instances.start;
        match self {
            Self::Known(labels) => {
                let labels = labels[piece.instances.clone()].iter().enumerate();
                labels.filter(|(_, label)| **label != MISSING).for_each(|(i, label)| each(i, *label));
            }
            Self::Nearest { centres, missing } => {
                let block = &piece.blocks[view];
                let rows = piece.shown_in(view);
                if *missing != MISSING {
                    let gone = piece.instances.clone().filter(|i| block.index.row(i - start).is_none());
                    gone.for_each(|i| each(i - start, *missing));
                }
                centres.compare(block, &rows, &mut Scratch::default(), |at, label, _, _| {
                    each(at.0 - start, label);
                });
            }
        }
    }
}

/// Of the instances on which the clusters of the views are compared, where k-means has seen but a sample.
const COMPARED_STREAM: u64 = 1 << 40;

/// How many instances have label a in one view and b in another, for each pair of views: a × b.
struct Overlaps {
    views: usize,
    latent: usize,
    counts: Vec<u32>,
}

impl Overlaps {
    fn table(&self, view: usize, other: usize) -> &[u32] {
        let size = self.latent * self.latent;
        let at = (view * self.views + other) * size;
        &self.counts[at..at + size]
    }
}

/// Compares the labels of the views, of all instances or of a seeded sample.
fn overlaps(sweep: &Sweep<'_>, views: &[Clustered], seed: u64) -> Result<Overlaps> {
    let (scan, latent) = (&sweep.scan, sweep.latent());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(COMPARED_STREAM);
    let known = views.iter().all(|view| view.labels.is_some());
    let limit = if known { scan.instances() } else { kmeans::sample_size(latent) };
    let chosen = kmeans::sample_instances(scan.source(), limit, &mut rng);
    let mut of_views = Vec::with_capacity(views.len());
    for (view, (own, lens)) in views.iter().zip(&sweep.lenses).enumerate() {
        if let Some(labels) = &own.labels {
            of_views.push(chosen.iter().map(|&i| labels[i as usize]).collect());
            continue;
        }
        let mut buffer = Buffer::default();
        let block = scan.pick(view, &chosen, &mut buffer)?;
        let row = |(n, i): (usize, &u32)| Some((*i as usize, block.index.row(n)?));
        let rows: Vec<(usize, usize)> = chosen.iter().enumerate().filter_map(row).collect();
        let mut found = Vec::with_capacity(rows.len());
        let centres = Centres::new(lens, &own.centres);
        centres.compare(&block, &rows, &mut Scratch::default(), |_, label, _, _| found.push(label));
        let mut found = found.into_iter();
        let label = |n| block.index.row(n).and_then(|_| found.next()).unwrap_or(MISSING);
        of_views.push((0..chosen.len()).map(label).collect::<Vec<u32>>());
    }
    let mut all =
        Overlaps { views: views.len(), latent, counts: vec![0; views.len().pow(2) * latent * latent] };
    for (view, own) in of_views.iter().enumerate() {
        for (other, labels) in of_views.iter().enumerate().filter(|(other, _)| *other != view) {
            let at = (view * views.len() + other) * latent * latent;
            for (a, b) in own.iter().zip(labels).filter(|(a, b)| **a != MISSING && **b != MISSING) {
                all.counts[at + *a as usize * latent + *b as usize] += 1;
            }
        }
    }
    Ok(all)
}

/// Parts of a vote that count; votes are whole numbers unless views differ in importance.
const PARTS: f64 = 1024.0;

/// Rounds over the views in which their matching may still change.
const ROUNDS: usize = 10;

/// Matches the clusters of each view to the consensus of the others: first of those before it, the view that shows
/// most instances first (if all views are as important), then in rounds until nothing changes. For each view the column of V of
/// each of its labels.
fn matched(latent: usize, views: &[Clustered], overlaps: &Overlaps) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..views.len()).collect();
    let says = |view: usize| views[view].importance * views[view].present as f64;
    order.sort_by(|&a, &b| says(b).total_cmp(&says(a)));
    let mut targets: Vec<Vec<usize>> = vec![Vec::new(); views.len()];
    for _ in 0..ROUNDS {
        let before = targets.clone();
        for &view in &order {
            // What the others that are matched already vote for, by label.
            let mut votes = vec![0_i64; latent * latent];
            for (other, target) in
                targets.iter().enumerate().filter(|(other, target)| *other != view && !target.is_empty())
            {
                let weight = (views[other].importance * PARTS).round() as i64;
                let counts = overlaps.table(view, other).chunks_exact(latent);
                for (votes, counts) in votes.chunks_exact_mut(latent).zip(counts) {
                    target.iter().zip(counts).for_each(|(&k, &count)| votes[k] += weight * i64::from(count));
                }
            }
            // Each column once (Hungarian method).
            let found = best_assignment(latent, latent, |label, k| votes[label * latent + k]);
            targets[view] = found.into_iter().enumerate().map(|(label, k)| k.unwrap_or(label)).collect();
        }
        if targets == before {
            break;
        }
    }
    targets
}
