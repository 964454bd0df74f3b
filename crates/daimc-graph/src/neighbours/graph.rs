//! The neighbour graph of all views together, as a sparse symmetric matrix of weights.

use std::ops::Range;
use std::sync::Arc;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::anchors::{AnchorSums, Anchors};
use super::search::{self, Nearest, Search};
use super::{NEIGHBOURS, POWER};
use daimc_core::accelerator::Resident;
use daimc_core::eigen;
use daimc_core::eigen::Multiplier;
use daimc_core::index::index;
use daimc_core::kernel::Scalar;
use daimc_core::matrix::dot;
use daimc_core::parallel::ordered;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scaling::{Scale, Scaling};
use daimc_core::scan::Scan;
use daimc_core::source::Source;
use daimc_core::watch::Watch;
use daimc_core::{Matrix, Result, Views};

/// The background weight between every two instances in the cut, as a share of the mean degree: without it a few instances
/// without links to the rest would form a cluster.
const BACKGROUND: f64 = 0.1;

/// The least cosine in a weight.
const LEAST: f64 = 0.05;

/// The largest exponent of a weight, so that no link underflows.
const COLDEST: f64 = 30.0;

/// The number of rows that one thread processes at a time.
const ROWS: usize = 256;

/// The number of rows whose sums one thread computes; sums are always merged in the same order.
const SUMMED: usize = 4096;

/// The number of instances beyond which eigenvectors are in single precision, because they need most of the memory.
pub const SINGLE: usize = 20_000;

/// Weights between instances: symmetric, none between an instance and itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    links: Arc<Links>,
    weights: Vec<f32>,
}

/// The links: the neighbours of instance i are at `offsets[i]..offsets[i + 1]`, in increasing order.
#[derive(Debug, PartialEq)]
struct Links {
    offsets: Vec<usize>,
    columns: Vec<u32>,
}

/// The lists of a view in both directions: the instances whose lists contain instance i are at `offsets[i]..offsets[i + 1]`.
struct BothWays<'a> {
    nearest: &'a Nearest,
    offsets: Vec<u32>,
    listed_by: Vec<u32>,
    /// The weight of the neighbour of each rank.
    trust: &'a [f32],
}

impl<'a> BothWays<'a> {
    /// Each thread reads all lists in order and writes the entries for its own range of instances, which stay in the cache.
    fn new(nearest: &'a Nearest, trust: &'a [f32]) -> Self {
        let n = nearest.instances();
        let size = n.div_ceil(rayon::current_num_threads()).max(1);
        // Calls `found` for the entries from `first` on, in the order of the instances whose lists contain them.
        let each = |first: usize, count: usize, found: &mut dyn FnMut(usize, u32)| {
            for i in 0..n {
                for (j, _) in nearest.of(i) {
                    if j.wrapping_sub(first) < count {
                        found(j - first, index(i));
                    }
                }
            }
        };
        let mut offsets = vec![0_u32; n + 1];
        offsets[1..].par_chunks_mut(size).enumerate().for_each(|(part, counts)| {
            each(part * size, counts.len(), &mut |j, _| counts[j] += 1);
        });
        let mut end = 0;
        for offset in &mut offsets {
            end += *offset;
            *offset = end;
        }
        let mut listed_by = vec![0; end as usize];
        let mut rest = &mut listed_by[..];
        let parts: Vec<(usize, &mut [u32])> = (0..n)
            .step_by(size)
            .map(|first| {
                let entries = offsets[(first + size).min(n)] - offsets[first];
                (first, rest.split_off_mut(..entries as usize).expect("as many as were counted"))
            })
            .collect();
        parts.into_par_iter().for_each(|(first, listed_by)| {
            let own = &offsets[first..(first + size).min(n)];
            let mut next: Vec<u32> = own.iter().map(|offset| offset - own[0]).collect();
            each(first, own.len(), &mut |j, i| {
                listed_by[next[j] as usize] = i;
                next[j] += 1;
            });
        });
        Self { nearest, offsets, listed_by, trust }
    }

    /// The distance of the last neighbour of an instance.
    fn reach(&self, i: usize) -> f64 {
        self.nearest.of(i).last().map_or(0.0, |(_, square)| square.sqrt())
    }

    /// The rank and the squared distance of j in the list of i, if it is there.
    fn listed(&self, i: usize, j: usize) -> Option<(usize, f64)> {
        let mut list = self.nearest.of(i).enumerate();
        list.find(|(_, (other, _))| *other == j).map(|(rank, (_, square))| (rank, square))
    }

    /// Adds the links of an instance: the heat kernel of the distance, `exp(−‖x_i − x_j‖² / (σ_i σ_j))`, if i is among the
    /// nearest of j or j among those of i; σ is the distance of the last neighbour.
    fn links(&self, i: usize, row: &mut Vec<(u32, f32)>) {
        let own = self.reach(i);
        let listed_by = &self.listed_by[self.offsets[i] as usize..self.offsets[i + 1] as usize];
        let others = self.nearest.of(i).map(|(j, _)| j);
        let others =
            others.chain(listed_by.iter().map(|&j| j as usize).filter(|&j| self.listed(i, j).is_none()));
        row.extend(others.map(|j| {
            let (low, high) = (i.min(j), i.max(j));
            let (a, b) = (self.listed(low, high), self.listed(high, low));
            // The distances in the two lists may differ in the last bits; a link has one weight.
            let square = a.or(b).map_or(0.0, |(_, square)| square);
            let scale = own * self.reach(j);
            // Among identical points, any other instance is infinitely far in this unit.
            let far = if square > 0.0 { (square / scale).min(COLDEST) } else { 0.0 };
            let heat = (-far).exp() as f32;
            let trust = [a, b].into_iter().flatten().map(|(rank, _)| self.trust[rank]).fold(0.0, f32::max);
            (index(j), trust * heat)
        }));
    }
}

impl Graph {
    /// The graph of one view.
    pub fn of_view(nearest: &Nearest, watch: &Watch) -> Result<Self> {
        Self::sum(&[BothWays::new(nearest, &vec![1.0; nearest.most()])], |_, _| 1, watch)
    }

    /// The graph of the nearest rows of a matrix.
    pub fn of_rows(rows: &Matrix, seed: u64, watch: &Watch) -> Result<Self> {
        let rows = Views::of_matrix(rows)?;
        let scan = Scan::new(&rows, &watch.stop);
        let scaled_view = ScaledView::new(&scan, 0, Scaling::fit(&scan, 0, Scale::None)?)?;
        let search = Search { count: NEIGHBOURS, seed, thorough: false };
        Self::of_view(&search::nearest(&scan, 0, &scaled_view, search, watch)?, watch)
    }

    /// The mean of the graphs of the views; that of a pair is over the views in which both have a row. The weight of a link is
    /// multiplied by the view's `trust` in neighbours of its rank.
    pub fn fused(
        source: &dyn Source,
        nearest: &[Nearest],
        trust: &[Vec<f32>],
        watch: &Watch,
    ) -> Result<Self> {
        let views = nearest.iter().zip(trust).map(|(nearest, trust)| BothWays::new(nearest, trust));
        let shown = |i: usize, j: usize| {
            let both = |view: &usize| source.is_present(*view, i) && source.is_present(*view, j);
            (0..source.views()).filter(both).count()
        };
        Self::sum(&views.collect::<Vec<_>>(), shown, watch)
    }

    /// The sum of the graphs of some views; the weight of a pair is divided by `shown`.
    fn sum(
        views: &[BothWays<'_>],
        shown: impl Fn(usize, usize) -> usize + Sync,
        watch: &Watch,
    ) -> Result<Self> {
        #[derive(Default)]
        struct RowLinks {
            row: Vec<(u32, f32)>,
            lengths: Vec<usize>,
            columns: Vec<u32>,
            weights: Vec<f32>,
        }
        let n = views[0].nearest.instances();
        let most: usize = views.iter().map(|view| 2 * view.listed_by.len()).sum();
        let mut links = Links { offsets: Vec::with_capacity(n + 1), columns: Vec::with_capacity(most) };
        links.offsets.push(0);
        let mut weights = Vec::with_capacity(most);
        let work = |start: usize, part: &mut RowLinks| {
            watch.check()?;
            let RowLinks { row, lengths, columns, weights } = part;
            lengths.clear();
            columns.clear();
            weights.clear();
            for i in start..(start + ROWS).min(n) {
                row.clear();
                views.iter().for_each(|view| view.links(i, row));
                // In the order of the views if several have the link.
                row.sort_by_key(|entry| entry.0);
                for same in row.chunk_by(|a, b| a.0 == b.0) {
                    let sum: f32 = same.iter().map(|entry| entry.1).sum();
                    columns.push(same[0].0);
                    weights.push(sum / shown(i, same[0].0 as usize) as f32);
                }
                lengths.push(columns.len());
            }
            Ok(())
        };
        ordered((0..n).step_by(ROWS), RowLinks::default, work, |part| {
            let before = weights.len();
            links.offsets.extend(part.lengths.iter().map(|length| before + length));
            links.columns.extend_from_slice(&part.columns);
            weights.extend_from_slice(&part.weights);
        })?;
        links.columns.shrink_to_fit();
        weights.shrink_to_fit();
        Ok(Self { links: Arc::new(links), weights })
    }

    /// The number of instances.
    pub fn instances(&self) -> usize {
        self.links.offsets.len() - 1
    }

    fn range(&self, i: usize) -> Range<usize> {
        self.links.offsets[i]..self.links.offsets[i + 1]
    }

    /// The neighbours of an instance, in increasing order, with weights.
    pub fn row(&self, i: usize) -> impl Iterator<Item = (u32, f32)> {
        let range = self.range(i);
        self.links.columns[range.clone()].iter().copied().zip(self.weights[range].iter().copied())
    }

    /// Weights each link by the agreement of the rows of V.
    #[must_use]
    pub fn along(&self, latent: &Matrix) -> Self {
        self.weighted(&[latent], POWER)
    }

    /// Each weight times a power of the cosine of the two rows of `along`. The cosine is at least `LEAST`, so that no instance
    /// loses all links.
    #[must_use]
    pub fn weighted(&self, along: &[&Matrix], power: i32) -> Self {
        let shrink = |row: &[f64]| {
            let length = dot(row, row).sqrt();
            if length > 0.0 { length.recip() } else { 0.0 }
        };
        let units = |rows: &&Matrix| (0..rows.rows()).into_par_iter().map(|i| shrink(rows.row(i))).collect();
        let units: Vec<Vec<f64>> = along.iter().map(units).collect();
        let cosine = |i: usize, j: usize| {
            let pairs = along.iter().zip(&units);
            let sum: f64 = pairs.map(|(rows, unit)| unit[i] * unit[j] * dot(rows.row(i), rows.row(j))).sum();
            (sum / along.len() as f64).clamp(LEAST, 1.0).powi(power) as f32
        };
        let mut weights = vec![0.0; self.weights.len()];
        let mut rest = &mut weights[..];
        let starts = (0..self.instances()).step_by(ROWS);
        let parts: Vec<(Range<usize>, &mut [f32])> = starts
            .map(|start| {
                let rows = start..(start + ROWS).min(self.instances());
                let entries = self.links.offsets[rows.end] - self.links.offsets[rows.start];
                (rows, rest.split_off_mut(..entries).expect("as many weights as links"))
            })
            .collect();
        parts.into_par_iter().for_each(|(rows, part)| {
            let mut own = part.iter_mut();
            for i in rows {
                self.row(i)
                    .zip(&mut own)
                    .for_each(|((j, own), weight)| *weight = own * cosine(i, j as usize));
            }
        });
        Self { links: Arc::clone(&self.links), weights }
    }

    /// The eigenvectors of the `count` largest eigenvalues of `D^{-½} (A + S + τ 11ᵀ/n) D^{-½}`, rows scaled to length 1, where S
    /// is the anchor graph. Rows of instances without links are zero. With many instances and no anchors, an accelerator computes
    /// the products.
    pub fn spectral(
        &self,
        anchors: Option<&Anchors>,
        count: usize,
        seed: u64,
        resident: Option<&dyn Resident<'_>>,
        watch: &Watch,
    ) -> Result<Matrix> {
        let n = self.instances();
        let degree = |i: usize| self.row(i).map(|(_, weight)| f64::from(weight)).sum();
        let mut degrees: Vec<f64> = (0..n).into_par_iter().map(degree).collect();
        let linked = degrees.iter().filter(|degree| **degree > 0.0).count().max(1) as f64;
        let mean = degrees.iter().sum::<f64>() / linked;
        if let Some(anchors) = anchors {
            degrees.iter_mut().zip(anchors.degrees(mean)).for_each(|(degree, more)| *degree += more);
        }
        let linked = degrees.iter().filter(|degree| **degree > 0.0).count().max(1) as f64;
        let background = BACKGROUND * mean;
        let root = |degree: f64| if degree > 0.0 { (degree + background).sqrt().recip() } else { 0.0 };
        let normalised = Normalised {
            graph: self,
            anchors,
            mean,
            roots: degrees.into_iter().map(root).collect(),
            background: background / linked,
        };
        let mut rows = if n <= SINGLE {
            normalised.leading::<f64>(count, seed, watch)?
        } else if let Some(multiplier) = normalised.on_device(resident, count)? {
            let watched = Watched { multiplier, watch };
            eigen::leading_in_place::<f32>(&watched as &dyn Multiplier, n, count, seed)?.1
        } else {
            normalised.leading::<f32>(count, seed, watch)?
        };
        rows.each_row(|i, row| if normalised.roots[i] == 0.0 { row.fill(0.0) } else { unit(row) });
        Ok(rows)
    }
}

/// `D^{-½} (A + S + τ 11ᵀ/n) D^{-½}`.
struct Normalised<'a> {
    graph: &'a Graph,
    anchors: Option<&'a Anchors>,
    /// The mean degree in A.
    mean: f64,
    /// `D^{-½}`.
    roots: Vec<f64>,
    /// `τ/n`.
    background: f64,
}

impl Normalised<'_> {
    fn leading<T: Scalar>(&self, count: usize, seed: u64, watch: &Watch) -> Result<Matrix> {
        let apply = |x: &[T], factors: [f64; 3], y: &mut [T]| {
            watch.check()?;
            self.times(x, factors, y);
            Ok(())
        };
        Ok(eigen::leading_in_place(&apply, self.graph.instances(), count, seed)?.1)
    }

    /// An accelerator that computes products with this matrix.
    fn on_device(
        &self,
        resident: Option<&dyn Resident<'_>>,
        count: usize,
    ) -> Result<Option<Box<dyn Multiplier>>> {
        let Some(resident) = resident.filter(|_| self.anchors.is_none()) else { return Ok(None) };
        let Links { offsets, columns } = &*self.graph.links;
        let (weights, roots, background) = (&self.graph.weights, &self.roots, self.background);
        let links = eigen::Links { offsets, columns, weights, roots, background };
        resident.multiplier(&links, eigen::width(count))
    }

    /// `Y ← a S X + b X + c Y`.
    fn times<T: Scalar>(&self, x: &[T], factors: [f64; 3], y: &mut [T]) {
        let width = x.len() / self.roots.len();
        let common = self.common(x, width);
        let anchored = self.anchors.map(|anchors| (anchors, anchors.sums(x, &self.roots, self.mean)));
        y.par_chunks_mut(ROWS * width).enumerate().for_each(|(part, y)| {
            let (common, anchored) = (&common, anchored.as_ref());
            Arch::new().dispatch(Times { of: self, x, common, anchored, factors, first: part * ROWS, y });
        });
    }

    /// The contribution of the background to every row before the last factor.
    fn common<T: Scalar>(&self, x: &[T], width: usize) -> Vec<f64> {
        let parts = x.par_chunks(SUMMED * width).zip(self.roots.par_chunks(SUMMED)).map(|(x, roots)| {
            let mut sum = vec![0.0; width];
            for (row, root) in x.chunks_exact(width).zip(roots) {
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += root * x.to_f64());
            }
            sum
        });
        let mut common = vec![0.0; width];
        for part in parts.collect::<Vec<_>>() {
            common.iter_mut().zip(part).for_each(|(common, part)| *common += self.background * part);
        }
        common
    }
}

/// An accelerator that multiplies until it is stopped.
struct Watched<'a> {
    multiplier: Box<dyn Multiplier>,
    watch: &'a Watch,
}

impl Multiplier for Watched<'_> {
    fn multiply(&self, x: &mut [f32], y: &mut [f32], steps: &[[f64; 3]]) -> Result<()> {
        self.watch.check()?;
        self.multiplier.multiply(x, y, steps)
    }
}

/// The number of entries of a row that are summed at a time.
const LANES: usize = 16;

/// Some rows of a product with [`Normalised`].
struct Times<'a, T> {
    of: &'a Normalised<'a>,
    x: &'a [T],
    common: &'a [f64],
    anchored: Option<&'a (&'a Anchors, AnchorSums)>,
    factors: [f64; 3],
    /// The number of the first row of `y`.
    first: usize,
    y: &'a mut [T],
}

impl<T: Scalar> WithSimd for Times<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let width = self.common.len();
        let mut common = self.common.to_vec();
        for (row, y) in self.y.chunks_exact_mut(width).enumerate() {
            let i = self.first + row;
            if let Some((anchors, sums)) = self.anchored {
                common.copy_from_slice(self.common);
                anchors.add(i, sums, &mut common);
            }
            let range = self.of.graph.range(i);
            let (columns, weights) =
                (&self.of.graph.links.columns[range.clone()], &self.of.graph.weights[range]);
            let [a, b, c] = self.factors;
            let a = a * self.of.roots[i];
            for (from, y) in (0..width).step_by(LANES).zip(y.chunks_mut(LANES)) {
                let mut sums = [0.0; LANES];
                sums[..y.len()].copy_from_slice(&common[from..from + y.len()]);
                for (&j, weight) in columns.iter().zip(weights) {
                    let factor = f64::from(*weight) * self.of.roots[j as usize];
                    let other = &self.x[j as usize * width + from..][..y.len()];
                    // The compiler knows the common length.
                    if let Ok(other) = <&[T; LANES]>::try_from(other) {
                        for lane in 0..LANES {
                            sums[lane] += factor * other[lane].to_f64();
                        }
                    } else {
                        sums.iter_mut().zip(other).for_each(|(sum, x)| *sum += factor * x.to_f64());
                    }
                }
                let own = &self.x[i * width + from..][..y.len()];
                for ((y, x), sum) in y.iter_mut().zip(own).zip(&sums) {
                    *y = T::from_f64(a * sum + b * x.to_f64() + c * y.to_f64());
                }
            }
        }
    }
}

/// Scales a row to length 1; a row of zeros stays.
fn unit(row: &mut [f64]) {
    let length = dot(row, row).sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|value| *value /= length);
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use daimc_core::Stop;
    use daimc_core::simulate;
    use daimc_core::synthetic::Synthetic;
    use daimc_core::{Views, linalg};

    fn views(n: usize) -> Views<'static> {
        let data = Synthetic::new(n, 3).seed(2);
        let present = simulate::missing(n, &[0.3, 0.4], 2).unwrap();
        let view = |name, d, v: usize| data.dense::<f64>(name, d).unwrap().mask(&present[v]).unwrap();
        Views::new(vec![view("x", 6, 0), view("y", 9, 1)]).unwrap()
    }

    fn nearest(source: &Views<'_>) -> Vec<Nearest> {
        let of = |view| {
            let scaling = Scaling::fit(&Scan::new(source, &Stop::default()), view, Scale::Unit).unwrap();
            let scaled_view =
                ScaledView::fit(&Scan::new(source, &Stop::default()), view, scaling, true).unwrap();
            super::super::nearest_in(&Scan::new(source, &Stop::default()), view, &scaled_view, 5, 0).unwrap()
        };
        (0..2).map(of).collect()
    }

    /// Equal trust in every rank.
    fn trusting(views: [f32; 2]) -> Vec<Vec<f32>> {
        views.into_iter().map(|own| vec![own; 10]).collect()
    }

    fn dense(graph: &Graph) -> Matrix {
        let mut all = Matrix::zeros(graph.instances(), graph.instances());
        for i in 0..graph.instances() {
            graph.row(i).for_each(|(j, weight)| all[(i, j as usize)] = f64::from(weight));
        }
        all
    }

    /// The weights, by definition.
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
        let graph = Graph::fused(&source, &nearest, &trusting([1.0, 1.0]), &Watch::default()).unwrap();
        assert_close(&dense(&graph), &literal(&source, &nearest), 1e-6);
        let first = Graph::fused(&source, &nearest, &trusting([1.0, 0.0]), &Watch::default()).unwrap();
        let second = Graph::fused(&source, &nearest, &trusting([0.0, 1.0]), &Watch::default()).unwrap();
        let (first, second) = (dense(&first), dense(&second));
        let sum = Matrix::from_fn(120, 120, |i, j| first[(i, j)] + second[(i, j)]);
        assert_close(&dense(&graph), &sum, 1e-6);
    }

    #[test]
    fn weights_are_multiplied_by_the_power_of_the_cosine() {
        let source = views(80);
        let graph =
            Graph::fused(&source, &nearest(&source), &trusting([1.0, 1.0]), &Watch::default()).unwrap();
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
        let graph =
            Graph::fused(&source, &nearest(&source), &trusting([1.0, 1.0]), &Watch::default()).unwrap();
        let all = dense(&graph);
        let degrees: Vec<f64> = all.iter_rows().map(|row| row.iter().sum()).collect();
        assert!(degrees.iter().all(|degree| *degree > 0.0));
        let tau = BACKGROUND * degrees.iter().sum::<f64>() / 90.0;
        let scaled = Matrix::from_fn(90, 90, |i, j| {
            (all[(i, j)] + tau / 90.0) / ((degrees[i] + tau) * (degrees[j] + tau)).sqrt()
        });
        let (_, vectors) = linalg::symmetric_eigen(&scaled).unwrap();
        let mut expected = Matrix::from_fn(90, 3, |i, k| vectors[(i, 89 - k)]);
        expected.each_row(|_, row| unit(row));
        let found = graph.spectral(None, 3, 0, None, &Watch::default()).unwrap();
        // Eigenvectors have no sign, but products of rows do.
        let products = |rows: &Matrix| linalg::product_transposed(rows, rows);
        assert_close(&products(&found), &products(&expected), 1e-6);
    }
}
