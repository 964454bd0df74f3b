//! The variables of a fit, and one iteration of it.

use rayon::prelude::*;

use crate::initialise::Start;
use crate::model::Place;
use crate::options::{Options, Penalty};
use crate::steps::latent::{Passes, Solver};
use crate::steps::objective::{Objective, loss, misalignment, sparsity};
use crate::steps::{alignment, basis, normalise};
use crate::sweep::{Statistics, Sweep, Update};
use crate::{Error, Matrix, Result};

/// The variables of a fit between two iterations.
pub(crate) struct State<'a> {
    sweep: &'a Sweep<'a>,
    options: &'a Options,
    /// V, but for the factors in `scale`, which the next sweep applies.
    v: Matrix,
    scale: Vec<f64>,
    pub bases: Vec<Matrix>,
    pub alignments: Vec<Matrix>,
    statistics: Statistics,
    /// α of each view.
    alphas: Vec<f64>,
}

impl<'a> State<'a> {
    /// Where there are no bases to start from, they are those that fit V best.
    pub fn new(sweep: &'a Sweep<'a>, options: &'a Options, start: Start) -> Result<Self> {
        let Start { mut v, mut bases } = start;
        let scale = vec![1.0; options.latent];
        let statistics = sweep.run(None, &mut v, &scale, true)?;
        if bases.is_empty() {
            let none = |cross: &Matrix| Matrix::zeros(cross.rows(), cross.columns());
            let views = statistics.gram.iter().zip(&statistics.cross);
            let fitted = views.map(|(gram, cross)| basis::update(gram, cross, &none(cross), 0.0));
            bases = fitted.collect::<Result<_>>()?;
        }
        let (alpha, beta) = (options.alpha, options.beta);
        let alignments = bases.iter().map(|basis| match options.penalty {
            Penalty::Published => alignment::start(basis, beta),
            Penalty::Relative | Penalty::Auto => alignment::select(basis, beta),
        });
        let alignments = alignments.collect::<Result<_>>()?;
        let alphas = (0..bases.len()).map(|view| match options.penalty {
            Penalty::Published => alpha,
            Penalty::Relative | Penalty::Auto => alpha * sweep.sum_squares(view) / options.latent as f64,
        });
        let alphas = alphas.collect();
        Ok(Self { sweep, options, v, scale, bases, alignments, statistics, alphas })
    }

    /// One iteration: U (Eq. 14) and B (Eq. 26) of every view, V in one sweep, normalisation (Eq. 20–21).
    pub fn iterate(&mut self) -> Result<Objective> {
        let options = self.options;
        let views = self.bases.par_iter_mut().zip(&mut self.alignments).zip(&self.alphas);
        let given = self.statistics.gram.par_iter().zip(&self.statistics.cross);
        views.zip(given).try_for_each(|(((own, aligned), alpha), (gram, cross))| {
            *own = basis::update(gram, cross, aligned, *alpha)?;
            *aligned = match options.penalty {
                Penalty::Published => alignment::update(own, aligned, options.beta)?,
                Penalty::Relative | Penalty::Auto => alignment::select(own, options.beta)?,
            };
            Ok::<_, Error>(())
        })?;
        let passes = Passes { most: options.passes, tolerance: 0.0 };
        let update = Update { bases: &self.bases, solver: options.solver, passes };
        self.statistics = self.sweep.run(Some(&update), &mut self.v, &self.scale, true)?;
        self.scale = normalise::normalise(&mut self.bases, &mut self.statistics);
        self.checked()
    }

    /// Makes V optimal for the bases, from zero, as new instances will get it: where the optimum is not unique, the same
    /// one.
    pub fn settle(&mut self) -> Result<()> {
        self.v.values_mut().fill(0.0);
        let update = Update { bases: &self.bases, solver: Solver::Coordinate, passes: Place::PASSES };
        self.scale.fill(1.0);
        self.statistics = self.sweep.run(Some(&update), &mut self.v, &self.scale, true)?;
        self.checked().map(|_| ())
    }

    /// The objective, unless numbers have left the range of floating point.
    fn checked(&self) -> Result<Objective> {
        let objective = self.objective();
        let finite = |matrix: &Matrix| matrix.values().iter().all(|value| value.is_finite());
        let sound = objective.total.is_finite() && self.bases.iter().chain(&self.alignments).all(finite);
        if sound { Ok(objective) } else { Err(Error::OutOfRange) }
    }

    pub fn objective(&self) -> Objective {
        let Statistics { gram, cross, .. } = &self.statistics;
        let mut parts = [0.0; 3];
        let mut weighted = 0.0;
        for (view, (basis, alignment)) in self.bases.iter().zip(&self.alignments).enumerate() {
            parts[0] += loss(self.sweep.sum_squares(view), &gram[view], &cross[view], basis);
            let misaligned = misalignment(basis, alignment);
            parts[1] += misaligned;
            weighted += self.alphas[view] * misaligned;
            parts[2] += sparsity(alignment);
        }
        let Options { alpha, beta, penalty, .. } = *self.options;
        let mut objective = Objective::new(parts[0], parts[1], parts[2], alpha, beta);
        if penalty != Penalty::Published {
            objective.total = objective.loss + weighted;
        }
        objective
    }

    /// V, with its scale applied; none is left.
    pub fn take_v(&mut self) -> Matrix {
        let mut v = std::mem::take(&mut self.v);
        v.scale_columns(&self.scale);
        v
    }
}
