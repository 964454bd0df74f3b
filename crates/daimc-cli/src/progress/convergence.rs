//! How many iterations there will be, told from how the changes of J fall towards the tolerance.

/// The changes of one run so far.
#[derive(Clone, Debug)]
pub struct Convergence {
    tolerance: f64,
    most: usize,
    /// Of the second iteration and those after it.
    changes: Vec<f64>,
}

/// Fewer changes tell nothing.
const LEAST: usize = 6;

/// The share of the changes, as a divisor, whose fall is looked at. Of thirds, fifths and eighths the last tell the end of fits to
/// real data best, because many slow down near it.
const WINDOW: usize = 8;

/// A geometric fall ends soonest and a power law latest of what is seen. Where they are this far apart, nothing is told; else
/// their geometric mean is within a factor of two of either.
const APART: f64 = 4.0;

impl Convergence {
    /// Of a run that ends when a change is not above the tolerance, or after so many iterations.
    pub fn new(tolerance: f64, most: usize) -> Self {
        Self { tolerance, most, changes: Vec::new() }
    }

    /// One more iteration has changed J by this share.
    pub fn add(&mut self, change: f64) {
        self.changes.push(change);
    }

    /// Iterations so far.
    pub fn done(&self) -> usize {
        self.changes.len() + 1
    }

    /// Iterations in all, if that can be told.
    pub fn expected(&self) -> Option<f64> {
        let (done, most) = (self.done() as f64, self.most as f64);
        let ended = self.changes.last().is_some_and(|&change| change <= self.tolerance);
        if ended || self.done() >= self.most {
            return Some(done);
        }
        if self.changes.len() < LEAST {
            return None;
        }
        // The mean logarithm of the last changes against that of as many before them: single ones jump.
        let width = (self.changes.len() / WINDOW).max(2);
        let (before, last) = self.changes.split_at(self.changes.len() - width);
        let before = &before[before.len() - width..];
        let mean = |changes: &[f64]| {
            changes.iter().map(|change| change.max(f64::MIN_POSITIVE).ln()).sum::<f64>() / width as f64
        };
        let (earlier, now) = (mean(before), mean(last));
        let fall = (earlier - now) / width as f64;
        // Logarithms to go, from the middle of the last changes.
        let middle = done - (width as f64 - 1.0) / 2.0;
        let to_go = now - self.tolerance.max(f64::MIN_POSITIVE).ln();
        // Where J does not come to rest any more, only the limit ends it.
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

    /// Where the changes of J fall as given, how often the iterations left are told, and whether within a factor of two.
    fn told(change: impl Fn(f64) -> f64, most: usize) -> (usize, usize, usize) {
        let end = (2..most).find(|&n| change(n as f64) <= 1e-4).unwrap_or(most);
        let mut course = Convergence::new(1e-4, most);
        let (mut told, mut right) = (0, 0);
        for n in 2..end {
            course.add(change(n as f64));
            if let Some(expected) = course.expected() {
                let (left, true_left) = (expected - n as f64, (end - n) as f64);
                told += 1;
                right += usize::from(left <= 2.0 * true_left && true_left <= 2.0 * left);
            }
        }
        (end, told, right)
    }

    #[test]
    fn iterations_left_are_right_within_a_factor_of_two_however_the_changes_fall() {
        for (end, told, right) in [
            told(|n| 0.1 * 0.9_f64.powf(n), 100),
            told(|n| 0.5 * 0.7_f64.powf(n), 100),
            told(|n| 0.05 / n.powf(1.6), 100),
            told(|n| 0.2 / n.powi(2), 100),
            told(|n| 0.05 / n, 100),
            told(|n| 0.3 * 0.93_f64.powf(n) * (1.0 + 0.2 * (1.7 * n).sin()), 100),
        ] {
            // Of the last two or three, one more or less is a factor of two.
            assert!(right + 3 >= told && told > 0, "{right} of {told} are right, of {end} iterations");
        }
    }

    #[test]
    fn nothing_is_told_of_the_first_iterations() {
        let mut course = Convergence::new(1e-4, 100);
        (2..6).for_each(|n| course.add(1.0 / f64::from(n)));
        assert_eq!((course.done(), course.expected()), (5, None));
    }

    #[test]
    fn a_run_that_has_ended_is_as_long_as_it_was() {
        let mut course = Convergence::new(1e-4, 100);
        course.add(1e-5);
        assert_eq!(course.expected(), Some(2.0));
    }
}
