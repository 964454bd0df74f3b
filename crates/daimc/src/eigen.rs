//! The leading eigenvectors of a large symmetric operator whose eigenvalues lie between −1 and 1, such as the normalised
//! weights of a graph: a block of vectors is sharpened by a polynomial that is small on the eigenvalues not wanted
//! (Chebyshev's) and large above them, and turned to the best vectors of its span, until they are eigenvectors.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::{Matrix, linalg};

/// Up to this order all eigenvectors are worked out.
const SMALL: usize = 300;
/// Degree of the polynomial, rounds at most, and the residual that is good enough.
const DEGREE: usize = 12;
const MOST_ROUNDS: usize = 60;
const RESIDUAL: f64 = 1e-6;
/// Rows that one thread works on; sums over rows are made in this order.
const ROWS: usize = 4096;

/// The `count` largest eigenvalues, descending, and their eigenvectors in columns. `apply` multiplies n × anything.
pub(crate) fn leading(
    apply: impl Fn(&Matrix) -> Matrix,
    n: usize,
    count: usize,
    seed: u64,
) -> (Vec<f64>, Matrix) {
    let width = count + 4 + count / 4;
    if n <= SMALL.max(2 * width) {
        let identity = Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)));
        let (values, vectors) = linalg::symmetric_eigen(&apply(&identity));
        let count = count.min(n);
        let largest = (0..count).map(|k| values[n - 1 - k]).collect();
        return (largest, Matrix::from_fn(n, count, |i, k| vectors[(i, n - 1 - k)]));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut block = orthonormal(&Matrix::from_fn(n, width, |_, _| rng.random_range(-1.0..1.0)));
    let mut values = Vec::new();
    for round in 0..MOST_ROUNDS {
        let image = apply(&block);
        let (ascending, turn) = linalg::symmetric_eigen(&transposed_product(&block, &image));
        let turn = Matrix::from_fn(width, width, |i, k| turn[(i, width - 1 - k)]);
        values = ascending.into_iter().rev().collect::<Vec<_>>();
        block = product(&block, &turn);
        let image = product(&image, &turn);
        if residual(&image, &block, &values[..count]) <= RESIDUAL || round + 1 == MOST_ROUNDS {
            break;
        }
        block = orthonormal(&sharpen(&apply, block, image, values[width - 1]));
    }
    values.truncate(count);
    (values, Matrix::from_fn(n, count, |i, k| block[(i, k)]))
}

/// The longest `S x − λ x`.
fn residual(image: &Matrix, block: &Matrix, values: &[f64]) -> f64 {
    let mut squares = vec![0.0; values.len()];
    for (image, block) in image.iter_rows().zip(block.iter_rows()) {
        for (k, square) in squares.iter_mut().enumerate() {
            *square += (image[k] - values[k] * block[k]).powi(2);
        }
    }
    squares.into_iter().fold(0.0, f64::max).sqrt()
}

/// The Chebyshev polynomial of the operator, stretched from −1 … 1 to −1 … `bound`, times the block.
fn sharpen(apply: impl Fn(&Matrix) -> Matrix, block: Matrix, image: Matrix, bound: f64) -> Matrix {
    // An interval of some length, and short of the eigenvalue 1 that a connected graph has.
    let bound = bound.clamp(-0.9, 0.9999);
    let (centre, half) = (f64::midpoint(bound, -1.0), f64::midpoint(bound, 1.0));
    let mut last = block;
    let mut now = image;
    combine(&mut now, 1.0 / half, -centre / half, &last);
    for _ in 1..DEGREE {
        let mut next = apply(&now);
        combine(&mut next, 2.0 / half, -2.0 * centre / half, &now);
        combine(&mut next, 1.0, -1.0, &last);
        (last, now) = (now, next);
    }
    now
}

/// `A ← a A + b B`.
fn combine(matrix: &mut Matrix, a: f64, b: f64, other: &Matrix) {
    let values = matrix.values_mut().par_chunks_mut(ROWS).zip(other.values().par_chunks(ROWS));
    values.for_each(|(values, others)| {
        values.iter_mut().zip(others).for_each(|(value, other)| *value = a * *value + b * other);
    });
}

/// Orthonormal columns with the span of these: twice through the eigenvectors of their products, which is enough for
/// columns that are not too nearly the same.
fn orthonormal(block: &Matrix) -> Matrix {
    let once = |block: &Matrix| {
        let (mut values, mut turn) = linalg::symmetric_eigen(&transposed_product(block, block));
        linalg::lift(&mut values, 1.0);
        turn.scale_columns(&values.iter().map(|value| value.sqrt().recip()).collect::<Vec<_>>());
        product(block, &turn)
    };
    once(&once(block))
}

fn blocks(matrix: &Matrix) -> impl IndexedParallelIterator<Item = Matrix> {
    let columns = matrix.columns();
    let rows = move |values: &[f64]| {
        Matrix::new(values.len() / columns, columns, values.to_vec()).expect("whole rows")
    };
    matrix.values().par_chunks(ROWS * columns).map(rows)
}

/// `Aᵀ B`, its sums always in the same order.
fn transposed_product(a: &Matrix, b: &Matrix) -> Matrix {
    let parts = blocks(a).zip(blocks(b)).map(|(a, b)| linalg::transposed_product(&a, &b));
    let mut sum = Matrix::zeros(a.columns(), b.columns());
    for part in parts.collect::<Vec<_>>() {
        sum.values_mut().iter_mut().zip(part.values()).for_each(|(sum, part)| *sum += part);
    }
    sum
}

fn product(a: &Matrix, small: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.rows(), small.columns());
    let parts = out.values_mut().par_chunks_mut(ROWS * small.columns());
    parts.zip(blocks(a)).for_each(|(out, a)| out.copy_from_slice(linalg::product(&a, small).values()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A symmetric matrix with known leading eigenvectors: a few planted, noise below them.
    fn planted(n: usize) -> (Matrix, Vec<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let vectors = orthonormal(&Matrix::from_fn(n, 40, |_, _| rng.random_range(-1.0..1.0)));
        let values: Vec<f64> = (0..40)
            .map(|k| {
                let k = f64::from(k);
                if k < 6.0 { 1.0 - 0.05 * k } else { 0.6 / k - 0.5 }
            })
            .collect();
        let mut scaled = vectors.clone();
        scaled.scale_columns(&values);
        (linalg::product_transposed(&scaled, &vectors), values)
    }

    #[test]
    fn the_largest_eigenvalues_are_found_above_and_below_the_small_order() {
        for n in [60, SMALL, 900] {
            let (matrix, expected) = planted(n);
            let (values, vectors) = leading(|x| linalg::product(&matrix, x), n, 6, 1);
            for k in 0..6 {
                assert!((values[k] - expected[k]).abs() < 1e-9, "{n}: {values:?}");
            }
            let image = linalg::product(&matrix, &vectors);
            let worst = (0..n).flat_map(|i| (0..6).map(move |k| (i, k)));
            let worst =
                worst.map(|(i, k)| (image[(i, k)] - values[k] * vectors[(i, k)]).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-5, "{n}: {worst}");
        }
    }

    #[test]
    fn eigenvalues_that_are_equal_span_their_space() {
        // Four groups without a link between them: the eigenvalue 1 four times.
        let (n, groups) = (800, 4);
        let share = groups as f64 / n as f64;
        let apply = |x: &Matrix| {
            let mut sums = Matrix::zeros(groups, x.columns());
            for i in 0..n {
                for (sum, value) in sums.row_mut(i % groups).iter_mut().zip(x.row(i)) {
                    *sum += share * value;
                }
            }
            Matrix::from_fn(n, x.columns(), |i, k| sums[(i % groups, k)])
        };
        let (values, vectors) = leading(apply, n, groups, 0);
        assert!(values.iter().all(|value| (value - 1.0).abs() < 1e-9), "{values:?}");
        for i in groups..n {
            for k in 0..groups {
                assert!((vectors[(i, k)] - vectors[(i % groups, k)]).abs() < 1e-6);
            }
        }
    }
}
