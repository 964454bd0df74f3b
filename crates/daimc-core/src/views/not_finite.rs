//! Non-finite values.

use crate::kernel::{Csr, Scalar, is_finite};

/// The non-finite values of some rows.
#[derive(Clone, Debug, Default)]
pub(super) struct NotFinite {
    /// The first invalid value: infinite, or NaN stored in a sparse row. Instance, row, column, value.
    pub refused: Option<(usize, usize, usize, f64)>,
    /// The number of missing cells in dense rows.
    pub holes: usize,
    /// Instances in which all cells are missing.
    pub empty: Vec<usize>,
}

impl NotFinite {
    pub fn dense<T: Scalar>(&mut self, (instance, row): (usize, usize), values: &[T]) {
        if is_finite(values) {
            return;
        }
        let wide = || values.iter().map(|value| value.to_f64()).enumerate();
        let missing = wide().filter(|(_, value)| value.is_nan()).count();
        if missing == values.len() {
            self.empty.push(instance);
            return;
        }
        self.holes += missing;
        let infinite = wide().find(|(_, value)| value.is_infinite());
        self.refuse((instance, row), infinite);
    }

    pub fn sparse<T: Scalar>(&mut self, (instance, row): (usize, usize), csr: Csr<'_, T>) {
        let (columns, values) = csr.row(row);
        if !is_finite(values) {
            let mut wide =
                columns.iter().zip(values).map(|(&column, value)| (column as usize, value.to_f64()));
            self.refuse((instance, row), wide.find(|(_, value)| !value.is_finite()));
        }
    }

    fn refuse(&mut self, (instance, row): (usize, usize), found: Option<(usize, f64)>) {
        if let (None, Some((column, value))) = (self.refused, found) {
            self.refused = Some((instance, row, column, value));
        }
    }

    /// Merges both; of two invalid values, keeps the first.
    pub fn and(mut self, mut other: Self) -> Self {
        self.refused = self.refused.or(other.refused);
        self.holes += other.holes;
        self.empty.append(&mut other.empty);
        self
    }
}
