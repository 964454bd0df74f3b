//! Scaling is folded into the products; here scaled data are computed and the results compared.

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Error, Fit, Matrix, Preset, Scale, Scaling, Solver, View, Views, metrics, simulate};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::made::{compressed, difference};

const APPLIED: [Scale; 7] = [
    Scale::None,
    Scale::Unit,
    Scale::MinMax,
    Scale::MinMaxUnit,
    Scale::ZScore,
    Scale::ZScoreUnit,
    Scale::TfIdf,
];

/// Rows with named columns of features, some of them missing.
#[derive(Clone)]
struct Rows {
    features: usize,
    values: Vec<f64>,
    present: Vec<bool>,
}

impl Rows {
    /// Rows around the centres of clusters; `value` computes a feature from a number around zero.
    fn around(truth: &[usize], features: usize, seed: u64, value: impl Fn(usize, f64) -> f64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let clusters = truth.iter().max().unwrap() + 1;
        let centres: Vec<f64> = (0..clusters * features).map(|_| rng.random_range(-1.0..1.0)).collect();
        let at = |i: usize| centres[truth[i / features] * features + i % features];
        let values = (0..truth.len() * features).map(|i| at(i) + rng.random_range(-0.4..0.4));
        let values = values.enumerate().map(|(i, x)| value(i % features, x)).collect();
        Self { features, values, present: vec![true; truth.len()] }
    }

    /// Word counts, mostly zero; each cluster has its own words.
    fn counts(truth: &[usize], features: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let clusters = truth.iter().max().unwrap() + 1;
        let value = |i: usize| {
            let own = i % features % clusters == truth[i / features];
            let here = rng.random::<f64>() < if own { 0.35 } else { 0.04 };
            if here { f64::from(rng.random_range(1..5_u8)) } else { 0.0 }
        };
        let values = (0..truth.len() * features).map(value).collect();
        Self { features, values, present: vec![true; truth.len()] }
    }

    /// The same rows, some of them missing, with values that must not be read.
    fn missing(mut self, present: &[bool]) -> Self {
        self.present = present.to_vec();
        for (row, &present) in self.values.chunks_mut(self.features).zip(present) {
            if !present {
                row.fill(1e12);
            }
        }
        self
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.features..(i + 1) * self.features]
    }

    fn seen(&self) -> impl Iterator<Item = &[f64]> {
        let rows = self.values.chunks(self.features).zip(&self.present);
        rows.filter(|(_, present)| **present).map(|(row, _)| row)
    }

    fn column(&self, f: usize) -> Vec<f64> {
        self.seen().map(|row| row[f]).collect()
    }

    fn dense(&self, name: &str) -> View<'static> {
        View::dense(name, self.features, self.values.clone()).unwrap().mask(&self.present).unwrap()
    }

    fn dense_f32(&self, name: &str) -> View<'static> {
        let values: Vec<f32> = self.values.iter().map(|&value| value as f32).collect();
        View::dense(name, self.features, values).unwrap().mask(&self.present).unwrap()
    }

    fn sparse(&self, name: &str) -> View<'static> {
        let (offsets, columns, values) = compressed(self.features, &self.values);
        View::sparse(name, self.features, offsets, columns, values).unwrap().mask(&self.present).unwrap()
    }

    fn sparse_f32(&self, name: &str) -> View<'static> {
        let (offsets, columns, values) = compressed(self.features, &self.values);
        let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        View::sparse(name, self.features, offsets, columns, values).unwrap().mask(&self.present).unwrap()
    }

    /// The rows rounded to single precision.
    fn rounded(mut self) -> Self {
        self.values.iter_mut().for_each(|value| *value = f64::from(*value as f32));
        self
    }

    /// Some of the rows.
    fn some(&self, instances: impl Iterator<Item = usize>) -> Self {
        let mut some = Self { features: self.features, values: Vec::new(), present: Vec::new() };
        for i in instances {
            some.values.extend_from_slice(self.row(i));
            some.present.push(self.present[i]);
        }
        some
    }
}

/// The definition of each scale, from the present rows.
struct Naive {
    shift: Vec<f64>,
    factor: Vec<f64>,
    unit: bool,
}

impl Naive {
    fn fit(scale: Scale, rows: &Rows) -> Self {
        let d = rows.features;
        let n = rows.seen().count() as f64;
        let mut naive = Self { shift: vec![0.0; d], factor: vec![1.0; d], unit: false };
        let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { 0.0 };
        for f in 0..d {
            let column = rows.column(f);
            let low = column.iter().copied().fold(f64::INFINITY, f64::min);
            let high = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = low + column.iter().map(|x| x - low).sum::<f64>() / n;
            let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            let with = column.iter().filter(|x| **x != 0.0).count() as f64;
            match scale {
                Scale::MinMax | Scale::MinMaxUnit => {
                    (naive.shift[f], naive.factor[f]) = (low, inverse(high - low));
                }
                Scale::ZScore | Scale::ZScoreUnit => {
                    (naive.shift[f], naive.factor[f]) = (mean, inverse(variance.sqrt()));
                }
                Scale::TfIdf => naive.factor[f] = ((1.0 + n) / (1.0 + with)).ln() + 1.0,
                _ => {}
            }
        }
        naive.unit = matches!(scale, Scale::Unit | Scale::MinMaxUnit | Scale::ZScoreUnit | Scale::TfIdf);
        naive
    }

    fn apply(&self, rows: &Rows) -> Rows {
        let mut scaled = rows.clone();
        for row in scaled.values.chunks_mut(rows.features) {
            for (f, x) in row.iter_mut().enumerate() {
                *x = (*x - self.shift[f]) * self.factor[f];
            }
            let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            if self.unit && length > 0.0 {
                row.iter_mut().for_each(|x| *x /= length);
            }
        }
        scaled
    }
}

fn start(truth: &[usize], latent: usize) -> Matrix {
    let mut rng = ChaCha8Rng::seed_from_u64(77);
    Matrix::from_fn(truth.len(), latent, |i, k| {
        rng.random_range(0.1..0.3) + f64::from(u8::from(truth[i] == k))
    })
}

fn truth(n: usize) -> Vec<usize> {
    Synthetic::new(n, 3).seed(5).truth()
}

/// A published fit from a given start, independent of k-means.
fn given(truth: &[usize], scale: Scale, equal: bool) -> Daimc {
    let daimc = Daimc::new(3).preset(Preset::Paper).start(start(truth, 3)).max_iterations(10).tolerance(0.0);
    daimc.scale(scale).equal_weight(equal)
}

fn fit(daimc: &Daimc, views: Vec<View<'static>>) -> Fit {
    daimc.fit(&Views::new(views).unwrap()).unwrap()
}

/// Two views of the same clusters with a third of the instances missing: features in different units, and word counts.
fn data(truth: &[usize]) -> [Rows; 2] {
    let present = simulate::missing(truth.len(), &[0.3, 0.3], 2).unwrap();
    let units = |f: usize, x: f64| [0.01, 0.1, 1.0, 10.0][f % 4] * (x + 0.5 * f as f64);
    let first = Rows::around(truth, 8, 1, units).missing(&present[0]);
    [first, Rows::counts(truth, 20, 2).missing(&present[1])]
}

mod choice;
mod definition;
mod log;
mod new_data;
mod top;
