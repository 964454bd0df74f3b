//! The affinity graph of IMG: its projection, its Laplacian, linear systems with it, its leading eigenvectors.

use daimc::{Matrix, Result};
use daimc_core::linalg;
use daimc_core::matrix::dot;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::methods::algebra::add;
use crate::methods::spectral::{self, Entries};

/// The symmetric `(A + Aᵀ)/2` of an affinity A whose rows are on the simplex. Its diagonal, which does not affect the Laplacian, is
/// zero.
///
/// Row i of A is `max(t_i − d_ij, 0)` with `d_ij = ‖p_i − p_j‖²`. Without the maximum A has rank K + 2, and a product with it
/// costs O(n K) a column. A row is therefore stored as its level t and the corrections of the entries that the maximum
/// changes; a row with more zeros than other entries, as these entries. Either way at most n/2 entries are stored. Rounding
/// is relative to the largest distance, not to the affinities.
pub(super) struct Graph {
    /// `½ (F Gᵀ + G Fᵀ)`, the part of low rank, is `left · rightᵀ` with `left = ½ (F, G)` and `right = (G, F)`.
    left: Matrix,
    right: Matrix,
    /// The diagonal of that part: the levels of the rows that are stored with a level, zero for the others.
    levels: Vec<f64>,
    entries: Entries,
    degrees: Vec<f64>,
    /// `‖A‖²`.
    pub sum_squares: f64,
}

/// Maximum size in bytes of two graphs of `n` instances: the old one exists while the new one is computed.
pub(super) fn bytes(n: usize) -> f64 {
    12.0 * (n as f64).powi(2)
}

/// Rows of A in a block.
const ROWS: usize = 32;

/// Degrees below this are rounding errors of zero.
const SMALLEST_DEGREE: f64 = 1e-12;

impl Graph {
    /// The graph with equal affinities.
    pub fn uniform(n: usize) -> Self {
        Self::nearest(&Matrix::zeros(n, 1), 1.0)
    }

    /// The projections of `−d_i`, with `d_ij = factor · ‖q_i − q_j‖²`, on the simplex.
    pub fn nearest(q: &Matrix, factor: f64) -> Self {
        let (n, k) = (q.rows(), q.columns());
        let mut mean = vec![0.0; k];
        q.iter_rows().for_each(|row| add(&mut mean, 1.0 / n as f64, row));
        let root = factor.sqrt();
        let points = Matrix::from_fn(n, k, |i, c| root * (q[(i, c)] - mean[c]));
        let squares: Vec<f64> = points.iter_rows().map(|row| dot(row, row)).collect();
        // d_ij = (p_i, ‖p_i‖², 1) · (−2 p_j, 1, ‖p_j‖²).
        let right = Matrix::from_fn(n, k + 2, |j, c| match c.checked_sub(k) {
            None => -2.0 * points[(j, c)],
            Some(0) => 1.0,
            Some(_) => squares[j],
        });
        let some = |first: usize| {
            let count = ROWS.min(n - first);
            let left = Matrix::from_fn(count, k + 2, |i, c| match c.checked_sub(k) {
                None => points[(first + i, c)],
                Some(0) => squares[first + i],
                Some(_) => 1.0,
            });
            let mut distances = linalg::product_transposed(&left, &right);
            (0..count).map(|i| Row::new(first + i, distances.row_mut(i))).collect::<Vec<_>>()
        };
        let starts: Vec<usize> = (0..n).step_by(ROWS).collect();
        let rows: Vec<Vec<Row>> = starts.into_par_iter().map(some).collect();

        // A = b ∘ (t 1ᵀ − D) + E with b = 1 for the rows stored with their level t, D the distances, E the entries:
        // F = b ∘ (2p, t − ‖p‖², −1), G = (p, 1, ‖p‖²).
        let width = k + 2;
        let (mut left, mut right) = (Matrix::zeros(n, 2 * width), Matrix::zeros(n, 2 * width));
        let mut levels = vec![0.0; n];
        let (mut entries, mut sum_squares) = (Entries::default(), 0.0);
        for (i, row) in rows.into_iter().flatten().enumerate() {
            let g: Vec<f64> = points.row(i).iter().copied().chain([1.0, squares[i]]).collect();
            let mut f = vec![0.0; width];
            if row.whole {
                levels[i] = row.level;
                f[..k].iter_mut().zip(&g).for_each(|(f, p)| *f = 2.0 * p);
                f[k..].copy_from_slice(&[row.level - squares[i], -1.0]);
            }
            add(&mut left.row_mut(i)[..width], 0.5, &f);
            add(&mut left.row_mut(i)[width..], 0.5, &g);
            right.row_mut(i)[..width].copy_from_slice(&g);
            right.row_mut(i)[width..].copy_from_slice(&f);
            sum_squares += row.sum_squares;
            entries.push(row.columns.into_iter().zip(row.values));
        }
        let mut graph = Self { left, right, levels, entries, degrees: Vec::new(), sum_squares };
        let degrees = graph.times(&Matrix::from_fn(n, 1, |_, _| 1.0)).into_values();
        let degree = |degree: f64| if degree > SMALLEST_DEGREE { degree } else { 0.0 };
        graph.degrees = degrees.into_iter().map(degree).collect();
        graph
    }

    /// `(A + Aᵀ)/2 · X`, without the diagonal of A.
    fn times(&self, x: &Matrix) -> Matrix {
        let mut out = linalg::product(&self.left, &linalg::transposed_product(&self.right, x));
        for (i, &level) in self.levels.iter().enumerate() {
            add(out.row_mut(i), -level, x.row(i));
        }
        self.entries.add_product(x, &mut out);
        out
    }

    /// `L Q` with the Laplacian L.
    fn laplacian_times(&self, q: &Matrix) -> Matrix {
        let mut out = self.times(q);
        for (i, degree) in self.degrees.iter().enumerate() {
            for (out, q) in out.row_mut(i).iter_mut().zip(q.row(i)) {
                *out = degree * q - *out;
            }
        }
        out
    }

    /// `tr(QᵀLQ)`.
    pub fn roughness(&self, q: &Matrix) -> f64 {
        self.laplacian_times(q).dot(q)
    }

    /// The Q of `(2β L + μ I) Q = R`, from a guess.
    ///
    /// The eigenvalues are between μ and about 4β + μ, so conjugate gradients with the diagonal as preconditioner need
    /// few products with A, where a decomposition of the n × n matrix costs n³.
    pub fn solve(&self, beta: f64, mu: f64, right: &Matrix, guess: &Matrix) -> Matrix {
        let apply = |q: &Matrix| {
            let mut out = self.laplacian_times(q);
            for (out, q) in out.values_mut().iter_mut().zip(q.values()) {
                *out = 2.0 * beta * *out + mu * q;
            }
            out
        };
        let diagonal: Vec<f64> = self.degrees.iter().map(|degree| 2.0 * beta * degree + mu).collect();
        conjugate_gradients(apply, &diagonal, right, guess)
    }

    /// The spectral embedding into `clusters` dimensions.
    ///
    /// # Errors
    /// When the eigenvectors cannot be found.
    pub fn embed(&self, clusters: usize, seed: u64) -> Result<Matrix> {
        spectral::embed(|x| self.times(x), &self.degrees, clusters, seed)
    }
}

/// A stored row of A.
struct Row {
    level: f64,
    whole: bool,
    columns: Vec<u32>,
    values: Vec<f64>,
    sum_squares: f64,
}

impl Row {
    /// Row `i` from its distances; the one to itself is set to zero.
    fn new(i: usize, distances: &mut [f64]) -> Self {
        distances[i] = 0.0;
        let (level, left) = project(distances);
        let (whole, cut) = (2 * left >= distances.len(), distances.len() - left);
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        if !whole || cut > 0 {
            for (j, &distance) in distances.iter().enumerate() {
                if j != i && (distance < level) != whole {
                    columns.push(j as u32);
                    values.push((level - distance).abs());
                }
            }
        }
        Self { level, whole, columns, values, sum_squares: affinity_squares(distances, level) }
    }
}

/// The projection of `−d` on the simplex: the one level t for which the `max(t − d_j, 0)` sum to 1, and how many of them
/// are above 0. Distances above the level of the remaining ones are dropped until there is none (Michelot, 1986).
fn project(distances: &[f64]) -> (f64, usize) {
    let mut level = f64::INFINITY;
    let mut before = distances.len() + 1;
    loop {
        let (sum, left) = sum_below(distances, level);
        if left == before || left == 0 {
            return (level, left);
        }
        (before, level) = (left, (1.0 + sum) / left as f64);
    }
}

/// The sum and the number of the distances below a level.
fn sum_below(distances: &[f64], level: f64) -> (f64, usize) {
    Arch::new().dispatch(Below { distances, level })
}

struct Below<'a> {
    distances: &'a [f64],
    level: f64,
}

impl WithSimd for Below<'_> {
    type Output = (f64, usize);

    /// Vectorised by the compiler for the instruction set of the machine.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> (f64, usize) {
        let Self { distances, level } = self;
        let (eights, rest) = distances.as_chunks::<8>();
        let (mut sums, mut counts) = ([0.0; 8], [0.0; 8]);
        for eight in eights {
            for l in 0..8 {
                sums[l] += if eight[l] < level { eight[l] } else { 0.0 };
                counts[l] += if eight[l] < level { 1.0 } else { 0.0 };
            }
        }
        for (l, &distance) in rest.iter().enumerate() {
            sums[l] += if distance < level { distance } else { 0.0 };
            counts[l] += if distance < level { 1.0 } else { 0.0 };
        }
        (total(sums), total(counts) as usize)
    }
}

/// `Σ_j max(t − d_j, 0)²`.
fn affinity_squares(distances: &[f64], level: f64) -> f64 {
    Arch::new().dispatch(Squares { distances, level })
}

struct Squares<'a> {
    distances: &'a [f64],
    level: f64,
}

impl WithSimd for Squares<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { distances, level } = self;
        let (eights, rest) = distances.as_chunks::<8>();
        let mut sums = [0.0; 8];
        for eight in eights {
            for l in 0..8 {
                let affinity = if eight[l] < level { level - eight[l] } else { 0.0 };
                sums[l] += affinity * affinity;
            }
        }
        for (l, &distance) in rest.iter().enumerate() {
            let affinity = if distance < level { level - distance } else { 0.0 };
            sums[l] += affinity * affinity;
        }
        total(sums)
    }
}

#[inline(always)]
fn total([a, b, c, d, e, f, g, h]: [f64; 8]) -> f64 {
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

/// Tolerance of the residual relative to the right-hand side, and maximum number of steps.
const RESIDUAL: f64 = 1e-11;
const MOST_STEPS: usize = 1000;

/// Preconditioned conjugate gradients for all columns at once.
fn conjugate_gradients(
    apply: impl Fn(&Matrix) -> Matrix,
    diagonal: &[f64],
    right: &Matrix,
    guess: &Matrix,
) -> Matrix {
    let precondition = |r: &Matrix| Matrix::from_fn(r.rows(), r.columns(), |i, k| r[(i, k)] / diagonal[i]);
    let mut x = guess.clone();
    let mut residual = right.clone();
    add(residual.values_mut(), -1.0, apply(&x).values());
    let enough: Vec<f64> = dots(right, right).iter().map(|square| square * RESIDUAL * RESIDUAL).collect();
    let mut z = precondition(&residual);
    let mut direction = z.clone();
    let mut size = dots(&residual, &z);
    for _ in 0..MOST_STEPS {
        let squares = dots(&residual, &residual);
        let open: Vec<bool> = squares.iter().zip(&enough).map(|(square, enough)| square > enough).collect();
        if !open.contains(&true) {
            break;
        }
        let image = apply(&direction);
        let curvature = dots(&direction, &image);
        // A converged column is not updated: its direction may be zero.
        let step = |k: usize| if open[k] && curvature[k] > 0.0 { size[k] / curvature[k] } else { 0.0 };
        let steps: Vec<f64> = (0..size.len()).map(step).collect();
        add_scaled(&mut x, &steps, &direction);
        add_scaled(&mut residual, &steps.iter().map(|step| -step).collect::<Vec<_>>(), &image);
        z = precondition(&residual);
        let next = dots(&residual, &z);
        let turn = |k: usize| if size[k] > 0.0 { next[k] / size[k] } else { 0.0 };
        direction.scale_columns(&(0..size.len()).map(turn).collect::<Vec<_>>());
        add(direction.values_mut(), 1.0, z.values());
        size = next;
    }
    x
}

/// The products of the columns of A with those of B.
fn dots(a: &Matrix, b: &Matrix) -> Vec<f64> {
    let mut sums = vec![0.0; a.columns()];
    for (a, b) in a.iter_rows().zip(b.iter_rows()) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums
}

/// `A ← A + B diag(factors)`.
fn add_scaled(a: &mut Matrix, factors: &[f64], b: &Matrix) {
    for i in 0..a.rows() {
        for (a, (b, factor)) in a.row_mut(i).iter_mut().zip(b.row(i).iter().zip(factors)) {
            *a += factor * b;
        }
    }
}

#[cfg(test)]
mod tests {
    use daimc_naive::{self as naive, Mat};
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::methods::testing::{assert_close, plain};

    fn random(n: usize, k: usize, seed: u64) -> Matrix {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Matrix::from_fn(n, k, |_, _| rng.random_range(-1.0..1.0))
    }

    /// The graph as a matrix, from products with unit vectors.
    fn weights(graph: &Graph) -> Matrix {
        let n = graph.degrees.len();
        graph.times(&Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j))))
    }

    fn dense_laplacian(a: &Mat) -> Mat {
        let symmetric = naive::scale(0.5, &naive::add(a, &naive::transpose(a)));
        let degrees: Vec<f64> = symmetric.iter().map(|row| row.iter().sum()).collect();
        naive::subtract(&naive::diagonal(&degrees), &symmetric)
    }

    /// By the order of the distances: the largest support whose level is above all its members.
    fn project_by_sorting(distances: &[f64]) -> Vec<f64> {
        let mut sorted = distances.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let level = |s: usize| (1.0 + sorted[..s].iter().sum::<f64>()) / s as f64;
        let support = (1..=sorted.len()).rev().find(|&s| level(s) > sorted[s - 1]).unwrap();
        distances.iter().map(|d| (level(support) - d).max(0.0)).collect()
    }

    /// A by its definition, row by row.
    fn literal(q: &Matrix, factor: f64) -> Mat {
        let square =
            |i: usize, j: usize| (0..q.columns()).map(|k| (q[(i, k)] - q[(j, k)]).powi(2)).sum::<f64>();
        let row = |i| project_by_sorting(&(0..q.rows()).map(|j| factor * square(i, j)).collect::<Vec<_>>());
        (0..q.rows()).map(row).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn affinities_are_the_exact_projections(
            n in 1_usize..40, k in 1_usize..5, magnitude in -4.0..3.0, seed in 0_u64..99,
        ) {
            // From complete graphs to graphs with few neighbours.
            let factor = 10.0_f64.powf(magnitude);
            let q = random(n, k, seed);
            let graph = Graph::nearest(&q, factor);
            let a = literal(&q, factor);
            let l = dense_laplacian(&a);
            let off_diagonal = naive::build(n, n, |i, j| if i == j { 0.0 } else { -l[i][j] });
            // Rows of A sum to 1 up to the rounding of large distances.
            let difference = naive::frobenius(&naive::subtract(&plain(&weights(&graph)), &off_diagonal));
            prop_assert!(difference < 1e-14 * (1.0 + factor) * n as f64, "{difference}");
            prop_assert!((graph.sum_squares - naive::frobenius(&a).powi(2)).abs() < 1e-10);
        }

        /// Its own subproblem: min Σ_j a_j d_j + ½ Σ_j a_j² on the simplex (both sides times 2γ).
        #[test]
        fn the_projection_is_the_best_row(n in 2_usize..20, seed in 0_u64..99) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let d: Vec<f64> = (0..n).map(|_| rng.random_range(0.0..2.0)).collect();
            let value = |a: &[f64]| a.iter().zip(&d).map(|(a, d)| a * d + a * a / 2.0).sum::<f64>();
            let (level, left) = project(&d);
            let best: Vec<f64> = d.iter().map(|d| f64::max(level - d, 0.0)).collect();
            prop_assert_eq!(left, best.iter().filter(|&&a| a > 0.0).count());
            prop_assert!((affinity_squares(&d, level) - best.iter().map(|a| a * a).sum::<f64>()).abs() < 1e-14);
            prop_assert!((best.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for _ in 0..20 {
                let raw: Vec<f64> = (0..n).map(|_| rng.random::<f64>()).collect();
                let total: f64 = raw.iter().sum();
                let other: Vec<f64> = raw.iter().map(|x| x / total).collect();
                for share in [1e-3, 0.1, 1.0] {
                    let mixed: Vec<f64> = best.iter().zip(&other).map(|(a, b)| a + share * (b - a)).collect();
                    prop_assert!(value(&mixed) >= value(&best) - 1e-12);
                }
            }
        }

        #[test]
        fn conjugate_gradients_equal_the_dense_solution(
            n in 2_usize..40, factor in 0.1..20.0, beta in 0.01..100.0, mu in 0.1..10.0, seed in 0_u64..99,
        ) {
            let q = random(n, 3, seed);
            let graph = Graph::nearest(&q, factor);
            let (right, guess) = (random(n, 3, seed + 1), random(n, 3, seed + 2));
            let l = dense_laplacian(&literal(&q, factor));
            let both = naive::scale(beta, &naive::add(&l, &naive::transpose(&l)));
            let system = naive::add(&both, &naive::scale(mu, &naive::identity(n)));
            let expected = naive::solve(&system, &plain(&right));
            assert_close(&graph.solve(beta, mu, &right, &guess), &expected);
        }
    }

    #[test]
    fn roughness_is_that_of_the_dense_laplacian() {
        let (points, q) = (random(30, 3, 1), random(30, 4, 2));
        let graph = Graph::nearest(&points, 2.0);
        let l = dense_laplacian(&literal(&points, 2.0));
        let product = naive::mul(&naive::transpose(&plain(&q)), &naive::mul(&l, &plain(&q)));
        let trace: f64 = (0..4).map(|k| product[k][k]).sum();
        assert!((graph.roughness(&q) - trace).abs() < 1e-12 * trace);
    }

    #[test]
    fn the_uniform_graph_is_that_of_points_in_one_place() {
        let expected = naive::build(5, 5, |i, j| if i == j { 0.0 } else { 0.2 });
        assert_close(&weights(&Graph::uniform(5)), &expected);
        assert_close(&weights(&Graph::nearest(&Matrix::from_fn(5, 2, |_, _| 7.0), 1.0)), &expected);
    }

    #[test]
    fn leading_eigenvectors_are_those_of_the_full_decomposition() {
        let n = 400;
        let graph = Graph::nearest(&random(n, 3, 4), 4.0);
        let (_, found) = daimc_core::eigen::leading(|q| graph.times(q), n, 5, 0).unwrap();
        let (values, vectors) = linalg::symmetric_eigen(&weights(&graph)).unwrap();
        for k in 0..5 {
            assert!(values[n - 1 - k] - values[n - 2 - k] > 1e-4, "the example has clear eigenvectors");
            let cosine: f64 = (0..n).map(|i| found[(i, k)] * vectors[(i, n - 1 - k)]).sum();
            assert!((cosine.abs() - 1.0).abs() < 1e-6, "{k}: {cosine}");
        }
    }
}
