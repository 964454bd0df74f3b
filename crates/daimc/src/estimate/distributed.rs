//! The cost of a fit distributed over workers (Dask, MPI or another engine).
//!
//! In an iteration every worker receives the factors (`U` of each view, Σ d × K numbers) and sweeps its own rows. The statistics
//! (`C`, of the same size as the factors, and `S`, K × K for each view) are merged on their way back. The messages do not depend on
//! the number of instances, and V is not sent.

use std::ops::Range;

use super::{ITERATIONS, PROGRAM, Shape, Work, rate};
use crate::options::{Options, Preset};
use daimc_core::blocks::Blocks;
use daimc_core::forest::Forest;

/// Replies that arrive in the driving process at the same time: Dask merges them in groups of this size.
const FAN_IN: usize = 8;

/// Bytes of a number in a message, and in V.
const NUMBER: f64 = 8.0;

/// Copies of a message in the memory of its sender or receiver: as bytes, in the engine, and as matrices.
const COPIES: f64 = 4.0;

/// Bytes of an instance in addition to its rows: on its worker the cluster and its confidence, once as they are computed and once
/// as they are returned; in the driving process for a short time, and as results.
const OUTCOME: f64 = 32.0;
const DRIVEN: f64 = 12.0;
const RESULT: f64 = 16.0;

/// The cost of a distributed fit with the default options, without neighbourhoods and map. The cost that these add in the driving
/// process is not included.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Distributed {
    /// Workers with rows: rows are divided by [`aligned`](daimc_core::aligned) into whole leaves, at most 128.
    pub workers: usize,
    /// Threads of each worker and of the driving process.
    pub threads: usize,
    /// Instances of the worker with the most.
    pub instances: usize,
    /// Bytes of memory of that worker: rows, V and sums. The memory of Python and of the engine without rows is not included.
    pub worker_bytes: f64,
    /// Bytes of memory of the driving process, without Python and the engine.
    pub driver_bytes: f64,
    /// Bytes that V, labels and confidence of all instances add to it at the end, if it has this memory.
    pub results_bytes: f64,
    /// Bytes of the request of an iteration, with the factors, which every worker receives.
    pub request: f64,
    /// Bytes of the reply of a worker, at most. Sums of leaves that cannot be merged yet are sent separately.
    pub reply: f64,
    /// Seconds of the fit, without messages.
    pub seconds: f64,
}

impl Distributed {
    /// The cost of a fit with this number of clusters to views of these shapes on this number of workers, each with this number
    /// of threads, as fast as those of this machine.
    #[must_use]
    pub fn new(instances: usize, views: &[Shape], clusters: usize, workers: usize, threads: usize) -> Self {
        let ranges = Blocks::split(instances, workers);
        let most = ranges.iter().map(Range::len).max().unwrap_or(0);
        let share = most as f64 / instances.max(1) as f64;
        let own: Vec<Shape> = views.iter().map(|view| view.part(share)).collect();
        let passes = Options::new(clusters, Preset::Default).passes as f64;
        let (here, there) = (Work::new(instances, clusters, threads), Work::new(most, clusters, threads));
        let (driven, swept) = (here.operations(views, passes), there.operations(&own, passes));
        let operations = ITERATIONS * (swept.sweep + driven.solve) + swept.rows + driven.sample;

        let k = clusters as f64;
        let products: f64 = views.iter().map(|view| view.features as f64 * k).sum();
        let request = NUMBER * (products + k);
        let merged = NUMBER * (products + k + views.len() as f64 * (k * k + 1.0));
        let reply = merged * ranges.iter().map(|range| subtrees(range, instances)).max().unwrap_or(0) as f64;
        let arriving = reply * ranges.len().min(FAN_IN) as f64;
        Self {
            workers: ranges.len(),
            threads,
            instances: most,
            worker_bytes: there.worker_bytes(&own) + COPIES * (request + reply),
            driver_bytes: here.driver_bytes(views) + COPIES * (request + arriving),
            results_bytes: instances as f64 * (NUMBER * k + RESULT),
            request,
            reply,
            seconds: operations / (threads as f64 * rate()),
        }
    }
}

impl Shape {
    /// A share of the work.
    fn part(self, share: f64) -> Self {
        let part = |count: usize| (count as f64 * share).ceil() as usize;
        Self { present: part(self.present), entries: part(self.entries), ..self }
    }
}

impl Work {
    /// Bytes of a worker, without messages.
    fn worker_bytes(&self, views: &[Shape]) -> f64 {
        let Self { n, k, held, .. } = *self;
        // V, and at the end a second copy as the result, which outlives the rows.
        let mut bytes = PROGRAM + n * (2.0 * NUMBER * k + OUTCOME);
        for view in views {
            let (d, value) = (view.features as f64, view.value as f64);
            // Sums of a leaf, of the leaves before it, and of threads; U as the products need it.
            bytes += view.bytes() + d * k * (2.0 * NUMBER + value * (1.0 + held));
        }
        bytes
    }

    /// Bytes of the driving process, without messages.
    fn driver_bytes(&self, views: &[Shape]) -> f64 {
        let Self { n, k, sample, threads, .. } = *self;
        let (mut always, mut starting) = (PROGRAM + DRIVEN * n + 2.0 * NUMBER * sample * k, 0.0_f64);
        for view in views {
            let (d, value) = (view.features as f64, view.value as f64);
            let rows = sample.min(view.present as f64) * view.per_row() * value;
            // Bases, alignments, statistics and the working memory of the steps; presence; sampled rows, as read and as used.
            always += 64.0 * d * k + n / 8.0;
            starting = starting.max(2.0 * rows + self.start_bytes(d, value, threads));
        }
        always + starting
    }
}

/// The number of sums that a partition with these instances sends.
fn subtrees(range: &Range<usize>, instances: usize) -> usize {
    let Some(own) = Blocks::some(range.clone(), instances) else { return 0 };
    let mut sums = Forest::new(own.leaves());
    for leaf in 0..own.leaf_ranges().count() {
        sums.plant(0, own.first_leaf() + leaf, ());
    }
    sums.roots().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(n: usize, k: usize, workers: usize) -> Distributed {
        let view = Shape { present: n, features: 128, entries: 128 * n, value: 4, sparse: false };
        Distributed { seconds: 0.0, ..Distributed::new(n, &[view; 2], k, workers, 1) }
    }

    #[test]
    fn one_worker_has_all_rows_and_several_divide_them() {
        let n = 1 << 20;
        let (one, four) = (cost(n, 20, 1), cost(n, 20, 4));
        assert_eq!((one.workers, one.instances, four.workers, four.instances), (1, n, 4, n / 4));
        assert_eq!(one.request, 8.0 * f64::from(256 * 20 + 20));
        assert_eq!(one.reply, 8.0 * f64::from(256 * 20 + 20 + 2 * 401));
        assert_eq!((four.request, four.reply), (one.request, one.reply));
        assert!(four.worker_bytes < 0.3 * one.worker_bytes);
        // Three replies more arrive.
        let more = four.driver_bytes - one.driver_bytes - COPIES * 3.0 * one.reply;
        assert!(more.abs() < 1.0, "{more}");
    }

    #[test]
    fn workers_beyond_the_leaves_have_no_rows() {
        assert_eq!((cost(1000, 5, 8).workers, cost(1000, 5, 8).instances), (1, 1000));
        let billion = cost(1_000_000_000, 20, 256);
        assert_eq!(billion, cost(1_000_000_000, 20, 128));
        assert!(billion.workers <= 128 && billion.instances * billion.workers >= 1_000_000_000);
        assert_eq!(cost(0, 5, 3).instances, 0);
    }

    #[test]
    fn leaves_without_a_common_sum_are_sent_separately() {
        // Eight leaves: 0..2, 2..5 and 5..8.
        let (one, three) = (cost(8 * 16_384, 10, 1), cost(8 * 16_384, 10, 3));
        assert_eq!((three.workers, three.reply), (3, 2.0 * one.reply));
    }
}
