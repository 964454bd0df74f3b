//! Non-negative matrix factorisation of one view, and of several views in a chain: where `MultiNMF` and MIC start.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::data::{Filled, check_count};
use crate::linalg::{product, transposed_product};
use crate::{Matrix, Result};

/// How the factors of `MultiNMF` and MIC start: by plain NMF of view after view, several times over all views, each from
/// the latent matrix of the one before. The default is the published one.
///
/// One NMF tries several random bases for a few iterations, keeps the one with the smallest error, and goes on from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NmfStart {
    /// Times that the chain goes over all views.
    pub sweeps: usize,
    /// Random bases that each NMF tries.
    pub trials: usize,
    /// Iterations of a trial.
    pub trial_iterations: usize,
    /// Iterations from the best trial.
    pub iterations: usize,
}

impl Default for NmfStart {
    fn default() -> Self {
        Self { sweeps: 3, trials: 30, trial_iterations: 50, iterations: 200 }
    }
}

impl NmfStart {
    pub(crate) fn check(&self) -> Result<()> {
        check_count("sweeps", self.sweeps)?;
        check_count("trials", self.trials)
    }
}

/// `X ≈ V Uᵀ`, all ≥ 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Factors {
    /// U, d × K.
    pub basis: Matrix,
    /// V, N × K.
    pub latent: Matrix,
}

/// Denominators are at least this.
const SMALLEST: f64 = 1e-10;

impl Factors {
    /// One iteration of Lee and Seung for `‖X − V Uᵀ‖²`:
    ///
    /// ```text
    /// V ← V ∘ (X U) ⊘ (V UᵀU),    U ← U ∘ (XᵀV) ⊘ (U VᵀV)
    /// ```
    pub fn iterate(&mut self, x: &Filled) {
        self.update_latent(x);
        self.update_basis(x);
    }

    fn update_latent(&mut self, x: &Filled) {
        let below = product(&self.latent, &transposed_product(&self.basis, &self.basis));
        multiply(&mut self.latent, &x.times(&self.basis), &below, SMALLEST);
    }

    fn update_basis(&mut self, x: &Filled) {
        let below = product(&self.basis, &transposed_product(&self.latent, &self.latent));
        multiply(&mut self.basis, &x.transposed_times(&self.latent), &below, SMALLEST);
    }

    /// `‖X − V Uᵀ‖² = ‖X‖² − 2 ⟨XᵀV, U⟩ + ⟨UᵀU, VᵀV⟩`.
    pub fn loss(&self, x: &Filled) -> f64 {
        let cross = x.transposed_times(&self.latent).dot(&self.basis);
        let grams =
            transposed_product(&self.basis, &self.basis).dot(&transposed_product(&self.latent, &self.latent));
        // What is left of a perfect fit is rounding, on either side of zero.
        (x.sum_squares(1.0) - 2.0 * cross + grams).max(0.0)
    }

    /// Makes the columns of U sum to one; V takes their sums, so that `V Uᵀ` stays. A column of zeros stays too.
    pub fn normalise(&mut self) {
        let sums = column_sums(&self.basis).into_iter().map(|sum| if sum > 0.0 { sum } else { 1.0 });
        let sums: Vec<f64> = sums.collect();
        self.latent.scale_columns(&sums);
        let reciprocals: Vec<f64> = sums.iter().map(|sum| 1.0 / sum).collect();
        self.basis.scale_columns(&reciprocals);
    }
}

/// `A ← A ∘ N ⊘ D`, denominators being at least `smallest`.
pub(crate) fn multiply(a: &mut Matrix, above: &Matrix, below: &Matrix, smallest: f64) {
    multiply_by(a, above, below, |above, below| above / below.max(smallest));
}

/// `a ← a f(n, d)` for every entry.
pub(crate) fn multiply_by(a: &mut Matrix, above: &Matrix, below: &Matrix, f: impl Fn(f64, f64) -> f64) {
    let fractions = above.values().iter().zip(below.values());
    for (a, (&above, &below)) in a.values_mut().iter_mut().zip(fractions) {
        *a *= f(above, below);
    }
}

pub(crate) fn column_sums(a: &Matrix) -> Vec<f64> {
    let mut sums = vec![0.0; a.columns()];
    for row in a.iter_rows() {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    sums
}

/// Factors of every view, by NMF in a chain.
pub(crate) fn chained(xs: &[Filled], clusters: usize, start: &NmfStart, seed: u64) -> Vec<Factors> {
    let mut factors: Vec<Option<Factors>> = vec![None; xs.len()];
    let mut latent: Option<Matrix> = None;
    for call in 0..start.sweeps * xs.len() {
        let view = call % xs.len();
        let found = factorise(&xs[view], clusters, latent.as_ref(), start, seed, call * start.trials);
        latent = Some(found.latent.clone());
        factors[view] = Some(found);
    }
    factors.into_iter().flatten().collect()
}

/// NMF of one view from a latent matrix that is given, or from a random one. Trial t draws from stream `first + t` of the
/// seed, so trials run in parallel and the result does not depend on it.
fn factorise(
    x: &Filled,
    clusters: usize,
    latent: Option<&Matrix>,
    start: &NmfStart,
    seed: u64,
    first: usize,
) -> Factors {
    let trial = |number: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream((first + number) as u64);
        let latent = latent.cloned().unwrap_or_else(|| {
            let mut latent = Matrix::from_fn(x.instances(), clusters, |_, _| rng.random());
            let total: f64 = latent.values().iter().sum();
            latent.values_mut().iter_mut().for_each(|value| *value /= total);
            latent
        });
        let mut basis = Matrix::from_fn(x.features(), clusters, |_, _| rng.random());
        let lengths = crate::linalg::column_squares(&basis);
        let lengths: Vec<f64> = lengths.iter().map(|square| square.sqrt().max(SMALLEST).recip()).collect();
        basis.scale_columns(&lengths);
        let mut factors = Factors { basis, latent };
        factors.normalise();
        for _ in 0..start.trial_iterations {
            factors.iterate(x);
        }
        (factors.loss(x), factors)
    };
    let trials: Vec<(f64, Factors)> = (0..start.trials).into_par_iter().map(trial).collect();
    // Of equals the first.
    let best = trials.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (_, mut factors) = best.expect("there is at least one trial");
    for _ in 0..start.iterations {
        factors.iterate(x);
    }
    factors.normalise();
    factors
}
