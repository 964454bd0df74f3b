//! Small functions on lists of numbers.

use std::cmp::Reverse;

/// The smallest and the largest value; (∞, −∞) if there is none.
pub(crate) fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// The numbers of the `limit` largest groups, in ascending order. Of equal sizes the group with the lower number is preferred.
pub(crate) fn largest(sizes: &[usize], limit: usize) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..sizes.len()).collect();
    groups.sort_by_key(|&group| Reverse(sizes[group]));
    groups.truncate(limit);
    groups.sort_unstable();
    groups
}
