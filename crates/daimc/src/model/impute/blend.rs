//! The combination of predictors by least squares over hidden values.

/// Neighbours, cluster, basis.
pub(super) const PREDICTORS: usize = 3;

/// The normal equations of a regression on the predictors, all minus the mean and in standard deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Normal {
    gram: [[f64; PREDICTORS]; PREDICTORS],
    right: [f64; PREDICTORS],
    square: f64,
    pub count: f64,
}

impl Normal {
    pub fn add(&mut self, predicted: [f64; PREDICTORS], value: f64) {
        for (a, x) in predicted.iter().enumerate() {
            self.right[a] += x * value;
            predicted.iter().zip(&mut self.gram[a]).for_each(|(y, gram)| *gram += x * y);
        }
        self.square += value * value;
        self.count += 1.0;
    }

    pub fn absorb(&mut self, other: &Self) {
        for a in 0..PREDICTORS {
            self.right[a] += other.right[a];
            self.gram[a].iter_mut().zip(&other.gram[a]).for_each(|(own, other)| *own += other);
        }
        self.square += other.square;
        self.count += other.count;
    }

    /// The sum of squared errors of a combination.
    pub fn error(&self, weights: &[f64; PREDICTORS]) -> f64 {
        let mut error = self.square;
        for (a, weight) in weights.iter().enumerate() {
            let along: f64 = self.gram[a].iter().zip(weights).map(|(gram, weight)| gram * weight).sum();
            error += weight * (along - 2.0 * self.right[a]);
        }
        error.max(0.0)
    }

    /// The nonnegative weights of least error with a sum of at most one. The rest goes to the mean, a predictor that is zero.
    /// Weight is moved between two predictors at a time, as long as this lowers the error.
    pub fn weights(&self) -> [f64; PREDICTORS] {
        const MEAN: usize = PREDICTORS;
        let gram = |a: usize, b: usize| if a == MEAN || b == MEAN { 0.0 } else { self.gram[a][b] };
        let mut weights = [0.0, 0.0, 0.0, 1.0];
        for _ in 0..1000 {
            let mut moved = 0.0_f64;
            for a in 0..MEAN {
                for b in a + 1..=MEAN {
                    let slope = |k: usize| {
                        let along: f64 = (0..MEAN).map(|c| gram(k, c) * weights[c]).sum();
                        along - if k == MEAN { 0.0 } else { self.right[k] }
                    };
                    let curve = gram(a, a) + gram(b, b) - 2.0 * gram(a, b);
                    if curve <= 1e-12 * self.square {
                        continue;
                    }
                    let step = ((slope(b) - slope(a)) / curve).clamp(-weights[a], weights[b]);
                    weights[a] += step;
                    weights[b] -= step;
                    moved = moved.max(step.abs());
                }
            }
            if moved < 1e-9 {
                break;
            }
        }
        [weights[0], weights[1], weights[2]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    /// The least error on a grid of weights.
    fn on_a_grid(normal: &Normal) -> f64 {
        let steps = 40;
        let mut least = f64::INFINITY;
        for a in 0..=steps {
            for b in 0..=steps - a {
                for c in 0..=steps - a - b {
                    let share = |k: usize| k as f64 / f64::from(steps as u32);
                    least = least.min(normal.error(&[share(a), share(b), share(c)]));
                }
            }
        }
        least
    }

    #[test]
    fn no_weights_on_a_grid_have_less_error() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        for case in 0..50 {
            let truth: [f64; 3] = std::array::from_fn(|_| rng.random_range(-0.5..1.0));
            let mut normal = Normal::default();
            for _ in 0..40 {
                let mut x: [f64; 3] = std::array::from_fn(|_| rng.random_range(-1.0..1.0));
                if case % 5 == 0 {
                    x[1] = x[0]; // identical predictors
                }
                let value = (0..3).map(|k| truth[k] * x[k]).sum::<f64>() + rng.random_range(-0.5..0.5);
                normal.add(x, value);
            }
            let weights = normal.weights();
            assert!(weights.iter().all(|w| *w >= 0.0) && weights.iter().sum::<f64>() <= 1.0 + 1e-9);
            assert!(normal.error(&weights) <= on_a_grid(&normal) + 1e-6, "{weights:?}");
        }
    }

    #[test]
    fn without_evidence_all_goes_to_the_mean() {
        assert_eq!(Normal::default().weights(), [0.0; 3]);
        let mut against = Normal::default();
        against.add([1.0, 0.5, 0.25], -1.0);
        assert_eq!(against.weights(), [0.0; 3]);
    }
}
