//! How long an iteration takes, and how much work it is.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use daimc::source::{Buffer, Rows, Source};
use daimc::{Daimc, Fit, Neighbours, Scale, Views};

use crate::Result;

/// How often things are measured.
pub struct Effort {
    /// Repeats of each measurement of the machine.
    pub peaks: usize,
    /// Iterations that are timed, at least, after the first two.
    laps: usize,
    /// Seconds for which iterations are timed, at least.
    seconds: f64,
    /// Fits of which the best counts, where the whole fit is timed.
    pub fits: usize,
}

impl Effort {
    pub const FULL: Self = Self { peaks: 300, laps: 15, seconds: 1.0, fits: 3 };
    pub const QUICK: Self = Self { peaks: 100, laps: 5, seconds: 0.0, fits: 1 };
}

/// Seconds that something took, of several times.
#[derive(Clone, Copy)]
pub struct Laps {
    pub best: f64,
    pub median: f64,
    /// Whether other programs were in the way, so that even the best time may not be a good one.
    pub busy: bool,
}

/// The share of the time that threads may wait for a processor before it counts as busy.
pub const WAITING: f64 = 0.1;

impl Laps {
    /// Of pairs: seconds, and how long threads waited for a processor meanwhile.
    pub fn of(mut times: Vec<(f64, f64)>) -> Self {
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (sum, waited) = times.iter().fold((0.0, 0.0), |sums, time| (sums.0 + time.0, sums.1 + time.1));
        Self { best: times[0].0, median: times[times.len() / 2].0, busy: waited > WAITING * sum }
    }
}

/// Seconds that the threads of this process have so far waited for a processor; zero where the system does not tell.
pub fn waited() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    threads.flatten().map(|thread| waited_of(&thread.path())).sum()
}

/// Seconds that one thread has so far waited for a processor.
pub fn waited_of(thread: &Path) -> f64 {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let nanoseconds = text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// Iterations before those that are timed.
const WARM_UP: usize = 2;

/// A fit whose iterations are to be timed, and nothing else.
pub fn fit(clusters: usize, threads: usize) -> Daimc {
    Daimc::new(clusters).threads(threads).scale(Scale::Unit).restarts(1).neighbours(Neighbours::Off)
}

/// Runs a fit until enough of its iterations have been timed.
pub fn laps(fit: &Daimc, views: &Views<'_>, effort: &Effort) -> Result<(Laps, Fit)> {
    // Per iteration: when it ended, when the callback let the next one begin, and what threads had waited by then.
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

/// The work that no iteration can do without.
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
            // Sparse entries come with their column.
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
