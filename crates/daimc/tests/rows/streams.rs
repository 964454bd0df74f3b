//! Rows that are read during a fit give the model of the same rows in memory, and every read error ends the fit with
//! one error.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::made::*;
use daimc::source::{Buffer, MISSING, RandomAccess, ReadError, Source};
use daimc::synthetic::Synthetic;
use daimc::{
    Daimc, Error, Ids, Initialisation, Layout, Neighbours, Outcome, Presence, Preset, Scale, Schema, Stop,
    View, ViewSchema, ViewWeights, Views, simulate,
};
use rayon::prelude::*;

/// Two views on disk, one dense in `f64` and one sparse in `f32`; missing rows are not in the files.
struct OnDisk {
    schema: Schema,
    folder: PathBuf,
    features: [usize; 2],
    /// The row of each instance in the file, for each view.
    rows: [Vec<u32>; 2],
    /// The offsets of the rows of the sparse view.
    offsets: Vec<usize>,
    random: bool,
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
            present[view].iter().map(number).collect::<Vec<u32>>()
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
        let n = present[0].len();
        let view = |view: usize, features, layout| {
            ViewSchema::new(VIEWS[view], features, layout)
                .presence(Presence::from_fn(n, |i| present[view][i]))
        };
        let views = vec![view(0, dense.0, Layout::DenseF64), view(1, sparse.0, Layout::SparseF32)];
        let schema = Schema::new(Ids::Numbers(n), views).unwrap();
        Self { schema, folder, features: [dense.0, sparse.0], rows, offsets, random: false }
    }

    fn bytes(
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
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Source for OnDisk {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        let here = || self.rows[view][instances.clone()].iter().copied().filter(|&row| row != MISSING);
        let first = here().next().unwrap_or(0);
        let rows = first as usize..here().next_back().map_or(first, |last| last + 1) as usize;
        let index = self.rows[view][instances.clone()].iter();
        buffer.index.clear();
        buffer.index.extend(index.map(|&row| if row == MISSING { MISSING } else { row - first }));
        if view == 0 {
            let d = self.features[0];
            self.bytes("dense", rows.start * d..rows.end * d, 8, &mut buffer.bytes)?;
            let values = buffer.bytes.as_chunks().0;
            buffer.f64.clear();
            buffer.f64.extend(values.iter().map(|bytes| f64::from_le_bytes(*bytes)));
        } else {
            let offsets = &self.offsets[rows.start..=rows.end];
            let stored = offsets[0]..offsets[offsets.len() - 1];
            buffer.offsets.clear();
            buffer.offsets.extend(offsets.iter().map(|offset| offset - stored.start));
            self.bytes("columns", stored.clone(), 4, &mut buffer.bytes)?;
            buffer.columns.clear();
            buffer.columns.extend(buffer.bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)));
            self.bytes("values", stored, 4, &mut buffer.bytes)?;
            buffer.f32.clear();
            buffer.f32.extend(buffer.bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        }
        Ok(())
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        self.random.then_some(self)
    }
}

impl RandomAccess for OnDisk {
    fn pick(&self, view: usize, instances: &[u32], buffer: &mut Buffer) -> Result<(), ReadError> {
        let (mut all, mut own) = (Buffer::default(), Buffer::default());
        all.offsets.push(0);
        for &i in instances {
            self.read(view, i as usize..i as usize + 1, &mut own)?;
            let row = (all.offsets.len() - 1) as u32;
            all.index.push(if own.index[0] == MISSING { MISSING } else { row });
            if own.index[0] != MISSING {
                all.f32.append(&mut own.f32);
                all.f64.append(&mut own.f64);
                all.columns.append(&mut own.columns);
                all.offsets.push(all.columns.len());
            }
        }
        *buffer = all;
        Ok(())
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

fn off(clusters: usize) -> Daimc {
    Daimc::new(clusters).neighbours(Neighbours::Off)
}

#[test]
fn rows_on_disk_give_the_model_of_rows_in_memory() {
    for n in [5, 130, 1000] {
        let (mut disk, views) = both(&format!("same-{n}"), n);
        for preset in [Preset::Default, Preset::Paper] {
            for scale in
                [Scale::Auto, Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScoreUnit, Scale::TfIdf]
            {
                disk.random ^= true;
                let daimc = off(4).preset(preset).neighbours(Neighbours::Off).scale(scale).max_iterations(6);
                let (fitted, expected) = (daimc.fit(&disk).unwrap(), daimc.fit(&views).unwrap());
                assert_same(&fitted, &expected);
                let placed = fitted.model.place(&disk).unwrap();
                assert_eq!(placed, fitted.model.place(&views).unwrap());
                assert_eq!(fitted.contributions(&disk).unwrap(), fitted.contributions(&views).unwrap());
                assert_eq!(fitted.misfit(&disk, "sparse").unwrap(), fitted.misfit(&views, "sparse").unwrap());
            }
        }
    }
}

#[test]
fn rows_on_disk_give_the_model_of_rows_in_memory_when_k_means_uses_a_sample() {
    let (mut disk, views) = both("many", 6500);
    for preset in [Preset::Default, Preset::Paper] {
        for initialisation in [Initialisation::Aligned, Initialisation::Paper] {
            disk.random ^= true;
            let daimc = Daimc::new(4).preset(preset).neighbours(Neighbours::Off);
            let daimc = daimc.initialisation(initialisation).max_iterations(5).threads(3);
            let fitted = daimc.fit(&disk).unwrap();
            assert_same(&fitted, &daimc.fit(&views).unwrap());
            assert_eq!(fitted.labels.len(), 6500);
        }
    }
}

#[test]
fn several_runs_and_learned_weights_read_the_same_rows() {
    let (disk, views) = both("runs", 700);
    for fit in
        [off(4).runs(3), off(4).view_weights(ViewWeights::Learned), off(4).penalty(daimc::Penalty::Auto)]
    {
        let fit = fit.max_iterations(5).threads(3);
        assert_same(&fit.fit(&disk).unwrap(), &fit.fit(&views).unwrap());
    }
    let select = |source: &dyn Source| off(2).restarts(2).max_iterations(5).select(source, 3..=4).unwrap();
    assert_eq!(select(&disk), select(&views));
}

#[test]
fn a_default_fit_reads_the_data_five_times_besides_its_iterations() {
    for (n, scale) in
        [(700, Scale::Auto), (6500, Scale::Unit), (6500, Scale::MinMaxUnit), (6500, Scale::TfIdf)]
    {
        let (mut disk, views) = both(&format!("passes-{n}-{scale}"), n);
        disk.random = true;
        let fit = off(4).scale(scale).max_iterations(12);
        for fitted in [fit.fit(&disk).unwrap(), fit.fit(&views).unwrap()] {
            let passes = fitted.passes;
            assert!(
                passes <= fitted.iterations() + 5,
                "{scale}: {passes} passes, {} iterations",
                fitted.iterations()
            );
            assert!(passes > fitted.iterations());
        }
        disk.random = false;
        let fitted = fit.fit(&disk).unwrap();
        assert!(
            fitted.passes <= fitted.iterations() + 8,
            "{scale}: {} passes without random access",
            fitted.passes
        );
    }
}

#[test]
fn neighbours_of_rows_on_disk_are_found_by_descent() {
    let (disk, views) = both("neighbours", 300);
    for used in [Neighbours::Refine, Neighbours::Auto] {
        let daimc = Daimc::new(4).neighbours(used);
        let (found, expected) = (daimc.fit(&disk).unwrap(), daimc.fit(&views).unwrap());
        assert_eq!(found.neighbours.used, used, "{}", found.neighbours.reason);
        assert!(found.passes > off(4).fit(&disk).unwrap().passes, "the search reads rows");
        let (estimated, all) = (&found.neighbours.recall, &expected.neighbours.recall);
        assert!(
            estimated.len() == disk.schema().len() && estimated.iter().all(|share| *share > 0.9),
            "{estimated:?}"
        );
        assert!(all.is_empty(), "every pair of rows in memory is compared");
        let same = daimc::metrics::ari(&expected.labels, &found.labels).unwrap();
        assert!(same > 0.95, "{used}: {same}");
    }
}

#[test]
fn a_model_from_disk_is_watched_and_cancelled_like_any_other() {
    let (disk, views) = both("cancelled", 300);
    let daimc = off(4).tolerance(0.0);
    let stop = |iteration: &daimc::Iteration| {
        if iteration.number == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let fitted = daimc.fit_with(&disk, stop).unwrap();
    assert_eq!((fitted.outcome, fitted.iterations()), (Outcome::Interrupted, 3));
    assert_same(&fitted, &daimc.fit_with(&views, stop).unwrap());
    // Only that fit was stopped.
    assert_eq!(daimc.max_iterations(2).fit(&disk).unwrap().outcome, Outcome::IterationLimit);
}

#[test]
fn a_file_that_is_gone_is_an_error() {
    let (disk, _) = both("gone", 300);
    for (file, view) in [("values", "sparse"), ("dense", "dense")] {
        std::fs::remove_file(disk.folder.join(file)).unwrap();
        for threads in [1, 4] {
            let error = Daimc::new(4).threads(threads).fit(&disk).unwrap_err();
            assert!(matches!(&error, Error::Read { view: found, .. } if found == view), "{error:?}");
            assert!(error.to_string().contains(view), "{error}");
        }
    }
}

/// The fault at the read of this number, and at all later ones.
#[derive(Clone)]
enum Trouble {
    Fails,
    Panics,
    Stops(Stop),
}

struct Troubled {
    views: Views<'static>,
    reads: AtomicUsize,
    at: usize,
    trouble: Trouble,
}

impl Source for Troubled {
    fn schema(&self) -> &Schema {
        self.views.schema()
    }

    fn read(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        if self.reads.fetch_add(1, Ordering::SeqCst) >= self.at {
            match &self.trouble {
                Trouble::Fails => return Err("the cable was pulled".into()),
                Trouble::Panics => panic!("the cable was pulled"),
                Trouble::Stops(stop) => stop.set(),
            }
        }
        self.views.read(view, instances, buffer)
    }
}

/// The result of `work`, which must come within a minute; `None` if it panics.
#[track_caller]
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || sender.send(work()));
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(found) => Some(found),
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
            assert!(thread.join().is_err());
            None
        }
    }
}

fn troubled(
    views: &Views<'static>,
    fit: &Daimc,
    at: usize,
    trouble: Trouble,
) -> (Option<daimc::Result<daimc::Fit>>, usize) {
    let source = Arc::new(Troubled { views: views.clone(), reads: AtomicUsize::new(0), at, trouble });
    let (own, fit) = (Arc::clone(&source), fit.clone());
    let outcome = in_time(move || fit.fit(&*own));
    (outcome, source.reads.load(Ordering::SeqCst))
}

#[test]
fn a_read_that_fails_at_any_moment_ends_the_fit_with_its_error() {
    for (n, preset, step) in [(700, Preset::Default, 1), (700, Preset::Paper, 1), (6000, Preset::Default, 7)]
    {
        let (_, views) = both(&format!("fails-{n}-{preset:?}"), n);
        let fit = off(3).preset(preset).max_iterations(2).restarts(2);
        let (outcome, reads) = troubled(&views, &fit.clone().threads(1), usize::MAX, Trouble::Fails);
        outcome.unwrap().unwrap();
        for at in (0..reads).step_by(step).chain([reads - 1]) {
            for threads in [1, 4] {
                let (outcome, _) = troubled(&views, &fit.clone().threads(threads), at, Trouble::Fails);
                let error = outcome.unwrap().expect_err("a failed read must be reported");
                assert!(matches!(error, Error::Read { .. }), "{error:?}");
                let message = error.to_string();
                assert!(VIEWS.iter().any(|view| message.contains(view)), "{message}");
                assert!(message.contains("the cable was pulled"), "{message}");
            }
        }
    }
}

#[test]
fn a_source_that_panics_does_not_hang_the_fit() {
    let (_, views) = both("panics", 700);
    let fit = off(3).max_iterations(2).restarts(2).threads(3);
    let (_, reads) = troubled(&views, &fit, usize::MAX, Trouble::Panics);
    for at in (0..reads).step_by(5) {
        assert!(troubled(&views, &fit, at, Trouble::Panics).0.is_none(), "read {at}");
    }
}

#[test]
fn a_stop_at_any_read_keeps_the_iterations_that_were_made() {
    let (_, views) = both("stopped", 6000);
    let fit = off(3).max_iterations(4).tolerance(0.0).restarts(2).threads(2);
    let (whole, reads) = troubled(&views, &fit, usize::MAX, Trouble::Fails);
    let whole = whole.unwrap().unwrap();
    let mut kept = 0;
    for at in 0..reads {
        let stop = Stop::new();
        let (outcome, _) = troubled(&views, &fit.clone().stop(&stop), at, Trouble::Stops(stop));
        match outcome.unwrap() {
            // Before the first iteration there is no result to keep.
            Err(error) => assert!(matches!(error, Error::Interrupted) && kept == 0, "read {at}: {error}"),
            Ok(fitted) => {
                kept += 1;
                assert_eq!(fitted.outcome, Outcome::Interrupted, "read {at}");
                let made = fitted.iterations();
                assert!((1..=4).contains(&made));
                assert_eq!(fitted.history, whole.history[..made], "read {at}");
                assert!(fitted.latent.values().iter().all(|value| value.is_finite() && *value >= 0.0));
            }
        }
    }
    assert!(kept > reads / 3, "{kept} of {reads}");
}

/// Decodes its rows on the threads of rayon.
struct Rayon(Views<'static>);

impl Source for Rayon {
    fn schema(&self) -> &Schema {
        self.0.schema()
    }

    fn read(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        let sums: Vec<usize> = (0..64).into_par_iter().map(|i| (0..1000 + i).sum()).collect();
        assert_eq!(sums.len(), 64);
        self.0.read(view, instances, buffer)
    }
}

#[test]
fn a_source_that_uses_rayon_does_not_deadlock() {
    let (_, views) = both("rayon", 3000);
    let expected = off(4).max_iterations(5).fit(&views).unwrap();
    for threads in [1, 2] {
        for own in [None, Some(threads)] {
            let views = views.clone();
            let fit = off(4).max_iterations(5);
            let fit = own.map_or(fit.clone(), |own| fit.threads(own));
            let fitted = in_time(move || {
                // On threads that the source uses too.
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| fit.fit(&Rayon(views)))
            });
            assert_same(&fitted.unwrap().unwrap(), &expected);
        }
    }
}
