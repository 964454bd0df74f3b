//! A fitted model: its file, new instances, reconstruction, and progress and interruption of the fit.

use std::ops::ControlFlow;
use std::path::PathBuf;

use daimc::synthetic::Synthetic;
use daimc::{
    Daimc, Fit, Ids, Iteration, Matrix, Model, Neighbours, Outcome, Preset, Scale, Solver, View, Views,
    metrics, simulate,
};

/// Two dense views and a sparse one of the same clusters, each with a third of the instances missing.
fn incomplete(data: &Synthetic, seed: u64) -> Views<'static> {
    let n = data.truth().len();
    let present = simulate::missing(n, &[0.3; 3], seed).unwrap();
    let views = vec![
        data.dense::<f64>("a", 12).unwrap(),
        data.dense::<f32>("b", 20).unwrap(),
        data.sparse::<f64>("c", 60, 0.1).unwrap(),
    ];
    let masked = views.into_iter().zip(&present).map(|(view, present)| view.mask(present).unwrap());
    Views::new(masked.collect()).unwrap()
}

fn easy(instances: usize) -> Synthetic {
    Synthetic::new(instances, 4).noise(0.5).seed(11)
}

/// A file of this test, deleted at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("daimc-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The rows of a dense view, some of them.
fn rows_of(values: &[f64], features: usize, instances: impl Iterator<Item = usize>) -> Vec<f64> {
    instances.flat_map(|i| values[i * features..(i + 1) * features].to_vec()).collect()
}

/// Rows around known centres, `features` of them, in units that differ by feature.
fn planted(truth: &[usize], features: usize, seed: u64, unit: impl Fn(usize, f64) -> f64) -> Vec<f64> {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let clusters = truth.iter().max().unwrap() + 1;
    let centres: Vec<f64> = (0..clusters * features).map(|_| rng.random_range(0.0..1.0)).collect();
    let row = |&cluster: &usize| centres[cluster * features..(cluster + 1) * features].to_vec();
    let centres = truth.iter().flat_map(row);
    centres.enumerate().map(|(at, x)| unit(at % features, x + rng.random_range(-0.05..0.05))).collect()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(x, y)| f(x - ma, y - mb)).sum::<f64>();
    sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
}

/// Asserts that two matrices agree to a share of the largest entry.
#[track_caller]
fn assert_close(a: &Matrix, b: &Matrix, tolerance: f64) {
    assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()));
    let largest = b.values().iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    for (x, y) in a.values().iter().zip(b.values()) {
        assert!((x - y).abs() <= tolerance * largest, "{x} and {y}, of at most {largest}");
    }
}

mod file;
mod filled_in;
mod fit;
mod new_instances;

#[test]
fn clusters_are_numbered_by_size_in_all_results_of_a_fit() {
    let data = Synthetic::new(300, 3).noise(0.5).seed(4);
    // The last class is the largest, the first the smallest.
    let keep: Vec<usize> = (0..300).filter(|&i| i % 6 < 1 + 2 * data.truth()[i]).collect();
    let values = |d: usize| {
        let mut buffer = daimc::source::Buffer::default();
        let views = Views::new(vec![data.dense::<f64>("x", d).unwrap()]).unwrap();
        daimc::Source::read(&views, 0, 0..300, &mut buffer).unwrap();
        keep.iter().flat_map(|i| buffer.f64[i * d..(i + 1) * d].to_vec()).collect::<Vec<f64>>()
    };
    let views = ["a", "b"].iter().zip([8, 12]).map(|(name, d)| View::dense(*name, d, values(d)).unwrap());
    let views = Views::new(views.collect()).unwrap();
    for (neighbours, runs) in [(Neighbours::Off, 1), (Neighbours::Auto, 1), (Neighbours::Off, 3)] {
        let fit = Daimc::new(3).neighbours(neighbours).runs(runs).fit(&views).unwrap();
        let mut sizes = [0; 3];
        fit.labels.iter().for_each(|&label| sizes[label] += 1);
        assert_eq!(fit.model.sizes, sizes);
        assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] > sizes[2], "{sizes:?}");
        let placed = fit.model.predict(&views).unwrap();
        let same = placed.iter().zip(&fit.labels).filter(|(a, b)| a == b).count();
        assert!(same as f64 > 0.95 * keep.len() as f64, "{same} of {}", keep.len());
        for (k, mean) in (0..3).map(|k| (k, fit.labels.iter().position(|&label| label == k).unwrap())) {
            let row = fit.latent.row(mean);
            let nearest = (0..3).max_by(|&a, &b| {
                let along = |c: usize| (0..3).map(|l| row[l] * fit.model.centres[(l, c)]).sum::<f64>();
                along(a).total_cmp(&along(b))
            });
            assert_eq!(nearest, Some(k));
        }
    }
}
