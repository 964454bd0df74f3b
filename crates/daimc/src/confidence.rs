//! The confidence of a cluster assignment: an estimate of the share of fits to resampled data in which the instance keeps its
//! cluster.
//!
//! A margin (how much nearer an instance is to its own cluster than to the next, or the share of routes or runs that agree) ranks
//! the instances by certainty. It does not say how certain they are, because clusters of noise have margins too. The missing
//! scale is the reproducibility of the clusters in parts of the data. The logit of the share is approximately linear in the
//! logits of both. The coefficients were fitted to resampled fits of real and simulated data, see `experiments/RESULTS.md`.

/// The intercept, and the coefficients of the margin and of the reproducibility.
const INTERCEPT: f64 = -0.21;
const OF_MARGIN: f64 = 0.47;
const OF_REPRODUCIBILITY: f64 = 0.84;

/// The confidence of instances with these margins, from 0 to 1, for clusters with this reproducibility. Returns the margins if
/// the reproducibility is unknown.
pub(crate) fn confidence(mut margins: Vec<f64>, reproducibility: Option<f64>) -> Vec<f64> {
    if let Some(reproducibility) = reproducibility {
        let constant = INTERCEPT + OF_REPRODUCIBILITY * logit(reproducibility);
        for margin in &mut margins {
            *margin = 1.0 / (1.0 + (-constant - OF_MARGIN * logit(*margin)).exp());
        }
    }
    margins
}

/// `ln(p / (1 − p))`, with p kept away from 0 and 1.
fn logit(share: f64) -> f64 {
    let inner = 0.02 + 0.96 * share.clamp(0.0, 1.0);
    (inner / (1.0 - inner)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_rises_with_both() {
        let margins: Vec<f64> = (0..=20).map(|i| f64::from(i) / 20.0).collect();
        let mut last = vec![0.0; 21];
        for reproducibility in [0.2, 0.5, 0.9, 1.0] {
            let found = confidence(margins.clone(), Some(reproducibility));
            assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(found.iter().zip(&last).all(|(own, less)| *own > *less && *own < 1.0));
            last = found;
        }
        assert!(last[20] > 0.95);
        assert_eq!(confidence(margins.clone(), None), margins);
        // One half is the midpoint.
        assert!(logit(0.5).abs() < 1e-12);
    }
}
