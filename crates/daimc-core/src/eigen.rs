//! The leading eigenvectors of a large symmetric operator whose eigenvalues are between −1 and 1, such as the
//! normalised weights of a graph. Subspace iteration: a block of vectors is filtered by a Chebyshev polynomial, which
//! is small on the unwanted eigenvalues and large above them, and rotated to the Ritz vectors of its span, until these
//! are eigenvectors.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::kernel::Scalar;
use crate::{Matrix, Result, linalg};

/// Up to this order all eigenvectors are computed.
const SMALL: usize = 300;
/// The degree of the polynomial, the maximum number of rounds, and the residual at convergence.
const DEGREE: usize = 12;
const MOST_ROUNDS: usize = 60;
const RESIDUAL: f64 = 1e-6;
/// Rows per task. Sums over rows are computed in the order of the tasks.
const ROWS: usize = 4096;

/// The `count` largest eigenvalues, in descending order, and their eigenvectors in columns. `apply` multiplies the
/// operator with an n × m matrix.
///
/// # Errors
/// When the eigenvalues of a small matrix cannot be computed.
pub fn leading(
    apply: impl Fn(&Matrix) -> Matrix,
    n: usize,
    count: usize,
    seed: u64,
) -> Result<(Vec<f64>, Matrix)> {
    let into = |x: &[f64], [a, b, c]: [f64; 3], y: &mut [f64]| {
        let image = apply(&Matrix::new(n, x.len() / n, x.to_vec())?);
        for ((y, x), image) in y.iter_mut().zip(x).zip(image.values()) {
            *y = a * image + b * x + c * *y;
        }
        Ok(())
    };
    leading_in_place(&into, n, count, seed)
}

/// The matrix `S = R (A + t 11ᵀ) R` of weights between instances, where A is sparse and symmetric.
#[derive(Clone, Copy, Debug)]
pub struct Links<'a> {
    /// The entries of row i of A are at `offsets[i]..offsets[i + 1]`.
    pub offsets: &'a [usize],
    /// The column of each entry.
    pub columns: &'a [u32],
    /// The value of each entry.
    pub weights: &'a [f32],
    /// The diagonal of R.
    pub roots: &'a [f64],
    /// The background weight t.
    pub background: f64,
}

/// Multiplies blocks of vectors with the matrix of [`Links`].
pub trait Multiplier {
    /// `Y ← a S X + b X + c Y` with the first `[a, b, c]`, then `X ← a S Y + b Y + c X` with the second, and so on. Blocks are
    /// stored row by row, with one value per vector. The result of the last step is returned in its block; the other block is
    /// unchanged if there is one step, and undefined otherwise.
    ///
    /// # Errors
    /// When the device fails.
    fn multiply(&self, x: &mut [f32], y: &mut [f32], steps: &[[f64; 3]]) -> Result<()>;
}

/// A symmetric operator S on blocks of vectors, which are stored row by row.
pub trait Operator<T: Scalar> {
    /// `Y ← a S X + b X + c Y`.
    fn apply(&self, x: &mut [T], factors: [f64; 3], y: &mut [T]) -> Result<()>;

    /// Multiplies the block with the Chebyshev polynomial of S, stretched from −1 … 1 to −1 … `bound`, in place.
    /// `image` is S times the block, and is overwritten.
    fn sharpen(&self, block: &mut [T], image: &mut [T], bound: f64) -> Result<()> {
        let (centre, half) = interval(bound);
        image.par_chunks_mut(ROWS).zip(block.par_chunks(ROWS)).for_each(|(now, last)| {
            let pairs = now.iter_mut().zip(last);
            pairs.for_each(|(now, last)| *now = T::from_f64((now.to_f64() - centre * last.to_f64()) / half));
        });
        let (mut last, mut now) = (block, image);
        for _ in 1..DEGREE {
            self.apply(now, [2.0 / half, -2.0 * centre / half, -1.0], last)?;
            (last, now) = (now, last);
        }
        // Every second product is stored in the block, and the degree is even.
        const { assert!(DEGREE.is_multiple_of(2)) }
        Ok(())
    }
}

impl<T: Scalar, F: Fn(&[T], [f64; 3], &mut [T]) -> Result<()>> Operator<T> for F {
    fn apply(&self, x: &mut [T], factors: [f64; 3], y: &mut [T]) -> Result<()> {
        self(x, factors, y)
    }
}

impl Operator<f32> for dyn Multiplier + '_ {
    fn apply(&self, x: &mut [f32], factors: [f64; 3], y: &mut [f32]) -> Result<()> {
        self.multiply(x, y, &[factors])
    }

    fn sharpen(&self, block: &mut [f32], image: &mut [f32], bound: f64) -> Result<()> {
        let (centre, half) = interval(bound);
        let mut steps = [[2.0 / half, -2.0 * centre / half, -1.0]; DEGREE];
        steps[0] = [0.0, -centre / half, half.recip()];
        self.multiply(block, image, &steps)
    }
}

/// The centre and half the length of the interval −1 … `bound`.
fn interval(bound: f64) -> (f64, f64) {
    // Not empty, and below the eigenvalue 1 of a connected graph.
    let bound = bound.clamp(-0.9, 0.9999);
    (f64::midpoint(bound, -1.0), f64::midpoint(bound, 1.0))
}

/// The number of vectors that [`leading_in_place`] uses for `count` eigenvectors.
pub fn width(count: usize) -> usize {
    count + 4 + count / 4
}

/// As [`leading`], with a total of two blocks of vectors, each n × [`width`]. They are stored as `T`; sums are `f64`.
///
/// # Errors
/// The first error of the operator, and when the eigenvalues of a small matrix cannot be computed.
pub fn leading_in_place<T: Scalar>(
    operator: &(impl Operator<T> + ?Sized),
    n: usize,
    count: usize,
    seed: u64,
) -> Result<(Vec<f64>, Matrix)> {
    let width = width(count);
    if n <= SMALL.max(2 * width) {
        let count = count.min(n);
        let mut identity: Vec<T> =
            (0..n * n).map(|at| T::from_f64(f64::from(u8::from(at / n == at % n)))).collect();
        let mut image = vec![T::default(); n * n];
        operator.apply(&mut identity, [1.0, 0.0, 0.0], &mut image)?;
        let (values, vectors) = linalg::symmetric_eigen(&wide(&image, n))?;
        let largest = (0..count).map(|k| values[n - 1 - k]).collect();
        return Ok((largest, Matrix::from_fn(n, count, |i, k| vectors[(i, n - 1 - k)])));
    }
    let mut block: Vec<T> = random(n * width, seed);
    let mut image = vec![T::default(); n * width];
    let mut values = Vec::new();
    for round in 0..MOST_ROUNDS {
        orthonormalise(&mut block, width)?;
        operator.apply(&mut block, [1.0, 0.0, 0.0], &mut image)?;
        let (ascending, turn) = linalg::symmetric_eigen(&transposed_product(&block, &image, width))?;
        let turn = Matrix::from_fn(width, width, |i, k| turn[(i, width - 1 - k)]);
        values = ascending.into_iter().rev().collect::<Vec<_>>();
        multiply(&mut block, &turn);
        multiply(&mut image, &turn);
        if residual(&image, &block, &values, count) <= RESIDUAL || round + 1 == MOST_ROUNDS {
            break;
        }
        operator.sharpen(&mut block, &mut image, values[width - 1])?;
    }
    drop(image);
    values.truncate(count);
    let mut vectors = Matrix::zeros(n, count);
    vectors.each_row(|i, row| row.iter_mut().zip(&block[i * width..]).for_each(|(to, x)| *to = x.to_f64()));
    Ok((values, vectors))
}

/// Random numbers from −1 to 1, the same as a single thread would draw from the seed. Each takes two words of the stream.
fn random<T: Scalar>(count: usize, seed: u64) -> Vec<T> {
    let mut numbers = vec![T::default(); count];
    numbers.par_chunks_mut(ROWS).enumerate().for_each(|(part, numbers)| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_word_pos(2 * (part * ROWS) as u128);
        numbers.iter_mut().for_each(|number| *number = T::from_f64(rng.random_range(-1.0..1.0)));
    });
    numbers
}

/// The largest `‖S x − λ x‖` of the first `count` vectors.
fn residual<T: Scalar>(image: &[T], block: &[T], values: &[f64], count: usize) -> f64 {
    let width = values.len();
    let parts = image.par_chunks(ROWS * width).zip(block.par_chunks(ROWS * width)).map(|(image, block)| {
        let mut squares = vec![0.0; count];
        for (image, block) in image.chunks_exact(width).zip(block.chunks_exact(width)) {
            for (k, square) in squares.iter_mut().enumerate() {
                *square += (image[k].to_f64() - values[k] * block[k].to_f64()).powi(2);
            }
        }
        squares
    });
    let mut squares = vec![0.0; count];
    for part in parts.collect::<Vec<_>>() {
        squares.iter_mut().zip(part).for_each(|(square, part)| *square += part);
    }
    squares.into_iter().fold(0.0, f64::max).sqrt()
}

/// Makes the columns orthonormal without changing their span: twice through the eigenvectors of their Gram matrix,
/// which is enough unless columns are nearly dependent.
pub fn orthonormalise<T: Scalar>(block: &mut [T], width: usize) -> Result<()> {
    for _ in 0..2 {
        let (mut values, mut turn) = linalg::symmetric_eigen(&transposed_product(block, block, width))?;
        linalg::lift(&mut values, 1.0);
        turn.scale_columns(&values.iter().map(|value| value.sqrt().recip()).collect::<Vec<_>>());
        multiply(block, &turn);
    }
    Ok(())
}

/// Whole rows, converted to double precision.
fn wide<T: Scalar>(rows: &[T], width: usize) -> Matrix {
    let values = rows.iter().map(|value| value.to_f64()).collect();
    Matrix::new(rows.len() / width, width, values).expect("whole rows")
}

/// `Aᵀ B`, with sums in a fixed order.
fn transposed_product<T: Scalar>(a: &[T], b: &[T], width: usize) -> Matrix {
    let pairs = a.par_chunks(ROWS * width).zip(b.par_chunks(ROWS * width));
    let parts = pairs.map(|(a, b)| linalg::transposed_product(&wide(a, width), &wide(b, width)));
    let mut sum = Matrix::zeros(width, width);
    for part in parts.collect::<Vec<_>>() {
        sum.values_mut().iter_mut().zip(part.values()).for_each(|(sum, part)| *sum += part);
    }
    sum
}

/// `A ← A T` with a small square T.
fn multiply<T: Scalar>(a: &mut [T], turn: &Matrix) {
    let width = turn.columns();
    a.par_chunks_mut(ROWS * width).for_each(|rows| {
        let product = linalg::product(&wide(rows, width), turn);
        rows.iter_mut().zip(product.values()).for_each(|(out, value)| *out = T::from_f64(*value));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    /// A symmetric matrix with known leading eigenvectors: a few planted, noise below them.
    fn planted(n: usize) -> (Matrix, Vec<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut vectors = Matrix::from_fn(n, 40, |_, _| rng.random_range(-1.0..1.0));
        orthonormalise(vectors.values_mut(), 40).unwrap();
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
    fn random_numbers_are_those_of_one_stream() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let expected: Vec<f64> = (0..3 * ROWS + 5).map(|_| rng.random_range(-1.0..1.0)).collect();
        assert_eq!(random::<f64>(expected.len(), 7), expected);
    }

    #[test]
    fn the_largest_eigenvalues_are_found_above_and_below_the_small_order() {
        for n in [60, SMALL, 900] {
            let (matrix, expected) = planted(n);
            let (values, vectors) = leading(|x| linalg::product(&matrix, x), n, 6, 1).unwrap();
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
    fn vectors_in_single_precision_are_those_in_double() {
        let n = 900;
        let (matrix, expected) = planted(n);
        let apply = |x: &[f32], [a, b, c]: [f64; 3], y: &mut [f32]| {
            let image = linalg::product(&matrix, &wide(x, x.len() / n));
            for ((y, x), image) in y.iter_mut().zip(x).zip(image.values()) {
                *y = (a * image + b * f64::from(*x) + c * f64::from(*y)) as f32;
            }
            Ok(())
        };
        let (values, single) = leading_in_place(&apply, n, 6, 1).unwrap();
        let (_, double) = leading(|x| linalg::product(&matrix, x), n, 6, 1).unwrap();
        for k in 0..6 {
            assert!((values[k] - expected[k]).abs() < 1e-7, "{values:?}");
            let cosine: f64 = (0..n).map(|i| single[(i, k)] * double[(i, k)]).sum();
            assert!((cosine.abs() - 1.0).abs() < 1e-6, "{k}: {cosine}");
        }
    }

    /// A dense matrix as a device that multiplies.
    struct Dense(Matrix);

    impl Multiplier for Dense {
        fn multiply(&self, x: &mut [f32], y: &mut [f32], steps: &[[f64; 3]]) -> Result<()> {
            let n = self.0.rows();
            let (mut from, mut to) = (x, y);
            for [a, b, c] in steps {
                let image = linalg::product(&self.0, &wide(from, from.len() / n));
                for ((to, from), image) in to.iter_mut().zip(&*from).zip(image.values()) {
                    *to = (a * image + b * f64::from(*from) + c * f64::from(*to)) as f32;
                }
                (from, to) = (to, from);
            }
            Ok(())
        }
    }

    #[test]
    fn a_device_that_multiplies_gives_the_vectors_of_the_cpu() {
        for n in [60, 900] {
            let (matrix, expected) = planted(n);
            let device = Dense(matrix.clone());
            let (values, there) = leading_in_place::<f32>(&device as &dyn Multiplier, n, 6, 1).unwrap();
            let (_, here) = leading(|x| linalg::product(&matrix, x), n, 6, 1).unwrap();
            for k in 0..6 {
                assert!((values[k] - expected[k]).abs() < 1e-6, "{n}: {values:?}");
                let cosine: f64 = (0..n).map(|i| there[(i, k)] * here[(i, k)]).sum();
                assert!((cosine.abs() - 1.0).abs() < 1e-5, "{n}, {k}: {cosine}");
            }
        }
    }

    #[test]
    fn what_fails_ends_the_search_for_eigenvectors() {
        let calls = std::cell::Cell::new(0);
        let apply = |x: &[f64], [a, b, c]: [f64; 3], y: &mut [f64]| {
            calls.set(calls.get() + 1);
            for (at, (y, x)) in y.iter_mut().zip(x).enumerate() {
                *y = (a * (at % 900) as f64 / 900.0 + b) * x + c * *y;
            }
            if calls.get() == 5 { Err(Error::Interrupted) } else { Ok(()) }
        };
        assert!(matches!(leading_in_place(&apply, 900, 6, 1), Err(Error::Interrupted)));
        assert_eq!(calls.get(), 5);
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
        let (values, vectors) = leading(apply, n, groups, 0).unwrap();
        assert!(values.iter().all(|value| (value - 1.0).abs() < 1e-9), "{values:?}");
        for i in groups..n {
            for k in 0..groups {
                assert!((vectors[(i, k)] - vectors[(i % groups, k)]).abs() < 1e-6);
            }
        }
    }
}
