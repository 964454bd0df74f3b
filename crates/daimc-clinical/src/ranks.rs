//! The Kruskal–Wallis test: whether numbers tend to be larger in some groups than in others.

use crate::gamma::chi_squared_tail;

/// H, corrected for ties, its degrees of freedom, and its p-value. `None` if there is only one group, or all numbers are equal.
pub(crate) fn kruskal_wallis(numbers: &[f64], groups: &[usize]) -> Option<(f64, usize, f64)> {
    let n = numbers.len() as f64;
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
    // The size and the rank sum of each group. Ties get their mean rank.
    let mut sums = vec![(0_usize, 0.0); groups.iter().max()? + 1];
    let (mut start, mut ties) = (0, 0.0);
    while start < order.len() {
        let same = order[start..].iter().take_while(|&&i| numbers[i] == numbers[order[start]]).count();
        let rank = start as f64 + f64::midpoint(same as f64, 1.0);
        for &i in &order[start..start + same] {
            let sum = &mut sums[groups[i]];
            *sum = (sum.0 + 1, sum.1 + rank);
        }
        let t = same as f64;
        ties += t * t * t - t;
        start += same;
    }
    sums.retain(|(size, _)| *size > 0);
    let correction = 1.0 - ties / (n * n * n - n);
    if sums.len() < 2 || correction <= 0.0 {
        return None;
    }
    let between: f64 = sums.iter().map(|(size, sum)| sum * sum / *size as f64).sum();
    let h = (12.0 / (n * (n + 1.0)) * between - 3.0 * (n + 1.0)) / correction;
    let freedom = sums.len() - 1;
    Some((h, freedom, chi_squared_tail(h, freedom)))
}
