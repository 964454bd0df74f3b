//! One-pass incomplete multi-view clustering (Hu and Chen, AAAI 2019).

use std::ops::ControlFlow;

use daimc::{Matrix, Result, Scale, Source};
use daimc_core::linalg::{column_squares, product};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::methods::algebra::{add, gram, inverse, rows_of, stream, sum, uniform};
use crate::methods::data::{Rows, Scaled, check_clusters, check_weight};
use crate::methods::{Clustering, Method};

/// OPIMC: a regularised k-means over all views, each with its present instances, in one pass over blocks of instances.
///
/// ```text
/// J = Σ_v { Σ_j w_vj ‖x_vj − U_v v_j‖² + α ‖U_v‖² },   v_j one-hot
/// ```
///
/// Of previous blocks the method keeps `R_v = Σ w x vᵀ` and `T_v = Σ w v vᵀ`. A block starts from the clusters that
/// are nearest by the current bases (the first: from random shares) and repeats
///
/// ```text
/// U_v = (R_v + Σ_block w x vᵀ) (T_v + Σ_block w v vᵀ + αI)⁻¹
/// v_j = the k for which Σ_v w_vj (‖u_vk‖² − 2 x_vjᵀu_vk) is least
/// ```
///
/// until J over all blocks so far does not change. A cluster without members keeps its basis, or has the mean of the block as its
/// basis in the first one. The result depends on the first block, so it is started several times and the start with the
/// smallest J is kept. Instances come in a random order. The clusters are V itself, which is also the
/// embedding.
///
/// Published are α = 10, blocks of 30 and one start; with rows of unit length, of which a cluster has only a few in such a
/// block, that α dominates the data and all instances fall into one cluster (AC 0.10 on Digit), so the defaults are smaller.
#[derive(Clone, Debug, PartialEq)]
pub struct Opimc {
    /// The weight of the size of the bases, α ≥ 0.
    pub alpha: f64,
    /// Instances in a block; at least the number of clusters.
    pub block: usize,
    /// Starts of the first block; published is one.
    pub starts: usize,
    /// Passes over the data; in a later one the previous contribution of a block is subtracted.
    pub passes: usize,
    /// How the views are scaled.
    pub scale: Scale,
    /// Maximum number of iterations on a block.
    pub max_iterations: usize,
    /// A block has converged when J changes by less than this share.
    pub tolerance: f64,
}

impl Default for Opimc {
    fn default() -> Self {
        Self {
            alpha: 1e-2,
            block: 250,
            starts: 20,
            passes: 1,
            scale: Scale::Unit,
            max_iterations: 30,
            tolerance: 1e-6,
        }
    }
}

impl Method for Opimc {
    fn name(&self) -> String {
        "OPIMC".into()
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        check_clusters(source.instances(), clusters)?;
        check_weight("alpha", self.alpha)?;
        let scaled = (0..source.views()).map(|view| Scaled::new(source, view, self.scale));
        let scaled = scaled.collect::<Result<Vec<_>>>()?;
        let mut known: Vec<Known> = scaled.iter().map(|view| Known::new(view.features(), clusters)).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let blocks = stream(source.instances(), self.block.max(clusters), &mut rng);
        let mut found = Matrix::zeros(source.instances(), clusters);
        let mut history = Vec::new();
        'passes: for pass in 0..self.passes {
            for (number, instances) in blocks.iter().enumerate() {
                let block = Block::new(&scaled, instances)?;
                if pass > 0 {
                    block.give(&mut known, &rows_of(&found, instances), -1.0);
                }
                let (v, objective) = if pass == 0 && number == 0 {
                    self.start(&block, &mut known, &mut rng)
                } else {
                    let start = block.assign(&known);
                    self.iterate(&block, &mut known, start, false)
                };
                block.give(&mut known, &v, 1.0);
                for (from, &to) in instances.iter().enumerate() {
                    found.row_mut(to).copy_from_slice(v.row(from));
                }
                history.push(objective);
                if each(history.len(), objective).is_break() {
                    // Instances not visited yet have the nearest cluster by the bases.
                    let rest = blocks[number + 1..].iter().filter(|_| pass == 0);
                    for instances in rest {
                        let v = Block::new(&scaled, instances)?.assign(&known);
                        for (from, &to) in instances.iter().enumerate() {
                            found.row_mut(to).copy_from_slice(v.row(from));
                        }
                    }
                    break 'passes;
                }
            }
        }
        let member = |row: &[f64]| row.iter().position(|&own| own == 1.0).unwrap_or(0);
        Ok(Clustering {
            labels: found.iter_rows().map(member).collect(),
            embedding: found,
            history,
            confidence: Vec::new(),
        })
    }
}

impl Opimc {
    /// The iterations on the first block, from the start that leads to the least J.
    fn start(&self, block: &Block, known: &mut Vec<Known>, rng: &mut ChaCha8Rng) -> (Matrix, f64) {
        let clusters = known[0].basis.columns();
        let mut best: Option<(Vec<Known>, Matrix, f64)> = None;
        for _ in 0..self.starts.max(1) {
            let mut trial = known.clone();
            let (v, now) = self.iterate(block, &mut trial, shares(block.size, clusters, rng), true);
            if best.as_ref().is_none_or(|best| now < best.2) {
                best = Some((trial, v, now));
            }
        }
        let (trial, v, now) = best.expect("there is at least one start");
        *known = trial;
        (v, now)
    }

    /// The iterations on a block: its V, and J over all blocks so far without the previous contribution of this one.
    fn iterate(&self, block: &Block, known: &mut [Known], mut v: Matrix, first: bool) -> (Matrix, f64) {
        let mut before = f64::INFINITY;
        for _ in 0..self.max_iterations.max(1) {
            block.update_bases(known, &v, self.alpha, first);
            v = block.assign(known);
            let now = block.surrogate(known, &v, self.alpha);
            let settled = (before - now).abs() <= self.tolerance * now.abs();
            before = now;
            if settled {
                break;
            }
        }
        let squares = |(known, seen): (&Known, &Seen)| known.squares + seen.rows.sum_squares();
        (v, before + known.iter().zip(&block.views).map(squares).sum::<f64>())
    }
}

/// The state of a view: `R`, `T`, `Σ w‖x‖²` of previous blocks, and the basis U.
#[derive(Clone)]
struct Known {
    sums: Matrix,
    counts: Matrix,
    squares: f64,
    basis: Matrix,
}

impl Known {
    fn new(features: usize, clusters: usize) -> Self {
        Self {
            sums: Matrix::zeros(features, clusters),
            counts: Matrix::zeros(clusters, clusters),
            squares: 0.0,
            basis: Matrix::zeros(features, clusters),
        }
    }
}

/// The present rows of a view in a block, and their positions in it.
struct Seen {
    here: Vec<usize>,
    rows: Rows,
}

struct Block {
    size: usize,
    views: Vec<Seen>,
}

impl Block {
    fn new(scaled: &[Scaled<'_>], instances: &[usize]) -> Result<Self> {
        let seen = |view: &Scaled<'_>| {
            let here: Vec<usize> = (0..instances.len()).filter(|&i| view.shows(instances[i])).collect();
            let shown: Vec<usize> = here.iter().map(|&i| instances[i]).collect();
            Ok(Seen { rows: view.rows(&shown)?, here })
        };
        Ok(Self { size: instances.len(), views: scaled.iter().map(seen).collect::<Result<_>>()? })
    }

    /// Adds the block to the state, or subtracts it.
    fn give(&self, known: &mut [Known], v: &Matrix, sign: f64) {
        for (known, seen) in known.iter_mut().zip(&self.views) {
            let v = rows_of(v, &seen.here);
            add(known.sums.values_mut(), sign, seen.rows.transposed_times(&v).values());
            add(known.counts.values_mut(), sign, gram(&v).values());
            known.squares += sign * seen.rows.sum_squares();
        }
    }

    fn update_bases(&self, known: &mut [Known], v: &Matrix, alpha: f64, first: bool) {
        for (known, seen) in known.iter_mut().zip(&self.views) {
            let v = rows_of(v, &seen.here);
            let counts = sum(&known.counts, 1.0, &gram(&v));
            let sums = sum(&known.sums, 1.0, &seen.rows.transposed_times(&v));
            let mut basis = product(&sums, &inverse(&counts, alpha));
            let mut mean = vec![0.0; basis.rows()];
            if first {
                (0..seen.here.len()).for_each(|i| seen.rows.each(i, |f, value| mean[f] += value));
                mean.iter_mut().for_each(|sum| *sum /= seen.here.len().max(1) as f64);
            }
            for k in (0..counts.rows()).filter(|&k| counts[(k, k)] <= 0.0) {
                for f in 0..basis.rows() {
                    basis[(f, k)] = if first { mean[f] } else { known.basis[(f, k)] };
                }
            }
            known.basis = basis;
        }
    }

    /// The one-hot V that is best for the bases.
    fn assign(&self, known: &[Known]) -> Matrix {
        let clusters = known[0].basis.columns();
        let mut costs = Matrix::zeros(self.size, clusters);
        for (known, seen) in known.iter().zip(&self.views) {
            let squares = column_squares(&known.basis);
            let products = seen.rows.times(&known.basis);
            for (i, &at) in seen.here.iter().enumerate() {
                add(costs.row_mut(at), 1.0, &squares);
                add(costs.row_mut(at), -2.0, products.row(i));
            }
        }
        let mut v = Matrix::zeros(self.size, clusters);
        for (i, costs) in costs.iter_rows().enumerate() {
            let best = (0..clusters).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0);
            v[(i, best)] = 1.0;
        }
        v
    }

    /// J over the state and this block, without the squares of the rows:
    /// `Σ_v −2 tr(UᵀR) + tr(UᵀU T) + α‖U‖²`, R and T with the block.
    fn surrogate(&self, known: &[Known], v: &Matrix, alpha: f64) -> f64 {
        let of_view = |(known, seen): (&Known, &Seen)| {
            let v = rows_of(v, &seen.here);
            let counts = sum(&known.counts, 1.0, &gram(&v));
            let sums = sum(&known.sums, 1.0, &seen.rows.transposed_times(&v));
            let size = gram(&known.basis);
            size.dot(&counts) - 2.0 * sums.dot(&known.basis) + alpha * known.basis.sum_squares()
        };
        known.iter().zip(&self.views).map(of_view).sum()
    }
}

/// Random rows that sum to 1.
fn shares(rows: usize, clusters: usize, rng: &mut ChaCha8Rng) -> Matrix {
    let mut v = uniform(rows, clusters, rng);
    for i in 0..rows {
        let total: f64 = v.row(i).iter().sum();
        v.row_mut(i).iter_mut().for_each(|value| *value /= total);
    }
    v
}

#[cfg(test)]
mod tests {
    use daimc_naive::{self as naive, Mat, add, identity, mul, scale, solve, subtract, transpose};
    use proptest::prelude::*;

    use super::*;
    use crate::methods::testing::{assert_close, dense, plain, views};

    /// Two blocks of three views, the first of them processed.
    fn example(seed: u64) -> (Block, Vec<Known>, Block, Matrix) {
        let views = views(40, &[7, 5, 3], -1.0, seed);
        let scaled: Vec<Scaled<'_>> = (0..3).map(|v| Scaled::new(&views, v, Scale::Unit).unwrap()).collect();
        let instances: Vec<usize> = (0..40).collect();
        let blocks = [0..20, 20..40].map(|range| Block::new(&scaled, &instances[range]).unwrap());
        let mut known: Vec<Known> = scaled.iter().map(|view| Known::new(view.features(), 3)).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let start = shares(20, 3, &mut rng);
        let (v, _) = Opimc { alpha: 0.1, ..Opimc::default() }.iterate(&blocks[0], &mut known, start, true);
        blocks[0].give(&mut known, &v, 1.0);
        let [past, block] = blocks;
        (past, known, block, v)
    }

    /// J over both blocks, row by row.
    fn literal(blocks: [(&Block, &Matrix); 2], known: &[Known], alpha: f64) -> f64 {
        let mut sum = 0.0;
        for (v, known) in known.iter().enumerate() {
            let u = plain(&known.basis);
            for (block, latent) in blocks {
                let latent = plain(&rows_of(latent, &block.views[v].here));
                let misfit = subtract(&dense(&block.views[v].rows), &mul(&latent, &transpose(&u)));
                sum += naive::frobenius(&misfit).powi(2);
            }
            sum += alpha * naive::frobenius(&u).powi(2);
        }
        sum
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn neither_step_raises_the_objective(seed in 0_u64..1000, alpha in 0.01..10.0) {
            let (past, mut known, block, settled) = example(seed);
            let mut v = block.assign(&known);
            let mut before = f64::INFINITY;
            for _ in 0..5 {
                for step in 0..2 {
                    if step == 0 {
                        // A cluster without members keeps its basis, which is not the best one: J is then not compared.
                        block.update_bases(&mut known, &v, alpha, false);
                        let empty = |known: &Known, seen: &Seen| {
                            let counts = sum(&known.counts, 1.0, &gram(&rows_of(&v, &seen.here)));
                            (0..3).any(|k| counts[(k, k)] <= 0.0)
                        };
                        if known.iter().zip(&block.views).any(|(known, seen)| empty(known, seen)) {
                            before = f64::INFINITY;
                        }
                    } else {
                        v = block.assign(&known);
                    }
                    let now = literal([(&past, &settled), (&block, &v)], &known, alpha);
                    prop_assert!(now <= before * (1.0 + 1e-12), "{before} {now}");
                    let squares = |(known, seen): (&Known, &Seen)| known.squares + seen.rows.sum_squares();
                    let squares: f64 = known.iter().zip(&block.views).map(squares).sum();
                    prop_assert!((block.surrogate(&known, &v, alpha) + squares - now).abs() < 1e-10 * now);
                    before = now;
                }
            }
        }

        #[test]
        fn both_steps_are_the_literal_ones(seed in 0_u64..1000, alpha in 0.01..10.0) {
            let (past, mut known, block, settled) = example(seed);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let soft = shares(20, 3, &mut rng);
            block.update_bases(&mut known, &soft, alpha, false);
            let mut costs: Mat = naive::build(20, 3, |_, _| 0.0);
            for (v, known) in known.iter().enumerate() {
                let mut sums = naive::build(known.basis.rows(), 3, |_, _| 0.0);
                let mut counts = scale(alpha, &identity(3));
                for (block, latent) in [(&past, &settled), (&block, &soft)] {
                    let latent = plain(&rows_of(latent, &block.views[v].here));
                    sums = add(&sums, &mul(&transpose(&dense(&block.views[v].rows)), &latent));
                    counts = add(&counts, &mul(&transpose(&latent), &latent));
                }
                let u = transpose(&solve(&counts, &transpose(&sums)));
                assert_close(&known.basis, &u);
                for (x, &i) in dense(&block.views[v].rows).iter().zip(&block.views[v].here) {
                    for k in 0..3 {
                        costs[i][k] += (0..x.len()).map(|f| u[f][k] * u[f][k] - 2.0 * x[f] * u[f][k]).sum::<f64>();
                    }
                }
            }
            for (costs, v) in costs.iter().zip(block.assign(&known).iter_rows()) {
                let best = (0..3).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap();
                prop_assert_eq!(v.iter().position(|&own| own == 1.0), Some(best));
            }
        }

        #[test]
        fn a_block_takes_back_what_it_gave(seed in 0_u64..1000) {
            let (past, mut known, _, v) = example(seed);
            past.give(&mut known, &v, -1.0);
            for known in known {
                prop_assert!(known.sums.sum_squares() < 1e-24 && known.counts.sum_squares() == 0.0);
            }
        }
    }
}
