//! Where rows come from, how they are laid out, in what order they stand and how many threads read them does not
//! change a model: mostly not one bit of it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use daimc::source::{Block, Buffer, Csr, Index, MISSING, Rows, Source};
use daimc::synthetic::Synthetic;
use daimc::{
    Daimc, Error, Initialisation, Matrix, Model, Preset, Scale, Solver, View, Views, metrics, simulate,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Values around the centres of clusters, row by row.
fn around(truth: &[usize], features: usize, noise: f64, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let clusters = truth.iter().max().unwrap() + 1;
    let centres: Vec<f64> = (0..clusters * features).map(|_| rng.random_range(-1.0..1.0)).collect();
    let row = |&cluster: &usize| centres[cluster * features..(cluster + 1) * features].to_vec();
    truth.iter().flat_map(row).map(|x| x + noise * rng.random_range(-1.0..1.0)).collect()
}

/// The same, with most values zero, each cluster having most of its values in features of its own.
fn mostly_zero(truth: &[usize], features: usize, negative: bool, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let clusters = truth.iter().max().unwrap() + 1;
    let value = |at: usize| {
        let own = at % features % clusters == truth[at / features];
        let stored = rng.random::<f64>() < if own { 0.6 } else { 0.04 };
        let size = f64::from(rng.random_range(1..6_u8));
        let sign = if negative && rng.random::<f64>() < 0.2 { -1.0 } else { 1.0 };
        if stored { sign * size } else { 0.0 }
    };
    (0..truth.len() * features).map(value).collect()
}

fn compressed(features: usize, values: &[f64]) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
    let (mut offsets, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks(features) {
        for (column, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
            columns.push(column);
            stored.push(value);
        }
        offsets.push(columns.len());
    }
    (offsets, columns, stored)
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

fn sparse(name: &str, features: usize, values: &[f64]) -> View<'static> {
    let (offsets, columns, stored) = compressed(features, values);
    View::sparse(name, features, offsets, columns, stored).unwrap()
}

fn sparse_f32(name: &str, features: usize, values: &[f64]) -> View<'static> {
    let (offsets, columns, stored) = compressed(features, values);
    View::sparse(name, features, offsets, columns, narrow(&stored)).unwrap()
}

/// A V to start from: nearly one cluster each, none of the entries zero.
fn start(truth: &[usize], latent: usize, seed: u64) -> Matrix {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Matrix::from_fn(truth.len(), latent, |i, k| {
        rng.random_range(0.1..0.3) + f64::from(u8::from(truth[i] % latent == k))
    })
}

fn order(n: usize, seed: u64) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, rng.random_range(0..=i));
    }
    order
}

/// The rows of a matrix in another order.
fn reordered(values: &[f64], features: usize, order: &[usize]) -> Vec<f64> {
    order.iter().flat_map(|&i| values[i * features..(i + 1) * features].to_vec()).collect()
}

/// Asserts that two models are the same to the last bit, timings and names of instances aside.
#[track_caller]
fn assert_same(a: &Model, b: &Model) {
    assert_eq!(a.labels, b.labels);
    let bits = |matrix: &Matrix| matrix.values().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(bits(&a.latent) == bits(&b.latent), "V differs");
    for (a, b) in a.views.iter().zip(&b.views) {
        assert_eq!(a.scaling, b.scaling);
        assert!(bits(&a.basis) == bits(&b.basis), "U of view {} differs", a.name);
        assert!(bits(&a.alignment) == bits(&b.alignment), "B of view {} differs", a.name);
    }
    assert_eq!((&a.history, &a.objective, &a.outcome), (&b.history, &b.objective, &b.outcome));
    assert_eq!((&a.confidence, &a.centres), (&b.confidence, &b.centres));
    assert_eq!(a.views.len(), b.views.len());
}

/// By how much two matrices differ, as a share of the largest entry.
fn difference(a: &Matrix, b: &Matrix) -> f64 {
    assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()));
    let largest = b.values().iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let pairs = a.values().iter().zip(b.values());
    pairs.map(|(x, y)| (x - y).abs() / largest).fold(0.0, f64::max)
}

fn go_on(_: &daimc::Iteration) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

// Rows on disk.

/// Two views on disk, one dense in `f64` and one sparse in `f32`; rows that are missing are not in the files.
struct OnDisk {
    folder: PathBuf,
    features: [usize; 2],
    /// Of each view, for each instance its row in the file.
    rows: [Vec<u32>; 2],
    /// Where the rows of the sparse view stand.
    offsets: Vec<usize>,
}

const VIEWS: [&str; 2] = ["dense", "sparse"];

impl OnDisk {
    fn new(name: &str, dense: (usize, &[f64]), sparse: (usize, &[f64]), present: &[Vec<bool>]) -> Self {
        let folder = std::env::temp_dir().join(format!("daimc-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let rows = [0, 1].map(|view: usize| {
            let mut next = 0;
            let number = |&here: &bool| {
                next += u32::from(here);
                if here { next - 1 } else { MISSING }
            };
            present[view].iter().map(number).collect()
        });
        let kept = |view: usize, (features, values): (usize, &[f64])| {
            let here: Vec<usize> = (0..present[view].len()).filter(|&i| present[view][i]).collect();
            reordered(values, features, &here)
        };
        let write = |name: &str, bytes: Vec<u8>| {
            File::create(folder.join(name)).unwrap().write_all(&bytes).unwrap();
        };
        write("dense", kept(0, dense).iter().flat_map(|value| value.to_le_bytes()).collect());
        let (offsets, columns, values) = compressed(sparse.0, &kept(1, sparse));
        write("columns", columns.iter().flat_map(|column| column.to_le_bytes()).collect());
        write("values", narrow(&values).iter().flat_map(|value| value.to_le_bytes()).collect());
        Self { folder, features: [dense.0, sparse.0], rows, offsets }
    }

    fn read(
        &self,
        name: &str,
        range: Range<usize>,
        width: usize,
        bytes: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        let mut file = File::open(self.folder.join(name))?;
        file.seek(SeekFrom::Start((range.start * width) as u64))?;
        bytes.clear();
        bytes.resize(range.len() * width, 0);
        file.read_exact(bytes)
    }

    /// Reads the rows of a file that hold these instances into the buffer.
    fn fill(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> std::io::Result<()> {
        let here = || self.rows[view][instances.clone()].iter().copied().filter(|&row| row != MISSING);
        let first = here().next().unwrap_or(0);
        let rows = first as usize..here().next_back().map_or(first, |last| last + 1) as usize;
        let index = self.rows[view][instances.clone()].iter();
        buffer.index.clear();
        buffer.index.extend(index.map(|&row| if row == MISSING { MISSING } else { row - first }));
        if view == 0 {
            let d = self.features[0];
            self.read("dense", rows.start * d..rows.end * d, 8, &mut buffer.bytes)?;
            let values = buffer.bytes.as_chunks().0;
            buffer.f64.clear();
            buffer.f64.extend(values.iter().map(|bytes| f64::from_le_bytes(*bytes)));
        } else {
            let offsets = &self.offsets[rows.start..=rows.end];
            let stored = offsets[0]..offsets[offsets.len() - 1];
            buffer.offsets.clear();
            buffer.offsets.extend(offsets.iter().map(|offset| offset - stored.start));
            self.read("columns", stored.clone(), 4, &mut buffer.bytes)?;
            buffer.columns.clear();
            buffer.columns.extend(buffer.bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)));
            self.read("values", stored, 4, &mut buffer.bytes)?;
            buffer.f32.clear();
            buffer.f32.extend(buffer.bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        }
        Ok(())
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Source for OnDisk {
    fn instances(&self) -> usize {
        self.rows[0].len()
    }

    fn views(&self) -> usize {
        2
    }

    fn name(&self, view: usize) -> &str {
        VIEWS[view]
    }

    fn features(&self, view: usize) -> usize {
        self.features[view]
    }

    fn is_present(&self, view: usize, instance: usize) -> bool {
        self.rows[view][instance] != MISSING
    }

    fn block<'b>(
        &'b self,
        view: usize,
        range: Range<usize>,
        buffer: &'b mut Buffer,
    ) -> daimc::Result<Block<'b>> {
        let (first, last) = (range.start, range.end - 1);
        self.fill(view, range, buffer).map_err(|source| Error::Read {
            view: self.name(view).into(),
            first,
            last,
            source: source.into(),
        })?;
        let Buffer { f32, f64, offsets, columns, index, .. } = buffer;
        let rows = if view == 0 {
            Rows::DenseF64(f64)
        } else {
            Rows::SparseF32(Csr { offsets, columns, values: f32 })
        };
        Ok(Block { rows, index: Index::Rows(index) })
    }
}

/// The same data on disk and in memory.
fn both(name: &str, n: usize) -> (OnDisk, Views<'static>) {
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let (dense, sparse) = (around(&truth, 7, 0.8, 1), mostly_zero(&truth, 30, true, 2));
    let present = simulate::missing(n, &[0.3, 0.4], 5).unwrap();
    let disk = OnDisk::new(name, (7, &dense), (30, &sparse), &present);
    let views = vec![
        View::dense("dense", 7, dense).unwrap().mask(&present[0]).unwrap(),
        sparse_f32("sparse", 30, &sparse).mask(&present[1]).unwrap(),
    ];
    (disk, Views::new(views).unwrap())
}

#[test]
fn rows_on_disk_give_the_model_of_rows_in_memory() {
    for n in [5, 130, 1000] {
        let (disk, views) = both(&format!("same-{n}"), n);
        for preset in [Preset::Default, Preset::Paper] {
            for scale in
                [Scale::Auto, Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScoreUnit, Scale::TfIdf]
            {
                let daimc = Daimc::new(4).preset(preset).scale(scale).max_iterations(6);
                assert_same(&daimc.fit_source(&disk, go_on).unwrap(), &daimc.fit(&views).unwrap());
            }
        }
    }
}

#[test]
fn rows_on_disk_give_the_model_of_rows_in_memory_where_k_means_looks_at_a_sample() {
    let (disk, views) = both("many", 6500);
    for preset in [Preset::Default, Preset::Paper] {
        for initialisation in [Initialisation::Aligned, Initialisation::Paper] {
            let daimc =
                Daimc::new(4).preset(preset).initialisation(initialisation).max_iterations(5).threads(3);
            let model = daimc.fit_source(&disk, go_on).unwrap();
            assert_same(&model, &daimc.fit(&views).unwrap());
            assert_eq!(model.labels.len(), 6500);
        }
    }
}

#[test]
fn a_model_from_disk_is_watched_and_cancelled_like_any_other() {
    let (disk, views) = both("cancelled", 300);
    let daimc = Daimc::new(4).tolerance(0.0);
    let stop = |iteration: &daimc::Iteration| {
        if iteration.number == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let model = daimc.fit_source(&disk, stop).unwrap();
    assert_eq!((model.outcome, model.iterations()), (daimc::Outcome::Cancelled, 3));
    assert_same(&model, &daimc.fit_with(&views, stop).unwrap());
}

#[test]
fn a_file_that_is_gone_is_an_error() {
    let (disk, _) = both("gone", 300);
    for (file, view) in [("values", "sparse"), ("dense", "dense")] {
        std::fs::remove_file(disk.folder.join(file)).unwrap();
        for threads in [1, 4] {
            let error = Daimc::new(4).threads(threads).fit_source(&disk, go_on).unwrap_err();
            assert!(matches!(&error, Error::Read { view: found, .. } if found == view), "{error:?}");
            assert!(error.to_string().contains(view), "{error}");
        }
    }
}

/// Fails at the read of this number and all that come after it.
struct Failing {
    views: Views<'static>,
    reads: AtomicUsize,
    fails_at: usize,
}

impl Source for Failing {
    fn instances(&self) -> usize {
        self.views.instances()
    }

    fn views(&self) -> usize {
        self.views.len()
    }

    fn name(&self, view: usize) -> &str {
        self.views.name(view)
    }

    fn features(&self, view: usize) -> usize {
        Source::features(&self.views, view)
    }

    fn is_present(&self, view: usize, instance: usize) -> bool {
        self.views.is_present(view, instance)
    }

    fn block<'b>(
        &'b self,
        view: usize,
        range: Range<usize>,
        buffer: &'b mut Buffer,
    ) -> daimc::Result<Block<'b>> {
        if self.reads.fetch_add(1, Ordering::SeqCst) >= self.fails_at {
            let (name, source) = (self.name(view).into(), "the cable was pulled".into());
            return Err(Error::Read { view: name, first: range.start, last: range.end - 1, source });
        }
        self.views.block(view, range, buffer)
    }
}

/// What `work` returns, which must be within a minute.
#[track_caller]
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(60)).expect("it hangs or has panicked")
}

#[test]
fn a_read_that_fails_at_any_moment_ends_the_fit_with_its_error() {
    for (n, preset, step) in [(700, Preset::Default, 1), (700, Preset::Paper, 1), (6000, Preset::Default, 37)]
    {
        let (_, views) = both(&format!("fails-{n}-{preset:?}"), n);
        let fit = move |threads: usize, fails_at: usize| {
            let source = Arc::new(Failing { views: views.clone(), reads: AtomicUsize::new(0), fails_at });
            let daimc = Daimc::new(3).preset(preset).threads(threads).max_iterations(2).restarts(2);
            let outcome = in_time({
                let source = Arc::clone(&source);
                move || daimc.fit_source(&*source, go_on).map(|_| ())
            });
            (outcome, source.reads.load(Ordering::SeqCst))
        };
        let (outcome, reads) = fit(1, usize::MAX);
        outcome.unwrap();
        for fails_at in (0..reads).step_by(step).chain([reads - 1]) {
            for threads in [1, 4] {
                let (outcome, _) = fit(threads, fails_at);
                let error = outcome.expect_err("a failed read must be reported");
                assert!(matches!(error, Error::Read { .. }), "{error:?}");
                let message = error.to_string();
                assert!(VIEWS.iter().any(|view| message.contains(view)), "{message}");
                assert!(message.contains("the cable was pulled"), "{message}");
            }
        }
    }
}

// Threads.

/// Views of the same clusters in several layouts.
fn layouts(n: usize, missing: bool) -> Vec<(&'static str, Views<'static>)> {
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.9, 1), around(&truth, 5, 0.9, 2));
    let (c, d) = (mostly_zero(&truth, 25, false, 3), mostly_zero(&truth, 33, true, 4));
    let rates = if missing { [0.3; 2] } else { [0.0; 2] };
    let present = simulate::missing(n, &rates, 5).unwrap();
    let views = |views: [View<'static>; 2]| {
        let masked = views.into_iter().zip(&present);
        let masked = masked.map(|(view, present)| if missing { view.mask(present).unwrap() } else { view });
        Views::new(masked.collect()).unwrap()
    };
    let dense = |name: &str, d: usize, values: &[f64]| View::dense(name, d, values.to_vec()).unwrap();
    let single = |name: &str, d: usize, values: &[f64]| View::dense(name, d, narrow(values)).unwrap();
    vec![
        ("dense f64", views([dense("a", 9, &a), dense("b", 5, &b)])),
        ("dense f32", views([single("a", 9, &a), single("b", 5, &b)])),
        ("sparse f64", views([sparse("c", 25, &c), sparse("d", 33, &d)])),
        ("sparse f32", views([sparse_f32("c", 25, &c), sparse_f32("d", 33, &d)])),
        ("mixed", views([single("a", 9, &a), sparse("d", 33, &d)])),
    ]
}

/// Fits with 1, 2 and 7 threads and compares every bit.
fn same_for_any_number_of_threads(n: usize, iterations: usize) {
    for missing in [false, true] {
        for (name, views) in layouts(n, missing) {
            for preset in [Preset::Default, Preset::Paper] {
                let fit = |threads| {
                    let daimc =
                        Daimc::new(4).preset(preset).max_iterations(iterations).restarts(4).threads(threads);
                    daimc.fit(&views).unwrap()
                };
                let one = fit(1);
                assert!(one.latent.values().iter().any(|value| *value > 0.0), "{name}");
                for threads in [2, 7] {
                    assert_same(&fit(threads), &one);
                }
                let place = |threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| one.place(&views).unwrap())
                };
                assert_eq!(place(7), place(1), "{name}");
            }
        }
    }
}

#[test]
fn few_instances_give_the_same_bits_for_any_number_of_threads() {
    same_for_any_number_of_threads(300, 20);
}

#[test]
fn many_instances_give_the_same_bits_for_any_number_of_threads() {
    same_for_any_number_of_threads(6000, 5);
}

// Layouts.

/// The same values as two sparse and as two dense views, with their clusters. No two rows are equally far from a third,
/// as rows that share no feature are, so that k-means does not depend on rounding.
fn sparse_and_dense(n: usize) -> (Views<'static>, Views<'static>, Vec<usize>) {
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let thinned =
        |values: Vec<f64>| values.iter().map(|&x| if x.abs() < 0.4 { 0.0 } else { x }).collect::<Vec<_>>();
    let (a, b) = (thinned(around(&truth, 25, 0.3, 3)), thinned(around(&truth, 33, 0.3, 4)));
    let present = simulate::missing(n, &[0.3, 0.3], 5).unwrap();
    let views = |pair: [View<'static>; 2]| {
        let masked = pair.into_iter().zip(&present).map(|(view, present)| view.mask(present).unwrap());
        Views::new(masked.collect()).unwrap()
    };
    let dense = |name: &str, d: usize, values: &[f64]| View::dense(name, d, values.to_vec()).unwrap();
    let dense = views([dense("a", 25, &a), dense("b", 33, &b)]);
    (views([sparse("a", 25, &a), sparse("b", 33, &b)]), dense, truth)
}

const FOR_SPARSE: [Scale; 6] =
    [Scale::None, Scale::Unit, Scale::TfIdf, Scale::MinMax, Scale::MinMaxUnit, Scale::ZScore];

#[test]
fn sparse_rows_give_the_v_of_the_same_rows_stored_dense() {
    for (n, iterations) in [(300, 30), (6000, 5)] {
        let (sparse, dense, truth) = sparse_and_dense(n);
        for scale in FOR_SPARSE {
            let daimc = Daimc::new(4).preset(Preset::Paper).scale(scale).max_iterations(iterations);
            let daimc = daimc.start(start(&truth, 4, 9)).tolerance(0.0);
            let (one, other) = (daimc.fit(&sparse).unwrap(), daimc.fit(&dense).unwrap());
            let difference = difference(&one.latent, &other.latent);
            assert!(difference < 1e-8, "{scale}: {difference:e}");
            assert_eq!(metrics::ari(&one.labels, &other.labels).unwrap(), 1.0, "{scale}");
            if matches!(scale, Scale::MinMax | Scale::ZScore) {
                assert!(!one.views[0].scaling.shift.is_empty(), "this scale is to shift the view");
            }
        }
    }
}

#[test]
fn sparse_rows_give_the_clusters_of_the_same_rows_stored_dense() {
    for (n, iterations) in [(300, 30), (6000, 5)] {
        let (sparse, dense, _) = sparse_and_dense(n);
        for scale in FOR_SPARSE {
            let daimc = Daimc::new(4).scale(scale).max_iterations(iterations);
            let (one, other) = (daimc.fit(&sparse).unwrap(), daimc.fit(&dense).unwrap());
            assert_eq!(metrics::ari(&one.labels, &other.labels).unwrap(), 1.0, "{scale}");
        }
    }
}

#[test]
fn sparse_rows_give_the_labels_of_the_same_rows_stored_dense() {
    for (n, iterations) in [(300, 30), (6000, 5)] {
        let (sparse, dense, _) = sparse_and_dense(n);
        for scale in FOR_SPARSE {
            for preset in [Preset::Default, Preset::Paper] {
                let daimc = Daimc::new(4).preset(preset).scale(scale).max_iterations(iterations);
                let (one, other) = (daimc.fit(&sparse).unwrap(), daimc.fit(&dense).unwrap());
                // Not only the same clusters but under the same numbers, whatever the rounding.
                assert!(one.labels == other.labels, "{scale} {preset:?}: labels differ");
                // The bases of centred data are dependent, and V is not so exact.
                let difference = difference(&one.latent, &other.latent);
                let exact = scale != Scale::ZScore;
                assert!(!exact || difference < 1e-8, "{scale} {preset:?}: {difference:e}");
            }
        }
    }
}

#[test]
fn zeros_that_are_stored_change_nothing() {
    let truth = Synthetic::new(300, 4).seed(3).truth();
    let values = mostly_zero(&truth, 25, true, 3);
    let (mut offsets, mut columns) = (vec![0], Vec::new());
    for _ in 0..300 {
        columns.extend(0..25_u32);
        offsets.push(columns.len());
    }
    let full = Views::new(vec![View::sparse("a", 25, offsets, columns, &values).unwrap()]).unwrap();
    let views = Views::new(vec![sparse("a", 25, &values)]).unwrap();
    for scale in FOR_SPARSE {
        let daimc =
            Daimc::new(4).preset(Preset::Paper).start(start(&truth, 4, 9)).scale(scale).max_iterations(10);
        let (one, other) = (daimc.fit(&full).unwrap(), daimc.fit(&views).unwrap());
        assert!(difference(&one.latent, &other.latent) < 1e-8, "{scale}");
        assert_eq!(metrics::ari(&one.labels, &other.labels).unwrap(), 1.0, "{scale}");
    }
    let scale = |views| Daimc::new(4).fit(views).unwrap().views.remove(0).scaling.scale;
    assert_eq!(scale(&full), scale(&views));
}

#[test]
fn single_precision_gives_nearly_the_model_of_double_precision() {
    for n in [300, 6000] {
        let truth = Synthetic::new(n, 4).seed(3).truth();
        let (a, b) = (around(&truth, 9, 0.5, 1), mostly_zero(&truth, 33, true, 4));
        let present = simulate::missing(n, &[0.3, 0.3], 5).unwrap();
        let views = |a: View<'static>, b: View<'static>| {
            Views::new(vec![a.mask(&present[0]).unwrap(), b.mask(&present[1]).unwrap()]).unwrap()
        };
        let double = views(View::dense("a", 9, a.clone()).unwrap(), sparse("b", 33, &b));
        let single = views(View::dense("a", 9, narrow(&a)).unwrap(), sparse_f32("b", 33, &b));
        let daimc = Daimc::new(4).preset(Preset::Paper).scale(Scale::Unit).start(start(&truth, 4, 9));
        for solver in [Solver::Multiplicative, Solver::Coordinate] {
            let daimc = daimc.clone().solver(solver).max_iterations(5).tolerance(0.0);
            let (one, other) = (daimc.fit(&single).unwrap(), daimc.fit(&double).unwrap());
            let difference = difference(&one.latent, &other.latent);
            assert!(difference < 1e-3, "{solver:?}: {difference:e}");
        }
    }
}

#[test]
fn borrowed_values_give_the_model_of_owned_ones() {
    let truth = Synthetic::new(200, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.5, 1), mostly_zero(&truth, 33, true, 4));
    let (offsets, columns, stored) = compressed(33, &b);
    let borrowed = Views::new(vec![
        View::dense("a", 9, &a).unwrap(),
        View::sparse("b", 33, &offsets, &columns, &stored).unwrap(),
    ]);
    let owned = Views::new(vec![View::dense("a", 9, a.clone()).unwrap(), sparse("b", 33, &b)]).unwrap();
    assert_same(&Daimc::new(4).fit(&borrowed.unwrap()).unwrap(), &Daimc::new(4).fit(&owned).unwrap());
}

// Order.

fn names(order: &[usize]) -> Vec<String> {
    order.iter().map(|i| format!("instance {i}")).collect()
}

#[test]
fn views_that_are_joined_give_the_model_of_views_that_are_aligned() {
    for n in [300, 6000] {
        let truth = Synthetic::new(n, 4).seed(3).truth();
        let (a, b, c) =
            (around(&truth, 9, 0.5, 1), mostly_zero(&truth, 33, true, 4), around(&truth, 4, 0.5, 2));
        // The first view lists the first instances in order, the second the rest, so that the order is kept.
        let known = n * 2 / 3;
        let present = simulate::missing(n, &[0.0, 0.5], 8).unwrap();
        let first: Vec<bool> = (0..n).map(|i| i < known).collect();
        let second: Vec<bool> = (0..n).map(|i| i >= known || i % 3 == 0).collect();
        let aligned = Views::new(vec![
            View::dense("a", 9, a.clone()).unwrap().mask(&first).unwrap(),
            sparse("b", 33, &b).mask(&second).unwrap(),
            View::dense("c", 4, narrow(&c)).unwrap().mask(&present[1]).unwrap(),
        ]);
        let aligned = aligned.unwrap();

        let all: Vec<usize> = (0..n).collect();
        let seconds: Vec<usize> =
            all[known..].iter().copied().chain(order(known, 3).into_iter().filter(|i| i % 3 == 0)).collect();
        let thirds: Vec<usize> = order(n, 4).into_iter().filter(|&i| present[1][i]).collect();
        let (joined, account) = Views::join(vec![
            View::dense("a", 9, reordered(&a, 9, &all[..known])).unwrap().ids(names(&all[..known])).unwrap(),
            sparse("b", 33, &reordered(&b, 33, &seconds)).ids(names(&seconds)).unwrap(),
            View::dense("c", 4, narrow(&reordered(&c, 4, &thirds))).unwrap().ids(names(&thirds)).unwrap(),
        ])
        .unwrap();
        assert_eq!(account.instances, n);
        assert_eq!(account.views[2].1, thirds.len());
        assert_eq!(account.dropped, Vec::<String>::new());
        let every = (0..known).filter(|&i| second[i] && present[1][i]).count();
        assert_eq!(account.in_every_view, every);
        for preset in [Preset::Default, Preset::Paper] {
            let daimc = Daimc::new(4).preset(preset).max_iterations(5);
            let (one, other) = (daimc.fit(&joined).unwrap(), daimc.fit(&aligned).unwrap());
            assert_same(&one, &other);
            assert_eq!(one.ids, daimc::Ids::Names(names(&all)));
            assert_eq!(one.predict(&joined).unwrap(), one.predict(&aligned).unwrap());
        }
    }
}

#[test]
fn joined_views_give_results_in_the_order_of_their_ids_also_where_rows_are_missing() {
    let n = 300;
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.5, 1), around(&truth, 6, 0.5, 2));
    let all: Vec<usize> = (0..n).collect();
    let mut present = simulate::missing(n, &[0.4, 0.4], 8).unwrap();
    let views = |present: &[Vec<bool>], with_ids: bool| {
        let views =
            [("a", 9, &a), ("b", 6, &b)].into_iter().zip(present).map(|((name, features, x), present)| {
                let view = View::dense(name, features, x.clone()).unwrap().mask(present).unwrap();
                if with_ids { view.ids(names(&all)).unwrap() } else { view }
            });
        views.collect::<Vec<_>>()
    };
    let (joined, _) = Views::join(views(&present, true)).unwrap();
    assert_eq!(joined.ids(), &daimc::Ids::Names(names(&all)));
    let aligned = Views::new(views(&present, false)).unwrap();
    assert_same(&Daimc::new(4).fit(&joined).unwrap(), &Daimc::new(4).fit(&aligned).unwrap());

    // Whom no view shows is left out, and the others keep their order.
    for view in &mut present {
        (view[7], view[40]) = (false, false);
    }
    let (joined, account) = Views::join(views(&present, true)).unwrap();
    let others: Vec<usize> = all.iter().copied().filter(|i| ![7, 40].contains(i)).collect();
    assert_eq!(joined.ids(), &daimc::Ids::Names(names(&others)));
    let mut dropped = names(&[7, 40]);
    dropped.sort();
    assert_eq!(account.dropped, dropped);
}

#[test]
fn the_rows_of_a_joined_view_can_stand_in_any_order() {
    let n = 500;
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.5, 1), around(&truth, 6, 0.5, 2));
    let all: Vec<usize> = (0..n).collect();
    let fit = |order: &[usize]| {
        let a = View::dense("a", 9, a.clone()).unwrap().ids(names(&all)).unwrap();
        let b = View::dense("b", 6, reordered(&b, 6, order)).unwrap().ids(names(order)).unwrap();
        Daimc::new(4).fit(&Views::join(vec![a, b]).unwrap().0).unwrap()
    };
    let expected = fit(&all);
    for seed in 0..3 {
        assert_same(&fit(&order(n, seed)), &expected);
    }
}

#[test]
fn instances_in_another_order_give_the_same_v_in_that_order() {
    for n in [300, 6000] {
        let truth = Synthetic::new(n, 4).seed(3).truth();
        let (a, b) = (around(&truth, 9, 0.2, 1), around(&truth, 12, 0.2, 2));
        let present = simulate::missing(n, &[0.2, 0.2], 5).unwrap();
        let v = start(&truth, 4, 9);
        let fit = |daimc: &Daimc, order: &[usize]| {
            let mask = |view: usize| order.iter().map(|&i| present[view][i]).collect::<Vec<_>>();
            let views = Views::new(vec![
                View::dense("a", 9, reordered(&a, 9, order)).unwrap().mask(&mask(0)).unwrap(),
                sparse("b", 12, &reordered(&b, 12, order)).mask(&mask(1)).unwrap(),
            ]);
            let v = Matrix::new(n, 4, reordered(v.values(), 4, order)).unwrap();
            daimc.clone().start(v).fit(&views.unwrap()).unwrap()
        };
        let all: Vec<usize> = (0..n).collect();
        for seed in 0..2 {
            let order = order(n, seed);
            for solver in [Solver::Coordinate, Solver::Multiplicative] {
                let daimc =
                    Daimc::new(4).preset(Preset::Paper).solver(solver).max_iterations(10).tolerance(0.0);
                let (moved, kept) = (fit(&daimc, &order), fit(&daimc, &all));
                let expected = Matrix::new(n, 4, reordered(kept.latent.values(), 4, &order)).unwrap();
                let difference = difference(&moved.latent, &expected);
                assert!(difference < 1e-8, "{solver:?}: {difference:e}");
            }
            for preset in [Preset::Default, Preset::Paper] {
                let daimc = Daimc::new(4).preset(preset).max_iterations(10);
                let (moved, kept) = (fit(&daimc, &order), fit(&daimc, &all));
                let expected: Vec<usize> = order.iter().map(|&i| kept.labels[i]).collect();
                assert_eq!(metrics::ari(&expected, &moved.labels).unwrap(), 1.0, "{preset:?}");
            }
        }
    }
}

#[test]
fn views_in_another_order_give_the_same_clusters() {
    let n = 400;
    let truth = Synthetic::new(n, 4).seed(3).truth();
    let (a, b) = (around(&truth, 9, 0.3, 1), mostly_zero(&truth, 33, true, 4));
    let present = simulate::missing(n, &[0.2, 0.2], 5).unwrap();
    let a = View::dense("a", 9, a).unwrap().mask(&present[0]).unwrap();
    let b = sparse("b", 33, &b).mask(&present[1]).unwrap();
    let one = Views::new(vec![a.clone(), b.clone()]).unwrap();
    let other = Views::new(vec![b, a]).unwrap();
    let daimc =
        Daimc::new(4).preset(Preset::Paper).start(start(&truth, 4, 9)).max_iterations(10).tolerance(0.0);
    let (one, other) = (daimc.fit(&one).unwrap(), daimc.fit(&other).unwrap());
    assert!(difference(&one.latent, &other.latent) < 1e-8);
    assert_eq!(metrics::ari(&one.labels, &other.labels).unwrap(), 1.0);
}

// Sources that are not sound.

/// A source without a view.
struct Nothing;

impl Source for Nothing {
    fn instances(&self) -> usize {
        3
    }

    fn views(&self) -> usize {
        0
    }

    fn name(&self, _: usize) -> &'static str {
        ""
    }

    fn features(&self, _: usize) -> usize {
        0
    }

    fn is_present(&self, _: usize, _: usize) -> bool {
        false
    }

    fn block<'b>(&'b self, _: usize, _: Range<usize>, _: &'b mut Buffer) -> daimc::Result<Block<'b>> {
        Err(Error::NoViews)
    }
}

#[test]
fn a_source_without_views_is_refused() {
    for preset in [Preset::Default, Preset::Paper] {
        let outcome = Daimc::new(2).preset(preset).fit_source(&Nothing, go_on);
        assert!(matches!(outcome, Err(Error::NoViews)), "{outcome:?}");
    }
}

#[test]
fn masking_views_is_making_them_with_the_mask() {
    let data = Synthetic::new(120, 3);
    let whole = Views::new(vec![
        data.dense::<f64>("a", 10).unwrap(),
        data.sparse::<f32>("b", 40, 0.2).unwrap(),
        data.dense::<f32>("c", 5).unwrap(),
    ])
    .unwrap();
    let present = simulate::missing(120, &[0.4, 0.3, 0.5], 1).unwrap();
    let made = Views::new(vec![
        data.dense::<f64>("a", 10).unwrap().mask(&present[0]).unwrap(),
        data.sparse::<f32>("b", 40, 0.2).unwrap().mask(&present[1]).unwrap(),
        data.dense::<f32>("c", 5).unwrap().mask(&present[2]).unwrap(),
    ])
    .unwrap();
    let masked = whole.masked(&present).unwrap();
    let fit = |views: &Views<'_>| Daimc::new(3).fit(views).unwrap();
    let (mut a, b) = (fit(&made), fit(&masked));
    a.timings = b.timings;
    assert_eq!(a, b);
    // What is hidden stays hidden.
    let again = masked.masked(&vec![vec![true; 120]; 3]).unwrap();
    assert_eq!((again.present(0), again.present(2)), (72, 60));
    assert!(whole.masked(&present[..2]).is_err());
    assert!(whole.masked(&[vec![true; 120], vec![true; 119], vec![true; 120]]).is_err());
    assert!(whole.masked(&vec![vec![false; 120]; 3]).is_err());
}

/// A matrix with its columns one after another, and one with some of the columns of a wider matrix.
fn apart<T: daimc::Scalar>(values: &[T], features: usize) -> [(Vec<T>, [usize; 2]); 2] {
    let n = values.len() / features;
    let by_column = (0..values.len()).map(|at| values[at % n * features + at / n]).collect();
    let hole = T::from_f64(f64::NAN);
    let wider = values.chunks(features).flat_map(|row| [&[hole], row, &[hole; 2]].concat()).skip(1).collect();
    [(by_column, [1, n]), (wider, [features + 3, 1])]
}

#[test]
fn values_that_stand_apart_give_the_model_of_values_that_do_not() {
    let n = 700;
    let truth: Vec<usize> = (0..n).map(|i| i % 3).collect();
    let present = simulate::missing(n, &[0.3, 0.2], 4).unwrap();
    let (mut a, b) = (around(&truth, 19, 0.6, 1), around(&truth, 33, 0.6, 2));
    // A row of NaN is missing too.
    let gone = (0..n).find(|&i| present[0][i] && present[1][i]).unwrap();
    a[gone * 19..(gone + 1) * 19].fill(f64::NAN);
    let views = |a: View<'static>| {
        let a = a.mask(&present[0]).unwrap().missing_where_nan();
        let b = View::dense("b", 33, b.clone()).unwrap().mask(&present[1]).unwrap();
        Views::new(vec![a, b]).unwrap()
    };
    for scale in [Scale::Auto, Scale::ZScore] {
        let fit = Daimc::new(3).scale(scale).seed(5);
        let double = views(View::dense("a", 19, a.clone()).unwrap());
        let single = views(View::dense("a", 19, narrow(&a)).unwrap());
        let (in_double, in_single) = (fit.fit(&double).unwrap(), fit.fit(&single).unwrap());
        for (values, strides) in apart(&a, 19) {
            let other = views(View::strided("a", [n, 19], strides, values).unwrap());
            let model = fit.fit(&other).unwrap();
            assert_same(&model, &in_double);
            assert_eq!(model.transform(&other).unwrap(), in_double.transform(&double).unwrap());
            assert_eq!(model.misfit(&other, "a").unwrap(), in_double.misfit(&double, "a").unwrap());
            // Masking borrows.
            assert_same(&fit.fit(&other.masked(&present).unwrap()).unwrap(), &in_double);
        }
        for (values, strides) in apart(&narrow(&a), 19) {
            let other = views(View::strided("a", [n, 19], strides, values).unwrap());
            assert_same(&fit.fit(&other).unwrap(), &in_single);
        }
    }
}

#[test]
fn strides_that_reach_too_far_are_refused() {
    let view = |shape, strides| View::strided("a", shape, strides, vec![0.0; 12]);
    assert!(view([4, 3], [1, 4]).is_ok());
    assert!(view([4, 3], [3, 1]).is_ok());
    let message = view([4, 3], [4, 1]).unwrap_err().to_string();
    assert_eq!(message, "view 'a': values that the strides reach: expected 15, found 12");
    assert!(matches!(view([usize::MAX, 3], [usize::MAX, 1]), Err(Error::Shape { .. })));
    assert!(matches!(view([4, 0], [1, 1]), Err(Error::NoFeatures { .. })));
    let mut values = vec![0.0; 12];
    values[4 + 2] = f64::INFINITY;
    let views = Views::new(vec![View::strided("a", [4, 3], [1, 4], values).unwrap()]);
    assert!(matches!(views, Err(Error::NotFinite { row: 2, column: 1, .. })));
}
