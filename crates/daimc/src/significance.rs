//! A comparison of clusters with chance.
//!
//! Neighbours in single views agree on real clusters. They also agree a little on clusters of noise, because a fit assigns close
//! instances to the same cluster. A fit to the same rows with every feature permuted among the instances of its view measures
//! this effect: the number of instances, the missing rows and the values of each feature are the same, but all dependencies are
//! destroyed.

use serde::{Deserialize, Serialize};

/// The agreement of neighbours on the clusters, and the agreement expected by chance, from fits by V alone to a sample of the
/// instances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Significance {
    /// The mutual information of the clusters of an instance and of its neighbours in a view, divided by the logarithm of the
    /// number of clusters: 0 if they are independent, 1 if they are always equal. The mean over the views.
    pub agreement: f64,
    /// The mean of the same for permuted data.
    pub by_chance: f64,
    /// The standard deviation over the permutations.
    pub deviation: f64,
}

/// The number of standard deviations by which the agreement must exceed chance: with ten permutations, about one of 200 data sets
/// without any structure does.
const CLEAR: f64 = 3.5;

impl Significance {
    pub(crate) fn new(agreement: f64, permuted: &[f64]) -> Self {
        let count = permuted.len() as f64;
        let by_chance = permuted.iter().sum::<f64>() / count;
        let squares = permuted.iter().map(|own| (own - by_chance).powi(2)).sum::<f64>();
        Self { agreement, by_chance, deviation: (squares / (count - 1.0)).sqrt() }
    }

    /// The excess of the agreement over chance, in standard deviations.
    #[must_use]
    pub fn excess(&self) -> f64 {
        let beyond = self.agreement - self.by_chance;
        // Permutations of constant data are all equal.
        if beyond.abs() < 1e-9 { 0.0 } else { beyond / self.deviation.max(1e-9) }
    }

    /// Whether the clusters are clearer than chance.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.excess() > CLEAR
    }

    /// The result, in a sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { agreement, by_chance, deviation } = self;
        format!("agreement of neighbours {agreement:.3}, by chance {by_chance:.3} ± {deviation:.3}")
    }

    /// The warning, in a sentence; `None` if the clusters are clearer than chance.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        (!self.is_clear()).then(|| {
            format!(
                "the clusters are no clearer than chance: {} (the same data with every feature permuted). There may be nothing \
                 to separate, or not into that many clusters",
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
        // Constant data.
        let constant = Significance::new(0.0, &[0.0; 3]);
        assert_eq!((constant.excess(), constant.is_clear()), (0.0, false));
    }
}
