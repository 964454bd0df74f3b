//! The error of the reconstruction of the data by the model.

use super::Model;
use daimc_core::linalg::transposed_product;
use daimc_core::matrix::dot;
use daimc_core::prepared::Prepared;
use daimc_core::scaled_view::{ScaledView, Scratch};
use daimc_core::scan::{Scan, off_the_pool};
use daimc_core::source::Source;
use daimc_core::text::{list, plain};
use daimc_core::{Error, Matrix, Result, Stop};

/// The squared error of the reconstruction of each row of a view, scaled as in the fit, over the observed cells. Both numbers are
/// zero for an instance without a row.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Misfit {
    /// `‖x_j − U v_j‖²` of each instance.
    pub error: Vec<f64>,
    /// `‖x_j‖²` of each instance.
    pub square: Vec<f64>,
}

/// Rows that are multiplied together.
const TILE: usize = 120;

impl Model {
    /// The error of the reconstruction of instances in one view, given their rows of V, such as those from [`Model::transform`].
    ///
    /// # Errors
    /// When the number of rows of V differs from the number of instances, when the features differ from those of the model, or
    /// when the model has no such view.
    pub fn misfit_of(&self, source: &dyn Source, view: &str, latent: &Matrix) -> Result<Misfit> {
        self.view(view)?;
        let schema = source.schema();
        let Some(number) = (0..schema.len()).find(|&number| schema.view_name(number) == view) else {
            let given = list((0..schema.len()).map(|view| plain(schema.view_name(view))));
            let reason = format!("the model has it, but the given views are {given}");
            return Err(Error::Unsuitable { what: "view", value: view.into(), reason });
        };
        let own = self.checked(source, number, latent)?;
        off_the_pool(source, || {
            let prepared = Prepared::one(source, number, &own.preparation)?;
            let scan = Scan::new(&prepared, &Stop::default());
            let scaled_view = ScaledView::new(&scan, number, own.scaling.clone())?;
            Misfit::of(&scan, number, &scaled_view, &own.basis, latent)
        })
    }
}

impl Misfit {
    /// The distance of the rows of a view from `U v`.
    pub(crate) fn of(
        scan: &Scan<'_>,
        view: usize,
        scaled_view: &ScaledView,
        basis: &Matrix,
        latent: &Matrix,
    ) -> Result<Self> {
        let gram = transposed_product(basis, basis);
        let operand = scaled_view.operand(basis);
        let mut total = Self::default();
        scan.pass_view(
            view,
            || (Self::default(), Scratch::default()),
            |piece, (part, scratch)| {
                let (start, count) = (piece.instances.start, piece.instances.len());
                part.error.clear();
                part.error.resize(count, 0.0);
                part.square.clear();
                part.square.resize(count, 0.0);
                let block = &piece.blocks[0];
                for rows in piece.shown().chunks(TILE) {
                    scaled_view.project_each(block, rows, &operand, scratch, |i, products| {
                        let v = latent.row(rows[i].0);
                        let square = scaled_view.square(block, rows[i]);
                        // ‖x − Uv‖² = ‖x‖² − 2 (Uᵀx)ᵀv + vᵀ(UᵀU)v
                        let made: f64 = gram.iter_rows().zip(v).map(|(row, v_k)| v_k * dot(row, v)).sum();
                        let filled = square - 2.0 * dot(products, v) + made;
                        let own = rows[i].0 - start;
                        part.square[own] = scaled_view.observed_square(block, rows[i]);
                        // Rounding may make it negative.
                        part.error[own] =
                            (filled - scaled_view.hole_error(block, rows[i], basis, v)).max(0.0);
                    });
                }
                Ok(())
            },
            |(part, _)| {
                total.error.append(&mut part.error);
                total.square.append(&mut part.square);
            },
        )?;
        Ok(total)
    }
}
