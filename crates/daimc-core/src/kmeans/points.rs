//! The points of k-means, and their distances from centres.

use super::TILE;
use crate::matrix::dot;
use crate::scaled_view::{ScaledView, Scratch};
use crate::scan::Scan;
use crate::source::{Block, Buffer, Rows};
use crate::{Matrix, Result};

/// The points to cluster: some instances of a view.
pub struct Points<'a> {
    /// The scaling of the view.
    pub scaled_view: &'a ScaledView,
    /// The stored rows.
    pub block: Block<'a>,
    /// Instance and row of each point.
    pub rows: Vec<(usize, usize)>,
    /// Their squared distances from the centre of the scaled view, or from the origin if it has none.
    pub squares: Vec<f64>,
    /// An additional point, given by its scaled values, with a weight.
    pub(super) extra: Option<Extra>,
}

pub(super) struct Extra {
    pub row: Vec<f64>,
    pub weight: f64,
}

impl<'a> Points<'a> {
    /// The given instances of a view, all of which must be present.
    pub fn new(
        scan: &'a Scan<'_>,
        view: usize,
        scaled_view: &'a ScaledView,
        instances: &[u32],
        buffer: &'a mut Buffer,
    ) -> Result<Self> {
        let block = scan.pick(view, instances, buffer)?;
        Ok(Self::of(scaled_view, block, instances.iter().map(|&instance| instance as usize)))
    }

    /// The rows of a block, with the instance numbers that the scaled view uses for them.
    pub fn of(scaled_view: &'a ScaledView, block: Block<'a>, numbers: impl Iterator<Item = usize>) -> Self {
        let row = |(i, number): (usize, usize)| Some((number, block.index.row(i)?));
        let rows = numbers.enumerate().filter_map(row).collect();
        Self::in_block(scaled_view, block, rows)
    }

    /// Some rows of a block, with their instance numbers.
    pub fn in_block(scaled_view: &'a ScaledView, block: Block<'a>, rows: Vec<(usize, usize)>) -> Self {
        let mut squares = Vec::with_capacity(rows.len());
        scaled_view.measure().squares(&block, &rows, &mut squares);
        Self { scaled_view, block, rows, squares, extra: None }
    }

    /// Adds a point with a weight.
    #[must_use]
    pub fn with_extra(mut self, row: Vec<f64>, weight: f64) -> Self {
        self.extra = Some(Extra { row, weight });
        self
    }

    /// The mean of the points.
    pub fn mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.scaled_view.features()];
        let weight = 1.0 / self.rows.len().max(1) as f64;
        let mut factors = 0.0;
        for &at in &self.rows {
            self.scaled_view.add_row(&self.block, at, weight, &mut mean);
            factors += weight * self.scaled_view.full_factor(at.0);
        }
        self.scaled_view.finish_row(factors, &mut mean);
        mean
    }

    /// The scaled values of a point.
    pub fn values(&self, i: usize) -> Vec<f64> {
        let Some(&at) = self.rows.get(i) else {
            return self.extra.as_ref().map(|extra| extra.row.clone()).unwrap_or_default();
        };
        self.scaled_view.values(&self.block, at)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len() + usize::from(self.extra.is_some())
    }

    pub(super) fn weight(&self, i: usize) -> f64 {
        if i < self.rows.len() { 1.0 } else { self.extra.as_ref().map_or(0.0, |extra| extra.weight) }
    }

    /// Calls `visit(i, squared distances of point i to the columns of centres)` for each of some points, in increasing
    /// order.
    pub fn distances(
        &self,
        some: impl IntoIterator<Item = usize>,
        centres: &Matrix,
        scratch: &mut Scratch,
        mut visit: impl FnMut(usize, &[f64]),
    ) {
        let targets = self.scaled_view.targets(centres);
        let mut some = some.into_iter().peekable();
        let (mut tile, mut rows) = (Vec::with_capacity(TILE), Vec::with_capacity(TILE));
        while some.peek().is_some_and(|&i| i < self.rows.len()) {
            tile.clear();
            tile.extend(std::iter::from_fn(|| some.next_if(|&i| i < self.rows.len())).take(TILE));
            rows.clear();
            rows.extend(tile.iter().map(|&i| self.rows[i]));
            self.scaled_view.project_each(&self.block, &rows, &targets.operand, scratch, |at, products| {
                targets.distances(self.squares[tile[at]], products);
                visit(tile[at], products);
            });
        }
        if let (Some(i), Some(extra)) = (some.next(), &self.extra) {
            let mut distances = vec![0.0; centres.columns()];
            for (x, centre) in extra.row.iter().zip(centres.iter_rows()) {
                distances.iter_mut().zip(centre).for_each(|(distance, c)| *distance += (x - c).powi(2));
            }
            visit(i, &distances);
        }
    }

    /// The rounding error of the squared distance of each point from any centre among the points.
    pub(super) fn rounding(&self) -> Vec<f64> {
        let (epsilon, sparse) = match self.block.rows {
            Rows::DenseF32(_) => (f64::from(f32::EPSILON), false),
            Rows::SparseF32(_) => (f64::from(f32::EPSILON), true),
            Rows::DenseF64(_) => (f64::EPSILON, false),
            Rows::SparseF64(_) => (f64::EPSILON, true),
        };
        let share = epsilon * (16.0 + self.scaled_view.features() as f64);
        // Sparse rows are multiplied as stored; dense rows relative to the centre of the scaled view, from which `squares` are
        // measured.
        let square = |(&at, &square): (&(usize, usize), &f64)| {
            if sparse { self.scaled_view.square(&self.block, at).max(square) } else { square }
        };
        let mut squares: Vec<f64> = self.rows.iter().zip(&self.squares).map(square).collect();
        squares.extend(self.extra.iter().map(|extra| dot(&extra.row, &extra.row)));
        let longest = squares.iter().copied().fold(0.0, f64::max);
        squares.into_iter().map(|square| share * (square + longest)).collect()
    }
}
