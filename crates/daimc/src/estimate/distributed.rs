//! The cost of a fit distributed over workers (Dask, MPI or another engine).
//!
//! In an iteration every worker receives the factors (`U` of each view, Σ d × K numbers) and sweeps its own rows. The statistics
//! (`C`, of the same size as the factors, and `S`, K × K for each view) are merged on their way back. The traffic does not depend
//! on the number of instances, and V is not sent.
//!
//! Rows are divided by [`aligned`](daimc_core::aligned) into whole leaves, at most 128; further workers have no rows. The time of an
//! iteration is that of the worker with the most rows.

use std::ops::Range;

use super::{ITERATIONS, PROGRAM, Shape, Work, rate};
use crate::options::{Options, Preset};
use daimc_core::blocks::Blocks;
use daimc_core::forest::Forest;

/// Bytes that the network carries between two machines in a second: 10 Gbit/s, less the overhead of protocols.
pub const BANDWIDTH: f64 = 1e9;

/// Seconds from one process to the next before the first byte arrives: the latency of Dask on one machine. A network adds a tenth
/// of a millisecond, and MPI is not slower.
pub const LATENCY: f64 = 1.5e-3;

/// Seconds that a request to one worker occupies the scheduler, for which all workers wait.
pub const TASK: f64 = 1e-3;

/// Replies that are merged in one task, as with Dask; the last ones are merged in the driving process.
const FAN_IN: usize = 8;

/// Requests of a fit in addition to its iterations: for all views, and for each.
const REQUESTS: f64 = 25.0;
const REQUESTS_OF_VIEW: f64 = 7.0;

/// Bytes of a number in a message, and in V.
const NUMBER: f64 = 8.0;

/// Copies of a message in the memory of its sender or receiver: as bytes, in the engine, and as matrices.
const COPIES: f64 = 4.0;

/// Bytes of an instance in addition to its rows: on its worker the cluster and its confidence, once as they are computed and once
/// as they are returned; in the driving process for a short time.
const OUTCOME: f64 = 32.0;
const DRIVEN: f64 = 12.0;

/// The cost of a distributed fit with the default options, without neighbourhoods. The cost that these add in the driving process
/// is not included.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Distributed {
    /// Workers with rows.
    pub workers: usize,
    /// Threads of each worker and of the driving process.
    pub threads: usize,
    /// Instances of the worker with the most.
    pub instances: usize,
    /// The work of that worker in one iteration.
    pub sweep: SweepCost,
    /// The traffic of one iteration.
    pub traffic: Traffic,
    /// The time of one iteration.
    pub iteration: IterationTime,
    /// Expected iterations.
    pub iterations: f64,
    /// Bytes of memory of the worker with the most instances: rows, V and sums. The memory of Python and of the engine without
    /// rows is not included.
    pub worker_bytes: f64,
    /// Bytes of memory of the driving process, without Python and the engine.
    pub driver_bytes: f64,
    /// The time of the fit.
    pub seconds: f64,
}

/// The work of one worker in one iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SweepCost {
    /// Bytes read from or written to memory: the rows once, and V twice.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
}

/// Bytes that are sent in one iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Traffic {
    /// The request with the factors, which every worker receives.
    pub request: f64,
    /// The statistics in the reply of a worker, at most. Sums of leaves that cannot be merged yet are sent separately.
    pub reply: f64,
    /// The merged reply of all workers.
    pub merged: f64,
    /// The replies that arrive in the driving process, which merges them.
    pub arriving: f64,
    /// The total between processes.
    pub network: f64,
}

/// The seconds of one iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct IterationTime {
    /// The sweep of the worker with the most rows.
    pub sweep: f64,
    /// The U and B steps, in the driving process.
    pub solve: f64,
    /// The transfer of the requests, and the transfer and merging of the replies.
    pub network: f64,
}

impl IterationTime {
    /// The sum.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.sweep + self.solve + self.network
    }
}

impl Distributed {
    /// The cost of a fit with this number of clusters to views of these shapes on this number of workers, each with this number
    /// of threads, as fast as those of this machine.
    #[must_use]
    pub fn new(instances: usize, views: &[Shape], clusters: usize, workers: usize, threads: usize) -> Self {
        Self::at(rate(), instances, views, clusters, workers, threads)
    }

    /// With threads that do this many operations in a second.
    fn at(
        rate: f64,
        instances: usize,
        views: &[Shape],
        clusters: usize,
        workers: usize,
        threads: usize,
    ) -> Self {
        let ranges = Blocks::split(instances, workers);
        let most = ranges.iter().map(Range::len).max().unwrap_or(0);
        let share = most as f64 / instances.max(1) as f64;
        let own: Vec<Shape> = views.iter().map(|view| view.part(share)).collect();
        let passes = Options::new(clusters, Preset::Default).passes as f64;
        let (here, there) = (Work::new(instances, clusters, threads), Work::new(most, clusters, threads));
        let (driven, swept) = (here.operations(views, passes), there.operations(&own, passes));
        let (traffic, network) = travel(instances, &ranges, views, clusters);
        let seconds = |operations: f64| operations / (threads as f64 * rate);
        let iteration = IterationTime { sweep: seconds(swept.sweep), solve: seconds(driven.solve), network };
        let requests = REQUESTS + REQUESTS_OF_VIEW * views.len() as f64;
        Self {
            workers: ranges.len(),
            threads,
            instances: most,
            sweep: there.sweep_cost(&own, passes),
            traffic,
            iteration,
            iterations: ITERATIONS,
            worker_bytes: there.worker_bytes(&own, traffic),
            driver_bytes: here.driver_bytes(views, traffic),
            seconds: ITERATIONS * iteration.total()
                + seconds(swept.rows + driven.sample)
                + requests * network,
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
    fn sweep_cost(&self, views: &[Shape], passes: f64) -> SweepCost {
        let Self { n, k, .. } = *self;
        let present: f64 = views.iter().map(|view| view.present as f64).sum();
        let entries: f64 = views.iter().map(|view| view.entries as f64).sum();
        SweepCost {
            bytes: views.iter().map(Shape::bytes).sum::<f64>() + 2.0 * NUMBER * n * k,
            // Products of rows with U and of rows with V; the passes over V; S, which is symmetric.
            flops: 4.0 * entries * k + 2.0 * passes * n * k * k + present * k * k,
        }
    }

    fn worker_bytes(&self, views: &[Shape], traffic: Traffic) -> f64 {
        let Self { n, k, held, .. } = *self;
        let mut bytes = COPIES * (traffic.request + traffic.reply);
        for view in views {
            let (d, value) = (view.features as f64, view.value as f64);
            // Sums of a leaf, of the leaves before it, and of threads; U as the products need it.
            bytes += view.bytes() + d * k * (2.0 * NUMBER + value * (1.0 + held));
        }
        // V, and at the end a second copy as the result, which outlives the rows.
        PROGRAM + bytes + n * (2.0 * NUMBER * k + OUTCOME)
    }

    fn driver_bytes(&self, views: &[Shape], traffic: Traffic) -> f64 {
        let Self { n, k, sample, threads, .. } = *self;
        let (mut always, mut starting) = (COPIES * (traffic.request + traffic.arriving), 0.0_f64);
        for view in views {
            let (d, value) = (view.features as f64, view.value as f64);
            let rows = sample.min(view.present as f64) * view.per_row() * value;
            // Bases, alignments, statistics and the working memory of the steps; presence; sampled rows, as read and as used.
            always += 64.0 * d * k + n / 8.0;
            starting = starting.max(2.0 * rows + self.start_bytes(d, value, threads));
        }
        PROGRAM + always + starting + DRIVEN * n + 2.0 * NUMBER * sample * k
    }
}

/// The traffic of an iteration and its time. Partial sums are merged without their contents: only their number matters.
fn travel(instances: usize, ranges: &[Range<usize>], views: &[Shape], clusters: usize) -> (Traffic, f64) {
    let k = clusters as f64;
    let products: f64 = views.iter().map(|view| view.features as f64 * k).sum();
    let request = NUMBER * (products + k);
    let merged = NUMBER * (products + k + views.len() as f64 * (k * k + 1.0));
    let size = |share: &Forest<()>| merged * share.roots().count() as f64;

    let mut shares: Vec<Forest<()>> = ranges.iter().filter_map(|range| share(range, instances)).collect();
    let workers = shares.len().max(1);
    let reply = shares.iter().map(size).fold(0.0, f64::max);
    // Each process that has the request passes it on.
    let hops = 1 + workers.next_power_of_two().ilog2();
    let mut seconds = TASK * workers as f64 + f64::from(hops) * (LATENCY + request / BANDWIDTH);
    let mut network = workers as f64 * request;
    while shares.len() > FAN_IN {
        let groups = shares.chunks(FAN_IN);
        // Replies meet at the process of the first of them.
        let come: Vec<f64> = groups.clone().map(|group| group[1..].iter().map(size).sum()).collect();
        network += come.iter().sum::<f64>();
        seconds += LATENCY + come.iter().copied().fold(0.0, f64::max) / BANDWIDTH;
        shares = groups.map(together).collect();
    }
    let arriving = shares.iter().map(size).sum::<f64>();
    network += arriving;
    seconds += LATENCY + arriving / BANDWIDTH;
    (Traffic { request, reply, merged, arriving, network }, seconds)
}

/// The forest of a partition with these instances.
fn share(range: &Range<usize>, instances: usize) -> Option<Forest<()>> {
    let own = Blocks::some(range.clone(), instances)?;
    let mut share = Forest::new(own.leaves());
    for leaf in 0..own.leaf_ranges().count() {
        share.plant(0, own.first_leaf() + leaf, ());
    }
    Some(share)
}

fn together(shares: &[Forest<()>]) -> Forest<()> {
    let mut all = shares[0].clone();
    for share in &shares[1..] {
        all.absorb(share.clone());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two complete views of 128 features in single precision.
    fn twins(n: usize) -> [Shape; 2] {
        [Shape { present: n, features: 128, entries: 128 * n, value: 4, sparse: false }; 2]
    }

    fn cost(n: usize, k: usize, workers: usize) -> Distributed {
        Distributed::at(2e10, n, &twins(n), k, workers, 1)
    }

    #[test]
    fn one_worker_has_all_rows_and_several_divide_them() {
        let n = 1 << 20;
        let one = cost(n, 20, 1);
        assert_eq!((one.workers, one.instances), (1, n));
        // Rows of 256 values of four bytes, and V with 20 of eight bytes, which is read and written.
        assert_eq!(one.sweep.bytes, (1024.0 + 320.0) * n as f64);
        assert_eq!(one.traffic.request, 8.0 * f64::from(256 * 20 + 20));
        assert_eq!(one.traffic.reply, 8.0 * f64::from(256 * 20 + 20 + 2 * 401));
        assert_eq!(one.traffic.network, one.traffic.request + one.traffic.reply);
        let four = cost(n, 20, 4);
        assert_eq!((four.workers, four.instances), (4, n / 4));
        assert_eq!(four.sweep.flops, one.sweep.flops / 4.0);
        assert_eq!(four.traffic.network, 4.0 * (four.traffic.request + four.traffic.reply));
        assert!(four.worker_bytes < 0.3 * one.worker_bytes);
        // Three replies more arrive.
        let more = four.driver_bytes - one.driver_bytes - COPIES * 3.0 * one.traffic.reply;
        assert!(more.abs() < 1.0, "{more}");
        assert!(four.iteration.sweep < 0.26 * one.iteration.sweep);
        assert!(
            four.iteration.network > one.iteration.network && four.iteration.solve == one.iteration.solve
        );
    }

    #[test]
    fn more_of_anything_takes_more() {
        let all = cost(1 << 20, 10, 4);
        for more in [cost(1 << 21, 10, 4), cost(1 << 20, 20, 4)] {
            assert!(more.worker_bytes > all.worker_bytes && more.driver_bytes > all.driver_bytes);
            assert!(more.sweep.flops > all.sweep.flops && more.seconds > all.seconds);
        }
        // The traffic depends on the sizes of matrices alone.
        assert_eq!(cost(1 << 21, 10, 4).traffic, all.traffic);
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
        let three = cost(8 * 16_384, 10, 3);
        assert_eq!(three.workers, 3);
        assert_eq!(three.traffic.reply, 2.0 * three.traffic.merged);
        assert_eq!(three.traffic.network, 3.0 * three.traffic.request + 5.0 * three.traffic.merged);
    }

    /// A core like those that the documentation measures, in operations of a dense product per second.
    const CORE: f64 = 1e11;

    #[test]
    #[ignore = "prints the table of docs/scale.md"]
    fn carried_to_a_billion() {
        let n = 1_000_000_000;
        let wide = [Shape { present: n, features: 1024, entries: 1024 * n, value: 4, sparse: false }];
        for (name, views) in [("{128, 128}", &twins(n)[..]), ("1024", &wide)] {
            for (workers, threads) in [(16, 16), (64, 16), (120, 16), (256, 16)] {
                let own = Distributed::at(CORE, n, views, 20, workers, threads);
                let Distributed { traffic, iteration, .. } = own;
                println!(
                    "| {name} | {workers} | {} | {:.1} M | {:.1} GB | {:.1} GB | {:.0} kB, {:.0} kB | {:.1} MB | \
                     {:.2} s | {:.3} s | {:.3} s | {:.0} s |",
                    own.workers,
                    own.instances as f64 / 1e6,
                    own.worker_bytes / 1e9,
                    own.driver_bytes / 1e9,
                    traffic.request / 1e3,
                    traffic.reply / 1e3,
                    traffic.network / 1e6,
                    iteration.sweep,
                    iteration.solve,
                    iteration.network,
                    own.seconds,
                );
            }
        }
    }
}
