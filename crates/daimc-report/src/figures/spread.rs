//! Summary statistics of a distribution.

use serde::Serialize;

/// Mean and quantiles of some values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The quantiles 0.05, 0.25, 0.5, 0.75 and 0.95.
    pub quantiles: [f64; 5],
}

impl Spread {
    /// The statistics of some values; `None` if there are none.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        let last = (values.len() - 1) as f64;
        let at = |share: f64| {
            let (low, part) = ((share * last) as usize, (share * last).fract());
            let high = (low + 1).min(values.len() - 1);
            values[low] + part * (values[high] - values[low])
        };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Self { mean, quantiles: [0.05, 0.25, 0.5, 0.75, 0.95].map(at) })
    }
}
