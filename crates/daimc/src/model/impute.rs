//! What instances lack, filled in.

use super::Model;
use crate::kernel::Scalar;
use crate::lens::Lens;
use crate::matrix::dot;
use crate::prepared::Prepared;
use crate::scan::{Piece, Scan, off_the_pool};
use crate::source::{Csr, Rows, Source};
use crate::{Matrix, Result, Stop};

impl Model {
    /// The rows of a view, one for each instance, with what is missing filled in, given their rows of V: cells that are
    /// there as they are; those that a row lacks as the model makes them of `v`, in the length of the row; and rows that
    /// the view does not show as [`Model::reconstruct`] does. A view that is not given shows nobody.
    ///
    /// # Errors
    /// When there is not a row of V for each instance, and when these are not the features of the model, or it has no such
    /// view.
    pub fn impute(&self, source: &dyn Source, view: &str, latent: &Matrix) -> Result<Matrix> {
        let mut filled = self.reconstruct(view, latent)?;
        let Some(number) = (0..source.views()).find(|&number| source.name(number) == view) else {
            return Ok(filled);
        };
        let own = self.checked(source, number, latent)?;
        off_the_pool(source, || {
            let prepared = Prepared::one(source, number, &own.preparation)?;
            let scan = Scan::new(&prepared, &Stop::default());
            let lens = Lens::new(&scan, number, own.scaling.clone())?;
            let d = own.basis.rows();
            scan.pass(
                number..number + 1,
                filled.values_mut().chunks_mut(scan.blocks().size() * d),
                || (),
                |piece, rows, ()| {
                    fill(&piece, &lens, &own.basis, latent, rows);
                    Ok(())
                },
                |_, ()| {},
            )?;
            // What is there, as it was given and not as it was prepared.
            let scan = Scan::new(source, &Stop::default());
            scan.pass(
                number..number + 1,
                filled.values_mut().chunks_mut(scan.blocks().size() * d),
                || (),
                |piece, rows, ()| {
                    observed(&piece, d, rows);
                    Ok(())
                },
                |_, ()| {},
            )
        })?;
        Ok(filled)
    }
}

/// Writes what the model makes of the cells that rows of a block lack.
fn fill(piece: &Piece<'_>, lens: &Lens, basis: &Matrix, latent: &Matrix, rows: &mut [f64]) {
    let (block, d) = (&piece.blocks[0], lens.features());
    for (instance, row) in piece.shown() {
        let at = (instance - piece.instances.start) * d;
        // A feature that took no part in the fit is filled in as in rows that are missing.
        for f in lens.holes(block, row) {
            let value = dot(basis.row(f), latent.row(instance));
            rows[at + f] = lens.scaling.undo_value(f, value, lens.full_factor(instance));
        }
    }
}

/// Writes the cells that rows of a block have.
fn observed(piece: &Piece<'_>, features: usize, rows: &mut [f64]) {
    for (instance, row) in piece.shown() {
        let out = &mut rows[(instance - piece.instances.start) * features..][..features];
        let given = row * features..(row + 1) * features;
        match piece.blocks[0].rows {
            Rows::DenseF32(x) => put(&x[given], out),
            Rows::DenseF64(x) => put(&x[given], out),
            Rows::SparseF32(csr) => scatter(csr, row, out),
            Rows::SparseF64(csr) => scatter(csr, row, out),
        }
    }
}

fn put<T: Scalar>(given: &[T], out: &mut [f64]) {
    let there = given.iter().map(|x| x.to_f64()).zip(out).filter(|(x, _)| !x.is_nan());
    there.for_each(|(x, out)| *out = x);
}

fn scatter<T: Scalar>(csr: Csr<'_, T>, row: usize, out: &mut [f64]) {
    let (columns, values) = csr.row(row);
    out.fill(0.0);
    columns.iter().zip(values).for_each(|(&f, x)| out[f as usize] = x.to_f64());
}
