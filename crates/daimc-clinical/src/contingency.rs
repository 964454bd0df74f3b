//! Contingency tables, and tests of the independence of their rows and columns.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::gamma::{chi_squared_tail, ln_factorial};

/// The minimum and maximum number of permutations.
const MIN_PERMUTATIONS: usize = 999;
const MAX_PERMUTATIONS: usize = 9_999;
/// The maximum of permutations × instances, which reduces the permutations of large tables to no less than the minimum.
const PERMUTED_INSTANCES: usize = 200_000_000;
/// The relative difference, due to rounding, below which probabilities or statistics are considered equal.
const ROUNDING: f64 = 1e-7;

/// A contingency table of pairs of levels, without empty rows and columns.
pub(crate) struct Contingency {
    /// The row and the column of each instance.
    pairs: Vec<(usize, usize)>,
    counts: Vec<Vec<usize>>,
    row_sums: Vec<usize>,
    column_sums: Vec<usize>,
}

impl Contingency {
    /// Counts the instances by their two levels.
    pub fn of(pairs: &[(usize, usize)]) -> Self {
        let (row_of_level, height) = compact(pairs.iter().map(|pair| pair.0));
        let (column_of_level, width) = compact(pairs.iter().map(|pair| pair.1));
        let pairs: Vec<(usize, usize)> =
            pairs.iter().map(|pair| (row_of_level[pair.0], column_of_level[pair.1])).collect();
        let mut counts = vec![vec![0; width]; height];
        count(pairs.iter().copied(), &mut counts);
        let row_sums = counts.iter().map(|row| row.iter().sum()).collect();
        let column_sums = (0..width).map(|j| counts.iter().map(|row| row[j]).sum()).collect();
        Self { pairs, counts, row_sums, column_sums }
    }

    /// The numbers of rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.row_sums.len(), self.column_sums.len())
    }

    /// The count of a cell that is expected if rows and columns are independent.
    fn expected(&self, i: usize, j: usize) -> f64 {
        self.row_sums[i] as f64 * self.column_sums[j] as f64 / self.pairs.len() as f64
    }

    /// Whether counts are too small for the χ² distribution by Cochran's rule: some expected count is below 1, or more than a
    /// fifth of the expected counts are below 5.
    pub fn is_sparse(&self) -> bool {
        let (height, width) = self.shape();
        let expected = || (0..height).flat_map(|i| (0..width).map(move |j| self.expected(i, j)));
        let small = expected().filter(|count| *count < 5.0).count();
        expected().any(|count| count < 1.0) || 5 * small > height * width
    }

    /// Pearson's χ² of counts with the row and column sums of this table.
    fn statistic(&self, counts: &[Vec<usize>]) -> f64 {
        let (height, width) = self.shape();
        let term = |i: usize, j: usize| {
            let expected = self.expected(i, j);
            (counts[i][j] as f64 - expected).powi(2) / expected
        };
        (0..height).map(|i| (0..width).map(|j| term(i, j)).sum::<f64>()).sum()
    }

    /// Pearson's χ², its degrees of freedom, and its p-value.
    pub fn chi_squared(&self) -> (f64, usize, f64) {
        let (height, width) = self.shape();
        let (statistic, freedom) = (self.statistic(&self.counts), (height - 1) * (width - 1));
        (statistic, freedom, chi_squared_tail(statistic, freedom))
    }

    /// Cramér's V, from 0 (independence) to 1 (the row determines the column, or the column the row).
    pub fn cramers_v(&self) -> f64 {
        let (height, width) = self.shape();
        let freedom = height.min(width) - 1;
        (self.statistic(&self.counts) / (self.pairs.len() * freedom) as f64).sqrt()
    }

    /// The p-value of Fisher's two-sided exact test of a 2 × 2 table: the total probability of the tables with the same row and
    /// column sums that are at most as probable as this one.
    pub fn fisher(&self) -> f64 {
        let (row, column, n) = (self.row_sums[0], self.column_sums[0], self.pairs.len());
        let ln_choose = |n: usize, k: usize| ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
        // The hypergeometric probability of the table with the first cell `a`, which determines the other three.
        let probability =
            |a: usize| (ln_choose(column, a) + ln_choose(n - column, row - a) - ln_choose(n, row)).exp();
        let limit = probability(self.counts[0][0]) * (1.0 + ROUNDING);
        let possible = (row + column).saturating_sub(n)..=row.min(column);
        possible.map(probability).filter(|p| *p <= limit).sum::<f64>().min(1.0)
    }

    /// The p-value of a permutation test: the share of random permutations, including the identity, with a χ² at least as large.
    /// Their seed is fixed, so that the p-value is reproducible.
    pub fn permutation(&self) -> f64 {
        let (height, width) = self.shape();
        let draws = (PERMUTED_INSTANCES / self.pairs.len()).clamp(MIN_PERMUTATIONS, MAX_PERMUTATIONS);
        let limit = self.statistic(&self.counts) * (1.0 - ROUNDING);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut columns: Vec<usize> = self.pairs.iter().map(|pair| pair.1).collect();
        let mut counts = vec![vec![0; width]; height];
        // The identity.
        let mut as_large = 1;
        for _ in 0..draws {
            columns.shuffle(&mut rng);
            count(self.pairs.iter().zip(&columns).map(|(pair, column)| (pair.0, *column)), &mut counts);
            as_large += usize::from(self.statistic(&counts) >= limit);
        }
        as_large as f64 / (draws + 1) as f64
    }
}

/// For each level its index among the levels that occur (meaningless for the others), and the number of levels that occur.
fn compact(levels: impl Iterator<Item = usize> + Clone) -> (Vec<usize>, usize) {
    let mut occurs = vec![false; levels.clone().max().map_or(0, |largest| largest + 1)];
    levels.for_each(|level| occurs[level] = true);
    let mut total = 0;
    let index = |occurs: bool| {
        let index = total;
        total += usize::from(occurs);
        index
    };
    (occurs.into_iter().map(index).collect(), total)
}

/// Replaces `counts` by the number of times that each pair of a row and a column occurs.
fn count(pairs: impl Iterator<Item = (usize, usize)>, counts: &mut [Vec<usize>]) {
    counts.iter_mut().for_each(|row| row.fill(0));
    pairs.for_each(|(i, j)| counts[i][j] += 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(counts: &[&[usize]]) -> Contingency {
        let mut pairs = Vec::new();
        for (i, row) in counts.iter().enumerate() {
            row.iter().enumerate().for_each(|(j, &count)| pairs.extend(std::iter::repeat_n((i, j), count)));
        }
        Contingency::of(&pairs)
    }

    #[test]
    fn fisher_is_exact_for_the_lady_tasting_tea() {
        assert!((table(&[&[3, 1], &[1, 3]]).fisher() - 34.0 / 70.0).abs() < 1e-12);
        assert!((table(&[&[4, 0], &[0, 4]]).fisher() - 2.0 / 70.0).abs() < 1e-12);
        assert!((table(&[&[1, 0], &[0, 1]]).fisher() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn independent_counts_have_a_chi_squared_of_zero() {
        let (statistic, freedom, p) = table(&[&[10, 20, 30], &[20, 40, 60]]).chi_squared();
        assert!(statistic < 1e-12 && freedom == 2 && p == 1.0, "{statistic} {p}");
    }

    #[test]
    fn the_permutation_test_approximates_the_exact_p_value() {
        let small = table(&[&[4, 0], &[1, 3], &[0, 4]]);
        let mut exact = 0.0;
        let limit = small.statistic(&small.counts) * (1.0 - ROUNDING);
        for a in 0..=4_usize {
            for b in 0..=4_usize {
                let Some(c) = 5_usize.checked_sub(a + b).filter(|c| *c <= 4) else { continue };
                let counts = vec![vec![a, 4 - a], vec![b, 4 - b], vec![c, 4 - c]];
                let ln_choose = |n: usize, k: usize| ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
                if small.statistic(&counts) >= limit {
                    let ways = ln_choose(4, a) + ln_choose(4, b) + ln_choose(4, c);
                    exact += (ways - ln_choose(12, 5)).exp();
                }
            }
        }
        let found = small.permutation();
        assert!((found - exact).abs() < 0.005, "{found}, {exact}");
        assert!(small.is_sparse());
    }

    #[test]
    fn levels_that_do_not_occur_have_no_row_or_column() {
        let pairs = [(0, 5), (3, 7), (0, 5), (3, 5)];
        assert_eq!(Contingency::of(&pairs).shape(), (2, 2));
    }
}
