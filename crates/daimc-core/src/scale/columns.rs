//! Statistics of features that scalings need.

use std::array::from_fn;

use pulp::{Arch, Simd, WithSimd};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::forest::{Forest, Merge};
use crate::kernel::{Scalar, is_finite};
use crate::prepared::logarithm;
use crate::scaled_view::{Touched, power_near};
use crate::scan::{Piece, Scan};
use crate::source::{Buffer, Csr, Rows};
use crate::table::{RowReduction, Table};

/// Statistics of each feature over the present rows, without missing cells. All are zero for a feature without values.
#[derive(Debug)]
pub(super) struct Columns {
    /// The number of values of each feature.
    pub observed: Vec<f64>,
    /// The number of instances with missing cells.
    pub partial: usize,
    /// Instances in which all cells are missing.
    pub empty: Vec<u32>,
    pub mean: Vec<f64>,
    pub deviation: Vec<f64>,
    pub min: Vec<f64>,
    pub max: Vec<f64>,
    /// The number of rows in which the feature is not zero.
    pub nonzero: Vec<f64>,
    /// Whether all values are non-negative integers.
    pub counts: bool,
    /// Features that the fit ignores; empty: none.
    left_out: Vec<bool>,
}

impl Columns {
    /// Keeps the `count` features with the largest variance; in case of ties the first ones. The others are treated as
    /// constant.
    pub fn keep(&mut self, top: usize) {
        let mut order: Vec<usize> = (0..self.deviation.len()).collect();
        order.sort_by(|&a, &b| self.deviation[b].total_cmp(&self.deviation[a]));
        let out = order.split_off(top.min(order.len()));
        self.left_out.resize(self.deviation.len(), false);
        for f in out {
            self.left_out[f] = true;
            self.deviation[f] = 0.0;
        }
    }

    /// Whether a feature is ignored or has no values.
    pub fn leaves_out(&self, feature: usize) -> bool {
        self.observed[feature] == 0.0 || self.left_out.get(feature).copied().unwrap_or(false)
    }
}

/// The origin and unit of measurement of each feature: a power of two that keeps squares in range, and a pilot value in
/// that unit, so that a large mean costs no precision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measure {
    /// The reciprocal of the unit.
    per_unit: Vec<f64>,
    pilot: Vec<f64>,
    /// Whether logarithms of the values are measured.
    log: bool,
}

/// Spreads whose squares, and sums of many of them, are in range.
const ORDINARY: std::ops::RangeInclusive<f64> = 1e-140..=1e140;

/// Sums over some rows of the differences from the pilot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnSums {
    rows: f64,
    sum: Vec<f64>,
    squares: Vec<f64>,
    min: Vec<f64>,
    max: Vec<f64>,
    nonzero: Vec<f64>,
    other: bool,
    /// Missing cells; empty as long as there are none.
    missing: Vec<f64>,
    partial: usize,
    empty: Vec<u32>,
    /// Scratch memory for the logarithms of a row.
    #[serde(skip)]
    logs: Vec<f64>,
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
            missing: Vec::new(),
            partial: 0,
            empty: Vec::new(),
            logs: Vec::new(),
        }
    }

    /// Adds a row that may have missing cells.
    fn add_observed<T: Scalar>(&mut self, instance: usize, row: &[T], measure: &Measure) {
        let missing = row.iter().filter(|value| value.to_f64().is_nan()).count();
        if missing == row.len() {
            self.empty.push(crate::index::index(instance));
            return;
        }
        self.rows += 1.0;
        self.partial += usize::from(missing > 0);
        self.missing.resize(row.len(), 0.0);
        for (f, &value) in row.iter().enumerate() {
            if value.to_f64().is_nan() {
                self.missing[f] += 1.0;
                continue;
            }
            let x = if measure.log { logarithm(value) } else { value }.to_f64();
            self.add(f, x, x * measure.per_unit[f] - measure.pilot[f]);
        }
    }

    /// The number of values of a feature.
    fn observed(&self, feature: usize) -> f64 {
        self.rows - self.missing.get(feature).copied().unwrap_or(0.0)
    }

    /// Adds the dense rows of some instances, `(instance, row)`; `first` is the number of the first instance of the part.
    fn add_dense<T: Scalar>(
        &mut self,
        x: &[T],
        shown: &[(usize, usize)],
        first: usize,
        measure: &Measure,
        whole: bool,
    ) {
        let d = self.sum.len();
        let row = |at: &(usize, usize)| &x[at.1 * d..][..d];
        let is_whole = |at: &(usize, usize)| whole || is_finite(row(at));
        // In order, with several complete rows at a time.
        let mut rest = shown;
        while let Some(at) = rest.first() {
            let count = rest.iter().take(TOGETHER).take_while(|at| is_whole(at)).count();
            if count == 0 {
                self.add_observed(first + at.0, row(at), measure);
            } else {
                let rows: [&[T]; TOGETHER] = from_fn(|i| row(&rest[i.min(count - 1)]));
                self.add_whole(&rows[..count], measure);
            }
            rest = &rest[count.max(1)..];
        }
    }

    /// Adds complete rows, at most [`TOGETHER`].
    fn add_whole<T: Scalar>(&mut self, rows: &[&[T]], measure: &Measure) {
        if measure.log {
            let mut logs = std::mem::take(&mut self.logs);
            for row in rows {
                logs.clear();
                logs.extend(row.iter().map(|&value| logarithm(value).to_f64()));
                Arch::new().dispatch(AddRows { sums: self, rows: &[&logs], measure });
            }
            self.logs = logs;
        } else {
            Arch::new().dispatch(AddRows { sums: self, rows, measure });
        }
    }

    /// Adds the values of `N` features from `at` on, row by row.
    #[inline(always)]
    fn add_features<T: Scalar, const N: usize>(&mut self, rows: &[&[T]], at: usize, measure: &Measure) {
        let own = at..at + N;
        let of = |all: &[f64]| -> [f64; N] { from_fn(|i| all[own.clone()][i]) };
        let (per_unit, pilot) = (of(&measure.per_unit), of(&measure.pilot));
        let (mut sum, mut squares, mut nonzero) = (of(&self.sum), of(&self.squares), of(&self.nonzero));
        let (mut min, mut max) = (of(&self.min), of(&self.max));
        for row in rows {
            let row = &row[own.clone()];
            for i in 0..N {
                let x = row[i].to_f64();
                let y = x * per_unit[i] - pilot[i];
                sum[i] += y;
                squares[i] += y * y;
                min[i] = if x < min[i] { x } else { min[i] };
                max[i] = if x > max[i] { x } else { max[i] };
                nonzero[i] += if x == 0.0 { 0.0 } else { 1.0 };
            }
        }
        self.sum[own.clone()].copy_from_slice(&sum);
        self.squares[own.clone()].copy_from_slice(&squares);
        self.nonzero[own.clone()].copy_from_slice(&nonzero);
        self.min[own.clone()].copy_from_slice(&min);
        self.max[own].copy_from_slice(&max);
    }

    /// The zeros that are not stored are added by [`ColumnSums::add_zeros`].
    fn add_sparse<T: Scalar>(
        &mut self,
        csr: Csr<'_, T>,
        row: usize,
        measure: &Measure,
        touched: Option<&mut Touched>,
    ) {
        self.rows += 1.0;
        let (columns, values) = csr.row(row);
        if let Some(touched) = touched {
            touched.mark(columns);
        }
        for (&f, &value) in columns.iter().zip(values) {
            let x = if measure.log { logarithm(value) } else { value }.to_f64();
            self.add(f as usize, x, x * measure.per_unit[f as usize]);
        }
    }

    /// Adds a value by its difference from the pilot in the unit of the feature.
    fn add(&mut self, f: usize, x: f64, y: f64) {
        self.sum[f] += y;
        self.squares[f] += y * y;
        self.min[f] = self.min[f].min(x);
        self.max[f] = self.max[f].max(x);
        self.nonzero[f] += f64::from(u8::from(x != 0.0));
        self.other |= is_no_count(x);
    }

    /// If a feature is zero in some row, its range includes zero.
    fn add_zeros(&mut self) {
        for f in 0..self.sum.len() {
            if self.nonzero[f] < self.rows {
                self.min[f] = self.min[f].min(0.0);
                self.max[f] = self.max[f].max(0.0);
            }
        }
    }

    /// New units for features whose squares overflow or underflow; `None` if there are none.
    fn units(&self) -> Option<Vec<f64>> {
        let unit = |(min, max): (&f64, &f64)| match max - min {
            spread if spread == 0.0 || ORDINARY.contains(&spread) => 1.0,
            spread if spread.is_finite() => power_near(spread),
            _ => power_near(max.max(-min)),
        };
        let units: Vec<f64> = self.min.iter().zip(&self.max).map(unit).collect();
        units.iter().any(|unit| *unit != 1.0).then_some(units)
    }

    fn finish(mut self, Measure { per_unit, pilot, .. }: &Measure) -> Columns {
        let features = self.sum.len();
        let observed: Vec<f64> = (0..features).map(|f| self.observed(f)).collect();
        for f in (0..features).filter(|&f| observed[f] == 0.0) {
            (self.min[f], self.max[f]) = (0.0, 0.0);
        }
        let (mut mean, mut deviation) = (Vec::with_capacity(features), Vec::with_capacity(features));
        for f in 0..features {
            let n = observed[f].max(1.0);
            let offset = self.sum[f] / n;
            let variance = (self.squares[f] / n - offset * offset).max(0.0);
            // A constant feature has no spread, whatever rounding errors suggest.
            let varies = self.min[f] < self.max[f];
            deviation.push(if varies { variance.sqrt() } else { 0.0 } / per_unit[f]);
            mean.push(if observed[f] == 0.0 { 0.0 } else { (offset + pilot[f]) / per_unit[f] });
        }
        Columns {
            observed,
            partial: self.partial,
            empty: self.empty,
            deviation,
            mean,
            min: self.min,
            max: self.max,
            nonzero: self.nonzero,
            counts: !self.other,
            left_out: Vec::new(),
        }
    }
}

impl Columns {
    /// One pass over the present rows of a view; a second one if squares of values overflow or underflow. The
    /// statistics are those of the values or of their logarithms.
    pub(super) fn gather(table: &impl Table, view: usize, log: bool) -> Result<Self> {
        let (instances, schema) = (table.instances(), table.schema().view(view));
        let features = schema.features();
        let first = (0..instances).find(|&i| schema.shows(i)).unwrap_or(0);
        let mut measure = Measure { per_unit: vec![1.0; features], pilot: vec![f64::NAN; features], log };
        // Features that are missing in the first row take their pilot from later rows.
        for count in [1, table.rows().blocks().size()] {
            let mut buffer = Buffer::default();
            let range = first..(first + count).min(instances);
            let block = table.read(view, range.clone(), &mut buffer)?;
            let rows = (0..range.len()).filter_map(|i| block.index.row(i));
            match block.rows {
                Rows::DenseF32(x) => rows.for_each(|row| fill(&mut measure, &x[row * features..])),
                Rows::DenseF64(x) => rows.for_each(|row| fill(&mut measure, &x[row * features..])),
                Rows::SparseF32(_) | Rows::SparseF64(_) => break,
            }
            if measure.pilot.iter().all(|pilot| !pilot.is_nan()) {
                break;
            }
        }
        measure.pilot.iter_mut().filter(|pilot| pilot.is_nan()).for_each(|pilot| *pilot = 0.0);
        let mut sums = ColumnSums::of(table, view, &measure)?;
        if let Some(units) = sums.units() {
            measure.per_unit = units.iter().map(|unit| unit.recip()).collect();
            measure.pilot.iter_mut().zip(&units).for_each(|(pilot, unit)| *pilot /= unit);
            sums = ColumnSums::of(table, view, &measure)?;
        }
        Ok(sums.finish(&measure))
    }
}

/// Sums over the values of each feature of a view.
pub struct SumColumns<'m> {
    view: usize,
    measure: &'m Measure,
}

impl RowReduction for SumColumns<'_> {
    const NAME: &'static str = "sum-columns";
    type Request = (usize, Measure);
    type State = ();
    type Partial = Forest<ColumnSums>;

    fn local(&self, rows: &Scan<'_>, _: &mut ()) -> Result<Self::Partial> {
        ColumnSums::share(rows, self.view, self.measure)
    }

    fn request(&self) -> Self::Request {
        (self.view, self.measure.clone())
    }

    fn answer((view, measure): &Self::Request, rows: &Scan<'_>, state: &mut ()) -> Result<Self::Partial> {
        SumColumns { view: *view, measure }.local(rows, state)
    }
}

impl ColumnSums {
    /// The sums over all present rows of a view.
    fn of(table: &impl Table, view: usize, measure: &Measure) -> Result<Self> {
        let shares = table.reduce(&SumColumns { view, measure }, &mut ())?;
        let schema = table.schema().view(view);
        let mut total = shares.sum(Self::new(schema.features()))?;
        if !schema.layout().is_dense() {
            total.add_zeros();
        }
        Ok(total)
    }

    /// The sums over the present rows of a scan, leaf by leaf.
    fn share(scan: &Scan<'_>, view: usize, measure: &Measure) -> Result<Forest<Self>> {
        let schema = scan.schema().view(view);
        let (features, dense) = (schema.features(), schema.layout().is_dense());
        let new = || (Self::new(features), (!dense).then(|| Touched::new(features)));
        let whole = schema.missing_cells() == Some(0);
        scan.sum_view(
            view,
            new,
            |piece, (sums, touched)| {
                sums.gather(&piece, scan.blocks().first(), measure, whole, touched.as_mut());
                Ok(())
            },
            || Self::new(features),
            |total, (sums, touched)| total.absorb(sums, touched.as_mut()),
        )
    }

    /// Adds the rows of a block; `first` is the number of the first instance of the part. `whole` means that no cell is
    /// missing.
    fn gather(
        &mut self,
        piece: &Piece<'_>,
        first: usize,
        measure: &Measure,
        whole: bool,
        mut touched: Option<&mut Touched>,
    ) {
        let shown = piece.shown();
        let rows = shown.iter().map(|at| at.1);
        match piece.blocks[0].rows {
            Rows::DenseF32(x) => self.add_dense(x, &shown, first, measure, whole),
            Rows::DenseF64(x) => self.add_dense(x, &shown, first, measure, whole),
            Rows::SparseF32(csr) => {
                rows.for_each(|row| self.add_sparse(csr, row, measure, touched.as_deref_mut()));
            }
            Rows::SparseF64(csr) => {
                rows.for_each(|row| self.add_sparse(csr, row, measure, touched.as_deref_mut()));
            }
        }
    }

    /// Adds the sums of a block and clears them: those of all features, or of those that the block has touched.
    fn absorb(&mut self, block: &mut Self, touched: Option<&mut Touched>) {
        let features = self.sum.len();
        self.rows += std::mem::take(&mut block.rows);
        self.other |= std::mem::take(&mut block.other);
        self.partial += std::mem::take(&mut block.partial);
        self.empty.append(&mut block.empty);
        self.missing.resize(self.missing.len().max(block.missing.len()), 0.0);
        let missing = self.missing.iter_mut().zip(&mut block.missing);
        missing.for_each(|(all, own)| *all += std::mem::take(own));
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

impl Merge for ColumnSums {
    fn merge(&mut self, mut right: Self) {
        self.absorb(&mut right, None);
    }
}

/// Rows that are added together, so that the sums of a feature are read and written once for all of them.
const TOGETHER: usize = 4;

/// Features whose sums are kept in registers.
const LANES: usize = 16;

/// Adds complete rows.
struct AddRows<'a, T> {
    sums: &'a mut ColumnSums,
    rows: &'a [&'a [T]],
    measure: &'a Measure,
}

impl<T: Scalar> WithSimd for AddRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sums, rows, measure } = self;
        sums.rows += rows.len() as f64;
        // Once a value is not a count, the result is known.
        sums.other = sums.other || rows.iter().any(|row| row.iter().any(|value| is_no_count(value.to_f64())));
        let d = sums.sum.len();
        let whole = d / LANES * LANES;
        (0..whole).step_by(LANES).for_each(|at| sums.add_features::<T, LANES>(rows, at, measure));
        (whole..d).for_each(|at| sums.add_features::<T, 1>(rows, at, measure));
    }
}

/// Whether a value is negative or not an integer.
#[inline(always)]
fn is_no_count(x: f64) -> bool {
    x < 0.0 || x.trunc() != x
}

/// Sets missing pilot values from a row.
fn fill<T: Scalar>(measure: &mut Measure, row: &[T]) {
    let Measure { pilot, log, .. } = measure;
    for (pilot, value) in pilot.iter_mut().zip(row).filter(|(pilot, _)| pilot.is_nan()) {
        *pilot = if *log { logarithm(*value) } else { *value }.to_f64();
    }
}
