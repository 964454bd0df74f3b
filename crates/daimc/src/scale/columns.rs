//! What a scaling needs to know of the features of a view.

use crate::Result;
use crate::kernel::Scalar;
use crate::lens::{Touched, power_near};
use crate::scan::Scan;
use crate::source::{Block, Buffer, Csr, Rows};

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

/// What values are measured by: a power of two for each feature, so that squares stay in the range of numbers, and a
/// pilot value in that unit, so that a large mean costs no digits.
struct Measure {
    /// One over the unit.
    per_unit: Vec<f64>,
    pilot: Vec<f64>,
}

/// Spreads whose squares, and many of them together, are in the range of numbers as they are.
const ORDINARY: std::ops::RangeInclusive<f64> = 1e-140..=1e140;

/// Sums over some rows, of the distances from the pilot.
#[derive(Clone, Default)]
struct ColumnSums {
    rows: f64,
    sum: Vec<f64>,
    squares: Vec<f64>,
    min: Vec<f64>,
    max: Vec<f64>,
    nonzero: Vec<f64>,
    other: bool,
}

impl ColumnSums {
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

    fn add_dense<T: Scalar>(&mut self, row: &[T], Measure { per_unit, pilot }: &Measure) {
        self.rows += 1.0;
        let mut other = false;
        for (f, ((&value, &pilot), &per_unit)) in row.iter().zip(pilot).zip(per_unit).enumerate() {
            let x = value.to_f64();
            let y = x * per_unit - pilot;
            self.sum[f] += y;
            self.squares[f] += y * y;
            self.min[f] = self.min[f].min(x);
            self.max[f] = self.max[f].max(x);
            self.nonzero[f] += f64::from(u8::from(x != 0.0));
            other |= x < 0.0 || x.trunc() != x;
        }
        self.other |= other;
    }

    /// The zeros that are not stored are added by [`ColumnSums::add_zeros`].
    fn add_sparse<T: Scalar>(&mut self, row: usize, csr: &Csr<'_, T>, per_unit: &[f64]) {
        self.rows += 1.0;
        let (columns, values) = csr.row(row);
        for (&f, value) in columns.iter().zip(values) {
            let (f, x) = (f as usize, value.to_f64());
            let y = x * per_unit[f];
            self.sum[f] += y;
            self.squares[f] += y * y;
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

    /// What to measure features by whose squares have left the range of numbers; `None` if there are no such.
    fn units(&self) -> Option<Vec<f64>> {
        let unit = |(min, max): (&f64, &f64)| match max - min {
            spread if spread == 0.0 || ORDINARY.contains(&spread) => 1.0,
            spread if spread.is_finite() => power_near(spread),
            _ => power_near(max.max(-min)),
        };
        let units: Vec<f64> = self.min.iter().zip(&self.max).map(unit).collect();
        units.iter().any(|unit| *unit != 1.0).then_some(units)
    }

    fn finish(self, Measure { per_unit, pilot }: &Measure) -> Columns {
        let n = self.rows.max(1.0);
        let offsets: Vec<f64> = self.sum.iter().map(|sum| sum / n).collect();
        let variance = |(squares, offset): (&f64, &f64)| (squares / n - offset * offset).max(0.0);
        // A constant feature has no spread, whatever rounding says.
        let varies = self.min.iter().zip(&self.max).map(|(min, max)| min < max);
        let deviation = self.squares.iter().zip(&offsets).map(variance).zip(varies);
        let deviation = deviation.map(|(v, varies)| if varies { v.sqrt() } else { 0.0 });
        let mean = offsets.iter().zip(pilot).map(|(offset, pilot)| offset + pilot);
        Columns {
            rows: self.rows,
            deviation: deviation.zip(per_unit).map(|(deviation, per_unit)| deviation / per_unit).collect(),
            mean: mean.zip(per_unit).map(|(mean, per_unit)| mean / per_unit).collect(),
            min: self.min,
            max: self.max,
            nonzero: self.nonzero,
            counts: !self.other,
        }
    }
}

impl Columns {
    /// One pass over the present rows of a view; a second one where values are so large or so small that their squares
    /// leave the range of numbers.
    pub(super) fn gather(scan: &Scan<'_>, view: usize) -> Result<Self> {
        let (instances, schema) = (scan.instances(), scan.schema().view(view));
        let features = schema.features();
        let first = (0..instances).find(|&i| schema.shows(i)).unwrap_or(0);
        let mut measure = Measure { per_unit: vec![1.0; features], pilot: vec![0.0; features] };
        let mut buffer = Buffer::default();
        let block = scan.read(view, first..(first + 1).min(instances), &mut buffer)?;
        match block.rows {
            Rows::DenseF32(x) => fill(&mut measure.pilot, x, block.index.row(0)),
            Rows::DenseF64(x) => fill(&mut measure.pilot, x, block.index.row(0)),
            Rows::SparseF32(_) | Rows::SparseF64(_) => {}
        }
        let mut sums = ColumnSums::of(scan, view, &measure)?;
        if let Some(units) = sums.units() {
            measure.per_unit = units.iter().map(|unit| unit.recip()).collect();
            measure.pilot.iter_mut().zip(&units).for_each(|(pilot, unit)| *pilot /= unit);
            sums = ColumnSums::of(scan, view, &measure)?;
        }
        Ok(sums.finish(&measure))
    }
}

impl ColumnSums {
    /// The sums over all present rows of a view.
    fn of(scan: &Scan<'_>, view: usize, measure: &Measure) -> Result<Self> {
        let schema = scan.schema().view(view);
        let (features, dense) = (schema.features(), schema.layout().is_dense());
        let new = || (Self::new(features), (!dense).then(|| Touched::new(features)));
        let mut total = Self::new(features);
        scan.pass_view(
            view,
            new,
            |piece, (sums, touched)| {
                sums.gather(&piece.blocks[0], piece.instances.len(), measure, touched.as_mut());
                Ok(())
            },
            |(sums, touched)| total.absorb(sums, touched.as_mut()),
        )?;
        if !dense {
            total.add_zeros();
        }
        Ok(total)
    }

    /// Adds the rows of a block.
    fn gather(
        &mut self,
        block: &Block<'_>,
        count: usize,
        measure: &Measure,
        mut touched: Option<&mut Touched>,
    ) {
        let d = self.sum.len();
        let rows = (0..count).filter_map(|i| block.index.row(i));
        let mut mark = |columns: &[u32]| {
            if let Some(touched) = &mut touched {
                touched.mark(columns);
            }
        };
        match block.rows {
            Rows::DenseF32(x) => rows.for_each(|r| self.add_dense(&x[r * d..][..d], measure)),
            Rows::DenseF64(x) => rows.for_each(|r| self.add_dense(&x[r * d..][..d], measure)),
            Rows::SparseF32(csr) => rows.for_each(|r| {
                mark(csr.row(r).0);
                self.add_sparse(r, &csr, &measure.per_unit);
            }),
            Rows::SparseF64(csr) => rows.for_each(|r| {
                mark(csr.row(r).0);
                self.add_sparse(r, &csr, &measure.per_unit);
            }),
        }
    }

    /// Takes over the sums of a block and clears them: those of every feature, or of those that the block has touched.
    fn absorb(&mut self, block: &mut Self, touched: Option<&mut Touched>) {
        let features = self.sum.len();
        self.rows += std::mem::take(&mut block.rows);
        self.other |= std::mem::take(&mut block.other);
        let mut take = |f: usize| {
            self.sum[f] += std::mem::take(&mut block.sum[f]);
            self.squares[f] += std::mem::take(&mut block.squares[f]);
            self.nonzero[f] += std::mem::take(&mut block.nonzero[f]);
            self.min[f] = self.min[f].min(std::mem::replace(&mut block.min[f], f64::INFINITY));
            self.max[f] = self.max[f].max(std::mem::replace(&mut block.max[f], f64::NEG_INFINITY));
        };
        match touched {
            None => (0..features).for_each(take),
            Some(touched) => touched.drain(&mut take),
        }
    }
}

/// Takes a row as the pilot.
fn fill<T: Scalar>(pilot: &mut [f64], values: &[T], row: Option<usize>) {
    if let Some(row) = row {
        let d = pilot.len();
        for (pilot, value) in pilot.iter_mut().zip(&values[row * d..(row + 1) * d]) {
            *pilot = value.to_f64();
        }
    }
}
