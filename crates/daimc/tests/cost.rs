//! The estimated cost of a fit compared with the memory that its allocations take, and with its processor time. Neither
//! depends much on other work of the machine. `cargo test -p daimc --test cost -- --nocapture` prints both.

use std::fs;

use daimc::estimate::{Cost, Estimate, Shape};
use daimc::synthetic::Synthetic;
use daimc::{Daimc, Neighbours, Source, View, Views};
use peak_alloc::PeakAlloc;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const THREADS: usize = 2;

/// Bytes that a fit of any size may take, such as scratch memory of the threads.
const FIXED: f64 = 25e6;

/// The precision of a difference of two processor times, in seconds.
const TICK: f64 = 0.02;

/// The number of iterations that estimates assume.
const ITERATIONS: usize = 25;

/// Dense clusters in single precision, in views with these numbers of features.
fn dense(n: usize, features: &[usize], clusters: usize) -> Views<'static> {
    let data = Synthetic::new(n, clusters).seed(1);
    let view = |d: &usize| data.dense::<f32>(&format!("v{d}"), *d).unwrap();
    Views::new(features.iter().map(view).collect()).unwrap()
}

/// Counts, half of them in features of the cluster.
fn sparse(n: u32, features: &[u32], per_row: usize, clusters: u32) -> Views<'static> {
    let view = |&d: &u32| {
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(d));
        let mut row = |i: u32| {
            let own = |at: usize| if at.is_multiple_of(2) { (clusters, i % clusters) } else { (1, 0) };
            let mut drawn = |(step, first): (u32, u32)| rng.random_range(0..d / step) * step + first;
            let mut columns: Vec<u32> = (0..per_row).map(|at| drawn(own(at))).collect();
            columns.sort_unstable();
            columns.dedup();
            let row: Vec<(u32, f32)> =
                columns.into_iter().map(|column| (column, f32::from(rng.random_range(1..4_u8)))).collect();
            (i, row)
        };
        View::from_sparse_rows(format!("t{d}"), d as usize, (0..n).map(&mut row)).unwrap()
    };
    Views::new(features.iter().map(view).collect()).unwrap()
}

/// The time of this process on all processors, in seconds, if the system reports it.
fn processor_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    Some((fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?) / 100.0)
}

/// Compares a fit with its estimate.
///
/// The memory is at most 1.3 times the estimate, and at least a third of it. The time is that of the assumed number of
/// iterations. Since other stages depend on the data, and processors on other work of the machine, it is only of the order of
/// the estimate: at most ten times as long, and at least a tenth.
fn compare(views: &Views<'_>, clusters: usize, neighbours: Neighbours) {
    let shapes: Vec<Shape> = views.schema().views().map(Shape::from).collect();
    let estimate = Estimate::new(views.instances(), &shapes, clusters, THREADS);
    let Cost { mut bytes, mut seconds } = estimate.fit;
    if neighbours == Neighbours::Auto {
        assert_eq!(estimate.used, Neighbours::Auto);
        bytes += estimate.neighbours.bytes;
        seconds += estimate.neighbours.seconds;
    }
    seconds *= THREADS as f64;

    let fit = Daimc::new(clusters).neighbours(neighbours).assess(false).threads(THREADS);
    let fit = fit.max_iterations(ITERATIONS).tolerance(0.0);
    let (before, begun) = (MEMORY.current_usage(), processor_time());
    MEMORY.reset_peak_usage();
    fit.fit(views).unwrap();
    let taken = (MEMORY.peak_usage() - before) as f64;
    let features: Vec<usize> = shapes.iter().map(|shape| shape.features).collect();
    let case = format!("{} × {features:?}, K = {clusters}, {neighbours}", views.instances());
    println!("{case}: {:.1} MB, estimated {:.1}", taken / 1e6, bytes / 1e6);
    assert!(taken <= 1.3 * bytes + FIXED, "{case}: {taken:e} bytes, estimated {bytes:e}");
    assert!(bytes <= 3.0 * taken, "{case}: {taken:e} bytes, estimated {bytes:e}");
    if let Some((begun, ended)) = begun.zip(processor_time()) {
        let time = ended - begun;
        println!("{case}: {time:.2} s, estimated {seconds:.2}");
        let (least, most) = (time - TICK, time + TICK);
        assert!(least <= 10.0 * seconds && seconds <= 10.0 * most, "{case}: {time} s, estimated {seconds}");
    }
}

#[test]
fn fits_take_the_estimated_memory_and_the_order_of_the_estimated_time() {
    for (views, clusters) in [
        (dense(2000, &[216, 76, 64, 240, 47], 10), 10),
        (sparse(169, &[3560, 3631, 3068], 200, 6), 6),
        (dense(20_000, &[100], 10), 10),
        (sparse(3000, &[50_000], 200, 10), 10),
        (dense(3000, &[500, 499], 10), 10),
        (dense(2000, &[60], 30), 30),
    ] {
        compare(&views, clusters, Neighbours::Off);
        compare(&views, clusters, Neighbours::Auto);
    }
}
