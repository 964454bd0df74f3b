//! Non-negative matrix factorisation of one view, and of several views in a chain: the start of `MultiNMF` and MIC.

use daimc::{Matrix, Result};
use daimc_core::linalg::{column_squares, product, transposed_product};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::methods::data::{Filled, check_count};

/// How the factors of `MultiNMF` and MIC start: by plain NMF of one view after another, several times over all views, each from
/// the latent matrix of the previous one. The default is the published one.
///
/// One NMF tries several random bases for a few iterations, keeps the one with the smallest error, and goes on from it. In
/// the published method every trial runs to its end; here a tenth of the iterations selects the tenth of the trials that
/// does. That, and the tolerance of the method, save most of the time without a loss of accuracy.
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
        // The residual of a perfect fit is a rounding error of either sign.
        (x.sum_squares(1.0) - 2.0 * cross + grams).max(0.0)
    }

    /// Makes the columns of U sum to one; V is multiplied by their sums, so that `V Uᵀ` does not change. Columns of zeros
    /// stay zero.
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

/// Iterations between two evaluations of an objective.
const STRIDE: usize = 10;

/// Calls `step` up to the given number of times, or until the objective changes by no more than a share of `tolerance` within
/// ten of them. With a tolerance of 0 nothing ends the iterations early, and the objective is not evaluated.
pub(crate) fn iterate<T>(
    state: &mut T,
    iterations: usize,
    tolerance: f64,
    mut step: impl FnMut(&mut T),
    objective: impl Fn(&T) -> f64,
) {
    let mut before = if tolerance > 0.0 { objective(state) } else { f64::INFINITY };
    for number in 1..=iterations {
        step(state);
        if tolerance > 0.0 && number % STRIDE == 0 {
            let now = objective(state);
            if (before - now).abs() <= tolerance * now {
                break;
            }
            before = now;
        }
    }
}

/// Factors of every view, by NMF in a chain.
pub(crate) fn chained(
    xs: &[Filled],
    clusters: usize,
    start: &NmfStart,
    tolerance: f64,
    seed: u64,
) -> Vec<Factors> {
    let mut factors: Vec<Option<Factors>> = vec![None; xs.len()];
    let mut latent: Option<Matrix> = None;
    for call in 0..start.sweeps * xs.len() {
        let x = &xs[call % xs.len()];
        let trials = Trials { x, clusters, latent: latent.as_ref(), seed, first: call * start.trials };
        let mut found = trials.best(start);
        iterate(&mut found, start.iterations, tolerance, |own| own.iterate(x), |own| own.loss(x));
        found.normalise();
        latent = Some(found.latent.clone());
        factors[call % xs.len()] = Some(found);
    }
    factors.into_iter().flatten().collect()
}

/// The share of the trials that run to their end, and of the iterations that select them.
const FINALISTS: usize = 10;
const HEAT: usize = 10;

/// Trials of the NMF of one view, from a given latent matrix or from random ones. Trial t draws from
/// stream `first + t` of the seed, so trials run in parallel and the result does not depend on it.
struct Trials<'a> {
    x: &'a Filled,
    clusters: usize,
    latent: Option<&'a Matrix>,
    seed: u64,
    first: usize,
}

impl Trials<'_> {
    /// The trial with the smallest error, of equals the first.
    fn best(&self, start: &NmfStart) -> Factors {
        let heat = start.trial_iterations.div_ceil(HEAT);
        let trials = (0..start.trials).into_par_iter().map(|number| self.run(self.draw(number), heat));
        let mut trials: Vec<(f64, Factors)> = trials.collect();
        trials.sort_by(|a, b| a.0.total_cmp(&b.0));
        trials.truncate(start.trials.div_ceil(FINALISTS));
        let rest = start.trial_iterations - heat;
        let finals = trials.into_par_iter().map(|(_, factors)| self.run(factors, rest));
        let finals: Vec<(f64, Factors)> = finals.collect();
        let best = finals.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
        best.expect("there is at least one trial").1
    }

    fn draw(&self, number: usize) -> Factors {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream((self.first + number) as u64);
        let latent = self.latent.cloned().unwrap_or_else(|| {
            let mut latent = Matrix::from_fn(self.x.instances(), self.clusters, |_, _| rng.random());
            let total: f64 = latent.values().iter().sum();
            latent.values_mut().iter_mut().for_each(|value| *value /= total);
            latent
        });
        let mut basis = Matrix::from_fn(self.x.features(), self.clusters, |_, _| rng.random());
        let lengths = column_squares(&basis);
        let lengths: Vec<f64> = lengths.iter().map(|square| square.sqrt().max(SMALLEST).recip()).collect();
        basis.scale_columns(&lengths);
        let mut factors = Factors { basis, latent };
        factors.normalise();
        factors
    }

    /// The factors after some iterations, and their error.
    fn run(&self, mut factors: Factors, iterations: usize) -> (f64, Factors) {
        (0..iterations).for_each(|_| factors.iterate(self.x));
        (factors.loss(self.x), factors)
    }
}
