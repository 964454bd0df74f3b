//! The estimated and the measured cost of fits. It takes minutes and an idle machine:
//! `cargo test --release -p daimc --test fits cost -- --ignored --nocapture --test-threads 1`.

use std::fs;

use daimc::estimate::{Estimate, Shape};
use daimc::{Daimc, Neighbours, View, Views};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Dense clusters in single precision.
fn dense(name: &str, n: usize, d: usize, clusters: usize) -> (View<'static>, Shape) {
    let mut rng = ChaCha8Rng::seed_from_u64(d as u64);
    let means: Vec<f32> = (0..clusters * d).map(|_| rng.random_range(-1.0..1.0)).collect();
    let value = |at: usize, rng: &mut ChaCha8Rng| {
        let noise: f32 = (0..4).map(|_| rng.random_range(-1.0..1.0_f32)).sum();
        means[at / d % clusters * d + at % d] + noise
    };
    let values: Vec<f32> = (0..n * d).map(|at| value(at, &mut rng)).collect();
    let shape = Shape { present: n, features: d, entries: n * d, value: 4, sparse: false };
    (View::dense(name, d, values).unwrap(), shape)
}

/// Counts, a part of them in features of the cluster's own.
fn sparse(name: &str, n: usize, d: u32, per_row: usize, clusters: u32) -> (View<'static>, Shape) {
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(d));
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::<f32>::new());
    for i in 0..n {
        let own = i as u32 % clusters;
        let mut row: Vec<u32> = (0..per_row)
            .map(|at| match at % 2 {
                0 => rng.random_range(0..d / clusters) * clusters + own,
                _ => rng.random_range(0..d),
            })
            .collect();
        row.sort_unstable();
        row.dedup();
        values.extend(row.iter().map(|_| f32::from(rng.random_range(1..4_u8))));
        columns.extend(row);
        offsets.push(columns.len());
    }
    let shape = Shape { present: n, features: d as usize, entries: values.len(), value: 4, sparse: true };
    (View::sparse(name, d as usize, offsets, columns, values).unwrap(), shape)
}

/// The peak memory so far and the time on all processors, if the system reports them.
fn taken() -> Option<(f64, f64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak: f64 = peak.trim().trim_end_matches(" kB").parse().ok()?;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    let ticks: f64 = fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?;
    Some((1024.0 * peak, ticks / 100.0))
}

fn compare(case: &str, clusters: usize, views: Vec<(View<'static>, Shape)>) {
    let threads = 2;
    let (views, shapes): (Vec<_>, Vec<_>) = views.into_iter().unzip();
    let views = Views::new(views).unwrap();
    let n = views.instances();
    let Estimate { data, fit, neighbours, used, .. } = Estimate::new(n, &shapes, clusters, threads);
    let with = if used == Neighbours::Off { 0.0 } else { 1.0 };
    let estimated = (data + fit.bytes + with * neighbours.bytes, fit.seconds + with * neighbours.seconds);
    // Resets the peak, if the system allows it.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let Some((_, before)) = taken() else { return };
    let fitted = Daimc::new(clusters).threads(threads).fit(&views).unwrap();
    let Some((bytes, after)) = taken() else { return };
    let seconds = (after - before) / threads as f64;
    println!(
        "{case}: estimated {:.0} MB, measured {:.0} ({:.2}); estimated {:.2} s, measured {:.2} ({:.2}) on {threads} threads; {} iterations, {:?}",
        estimated.0 / 1e6,
        bytes / 1e6,
        estimated.0 / bytes,
        estimated.1,
        seconds,
        estimated.1 / seconds,
        fitted.iterations(),
        fitted.timings
    );
}

#[test]
#[ignore = "takes minutes, and needs an idle machine"]
fn estimates_are_near_what_fits_take() {
    let sizes = [216, 76, 64, 240, 47];
    let several = sizes.map(|d| dense(&format!("v{d}"), 2000, d, 10)).into_iter().collect();
    compare("2000 × 5 views, K = 10", 10, several);
    let texts = [3560, 3631, 3068].map(|d| sparse(&format!("t{d}"), 169, d, 200, 6)).into_iter().collect();
    compare("169 × 3 texts, K = 6", 6, texts);
    compare("100 000 × 100, K = 10", 10, vec![dense("x", 100_000, 100, 10)]);
    compare("5000 × 200 000 sparse, K = 20", 20, vec![sparse("x", 5000, 200_000, 200, 20)]);
    compare("20 000 × 500 × 2, K = 10", 10, vec![dense("x", 20_000, 500, 10), dense("y", 20_000, 499, 10)]);
    compare("20 000 × 200, K = 50", 50, vec![dense("x", 20_000, 200, 50)]);
}
