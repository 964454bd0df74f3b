//! Projections of the rows of a view on some directions.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use daimc_core::eigen;
use daimc_core::scaled_view::{ScaledView, Scratch};
use daimc_core::scan::Scan;
use daimc_core::source::Buffer;
use daimc_core::subset::Subset;
use daimc_core::sweep::Sweep;
use daimc_core::watch::Watch;
use daimc_core::{Matrix, Result, kmeans};

/// The maximum number of instances from which directions are computed.
pub(super) const SAMPLE: usize = 20_000;

/// The number of subspace iterations. Clusters that differ in a few of a thousand noisy features are hardly longer than the
/// noise, and one iteration does not find them.
const ITERATIONS: usize = 4;

/// At most `most` leading directions of the rows of a view (those of largest variance), in orthonormal columns. Random sums of
/// rows are multiplied several times with all rows or with a sample of them (subspace iteration). With no more features than
/// that, the directions are those of the features. `None` for a view without instances.
pub(super) fn longest(
    (scan, view, scaled_view): (&Scan<'_>, usize, &ScaledView),
    most: usize,
    sample: usize,
    seed: u64,
    watch: &Watch,
) -> Result<Option<Matrix>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(view as u64 + 1);
    let chosen = kmeans::sample(scan.source(), view, sample.min(SAMPLE), &mut rng);
    let (features, width) = (scaled_view.features(), most.min(chosen.len()));
    if width == 0 {
        return Ok(None);
    }
    if features <= width {
        return Ok(Some(Matrix::from_fn(features, features, |i, j| f64::from(u8::from(i == j)))));
    }
    let mut buffer = Buffer::default();
    let part = Subset::of_view(scan, view, &chosen, &mut buffer)?;
    let part = Scan::new(&part, &watch.stop);
    let own = ScaledView::new(&part, 0, scaled_view.scaling.clone())?;
    let sweep = Sweep::new(part, vec![own], width);
    let sums = |mut factors: Matrix| -> Result<Matrix> {
        let mut sums = sweep.gather(&mut factors, &watch.stop)?.whole()?.cross.swap_remove(0);
        eigen::orthonormalise(sums.values_mut(), width)?;
        Ok(sums)
    };
    let mut directions = sums(Matrix::from_fn(chosen.len(), width, |_, _| rng.random_range(-1.0..1.0)))?;
    for _ in 0..ITERATIONS {
        watch.check()?;
        let mut products = Vec::with_capacity(chosen.len() * width);
        each_block(
            (&sweep.scan, 0, &sweep.scaled_views[0]),
            &directions,
            std::iter::repeat(()),
            Vec::new,
            |seen, (), part: &mut Vec<f64>| {
                part.extend_from_slice(seen.products);
                Ok(())
            },
            |part| products.append(part),
        )?;
        directions = sums(Matrix::new(chosen.len(), width, products)?)?;
    }
    Ok(Some(directions))
}

/// Rows that are multiplied together, so that the products stay in the cache.
const TILE: usize = 128;

/// The instances of a block with a row in the view, and their products with the directions.
pub(super) struct Projected<'a> {
    /// The first instance of the block.
    pub first: usize,
    /// A row for each instance, concatenated.
    pub products: &'a [f64],
    /// Instance and row of the view.
    shown: &'a [(usize, usize)],
}

impl Projected<'_> {
    /// The instances and their products.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[f64])> {
        let width = self.products.len() / self.shown.len().max(1);
        let row = move |i: usize| &self.products[i * width..(i + 1) * width];
        self.shown.iter().enumerate().map(move |(i, at)| (at.0, row(i)))
    }
}

/// Calls `work` with the projections of each block, the next of `items` and an accumulator; `merge` receives the accumulators in
/// the order of the blocks. One of the two must reset them. If the view has a centre, it is subtracted from the rows.
pub(super) fn each_block<I, A: Send>(
    (scan, view, scaled_view): (&Scan<'_>, usize, &ScaledView),
    directions: &Matrix,
    items: I,
    new: impl Fn() -> A + Sync,
    work: impl Fn(&Projected<'_>, I::Item, &mut A) -> Result<()> + Sync,
    mut merge: impl FnMut(&mut A) + Send,
) -> Result<()>
where
    I: Iterator + Send,
    I::Item: Send,
{
    let operand = scaled_view.operand(directions);
    let along = scaled_view.along_centre(directions);
    scan.pass(
        view..view + 1,
        items,
        || (new(), Scratch::default(), Vec::new()),
        |piece, item, (part, scratch, products)| {
            let shown = piece.shown();
            products.clear();
            for rows in shown.chunks(TILE) {
                scaled_view.project_each(&piece.blocks[0], rows, &operand, scratch, |_, own| {
                    products.extend(own.iter().zip(&along).map(|(own, along)| own - along));
                });
            }
            work(&Projected { first: piece.instances.start, products, shown: &shown }, item, part)
        },
        |_, (part, _, _)| merge(part),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use daimc_core::kmeans::Points;
    use daimc_core::scaling::{Scale, Scaling};
    use daimc_core::{Stop, View, Views};

    /// Compares all products, and the covariance of each pair of directions, with sums and squares of products.
    #[test]
    fn covariances_of_products_keep_their_digits_under_an_offset() {
        let (n, d) = (400, 20);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let values: Vec<f32> = (0..n * d).map(|_| 1e5 + rng.random_range(-1.0..1.0_f32)).collect();
        let source = Views::new(vec![View::dense("x", d, values).unwrap()]).unwrap();
        let directions = Matrix::from_fn(d, 3, |_, _| rng.random_range(-1.0..1.0));
        for scale in [Scale::None, Scale::Unit] {
            let scan = Scan::new(&source, &Stop::new());
            let scaled_view =
                ScaledView::fit(&scan, 0, Scaling::fit(&scan, 0, scale).unwrap(), true).unwrap();
            let mut products = Vec::new();
            let keep = |seen: &Projected<'_>, (), part: &mut Vec<f64>| {
                part.extend_from_slice(seen.products);
                Ok(())
            };
            let items = std::iter::repeat(());
            let merge = |part: &mut Vec<f64>| products.append(part);
            each_block((&scan, 0, &scaled_view), &directions, items, Vec::new, keep, merge).unwrap();
            let products = Matrix::new(n, 3, products).unwrap();
            let all: Vec<u32> = (0..n as u32).collect();
            let mut buffer = Buffer::default();
            let points = Points::new(&scan, 0, &scaled_view, &all, &mut buffer).unwrap();
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
