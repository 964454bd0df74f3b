//! `MultiNMF` (Liu, Wang, Gao and Han, SDM 2013).

use std::ops::ControlFlow;

use daimc::{Matrix, Result, Scale, Source};
use daimc_core::linalg::{column_squares, product, transposed_product};
use rayon::prelude::*;

use crate::methods::data::{Filled, check_clusters, check_count, check_weight, cluster};
use crate::methods::nmf::{Factors, NmfStart, chained, column_sums, iterate, multiply};
use crate::methods::{Clustering, Method};

/// `MultiNMF`: one factorisation per view, their latent matrices drawn towards a consensus.
///
/// With instances in rows, `X_v ≈ V_v U_vᵀ`, and `Q_v` the diagonal matrix of the column sums of `U_v`:
///
/// ```text
/// J = Σ_v { ‖X_v − V_v U_vᵀ‖² + λ ‖V_v Q_v − V*‖² },    all ≥ 0
/// ```
///
/// The method has no missing instances: they are filled with the mean of their view. Each view is divided by its sum.
/// Factors start as [`NmfStart`] says and V* as the V of the first view; then each round repeats, for each
/// view,
///
/// ```text
/// V_jk ← V_jk  [ (X U)_jk + λ V*_jk ] / [ (V UᵀU)_jk + λ V_jk ]
/// U_ik ← U_ik  [ (XᵀV)_ik + λ Σ_j V_jk V*_jk ] / [ (U VᵀV)_ik + λ (Σ_l U_lk) (Σ_j V_jk²) ]
/// U ← U Q⁻¹,  V ← V Q
/// ```
///
/// and V* becomes the mean of the `V_v`. The last line does not change J and makes Q = I for the first. No step
/// raises J except by rounding and the floor of denominators. A round that raises J is undone and repeated with the new
/// V*, as published; the published method may repeat it forever, here a few repetitions in a row end the fit.
///
/// Clusters are those of k-means on V*. O(Σ d N K) per iteration; sparse views stay sparse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiNmf {
    /// The scaling of the views: published is none; min-max allows negative data.
    pub scale: Scale,
    /// Weight of the consensus, λ, for every view.
    pub lambda: f64,
    /// How the factors start.
    pub start: NmfStart,
    /// Maximum number of rounds.
    pub rounds: usize,
    /// Maximum number of iterations for each view in a round.
    pub iterations: usize,
    /// The iterations for a view, in a round as in the start, end when ten of them change its part of J by less than this
    /// share, and the rounds end when one of them changes J by less. With 0 their numbers are the published ones.
    pub tolerance: f64,
}

impl Default for MultiNmf {
    fn default() -> Self {
        Self {
            scale: Scale::None,
            lambda: 0.01,
            start: NmfStart::default(),
            rounds: 30,
            iterations: 200,
            tolerance: 1e-3,
        }
    }
}

/// Denominators are at least this.
const SMALLEST: f64 = 1e-10;

/// Number of consecutive rounds that may raise J before the fit ends.
const FAILURES: usize = 3;

/// The V step, for a basis whose columns sum to one.
pub(super) fn update_latent(factors: &mut Factors, x: &Filled, consensus: &Matrix, lambda: f64) {
    let mut above = x.times(&factors.basis);
    let mut below = product(&factors.latent, &transposed_product(&factors.basis, &factors.basis));
    add(&mut above, lambda, consensus);
    add(&mut below, lambda, &factors.latent);
    multiply(&mut factors.latent, &above, &below, SMALLEST);
}

/// The U step.
pub(super) fn update_basis(factors: &mut Factors, x: &Filled, consensus: &Matrix, lambda: f64) {
    let Factors { basis, latent } = factors;
    let mut above = x.transposed_times(latent);
    let mut below = product(basis, &transposed_product(latent, latent));
    let mut drawn = vec![0.0; latent.columns()];
    for (row, towards) in latent.iter_rows().zip(consensus.iter_rows()) {
        drawn.iter_mut().zip(row).zip(towards).for_each(|((sum, v), c)| *sum += v * c);
    }
    let squares = column_squares(latent);
    let held: Vec<f64> = column_sums(basis).iter().zip(&squares).map(|(sum, square)| sum * square).collect();
    for i in 0..basis.rows() {
        above.row_mut(i).iter_mut().zip(&drawn).for_each(|(above, drawn)| *above += lambda * drawn);
        below.row_mut(i).iter_mut().zip(&held).for_each(|(below, held)| *below += lambda * held);
    }
    multiply(basis, &above, &below, SMALLEST);
}

/// The part of one view in J.
pub(super) fn objective(factors: &Factors, x: &Filled, consensus: &Matrix, lambda: f64) -> f64 {
    let sums = column_sums(&factors.basis);
    let mut apart = 0.0;
    for (row, towards) in factors.latent.iter_rows().zip(consensus.iter_rows()) {
        apart += row.iter().zip(&sums).zip(towards).map(|((v, q), c)| (v * q - c).powi(2)).sum::<f64>();
    }
    factors.loss(x) + lambda * apart
}

/// `A ← A + factor · B`.
fn add(a: &mut Matrix, factor: f64, b: &Matrix) {
    a.values_mut().iter_mut().zip(b.values()).for_each(|(a, b)| *a += factor * b);
}

/// The mean of the latent matrices: the best V*, the weights being equal.
pub(super) fn mean(factors: &[Factors]) -> Matrix {
    let mut mean = Matrix::zeros(factors[0].latent.rows(), factors[0].latent.columns());
    factors.iter().for_each(|own| add(&mut mean, 1.0 / factors.len() as f64, &own.latent));
    mean
}

impl Method for MultiNmf {
    fn name(&self) -> String {
        "multinmf".into()
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        check_clusters(source.instances(), clusters)?;
        check_weight("lambda", self.lambda)?;
        check_weight("tolerance", self.tolerance)?;
        self.start.check()?;
        check_count("rounds", self.rounds)?;
        let xs = Filled::distributions(source, self.scale, "multinmf")?;
        let total = |factors: &[Factors], consensus: &Matrix| -> f64 {
            xs.iter().zip(factors).map(|(x, own)| objective(own, x, consensus, self.lambda)).sum()
        };
        let mut factors = chained(&xs, clusters, &self.start, self.tolerance, seed);
        let mut consensus = factors[0].latent.clone();
        let mut least = total(&factors, &consensus);
        let mut history = Vec::new();
        let mut failures = 0;
        while history.len() < self.rounds && failures < FAILURES {
            let before = factors.clone();
            factors.par_iter_mut().zip(&xs).for_each(|(own, x)| {
                let step = |own: &mut Factors| {
                    update_latent(own, x, &consensus, self.lambda);
                    update_basis(own, x, &consensus, self.lambda);
                    own.normalise();
                };
                let objective = |own: &Factors| objective(own, x, &consensus, self.lambda);
                iterate(own, self.iterations, self.tolerance, step, objective);
            });
            consensus = mean(&factors);
            let now = total(&factors, &consensus);
            if now > least {
                factors = before;
                failures += 1;
                continue;
            }
            let settled = least - now <= self.tolerance * now;
            (least, failures) = (now, 0);
            history.push(now);
            if each(history.len(), now).is_break() || (settled && self.tolerance > 0.0) {
                break;
            }
        }
        let embedding = mean(&factors);
        let (labels, _) = cluster(&embedding, clusters, seed)?;
        Ok(Clustering { labels, embedding, history, confidence: Vec::new() })
    }
}
