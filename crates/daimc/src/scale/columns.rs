//! What a scaling needs to know of the features of a view.

use crate::Result;
use crate::kernel::Scalar;
use crate::parallel::{block_size, ordered};
use crate::source::{Buffer, Csr, Rows, Source};

/// Statistics of each feature over the present rows.
#[derive(Debug)]
pub(super) struct Columns {
    pub rows: f64,
    pub mean: Vec<f64>,
    pub deviation: Vec<f64>,
    pub min: Vec<f64>,
    pub max: Vec<f64>,
    /// In how many rows the feature is not zero.
    pub nonzero: Vec<f64>,
    /// Whether every value is a whole number and none is negative.
    pub counts: bool,
}

/// Sums over some rows, of the distances from a pilot value so that a large mean costs no digits.
#[derive(Clone, Default)]
struct Sums {
    rows: f64,
    sum: Vec<f64>,
    squares: Vec<f64>,
    min: Vec<f64>,
    max: Vec<f64>,
    nonzero: Vec<f64>,
    other: bool,
}

impl Sums {
    fn new(features: usize) -> Self {
        let zeros = || vec![0.0; features];
        Self {
            rows: 0.0,
            sum: zeros(),
            squares: zeros(),
            min: vec![f64::INFINITY; features],
            max: vec![f64::NEG_INFINITY; features],
            nonzero: zeros(),
            other: false,
        }
    }

    fn add_dense<T: Scalar>(&mut self, row: &[T], pilot: &[f64]) {
        self.rows += 1.0;
        let mut other = false;
        for (f, (&value, &pilot)) in row.iter().zip(pilot).enumerate() {
            let x = value.to_f64();
            let y = x - pilot;
            self.sum[f] += y;
            self.squares[f] += y * y;
            self.min[f] = self.min[f].min(x);
            self.max[f] = self.max[f].max(x);
            self.nonzero[f] += f64::from(u8::from(x != 0.0));
            other |= x < 0.0 || x.trunc() != x;
        }
        self.other |= other;
    }

    /// The zeros that are not stored are added by [`Sums::add_zeros`].
    fn add_sparse<T: Scalar>(&mut self, row: usize, csr: &Csr<'_, T>) {
        self.rows += 1.0;
        let (columns, values) = csr.row(row);
        for (&f, value) in columns.iter().zip(values) {
            let (f, x) = (f as usize, value.to_f64());
            self.sum[f] += x;
            self.squares[f] += x * x;
            self.min[f] = self.min[f].min(x);
            self.max[f] = self.max[f].max(x);
            self.nonzero[f] += f64::from(u8::from(x != 0.0));
            self.other |= x < 0.0 || x.trunc() != x;
        }
    }

    /// A feature that is zero in some row has zero within its range.
    fn add_zeros(&mut self) {
        for f in 0..self.sum.len() {
            if self.nonzero[f] < self.rows {
                self.min[f] = self.min[f].min(0.0);
                self.max[f] = self.max[f].max(0.0);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        fn each(into: &mut [f64], from: &[f64], combine: impl Fn(f64, f64) -> f64) {
            for (into, from) in into.iter_mut().zip(from) {
                *into = combine(*into, *from);
            }
        }
        self.rows += other.rows;
        each(&mut self.sum, &other.sum, |a, b| a + b);
        each(&mut self.squares, &other.squares, |a, b| a + b);
        each(&mut self.min, &other.min, f64::min);
        each(&mut self.max, &other.max, f64::max);
        each(&mut self.nonzero, &other.nonzero, |a, b| a + b);
        self.other |= other.other;
    }

    fn finish(self, pilot: &[f64]) -> Columns {
        let n = self.rows.max(1.0);
        let offsets: Vec<f64> = self.sum.iter().map(|sum| sum / n).collect();
        let variance = |(squares, offset): (&f64, &f64)| (squares / n - offset * offset).max(0.0);
        // A constant feature has no spread, whatever rounding says.
        let varies = self.min.iter().zip(&self.max).map(|(min, max)| min < max);
        let deviation = self.squares.iter().zip(&offsets).map(variance).zip(varies);
        Columns {
            rows: self.rows,
            deviation: deviation.map(|(v, varies)| if varies { v.sqrt() } else { 0.0 }).collect(),
            mean: offsets.iter().zip(pilot).map(|(offset, pilot)| offset + pilot).collect(),
            min: self.min,
            max: self.max,
            nonzero: self.nonzero,
            counts: !self.other,
        }
    }
}

impl Columns {
    /// One pass over the present rows of a view.
    pub(super) fn gather(source: &dyn Source, view: usize) -> Result<Self> {
        let (instances, features) = (source.instances(), source.features(view));
        let size = block_size(instances);
        let first = (0..instances).find(|&i| source.is_present(view, i)).unwrap_or(0);
        let mut pilot = vec![0.0; features];
        let mut buffer = Buffer::default();
        let block = source.block(view, first..first + 1, &mut buffer)?;
        let dense = match block.rows {
            Rows::DenseF32(x) => fill(&mut pilot, x, block.index.row(0)),
            Rows::DenseF64(x) => fill(&mut pilot, x, block.index.row(0)),
            Rows::SparseF32(_) | Rows::SparseF64(_) => false,
        };
        let mut total = Sums::new(features);
        let gather = |start: usize, sums: &mut Sums, buffer: &mut Buffer| -> Result<()> {
            let range = start..(start + size).min(instances);
            let block = source.block(view, range.clone(), buffer)?;
            let rows = (0..range.len()).filter_map(|i| block.index.row(i));
            match block.rows {
                Rows::DenseF32(x) => {
                    rows.for_each(|r| sums.add_dense(&x[r * features..][..features], &pilot));
                }
                Rows::DenseF64(x) => {
                    rows.for_each(|r| sums.add_dense(&x[r * features..][..features], &pilot));
                }
                Rows::SparseF32(csr) => rows.for_each(|r| sums.add_sparse(r, &csr)),
                Rows::SparseF64(csr) => rows.for_each(|r| sums.add_sparse(r, &csr)),
            }
            Ok(())
        };
        if dense {
            ordered(
                (0..instances).step_by(size),
                || (Sums::new(features), Buffer::default()),
                |start, (sums, buffer)| {
                    *sums = Sums::new(features);
                    gather(start, sums, buffer)
                },
                |(sums, _)| total.merge(sums),
            )?;
        } else {
            // Adding up d numbers per block would cost more than the few values that a block stores.
            for start in (0..instances).step_by(size) {
                gather(start, &mut total, &mut buffer)?;
            }
            total.add_zeros();
        }
        Ok(total.finish(&pilot))
    }
}

/// Takes a row as the pilot; returns that rows are dense.
fn fill<T: Scalar>(pilot: &mut [f64], values: &[T], row: Option<usize>) -> bool {
    if let Some(row) = row {
        let d = pilot.len();
        for (pilot, value) in pilot.iter_mut().zip(&values[row * d..(row + 1) * d]) {
            *pilot = value.to_f64();
        }
    }
    true
}
