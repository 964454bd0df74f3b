//! Whether clusters are clearer than those that chance would give.
//!
//! Neighbours in single views agree on clusters that are there. They also agree a little on those of noise, because a fit
//! puts what is near together. How much, the same fit tells of the same rows with every feature permuted among the
//! instances of its view: sizes, missing instances and the values of each feature are the same, and nothing goes together
//! any more.

use serde::{Deserialize, Serialize};

/// How far neighbours agree on the clusters, beside what they would by chance. Of a fit by V alone to a sample of the
/// instances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Significance {
    /// The mutual information of the clusters of an instance and of its neighbours in a view, in units of the logarithm of
    /// the number of clusters: 0 if they have nothing to do with each other, 1 if they are always the same. The mean over the
    /// views.
    pub agreement: f64,
    /// The same of clusters in permuted data, the mean of several permutations.
    pub by_chance: f64,
    /// The standard deviation of these.
    pub deviation: f64,
}

/// Standard deviations by which clusters must be clearer than chance: with the ten permutations that are made, about one of
/// 200 data sets without any structure is.
const CLEAR: f64 = 3.5;

impl Significance {
    pub(crate) fn new(agreement: f64, permuted: &[f64]) -> Self {
        let count = permuted.len() as f64;
        let by_chance = permuted.iter().sum::<f64>() / count;
        let squares = permuted.iter().map(|own| (own - by_chance).powi(2)).sum::<f64>();
        Self { agreement, by_chance, deviation: (squares / (count - 1.0)).sqrt() }
    }

    /// How much clearer the clusters are than chance, in standard deviations.
    #[must_use]
    pub fn excess(&self) -> f64 {
        let beyond = self.agreement - self.by_chance;
        // Permutations of what is everywhere the same are all alike.
        if beyond.abs() < 1e-9 { 0.0 } else { beyond / self.deviation.max(1e-9) }
    }

    /// Whether the clusters are clearer than chance.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.excess() > CLEAR
    }

    /// What was found, in a sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { agreement, by_chance, deviation } = self;
        format!("neighbours agree on clusters by {agreement:.3}, by chance {by_chance:.3} ± {deviation:.3}")
    }

    /// What people should know, in a sentence; `None` where there is nothing.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        (!self.is_clear()).then(|| {
            format!(
                "the clusters are no clearer than chance: {} (the same data with every feature permuted). There may be nothing \
                 to separate, or not into so many clusters",
                self.text()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_clear_if_they_are_far_from_chance() {
        let found = Significance::new(0.3, &[0.1, 0.12, 0.08]);
        assert!((found.by_chance - 0.1).abs() < 1e-12 && (found.deviation - 0.02).abs() < 1e-12);
        assert!((found.excess() - 10.0).abs() < 1e-9 && found.is_clear() && found.warning().is_none());
        let noise = Significance::new(0.15, &[0.1, 0.12, 0.08]);
        assert!(!noise.is_clear() && noise.warning().unwrap().contains("0.150, by chance 0.100 ± 0.020"));
        // Nothing varies.
        let constant = Significance::new(0.0, &[0.0; 3]);
        assert_eq!((constant.excess(), constant.is_clear()), (0.0, false));
    }
}
