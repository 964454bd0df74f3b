//! Axes: the mapping from values to pixels, and ticks.

use crate::numbers::extent;

/// An axis from `low` to `high`, drawn from pixel `from` to pixel `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    pub fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from, to, log: false }
    }

    /// A logarithmic axis that covers positive values, extended to whole decades.
    pub fn log((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let (low, high) = (low.log10().floor(), high.log10().ceil());
        Self { log: true, ..Self::linear((low, high), (from, to)) }
    }

    /// An axis that covers values: logarithmic if they are positive and span more than a factor of 30, else linear.
    pub fn fitting(values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Self {
        let (low, high) = extent(values);
        if !(low.is_finite() && high.is_finite()) {
            return Self::linear((0.0, 1.0), pixels);
        }
        if low > 0.0 && high / low > 30.0 {
            return Self::log((low, high), pixels);
        }
        let margin = if high > low { 0.06 * (high - low) } else { 0.05 * high.abs().max(1e-300) };
        Self::linear((low - margin, high + margin), pixels)
    }

    pub fn is_log(&self) -> bool {
        self.log
    }

    pub fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + share * (self.to - self.from)
    }

    /// About `wanted` round numbers on the axis.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        let step = if self.log {
            ((self.high - self.low) / wanted as f64).ceil().max(1.0)
        } else {
            round_step((self.high - self.low) / wanted as f64)
        };
        let (first, last) = ((self.low / step).ceil(), (self.high / step + 1e-9).floor());
        let count = (last - first).max(0.0) as usize;
        let value = |i: usize| (first + i as f64) * step;
        (0..=count).map(|i| if self.log { 10_f64.powf(value(i)) } else { value(i) }).collect()
    }
}

/// The smallest number not below `step` that is 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// Formats a tick.
pub(crate) fn tick(value: f64) -> String {
    let size = value.abs();
    if size >= 1e6 || (size > 0.0 && size < 1e-3) {
        return format!("{value:e}").replace('-', "−");
    }
    if size >= 1000.0 {
        return super::text::count(value.round() as usize);
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::linear((0.3, 9.7), (0.0, 100.0));
        assert_eq!(axis.ticks(5), [2.0, 4.0, 6.0, 8.0]);
        let axis = Axis::fitting([0.002, 300.0].into_iter(), (0.0, 1.0));
        assert!(axis.is_log());
        let decades: Vec<String> = axis.ticks(6).into_iter().map(tick).collect();
        assert_eq!(decades, ["0.001", "0.01", "0.1", "1", "10", "100", "1,000"]);
    }

    #[test]
    fn a_single_value_has_an_axis() {
        let axis = Axis::fitting([5.0].into_iter(), (0.0, 100.0));
        assert!((axis.at(5.0) - 50.0).abs() < 1e-9);
        assert_eq!(Axis::fitting(std::iter::empty(), (0.0, 1.0)).at(0.5), 0.5);
    }
}
