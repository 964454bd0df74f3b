//! The limits of the computer: peak arithmetic in registers and memory bandwidth.

use std::hint::black_box;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use pulp::{Arch, Simd, WithSimd};

use crate::table::{Outcome, Row};
use crate::timing::{Volume, WAITING, waited_of};

/// Peak rates for each measured number of threads.
pub struct Machine {
    rates: Vec<Rates>,
    /// The memory that is read for the bandwidth.
    stream: Vec<f64>,
}

/// Total peak rates per second of this number of threads.
#[derive(Clone, Copy, Default)]
struct Rates {
    threads: usize,
    flops_f32: f64,
    flops_f64: f64,
    bytes: f64,
    /// Other programs interfered with every measurement: the rates may be too low, and shares of them too high.
    busy: bool,
}

/// The number of values that are read for the bandwidth: 512 MB, far more than the caches.
const STREAM: usize = 64 << 20;

/// The number of values per measurement, 32 MB; the next measurement continues from there. Short measurements fit
/// between the work of other programs.
const PIECE: usize = 4 << 20;

/// Rounds of multiply-add in one measurement of the peak, about 1 ms.
const ROUNDS: usize = 1 << 17;

impl Machine {
    /// One thread, and two if there are.
    pub fn new() -> Self {
        let most = thread::available_parallelism().map_or(1, usize::from).min(2);
        let rates = (1..=most).map(|threads| Rates { threads, busy: true, ..Rates::default() }).collect();
        Self { rates, stream: vec![1.0; STREAM] }
    }

    /// The numbers of threads.
    pub fn threads(&self) -> Vec<usize> {
        self.rates.iter().map(|rates| rates.threads).collect()
    }

    /// Measures the rates and keeps improvements.
    pub fn measure(&mut self, repeats: usize) {
        let stream = &self.stream;
        for rates in &mut self.rates {
            let threads = rates.threads;
            let (flops_f32, busy_f32) = peak(threads, repeats, |_, _| Arch::new().dispatch(ChainsF32));
            let (flops_f64, busy_f64) = peak(threads, repeats, |_, _| Arch::new().dispatch(ChainsF64));
            let (bytes, busy) = peak(threads, repeats, |thread, repeat| {
                let piece = &stream[repeat % (STREAM / PIECE) * PIECE..][..PIECE];
                let own = &piece[thread * (PIECE / threads)..][..PIECE / threads];
                black_box(Arch::new().dispatch(Sum(own)));
                size_of_val(own) as f64
            });
            rates.flops_f32 = rates.flops_f32.max(flops_f32);
            rates.flops_f64 = rates.flops_f64.max(flops_f64);
            rates.bytes = rates.bytes.max(bytes);
            rates.busy &= busy || busy_f32 || busy_f64;
        }
    }

    /// The minimum seconds of an iteration over these data with this number of threads.
    pub fn roofline(&self, threads: usize, volume: &Volume) -> f64 {
        let rates = self.rates.iter().find(|rates| rates.threads == threads).expect("rates were measured");
        let arithmetic = volume.flops_f32 / rates.flops_f32 + volume.flops_f64 / rates.flops_f64;
        arithmetic.max(volume.bytes / rates.bytes)
    }

    /// The rates as rows of the table.
    pub fn rows(&self) -> Vec<Row> {
        let rows = self.rates.iter().flat_map(|&Rates { threads, flops_f32, flops_f64, bytes, busy }| {
            let rates = [
                ("multiply-add in registers", "f32", flops_f32, "Gflop/s"),
                ("multiply-add in registers", "f64", flops_f64, "Gflop/s"),
                ("read memory", "", bytes, "GB/s"),
            ];
            rates.map(|(case, values, rate, unit)| {
                let result = Outcome::Number(rate / 1e9, unit);
                Row { case: case.into(), values, threads, result, busy, ..Row::default() }
            })
        });
        rows.collect()
    }
}

/// The best rate of several repeats in which all threads work at once, and whether other programs interfered.
/// `work(thread, repeat)` returns its amount of work.
fn peak(threads: usize, repeats: usize, work: impl Fn(usize, usize) -> f64 + Sync) -> (f64, bool) {
    let barrier = Barrier::new(threads);
    let one = |thread: usize| -> (Vec<(Instant, Instant, f64)>, bool) {
        let begin = Instant::now();
        let repeat = |repeat: usize| {
            barrier.wait();
            let start = Instant::now();
            let done = work(thread, repeat);
            (start, Instant::now(), done)
        };
        let times = (0..repeats).map(repeat).collect();
        // A new thread has no waiting time.
        let waited = waited_of(Path::new("/proc/thread-self"));
        (times, waited > WAITING * begin.elapsed().as_secs_f64())
    };
    let runs: Vec<_> = thread::scope(|scope| {
        let one = &one;
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        handles.into_iter().map(|handle| handle.join().expect("no measurement panics")).collect()
    });
    let rate = |repeat: usize| {
        let at = || runs.iter().map(|(times, _)| times[repeat]);
        let start = at().map(|(start, ..)| start).min().expect("there is a thread");
        let end = at().map(|(_, end, _)| end).max().expect("there is a thread");
        at().map(|(.., done)| done).sum::<f64>() / (end - start).as_secs_f64()
    };
    let best = (0..repeats).map(rate).fold(0.0, f64::max);
    (best, runs.iter().any(|(_, busy)| *busy))
}

/// Independent chains of multiply-add that stay in registers; the output is the number of operations.
macro_rules! chains {
    ($name:ident, $type:ty, $register:ident, $lanes:ident, $splat:ident, $mul_add:ident) => {
        struct $name;

        impl WithSimd for $name {
            type Output = f64;

            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) -> f64 {
                #[inline(always)]
                fn run<S: Simd, const CHAINS: usize>(simd: S) -> f64 {
                    let (factor, term): ($type, $type) = black_box((0.5, 1.0));
                    let (factor, term) = (simd.$splat(factor), simd.$splat(term));
                    let mut sums: [S::$register; CHAINS] = [term; CHAINS];
                    for _ in 0..ROUNDS {
                        for sum in &mut sums {
                            *sum = simd.$mul_add(*sum, factor, term);
                        }
                    }
                    black_box(sums);
                    (2 * ROUNDS * CHAINS * S::$lanes) as f64
                }
                // Enough to hide the latency, with registers left for the two operands.
                if S::REGISTER_COUNT >= 32 { run::<S, 24>(simd) } else { run::<S, 12>(simd) }
            }
        }
    };
}
chains!(ChainsF32, f32, f32s, F32_LANES, splat_f32s, mul_add_e_f32s);
chains!(ChainsF64, f64, f64s, F64_LANES, splat_f64s, mul_add_e_f64s);

struct Sum<'a>(&'a [f64]);

impl WithSimd for Sum<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let (chunks, _) = S::as_simd_f64s(self.0).0.as_chunks::<8>();
        let mut sums = [simd.splat_f64s(0.0); 8];
        for chunk in chunks {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum = simd.add_f64s(*sum, *value);
            }
        }
        sums.into_iter().map(|sum| simd.reduce_sum_f64s(sum)).sum()
    }
}
