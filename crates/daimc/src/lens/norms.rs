//! What has to be known of all scaled rows of a view before they are multiplied with anything.

use super::holes::Extent;
use super::{Lens, power_near, reciprocal};
use crate::Result;
use crate::scan::{Piece, Scan};
use crate::source::Buffer;

/// Lengths of rows, of a block or of the whole view.
#[derive(Debug, Default)]
pub(super) struct Norms {
    /// `f` of each instance, if rows are brought to length 1.
    pub factors: Vec<f64>,
    /// `Σ ‖x'‖²`, of the cells that are there.
    pub squares: Squares,
    /// How many rows there are; one that lacks cells counts as much as it shows.
    pub shown: f64,
    /// `Σ ‖x' − μ‖²`.
    pub from_centre: Squares,
    /// Largest and smallest nonzero length of a row as it is stored.
    pub largest: f64,
    pub smallest: f64,
    /// The shortest row that is not zero, after scaling.
    shortest: f64,
    /// The first row that is not a number, or whose products would not be one; the first whose square is none.
    refused: Option<usize>,
    too_long: Option<usize>,
    pub bytes: usize,
    pub lacks_cells: bool,
}

impl Norms {
    fn new() -> Self {
        Self { smallest: f64::INFINITY, shortest: f64::INFINITY, ..Self::default() }
    }

    fn absorb(&mut self, other: &mut Self) {
        self.factors.append(&mut other.factors);
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
    }

    /// The row that cannot be worked with, if there is one. Where a weight will bring rows into range, long ones do no
    /// harm unless others would vanish beside them.
    pub fn refused(&self, any_length: bool) -> Option<usize> {
        let vanishing = self.shortest < self.squares.root() * f64::MIN_POSITIVE.sqrt();
        let too_long = self.too_long.filter(|_| !any_length || vanishing);
        let sum = (!any_length && !self.squares.value(1.0).is_finite()).then_some(0);
        self.refused.or(too_long).or(sum)
    }
}

/// A sum of squares, `sum · unit²` with a power of two, so that it is known also where the squares leave the range
/// of numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Squares {
    sum: f64,
    /// Zero: nothing was added yet.
    unit: f64,
}

/// Magnitudes whose squares, and many of them together, are in range as they are.
const ORDINARY: std::ops::RangeInclusive<f64> = 1e-140..=1e140;

impl Squares {
    /// Adds the square of a number that is not negative.
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

    /// Takes a larger unit: what is too small to be told in it is not missed.
    fn raise(&mut self, unit: f64) {
        if unit > self.unit {
            self.sum *= (self.unit / unit).powi(2);
            self.unit = unit;
        }
    }

    /// The root of the sum.
    pub fn root(&self) -> f64 {
        self.sum.sqrt() * self.unit
    }

    /// The sum, each number times `factor`.
    pub fn value(&self, factor: f64) -> f64 {
        self.sum * (self.unit * factor) * (self.unit * factor)
    }

    /// The factor that makes the sum `wanted`; none if it is zero.
    pub fn weight_for(&self, wanted: f64) -> Option<f64> {
        let weight = (wanted / self.sum).sqrt() / self.unit;
        (self.sum > 0.0 && weight.is_finite()).then_some(weight)
    }
}

impl Lens {
    /// The mean of some scaled rows: those of the first block in which the view shows any. Whether it is a centre is seen
    /// when all rows are compared with it; any point among them will do.
    pub(super) fn pilot(&self, scan: &Scan<'_>, view: usize) -> Result<Vec<f64>> {
        let (instances, schema) = (scan.instances(), scan.schema().view(view));
        let mut mean = vec![0.0; self.features];
        let Some(first) = (0..instances).find(|&i| schema.shows(i)) else { return Ok(mean) };
        let range = first..(first + scan.blocks().size()).min(instances);
        let mut buffer = Buffer::default();
        let block = scan.read(view, range.clone(), &mut buffer)?;
        let rows: Vec<usize> = (0..range.len()).filter_map(|i| block.index.row(i)).collect();
        let mut factors = 0.0;
        for &row in &rows {
            let whole = self.extent(&block, row, self.lengths(&block, row).1).whole;
            let factor = self.own_factor(whole) / rows.len() as f64;
            self.add_stored(&block, row, factor, &mut mean);
            factors += factor;
        }
        self.finish_row(factors, &mut mean);
        // A mean beyond all numbers is none.
        if mean.iter().any(|value| !value.is_finite()) {
            mean.fill(0.0);
        }
        Ok(mean)
    }

    /// `f` of a row, from its length after the scaling of its features.
    fn own_factor(&self, length: f64) -> f64 {
        if self.scaling.unit_rows() { reciprocal(length) * self.scaling.weight } else { self.scaling.weight }
    }

    /// One pass over the view; rows that are longer than the limits, scaled and as stored, are told.
    pub(super) fn norms(
        &self,
        scan: &Scan<'_>,
        view: usize,
        (limit, stored_limit): (f64, f64),
    ) -> Result<Norms> {
        let instances = scan.instances();
        let measure = self.measure();
        let mut total = Norms::new();
        total.factors.reserve_exact(if self.scaling.unit_rows() { instances } else { 0 });
        scan.pass_view(
            view,
            Norms::new,
            |Piece { instances: range, blocks }, norms| {
                *norms = Norms::new();
                let block = &blocks[0];
                for i in 0..range.len() {
                    let Some(row) = block.index.row(i) else {
                        norms.factors.push(0.0);
                        continue;
                    };
                    let (stored, scaled) = self.lengths(block, row);
                    let Extent { observed, whole, share } = self.extent(block, row, scaled);
                    let factor = self.own_factor(whole);
                    let length = observed * factor;
                    if stored > stored_limit || !length.is_finite() {
                        norms.refused.get_or_insert(range.start + i);
                    }
                    if length > limit {
                        norms.too_long.get_or_insert(range.start + i);
                    }
                    if length > 0.0 {
                        norms.shortest = norms.shortest.min(length);
                    }
                    norms.factors.push(factor);
                    norms.squares.add(length);
                    norms.shown += share;
                    norms.lacks_cells |= !block.holes.row(row).is_empty();
                    norms.from_centre.add(measure.length(block, row, factor, || length));
                    norms.bytes += block.rows.bytes(row, self.features);
                    norms.largest = norms.largest.max(stored);
                    if stored > 0.0 {
                        norms.smallest = norms.smallest.min(stored);
                    }
                }
                if !self.scaling.unit_rows() {
                    norms.factors.clear();
                }
                Ok(())
            },
            |norms| total.absorb(norms),
        )?;
        Ok(total)
    }
}
