//! The influence of a single instance on the basis that was fitted to it.

use daimc_core::linalg::symmetric_eigen;
use daimc_core::{Matrix, Result};

/// The leverage of a regression on rows of V, `h = vᵀ (Σ v_j v_jᵀ)⁻¹ v`: the influence of a value on its own fitted value.
#[derive(Debug)]
pub(super) struct Leverage {
    /// One for each eigenvector of `Σ v vᵀ`, divided by the root of its eigenvalue.
    directions: Matrix,
}

/// The limit of the leverage.
const MOST: f64 = 0.9;

impl Leverage {
    /// The leverage among instances with these rows of V.
    pub fn new(latent: &Matrix, instances: &[u32]) -> Result<Self> {
        let k = latent.columns();
        let mut gram = Matrix::zeros(k, k);
        for &i in instances {
            let v = latent.row(i as usize);
            for (a, x) in v.iter().enumerate() {
                gram.row_mut(a).iter_mut().zip(v).for_each(|(sum, y)| *sum += x * y);
            }
        }
        let (values, vectors) = symmetric_eigen(&gram)?;
        let largest = values.iter().copied().fold(0.0, f64::max);
        let factor = |value: f64| if value > 1e-10 * largest { 1.0 / value.sqrt() } else { 0.0 };
        Ok(Self { directions: Matrix::from_fn(k, k, |a, b| factor(values[a]) * vectors[(b, a)]) })
    }

    pub fn of(&self, v: &[f64]) -> f64 {
        let squares = self.directions.iter_rows().map(|row| daimc_core::matrix::dot(row, v).powi(2));
        let leverage: f64 = squares.sum();
        if leverage.is_finite() { leverage.min(MOST) } else { MOST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn leverages_sum_to_the_number_of_columns_that_say_something() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(4);
        let mut latent = Matrix::from_fn(50, 4, |_, _| rng.random_range(0.0..1.0));
        (0..50).for_each(|i| latent[(i, 3)] = 2.0 * latent[(i, 1)]);
        let all: Vec<u32> = (0..50).collect();
        let leverage = Leverage::new(&latent, &all).unwrap();
        let sum: f64 = (0..50).map(|i| leverage.of(latent.row(i))).sum();
        assert!((sum - 3.0).abs() < 1e-9, "{sum}");
    }
}
