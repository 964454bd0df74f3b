//! The variation of the rows of a view about their mean: the error of a reconstruction is reported as a share of it.

use daimc_core::scaled_view::ScaledView;
use daimc_core::source::Block;

/// Sums over rows of a view that determine their sum of squares about the mean.
#[derive(Clone, Debug, Default)]
pub(super) struct Moments {
    /// Σ of the values as stored, and of the row factors; see [`ScaledView::finish_row`].
    stored: Vec<f64>,
    factors: f64,
    /// For each feature, Σ of the substitutes of missing cells, and their number. Empty if there are none.
    filled: Vec<(f64, f64)>,
    rows: f64,
    square: f64,
}

impl Moments {
    pub fn new(features: usize) -> Self {
        Self { stored: vec![0.0; features], ..Self::default() }
    }

    /// Adds a row with a known sum of squares.
    pub fn add(&mut self, scaled_view: &ScaledView, block: &Block<'_>, at: (usize, usize), square: f64) {
        scaled_view.add_row(block, at, 1.0, &mut self.stored);
        self.factors += scaled_view.full_factor(at.0);
        self.rows += 1.0;
        self.square += square;
        for f in scaled_view.holes(block, at.1) {
            self.filled.resize(self.stored.len(), (0.0, 0.0));
            let own = &mut self.filled[f];
            *own = (own.0 + scaled_view.value(block, at, f), own.1 + 1.0);
        }
    }

    /// Moves the sums of other rows into these.
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

    /// `Σ (x − x̄)²` over the observed cells, where x̄ is the mean of the feature.
    pub fn about_mean(mut self, scaled_view: &ScaledView) -> f64 {
        scaled_view.finish_row(self.factors, &mut self.stored);
        let of_mean = |(f, sum): (usize, &f64)| {
            let (value, count) = self.filled.get(f).copied().unwrap_or_default();
            if self.rows > count { (sum - value).powi(2) / (self.rows - count) } else { 0.0 }
        };
        // Rounding could make it negative.
        (self.square - self.stored.iter().enumerate().map(of_mean).sum::<f64>()).max(0.0)
    }
}
