//! Rows of a view, seen along some directions.

use crate::lens::{Lens, Scratch};
use crate::scan::Scan;
use crate::{Matrix, Result};

/// Calls `work` with an accumulator, the instances of a block that the view shows and their products with the directions, a row
/// for each; `merge` is given the accumulators in the order of the blocks, and must reset them. In a view that has a centre
/// the products are those of the rows less the centre: whoever looks along directions compares rows with each other.
pub(super) fn each_block<A: Send>(
    (scan, view, lens): (&Scan<'_>, usize, &Lens),
    directions: &Matrix,
    new: impl Fn() -> A + Sync,
    work: impl Fn(&[usize], &Matrix, &mut A) -> Result<()> + Sync,
    mut merge: impl FnMut(&mut A) + Send,
) -> Result<()> {
    let operand = lens.operand(directions);
    let along = lens.along_centre(directions);
    scan.pass_view(
        view,
        || (new(), Scratch::default()),
        |piece, (part, scratch)| {
            let rows = piece.shown();
            let mut products = Matrix::zeros(rows.len(), directions.columns());
            lens.project_each(&piece.blocks[0], &rows, &operand, scratch, |i, own| {
                let row = products.row_mut(i).iter_mut().zip(own.iter().zip(&along));
                row.for_each(|(out, (own, along))| *out = own - along);
            });
            let shown: Vec<usize> = rows.iter().map(|row| row.0).collect();
            work(&shown, &products, part)
        },
        |(part, _)| merge(part),
    )
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::kmeans::Points;
    use crate::scale::{Scale, Scaling};
    use crate::source::Buffer;
    use crate::{Stop, View, Views};

    /// All products, and the covariance of each pair of directions, as sums and squares of products would give it.
    #[test]
    fn covariances_of_products_keep_their_digits_under_an_offset() {
        let (n, d) = (400, 20);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let values: Vec<f32> = (0..n * d).map(|_| 1e5 + rng.random_range(-1.0..1.0_f32)).collect();
        let source = Views::new(vec![View::dense("x", d, values).unwrap()]).unwrap();
        let directions = Matrix::from_fn(d, 3, |_, _| rng.random_range(-1.0..1.0));
        for scale in [Scale::None, Scale::Unit] {
            let scan = Scan::new(&source, &Stop::new());
            let lens = Lens::fit(&scan, 0, Scaling::fit(&scan, 0, scale).unwrap(), true).unwrap();
            let mut products = Vec::new();
            let keep = |_: &[usize], rows: &Matrix, part: &mut Vec<f64>| {
                part.extend_from_slice(rows.values());
                Ok(())
            };
            each_block((&scan, 0, &lens), &directions, Vec::new, keep, |part| products.append(part)).unwrap();
            let products = Matrix::new(n, 3, products).unwrap();
            let all: Vec<u32> = (0..n as u32).collect();
            let mut buffer = Buffer::default();
            let points = Points::new(&scan, 0, &lens, &all, &mut buffer).unwrap();
            let literal = Matrix::from_fn(n, 3, |i, k| {
                points.values(i).iter().zip(directions.iter_rows()).map(|(x, u)| x * u[k]).sum()
            });
            let mean = |of: &Matrix, k: usize| of.iter_rows().map(|row| row[k]).sum::<f64>() / n as f64;
            for k in 0..3 {
                let (own, expected) = (mean(&products, k), mean(&literal, k));
                let raw = products.iter_rows().map(|row| row[k] * row[k]).sum::<f64>() / n as f64 - own * own;
                let deviation = |row: &[f64]| (row[k] - expected).powi(2);
                let exact = literal.iter_rows().map(deviation).sum::<f64>() / n as f64;
                assert!((raw / exact - 1.0).abs() < 1e-4, "{scale}, direction {k}: {raw:e}, {exact:e}");
            }
        }
    }
}
