//! Sums over small groups of instances, for a stream that has learnt from few.

use super::{Members, Retained};
use crate::initialise::FLOOR;
use daimc_core::Matrix;
use daimc_core::matrix::dot;
use daimc_core::statistics::Totals;

/// A stream is young until it has learnt from this many instances per cluster.
const INSTANCES: f64 = 200.0;

/// Limits of the number of cells per cluster, and of the number of values in all cells.
const MOST: usize = 50;
const NUMBERS: usize = 1 << 22;

/// Sums over small groups of instances.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cells {
    /// `Σ x` of each view, features × cells.
    pub sums: Vec<Matrix>,
    /// How many instances of each cell a view shows: views × cells.
    pub shown: Matrix,
    /// How many instances each cell has.
    pub members: Vec<f64>,
}

impl Cells {
    /// One cell per cluster of a young fit whose bases were solved from clusters. From
    /// `S = D (diag(n) + f(n1ᵀ + 1nᵀ) + f²N 11ᵀ) D` and `C = (Σx + f Σ_all x 1ᵀ) D`, with f the floor of a start and D the scale of
    /// its columns, n and Σx follow.
    pub fn of_fit(retained: &Retained, members: &Members) -> Option<Self> {
        let clusters = members.columns.len();
        if retained.instances() >= INSTANCES * clusters as f64 {
            return None;
        }
        let Members { columns, scale } = members;
        let Totals { gram, cross, .. } = &retained.totals;
        let mut shown = Matrix::zeros(cross.len(), clusters);
        let mut sums = Vec::new();
        for (view, (gram, cross)) in gram.iter().zip(cross).enumerate() {
            for (cluster, &column) in columns.iter().enumerate() {
                let square = gram[(column, column)] / scale[column].powi(2);
                let own = (square - FLOOR * FLOOR * retained.shown[view]) / (1.0 + 2.0 * FLOOR);
                shown[(view, cluster)] = own.max(0.0);
            }
            let reciprocals: Vec<f64> = scale.iter().map(|scale| 1.0 / scale).collect();
            let floored = 1.0 + FLOOR * clusters as f64;
            sums.push(Matrix::from_fn(cross.rows(), clusters, |f, cluster| {
                let all = dot(cross.row(f), &reciprocals) / floored;
                cross[(f, columns[cluster])] * reciprocals[columns[cluster]] - FLOOR * all
            }));
        }
        Some(Self { sums, shown, members: retained.members.clone() })
    }

    pub fn fits(&self, features: &[usize]) -> bool {
        let cells = self.members.len();
        (self.shown.rows(), self.shown.columns()) == (features.len(), cells)
            && self
                .sums
                .iter()
                .map(|sums| (sums.rows(), sums.columns()))
                .eq(features.iter().map(|d| (*d, cells)))
            && self.shown.values().iter().chain(&self.members).all(|count| *count >= 0.0)
    }

    /// Whether the cells of another batch fit, and the model has learnt from few instances.
    pub fn are_young(&self, clusters: usize) -> bool {
        let features: usize = self.sums.iter().map(Matrix::rows).sum();
        let cells = self.members.len();
        self.members.iter().sum::<f64>() < INSTANCES * clusters as f64
            && cells <= MOST * clusters
            && cells * features <= NUMBERS
    }

    pub fn fade(&mut self, factor: f64, renewed: &[bool]) {
        for (view, _) in renewed.iter().enumerate().filter(|(_, renewed)| **renewed) {
            let values = self.sums[view].values_mut().iter_mut();
            values.chain(self.shown.row_mut(view)).for_each(|value| *value *= factor);
        }
        self.members.iter_mut().for_each(|count| *count *= factor);
    }

    pub fn add_view(&mut self, features: usize) {
        let cells = self.members.len();
        self.sums.push(Matrix::zeros(features, cells));
        let views = self.shown.rows() + 1;
        self.shown =
            Matrix::from_fn(
                views,
                cells,
                |view, cell| {
                    if view + 1 < views { self.shown[(view, cell)] } else { 0.0 }
                },
            );
    }
}
