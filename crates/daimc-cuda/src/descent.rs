//! Inputs of coordinate descent, which the V steps share: Gram matrices and the tables that kernels read.

use daimc::Matrix;
use daimc::accelerator::v_step::SMALLEST_DIAGONAL;
use daimc_core::linalg::transposed_product;

use crate::kernels::TILE;

/// The entries of `G = Σ_v U_vᵀU_v` over the views of a presence pattern; `view_grams` has `U_vᵀU_v` of each view, k × k.
pub fn gram_of(views: &[usize], view_grams: &[Vec<f64>], k: usize) -> impl Fn(usize, usize) -> f64 {
    move |row, column| views.iter().map(|&view| view_grams[view][row * k + column]).sum()
}

/// `UᵀU` of each view.
pub fn grams(bases: &[Matrix]) -> Vec<Vec<f64>> {
    bases.iter().map(|basis| transposed_product(basis, basis).into_values()).collect()
}

/// Length of a table for `width` columns of V: a Gram matrix, its squares on the diagonal, steps and offsets.
pub fn table_size(width: usize) -> usize {
    (width + TILE + 2) * width
}

/// Fills a zeroed table from a Gram matrix, k × k, in the layout that `kernels/descent.cuh` defines. The offsets stay zero.
pub fn fill_table(table: &mut [f32], width: usize, k: usize, gram: impl Fn(usize, usize) -> f64) {
    let (matrix, rest) = table.split_at_mut(width * width);
    let (squares, rest) = rest.split_at_mut(TILE * width);
    for row in 0..k {
        let diagonal = gram(row, row);
        let step = if diagonal >= SMALLEST_DIAGONAL { 1.0 / diagonal } else { 0.0 };
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
