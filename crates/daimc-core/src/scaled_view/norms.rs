//! Properties of all scaled rows of a view, which are computed before any product.

use pulp::{Arch, Simd, WithSimd};
use serde::{Deserialize, Serialize};

use super::holes::Extent;
use super::{FromCentre, ScaledView, power_near, reciprocal};
use crate::forest::{Forest, Merge};
use crate::scaling::Scaling;
use crate::scan::{Piece, Scan};
use crate::source::{Block, Buffer};
use crate::table::{RowReduction, Table};
use crate::{Layout, Result};

/// Norms of the rows of a block, of a leaf or of the whole view.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Norms {
    /// `Σ ‖x'‖²`, without missing cells.
    pub(crate) squares: Squares,
    /// The number of rows; one with missing cells counts by its observed fraction.
    pub shown: f64,
    /// `Σ ‖x' − μ‖²`.
    pub(crate) from_centre: Squares,
    /// The largest and the smallest nonzero length of a stored row.
    pub(crate) largest: f64,
    pub(crate) smallest: f64,
    /// The shortest nonzero row after scaling.
    shortest: f64,
    /// The first row that is not finite, or whose products would overflow; the first row whose square overflows.
    refused: Option<usize>,
    too_long: Option<usize>,
    pub(crate) bytes: usize,
    pub(crate) lacks_cells: bool,
    /// If rows are scaled to length 1: the number of nonzero rows, and the sum of their lengths before.
    pub lengths: (f64, f64),
}

/// The properties of a [`ScaledView`] that follow from the rows of its view but do not grow with the instances.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parts {
    scaling: Scaling,
    by_row: bool,
    centre: Vec<f64>,
    lacks_cells: bool,
}

impl Parts {
    /// A scaled view without rows.
    fn of(&self, layout: Layout, features: usize) -> ScaledView {
        ScaledView {
            by_row: self.by_row,
            centre: self.centre.clone(),
            lacks_cells: self.lacks_cells,
            ..ScaledView::blank(self.scaling.clone(), layout, features)
        }
    }
}

/// Rows longer than these limits, scaled and stored, are reported.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// After scaling.
    pub scaled: f64,
    /// As stored.
    pub stored: f64,
}

impl Norms {
    /// No rows.
    pub fn new() -> Self {
        Self { smallest: f64::INFINITY, shortest: f64::INFINITY, ..Self::default() }
    }

    fn absorb(&mut self, other: &Self) {
        self.squares.absorb(&other.squares);
        self.shown += other.shown;
        self.from_centre.absorb(&other.from_centre);
        self.largest = self.largest.max(other.largest);
        self.smallest = self.smallest.min(other.smallest);
        self.shortest = self.shortest.min(other.shortest);
        self.refused = self.refused.or(other.refused);
        self.too_long = self.too_long.or(other.too_long);
        self.bytes += other.bytes;
        self.lacks_cells |= other.lacks_cells;
        self.lengths.0 += other.lengths.0;
        self.lengths.1 += other.lengths.1;
    }

    /// The row that prevents the fit, if there is one. If a weight will bring rows into range, long rows are harmless
    /// unless others would underflow.
    pub fn refused(&self, any_length: bool) -> Option<usize> {
        let vanishing = self.shortest < self.squares.root() * f64::MIN_POSITIVE.sqrt();
        let too_long = self.too_long.filter(|_| !any_length || vanishing);
        let sum = (!any_length && !self.squares.value(1.0).is_finite()).then_some(0);
        self.refused.or(too_long).or(sum)
    }
}

impl Merge for Norms {
    fn merge(&mut self, right: Self) {
        self.absorb(&right);
    }
}

/// A sum of squares, `sum · unit²` with a power of two, which is valid even if the squares overflow or underflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Squares {
    sum: f64,
    /// Zero: nothing has been added yet.
    unit: f64,
}

/// Magnitudes whose squares, and sums of many of them, are in range.
const ORDINARY: std::ops::RangeInclusive<f64> = 1e-140..=1e140;

impl Squares {
    /// Adds the square of a non-negative number.
    pub fn add(&mut self, value: f64) {
        if value > 0.0 {
            self.raise(if ORDINARY.contains(&value) { 1.0 } else { power_near(value) });
            self.sum += (value / self.unit).powi(2);
        }
    }

    fn absorb(&mut self, other: &Self) {
        if other.unit > 0.0 {
            self.raise(other.unit);
            self.sum += other.sum * (other.unit / self.unit).powi(2);
        }
    }

    /// Increases the unit: numbers that are too small for it are negligible.
    fn raise(&mut self, unit: f64) {
        if unit > self.unit {
            self.sum *= (self.unit / unit).powi(2);
            self.unit = unit;
        }
    }

    /// The square root of the sum.
    pub fn root(&self) -> f64 {
        self.sum.sqrt() * self.unit
    }

    /// The sum, each number times `factor`.
    pub fn value(&self, factor: f64) -> f64 {
        self.sum * (self.unit * factor) * (self.unit * factor)
    }

    /// The factor for which the sum is `wanted`; none if the sum is zero.
    pub fn weight_for(&self, wanted: f64) -> Option<f64> {
        let weight = (wanted / self.sum).sqrt() / self.unit;
        (self.sum > 0.0 && weight.is_finite()).then_some(weight)
    }
}

/// Computes the norms of the rows of a block, the first of which is instance `start`, compiled as a whole for the
/// vector instructions of the CPU.
struct Look<'a> {
    scaled_view: &'a ScaledView,
    piece: &'a Piece<'a>,
    start: usize,
    measure: &'a FromCentre<'a>,
    limits: Limits,
    norms: &'a mut Norms,
    factors: &'a mut Vec<f64>,
}

impl WithSimd for Look<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { scaled_view, piece, start, measure, limits, norms, factors } = self;
        let (block, unit_rows) = (&piece.blocks[0], scaled_view.scaling.unit_rows());
        for i in 0..piece.instances.len() {
            let Some(row) = block.index.row(i) else {
                factors.push(0.0);
                continue;
            };
            let (stored, scaled) = scaled_view.lengths(block, row);
            let Extent { observed, whole, share } = scaled_view.extent(block, row, scaled);
            let factor = scaled_view.own_factor(whole);
            let length = observed * factor;
            if stored > limits.stored || !length.is_finite() {
                norms.refused.get_or_insert(start + i);
            }
            if length > limits.scaled {
                norms.too_long.get_or_insert(start + i);
            }
            if length > 0.0 {
                norms.shortest = norms.shortest.min(length);
            }
            factors.push(factor);
            if unit_rows && factor > 0.0 {
                norms.lengths.0 += 1.0;
                norms.lengths.1 += 1.0 / factor;
            }
            norms.squares.add(length);
            norms.shown += share;
            norms.lacks_cells |= !block.holes.row(row).is_empty();
            norms.from_centre.add(measure.length(block, row, factor, || length));
            norms.bytes += block.rows.bytes(row, scaled_view.features);
            norms.largest = norms.largest.max(stored);
            if stored > 0.0 {
                norms.smallest = norms.smallest.min(stored);
            }
        }
    }
}

/// Norms of the rows of a view. The state is `f` of each row.
pub struct RowNorms<'l> {
    scaled_view: &'l ScaledView,
    view: usize,
    limits: Limits,
}

/// The request of [`RowNorms`].
#[derive(Serialize, Deserialize)]
pub struct RowNormsRequest {
    view: usize,
    scaling: Scaling,
    pilot: Vec<f64>,
    limits: Limits,
}

impl RowReduction for RowNorms<'_> {
    const NAME: &'static str = "row-norms";
    type Request = RowNormsRequest;
    type State = Vec<f64>;
    type Partial = Forest<Norms>;

    fn local(&self, rows: &Scan<'_>, factors: &mut Vec<f64>) -> Result<Self::Partial> {
        let norms;
        (*factors, norms) = self.scaled_view.norms_of(rows, self.view, self.limits)?;
        Ok(norms)
    }

    fn request(&self) -> RowNormsRequest {
        let Self { scaled_view, view, limits } = *self;
        RowNormsRequest {
            view,
            scaling: scaled_view.scaling.clone(),
            pilot: scaled_view.centre.clone(),
            limits,
        }
    }

    fn answer(request: &RowNormsRequest, rows: &Scan<'_>, factors: &mut Vec<f64>) -> Result<Self::Partial> {
        let RowNormsRequest { view, scaling, pilot, limits } = request;
        let parts =
            Parts { scaling: scaling.clone(), by_row: false, centre: pilot.clone(), lacks_cells: false };
        let scaled_view = parts.of(rows.layout(*view), rows.schema().view(*view).features());
        RowNorms { scaled_view: &scaled_view, view: *view, limits: *limits }.local(rows, factors)
    }
}

impl ScaledView {
    /// The mean of some scaled rows: those of the first block in which the view has any. Comparison with all rows
    /// decides whether it becomes the centre; any point among them will do.
    pub(super) fn pilot(&self, table: &impl Table, view: usize) -> Result<Vec<f64>> {
        let (instances, schema) = (table.instances(), table.schema().view(view));
        let mut mean = vec![0.0; self.features];
        let Some(first) = (0..instances).find(|&i| schema.shows(i)) else { return Ok(mean) };
        let range = first..(first + table.rows().blocks().size()).min(instances);
        let mut buffer = Buffer::default();
        let block = table.read(view, range.clone(), &mut buffer)?;
        let rows: Vec<usize> = (0..range.len()).filter_map(|i| block.index.row(i)).collect();
        let mut factors = 0.0;
        for &row in &rows {
            let whole = self.extent(&block, row, self.lengths(&block, row).1).whole;
            let factor = self.own_factor(whole) / rows.len() as f64;
            self.add_stored(&block, row, factor, &mut mean);
            factors += factor;
        }
        self.finish_row(factors, &mut mean);
        // A mean that overflows is not used.
        if mean.iter().any(|value| !value.is_finite()) {
            mean.fill(0.0);
        }
        Ok(mean)
    }

    /// The factor `f` of a row, from its length after the scaling of its features.
    fn own_factor(&self, length: f64) -> f64 {
        if self.scaling.unit_rows() { reciprocal(length) * self.scaling.weight } else { self.scaling.weight }
    }

    /// One pass over the view: `f` of each instance of a scan, if rows are scaled to length 1, and the norms of all rows.
    pub(super) fn norms(&self, table: &impl Table, view: usize, limits: Limits) -> Result<(Vec<f64>, Norms)> {
        let mut factors = Vec::new();
        let norms = table.reduce(&RowNorms { scaled_view: self, view, limits }, &mut factors)?;
        let blocks = table.rows().blocks();
        // The scan of a partition contains the rows of the partition only.
        let all = blocks.instances() == blocks.total();
        Ok((factors, if all { norms.sum(Norms::new())? } else { norms.share(Norms::new()) }))
    }

    /// The norms of the rows of a scan, leaf by leaf.
    fn norms_of(&self, scan: &Scan<'_>, view: usize, limits: Limits) -> Result<(Vec<f64>, Forest<Norms>)> {
        let first = scan.blocks().first();
        let measure = self.measure();
        let unit_rows = self.scaling.unit_rows();
        let mut all = Vec::with_capacity(if unit_rows { scan.instances() } else { 0 });
        let shares = scan.sum_view(
            view,
            || (Norms::new(), Vec::new()),
            |piece, (norms, factors)| {
                *norms = Norms::new();
                let start = first + piece.instances.start;
                Arch::new().dispatch(Look {
                    scaled_view: self,
                    piece: &piece,
                    start,
                    measure: &measure,
                    limits,
                    norms,
                    factors,
                });
                if !unit_rows {
                    factors.clear();
                }
                Ok(())
            },
            Norms::new,
            |total, (norms, factors)| {
                total.absorb(norms);
                all.append(factors);
            },
        )?;
        Ok((all, shares))
    }

    /// The factor `f` of a row, from its values.
    #[inline(always)]
    fn factor_of(&self, block: &Block<'_>, row: usize) -> f64 {
        self.own_factor(self.extent(block, row, self.lengths(block, row).1).whole)
    }

    /// The scaled view of some rows of the view, which are numbered in order. Their factors are computed from the rows, so
    /// that those of all rows need not be known.
    #[must_use]
    pub fn of_rows(&self, block: &Block<'_>, count: usize) -> Self {
        let factor = |i: usize| block.index.row(i).map_or(0.0, |row| self.factor_of(block, row));
        let unit_rows = self.scaling.unit_rows();
        let factors = if unit_rows { (0..count).map(factor).collect() } else { Vec::new() };
        Self { factors, ..self.parts().of(self.layout, self.features) }
    }

    /// The scaled view of the rows of a partition, with the properties of the whole view.
    pub fn placed(scan: &Scan<'_>, view: usize, parts: &Parts) -> Result<Self> {
        let mut scaled_view = parts.of(scan.layout(view), scan.schema().view(view).features());
        let (mut factors, mut bytes) = (Vec::new(), 0);
        scan.pass_view(
            view,
            || (Vec::new(), 0),
            |Piece { instances, blocks }, (factors, bytes)| {
                for row in (0..instances.len()).map(|i| blocks[0].index.row(i)) {
                    factors.push(row.map_or(0.0, |row| scaled_view.factor_of(&blocks[0], row)));
                    *bytes += row.map_or(0, |row| blocks[0].rows.bytes(row, scaled_view.features));
                }
                Ok(())
            },
            |(own, size): &mut (Vec<f64>, usize)| {
                factors.append(own);
                bytes += std::mem::take(size);
            },
        )?;
        if scaled_view.scaling.unit_rows() {
            scaled_view.factors = factors;
        }
        scaled_view.bytes = bytes;
        Ok(scaled_view)
    }

    /// The properties of the view.
    pub fn parts(&self) -> Parts {
        let Self { scaling, by_row, centre, lacks_cells, .. } = self;
        Parts { scaling: scaling.clone(), by_row: *by_row, centre: centre.clone(), lacks_cells: *lacks_cells }
    }
}
