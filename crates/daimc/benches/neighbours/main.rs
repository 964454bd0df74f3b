//! Neighbour search: time, memory and recall.
//!
//! ```text
//! cargo bench -p daimc --features digit --bench neighbours -- search ROWS.f32 FEATURES THREADS OUT.u32
//! cargo bench -p daimc --features digit --bench neighbours -- fit INSTANCES NEIGHBOURS THREADS [f32|f64] [CLUSTERS]
//! ```
//!
//! The first searches for the neighbours of rows in a file: `compare.py` in this directory creates the rows, runs it,
//! and runs pynndescent on the same rows with the same number of threads. The second fits 20 clusters to two views of
//! 128 features in single precision (or as given), whose rows vary along ten directions about the means of the
//! clusters, and prints the time and the memory in addition to that of the data.

use std::io::Write;
use std::time::Instant;

use daimc::{Daimc, Scalar, Scale, Scaling, Stop, Values, View, Views, metrics};
use daimc_core::scaled_view::ScaledView;
use daimc_core::scan::Scan;
use daimc_graph::neighbours::nearest_in;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Neighbours of each row that the search finds.
const COUNT: usize = 10;
const CLUSTERS: usize = 20;
const FEATURES: usize = 128;
const DIRECTIONS: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["search", rows, features, threads, out] => search(rows, number(features), number(threads), out),
        ["fit", instances, neighbours, threads, ref rest @ ..] => {
            let clusters = rest.get(1).map_or(CLUSTERS, |word| number(word));
            let (instances, threads) = (number(instances), number(threads));
            match rest.first() {
                None | Some(&"f32") => fit::<f32>(instances, clusters, neighbours, threads),
                Some(_) => fit::<f64>(instances, clusters, neighbours, threads),
            }
        }
        _ => println!("see the first lines of crates/daimc/benches/neighbours/main.rs"),
    }
}

fn number(word: &str) -> usize {
    word.parse().expect("a number")
}

fn search(rows: &str, features: usize, threads: usize, out: &str) {
    let bytes = std::fs::read(rows).expect("the rows can be read");
    let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let views = Views::new(vec![View::dense("rows", features, values).unwrap()]).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let begun = Instant::now();
    let found = pool.install(|| {
        let scan = Scan::new(&views, &Stop::default());
        let scaled_view = ScaledView::new(&scan, 0, Scaling::fit(&scan, 0, Scale::None)?)?;
        nearest_in(&scan, 0, &scaled_view, COUNT, 0)
    });
    let (found, seconds) = (found.unwrap(), begun.elapsed().as_secs_f64());
    println!("{{\"seconds\": {seconds:.3}, \"recall\": {}}}", found.recall().unwrap_or(1.0));
    let mut out = std::io::BufWriter::new(std::fs::File::create(out).expect("the output can be written"));
    for instance in 0..views.instances() {
        let near = found.of(instance).map(|(other, _)| other as u32).chain(std::iter::repeat(u32::MAX));
        near.take(COUNT).for_each(|other| out.write_all(&other.to_le_bytes()).unwrap());
    }
}

fn view<T: Scalar + From<f32>>(name: &str, instances: usize, clusters: usize, seed: u64) -> View<'static>
where
    Vec<T>: Values<'static>,
{
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut random = |count: usize, scale: f32| -> Vec<f32> {
        (0..count).map(|_| rng.random_range(-scale..scale)).collect()
    };
    let (means, directions) = (random(clusters * FEATURES, 1.0), random(DIRECTIONS * FEATURES, 1.0));
    let mut values = vec![T::from(0.0); instances * FEATURES];
    values.par_chunks_mut(FEATURES).enumerate().for_each(|(i, values)| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(i as u64 + 1);
        let mut row = means[i % clusters * FEATURES..][..FEATURES].to_vec();
        for direction in directions.chunks(FEATURES) {
            let along = rng.random_range(-1.0..1.0_f32);
            row.iter_mut().zip(direction).for_each(|(x, u)| *x += along * u);
        }
        row.iter_mut().for_each(|x| *x += rng.random_range(-0.1..0.1_f32));
        values.iter_mut().zip(row).for_each(|(value, x)| *value = T::from(x));
    });
    View::dense(name, FEATURES, values).unwrap()
}

fn fit<T: Scalar + From<f32>>(instances: usize, clusters: usize, neighbours: &str, threads: usize)
where
    Vec<T>: Values<'static>,
{
    let of = |name, seed| view::<T>(name, instances, clusters, seed);
    let views = Views::new(vec![of("a", 1), of("b", 2)]).unwrap();
    let truth: Vec<usize> = (0..instances).map(|i| i % clusters).collect();
    let bytes = (instances * 2 * FEATURES * size_of::<T>()) as f64;
    // Resets the peak memory, where the system allows it, so that generating the rows does not count.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let begun = Instant::now();
    let neighbours = neighbours.parse().expect("a way to use neighbours");
    let fitted = Daimc::new(clusters).neighbours(neighbours).threads(threads).fit(&views).unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    let peak = peak().unwrap_or(f64::NAN);
    println!(
        "| {instances} | {} bits, K = {clusters} | {neighbours} | {threads} threads | {seconds:.1} s | {:.2} × the data, {:.0} B an instance beyond | AC {:.3} | {} |",
        8 * size_of::<T>(),
        peak / bytes,
        (peak - bytes) / instances as f64,
        metrics::accuracy(&truth, &fitted.labels).unwrap(),
        fitted.neighbours.reason
    );
}

/// The peak memory, if the system reports it.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(1024.0 * peak.trim().trim_end_matches(" kB").parse::<f64>().ok()?)
}
