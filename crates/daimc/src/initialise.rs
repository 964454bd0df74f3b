//! Initialisation of V and the bases.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use daimc_core::choice;
use daimc_core::index::index;
use daimc_core::kmeans::{self, Centres, KMeans, Points};
use daimc_core::metrics::best_assignment;
use daimc_core::scaled_view::{ScaledView, Scratch};
use daimc_core::scan::{Piece, Scan};
use daimc_core::source::{Buffer, MISSING};
use daimc_core::statistics::Statistics;
use daimc_core::steps::basis::Bases;
use daimc_core::sweep::Sweep;
use daimc_core::{Matrix, Result};

/// The initialisation of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Initialisation {
    /// K-means in each view on its rows, the clusters of each view matched to the consensus of the views before it; V is the mean
    /// of the views' one-hot labels, plus 0.1, and U the matched centres.
    #[default]
    Aligned,
    /// As published: k-means in each view with its missing rows filled by the mean, and the average of the one-hot labels without
    /// matching.
    Paper,
}

choice!(Initialisation, "initialisation": Aligned = "aligned", Paper = "paper");

/// Added to every entry of the first V, because updates cannot change an entry of zero.
pub(crate) const FLOOR: f64 = 0.1;

/// The inputs of the first V: the clusters of k-means in each view, after matching between views.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Votes {
    views: Vec<Clustered>,
    /// As published: missing rows were filled.
    fill: bool,
}

/// The clusters of k-means in one view.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Clustered {
    centres: Matrix,
    /// The instances of the view and their labels, if k-means used all of them.
    seen: Option<(Vec<u32>, Vec<u32>)>,
    /// The label of an instance without a row in the view.
    missing: u32,
    present: usize,
    importance: f64,
    /// The column of V of each label.
    target: Vec<usize>,
}

impl Votes {
    /// K-means in each view, on a sample of its rows, and the matching.
    pub fn gather(
        how: Initialisation,
        scan: &Scan<'_>,
        scaled_views: &[ScaledView],
        latent: usize,
        restarts: usize,
        seed: u64,
    ) -> Result<Self> {
        let k_means = KMeans { clusters: latent, restarts, seed, first: None, stop: scan.stop() };
        let fill = how == Initialisation::Paper;
        let own = scaled_views.iter().enumerate();
        let mut views = own
            .map(|(view, scaled_view)| cluster(scan, view, scaled_view, &k_means, fill))
            .collect::<Result<Vec<_>>>()?;
        if how == Initialisation::Aligned && views.len() > 1 {
            let targets = matched(latent, &views, &overlaps(scan, scaled_views, latent, &views, seed)?);
            views.iter_mut().zip(targets).for_each(|(view, target)| view.target = target);
        }
        Ok(Self { views, fill })
    }

    /// Computes the first V of the instances of this partition.
    pub fn begin(&self, sweep: &Sweep<'_>, v: &mut Matrix) -> Result<Statistics> {
        let (latent, first) = (sweep.latent(), sweep.scan.blocks().first());
        let labels: Vec<Labels<'_>> = self
            .views
            .iter()
            .zip(&*sweep.scaled_views)
            .map(|(view, scaled_view)| view.labels(scaled_view))
            .collect();
        let share = 1.0 / self.views.len() as f64;
        sweep.begin(v, |piece, v| {
            for (view, (labels, own)) in labels.iter().zip(&self.views).enumerate() {
                let vote = if self.fill { share } else { own.importance };
                labels
                    .each(piece, first, view, |i, label| v[i * latent + own.target[label as usize]] += vote);
            }
            for row in v.chunks_exact_mut(latent) {
                let total = if self.fill { 1.0 } else { row.iter().sum::<f64>().max(1.0) };
                row.iter_mut().for_each(|vote| *vote = *vote / total + FLOOR);
            }
            Ok(())
        })
    }

    /// The first bases: the matched centres.
    pub fn into_bases(self) -> Bases {
        let permuted = |view: Clustered| {
            let mut basis = Matrix::zeros(view.centres.rows(), view.target.len());
            for f in 0..basis.rows() {
                for (k, &to) in view.target.iter().enumerate() {
                    basis[(f, to)] = view.centres[(f, k)];
                }
            }
            basis
        };
        let bases = self.views.into_iter().map(permuted).collect();
        if self.fill { Bases::Given(bases) } else { Bases::Normalised(bases) }
    }
}

/// K-means in one view. With `fill`, missing rows take part as copies of the mean.
fn cluster(
    scan: &Scan<'_>,
    view: usize,
    scaled_view: &ScaledView,
    k_means: &KMeans<'_>,
    fill: bool,
) -> Result<Clustered> {
    let mut rng = ChaCha8Rng::seed_from_u64(k_means.seed);
    rng.set_stream(u64::MAX - view as u64);
    let present = scan.schema().view(view).present();
    let sampled = kmeans::sample(scan.source(), view, kmeans::sample_size(k_means.clusters), &mut rng);
    let mut buffer = Buffer::default();
    let block = scan.pick(view, &sampled, &mut buffer)?;
    let own = scaled_view.of_rows(&block, sampled.len());
    let mut points = Points::of(&own, block, 0..sampled.len());
    let missing = scan.instances() - present;
    if fill && missing > 0 {
        let share = sampled.len() as f64 / present as f64;
        let mean = points.mean();
        points = points.with_extra(mean, share * missing as f64);
    }
    let found = points.cluster(&KMeans { seed: k_means.seed.wrapping_add(view as u64), ..*k_means })?;
    let missing = if fill { found.extra_label } else { MISSING };
    let (importance, target) = (scaled_view.scaling.importance, (0..k_means.clusters).collect());
    let seen = (sampled.len() == present).then_some((sampled, found.labels));
    Ok(Clustered { centres: found.centres, seen, missing, present, importance, target })
}

/// The source of the labels of a view.
enum Labels<'a> {
    Known { instances: &'a [u32], labels: &'a [u32], missing: u32 },
    Nearest { centres: Centres<'a>, missing: u32 },
}

impl Clustered {
    fn labels<'a>(&'a self, scaled_view: &'a ScaledView) -> Labels<'a> {
        let missing = self.missing;
        match &self.seen {
            Some((instances, labels)) => Labels::Known { instances, labels, missing },
            None => Labels::Nearest { centres: Centres::new(scaled_view, &self.centres), missing },
        }
    }
}

/// The label of an instance that k-means has used, or that of instances without a row.
fn known(instances: &[u32], labels: &[u32], missing: u32, instance: usize) -> u32 {
    instances.binary_search(&index(instance)).map_or(missing, |at| labels[at])
}

impl Labels<'_> {
    /// Calls `each` with the number within the block and the label of every instance that has one in a view. `first` is the first
    /// instance of this partition.
    fn each(&self, piece: &Piece<'_>, first: usize, view: usize, mut each: impl FnMut(usize, u32)) {
        let start = piece.instances.start;
        match self {
            Self::Known { instances, labels, missing } => {
                for (i, instance) in piece.instances.clone().enumerate() {
                    let label = known(instances, labels, *missing, first + instance);
                    if label != MISSING {
                        each(i, label);
                    }
                }
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

/// The random stream of the instances on which the clusters of the views are compared, if k-means used only a sample.
const COMPARED_STREAM: u64 = 1 << 40;

/// The number of instances with label a in one view and label b in another, for each pair of views: a × b.
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
fn overlaps(
    scan: &Scan<'_>,
    scaled_views: &[ScaledView],
    latent: usize,
    views: &[Clustered],
    seed: u64,
) -> Result<Overlaps> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(COMPARED_STREAM);
    let all_seen = views.iter().all(|view| view.seen.is_some());
    let limit = if all_seen { scan.instances() } else { kmeans::sample_size(latent) };
    let chosen = kmeans::sample_instances(scan.source(), limit, &mut rng);
    let mut of_views = Vec::with_capacity(views.len());
    for (view, (own, scaled_view)) in views.iter().zip(scaled_views).enumerate() {
        if let Some((instances, labels)) = &own.seen {
            let label = |&i: &u32| known(instances, labels, own.missing, i as usize);
            of_views.push(chosen.iter().map(label).collect());
            continue;
        }
        let mut buffer = Buffer::default();
        let block = scan.pick(view, &chosen, &mut buffer)?;
        let rows: Vec<(usize, usize)> =
            (0..chosen.len()).filter_map(|n| Some((n, block.index.row(n)?))).collect();
        let mut found = Vec::with_capacity(rows.len());
        let scaled_view = scaled_view.of_rows(&block, chosen.len());
        let centres = Centres::new(&scaled_view, &own.centres);
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

/// The resolution of a vote; votes are integers unless views differ in importance.
const PARTS: f64 = 1024.0;

/// The maximum number of rounds of matching over the views.
const ROUNDS: usize = 10;

/// Matches the clusters of each view to the consensus of the others: first of the views before it, starting with the view that
/// has the most instances (among the most important views), then in rounds until nothing changes. Returns, for each view, the
/// column of V of each of its labels.
fn matched(latent: usize, views: &[Clustered], overlaps: &Overlaps) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..views.len()).collect();
    let says = |view: usize| views[view].importance * views[view].present as f64;
    order.sort_by(|&a, &b| says(b).total_cmp(&says(a)));
    let mut targets: Vec<Vec<usize>> = vec![Vec::new(); views.len()];
    for _ in 0..ROUNDS {
        let before = targets.clone();
        for &view in &order {
            // The votes of the other matched views, by label.
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
            // Each column is used once (Hungarian method).
            let found = best_assignment(latent, latent, |label, k| votes[label * latent + k]);
            targets[view] = found.into_iter().enumerate().map(|(label, k)| k.unwrap_or(label)).collect();
        }
        if targets == before {
            break;
        }
    }
    targets
}
