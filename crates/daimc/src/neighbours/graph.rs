//! Who is near whom in all views together, as a sparse symmetric matrix of weights.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::search::Nearest;
use crate::source::Source;
use crate::views::index;
use crate::{Matrix, eigen};

/// What is added between every two instances before the graph is cut, as a share of the mean degree: without it a handful
/// of instances without a link to the rest would count as a cluster.
const BACKGROUND: f64 = 0.1;

/// The least cosine that a weight is multiplied by.
const LEAST: f64 = 0.05;

/// Rows that one thread works on.
const ROWS: usize = 256;

/// Weights between instances: symmetric, none between an instance and itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Graph {
    links: Arc<Links>,
    weights: Vec<f32>,
}

/// Who is linked with whom: the others of instance i stand at `offsets[i]..offsets[i + 1]`, in increasing order.
#[derive(Debug, PartialEq)]
struct Links {
    offsets: Vec<usize>,
    columns: Vec<u32>,
}

/// A graph that is written row by row.
struct Builder {
    links: Links,
    weights: Vec<f32>,
}

impl Builder {
    /// For so many instances, with so many entries at most.
    fn new(instances: usize, entries: usize) -> Self {
        let mut offsets = Vec::with_capacity(instances + 1);
        offsets.push(0);
        let columns = Vec::with_capacity(entries);
        Self { links: Links { offsets, columns }, weights: Vec::with_capacity(entries) }
    }

    fn push(&mut self, row: impl Iterator<Item = (u32, f32)>) {
        for (column, weight) in row {
            self.links.columns.push(column);
            self.weights.push(weight);
        }
        self.links.offsets.push(self.weights.len());
    }

    fn done(mut self) -> Graph {
        self.links.columns.shrink_to_fit();
        self.weights.shrink_to_fit();
        Graph { links: Arc::new(self.links), weights: self.weights }
    }
}

impl Graph {
    /// The graph of one view: the heat kernel of the distance, `exp(−‖x_i − x_j‖² / (σ_i σ_j))`, where i is among the
    /// nearest of j or j among those of i; σ is the distance of the last of an instance's neighbours.
    pub fn of_view(nearest: &Nearest) -> Self {
        let n = nearest.instances();
        let reach: Vec<f64> =
            (0..n).map(|i| nearest.of(i).last().map_or(0.0, |(_, square)| square.sqrt())).collect();
        let heat = |i: usize, j: usize, square: f64| {
            let scale = reach[i] * reach[j];
            if scale > 0.0 { (-square / scale).exp() as f32 } else { 1.0 }
        };
        let mut offsets = vec![0; n + 1];
        for i in 0..n {
            for (j, _) in nearest.of(i) {
                offsets[i + 1] += 1;
                offsets[j + 1] += 1;
            }
        }
        (0..n).for_each(|i| offsets[i + 1] += offsets[i]);
        let mut entries = vec![(0_u32, 0.0_f32); offsets[n]];
        let mut next = offsets.clone();
        for i in 0..n {
            for (j, square) in nearest.of(i) {
                let weight = heat(i, j, square);
                for (row, column) in [(i, j), (j, i)] {
                    entries[next[row]] = (index(column), weight);
                    next[row] += 1;
                }
            }
        }
        let mut graph = Builder::new(n, entries.len());
        for i in 0..n {
            let row = &mut entries[offsets[i]..offsets[i + 1]];
            // A pair that is near from both sides stands there twice, with the same weight.
            row.sort_unstable_by_key(|entry| entry.0);
            graph.push(row.chunk_by(|a, b| a.0 == b.0).map(|same| same[0]));
        }
        graph.done()
    }

    /// The mean of the graphs of the views, each times its importance, where that of a pair is over the views that show
    /// both.
    pub fn fused(source: &dyn Source, nearest: &[Nearest], importance: &[f64]) -> Self {
        let mut graphs = nearest.iter().zip(importance).map(|(nearest, importance)| {
            let mut graph = Self::of_view(nearest);
            graph.weights.iter_mut().for_each(|weight| *weight *= *importance as f32);
            graph
        });
        let first = graphs.next().expect("there is a view");
        let mut sum = graphs.fold(first, |sum, graph| sum.plus(&graph));
        for i in 0..sum.instances() {
            let range = sum.range(i);
            for (j, weight) in sum.links.columns[range.clone()].iter().zip(&mut sum.weights[range]) {
                let both =
                    |view: &usize| source.is_present(*view, i) && source.is_present(*view, *j as usize);
                *weight /= (0..source.views()).filter(both).count() as f32;
            }
        }
        sum
    }

    fn plus(&self, other: &Self) -> Self {
        let mut sum = Builder::new(self.instances(), self.weights.len() + other.weights.len());
        let mut row: Vec<(u32, f32)> = Vec::new();
        for i in 0..self.instances() {
            row.clear();
            row.extend(self.row(i).chain(other.row(i)));
            row.sort_unstable_by_key(|entry| entry.0);
            let same = row.chunk_by(|a, b| a.0 == b.0);
            sum.push(same.map(|same| (same[0].0, same.iter().map(|entry| entry.1).sum())));
        }
        sum.done()
    }

    pub fn instances(&self) -> usize {
        self.links.offsets.len() - 1
    }

    fn range(&self, i: usize) -> Range<usize> {
        self.links.offsets[i]..self.links.offsets[i + 1]
    }

    fn row(&self, i: usize) -> impl Iterator<Item = (u32, f32)> {
        let range = self.range(i);
        self.links.columns[range.clone()].iter().copied().zip(self.weights[range].iter().copied())
    }

    /// Each weight times a power of the cosine of the two rows of `along`, which is lifted to [`LEAST`], so that nobody loses
    /// all links.
    pub fn weighted(&self, along: &[&Matrix], power: i32) -> Self {
        let unit: Vec<Matrix> = along.iter().map(|rows| unit_rows(rows)).collect();
        let cosine = |i: usize, j: usize| {
            let sum: f64 = unit.iter().map(|rows| crate::matrix::dot(rows.row(i), rows.row(j))).sum();
            (sum / unit.len() as f64).clamp(LEAST, 1.0).powi(power) as f32
        };
        let n = self.instances();
        let weigh = |part: usize| {
            let mut weights = Vec::new();
            for i in part * ROWS..((part + 1) * ROWS).min(n) {
                weights.extend(self.row(i).map(|(j, weight)| weight * cosine(i, j as usize)));
            }
            weights
        };
        let parts: Vec<Vec<f32>> = (0..n.div_ceil(ROWS)).into_par_iter().map(weigh).collect();
        Self { links: Arc::clone(&self.links), weights: parts.concat() }
    }

    /// The eigenvectors of the `count` largest eigenvalues of `D^{-½} (A + τ 11ᵀ/n) D^{-½}`, rows brought to length 1.
    /// Rows of instances without links are zero.
    pub fn spectral(&self, count: usize, seed: u64) -> Matrix {
        let n = self.instances();
        let degrees: Vec<f64> = (0..n).map(|i| self.row(i).map(|(_, w)| f64::from(w)).sum()).collect();
        let linked = degrees.iter().filter(|degree| **degree > 0.0).count().max(1) as f64;
        let background = BACKGROUND * degrees.iter().sum::<f64>() / linked;
        let root = |degree: &f64| if *degree > 0.0 { (degree + background).sqrt().recip() } else { 0.0 };
        let roots: Vec<f64> = degrees.iter().map(root).collect();
        let apply = |x: &Matrix| self.normalised_times(&roots, background / linked, x);
        let (_, vectors) = eigen::leading(apply, n, count, seed);
        unit_rows(&vectors)
    }

    fn normalised_times(&self, roots: &[f64], background: f64, x: &Matrix) -> Matrix {
        let width = x.columns();
        let mut common = vec![0.0; width];
        for (row, root) in x.iter_rows().zip(roots) {
            common.iter_mut().zip(row).for_each(|(sum, value)| *sum += background * root * value);
        }
        let mut out = Matrix::zeros(x.rows(), width);
        let rows = out.values_mut().par_chunks_mut(ROWS * width).enumerate();
        rows.for_each(|(part, rows)| {
            for (i, out) in rows.chunks_exact_mut(width).enumerate() {
                let i = part * ROWS + i;
                out.copy_from_slice(&common);
                for (j, weight) in self.row(i) {
                    let factor = f64::from(weight) * roots[j as usize];
                    out.iter_mut().zip(x.row(j as usize)).for_each(|(out, value)| *out += factor * value);
                }
                out.iter_mut().for_each(|out| *out *= roots[i]);
            }
        });
        out
    }

    /// How much more of the weight lies within clusters than would by chance: at most 1, about 0 by chance (Newman's
    /// modularity).
    pub fn modularity(&self, labels: &[usize], clusters: usize) -> f64 {
        let (mut within, mut total) = (0.0, 0.0);
        let mut degrees = vec![0.0; clusters];
        for (i, &label) in labels.iter().enumerate() {
            for (j, weight) in self.row(i) {
                let weight = f64::from(weight);
                total += weight;
                degrees[label] += weight;
                within += if labels[j as usize] == label { weight } else { 0.0 };
            }
        }
        if total == 0.0 {
            return 0.0;
        }
        within / total - degrees.iter().map(|degree| (degree / total).powi(2)).sum::<f64>()
    }
}

/// Rows brought to length 1; rows of zeros stay.
fn unit_rows(matrix: &Matrix) -> Matrix {
    let mut unit = matrix.clone();
    for i in 0..unit.rows() {
        let row = unit.row_mut(i);
        let length = crate::matrix::dot(row, row).sqrt();
        if length > 0.0 {
            row.iter_mut().for_each(|value| *value /= length);
        }
    }
    unit
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::search;
    use super::*;
    use crate::lens::Lens;
    use crate::scale::{Scale, Scaling};
    use crate::synthetic::Synthetic;
    use crate::{Views, linalg, simulate};

    fn views(n: usize) -> Views<'static> {
        let data = Synthetic::new(n, 3).seed(2);
        let present = simulate::missing(n, &[0.3, 0.4], 2).unwrap();
        let view = |name, d, v: usize| data.dense::<f64>(name, d).unwrap().mask(&present[v]).unwrap();
        Views::new(vec![view("x", 6, 0), view("y", 9, 1)]).unwrap()
    }

    fn nearest(source: &Views<'_>) -> Vec<Nearest> {
        let of = |view| {
            let scaling = Scaling::fit(source, view, Scale::Unit).unwrap();
            let lens = Lens::fit(source, view, scaling, true).unwrap();
            search::nearest(source, view, &lens, 5, 0).unwrap()
        };
        (0..2).map(of).collect()
    }

    fn dense(graph: &Graph) -> Matrix {
        let mut all = Matrix::zeros(graph.instances(), graph.instances());
        for i in 0..graph.instances() {
            graph.row(i).for_each(|(j, weight)| all[(i, j as usize)] = f64::from(weight));
        }
        all
    }

    /// The weights by their definition.
    fn literal(source: &Views<'_>, nearest: &[Nearest]) -> Matrix {
        let square = |view: usize, i: usize, j: usize| {
            let one_way = |i: usize, j: usize| {
                nearest[view].of(i).find(|(other, _)| *other == j).map(|(_, square)| square)
            };
            one_way(i, j).or_else(|| one_way(j, i))
        };
        let reach =
            |view: usize, i: usize| nearest[view].of(i).map(|(_, square)| square.sqrt()).fold(0.0, f64::max);
        Matrix::from_fn(source.instances(), source.instances(), |i, j| {
            let both =
                (0..2).filter(|&view| source.is_present(view, i) && source.is_present(view, j)).count();
            let heat = |view| Some((-square(view, i, j)? / (reach(view, i) * reach(view, j))).exp());
            (0..2).filter_map(heat).sum::<f64>() / both.max(1) as f64
        })
    }

    fn assert_close(a: &Matrix, b: &Matrix, tolerance: f64) {
        assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()));
        for (a, b) in a.values().iter().zip(b.values()) {
            assert!((a - b).abs() < tolerance, "{a} {b}");
        }
    }

    #[test]
    fn the_fused_graph_is_the_mean_over_the_views_that_show_both() {
        let source = views(120);
        let nearest = nearest(&source);
        let graph = Graph::fused(&source, &nearest, &[1.0, 1.0]);
        assert_close(&dense(&graph), &literal(&source, &nearest), 1e-6);
        let first = Graph::fused(&source, &nearest, &[1.0, 0.0]);
        let second = Graph::fused(&source, &nearest, &[0.0, 1.0]);
        let (first, second) = (dense(&first), dense(&second));
        let sum = Matrix::from_fn(120, 120, |i, j| first[(i, j)] + second[(i, j)]);
        assert_close(&dense(&graph), &sum, 1e-6);
    }

    #[test]
    fn weights_are_multiplied_by_the_power_of_the_cosine() {
        let source = views(80);
        let graph = Graph::fused(&source, &nearest(&source), &[1.0, 1.0]);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut rows = || Matrix::from_fn(80, 4, |_, _| rng.random_range(-1.0..1.0));
        let (a, b) = (rows(), rows());
        let cosine = |x: &Matrix, i: usize, j: usize| {
            let dot = |i: usize, j: usize| x.row(i).iter().zip(x.row(j)).map(|(a, b)| a * b).sum::<f64>();
            dot(i, j) / (dot(i, i) * dot(j, j)).sqrt()
        };
        let before = dense(&graph);
        let expected = Matrix::from_fn(80, 80, |i, j| {
            let mean = f64::midpoint(cosine(&a, i, j), cosine(&b, i, j));
            before[(i, j)] * mean.clamp(LEAST, 1.0).powi(4)
        });
        assert_close(&dense(&graph.weighted(&[&a, &b], 4)), &expected, 1e-6);
    }

    #[test]
    fn the_spectral_rows_are_those_of_the_dense_matrix() {
        let source = views(90);
        let graph = Graph::fused(&source, &nearest(&source), &[1.0, 1.0]);
        let all = dense(&graph);
        let degrees: Vec<f64> = all.iter_rows().map(|row| row.iter().sum()).collect();
        assert!(degrees.iter().all(|degree| *degree > 0.0));
        let tau = BACKGROUND * degrees.iter().sum::<f64>() / 90.0;
        let scaled = Matrix::from_fn(90, 90, |i, j| {
            (all[(i, j)] + tau / 90.0) / ((degrees[i] + tau) * (degrees[j] + tau)).sqrt()
        });
        let (_, vectors) = linalg::symmetric_eigen(&scaled);
        let expected = unit_rows(&Matrix::from_fn(90, 3, |i, k| vectors[(i, 89 - k)]));
        let found = graph.spectral(3, 0);
        // Eigenvectors have no sign, but rows of length 1 have products.
        let products = |rows: &Matrix| linalg::product_transposed(rows, rows);
        assert_close(&products(&found), &products(&expected), 1e-6);
    }

    #[test]
    fn modularity_is_high_for_clusters_and_nought_for_one() {
        let source = views(150);
        let graph = Graph::fused(&source, &nearest(&source), &[1.0, 1.0]);
        let truth = Synthetic::new(150, 3).seed(2).truth();
        assert!(graph.modularity(&truth, 3) > 0.5);
        assert!(graph.modularity(&vec![0; 150], 1).abs() < 1e-12);
        let shuffled: Vec<usize> = (0..150).map(|i| (i * 7 + i / 13) % 3).collect();
        assert!(graph.modularity(&shuffled, 3).abs() < 0.1);
    }
}
