//! Adjustment of p-values for multiple testing.

/// Adjusts p-values by the Benjamini–Hochberg procedure: among the tests with an adjusted p-value below a threshold, the
/// expected share of false discoveries is at most that threshold.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[b].total_cmp(&p[a]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (before, &i) in order.iter().enumerate() {
        let rank = p.len() - before;
        least = least.min(p[i] * p.len() as f64 / rank as f64);
        adjusted[i] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_p_value_is_never_adjusted_above_a_larger() {
        assert_eq!(
            benjamini_hochberg(&[0.01, 0.04, 0.03, 0.5]),
            [0.04, 0.04 * 4.0 / 3.0, 0.04 * 4.0 / 3.0, 0.5]
        );
        assert_eq!(benjamini_hochberg(&[0.9]), [0.9]);
        assert!(benjamini_hochberg(&[]).is_empty());
    }
}
