//! MIC (Shao, He and Yu, ECML PKDD 2015).

use std::ops::ControlFlow;

use daimc::{Matrix, Result, Scale, Source};
use daimc_core::linalg::{product, transposed_product};
use rayon::prelude::*;

use crate::methods::data::{Filled, check_clusters, check_count, check_weight, cluster};
use crate::methods::nmf::{Factors, NmfStart, chained, iterate, multiply_by};
use crate::methods::{Clustering, Method};

/// MIC, multiple incomplete views clustering: weighted non-negative factorisations whose latent matrices are drawn
/// towards a consensus and whose rows are drawn towards zero.
///
/// With instances in rows, `X_v ≈ U_v V_vᵀ` (here U is the latent matrix and V the basis, as in the publication):
///
/// ```text
/// J = Σ_v { ‖C_v (X_v − U_v V_vᵀ)‖² + α ‖C_v (U_v − U*)‖² + β ‖U_v‖_{2,1} },    all ≥ 0
/// ```
///
/// Missing rows of X are filled with the mean of their view and count less: `C_v` is diagonal, 1 where the instance is
/// present and otherwise the share of present instances of the view. Each view is divided by its sum. Factors start as
/// [`NmfStart`] specifies. Each round repeats, for each view,
///
/// ```text
/// U ← U ∘ √( [C²XV + αC²U*] ⊘ [C²UVᵀV + αC²U + (β/2) D U] ),    D_jj = 1 / ‖U_j‖
/// V ← V ∘ √( [XᵀC²U] ⊘ [V UᵀC²U] )
/// V ← V Q⁻¹,  U ← U Q,    Q the diagonal matrix of the column sums of V
/// ```
///
/// and `U*_j = Σ_v c_vj² U_vj / Σ_v c_vj²`. The first two lines never raise J. The third may, because the penalties see
/// the scale of U; it is what keeps them from shrinking U at the cost of V.
///
/// Clusters are those of k-means on U*. O(Σ d N K) per iteration; sparse views stay sparse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mic {
    /// The scaling of the views: published is none; min-max allows negative data.
    pub scale: Scale,
    /// Weight of the consensus, α, for every view.
    pub alpha: f64,
    /// Weight of the row sparsity, β, for every view. Data that sum to one need a small one: entries of U are about
    /// 1 / (N K), and from β = 1e-5 on the penalty leaves little of the clusters (3Sources).
    pub beta: f64,
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

impl Default for Mic {
    fn default() -> Self {
        Self {
            scale: Scale::None,
            alpha: 0.01,
            beta: 1e-7,
            start: NmfStart::default(),
            rounds: 30,
            iterations: 200,
            tolerance: 1e-3,
        }
    }
}

/// Denominators and the norms of rows are at least this.
const SMALLEST: f64 = 1e-30;

/// One view: its data, `c_j²` of each instance, and the weights of the objective.
pub(super) struct Weighted<'a> {
    x: &'a Filled,
    squares: Vec<f64>,
    alpha: f64,
    beta: f64,
}

impl<'a> Weighted<'a> {
    pub fn new(x: &'a Filled, alpha: f64, beta: f64) -> Self {
        Self { x, squares: x.weights(x.share() * x.share()), alpha, beta }
    }

    /// `C² A`.
    fn weigh(&self, a: &Matrix) -> Matrix {
        let mut out = a.clone();
        for (j, square) in self.squares.iter().enumerate() {
            out.row_mut(j).iter_mut().for_each(|value| *value *= square);
        }
        out
    }

    /// The U step.
    pub fn update_latent(&self, factors: &mut Factors, consensus: &Matrix) {
        let Factors { basis, latent } = factors;
        let mut above = self.x.times(basis);
        let mut below = product(latent, &transposed_product(basis, basis));
        for (j, square) in self.squares.iter().enumerate() {
            let row = latent.row(j);
            let norm = norm(row).max(SMALLEST);
            for (k, u) in row.iter().enumerate() {
                above[(j, k)] = square * (above[(j, k)] + self.alpha * consensus[(j, k)]);
                below[(j, k)] = square * (below[(j, k)] + self.alpha * u) + 0.5 * self.beta * u / norm;
            }
        }
        multiply_root(latent, &above, &below);
    }

    /// The V step.
    pub fn update_basis(&self, factors: &mut Factors) {
        let weighed = self.weigh(&factors.latent);
        let above = self.x.transposed_times(&weighed);
        let below = product(&factors.basis, &transposed_product(&factors.latent, &weighed));
        multiply_root(&mut factors.basis, &above, &below);
    }

    /// The part of this view in J.
    pub fn objective(&self, factors: &Factors, consensus: &Matrix) -> f64 {
        let Factors { basis, latent } = factors;
        let weighed = self.weigh(latent);
        let cross = self.x.transposed_times(&weighed).dot(basis);
        let grams = transposed_product(basis, basis).dot(&transposed_product(latent, &weighed));
        // The residual of a perfect fit is a rounding error of either sign.
        let loss = (self.x.sum_squares(self.x.share()) - 2.0 * cross + grams).max(0.0);
        let (mut apart, mut norms) = (0.0, 0.0);
        for ((row, towards), square) in latent.iter_rows().zip(consensus.iter_rows()).zip(&self.squares) {
            apart += square * row.iter().zip(towards).map(|(u, c)| (u - c).powi(2)).sum::<f64>();
            norms += norm(row);
        }
        loss + self.alpha * apart + self.beta * norms
    }
}

fn norm(row: &[f64]) -> f64 {
    row.iter().map(|u| u * u).sum::<f64>().sqrt()
}

/// `A ← A ∘ √(N ⊘ D)`.
fn multiply_root(a: &mut Matrix, above: &Matrix, below: &Matrix) {
    multiply_by(a, above, below, |above, below| (above / below.max(SMALLEST)).sqrt());
}

/// `U*_j = Σ_v c_vj² U_vj / Σ_v c_vj²`: the best U*, α being the same for all views.
pub(super) fn consensus(views: &[Weighted<'_>], factors: &[Factors]) -> Matrix {
    let mut sum = Matrix::zeros(factors[0].latent.rows(), factors[0].latent.columns());
    for j in 0..sum.rows() {
        let total: f64 = views.iter().map(|view| view.squares[j]).sum();
        for (view, own) in views.iter().zip(factors) {
            let share = view.squares[j] / total;
            sum.row_mut(j).iter_mut().zip(own.latent.row(j)).for_each(|(sum, u)| *sum += share * u);
        }
    }
    sum
}

impl Method for Mic {
    fn name(&self) -> String {
        "mic".into()
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        check_clusters(source.instances(), clusters)?;
        check_weight("alpha", self.alpha)?;
        check_weight("beta", self.beta)?;
        check_weight("tolerance", self.tolerance)?;
        self.start.check()?;
        check_count("rounds", self.rounds)?;
        let xs = Filled::distributions(source, self.scale, "mic")?;
        let weighted: Vec<_> = xs.iter().map(|x| Weighted::new(x, self.alpha, self.beta)).collect();
        let mut factors = chained(&xs, clusters, &self.start, self.tolerance, seed);
        let mut common = consensus(&weighted, &factors);
        let mut history = Vec::new();
        for round in 1..=self.rounds {
            factors.par_iter_mut().zip(&weighted).for_each(|(own, view)| {
                let step = |own: &mut Factors| {
                    view.update_latent(own, &common);
                    view.update_basis(own);
                    own.normalise();
                };
                let objective = |own: &Factors| view.objective(own, &common);
                iterate(own, self.iterations, self.tolerance, step, objective);
            });
            common = consensus(&weighted, &factors);
            let now: f64 =
                weighted.iter().zip(&factors).map(|(view, own)| view.objective(own, &common)).sum();
            let near = |before: &f64| (before - now).abs() <= self.tolerance * now;
            let settled = self.tolerance > 0.0 && history.last().is_some_and(near);
            history.push(now);
            if each(round, now).is_break() || settled {
                break;
            }
        }
        let (labels, _) = cluster(&common, clusters, seed)?;
        Ok(Clustering { labels, embedding: common, history, confidence: Vec::new() })
    }
}
