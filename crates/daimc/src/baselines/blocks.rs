//! What the methods share: the scaled rows of some instances with the two products that every factorisation needs, the
//! non-negative least squares, the inverse of a small matrix, k-means on an embedding.

use rand::{Rng, RngExt};
use rayon::prelude::*;

use crate::kernel::Scalar;
use crate::lens::Lens;
use crate::scale::{Scale, Scaling};
use crate::source::{Buffer, Csr, Rows, Source};
use crate::{Error, Matrix, Result, View, Views, kmeans, linalg};

/// Starts of k-means on an embedding.
const STARTS: usize = 20;

/// A view and its scaling.
pub(super) struct Scaled<'a> {
    views: &'a Views<'a>,
    view: usize,
    lens: Lens,
}

impl<'a> Scaled<'a> {
    pub fn new(views: &'a Views<'a>, view: usize, scale: Scale) -> Result<Self> {
        let scaling = Scaling::fit(views, view, scale)?;
        Ok(Self { views, view, lens: Lens::new(views, view, scaling)? })
    }

    pub fn features(&self) -> usize {
        self.lens.features()
    }

    pub fn shows(&self, instance: usize) -> bool {
        self.views.is_present(self.view, instance)
    }

    /// A scaled copy of the rows of some instances, all of which the view must show; sparse rows stay sparse.
    pub fn part(&self, instances: &[usize]) -> Result<Part> {
        let mut buffer = Buffer::default();
        let block = self.views.block(self.view, 0..self.views.instances(), &mut buffer)?;
        let at = |&i: &usize| (i, block.index.row(i).expect("the view shows the instance"));
        match block.rows {
            Rows::DenseF32(_) | Rows::DenseF64(_) => {
                let mut rows = Matrix::zeros(instances.len(), self.features());
                for (target, i) in instances.iter().enumerate() {
                    let target = rows.row_mut(target);
                    self.lens.add_row(&block, at(i), 1.0, target);
                    self.lens.finish_row(self.lens.full_factor(*i), target);
                }
                Ok(Part::Dense(rows))
            }
            Rows::SparseF32(csr) => self.sparse(csr, instances.iter().map(at)),
            Rows::SparseF64(csr) => self.sparse(csr, instances.iter().map(at)),
        }
    }

    fn sparse<T: Scalar>(&self, csr: Csr<'_, T>, rows: impl Iterator<Item = (usize, usize)>) -> Result<Part> {
        let Scaling { shift, factor, scale, .. } = &self.lens.scaling;
        if !shift.is_empty() {
            return Err(Error::Scaling {
                view: self.name(),
                scale: scale.to_string(),
                reason:
                    "it shifts features, and the view would have to be made dense; give it as a dense view, \
                         or use unit or tf-idf"
                        .into(),
            });
        }
        let mut part =
            Sparse { features: self.features(), offsets: vec![0], columns: Vec::new(), values: Vec::new() };
        for (instance, row) in rows {
            let own = self.lens.full_factor(instance);
            let (columns, values) = csr.row(row);
            part.columns.extend_from_slice(columns);
            part.values.extend(columns.iter().zip(values).map(|(&column, value)| {
                own * factor.get(column as usize).copied().unwrap_or(1.0) * value.to_f64()
            }));
            part.offsets.push(part.columns.len());
        }
        Ok(Part::Sparse(part))
    }

    fn name(&self) -> String {
        Source::name(self.views, self.view).into()
    }

    /// Refuses a part with a negative value, for methods whose factors are all non-negative.
    pub fn refuse_negative(&self, method: &str, instances: &[usize], part: &Part) -> Result<()> {
        let Some((row, column, value)) = part.first_negative() else { return Ok(()) };
        let instance = instances[row];
        let own = self.views.iter().nth(self.view);
        Err(Error::Negative {
            view: self.name(),
            row: instance,
            id: self.views.ids().get(instance),
            column,
            feature: own.map_or_else(|| column.to_string(), |own| own.feature_name(column)),
            value,
            method: method.into(),
        })
    }
}

/// Scaled rows of some instances of a view, X (n × d).
pub(super) enum Part {
    Dense(Matrix),
    Sparse(Sparse),
}

pub(super) struct Sparse {
    features: usize,
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Sparse {
    fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.offsets[i]..self.offsets[i + 1];
        let columns = self.columns[range.clone()].iter().map(|&column| column as usize);
        columns.zip(self.values[range].iter().copied())
    }
}

impl Part {
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(x) => x.rows(),
            Self::Sparse(x) => x.offsets.len() - 1,
        }
    }

    pub fn features(&self) -> usize {
        match self {
            Self::Dense(x) => x.columns(),
            Self::Sparse(x) => x.features,
        }
    }

    fn first_negative(&self) -> Option<(usize, usize, f64)> {
        match self {
            Self::Dense(x) => {
                let at = x.values().iter().position(|&value| value < 0.0)?;
                Some((at / x.columns(), at % x.columns(), x.values()[at]))
            }
            Self::Sparse(x) => {
                let at = x.values.iter().position(|&value| value < 0.0)?;
                let row = x.offsets.partition_point(|&offset| offset <= at) - 1;
                Some((row, x.columns[at] as usize, x.values[at]))
            }
        }
    }

    /// `X B` for a basis B (d × K).
    pub fn times(&self, basis: &Matrix) -> Matrix {
        match self {
            Self::Dense(x) => linalg::product(x, basis),
            Self::Sparse(x) => {
                let mut out = Matrix::zeros(self.rows(), basis.columns());
                for i in 0..self.rows() {
                    let target = out.row_mut(i);
                    x.row(i).for_each(|(f, value)| add(target, value, basis.row(f)));
                }
                out
            }
        }
    }

    /// `Xᵀ P` for coefficients P (n × K).
    pub fn transposed_times(&self, coefficients: &Matrix) -> Matrix {
        match self {
            Self::Dense(x) => linalg::transposed_product(x, coefficients),
            Self::Sparse(x) => {
                let mut out = Matrix::zeros(x.features, coefficients.columns());
                for i in 0..self.rows() {
                    x.row(i).for_each(|(f, value)| add(out.row_mut(f), value, coefficients.row(i)));
                }
                out
            }
        }
    }

    /// `‖X‖²`.
    pub fn sum_squares(&self) -> f64 {
        match self {
            Self::Dense(x) => x.sum_squares(),
            Self::Sparse(x) => crate::matrix::dot(&x.values, &x.values),
        }
    }

    /// The sum of all values.
    pub fn sum(&self) -> f64 {
        match self {
            Self::Dense(x) => x.values().iter().sum(),
            Self::Sparse(x) => x.values.iter().sum(),
        }
    }

    /// Adds row `i` to `target`.
    pub fn add_row(&self, i: usize, target: &mut [f64]) {
        match self {
            Self::Dense(x) => add(target, 1.0, x.row(i)),
            Self::Sparse(x) => x.row(i).for_each(|(f, value)| target[f] += value),
        }
    }

    /// `‖X − P Bᵀ‖²`, by its three terms.
    pub fn misfit(&self, coefficients: &Matrix, basis: &Matrix) -> f64 {
        let cross = self.transposed_times(coefficients).dot(basis);
        self.sum_squares() - 2.0 * cross + gram(coefficients).dot(&gram(basis))
    }
}

/// `target ← target + factor · row`.
#[inline]
pub(super) fn add(target: &mut [f64], factor: f64, row: &[f64]) {
    for (target, value) in target.iter_mut().zip(row) {
        *target += factor * value;
    }
}

/// `A + factor · B`.
pub(super) fn sum(a: &Matrix, factor: f64, b: &Matrix) -> Matrix {
    let mut out = a.clone();
    add(out.values_mut(), factor, b.values());
    out
}

/// `AᵀA`.
pub(super) fn gram(a: &Matrix) -> Matrix {
    linalg::transposed_product(a, a)
}

/// Some rows of a matrix, in the order given.
pub(super) fn rows_of(a: &Matrix, rows: &[usize]) -> Matrix {
    Matrix::from_fn(rows.len(), a.columns(), |i, k| a[(rows[i], k)])
}

/// `(A + ridge · I)⁻¹` of a symmetric, positive semi-definite matrix; a direction that the sum does not know is
/// lifted, not divided by zero.
pub(super) fn inverse(a: &Matrix, ridge: f64) -> Matrix {
    let (mut values, vectors) = linalg::symmetric_eigen(a);
    values.iter_mut().for_each(|value| *value = value.max(0.0) + ridge);
    linalg::lift(&mut values, 1.0);
    let mut scaled = vectors.clone();
    scaled.scale_columns(&values.iter().map(|value| 1.0 / value).collect::<Vec<_>>());
    linalg::product_transposed(&scaled, &vectors)
}

/// A matrix of uniform draws from 0 to 1.
pub(super) fn uniform(rows: usize, columns: usize, rng: &mut impl Rng) -> Matrix {
    Matrix::from_fn(rows, columns, |_, _| rng.random::<f64>())
}

/// All instances in a random order, `size` at a time.
pub(super) fn stream(instances: usize, size: usize, rng: &mut impl Rng) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..instances).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.random_range(0..=i));
    }
    order.chunks(size.max(1)).map(<[usize]>::to_vec).collect()
}

/// Coordinate descent on a row ends when a step gains less than this share of what a step from zero could gain ...
const SMALLEST_GAIN: f64 = 1e-22;
/// ... or after so many times K² steps.
const MOST_STEPS: usize = 2;
/// A bound holds unless the gradient at it is below zero by more than this share of its terms.
const SMALLEST_SLOPE: f64 = 1e-13;

/// Non-negative least squares, row by row: for each row w of W
///
/// ```text
/// min_{w ≥ 0}  w M wᵀ − 2 r·w + μ Σ w
/// ```
///
/// by greedy coordinate descent (Hsieh and Dhillon, 2011) from the W that is given: with the gradient
/// `g = 2wM − 2r + μ`, the step `s_k = max(−w_k, −g_k / 2M_kk)` whose gain `−g_k s_k − M_kk s_k²` is largest is taken,
/// until nothing is gained. That finds out quickly which coordinates are zero and slowly, where M is nearly singular, what
/// the others are; these are therefore solved for (Lawson and Hanson, 1974).
pub(super) fn least_squares(w: &mut Matrix, m: &Matrix, r: &Matrix, penalty: f64) {
    let k = w.columns();
    let rows = w.values_mut().par_chunks_exact_mut(k).zip(r.values().par_chunks_exact(k));
    rows.with_min_len(256).for_each(|(w, r)| {
        descend(w, m, r, penalty);
        settle(w, m, r, penalty);
    });
}

fn descend(w: &mut [f64], m: &Matrix, r: &[f64], penalty: f64) {
    let k = w.len();
    let mut gradient: Vec<f64> = r.iter().map(|r| penalty - 2.0 * r).collect();
    for (l, &own) in w.iter().enumerate() {
        add(&mut gradient, 2.0 * own, m.row(l));
    }
    let possible = |l: usize| if m[(l, l)] > 0.0 { r[l] * r[l] / m[(l, l)] } else { 0.0 };
    let enough = SMALLEST_GAIN * (0..k).map(possible).fold(0.0, f64::max);
    for _ in 0..MOST_STEPS * k * k {
        let mut best = (0, 0.0, enough);
        for l in 0..k {
            let (g, curvature) = (gradient[l], m[(l, l)]);
            // Nothing bends the parabola of a dead column: it can only fall to zero.
            let step = if curvature > 0.0 { (-g / (2.0 * curvature)).max(-w[l]) } else { -w[l] };
            let gain = -g * step - curvature * step * step;
            if gain > best.2 {
                best = (l, step, gain);
            }
        }
        let (l, step, gain) = best;
        if gain <= enough || step == 0.0 {
            break;
        }
        // A step that ends at the bound ends there exactly.
        w[l] = if step == -w[l] { 0.0 } else { w[l] + step };
        add(&mut gradient, 2.0 * step, m.row(l));
    }
}

/// Lawson and Hanson's method from a row w ≥ 0: solves for the coordinates that are free, goes as far towards the solution
/// as the bounds allow, binds what meets its bound, and frees the coordinate whose bound holds it back most. If the system
/// of the free coordinates is singular, w stays where it is.
fn settle(w: &mut [f64], m: &Matrix, r: &[f64], penalty: f64) {
    let k = w.len();
    let mut free: Vec<usize> = (0..k).filter(|&l| w[l] > 0.0).collect();
    for _ in 0..4 * k + 8 {
        let Some(goal) = solve_free(&free, m, r, penalty) else { return };
        // How far each coordinate can go; the one that can go least far meets its bound exactly.
        let reach = |(&l, goal): (&usize, &f64)| if *goal > 0.0 { 1.0 } else { w[l] / (w[l] - goal) };
        let shares = free.iter().zip(&goal).map(reach);
        let (first, share) = shares.enumerate().fold((k, 1.0), |a, b| if b.1 < a.1 { b } else { a });
        for (i, (&l, goal)) in free.iter().zip(&goal).enumerate() {
            w[l] = if i == first { 0.0 } else { (w[l] + share * (goal - w[l])).max(0.0) };
        }
        if first < k {
            free.retain(|&l| w[l] > 0.0);
            continue;
        }
        let slope = |l: usize| {
            let pull = crate::matrix::dot(m.row(l), w);
            let size = pull.abs() + r[l].abs() + penalty;
            (l, 2.0 * (pull - r[l]) + penalty, SMALLEST_SLOPE * size)
        };
        let held =
            (0..k).filter(|l| !free.contains(l)).map(slope).filter(|(_, slope, least)| *slope < -least);
        let Some((l, ..)) = held.min_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        free.push(l);
    }
}

/// The `x` of `M x = r − μ/2` on some coordinates, by Cholesky's decomposition; `None` if M is singular there.
fn solve_free(free: &[usize], m: &Matrix, r: &[f64], penalty: f64) -> Option<Vec<f64>> {
    let n = free.len();
    let mut lower = Matrix::zeros(n, n);
    let mut x = vec![0.0; n];
    for i in 0..n {
        for j in 0..=i {
            let inner: f64 = (0..j).map(|l| lower[(i, l)] * lower[(j, l)]).sum();
            let rest = m[(free[i], free[j])] - inner;
            if i > j {
                lower[(i, j)] = rest / lower[(j, j)];
            } else if rest > linalg::SMALLEST_EIGENVALUE * m[(free[i], free[i])] {
                lower[(i, i)] = rest.sqrt();
            } else {
                return None;
            }
        }
        let inner: f64 = (0..i).map(|l| lower[(i, l)] * x[l]).sum();
        x[i] = (r[free[i]] - penalty / 2.0 - inner) / lower[(i, i)];
    }
    for i in (0..n).rev() {
        let inner: f64 = (i + 1..n).map(|l| lower[(l, i)] * x[l]).sum();
        x[i] = (x[i] - inner) / lower[(i, i)];
    }
    Some(x)
}

/// K-means on the rows of an embedding: the cluster of each row.
pub(super) fn cluster(embedding: &Matrix, scale: Scale, clusters: usize, seed: u64) -> Result<Vec<usize>> {
    let rows = Views::new(vec![View::dense("embedding", embedding.columns(), embedding.values())?])?;
    let lens = Lens::new(&rows, 0, Scaling::fit(&rows, 0, scale)?)?;
    let centres = kmeans::centres(&rows, &lens, clusters, STARTS, seed)?;
    let found = kmeans::assign(&rows, 0, &lens, &centres)?;
    Ok(found.labels.iter().map(|&label| label as usize).collect())
}

#[cfg(test)]
pub(super) mod testing {
    //! What the tests of the methods share.

    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::naive::{self, Mat};
    use super::*;

    pub fn plain(a: &Matrix) -> Mat {
        a.iter_rows().map(<[f64]>::to_vec).collect()
    }

    /// The rows of a part as a matrix, by its own product.
    pub fn dense(part: &Part) -> Mat {
        let identity = Matrix::from_fn(part.features(), part.features(), |i, j| f64::from(u8::from(i == j)));
        plain(&part.times(&identity))
    }

    /// Matrices one below the other.
    pub fn below(a: Mat, b: Mat) -> Mat {
        a.into_iter().chain(b).collect()
    }

    #[track_caller]
    pub fn assert_close(found: &Matrix, expected: &Mat) {
        let difference = naive::frobenius(&naive::subtract(&plain(found), expected));
        let limit = 1e-8 * naive::frobenius(expected).max(1e-8);
        assert!(difference <= limit, "differs by {difference}, allowed is {limit}");
    }

    /// Views of `n` instances with values from `low` to 1, and about a third of the instances missing in each.
    pub fn views(n: usize, features: &[usize], low: f64, seed: u64) -> Views<'static> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let view = |(v, &d): (usize, &usize)| {
            let values: Vec<f64> = (0..n * d).map(|_| rng.random_range(low..1.0)).collect();
            let present: Vec<bool> =
                (0..n).map(|i| i % features.len() == v || rng.random::<f64>() < 0.5).collect();
            View::dense(format!("view {v}"), d, values).unwrap().mask(&present).unwrap()
        };
        Views::new(features.iter().enumerate().map(view).collect()).unwrap()
    }

    /// Rows `w ≥ 0` with the least `w M wᵀ − 2 r·w + μ Σ w`: of the stationary points of every support, the one from
    /// which no other coordinate wants to grow. (Values would tell supports apart to half the digits only.)
    pub fn exhaustive(m: &Mat, r: &Mat, penalty: f64) -> Mat {
        let row = |r: &Vec<f64>| {
            let k = r.len();
            let mut best = (vec![0.0; k], f64::INFINITY);
            for support in 0_usize..1 << k {
                let inside: Vec<usize> = (0..k).filter(|l| support >> l & 1 == 1).collect();
                let system = naive::build(inside.len(), inside.len(), |i, j| m[inside[i]][inside[j]]);
                let right = naive::build(inside.len(), 1, |i, _| r[inside[i]] - penalty / 2.0);
                let mut w = vec![0.0; k];
                if !inside.is_empty() {
                    inside.iter().zip(&naive::solve(&system, &right)).for_each(|(&l, x)| w[l] = x[0]);
                }
                let pull =
                    |l: &usize| naive::compensated(r[*l] - penalty / 2.0, (0..k).map(|i| (-m[*l][i], w[i])));
                let outside = (0..k).filter(|l| !inside.contains(l));
                let wish = outside.map(|l| pull(&l)).fold(0.0, f64::max);
                if w.iter().all(|&x| x >= 0.0) && wish < best.1 {
                    best = (w, wish);
                }
            }
            best.0
        };
        r.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::testing::{assert_close, exhaustive, plain};
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn least_squares_finds_the_best_support(k in 1_usize..6, seed in 0_u64..1000, penalty in 0.0..0.5) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let basis = Matrix::from_fn(k + 6, k, |_, _| rng.random_range(-0.3..1.0));
            let m = gram(&basis);
            let r = Matrix::from_fn(8, k, |_, _| rng.random_range(-1.0..2.0));
            let mut w = uniform(8, k, &mut rng);
            least_squares(&mut w, &m, &r, penalty);
            assert_close(&w, &exhaustive(&plain(&m), &plain(&r), penalty));
        }

        /// Coordinate descent alone would take millions of steps.
        #[test]
        fn least_squares_solves_systems_that_are_nearly_singular(seed in 0_u64..1000) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut basis = uniform(12, 3, &mut rng);
            (0..12).for_each(|f| basis[(f, 1)] = basis[(f, 0)] + 1e-3 * rng.random::<f64>());
            let m = gram(&basis);
            let r = linalg::product(&uniform(8, 12, &mut rng), &basis);
            let mut w = uniform(8, 3, &mut rng);
            least_squares(&mut w, &m, &r, 0.0);
            assert_close(&w, &exhaustive(&plain(&m), &plain(&r), 0.0));
        }
    }

    #[test]
    fn a_dead_column_is_left_or_falls_to_zero() {
        let m = Matrix::from_fn(2, 2, |i, j| if (i, j) == (0, 0) { 2.0 } else { 0.0 });
        let r = Matrix::from_fn(1, 2, |_, k| if k == 0 { 3.0 } else { 0.0 });
        for (penalty, expected) in [(0.0, [1.5, 0.7]), (1.0, [1.25, 0.0])] {
            let mut w = Matrix::from_fn(1, 2, |_, _| 0.7);
            least_squares(&mut w, &m, &r, penalty);
            assert_close(&w, &vec![expected.to_vec()]);
        }
    }

    #[test]
    fn sparse_and_dense_rows_give_the_same_products() {
        let values = [0.0, 2.0, 0.0, 1.0, 0.0, 3.0, 0.0, 0.0, 4.0, 0.0, 0.0, 5.0];
        let dense = View::dense("dense", 3, values.to_vec()).unwrap();
        let offsets = vec![0, 1, 3, 4, 5];
        let sparse = View::sparse("sparse", 3, offsets, vec![1, 0, 2, 2, 2], vec![2.0, 1.0, 3.0, 4.0, 5.0]);
        let views = Views::new(vec![dense, sparse.unwrap()]).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (basis, coefficients) = (uniform(3, 2, &mut rng), uniform(2, 2, &mut rng));
        for scale in [Scale::None, Scale::Unit, Scale::TfIdf] {
            let parts = [0, 1].map(|v| Scaled::new(&views, v, scale).unwrap().part(&[3, 1]).unwrap());
            assert_close(&parts[0].times(&basis), &plain(&parts[1].times(&basis)));
            let products = parts.each_ref().map(|part| part.transposed_times(&coefficients));
            assert_close(&products[0], &plain(&products[1]));
            let misfits = parts.each_ref().map(|part| part.misfit(&coefficients, &basis));
            assert!((misfits[0] - misfits[1]).abs() < 1e-12 * misfits[0]);
        }
    }

    #[test]
    fn a_sparse_view_is_not_made_dense_by_a_shift() {
        let sparse = View::sparse("sparse", 1, vec![0, 1, 2], vec![0, 0], vec![2.0, 3.0]).unwrap();
        let views = Views::new(vec![sparse]).unwrap();
        let refused = Scaled::new(&views, 0, Scale::MinMax).unwrap().part(&[0]).err().unwrap();
        assert!(refused.to_string().contains("use unit or tf-idf"), "{refused}");
    }
}
