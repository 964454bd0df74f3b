//! Contingency tables: tests of independence of rows and columns.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::gamma::{chi_squared_tail, ln_factorial};

/// The maximum and minimum number of permutations.
const PERMUTATIONS: [usize; 2] = [9_999, 999];
/// The maximum of instances × permutations.
const WORK: usize = 200_000_000;
/// The relative difference below which probabilities are considered equal.
const SAME: f64 = 1e-7;

/// Counts of pairs of levels, without empty rows and columns.
pub(crate) struct Contingency {
    pairs: Vec<(usize, usize)>,
    counts: Vec<Vec<usize>>,
    rows: Vec<usize>,
    columns: Vec<usize>,
}

impl Contingency {
    pub fn of(pairs: &[(usize, usize)]) -> Self {
        let first = ranks(pairs.iter().map(|pair| pair.0));
        let second = ranks(pairs.iter().map(|pair| pair.1));
        let pairs: Vec<(usize, usize)> = pairs.iter().map(|pair| (first[pair.0], second[pair.1])).collect();
        let size = |of: fn(&(usize, usize)) -> usize| pairs.iter().map(of).max().map_or(0, |most| most + 1);
        let (height, width) = (size(|pair| pair.0), size(|pair| pair.1));
        let counts = tally(&pairs, height, width);
        let rows = counts.iter().map(|row| row.iter().sum()).collect();
        let columns = (0..width).map(|j| counts.iter().map(|row| row[j]).sum()).collect();
        Self { pairs, counts, rows, columns }
    }

    /// The numbers of rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows.len(), self.columns.len())
    }

    fn expected(&self, i: usize, j: usize) -> f64 {
        self.rows[i] as f64 * self.columns[j] as f64 / self.pairs.len() as f64
    }

    /// Whether counts are too small for the χ² distribution, by Cochran's rule: an expected count below 1, or more than a fifth
    /// of them below 5.
    pub fn is_sparse(&self) -> bool {
        let (height, width) = self.shape();
        let expected = || (0..height).flat_map(|i| (0..width).map(move |j| self.expected(i, j)));
        let small = expected().filter(|count| *count < 5.0).count();
        expected().any(|count| count < 1.0) || 5 * small > height * width
    }

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

    /// Cramér's V, from 0 (independence) to 1 (each row in a single column, or the reverse).
    pub fn cramers_v(&self) -> f64 {
        let (height, width) = self.shape();
        let least = height.min(width) - 1;
        (self.statistic(&self.counts) / (self.pairs.len() * least) as f64).sqrt()
    }

    /// The p-value of the two-sided Fisher's exact test of a 2 × 2 table: the probability of the tables with the same margins that
    /// are at most as likely as this one.
    pub fn fisher(&self) -> f64 {
        let [[a, _], [_, _]] =
            [[self.counts[0][0], self.counts[0][1]], [self.counts[1][0], self.counts[1][1]]];
        let (row, column, n) = (self.rows[0], self.columns[0], self.pairs.len());
        let chosen = |n: usize, k: usize| ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
        let probability = |a: usize| (chosen(column, a) + chosen(n - column, row - a) - chosen(n, row)).exp();
        let own = probability(a) * (1.0 + SAME);
        let all = (row + column).saturating_sub(n)..=row.min(column);
        all.map(probability).filter(|p| *p <= own).sum::<f64>().min(1.0)
    }

    /// The p-value of a permutation test: the share of random permutations, including the identity, with a χ² at least as large.
    /// The permutations are deterministic.
    pub fn permutation(&self) -> f64 {
        let (height, width) = self.shape();
        let draws = (WORK / self.pairs.len()).clamp(PERMUTATIONS[1], PERMUTATIONS[0]);
        let own = self.statistic(&self.counts) * (1.0 - SAME);
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let mut shuffled: Vec<usize> = self.pairs.iter().map(|pair| pair.1).collect();
        let mut counts = vec![vec![0; width]; height];
        let mut as_large = 1;
        for _ in 0..draws {
            shuffled.shuffle(&mut random);
            counts.iter_mut().for_each(|row| row.fill(0));
            self.pairs.iter().zip(&shuffled).for_each(|(pair, column)| counts[pair.0][*column] += 1);
            as_large += usize::from(self.statistic(&counts) >= own);
        }
        as_large as f64 / (draws + 1) as f64
    }
}

/// For each level its index among the levels that occur.
fn ranks(levels: impl Iterator<Item = usize> + Clone) -> Vec<usize> {
    let mut occurs = vec![false; levels.clone().max().map_or(0, |most| most + 1)];
    levels.for_each(|level| occurs[level] = true);
    let mut next = 0;
    let rank = |occurs: bool| {
        let own = next;
        next += usize::from(occurs);
        own
    };
    occurs.into_iter().map(rank).collect()
}

fn tally(pairs: &[(usize, usize)], height: usize, width: usize) -> Vec<Vec<usize>> {
    let mut counts = vec![vec![0; width]; height];
    pairs.iter().for_each(|(i, j)| counts[*i][*j] += 1);
    counts
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
    fn a_lady_tastes_tea() {
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
    fn permutations_come_near_the_exact_test() {
        let small = table(&[&[4, 0], &[1, 3], &[0, 4]]);
        let mut exact = 0.0;
        let own = small.statistic(&small.counts) * (1.0 - SAME);
        for a in 0..=4_usize {
            for b in 0..=4_usize {
                let Some(c) = 5_usize.checked_sub(a + b).filter(|c| *c <= 4) else { continue };
                let counts = vec![vec![a, 4 - a], vec![b, 4 - b], vec![c, 4 - c]];
                let chosen = |k: usize| ln_factorial(4) - ln_factorial(k) - ln_factorial(4 - k);
                let all = ln_factorial(12) - ln_factorial(5) - ln_factorial(7);
                if small.statistic(&counts) >= own {
                    exact += (chosen(a) + chosen(b) + chosen(c) - all).exp();
                }
            }
        }
        let found = small.permutation();
        assert!((found - exact).abs() < 0.005, "{found}, {exact}");
        assert!(small.is_sparse());
    }

    #[test]
    fn levels_without_instances_do_not_count() {
        let pairs = [(0, 5), (3, 7), (0, 5), (3, 5)];
        assert_eq!(Contingency::of(&pairs).shape(), (2, 2));
    }
}
