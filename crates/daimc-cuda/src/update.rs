//! What the V step in single precision is given.

use crate::kernels::TILE;
use crate::shard::SMALLEST;

/// Numbers of a table for so many columns of V: a Gram matrix, its squares on the diagonal, steps and offsets.
pub fn table_size(width: usize) -> usize {
    (width + TILE + 2) * width
}

/// Writes the table of a Gram matrix, k × k, into zeros, as `kernels/descent.cuh` takes it; its offsets remain zeros.
pub fn fill_table(table: &mut [f32], width: usize, k: usize, gram: impl Fn(usize, usize) -> f64) {
    let (matrix, rest) = table.split_at_mut(width * width);
    let (squares, rest) = rest.split_at_mut(TILE * width);
    for row in 0..k {
        let diagonal = gram(row, row);
        let step = if diagonal >= SMALLEST { 1.0 / diagonal } else { 0.0 };
        rest[row] = step as f32;
        for column in 0..k {
            let value = (gram(row, column) * step) as f32;
            matrix[(column / 4 * width + row) * 4 + column % 4] = value;
            if row / TILE == column / TILE {
                squares[column * TILE + row % TILE] = value;
            }
        }
    }
}
