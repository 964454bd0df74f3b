//! K-means on the rows of a view, or of V: several k-means++ starts, with repair of empty clusters. Rows are read
//! through a [`ScaledView`], so that scaled data are clustered without a copy and sparse rows stay sparse.

mod bounds;
mod leading;
mod lloyd;
mod points;
mod starts;

use std::collections::HashMap;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::forest::{Forest, Merge};
use crate::scaled_view::{FromCentre, Parts, ScaledView, Scratch, Targets};
use crate::scan::Scan;
use crate::source::{Block, Buffer, MISSING, Source};
use crate::table::{RowReduction, Table};
use crate::{Matrix, Result, Scale, Scaling, Stop, Views};

pub use leading::{LeadingColumns, SumLatent, of_columns};
pub use points::Points;
pub use starts::{FEW, KMeans, starts};

/// Rows whose distances are computed together.
const TILE: usize = 128;

/// The maximum number of rows for k-means; of more rows it draws a seeded sample.
const SAMPLE: usize = 4000;
const SAMPLE_PER_CLUSTER: usize = 100;

/// The maximum number of rows for k-means.
pub fn sample_size(clusters: usize) -> usize {
    SAMPLE.max(SAMPLE_PER_CLUSTER * clusters)
}

/// The result of k-means: centres in the columns of a d × K matrix.
#[derive(Clone, Debug, Default)]
pub struct Clustering {
    /// The centres, d × K.
    pub centres: Matrix,
    /// The cluster of each point.
    pub labels: Vec<u32>,
    /// The cluster of the extra point.
    pub extra_label: u32,
    /// The sum of squared distances of the points from the centres of their clusters.
    pub inertia: f64,
}

/// At most `limit` present instances of a view, in increasing order: all of them, or a seeded sample.
pub fn sample(source: &dyn Source, view: usize, limit: usize, rng: &mut impl Rng) -> Vec<u32> {
    let shown = source.schema().view(view);
    if shown.is_complete() {
        return sample_instances(source, limit, rng);
    }
    let numbers = 0..crate::index::index(source.instances());
    thin(numbers.filter(|&i| shown.shows(i as usize)).collect(), limit, rng)
}

/// At most `limit` instances, in increasing order: all of them, or a seeded sample.
pub fn sample_instances(source: &dyn Source, limit: usize, rng: &mut impl Rng) -> Vec<u32> {
    let instances = source.instances();
    let all = crate::index::index(instances);
    if instances <= limit {
        return (0..all).collect();
    }
    // As `thin`, but returns only the positions that change. Most numbers stay in place and need not be stored.
    let mut moved: HashMap<usize, u32> = HashMap::with_capacity(limit);
    let mut chosen: Vec<u32> = Vec::with_capacity(limit);
    for i in 0..limit {
        let j = rng.random_range(i..instances);
        let here = moved.get(&i).copied().unwrap_or(crate::index::index(i));
        let there = if j == i { Some(here) } else { moved.insert(j, here) };
        chosen.push(there.unwrap_or(crate::index::index(j)));
    }
    chosen.sort_unstable();
    chosen
}

/// At most `limit` of the given numbers, in increasing order: all of them, or a seeded sample.
pub fn thin(mut numbers: Vec<u32>, limit: usize, rng: &mut impl Rng) -> Vec<u32> {
    if numbers.len() > limit {
        for i in 0..limit {
            let j = rng.random_range(i..numbers.len());
            numbers.swap(i, j);
        }
        numbers.truncate(limit);
        numbers.sort_unstable();
    }
    numbers
}

fn nearest(distances: &[f64]) -> (u32, f64) {
    let mut best = (0, f64::INFINITY);
    for (k, &distance) in (0..).zip(distances) {
        if distance < best.1 {
            best = (k, distance);
        }
    }
    best
}

/// The nearest centre of every instance of a view.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// [`MISSING`] for instances that are missing in the view.
    pub labels: Vec<u32>,
    /// `1 − d₁/d₂`, with the distances to the nearest and the second nearest centre.
    pub confidence: Vec<f64>,
}

/// The maximum number of Lloyd's iterations over all instances after k-means on a sample.
const REFINEMENTS: usize = 10;

/// K-means on the instances of view 0, or on a seeded sample of them: the centres (d × K) of each start, best first,
/// without duplicates.
pub fn candidates(scan: &Scan<'_>, scaled_view: &ScaledView, k_means: &KMeans<'_>) -> Result<Vec<Matrix>> {
    let mut rng = ChaCha8Rng::seed_from_u64(k_means.seed);
    rng.set_stream(u64::MAX);
    let chosen = sample(scan.source(), 0, sample_size(k_means.clusters), &mut rng);
    let mut buffer = Buffer::default();
    let block = scan.pick(0, &chosen, &mut buffer)?;
    let scaled_view = scaled_view.of_rows(&block, chosen.len());
    let points = Points::of(&scaled_view, block, 0..chosen.len());
    let mut runs =
        points.cluster_all(&KMeans { seed: k_means.seed.wrapping_sub(1), ..*k_means }, |_, _| true)?;
    runs.dedup_by(|b, a| b.inertia - a.inertia <= SAME * a.inertia);
    Ok(runs.into_iter().map(|run| run.centres).collect())
}

/// Two starts whose relative difference in inertia is smaller have found the same clusters.
const SAME: f64 = 1e-6;

/// The best of [`candidates`], refined on all instances if the candidates come from a sample.
pub fn centres(table: &impl Table, scaled_view: &ScaledView, k_means: &KMeans<'_>) -> Result<Matrix> {
    let mut centres = candidates(table.rows(), scaled_view, k_means)?.swap_remove(0);
    if table.instances() > sample_size(k_means.clusters) {
        let mut labels = Vec::new();
        for round in 0..REFINEMENTS {
            let step = LloydStep { scaled_view, centres: &centres, first: round == 0 };
            let (members, moved) = table.reduce(&step, &mut labels)?;
            members.sum(Members::default())?.move_centres(scaled_view, &mut centres);
            if round > 0 && moved * 1000 < table.instances() {
                break;
            }
        }
    }
    Ok(centres)
}

/// One of Lloyd's iterations: the sums over the members of each cluster, and the number of instances that changed their
/// cluster. The state is the cluster of each instance.
pub struct LloydStep<'a> {
    scaled_view: &'a ScaledView,
    centres: &'a Matrix,
    first: bool,
}

/// The request of [`LloydStep`].
#[derive(Serialize, Deserialize)]
pub struct LloydRequest {
    scaled_view: Parts,
    centres: Matrix,
    first: bool,
}

impl RowReduction for LloydStep<'_> {
    const NAME: &'static str = "lloyd-step";
    const KEEPS_STATE: bool = true;
    type Request = LloydRequest;
    type State = Vec<u32>;
    type Partial = (Forest<Members>, usize);

    fn local(&self, rows: &Scan<'_>, labels: &mut Vec<u32>) -> Result<Self::Partial> {
        if self.first {
            labels.clear();
        }
        lloyd_step(rows, self.scaled_view, self.centres, labels)
    }

    fn request(&self) -> LloydRequest {
        LloydRequest {
            scaled_view: self.scaled_view.parts(),
            centres: self.centres.clone(),
            first: self.first,
        }
    }

    fn answer(request: &LloydRequest, rows: &Scan<'_>, labels: &mut Vec<u32>) -> Result<Self::Partial> {
        let scaled_view = ScaledView::placed(rows, 0, &request.scaled_view)?;
        LloydStep { scaled_view: &scaled_view, centres: &request.centres, first: request.first }
            .local(rows, labels)
    }
}

fn lloyd_step(
    scan: &Scan<'_>,
    scaled_view: &ScaledView,
    centres: &Matrix,
    labels: &mut Vec<u32>,
) -> Result<(Forest<Members>, usize)> {
    let (d, count) = (centres.rows(), centres.columns());
    let nearest = Centres::new(scaled_view, centres);
    let before = std::mem::replace(labels, Vec::with_capacity(scan.instances()));
    let members = scan.sum_view(
        0,
        || (Members::new(count, d), Vec::new(), Scratch::default()),
        |piece, (members, labels, scratch)| {
            let (start, block) = (piece.instances.start, &piece.blocks[0]);
            labels.resize(piece.instances.len(), MISSING);
            nearest.compare(block, &piece.shown(), scratch, |at, label, _, _| {
                labels[at.0 - start] = label;
                members.add(scaled_view, block, at, label as usize);
            });
            Ok(())
        },
        || Members::new(count, d),
        |total, (members, own, _)| {
            total.absorb(members);
            labels.append(own);
        },
    )?;
    let moved = labels.iter().zip(&before).filter(|(a, b)| a != b).count();
    Ok((members, moved))
}

/// Assigns every instance of a view to its nearest centre.
pub fn assign(
    scan: &Scan<'_>,
    view: usize,
    scaled_view: &ScaledView,
    centres: &Matrix,
) -> Result<Assignment> {
    let nearest = Centres::new(scaled_view, centres);
    let mut all = Assignment {
        labels: Vec::with_capacity(scan.instances()),
        confidence: Vec::with_capacity(scan.instances()),
    };
    scan.pass_view(
        view,
        || (Vec::new(), Vec::new(), Scratch::default()),
        |piece, (labels, confidence, scratch)| {
            let start = piece.instances.start;
            labels.resize(piece.instances.len(), MISSING);
            confidence.resize(piece.instances.len(), 0.0);
            nearest.compare(&piece.blocks[0], &piece.shown(), scratch, |at, label, distance, distances| {
                labels[at.0 - start] = label;
                confidence[at.0 - start] = margin(distances, label, distance);
            });
            Ok(())
        },
        |(labels, confidence, _)| {
            all.labels.append(labels);
            all.confidence.append(confidence);
        },
    )?;
    Ok(all)
}

/// The mean (in a column of d × K) of the instances of each cluster in view 0, which is complete; zero for empty clusters.
pub fn means(scan: &Scan<'_>, scaled_view: &ScaledView, labels: &[usize], clusters: usize) -> Result<Matrix> {
    members(scan, scaled_view, labels, clusters)?
        .sum(Members::default())
        .map(|members| members.means(scaled_view, clusters))
}

/// The sums over the members of each cluster in view 0, which is complete, leaf by leaf.
pub fn members(
    scan: &Scan<'_>,
    scaled_view: &ScaledView,
    labels: &[usize],
    clusters: usize,
) -> Result<Forest<Members>> {
    scan.sum_view(
        0,
        || Members::new(clusters, scaled_view.features()),
        |piece, members| {
            piece
                .shown()
                .into_iter()
                .for_each(|at| members.add(scaled_view, &piece.blocks[0], at, labels[at.0]));
            Ok(())
        },
        || Members::new(clusters, scaled_view.features()),
        Members::absorb,
    )
}

/// Sums over the members of each cluster: of the stored values, of the row factors, and the sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Members {
    sums: Matrix,
    factors: Vec<f64>,
    counts: Vec<f64>,
}

impl Members {
    fn new(clusters: usize, features: usize) -> Self {
        let zeros = vec![0.0; clusters];
        Self { sums: Matrix::zeros(clusters, features), factors: zeros.clone(), counts: zeros }
    }

    /// Adds an instance to the sums of its cluster.
    fn add(&mut self, scaled_view: &ScaledView, block: &Block<'_>, at: (usize, usize), cluster: usize) {
        self.counts[cluster] += 1.0;
        self.factors[cluster] += scaled_view.full_factor(at.0);
        scaled_view.add_row(block, at, 1.0, self.sums.row_mut(cluster));
    }

    /// Adds the sums of a block, and clears them.
    fn absorb(&mut self, block: &mut Self) {
        fn add(into: &mut [f64], from: &mut [f64]) {
            into.iter_mut().zip(from).for_each(|(into, from)| *into += std::mem::take(from));
        }
        add(self.sums.values_mut(), block.sums.values_mut());
        add(&mut self.factors, &mut block.factors);
        add(&mut self.counts, &mut block.counts);
    }

    /// The mean of each cluster, in a column.
    pub fn means(&self, scaled_view: &ScaledView, clusters: usize) -> Matrix {
        let mut centres = Matrix::zeros(scaled_view.features(), clusters);
        self.move_centres(scaled_view, &mut centres);
        centres
    }

    /// Moves each centre to the mean of its members; an empty cluster keeps its centre.
    fn move_centres(&self, scaled_view: &ScaledView, centres: &mut Matrix) {
        let mut row = vec![0.0; centres.rows()];
        for k in (0..self.counts.len()).filter(|&k| self.counts[k] > 0.0) {
            row.copy_from_slice(self.sums.row(k));
            scaled_view.finish_row(self.factors[k], &mut row);
            for (f, value) in row.iter().enumerate() {
                centres[(f, k)] = value / self.counts[k];
            }
        }
    }
}

impl Merge for Members {
    fn merge(&mut self, mut right: Self) {
        self.absorb(&mut right);
    }
}

/// Centres to compare the rows of a view with.
pub struct Centres<'a> {
    scaled_view: &'a ScaledView,
    targets: Targets,
    from_centre: FromCentre<'a>,
}

impl<'a> Centres<'a> {
    /// Prepares centres (d × K) for the distances of scaled rows.
    pub fn new(scaled_view: &'a ScaledView, centres: &Matrix) -> Self {
        Self { scaled_view, targets: scaled_view.targets(centres), from_centre: scaled_view.measure() }
    }

    /// Calls `each(instance and row, the nearest centre, its squared distance, all squared distances)`.
    pub fn compare(
        &self,
        block: &Block<'_>,
        rows: &[(usize, usize)],
        scratch: &mut Scratch,
        mut each: impl FnMut((usize, usize), u32, f64, &[f64]),
    ) {
        let mut squares = Vec::with_capacity(TILE);
        for rows in rows.chunks(TILE) {
            self.from_centre.squares(block, rows, &mut squares);
            self.scaled_view.project_each(block, rows, &self.targets.operand, scratch, |i, products| {
                self.targets.distances(squares[i], products);
                let (label, distance) = nearest(products);
                each(rows[i], label, distance, products);
            });
        }
    }
}

/// The margin of an assignment, from 0 (the two nearest centres are equally near) to 1.
fn margin(distances: &[f64], label: u32, distance: f64) -> f64 {
    let others = distances.iter().enumerate().filter(|(k, _)| *k != label as usize);
    let second = others.map(|(_, &d)| d).fold(f64::INFINITY, f64::min);
    if second > 0.0 { 1.0 - (distance / second).sqrt() } else { 0.0 }
}

/// K-means on the rows of a matrix: the cluster of each row, and the centres in the columns of a d × K matrix.
///
/// # Errors
/// When a value is not finite.
pub fn of_rows(rows: &Matrix, clusters: usize, restarts: usize, seed: u64) -> Result<(Vec<usize>, Matrix)> {
    let rows = Views::of_matrix(rows)?;
    let rows = Scan::new(&rows, &Stop::default());
    let scaled_view = ScaledView::new(&rows, 0, Scaling::fit(&rows, 0, Scale::None)?)?;
    let k_means = KMeans { clusters, restarts, seed, first: None, stop: rows.stop() };
    let centres = centres(&rows, &scaled_view, &k_means)?;
    let labels = assign(&rows, 0, &scaled_view, &centres)?.labels;
    Ok((labels.into_iter().map(|label| label as usize).collect(), centres))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::ari;
    use crate::source::Rows;
    use crate::synthetic::Synthetic;
    use crate::{Error, Scale, Scaling, Stop, View, Views};

    /// `restarts` starts that are never stopped.
    fn k_means(clusters: usize, restarts: usize, seed: u64) -> KMeans<'static> {
        static NEVER: std::sync::LazyLock<Stop> = std::sync::LazyLock::new(Stop::new);
        KMeans { clusters, restarts, seed, first: None, stop: &NEVER }
    }

    const N: usize = 500;
    const D: usize = 12;

    /// Values in single precision with a common offset, and the same values in double precision.
    fn both(offset: f32) -> [Views<'static>; 2] {
        let data = Synthetic::new(N, 5).noise(1.0).seed(3);
        let plain = Views::new(vec![data.dense::<f32>("x", D).unwrap()]).unwrap();
        let mut buffer = Buffer::default();
        let Rows::DenseF32(values) = plain.block(0, 0..N, &mut buffer).unwrap().rows else {
            panic!("dense rows")
        };
        let single: Vec<f32> = values.iter().map(|value| value + offset).collect();
        let double: Vec<f64> = single.iter().map(|value| f64::from(*value)).collect();
        let view = |view: View<'static>| Views::new(vec![view]).unwrap();
        [view(View::dense("x", D, single).unwrap()), view(View::dense("x", D, double).unwrap())]
    }

    fn with_points<T>(source: &Views<'_>, scale: Scale, work: impl FnOnce(&Points<'_>) -> T) -> T {
        let scan = Scan::new(source, &Stop::default());
        let scaled_view = ScaledView::fit(&scan, 0, Scaling::fit(&scan, 0, scale).unwrap(), true).unwrap();
        let all: Vec<u32> = (0..crate::index::index(source.instances())).collect();
        let mut buffer = Buffer::default();
        work(&Points::new(&scan, 0, &scaled_view, &all, &mut buffer).unwrap())
    }

    #[test]
    fn an_offset_changes_no_clusters() {
        for scale in [Scale::None, Scale::Unit, Scale::ZScore] {
            for offset in [0.0, 100.0, 3000.0, 1e4, 1e6] {
                let [single, double] = both(offset).map(|source| {
                    with_points(&source, scale, |points| points.cluster(&k_means(5, 10, 1)).unwrap())
                });
                let labels =
                    |of: &Clustering| of.labels.iter().map(|&label| label as usize).collect::<Vec<_>>();
                let same = ari(&labels(&single), &labels(&double)).unwrap();
                assert!(same > 0.98, "{scale} at {offset}: {same}");
                let ratio = single.inertia / double.inertia;
                assert!((ratio - 1.0).abs() < 1e-3, "{scale} at {offset}: {ratio}");
            }
        }
    }

    #[test]
    fn the_best_start_is_that_of_all() {
        let [source, _] = both(0.0);
        with_points(&source, Scale::None, |points| {
            for clusters in [1, 3, 9, N + 3] {
                let all = points.cluster_all(&k_means(clusters, 8, 2), |_, _| true).unwrap();
                let best = points.cluster(&k_means(clusters, 8, 2)).unwrap();
                assert_eq!((&best.centres, &best.labels), (&all[0].centres, &all[0].labels));
                assert!(all.windows(2).all(|two| two[0].inertia <= two[1].inertia * (1.0 + SAME)));
            }
        });
    }

    #[test]
    fn a_sample_of_all_instances_is_that_of_their_numbers() {
        let source = Views::new(vec![View::dense("x", 1, vec![0.0; 1000]).unwrap()]).unwrap();
        for (seed, limit) in (0..).zip([0, 1, 10, 500, 999, 1000, 2000]) {
            let [mut rng, mut again] = [(); 2].map(|()| ChaCha8Rng::seed_from_u64(seed));
            let chosen = sample_instances(&source, limit, &mut rng);
            assert_eq!(chosen, thin((0..1000).collect(), limit, &mut again));
            assert_eq!(rng, again);
        }
    }

    #[test]
    fn no_point_is_an_error() {
        let [source, _] = both(0.0);
        let scan = Scan::new(&source, &Stop::default());
        let scaled_view =
            ScaledView::fit(&scan, 0, Scaling::fit(&scan, 0, Scale::None).unwrap(), true).unwrap();
        let mut buffer = Buffer::default();
        let points = Points::new(&scan, 0, &scaled_view, &[], &mut buffer).unwrap();
        assert!(matches!(points.cluster(&k_means(3, 2, 0)), Err(Error::EmptyInput { .. })));
    }
}
