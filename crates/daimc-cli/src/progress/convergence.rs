//! Prediction of the number of iterations from the decrease of the changes of J.

/// The changes of one run so far.
#[derive(Clone, Debug)]
pub struct Convergence {
    tolerance: f64,
    most: usize,
    /// The changes from the second iteration on.
    changes: Vec<f64>,
}

/// Minimum number of changes for a prediction.
const LEAST: usize = 6;

/// The decrease is estimated over this fraction of the changes, as a divisor. Of thirds, fifths and eighths, eighths predict the
/// end of fits to real data best, because many of them slow down near it.
const WINDOW: usize = 8;

/// Of the observed curves a geometric decrease ends first and a power law last. If their ends differ by more than this
/// factor, there is no prediction; otherwise their geometric mean is within a factor of two of both.
const APART: f64 = 4.0;

impl Convergence {
    /// A run that ends when a change is at most `tolerance`, or after `most` iterations.
    pub fn new(tolerance: f64, most: usize) -> Self {
        Self { tolerance, most, changes: Vec::new() }
    }

    /// Adds the relative change of J in an iteration.
    pub fn add(&mut self, change: f64) {
        self.changes.push(change);
    }

    /// Number of iterations so far.
    pub fn done(&self) -> usize {
        self.changes.len() + 1
    }

    /// Predicted total number of iterations.
    pub fn expected(&self) -> Option<f64> {
        let (done, most) = (self.done() as f64, self.most as f64);
        let ended = self.changes.last().is_some_and(|&change| change <= self.tolerance);
        if ended || self.done() >= self.most {
            return Some(done);
        }
        if self.changes.len() < LEAST {
            return None;
        }
        // Mean logarithms of two windows: single changes are too noisy.
        let width = (self.changes.len() / WINDOW).max(2);
        let (before, last) = self.changes.split_at(self.changes.len() - width);
        let before = &before[before.len() - width..];
        let mean = |changes: &[f64]| {
            changes.iter().map(|change| change.max(f64::MIN_POSITIVE).ln()).sum::<f64>() / width as f64
        };
        let (earlier, now) = (mean(before), mean(last));
        let fall = (earlier - now) / width as f64;
        // Distance to the tolerance in logarithms, from the middle of the last window.
        let middle = done - (width as f64 - 1.0) / 2.0;
        let to_go = now - self.tolerance.max(f64::MIN_POSITIVE).ln();
        // Without a decrease only the limit ends the run.
        let (soonest, latest) = if fall <= 0.0 {
            (most, most)
        } else {
            let power = fall * (middle - width as f64 / 2.0);
            (middle + to_go / fall, middle * (to_go / power).exp())
        };
        let [soonest, latest] = [soonest, latest].map(|end| end.clamp(done + 1.0, most) - done);
        (latest <= APART * soonest).then(|| done + (soonest * latest).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For given changes of J: the number of iterations, of predictions, and of predictions within a factor of two.
    fn predictions(change: impl Fn(f64) -> f64, most: usize) -> (usize, usize, usize) {
        let end = (2..most).find(|&n| change(n as f64) <= 1e-4).unwrap_or(most);
        let mut curve = Convergence::new(1e-4, most);
        let (mut predicted, mut right) = (0, 0);
        for n in 2..end {
            curve.add(change(n as f64));
            if let Some(expected) = curve.expected() {
                let (left, true_left) = (expected - n as f64, (end - n) as f64);
                predicted += 1;
                right += usize::from(left <= 2.0 * true_left && true_left <= 2.0 * left);
            }
        }
        (end, predicted, right)
    }

    #[test]
    fn predictions_are_right_within_a_factor_of_two_for_every_kind_of_decrease() {
        for (end, predicted, right) in [
            predictions(|n| 0.1 * 0.9_f64.powf(n), 100),
            predictions(|n| 0.5 * 0.7_f64.powf(n), 100),
            predictions(|n| 0.05 / n.powf(1.6), 100),
            predictions(|n| 0.2 / n.powi(2), 100),
            predictions(|n| 0.05 / n, 100),
            predictions(|n| 0.3 * 0.93_f64.powf(n) * (1.0 + 0.2 * (1.7 * n).sin()), 100),
        ] {
            // For the last two or three iterations an error of one is a factor of two.
            assert!(
                right + 3 >= predicted && predicted > 0,
                "{right} of {predicted} are right, of {end} iterations"
            );
        }
    }

    #[test]
    fn the_first_iterations_give_no_prediction() {
        let mut curve = Convergence::new(1e-4, 100);
        (2..6).for_each(|n| curve.add(1.0 / f64::from(n)));
        assert_eq!((curve.done(), curve.expected()), (5, None));
    }

    #[test]
    fn a_run_that_has_ended_is_as_long_as_it_was() {
        let mut curve = Convergence::new(1e-4, 100);
        curve.add(1e-5);
        assert_eq!(curve.expected(), Some(2.0));
    }
}
