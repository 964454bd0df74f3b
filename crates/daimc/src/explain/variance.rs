//! How much the rows of a view vary: what the error of a reconstruction is a share of, if the mean is to explain nothing.

use crate::lens::Lens;
use crate::source::Block;

/// Sums over rows of a view, from which their sum of squares about the mean follows.
#[derive(Clone, Debug, Default)]
pub(super) struct Moments {
    /// Σ of the values as they are stored, and of the row factors; see [`Lens::finish_row`].
    stored: Vec<f64>,
    factors: f64,
    /// Of each feature: Σ of what stands for missing cells, and how many these are. Empty if there are none.
    filled: Vec<(f64, f64)>,
    rows: f64,
    square: f64,
}

impl Moments {
    pub fn new(features: usize) -> Self {
        Self { stored: vec![0.0; features], ..Self::default() }
    }

    /// Adds a row, of which the sum of squares is known.
    pub fn add(&mut self, lens: &Lens, block: &Block<'_>, at: (usize, usize), square: f64) {
        lens.add_row(block, at, 1.0, &mut self.stored);
        self.factors += lens.full_factor(at.0);
        self.rows += 1.0;
        self.square += square;
        for f in lens.holes(block, at.1) {
            self.filled.resize(self.stored.len(), (0.0, 0.0));
            let own = &mut self.filled[f];
            *own = (own.0 + lens.value(block, at, f), own.1 + 1.0);
        }
    }

    /// Takes over the sums of other rows, and clears them.
    pub fn absorb(&mut self, other: &mut Self) {
        self.stored.iter_mut().zip(&mut other.stored).for_each(|(own, other)| *own += std::mem::take(other));
        self.factors += std::mem::take(&mut other.factors);
        self.rows += std::mem::take(&mut other.rows);
        self.square += std::mem::take(&mut other.square);
        if !other.filled.is_empty() {
            self.filled.resize(self.stored.len(), (0.0, 0.0));
            let filled = self.filled.iter_mut().zip(other.filled.drain(..));
            filled.for_each(|(own, other)| *own = (own.0 + other.0, own.1 + other.1));
        }
    }

    /// `Σ (x − x̄)²` over the cells that are there, where x̄ is the mean of the feature's.
    pub fn about_mean(mut self, lens: &Lens) -> f64 {
        lens.finish_row(self.factors, &mut self.stored);
        let of_mean = |(f, sum): (usize, &f64)| {
            let (value, count) = self.filled.get(f).copied().unwrap_or_default();
            if self.rows > count { (sum - value).powi(2) / (self.rows - count) } else { 0.0 }
        };
        // Rounding does not take it below zero.
        (self.square - self.stored.iter().enumerate().map(of_mean).sum::<f64>()).max(0.0)
    }
}
