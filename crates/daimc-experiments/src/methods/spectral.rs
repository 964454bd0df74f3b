//! Sparse graphs: the nearest neighbours of points, products with a graph, and spectral clustering.

use daimc::{Matrix, Result};
use daimc_core::eigen;
use daimc_core::linalg;
use daimc_core::matrix::dot;
use rayon::prelude::*;

use crate::methods::Clustering;
use crate::methods::algebra::{add, unit_rows};
use crate::methods::data::cluster;

/// Entries off the diagonal of a matrix E, row by row; duplicate columns in a row are summed.
#[derive(Default)]
pub(super) struct Entries {
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Entries {
    /// Appends a row.
    pub fn push(&mut self, entries: impl IntoIterator<Item = (u32, f64)>) {
        for (column, value) in entries {
            self.columns.push(column);
            self.values.push(value);
        }
        self.ends.push(self.values.len());
    }

    /// `out ← out + ½ (E + Eᵀ) X`.
    pub fn add_product(&self, x: &Matrix, out: &mut Matrix) {
        let mut start = 0;
        for (i, &end) in self.ends.iter().enumerate() {
            for (&j, &entry) in self.columns[start..end].iter().zip(&self.values[start..end]) {
                let j = j as usize;
                add(out.row_mut(i), 0.5 * entry, x.row(j));
                add(out.row_mut(j), 0.5 * entry, x.row(i));
            }
            start = end;
        }
    }

    /// `½ (E + Eᵀ) X`.
    pub fn times(&self, x: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(x.rows(), x.columns());
        self.add_product(x, &mut out);
        out
    }

    /// Spectral clustering (Ng, Jordan and Weiss, 2001) of the graph whose weights are `½ (E + Eᵀ)`: k-means on the rows, of
    /// length 1, of the leading eigenvectors of `D^{-½} W D^{-½}`. The objective is that of k-means.
    ///
    /// # Errors
    /// When the eigenvectors cannot be found.
    pub fn cluster(&self, clusters: usize, seed: u64) -> Result<Clustering> {
        let n = self.ends.len();
        let degrees = self.times(&Matrix::from_fn(n, 1, |_, _| 1.0)).into_values();
        let embedding = unit_rows(&embed(|x| self.times(x), &degrees, clusters, seed)?);
        let (labels, inertia) = cluster(&embedding, clusters, seed)?;
        Ok(Clustering { labels, embedding, history: vec![inertia], confidence: Vec::new() })
    }
}

/// The spectral embedding of a graph into `clusters` dimensions, by products with its weights A and its degrees: the
/// eigenvectors of `I − D^{-½} A D^{-½}` with the smallest eigenvalues, its rows times `D^{-½}`. An instance without
/// neighbours gets a row of zeros.
///
/// # Errors
/// When the eigenvectors cannot be found.
pub(super) fn embed(
    times: impl Fn(&Matrix) -> Matrix,
    degrees: &[f64],
    clusters: usize,
    seed: u64,
) -> Result<Matrix> {
    let root = |degree: &f64| if *degree > 0.0 { degree.sqrt().recip() } else { 0.0 };
    let roots: Vec<f64> = degrees.iter().map(root).collect();
    let scale = |q: &mut Matrix| {
        for (i, root) in roots.iter().enumerate() {
            q.row_mut(i).iter_mut().for_each(|value| *value *= root);
        }
    };
    let apply = |q: &Matrix| {
        let mut scaled = q.clone();
        scale(&mut scaled);
        let mut out = times(&scaled);
        scale(&mut out);
        out
    };
    let (_, mut embedding) = eigen::leading(apply, roots.len(), clusters, seed)?;
    scale(&mut embedding);
    Ok(embedding)
}

/// Points in a block of distances.
const ROWS: usize = 32;

/// The `count` nearest others of each point with their squared distances, the nearest first, ties by index.
pub(super) fn nearest(points: &Matrix, count: usize) -> Vec<Vec<(u32, f64)>> {
    let (n, d) = (points.rows(), points.columns());
    let count = count.min(n.saturating_sub(1));
    // Cancellation: digits of the difference are lost to the common part of both points.
    let mut mean = vec![0.0; d];
    points.iter_rows().for_each(|row| add(&mut mean, 1.0 / n as f64, row));
    let centred = Matrix::from_fn(n, d, |i, f| points[(i, f)] - mean[f]);
    let squares: Vec<f64> = centred.iter_rows().map(|row| dot(row, row)).collect();
    let some = |first: usize| {
        let rows = Matrix::from_fn(ROWS.min(n - first), d, |i, f| centred[(first + i, f)]);
        let products = linalg::product_transposed(&rows, &centred);
        let row = |(i, products): (usize, &[f64])| {
            let i = first + i;
            let distance = |j: usize| (squares[i] + squares[j] - 2.0 * products[j]).max(0.0);
            let mut others: Vec<(u32, f64)> =
                (0..n).filter(|&j| j != i).map(|j| (j as u32, distance(j))).collect();
            let order = |a: &(u32, f64), b: &(u32, f64)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
            if count < others.len() {
                others.select_nth_unstable_by(count, order);
                others.truncate(count);
            }
            others.sort_unstable_by(order);
            others
        };
        products.iter_rows().enumerate().map(row).collect::<Vec<_>>()
    };
    let starts: Vec<usize> = (0..n).step_by(ROWS).collect();
    starts.into_par_iter().flat_map_iter(some).collect()
}

#[cfg(test)]
mod tests {
    use daimc_naive as naive;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::methods::algebra::uniform;
    use crate::methods::testing::{assert_close, plain};

    #[test]
    fn products_are_those_of_the_symmetric_matrix() {
        let mut entries = Entries::default();
        entries.push([(1, 2.0), (2, 1.0), (1, 3.0)]);
        entries.push([(0, 1.0)]);
        entries.push([]);
        let expected = vec![vec![0.0, 3.0, 0.5], vec![3.0, 0.0, 0.0], vec![0.5, 0.0, 0.0]];
        assert_close(&entries.times(&Matrix::from_fn(3, 3, |i, j| f64::from(u8::from(i == j)))), &expected);
    }

    #[test]
    fn groups_without_a_link_between_them_are_the_clusters() {
        let mut entries = Entries::default();
        (0..40_u32).for_each(|i| entries.push([((i + 4) % 40, 1.0)]));
        let found = entries.cluster(4, 1).unwrap().labels;
        assert!((0..40).all(|i| found[i] == found[i % 4]), "{found:?}");
        assert_eq!(found[..4].iter().collect::<std::collections::HashSet<_>>().len(), 4);
    }

    proptest! {
        #[test]
        fn the_nearest_are_those_of_every_pair(n in 1_usize..70, d in 1_usize..5, count in 1_usize..9, seed in 0_u64..99) {
            let points = uniform(n, d, &mut ChaCha8Rng::seed_from_u64(seed));
            let found = nearest(&points, count);
            let x = plain(&points);
            for i in 0..n {
                let square = |j: usize| (0..d).map(|f| (x[i][f] - x[j][f]).powi(2)).sum::<f64>();
                let mut others: Vec<usize> = (0..n).filter(|&j| j != i).collect();
                others.sort_by(|&a, &b| square(a).total_cmp(&square(b)));
                prop_assert_eq!(found[i].len(), count.min(n - 1));
                for (&(j, distance), other) in found[i].iter().zip(others) {
                    prop_assert_eq!(j as usize, other);
                    prop_assert!((distance - square(other)).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn the_embedding_is_that_of_the_full_decomposition() {
        let n = 20;
        let weights =
            naive::build(n, n, |i, j| if i == j { 0.0 } else { 1.0 / (1 + i.abs_diff(j)).pow(2) as f64 });
        let degrees: Vec<f64> = weights.iter().map(|row| row.iter().sum()).collect();
        let times = |x: &Matrix| {
            let product = naive::mul(&weights, &plain(x));
            Matrix::from_fn(n, x.columns(), |i, k| product[i][k])
        };
        let found = embed(times, &degrees, 3, 0).unwrap();
        // A λ-eigenvector x of D^{-½} W D^{-½} makes y = D^{-½} x one of W y = λ D y.
        let image = naive::mul(&weights, &plain(&found));
        for k in 0..3 {
            let lambda = image[0][k] / (degrees[0] * found[(0, k)]);
            for i in 0..n {
                assert!((image[i][k] - lambda * degrees[i] * found[(i, k)]).abs() < 1e-9);
            }
        }
    }
}
