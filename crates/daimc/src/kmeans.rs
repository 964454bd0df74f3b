//! K-means on the rows of a view, or of V: k-means++ starts, several of them, with repair of empty clusters.
//! Rows are seen through a [`Lens`], so scaled data are clustered without being written, sparse rows as they are.

use std::sync::{Mutex, PoisonError};

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::lens::{FromCentre, Lens, Scratch, Targets};
use crate::scan::Scan;
use crate::source::{Block, Buffer, MISSING, Source};
use crate::{Error, Matrix, Result};

/// Rows whose distances are computed together.
const TILE: usize = 128;

/// Rows that k-means looks at; of more it takes a seeded sample.
const SAMPLE: usize = 4000;
const SAMPLE_PER_CLUSTER: usize = 100;

/// How many rows k-means looks at, at most.
pub(crate) fn sample_size(clusters: usize) -> usize {
    SAMPLE.max(SAMPLE_PER_CLUSTER * clusters)
}

/// Iterations of one start, and the relative gain below which it stops.
const MOST_ITERATIONS: usize = 100;
const SMALLEST_GAIN: f64 = 1e-4;

/// The points to be clustered: some instances of a view.
pub(crate) struct Points<'a> {
    pub lens: &'a Lens,
    pub block: Block<'a>,
    /// Instance and row of each point.
    pub rows: Vec<(usize, usize)>,
    /// Their squared distances from the centre of the lens, or from the origin if it has none.
    pub squares: Vec<f64>,
    /// One more point, given by its scaled values, that counts as often as its weight says.
    extra: Option<Extra>,
}

struct Extra {
    row: Vec<f64>,
    weight: f64,
}

/// What k-means found: centres in the columns of a d × K matrix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clustering {
    pub centres: Matrix,
    /// The cluster of each point.
    pub labels: Vec<u32>,
    /// The cluster of the extra point.
    pub extra_label: u32,
    pub inertia: f64,
}

/// At most `limit` present instances of a view, in increasing order: all of them, or a seeded sample.
pub(crate) fn sample(source: &dyn Source, view: usize, limit: usize, rng: &mut impl Rng) -> Vec<u32> {
    let numbers = 0..crate::views::index(source.instances());
    thin(numbers.filter(|&i| source.is_present(view, i as usize)).collect(), limit, rng)
}

/// At most `limit` instances, in increasing order: all of them, or a seeded sample.
pub(crate) fn sample_instances(source: &dyn Source, limit: usize, rng: &mut impl Rng) -> Vec<u32> {
    thin((0..crate::views::index(source.instances())).collect(), limit, rng)
}

fn thin(mut numbers: Vec<u32>, limit: usize, rng: &mut impl Rng) -> Vec<u32> {
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

impl<'a> Points<'a> {
    /// The given instances of a view, all of which must be present.
    pub fn new(
        scan: &'a Scan<'_>,
        view: usize,
        lens: &'a Lens,
        instances: &[u32],
        buffer: &'a mut Buffer,
    ) -> Result<Self> {
        let block = scan.pick(view, instances, buffer)?;
        let row = |(i, &instance): (usize, &u32)| Some((instance as usize, block.index.row(i)?));
        let rows: Vec<(usize, usize)> = instances.iter().enumerate().filter_map(row).collect();
        let from_centre = lens.measure();
        let squares = rows.iter().map(|&at| from_centre.square(&block, at)).collect();
        Ok(Self { lens, block, rows, squares, extra: None })
    }

    /// The mean of the points.
    pub fn mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.lens.features()];
        let weight = 1.0 / self.rows.len().max(1) as f64;
        let mut factors = 0.0;
        for &at in &self.rows {
            self.lens.add_row(&self.block, at, weight, &mut mean);
            factors += weight * self.lens.full_factor(at.0);
        }
        self.lens.finish_row(factors, &mut mean);
        mean
    }

    /// Adds a point that counts `weight` times.
    pub fn with_extra(mut self, row: Vec<f64>, weight: f64) -> Self {
        self.extra = Some(Extra { row, weight });
        self
    }

    fn len(&self) -> usize {
        self.rows.len() + usize::from(self.extra.is_some())
    }

    fn weight(&self, i: usize) -> f64 {
        if i < self.rows.len() { 1.0 } else { self.extra.as_ref().map_or(0.0, |extra| extra.weight) }
    }

    /// The scaled values of a point.
    pub fn values(&self, i: usize) -> Vec<f64> {
        let Some(&at) = self.rows.get(i) else {
            return self.extra.as_ref().map(|extra| extra.row.clone()).unwrap_or_default();
        };
        self.lens.values(&self.block, at)
    }

    /// Calls `visit(i, squared distances of point i to the columns of centres)` for every point.
    fn distances(&self, centres: &Matrix, scratch: &mut Scratch, mut visit: impl FnMut(usize, &[f64])) {
        let targets = self.lens.targets(centres);
        for start in (0..self.rows.len()).step_by(TILE) {
            let rows = &self.rows[start..(start + TILE).min(self.rows.len())];
            self.lens.project_each(&self.block, rows, &targets.operand, scratch, |i, products| {
                targets.distances(self.squares[start + i], products);
                visit(start + i, products);
            });
        }
        if let Some(extra) = &self.extra {
            let mut distances = vec![0.0; centres.columns()];
            for (x, centre) in extra.row.iter().zip(centres.iter_rows()) {
                distances.iter_mut().zip(centre).for_each(|(distance, c)| *distance += (x - c).powi(2));
            }
            visit(self.rows.len(), &distances);
        }
    }

    /// Clusters the points: the best of `starts` starts.
    ///
    /// # Errors
    /// When there is no point.
    pub fn cluster(&self, clusters: usize, starts: usize, seed: u64) -> Result<Clustering> {
        let found = self.cluster_all(clusters, starts, seed, |best, run| run <= best + SAME * best)?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Clusters the points from each of `starts` starts, at least one, best first. Start s draws from stream s of the
    /// seed. Given the inertia of the best so far, `keep` says of that of another whether it is still of interest: the
    /// centres of many starts in a wide view are much memory.
    ///
    /// # Errors
    /// When there is no point.
    pub fn cluster_all(
        &self,
        clusters: usize,
        starts: usize,
        seed: u64,
        keep: impl Fn(f64, f64) -> bool + Sync,
    ) -> Result<Vec<Clustering>> {
        if self.len() == 0 {
            return Err(Error::EmptyInput { what: "k-means".into() });
        }
        let distinct = clusters.min(self.len()).max(1);
        let runs = Mutex::new(Vec::<(usize, Clustering)>::new());
        let best = |runs: &[(usize, Clustering)]| {
            runs.iter().map(|(_, run)| run.inertia).fold(f64::INFINITY, f64::min)
        };
        (0..starts.max(1)).into_par_iter().with_max_len(1).for_each(|stream| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(stream as u64);
            let mut room = Scratch::default();
            let centres = self.seeds(distinct, &mut rng, &mut room);
            let run = self.lloyd(centres, &mut room);
            let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.push((stream, run));
            let best = best(&runs);
            runs.retain(|(_, run)| run.inertia == best || keep(best, run.inertia));
        });
        let mut runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
        runs.sort_by_key(|(stream, _)| *stream);
        // Starts that found the same clusters differ by rounding only: the earliest of them comes first.
        let best = best(&runs);
        let inertia = |run: &Clustering| if run.inertia - best <= SAME * best { best } else { run.inertia };
        runs.sort_by(|(_, a), (_, b)| inertia(a).total_cmp(&inertia(b)));
        let mut runs: Vec<Clustering> = runs.into_iter().map(|(_, run)| run).collect();
        if distinct < clusters {
            // Fewer points than clusters: the others sit at the mean and have no members.
            let mean = self.mean();
            for run in &mut runs {
                let centre = |f: usize, k: usize| if k < distinct { run.centres[(f, k)] } else { mean[f] };
                run.centres = Matrix::from_fn(mean.len(), clusters, centre);
            }
        }
        Ok(runs)
    }

    /// Greedy k-means++: each new centre is the best of a few points, drawn in proportion to their squared
    /// distance from the nearest centre so far.
    fn seeds(&self, clusters: usize, rng: &mut impl Rng, room: &mut Scratch) -> Matrix {
        let candidates = 2 + (clusters as f64).ln() as usize;
        let mut nearest = vec![f64::INFINITY; self.len()];
        let mut chosen: Vec<Vec<f64>> = Vec::with_capacity(clusters);
        let mut trial: Vec<Vec<f64>> = vec![Vec::new(); candidates];
        while chosen.len() < clusters {
            let first = chosen.is_empty();
            let mass = |i: usize| if first { self.weight(i) } else { self.weight(i) * nearest[i] };
            let total: f64 = (0..self.len()).map(mass).sum();
            let draws = if first { 1 } else { candidates };
            let mut targets: Vec<f64> = (0..draws).map(|_| rng.random::<f64>() * total).collect();
            targets.sort_unstable_by(f64::total_cmp);
            let picked = draw(&targets, self.len(), mass, rng);
            let rows: Vec<Vec<f64>> = picked.iter().map(|&i| self.values(i)).collect();
            let matrix = Matrix::from_fn(self.lens.features(), draws, |f, c| rows[c][f]);
            trial.iter_mut().for_each(Vec::clear);
            let mut potential = vec![0.0; draws];
            self.distances(&matrix, room, |i, distances| {
                for (c, distance) in distances.iter().enumerate() {
                    let distance = distance.min(nearest[i]);
                    potential[c] += self.weight(i) * distance;
                    trial[c].push(distance);
                }
            });
            let best = (0..draws).min_by(|&a, &b| potential[a].total_cmp(&potential[b])).unwrap_or(0);
            nearest.copy_from_slice(&trial[best]);
            chosen.push(rows.into_iter().nth(best).unwrap_or_default());
        }
        Matrix::from_fn(self.lens.features(), clusters, |f, c| chosen[c][f])
    }

    /// Lloyd's iterations. Sums are kept and changed only by the points that move.
    fn lloyd(&self, mut centres: Matrix, room: &mut Scratch) -> Clustering {
        let (count, d) = (centres.columns(), centres.rows());
        let mut labels = vec![MISSING; self.len()];
        let mut own = vec![0.0; self.len()];
        let mut sums = Sums::new(count, d, self.extra.is_some());
        let mut inertia = f64::INFINITY;
        for _ in 0..MOST_ITERATIONS {
            let mut now = 0.0;
            let mut moved: Vec<(usize, u32)> = Vec::new();
            self.distances(&centres, room, |i, distances| {
                let (label, distance) = nearest(distances);
                own[i] = distance;
                now += self.weight(i) * distance;
                if labels[i] != label {
                    moved.push((i, label));
                }
            });
            let stable = moved.is_empty();
            for (i, label) in moved {
                self.move_point(i, labels[i], label, &mut sums);
                labels[i] = label;
            }
            let repaired = self.repair(&mut labels, &mut own, &mut sums);
            let settled = inertia - now <= SMALLEST_GAIN * now;
            inertia = now;
            if !repaired && (stable || settled) {
                break;
            }
            self.centres(&sums, &mut centres);
        }
        let extra_label = if self.extra.is_some() { labels.pop().unwrap_or(0) } else { 0 };
        Clustering { centres, labels, extra_label, inertia }
    }

    /// Gives every empty cluster the point that is farthest from its centre.
    fn repair(&self, labels: &mut [u32], own: &mut [f64], sums: &mut Sums) -> bool {
        let mut repaired = false;
        for cluster in 0..sums.counts.len() {
            if sums.counts[cluster] > 0.0 {
                continue;
            }
            let movable = |&i: &usize| sums.counts[labels[i] as usize] > self.weight(i) && own[i] > 0.0;
            let farthest = (0..labels.len()).filter(movable).max_by(|&a, &b| own[a].total_cmp(&own[b]));
            let Some(i) = farthest else { continue };
            let label = u32::try_from(cluster).unwrap_or(0);
            self.move_point(i, labels[i], label, sums);
            labels[i] = label;
            own[i] = 0.0;
            repaired = true;
        }
        repaired
    }

    fn move_point(&self, i: usize, from: u32, to: u32, sums: &mut Sums) {
        for (label, sign) in [(from, -1.0), (to, 1.0)] {
            if label == MISSING {
                continue;
            }
            let weight = sign * self.weight(i);
            let k = label as usize;
            sums.counts[k] += weight;
            if let Some(&at) = self.rows.get(i) {
                sums.factors[k] += weight * self.lens.full_factor(at.0);
                self.lens.add_row(&self.block, at, weight, sums.values.row_mut(k));
            } else if let Some(extra) = &self.extra {
                let row = sums.extra.row_mut(k).iter_mut().zip(&extra.row);
                row.for_each(|(sum, x)| *sum += weight * x);
            }
        }
    }

    /// The mean of each cluster; one without points keeps its centre. Feature by feature, since a wide view has many.
    fn centres(&self, sums: &Sums, centres: &mut Matrix) {
        for f in 0..centres.rows() {
            for (k, centre) in
                centres.row_mut(f).iter_mut().enumerate().filter(|(k, _)| sums.counts[*k] > 0.0)
            {
                let mut value = self.lens.finish(f, sums.factors[k], sums.values[(k, f)]);
                if self.extra.is_some() {
                    value += sums.extra[(k, f)];
                }
                *centre = value / sums.counts[k];
            }
        }
    }
}

/// Sums over the points of each cluster: of the values as stored, of the row factors, of the extra point.
struct Sums {
    values: Matrix,
    extra: Matrix,
    factors: Vec<f64>,
    counts: Vec<f64>,
}

impl Sums {
    fn new(count: usize, features: usize, extra: bool) -> Self {
        Self {
            values: Matrix::zeros(count, features),
            extra: Matrix::zeros(if extra { count } else { 0 }, features),
            factors: vec![0.0; count],
            counts: vec![0.0; count],
        }
    }
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

/// For each of the increasing targets, the first index where the running sum of `mass` exceeds it. If all mass is
/// zero, any index.
fn draw(targets: &[f64], count: usize, mass: impl Fn(usize) -> f64, rng: &mut impl Rng) -> Vec<usize> {
    let mut picked = Vec::with_capacity(targets.len());
    let mut sum = 0.0;
    for i in 0..count {
        sum += mass(i);
        while picked.len() < targets.len() && targets[picked.len()] < sum {
            picked.push(i);
        }
    }
    while picked.len() < targets.len() {
        picked.push(rng.random_range(0..count));
    }
    picked
}

/// The nearest centre of every instance of a view.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    /// [`MISSING`] where the view does not show the instance.
    pub labels: Vec<u32>,
    /// `1 − d₁/d₂`, the distances to the nearest and the second nearest centre.
    pub confidence: Vec<f64>,
}

/// Lloyd's iterations over all instances after k-means on a sample, at most.
const REFINEMENTS: usize = 10;

/// K-means on the instances of view 0, or on a seeded sample of them: the centres (d × K) that each start led to, best
/// first, those that are the same but once.
pub(crate) fn candidates(
    scan: &Scan<'_>,
    lens: &Lens,
    clusters: usize,
    starts: usize,
    seed: u64,
) -> Result<Vec<Matrix>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::MAX);
    let chosen = sample(scan.source(), 0, sample_size(clusters), &mut rng);
    let mut buffer = Buffer::default();
    let points = Points::new(scan, 0, lens, &chosen, &mut buffer)?;
    let mut runs = points.cluster_all(clusters, starts, seed.wrapping_sub(1), |_, _| true)?;
    runs.dedup_by(|b, a| b.inertia - a.inertia <= SAME * a.inertia);
    Ok(runs.into_iter().map(|run| run.centres).collect())
}

/// Two starts whose inertia differs by less than this share have found the same clusters.
const SAME: f64 = 1e-6;

/// The best of [`candidates`]; if they saw but a sample, refined on all instances.
pub(crate) fn centres(
    scan: &Scan<'_>,
    lens: &Lens,
    clusters: usize,
    starts: usize,
    seed: u64,
) -> Result<Matrix> {
    let mut centres = candidates(scan, lens, clusters, starts, seed)?.swap_remove(0);
    if scan.instances() > sample_size(clusters) {
        let mut labels = Vec::new();
        for _ in 0..REFINEMENTS {
            let before = std::mem::take(&mut labels);
            let pass = pass(scan, 0, lens, &centres, true)?;
            pass.move_centres(lens, &mut centres);
            labels = pass.labels;
            let moved = labels.iter().zip(&before).filter(|(a, b)| a != b).count();
            if !before.is_empty() && moved * 1000 < labels.len() {
                break;
            }
        }
    }
    Ok(centres)
}

/// Assigns every instance of a view to its nearest centre.
pub(crate) fn assign(scan: &Scan<'_>, view: usize, lens: &Lens, centres: &Matrix) -> Result<Assignment> {
    let Pass { labels, confidence, .. } = pass(scan, view, lens, centres, false)?;
    Ok(Assignment { labels, confidence })
}

/// The mean (in a column of d × K) of the instances of each cluster in view 0, which shows all; zero where there are none.
pub(crate) fn means(scan: &Scan<'_>, lens: &Lens, labels: &[usize], clusters: usize) -> Result<Matrix> {
    let mut total = Pass::new(clusters, lens.features(), true);
    scan.pass_view(
        0,
        || Pass::new(clusters, lens.features(), true),
        |piece, pass| {
            piece.shown().into_iter().for_each(|at| pass.add(lens, &piece.blocks[0], at, labels[at.0]));
            Ok(())
        },
        |pass| total.absorb(pass),
    )?;
    let mut centres = Matrix::zeros(lens.features(), clusters);
    total.move_centres(lens, &mut centres);
    Ok(centres)
}

/// What is known after the instances (all of them, or a block) have been compared with the centres.
#[derive(Default)]
struct Pass {
    labels: Vec<u32>,
    confidence: Vec<f64>,
    /// Of each cluster: Σ of the values as stored, of the row factors, and the number of members.
    sums: Matrix,
    factors: Vec<f64>,
    counts: Vec<f64>,
}

impl Pass {
    fn new(clusters: usize, features: usize, sum: bool) -> Self {
        let clusters = if sum { clusters } else { 0 };
        Self {
            sums: Matrix::zeros(clusters, features),
            factors: vec![0.0; clusters],
            counts: vec![0.0; clusters],
            ..Self::default()
        }
    }

    /// Adds an instance to the sums of its cluster.
    fn add(&mut self, lens: &Lens, block: &Block<'_>, at: (usize, usize), cluster: usize) {
        self.counts[cluster] += 1.0;
        self.factors[cluster] += lens.full_factor(at.0);
        lens.add_row(block, at, 1.0, self.sums.row_mut(cluster));
    }

    /// Takes over what a block has found, and clears it.
    fn absorb(&mut self, block: &mut Self) {
        fn add(into: &mut [f64], from: &mut [f64]) {
            into.iter_mut().zip(from).for_each(|(into, from)| *into += std::mem::take(from));
        }
        self.labels.append(&mut block.labels);
        self.confidence.append(&mut block.confidence);
        add(self.sums.values_mut(), block.sums.values_mut());
        add(&mut self.factors, &mut block.factors);
        add(&mut self.counts, &mut block.counts);
    }

    /// Moves each centre to the mean of its members; one without members stays.
    fn move_centres(&self, lens: &Lens, centres: &mut Matrix) {
        let mut row = vec![0.0; centres.rows()];
        for k in (0..self.counts.len()).filter(|&k| self.counts[k] > 0.0) {
            row.copy_from_slice(self.sums.row(k));
            lens.finish_row(self.factors[k], &mut row);
            for (f, value) in row.iter().enumerate() {
                centres[(f, k)] = value / self.counts[k];
            }
        }
    }
}

/// Centres that the rows of a view are compared with.
pub(crate) struct Centres<'a> {
    lens: &'a Lens,
    targets: Targets,
    from_centre: FromCentre<'a>,
}

impl<'a> Centres<'a> {
    pub fn new(lens: &'a Lens, centres: &Matrix) -> Self {
        Self { lens, targets: lens.targets(centres), from_centre: lens.measure() }
    }

    /// Calls `each(instance and row, the nearest centre, its squared distance, all squared distances)`.
    pub fn compare(
        &self,
        block: &Block<'_>,
        rows: &[(usize, usize)],
        scratch: &mut Scratch,
        mut each: impl FnMut((usize, usize), u32, f64, &[f64]),
    ) {
        for rows in rows.chunks(TILE) {
            self.lens.project_each(block, rows, &self.targets.operand, scratch, |i, products| {
                let at = rows[i];
                self.targets.distances(self.from_centre.square(block, at), products);
                let (label, distance) = nearest(products);
                each(at, label, distance, products);
            });
        }
    }
}

/// Compares every instance of a view with the centres, block by block; with `sum` the members of each cluster are
/// added up, without it the confidence is worked out.
fn pass(scan: &Scan<'_>, view: usize, lens: &Lens, centres: &Matrix, sum: bool) -> Result<Pass> {
    let (instances, d, count) = (scan.instances(), centres.rows(), centres.columns());
    let centres = Centres::new(lens, centres);
    let mut total = Pass::new(count, d, sum);
    total.labels.reserve_exact(instances);
    total.confidence.reserve_exact(if sum { 0 } else { instances });
    scan.pass_view(
        view,
        || (Pass::new(count, d, sum), Scratch::default()),
        |piece, (pass, scratch)| {
            let start = piece.instances.start;
            pass.labels.resize(piece.instances.len(), MISSING);
            pass.confidence.resize(if sum { 0 } else { piece.instances.len() }, 0.0);
            let block = &piece.blocks[0];
            centres.compare(block, &piece.shown(), scratch, |at, label, distance, distances| {
                pass.labels[at.0 - start] = label;
                if sum {
                    pass.add(lens, block, at, label as usize);
                } else {
                    pass.confidence[at.0 - start] = margin(distances, label, distance);
                }
            });
            Ok(())
        },
        |(pass, _)| total.absorb(pass),
    )?;
    Ok(total)
}

/// How clear the choice of a cluster is, from 0 (two are equally near) to 1.
fn margin(distances: &[f64], label: u32, distance: f64) -> f64 {
    let others = distances.iter().enumerate().filter(|(k, _)| *k != label as usize);
    let second = others.map(|(_, &d)| d).fold(f64::INFINITY, f64::min);
    if second > 0.0 { 1.0 - (distance / second).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::ari;
    use crate::scale::{Scale, Scaling};
    use crate::source::Rows;
    use crate::synthetic::Synthetic;
    use crate::{Stop, View, Views};

    const N: usize = 500;
    const D: usize = 12;

    /// Values of single precision with an offset that all share, and the same values in double precision.
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
        let scan = Scan::new(source, &Stop::new());
        let lens = Lens::fit(&scan, 0, Scaling::fit(&scan, 0, scale).unwrap(), true).unwrap();
        let all: Vec<u32> = (0..crate::views::index(source.instances())).collect();
        let mut buffer = Buffer::default();
        work(&Points::new(&scan, 0, &lens, &all, &mut buffer).unwrap())
    }

    #[test]
    fn an_offset_changes_no_clusters() {
        for scale in [Scale::None, Scale::Unit, Scale::ZScore] {
            for offset in [0.0, 100.0, 3000.0, 1e4, 1e6] {
                let [single, double] = both(offset)
                    .map(|source| with_points(&source, scale, |points| points.cluster(5, 10, 1).unwrap()));
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
                let all = points.cluster_all(clusters, 8, 2, |_, _| true).unwrap();
                let best = points.cluster(clusters, 8, 2).unwrap();
                assert_eq!((&best.centres, &best.labels), (&all[0].centres, &all[0].labels));
                assert!(all.windows(2).all(|two| two[0].inertia <= two[1].inertia * (1.0 + SAME)));
            }
        });
    }

    #[test]
    fn no_point_is_an_error() {
        let [source, _] = both(0.0);
        let scan = Scan::new(&source, &Stop::new());
        let lens = Lens::fit(&scan, 0, Scaling::fit(&scan, 0, Scale::None).unwrap(), true).unwrap();
        let mut buffer = Buffer::default();
        let points = Points::new(&scan, 0, &lens, &[], &mut buffer).unwrap();
        assert!(matches!(points.cluster(3, 2, 0), Err(Error::EmptyInput { .. })));
    }
}
