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
            )
        })?;
        Ok(filled)
    }
}

/// Writes the rows that a block shows: what is there, and what the model makes of the rest.
fn fill(piece: &Piece<'_>, lens: &Lens, basis: &Matrix, latent: &Matrix, rows: &mut [f64]) {
    let (block, d) = (&piece.blocks[0], lens.features());
    for (instance, row) in piece.shown() {
        let at = (instance - piece.instances.start) * d;
        let out = &mut rows[at..at + d];
        // A feature that took no part in the fit is filled in as in rows that are missing.
        let lacks = block.holes.row(row).iter().map(|&f| f as usize);
        let mut made: Vec<(usize, f64)> = lacks.map(|f| (f, out[f])).collect();
        made.extend(lens.holes(block, row).map(|f| {
            let value = dot(basis.row(f), latent.row(instance));
            (f, lens.scaling.undo_value(f, value, lens.full_factor(instance)))
        }));
        match block.rows {
            Rows::DenseF32(x) => out.iter_mut().zip(&x[row * d..]).for_each(|(out, x)| *out = f64::from(*x)),
            Rows::DenseF64(x) => out.copy_from_slice(&x[row * d..(row + 1) * d]),
            Rows::SparseF32(csr) => scatter(csr, row, out),
            Rows::SparseF64(csr) => scatter(csr, row, out),
        }
        made.into_iter().for_each(|(f, value)| out[f] = value);
    }
}

fn scatter<T: Scalar>(csr: Csr<'_, T>, row: usize, out: &mut [f64]) {
    let (columns, values) = csr.row(row);
    out.fill(0.0);
    columns.iter().zip(values).for_each(|(&f, x)| out[f as usize] = x.to_f64());
}
