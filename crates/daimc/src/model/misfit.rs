//! How far the data are from what the model makes of them.

use super::Model;
use crate::lens::{Lens, Scratch};
use crate::linalg::transposed_product;
use crate::matrix::dot;
use crate::parallel::{block_size, ordered};
use crate::source::{Buffer, Source};
use crate::text::{list, plain};
use crate::{Error, Matrix, Result, Views};

/// How far the rows of a view are from what the model makes of them, scaled as in the fit. Both numbers are zero for
/// an instance that the view does not show.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Misfit {
    /// `‖x_j − U v_j‖²` of each instance.
    pub error: Vec<f64>,
    /// `‖x_j‖²` of each instance.
    pub square: Vec<f64>,
}

/// Rows whose products are taken together.
const TILE: usize = 120;

impl Model {
    /// How far each instance that the model was fitted to is from its reconstruction in one view. Summed over
    /// instances and views, the errors are the loss of [`Model::objective`].
    ///
    /// ```
    /// use daimc::{Daimc, Views, synthetic::Synthetic};
    ///
    /// let data = Synthetic::new(100, 3);
    /// let views = Views::new(vec![data.dense::<f64>("a", 20)?])?;
    /// let model = Daimc::new(3).fit(&views)?;
    /// let misfit = model.misfit(&views, "a")?;
    /// let unexplained = misfit.error.iter().sum::<f64>() / misfit.square.iter().sum::<f64>();
    /// assert!((0.0..1.0).contains(&unexplained));
    /// # Ok::<(), daimc::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not the instances or the features of the model, or it has no such view.
    pub fn misfit(&self, views: &Views<'_>, view: &str) -> Result<Misfit> {
        let own = self.view(view)?;
        let Some((number, data)) = views.iter().enumerate().find(|(_, data)| data.name() == view) else {
            let given = list(views.iter().map(|view| plain(view.name())));
            let reason = format!("the model has it, but the views that were given are {given}");
            return Err(Error::Unsuitable { what: "view", value: view.into(), reason });
        };
        own.check(data)?;
        let (instances, expected) = (views.instances(), self.latent.rows());
        if instances != expected {
            return Err(Error::LengthMismatch { what: "instances".into(), expected, found: instances });
        }
        let lens = Lens::new(views, number, own.scaling.clone())?;
        Misfit::of(views, number, &lens, &own.basis, &self.latent)
    }
}

impl Misfit {
    /// How far the rows of a view are from `U v`.
    pub(crate) fn of(
        source: &dyn Source,
        view: usize,
        lens: &Lens,
        basis: &Matrix,
        latent: &Matrix,
    ) -> Result<Self> {
        let instances = source.instances();
        let gram = transposed_product(basis, basis);
        let mut buffer = Buffer::default();
        let kind = source.block(view, 0..instances.min(1), &mut buffer)?.rows;
        let operand = lens.operand(&kind, basis);
        let size = block_size(instances);
        let mut total = Self::default();
        ordered(
            (0..instances).step_by(size),
            || (Self::default(), Buffer::default(), Scratch::default()),
            |start, (part, buffer, scratch)| {
                let range = start..(start + size).min(instances);
                part.error.clear();
                part.error.resize(range.len(), 0.0);
                part.square.clear();
                part.square.resize(range.len(), 0.0);
                let block = source.block(view, range.clone(), buffer)?;
                let row = |i: usize| Some((i, block.index.row(i - start)?));
                let here: Vec<(usize, usize)> = range.filter_map(row).collect();
                for rows in here.chunks(TILE) {
                    lens.project_each(&block, rows, &operand, scratch, |i, products| {
                        let v = latent.row(rows[i].0);
                        let square = lens.square(&block, rows[i]);
                        // ‖x − Uv‖² = ‖x‖² − 2 (Uᵀx)ᵀv + vᵀ(UᵀU)v
                        let made: f64 = gram.iter_rows().zip(v).map(|(row, v_k)| v_k * dot(row, v)).sum();
                        part.square[rows[i].0 - start] = square;
                        // Rounding may take it below zero.
                        part.error[rows[i].0 - start] = (square - 2.0 * dot(products, v) + made).max(0.0);
                    });
                }
                Ok::<_, Error>(())
            },
            |(part, _, _)| {
                total.error.append(&mut part.error);
                total.square.append(&mut part.square);
            },
        )?;
        Ok(total)
    }
}
