//! The definition of scalings.
//!
//! Every scaling has the form `x' = f_j · (x − shift) ∘ factor`: first per feature, then per row. It is never applied
//! to the data: [`ScaledView`](crate::scaled_view::ScaledView) folds it into the products. Only logarithms are applied beforehand
//! ([`Preparation`](crate::Preparation)).

use serde::{Deserialize, Serialize};

use crate::choice;

/// The scaling of a view. Its statistics are computed from present rows only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Scale {
    /// [`ZScore`](Self::ZScore) for a single feature. For other views there are candidates: [`Unit`](Self::Unit),
    /// [`MinMaxUnit`](Self::MinMaxUnit) and [`ZScoreUnit`](Self::ZScoreUnit); [`Log`](Self::Log) and [`LogUnit`](Self::LogUnit) for
    /// dense, non-negative, heavy-tailed values; [`TfIdf`](Self::TfIdf), `Unit` and `MinMaxUnit` for sparse counts. The fit uses
    /// the likeliest, unless neighbours in single views predict the clusters of another one clearly better, on a sample of the
    /// instances.
    #[default]
    Auto,
    /// No scaling.
    None,
    /// Each row to length 1.
    Unit,
    /// Each feature to the range 0 to 1.
    MinMax,
    /// Each feature to the range 0 to 1, then each row to length 1.
    MinMaxUnit,
    /// Each feature to mean 0 and standard deviation 1.
    ZScore,
    /// Each feature to mean 0 and standard deviation 1, then each row to length 1.
    ZScoreUnit,
    /// Each feature times `ln((1 + n) / (1 + n_f)) + 1`, where `n_f` of `n` rows contain it, then each row to
    /// length 1.
    TfIdf,
    /// The logarithm `ln(1 + x)` of each value, each feature to the range 0 to 1, then each row to length 1. For abundances
    /// such as counts, intensities and concentrations.
    Log,
    /// The logarithm `ln(1 + x)` of each value, then each row to length 1.
    LogUnit,
}

choice!(
    Scale, "scale":
    Auto = "auto",
    None = "none",
    Unit = "unit",
    MinMax = "min-max",
    MinMaxUnit = "min-max-unit",
    ZScore = "z-score",
    ZScoreUnit = "z-score-unit",
    TfIdf = "tf-idf",
    Log = "log",
    LogUnit = "log-unit"
);

impl Scale {
    fn unit_rows(self) -> bool {
        matches!(
            self,
            Self::Unit | Self::MinMaxUnit | Self::ZScoreUnit | Self::TfIdf | Self::Log | Self::LogUnit
        )
    }

    /// Whether logarithms of the values are taken first.
    #[must_use]
    pub fn is_log(self) -> bool {
        matches!(self, Self::Log | Self::LogUnit)
    }
}

/// The fitted scaling of a view, which is applied to new data too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The applied scaling; never [`Scale::Auto`].
    pub scale: Scale,
    /// Why it was chosen.
    pub reason: String,
    /// Subtracted from each feature; empty: nothing.
    pub shift: Vec<f64>,
    /// Multiplied with each feature, after the shift; empty: one.
    pub factor: Vec<f64>,
    /// Multiplied with the whole view, last.
    pub weight: f64,
    /// The weight of the view in the loss, by `ViewWeights`, from 0 to 1. Its square root is part
    /// of `weight`.
    pub importance: f64,
    /// The average length of rows before they were scaled to length 1; otherwise 1.
    pub length: f64,
    /// The mean square of each feature after shift and factor, from which the length of a row with missing cells is
    /// estimated. Empty: equal for all features.
    pub squares: Vec<f64>,
}

impl Scaling {
    /// The features that the scaling keeps, of `features`; all if none varies.
    pub fn kept(&self, features: usize) -> Vec<usize> {
        let kept = |&f: &usize| self.factor.get(f).is_none_or(|factor| *factor != 0.0);
        let kept: Vec<usize> = (0..features).filter(kept).collect();
        if kept.is_empty() { (0..features).collect() } else { kept }
    }

    /// The scaling of a subset of the features.
    #[must_use]
    pub fn some(&self, features: &[usize]) -> Self {
        let of = |all: &[f64]| features.iter().filter_map(|&f| all.get(f).copied()).collect();
        Self { shift: of(&self.shift), factor: of(&self.factor), squares: of(&self.squares), ..self.clone() }
    }

    /// A scaling without shift or factors.
    pub fn plain(scale: Scale, reason: String) -> Self {
        Self {
            scale,
            reason,
            shift: Vec::new(),
            factor: Vec::new(),
            weight: 1.0,
            importance: 1.0,
            length: 1.0,
            squares: Vec::new(),
        }
    }

    /// Undoes the scaling of a row, `x = m + x' l / (w c)`, where l is the average length of a row if rows were scaled
    /// to length 1, and `e^x − 1` of that if logarithms were taken.
    pub fn undo(&self, row: &mut [f64]) {
        for (f, value) in row.iter_mut().enumerate() {
            let factor = self.factor.get(f).copied().unwrap_or(1.0) * self.weight;
            let shift = self.shift.get(f).copied().unwrap_or(0.0);
            let own = if factor == 0.0 { 0.0 } else { *value / factor * self.length };
            *value = self.undo_log(shift + own);
        }
    }

    /// Undoes the scaling of a value in a row whose factor is known.
    pub fn undo_value(&self, feature: usize, value: f64, row_factor: f64) -> f64 {
        let factor = self.factor.get(feature).copied().unwrap_or(1.0) * row_factor;
        let shift = self.shift.get(feature).copied().unwrap_or(0.0);
        let own = if factor == 0.0 { 0.0 } else { value / factor };
        self.undo_log(shift + own)
    }

    /// Undoes the logarithm. Results are finite and, with logarithms, not negative.
    fn undo_log(&self, value: f64) -> f64 {
        if self.scale.is_log() {
            value.exp_m1().clamp(0.0, f64::MAX)
        } else {
            value.clamp(f64::MIN, f64::MAX)
        }
    }

    /// Whether rows are scaled to length 1.
    #[must_use]
    pub fn unit_rows(&self) -> bool {
        self.scale.unit_rows()
    }
}
