//! Donors: the instances of a view, whose values fill in those that others lack.

use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;

use daimc_core::index::index;
use daimc_core::kernel::Scalar;
use daimc_core::schema::ViewOf;
use daimc_core::source::{Block, Rows};

/// The maximum number of donors; the cost is proportional to instances × donors.
pub(super) const MOST_DONORS: usize = 5000;

/// The instances of a view that `wanted` accepts, or a sample of at most this many, in increasing order.
pub(super) fn some_shown(
    view: ViewOf<'_>,
    instances: usize,
    most: usize,
    seed: u64,
    wanted: impl Fn(usize) -> bool,
) -> Vec<u32> {
    let all: Vec<u32> = (0..instances).filter(|&i| view.shows(i) && wanted(i)).map(index).collect();
    if all.len() <= most {
        return all;
    }
    let drawn = sample(&mut ChaCha8Rng::seed_from_u64(seed), all.len(), most);
    let mut some: Vec<u32> = drawn.iter().map(|at| all[at]).collect();
    some.sort_unstable();
    some
}

/// The rows of the donors in the view to be imputed, as given.
pub(super) struct Donors<'a> {
    /// In increasing order.
    pub instances: Vec<u32>,
    rows: Vec<usize>,
    block: Block<'a>,
    pub columns: Columns,
    /// The mean of each cluster: of the values and, if these were taken, of their logarithms.
    clusters: [Vec<Mean>; 2],
    labels: Vec<usize>,
}

/// Statistics of each feature.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// The number of donors with a value.
    pub observed: Vec<usize>,
    pub mean: Vec<f64>,
    /// The standard deviation; zero if unknown.
    pub deviation: Vec<f64>,
    pub low: Vec<f64>,
    pub high: Vec<f64>,
}

/// A weighted mean of rows, each feature over the rows that have it.
#[derive(Clone, Debug, Default)]
pub(super) struct Mean {
    sums: Vec<f64>,
    weights: Vec<f64>,
}

impl Mean {
    pub fn new(features: usize) -> Self {
        Self { sums: vec![0.0; features], weights: vec![0.0; features] }
    }

    pub fn clear(&mut self) {
        self.sums.fill(0.0);
        self.weights.fill(0.0);
    }

    /// The mean of a feature, or the exponential of the mean of its logarithms; `None` if no row had it.
    pub fn get(&self, feature: usize, logs: bool) -> Option<f64> {
        quotient(self.sums[feature], self.weights[feature], 0.0, logs)
    }

    /// Adds a dense row, or some of its features.
    fn dense<T: Scalar>(&mut self, row: &[T], weight: f64, logs: bool, some: Option<&[u32]>) {
        let add = |sum: &mut f64, total: &mut f64, x: f64| {
            if !x.is_nan() {
                *sum += weight * taken(x, logs);
                *total += weight;
            }
        };
        if let Some(some) = some {
            let some = some.iter().map(|&f| f as usize);
            return some.for_each(|f| add(&mut self.sums[f], &mut self.weights[f], row[f].to_f64()));
        }
        for ((sum, total), x) in self.sums.iter_mut().zip(&mut self.weights).zip(row) {
            add(sum, total, x.to_f64());
        }
    }

    /// Adds a sparse row, which has no missing cells.
    fn sparse<T: Scalar>(&mut self, (columns, values): (&[u32], &[T]), weight: f64, logs: bool) {
        self.weights.iter_mut().for_each(|total| *total += weight);
        for (&f, x) in columns.iter().zip(values) {
            self.sums[f as usize] += weight * taken(x.to_f64(), logs);
        }
    }
}

/// A value, or its logarithm.
fn taken(x: f64, log: bool) -> f64 {
    if log { x.ln_1p() } else { x }
}

/// A mean, or that of logarithms transformed back. A weight up to `none` is a rounding error of zero.
fn quotient(sum: f64, weight: f64, none: f64, logs: bool) -> Option<f64> {
    (weight > none).then(|| if logs { (sum / weight).exp_m1() } else { sum / weight })
}

impl Columns {
    /// The mean and the standard deviation of a feature without one of its values; `None` if the others do not vary.
    pub fn without(&self, feature: usize, x: f64) -> Option<(f64, f64)> {
        let (mean, deviation) = (self.mean[feature], self.deviation[feature]);
        let (n, others) = (self.observed[feature] as f64, self.observed[feature] as f64 - 1.0);
        let squares = n * deviation * deviation - (x - mean).powi(2) * n / others;
        let varies = others > 0.0 && squares > 1e-9 * n * deviation * deviation;
        varies.then(|| (mean + (mean - x) / others, (squares / others).sqrt()))
    }
}

impl<'a> Donors<'a> {
    /// The rows of these instances, whose clusters are `labels`. Means of logarithms are for views in which the fit took them.
    pub fn new(
        instances: Vec<u32>,
        block: Block<'a>,
        features: usize,
        labels: &[usize],
        clusters: usize,
        logs: bool,
    ) -> Self {
        let rows: Vec<usize> = (0..instances.len()).filter_map(|i| block.index.row(i)).collect();
        let labels: Vec<usize> = instances.iter().map(|&i| labels[i as usize]).collect();
        let mut donors = Self {
            instances,
            rows,
            block,
            columns: Columns::default(),
            clusters: [Vec::new(), Vec::new()],
            labels,
        };
        donors.columns = donors.look(features);
        for (logs, means) in [false, true].into_iter().take(1 + usize::from(logs)).zip(0..) {
            let share = donors.share();
            let mut own = vec![Mean::new(features); clusters];
            for (donor, &label) in donors.labels.iter().enumerate() {
                donors.add(donor, share, logs, None, &mut own[label]);
            }
            donors.clusters[means] = own;
        }
        donors
    }

    /// The weight of a donor in the mean of its cluster: sums of such shares do not overflow.
    fn share(&self) -> f64 {
        1.0 / self.rows.len().max(1) as f64
    }

    /// The index of an instance among the donors.
    pub fn place(&self, instance: usize) -> Option<usize> {
        self.instances.binary_search(&index(instance)).ok()
    }

    /// Adds the row of a donor, or the logarithms of its values, in all or some features.
    pub fn add(&self, donor: usize, weight: f64, logs: bool, some: Option<&[u32]>, mean: &mut Mean) {
        let row = self.rows[donor];
        let d = mean.sums.len();
        match self.block.rows {
            Rows::DenseF32(x) => mean.dense(&x[row * d..(row + 1) * d], weight, logs, some),
            Rows::DenseF64(x) => mean.dense(&x[row * d..(row + 1) * d], weight, logs, some),
            Rows::SparseF32(csr) => mean.sparse(csr.row(row), weight, logs),
            Rows::SparseF64(csr) => mean.sparse(csr.row(row), weight, logs),
        }
    }

    /// The mean of a feature in a cluster, without the row of one of the donors.
    pub fn cluster(&self, label: usize, without: Option<usize>, feature: usize, logs: bool) -> Option<f64> {
        let cluster = &self.clusters[usize::from(logs)][label];
        let (mut sum, mut weight) = (cluster.sums[feature], cluster.weights[feature]);
        let own = without.filter(|&donor| self.labels[donor] == label);
        if let Some(x) = own.map(|donor| self.value(donor, feature)).filter(|x| !x.is_nan()) {
            sum -= self.share() * taken(x, logs);
            weight -= self.share();
        }
        quotient(sum, weight, 0.5 * self.share(), logs)
    }

    /// A value of a donor; NaN if it is missing.
    fn value(&self, donor: usize, feature: usize) -> f64 {
        fn stored<T: Scalar>((columns, values): (&[u32], &[T]), feature: usize) -> f64 {
            columns.binary_search(&index(feature)).map_or(0.0, |at| values[at].to_f64())
        }
        let (row, d) = (self.rows[donor], self.columns.mean.len());
        match self.block.rows {
            Rows::DenseF32(x) => f64::from(x[row * d + feature]),
            Rows::DenseF64(x) => x[row * d + feature],
            Rows::SparseF32(csr) => stored(csr.row(row), feature),
            Rows::SparseF64(csr) => stored(csr.row(row), feature),
        }
    }

    /// Calls `each(feature, value)` for the stored values of a donor.
    fn each(&self, donor: usize, features: usize, mut each: impl FnMut(usize, f64)) {
        fn dense<T: Scalar>(row: &[T], mut each: impl FnMut(usize, f64)) {
            let there = row.iter().map(|x| x.to_f64()).enumerate().filter(|(_, x)| !x.is_nan());
            there.for_each(|(f, x)| each(f, x));
        }
        fn sparse<T: Scalar>((columns, values): (&[u32], &[T]), mut each: impl FnMut(usize, f64)) {
            columns.iter().zip(values).for_each(|(&f, x)| each(f as usize, x.to_f64()));
        }
        let row = self.rows[donor];
        let range = row * features..(row + 1) * features;
        match self.block.rows {
            Rows::DenseF32(x) => dense(&x[range], &mut each),
            Rows::DenseF64(x) => dense(&x[range], &mut each),
            Rows::SparseF32(csr) => sparse(csr.row(row), &mut each),
            Rows::SparseF64(csr) => sparse(csr.row(row), &mut each),
        }
    }

    fn look(&self, d: usize) -> Columns {
        let (n, share) = (self.rows.len(), self.share());
        let mut columns = Columns {
            observed: vec![0; d],
            mean: vec![0.0; d],
            deviation: vec![0.0; d],
            low: vec![f64::INFINITY; d],
            high: vec![f64::NEG_INFINITY; d],
        };
        let Columns { observed, mean, deviation, low, high } = &mut columns;
        for donor in 0..n {
            self.each(donor, d, |f, x| {
                observed[f] += 1;
                mean[f] += share * x;
                low[f] = low[f].min(x);
                high[f] = high[f].max(x);
            });
        }
        // Values that a sparse row does not store are zero.
        let mut zeros = vec![0; d];
        if matches!(self.block.rows, Rows::SparseF32(_) | Rows::SparseF64(_)) {
            for f in 0..d {
                zeros[f] = n - observed[f];
                observed[f] = n;
                if zeros[f] > 0 {
                    (low[f], high[f]) = (low[f].min(0.0), high[f].max(0.0));
                }
            }
        }
        for f in 0..d {
            mean[f] *= n as f64 / observed[f].max(1) as f64;
            deviation[f] = zeros[f] as f64 * mean[f].powi(2);
        }
        for donor in 0..n {
            self.each(donor, d, |f, x| deviation[f] += (x - mean[f]).powi(2));
        }
        for f in 0..d {
            let own = (deviation[f] / observed[f].max(1) as f64).sqrt();
            // In a constant feature, only rounding errors remain.
            let varies = own.is_finite() && own > 1e-12 * low[f].abs().max(high[f].abs());
            deviation[f] = if varies { own } else { 0.0 };
        }
        columns
    }
}
