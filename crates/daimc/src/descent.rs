//! The algorithm without data: from the statistics of V to bases and alignments, and back.

use std::ops::ControlFlow;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::options::{Options, Penalty};
use daimc_core::shard::{Shard, VStep};
use daimc_core::statistics::{Factors, Statistics, Totals};
use daimc_core::steps::basis::Bases;
use daimc_core::steps::objective::{Objective, loss, misalignment, sparsity};
use daimc_core::steps::{alignment, basis, normalise};
use daimc_core::{Error, Matrix, Result, Stop};

/// At the iteration limit, labels are compared over the last fifth of the iterations, which must be at least ten. At most one
/// instance in 200 may have changed.
const LAST: usize = 5;
const LEAST: usize = 10;
const MOVED: usize = 200;

/// Why a fit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// J changed by less than the tolerance.
    Converged,
    /// The iteration limit was reached while J still changed, but in the last fifth of the iterations at most one instance in 200
    /// changed its largest column of V: the clusters no longer change.
    Settled,
    /// The iteration limit was reached while the clusters still changed, or after too few iterations to judge.
    IterationLimit,
    /// The callback or [`Daimc::stop`](crate::Daimc::stop) ended the fit; the model is that of the last iteration.
    #[serde(alias = "cancelled")]
    Interrupted,
}

impl Outcome {
    /// Whether J, or at least the clusters, no longer changed.
    #[must_use]
    pub fn is_at_rest(self) -> bool {
        matches!(self, Self::Converged | Self::Settled)
    }
}

/// The block coordinate descent of DAIMC without the V step, which runs where the rows are ([`Shard`](daimc_core::Shard)):
///
/// ```text
/// loop { statistics = shard.sweep(descent.solve()?)?;  objective = descent.absorb(statistics)?; }
/// ```
///
/// [`Descent::iterate`] is that loop with its stopping rule. The size of this type does not depend on the number of instances;
/// the loop keeps four bytes per instance.
#[derive(Clone, Debug)]
pub struct Descent {
    options: Options,
    factors: Factors,
    /// B of each view, features × latent.
    alignments: Vec<Matrix>,
    /// α of each view.
    alphas: Vec<f64>,
    /// `Σ_j w_j ‖x_j‖²` of each view.
    squares: Vec<f64>,
    totals: Totals,
    /// The statistics that the bases were solved from, at the scale of the bases.
    basis_totals: Totals,
}

impl Descent {
    /// Starts from the statistics of the first V. `squares` is `Σ_j w_j ‖x_j‖²` of each view, scaled as the rows are.
    ///
    /// # Errors
    /// When the statistics do not cover all instances, when statistics, squares and bases are not of the same views, or when a
    /// system of equations has no solution.
    pub fn new(options: &Options, squares: Vec<f64>, bases: Bases, statistics: Statistics) -> Result<Self> {
        options.check_alone()?;
        let mut totals = statistics.whole()?;
        totals.check(options.latent)?;
        same_views("squares, one for each view", totals.cross.len(), squares.len())?;
        if let Bases::Given(bases) | Bases::Normalised(bases) = &bases {
            same_views("bases, one for each view", totals.cross.len(), bases.len())?;
            for (basis, cross) in bases.iter().zip(&totals.cross) {
                same_views("rows of a basis", cross.rows(), basis.rows())?;
                same_views("columns of a basis", cross.columns(), basis.columns())?;
            }
        }
        let mut scale = vec![1.0; options.latent];
        let bases = match bases {
            Bases::Given(bases) => bases,
            Bases::Normalised(mut bases) => {
                scale = normalise::normalise(&mut bases, &mut totals);
                bases
            }
            Bases::Fitted => {
                let none = |cross: &Matrix| Matrix::zeros(cross.rows(), cross.columns());
                let views = totals.gram.iter().zip(&totals.cross);
                views
                    .map(|(gram, cross)| basis::update(gram, cross, &none(cross), 0.0))
                    .collect::<Result<_>>()?
            }
        };
        let alignments = bases.iter().map(|basis| match options.penalty {
            Penalty::Published => alignment::start(basis, options.beta),
            Penalty::Relative | Penalty::Auto => alignment::select(basis, options.beta),
        });
        let alignments = alignments.collect::<Result<_>>()?;
        let alphas = squares.iter().map(|squares| match options.penalty {
            Penalty::Published => options.alpha,
            Penalty::Relative | Penalty::Auto => options.alpha * squares / options.latent as f64,
        });
        let alphas = alphas.collect();
        let factors = Factors { bases, scale };
        let basis_totals = totals.clone();
        Ok(Self { options: options.clone(), factors, alignments, alphas, squares, totals, basis_totals })
    }

    /// U (Eq. 14) and B (Eq. 26) of every view, for the V of the last sweep.
    ///
    /// # Errors
    /// When a system of equations has no solution.
    pub fn solve(&mut self) -> Result<&Factors> {
        let Options { penalty, beta, .. } = self.options;
        self.basis_totals.clone_from(&self.totals);
        let views = self.factors.bases.par_iter_mut().zip(&mut self.alignments).zip(&self.alphas);
        let given = self.totals.gram.par_iter().zip(&self.totals.cross);
        views.zip(given).try_for_each(|(((own, aligned), alpha), (gram, cross))| {
            *own = basis::update(gram, cross, aligned, *alpha)?;
            *aligned = match penalty {
                Penalty::Published => alignment::update(own, aligned, beta)?,
                Penalty::Relative | Penalty::Auto => alignment::select(own, beta)?,
            };
            Ok::<_, Error>(())
        })?;
        Ok(&self.factors)
    }

    /// Takes the statistics of a sweep with the [`factors`](Self::factors), normalises (Eq. 20–21), and returns the objective.
    ///
    /// # Errors
    /// When the statistics do not cover all instances, when they are of other views, or when numbers leave the range of floating
    /// point.
    pub fn absorb(&mut self, statistics: Statistics) -> Result<Objective> {
        self.totals = self.taken(statistics)?;
        self.factors.scale = normalise::normalise(&mut self.factors.bases, &mut self.totals);
        normalise::rescale(&mut self.basis_totals, &self.factors.scale);
        self.checked()
    }

    /// Takes the statistics of the final V, which is not normalised.
    ///
    /// # Errors
    /// As [`Descent::absorb`].
    pub fn finish(&mut self, statistics: Statistics) -> Result<Objective> {
        self.totals = self.taken(statistics)?;
        self.factors.scale.fill(1.0);
        self.checked()
    }

    /// Iterates until J converges, the iteration limit is reached, or the fit is stopped. `each` receives the number of an
    /// iteration, J after it, and the relative change of J (`None` in the first). Returns J after each iteration, and why the
    /// loop ended.
    ///
    /// Afterwards V of the shard still has to be multiplied by the [scale](Factors::scale): see [`Descent::apply_scale`].
    ///
    /// # Errors
    /// When rows cannot be read or numbers leave the range of floating point; [`Error::Interrupted`] only if it was stopped
    /// before the end of the first iteration.
    pub fn iterate(
        &mut self,
        shard: &mut dyn Shard,
        stop: &Stop,
        mut each: impl FnMut(usize, Objective, Option<f64>) -> ControlFlow<()>,
    ) -> Result<(Vec<Objective>, Outcome)> {
        let Options { solver, passes, max_iterations, tolerance, .. } = self.options;
        let mut history = Vec::<Objective>::new();
        let (last, mut before) = (max_iterations / LAST, Vec::new());
        for number in 1..=max_iterations {
            let objective = match shard.sweep(self.solve()?, VStep::Update { solver, passes }, stop) {
                Err(Error::Interrupted) if number > 1 => {
                    self.factors.scale.fill(1.0);
                    return Ok((history, Outcome::Interrupted));
                }
                statistics => self.absorb(statistics?)?,
            };
            let change = history
                .last()
                .map(|last| (last.total - objective.total).abs() / last.total.max(f64::MIN_POSITIVE));
            history.push(objective);
            if each(number, objective, change).is_break() {
                return Ok((history, Outcome::Interrupted));
            }
            if change.is_some_and(|change| change <= tolerance) {
                return Ok((history, Outcome::Converged));
            }
            if max_iterations - number == last {
                before = shard.leading(&self.factors.scale);
            }
        }
        let now = shard.leading(&self.factors.scale);
        let moved = now.iter().zip(&before).filter(|(now, before)| now != before).count();
        let settled = last >= LEAST && moved * MOVED <= now.len();
        Ok((history, if settled { Outcome::Settled } else { Outcome::IterationLimit }))
    }

    /// Multiplies V by the scale of the last iteration, to match the bases.
    pub fn apply_scale(&mut self, v: &mut Matrix) {
        let scale = self.take_scale();
        v.each_row(|_, row| row.iter_mut().zip(&scale).for_each(|(value, factor)| *value *= factor));
    }

    /// The scale that the caller has to apply to V. It is 1 afterwards.
    pub(crate) fn take_scale(&mut self) -> Vec<f64> {
        let one = vec![1.0; self.factors.scale.len()];
        std::mem::replace(&mut self.factors.scale, one)
    }

    /// The bases, and the scale of V.
    #[must_use]
    pub fn factors(&self) -> &Factors {
        &self.factors
    }

    /// B of each view.
    #[must_use]
    pub fn alignments(&self) -> &[Matrix] {
        &self.alignments
    }

    /// The statistics that the bases were solved from, at the scale of the bases.
    pub(crate) fn basis_totals(&self) -> &Totals {
        &self.basis_totals
    }

    /// The bases and the alignments.
    #[must_use]
    pub fn into_parts(self) -> (Vec<Matrix>, Vec<Matrix>) {
        (self.factors.bases, self.alignments)
    }

    /// The sums, after a check that they are of the views of this descent.
    fn taken(&self, statistics: Statistics) -> Result<Totals> {
        let totals = statistics.whole()?;
        totals.check(self.options.latent)?;
        same_views("views of the statistics", self.factors.bases.len(), totals.cross.len())?;
        for (basis, cross) in self.factors.bases.iter().zip(&totals.cross) {
            same_views("rows of C", basis.rows(), cross.rows())?;
        }
        Ok(totals)
    }

    /// The objective, after a check that it is finite.
    fn checked(&self) -> Result<Objective> {
        let objective = self.objective();
        let finite = |matrix: &Matrix| matrix.values().iter().all(|value| value.is_finite());
        let sound =
            objective.total.is_finite() && self.factors.bases.iter().chain(&self.alignments).all(finite);
        if sound { Ok(objective) } else { Err(Error::OutOfRange) }
    }

    /// The objective of the last statistics.
    #[must_use]
    pub fn objective(&self) -> Objective {
        let Totals { gram, cross, holes, .. } = &self.totals;
        let mut parts = [0.0; 3];
        let mut weighted = 0.0;
        for (view, (basis, alignment)) in self.factors.bases.iter().zip(&self.alignments).enumerate() {
            // Missing cells, filled with their reconstruction, add nothing to the loss.
            parts[0] += loss(self.squares[view] + holes[view], &gram[view], &cross[view], basis);
            let misaligned = misalignment(basis, alignment);
            parts[1] += misaligned;
            weighted += self.alphas[view] * misaligned;
            parts[2] += sparsity(alignment);
        }
        let Options { alpha, beta, penalty, .. } = self.options;
        let mut objective = Objective::new(parts[0], parts[1], parts[2], alpha, beta);
        if penalty != Penalty::Published {
            objective.total = objective.loss + weighted;
        }
        objective
    }
}

fn same_views(what: &str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::LengthMismatch { what: what.into(), expected, found }) }
}
