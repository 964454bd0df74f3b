//! The shard on the CPU.

use std::ops::Range;
use std::sync::Arc;

use super::Sweep;
use crate::accelerator::Load;
use crate::blocks::Blocks;
use crate::scaling::Scaling;
use crate::shard::{Shard, VStep, leading};
use crate::source::Source;
use crate::statistics::{Factors, Statistics};
use crate::text::quoted;
use crate::{Error, Matrix, Result, Stop};

/// The shard of a [`Source`] on the CPU.
pub struct Cpu<'a> {
    sweep: Arc<Sweep<'a>>,
    v: Matrix,
}

impl<'a> Cpu<'a> {
    /// All instances of a source, each view seen through its scaling, such as that of a
    /// `ViewModel`.
    ///
    /// # Errors
    /// When there is not a scaling for each view, one cannot be applied, or rows cannot be read.
    pub fn new(source: &'a dyn Source, scalings: &[Scaling], latent: usize) -> Result<Self> {
        Self::over(source, Blocks::all(source.instances()), scalings, latent)
    }

    /// As [`Cpu::new`], for a source of a partition of the instances: `range` of `total`, one of [`aligned`](crate::aligned).
    ///
    /// # Errors
    /// As [`Cpu::new`], and when `aligned` does not return the range.
    pub fn part(
        source: &'a dyn Source,
        range: Range<usize>,
        total: usize,
        scalings: &[Scaling],
        latent: usize,
    ) -> Result<Self> {
        let wrong = |reason: String| Error::Unsuitable { what: "range", value: format!("{range:?}"), reason };
        if range.len() != source.instances() {
            return Err(wrong(format!("the source has {} instances", source.instances())));
        }
        let blocks = Blocks::some(range.clone(), total).ok_or_else(|| {
            wrong(format!("not whole leaves of {total} instances; take ranges from `aligned`"))
        })?;
        Self::over(source, blocks, scalings, latent)
    }

    fn over(source: &'a dyn Source, blocks: Blocks, scalings: &[Scaling], latent: usize) -> Result<Self> {
        Ok(Self::of(Arc::new(Sweep::over(Load::part(source, blocks, scalings, latent)?))))
    }

    /// A shard with an empty V.
    pub fn of(sweep: Arc<Sweep<'a>>) -> Self {
        Self { sweep, v: Matrix::default() }
    }

    /// The rows of V.
    pub fn into_latent(self) -> Matrix {
        self.v
    }

    /// Fails if the factors do not have the shapes of the views, or V is not set.
    fn check(&self, factors: &Factors) -> Result<()> {
        let latent = self.sweep.latent();
        let same = |what: &str, expected: usize, found: usize| {
            if expected == found {
                return Ok(());
            }
            Err(Error::LengthMismatch { what: what.into(), expected, found })
        };
        same("rows of V, set by `start`", self.instances(), self.v.rows())?;
        same("scale of V", latent, factors.scale.len())?;
        let schema = self.sweep.scan.schema();
        same("bases", schema.len(), factors.bases.len())?;
        for (view, basis) in schema.views().zip(&factors.bases) {
            same(
                &format!("rows of the basis of view {}", quoted(view.name())),
                view.features(),
                basis.rows(),
            )?;
            same(&format!("columns of the basis of view {}", quoted(view.name())), latent, basis.columns())?;
        }
        Ok(())
    }

    /// `Σ_j w_j ‖x_j‖²` of each view. A `Descent` takes their sums over all shards.
    #[must_use]
    pub fn squares(&self) -> Vec<f64> {
        self.sweep.sums_of_squares()
    }
}

impl Shard for Cpu<'_> {
    fn instances(&self) -> usize {
        self.sweep.scan.instances()
    }

    fn start(&mut self, v: Matrix, stop: &Stop) -> Result<Statistics> {
        self.hold(v, stop)?;
        self.sweep.gather(&mut self.v, stop)
    }

    fn hold(&mut self, v: Matrix, _: &Stop) -> Result<()> {
        let (rows, latent) = (self.instances(), self.sweep.latent());
        if (v.rows(), v.columns()) != (rows, latent) {
            let reason = format!("V must be {rows} × {latent}, instances × latent");
            return Err(Error::Unsuitable {
                what: "V",
                value: format!("{} × {}", v.rows(), v.columns()),
                reason,
            });
        }
        self.v = v;
        Ok(())
    }

    fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Statistics> {
        self.check(factors)?;
        self.sweep.run(factors, step, &mut self.v, stop)
    }

    fn latent(&self) -> Matrix {
        self.v.clone()
    }

    fn into_latent(self: Box<Self>) -> Matrix {
        self.v
    }

    fn leading(&self, scale: &[f64]) -> Vec<u32> {
        leading(&self.v, scale)
    }
}
