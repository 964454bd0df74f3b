//! Rows of a view, seen along some directions.

use crate::lens::{Lens, Scratch};
use crate::parallel::{block_size, ordered};
use crate::source::{Buffer, Source};
use crate::{Matrix, Result};

/// Calls `work` with an accumulator, the instances of a block that the view shows and their products with the directions, a row
/// for each; `merge` is given the accumulators in the order of the blocks, and must reset them.
pub(super) fn each_block<A: Send>(
    (source, view, lens): (&dyn Source, usize, &Lens),
    directions: &Matrix,
    new: impl Fn() -> A + Sync,
    work: impl Fn(&[usize], &Matrix, &mut A) -> Result<()> + Sync,
    mut merge: impl FnMut(&mut A) + Send,
) -> Result<()> {
    let (instances, count) = (source.instances(), directions.columns());
    let size = block_size(instances);
    let mut buffer = Buffer::default();
    let operand = lens.operand(&source.block(view, 0..instances.min(1), &mut buffer)?.rows, directions);
    ordered(
        (0..instances).step_by(size),
        || (new(), Buffer::default(), Scratch::default()),
        |start, (part, buffer, scratch)| {
            let range = start..(start + size).min(instances);
            let block = source.block(view, range.clone(), buffer)?;
            let rows: Vec<_> = range.filter_map(|i| Some((i, block.index.row(i - start)?))).collect();
            let mut products = Matrix::zeros(rows.len(), count);
            lens.project_each(&block, &rows, &operand, scratch, |i, own| {
                products.row_mut(i).copy_from_slice(own);
            });
            let shown: Vec<usize> = rows.iter().map(|row| row.0).collect();
            work(&shown, &products, part)
        },
        |(part, _, _)| merge(part),
    )
}
