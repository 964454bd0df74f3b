//! Time and work of an iteration.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use daimc::source::{Buffer, Rows, Source};
use daimc::{Daimc, Fit, Neighbours, Scale, Views};

use crate::Result;

/// The number of measurements.
pub struct Effort {
    /// Repeats of each measurement of the computer.
    pub peaks: usize,
    /// Minimum number of timed iterations, after the first two.
    laps: usize,
    /// Minimum seconds of timed iterations.
    seconds: f64,
    /// Number of fits if the whole fit is timed; the best counts.
    pub fits: usize,
}

impl Effort {
    pub const FULL: Self = Self { peaks: 300, laps: 15, seconds: 1.0, fits: 3 };
    pub const QUICK: Self = Self { peaks: 100, laps: 5, seconds: 0.0, fits: 1 };
}

/// Repeated timings, in seconds.
#[derive(Clone, Copy)]
pub struct Laps {
    pub best: f64,
    pub median: f64,
    /// Whether other programs interfered, so that even the best time may be too long.
    pub busy: bool,
}

/// The share of waiting time above which a measurement counts as disturbed.
pub const WAITING: f64 = 0.1;

impl Laps {
    /// From pairs: seconds, and how long threads waited for a CPU core meanwhile.
    pub fn of(mut times: Vec<(f64, f64)>) -> Self {
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (sum, waited) = times.iter().fold((0.0, 0.0), |sums, time| (sums.0 + time.0, sums.1 + time.1));
        Self { best: times[0].0, median: times[times.len() / 2].0, busy: waited > WAITING * sum }
    }
}

/// Seconds that the threads of this process have waited for a CPU core so far; zero if the system does not report it.
pub fn waited() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    threads.flatten().map(|thread| waited_of(&thread.path())).sum()
}

/// Seconds that one thread has waited for a CPU core so far.
pub fn waited_of(thread: &Path) -> f64 {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let nanoseconds = text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// Iterations before those that are timed.
const WARM_UP: usize = 2;

/// A fit whose iterations are timed.
pub fn fit(clusters: usize, threads: usize) -> Daimc {
    Daimc::new(clusters).threads(threads).scale(Scale::Unit).restarts(1).neighbours(Neighbours::Off)
}

/// Runs a fit until enough of its iterations have been timed.
pub fn laps(fit: &Daimc, views: &Views<'_>, effort: &Effort) -> Result<(Laps, Fit)> {
    // Per iteration: when it ended, when the callback let the next one begin, and the waiting time of the threads so far.
    let mut ends: Vec<(f64, f64, f64)> = Vec::new();
    let model = fit.clone().tolerance(0.0).max_iterations(1000).fit_with(views, |iteration| {
        let callback = Instant::now();
        let (end, waited) = (iteration.elapsed.as_secs_f64(), waited());
        ends.push((end, end + callback.elapsed().as_secs_f64(), waited));
        let timed = ends.get(WARM_UP - 1..).unwrap_or_default();
        let seconds = timed.first().map_or(0.0, |first| end - first.0);
        if timed.len() > effort.laps && seconds >= effort.seconds {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    let times = ends[WARM_UP - 1..].windows(2).map(|pair| (pair[1].0 - pair[0].1, pair[1].2 - pair[0].2));
    Ok((Laps::of(times.collect()), model))
}

/// The minimum work of an iteration.
#[derive(Clone, Copy, Default)]
pub struct Volume {
    /// Values that are stored and present.
    pub entries: f64,
    pub bytes: f64,
    pub flops_f32: f64,
    pub flops_f64: f64,
}

impl Volume {
    pub fn of(views: &Views<'_>, latent: usize) -> Result<Self> {
        let mut volume = Self::default();
        for view in 0..views.len() {
            let mut buffer = Buffer::default();
            let block = views.block(view, 0..views.instances(), &mut buffer)?;
            let features = Source::features(views, view);
            let rows = || (0..views.instances()).filter_map(|i| block.index.row(i));
            // Sparse entries include their column.
            let (entries, each) = match block.rows {
                Rows::DenseF32(_) => (rows().count() * features, 4),
                Rows::DenseF64(_) => (rows().count() * features, 8),
                Rows::SparseF32(csr) => (rows().map(|row| csr.row(row).0.len()).sum(), 4 + 4),
                Rows::SparseF64(csr) => (rows().map(|row| csr.row(row).0.len()).sum(), 4 + 8),
            };
            let flops = (4 * entries * latent) as f64;
            volume.entries += entries as f64;
            volume.bytes += (entries * each) as f64;
            match block.rows {
                Rows::DenseF32(_) | Rows::SparseF32(_) => volume.flops_f32 += flops,
                Rows::DenseF64(_) | Rows::SparseF64(_) => volume.flops_f64 += flops,
            }
        }
        Ok(volume)
    }
}
