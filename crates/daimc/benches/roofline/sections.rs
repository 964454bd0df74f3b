//! The sections of the table that fit into this process.

use std::hint::black_box;
use std::time::Instant;

use daimc::source::{Buffer, Rows};
use daimc::synthetic::Synthetic;
use daimc::{Daimc, Neighbours, Scalar, Values, View, Views, datasets, simulate};

use crate::table::{Outcome, Row, Target};
use crate::timing::{Laps, Volume, WAITING, fit, laps, waited};
use crate::{Bench, Result};

/// Numbers with a name for the table.
trait Named: Scalar {
    const NAME: &str;
}

impl Named for f32 {
    const NAME: &str = "f32";
}

impl Named for f64 {
    const NAME: &str = "f64";
}

fn one_dense<T: Scalar>(instances: usize, features: usize, clusters: usize) -> Result<Views<'static>>
where
    Vec<T>: Values<'static>,
{
    Ok(Views::new(vec![Synthetic::new(instances, clusters).dense::<T>("dense", features)?])?)
}

/// 20 000 × 4000 of this density.
fn one_sparse<T: Scalar>(density: f64) -> Result<Views<'static>>
where
    Vec<T>: Values<'static>,
{
    Ok(Views::new(vec![Synthetic::new(20_000, 10).sparse::<T>("sparse", 4000, density)?])?)
}

impl Bench {
    /// Times iterations with each number of threads.
    fn iterations(
        &mut self,
        case: &str,
        values: &'static str,
        views: &Views<'_>,
        clusters: usize,
        target: Option<Target>,
    ) -> Result<Vec<Laps>> {
        let volume = Volume::of(views, clusters)?;
        let mut all = Vec::new();
        for threads in self.machine.threads() {
            let (times, _) = laps(&fit(clusters, threads), views, &self.effort)?;
            let result = Outcome::Share(volume);
            let row = Row { case: case.into(), values, threads, result, target, ..Row::default() };
            self.table.add(row.with(times));
            all.push(times);
        }
        Ok(all)
    }
}

/// Iterations against their roofline.
pub fn iteration(bench: &mut Bench) -> Result {
    fn dense<T: Named>(bench: &mut Bench) -> Result
    where
        Vec<T>: Values<'static>,
    {
        let cases = [(20_000, 1000, 10, 45.0), (20_000, 1000, 50, 65.0), (200_000, 100, 10, 35.0)];
        for (instances, features, clusters, percent) in cases {
            let views = one_dense::<T>(instances, features, clusters)?;
            let case = format!("{instances} × {features}, K = {clusters}");
            bench.iterations(&case, T::NAME, &views, clusters, Some(Target::AtLeast(percent)))?;
        }
        Ok(())
    }
    dense::<f32>(bench)?;
    dense::<f64>(bench)?;
    for (case, missing) in [("Digit, five views, complete", 0.0), ("Digit, half of each view missing", 0.5)] {
        let views = Views::new(five_views(missing)?)?;
        bench.iterations(case, "f32", &views, 10, Some(Target::AtLeast(25.0)))?;
    }
    Ok(())
}

/// Iterations over rows with a twentieth of the cells missing, against those over complete rows.
pub fn holes(bench: &mut Bench) -> Result {
    fn dense<T: Named>(bench: &mut Bench, instances: usize, features: usize, clusters: usize) -> Result
    where
        Vec<T>: Values<'static>,
    {
        let rows = Synthetic::new(instances, clusters);
        let whole = Views::new(vec![rows.dense::<T>("dense", features)?])?;
        let mut buffer = Buffer::default();
        let block = whole.block(0, 0..instances, &mut buffer)?;
        // Every twentieth cell, at a different position in each row.
        let lacks = |at: usize| (at + 7 * (at / features)).is_multiple_of(20);
        let value = |(at, x): (usize, f64)| T::from_f64(if lacks(at) { f64::NAN } else { x });
        let values: Vec<T> = match block.rows {
            Rows::DenseF32(x) => x.iter().map(|x| f64::from(*x)).enumerate().map(value).collect(),
            Rows::DenseF64(x) => x.iter().copied().enumerate().map(value).collect(),
            _ => Vec::new(),
        };
        let lacking = Views::new(vec![View::dense("dense", features, values)?])?;
        for threads in bench.machine.threads() {
            let fit = fit(clusters, threads);
            let (plain, _) = laps(&fit, &whole, &bench.effort)?;
            let (times, _) = laps(&fit, &lacking, &bench.effort)?;
            let row = Row {
                case: format!("{instances} × {features}, K = {clusters}, 5 % of the cells missing"),
                values: T::NAME,
                threads,
                result: Outcome::Number(times.best / plain.best, "× whole rows"),
                target: Some(Target::AtMost(1.4)),
                ..Row::default()
            };
            bench.table.add(row.with(times));
        }
        Ok(())
    }
    for (instances, features, clusters) in [(20_000, 1000, 10), (20_000, 1000, 50), (200_000, 100, 10)] {
        dense::<f32>(bench, instances, features, clusters)?;
        dense::<f64>(bench, instances, features, clusters)?;
    }
    Ok(())
}

/// Digit as the paper uses it, with this share of every view missing.
fn five_views(missing: f64) -> Result<Vec<View<'static>>> {
    let (views, truth) = datasets::digit();
    let views = views.into_iter().filter(|view| view.name() != "mor");
    if missing == 0.0 {
        return Ok(views.collect());
    }
    let present = simulate::missing(truth.len(), &[missing; 5], 1)?;
    views.zip(present).map(|(view, present)| Ok(view.mask(&present)?)).collect()
}

/// The two products of an iteration as plain loops.
pub fn naive(bench: &mut Bench) -> Result {
    const N: usize = 20_000;
    const D: usize = 1000;
    const K: usize = 10;
    let x: Vec<f64> = (0..N * D).map(|i| (i % 17) as f64).collect();
    let v: Vec<f64> = (0..N * K).map(|i| (i % 5) as f64).collect();
    let u: Vec<f64> = (0..D * K).map(|i| (i % 7) as f64).collect();
    let mut best = f64::INFINITY;
    for _ in 0..bench.effort.fits {
        let start = Instant::now();
        let mut xu = vec![0.0; N * K];
        for i in 0..N {
            for k in 0..K {
                for f in 0..D {
                    xu[i * K + k] += x[i * D + f] * u[f * K + k];
                }
            }
        }
        let mut xtv = vec![0.0; D * K];
        for i in 0..N {
            for f in 0..D {
                for k in 0..K {
                    xtv[f * K + k] += x[i * D + f] * v[i * K + k];
                }
            }
        }
        black_box((xu, xtv));
        best = best.min(start.elapsed().as_secs_f64());
    }
    let ours = laps(&fit(K, 1), &one_dense::<f64>(N, D, K)?, &bench.effort)?.0;
    bench.table.add(Row {
        case: format!("X U and XᵀV in plain loops, {N} × {D}, K = {K}"),
        values: "f64",
        threads: 1,
        best: Some(best),
        result: Outcome::Number(best / ours.best, "× our iteration"),
        ..Row::default()
    });
    Ok(())
}

/// More features than instances: nothing may grow with the square of the features.
pub fn wide(bench: &mut Bench) -> Result {
    let mut sizes = Vec::new();
    for features in [2000, 4000] {
        let data = Synthetic::new(2000, 10);
        let views = Views::new(vec![data.dense::<f64>("a", features)?, data.dense::<f64>("b", features)?])?;
        let volume = Volume::of(&views, 10)?;
        let (megabytes, gigaflop) = (volume.bytes / 1e6, volume.flops_f64 / 1e9);
        let case = format!("2000 × {{{features}, {features}}}, {megabytes} MB, {gigaflop} Gflop");
        sizes.push(bench.iterations(&case, "f64", &views, 10, None)?);
    }
    for (i, threads) in bench.machine.threads().into_iter().enumerate() {
        let growth = sizes[1][i].best / sizes[0][i].best / 2.0;
        bench.table.add(Row {
            case: "twice the features".into(),
            values: "f64",
            threads,
            result: Outcome::Number(growth, "of linear"),
            busy: sizes[0][i].busy || sizes[1][i].busy,
            ..Row::default()
        });
    }
    Ok(())
}

/// A stored entry of a sparse view against an entry of a dense one.
pub fn sparse(bench: &mut Bench) -> Result {
    fn compare<T: Named>(bench: &mut Bench) -> Result
    where
        Vec<T>: Values<'static>,
    {
        let dense = one_dense::<T>(20_000, 1000, 10)?;
        let sparse = one_sparse::<T>(0.03)?;
        let dense_times = bench.iterations("dense 20000 × 1000, K = 10", T::NAME, &dense, 10, None)?;
        let sparse_times = bench.iterations("3 % of 20000 × 4000, K = 10", T::NAME, &sparse, 10, None)?;
        let more_entries = Volume::of(&dense, 10)?.entries / Volume::of(&sparse, 10)?.entries;
        for (i, threads) in bench.machine.threads().into_iter().enumerate() {
            let ratio = sparse_times[i].best / dense_times[i].best * more_entries;
            bench.table.add(Row {
                case: "time per entry".into(),
                values: T::NAME,
                threads,
                result: Outcome::Number(ratio, "× dense"),
                target: Some(Target::AtMost(4.0)),
                busy: sparse_times[i].busy || dense_times[i].busy,
                ..Row::default()
            });
        }
        Ok(())
    }
    compare::<f32>(bench)?;
    compare::<f64>(bench)
}

/// Time against size, one dimension at a time.
pub fn linear(bench: &mut Bench) -> Result {
    type Make = fn(usize) -> Result<Views<'static>>;
    let dimensions: [(&str, Make); 3] = [
        ("10000 instances, dense, d = 1000", |times| one_dense::<f64>(10_000 * times, 1000, 10)),
        ("500 features, dense, N = 20000", |times| one_dense::<f64>(20_000, 500 * times, 10)),
        ("entries, sparse, 20000 × 4000", |times| one_sparse::<f64>(0.03 * times as f64)),
    ];
    for (name, make) in dimensions {
        let sizes = [make(1)?, make(2)?, make(4)?];
        for threads in bench.machine.threads() {
            let mut first = None;
            for views in &sizes {
                let entries = Volume::of(views, 10)?.entries;
                let times = laps(&fit(10, threads), views, &bench.effort)?.0;
                let (base, base_entries) = *first.get_or_insert((times.best, entries));
                let growth = entries / base_entries;
                let row = Row {
                    case: format!("{growth:.1} × {name}"),
                    values: "f64",
                    threads,
                    result: if growth > 1.0 {
                        Outcome::Number(times.best / base / growth, "of linear")
                    } else {
                        Outcome::Nothing
                    },
                    ..Row::default()
                };
                bench.table.add(row.with(times));
            }
        }
    }
    Ok(())
}

/// A whole fit as the number of clusters grows; default options, one thread, measured in CPU time. The first two
/// columns of numbers are times; `× linear` is their ratio divided by the ratio of the numbers of clusters.
pub fn clusters(bench: &mut Bench) -> Result {
    let mut per_cluster = None;
    for clusters in [10, 20, 50, 100, 200] {
        let case = format!("20000 × {{200, 200}}, K = {clusters}");
        let seconds = whole(20_000, clusters, &[200, 200])?;
        let each = seconds.0 / clusters as f64;
        let growth = each / *per_cluster.get_or_insert(each);
        bench.table.add(whole_fit(case, seconds, Outcome::Number(growth, "× linear"), None));
    }
    let seconds = whole(1600, 100, &[64; 3])?;
    let (result, target) = (Outcome::Number(seconds.0, "s"), Some(Target::AtMost(4.0)));
    bench.table.add(whole_fit("1600 × {64, 64, 64}, K = 100".into(), seconds, result, target));
    Ok(())
}

/// Seconds of a fit to planted clusters, from memory to labels, and whether it had to wait for a CPU core.
fn whole(instances: usize, clusters: usize, features: &[usize]) -> Result<(f64, bool)> {
    let data = Synthetic::new(instances, clusters);
    let view = |(v, d): (usize, &usize)| data.dense::<f64>(&format!("v{v}"), *d);
    let views = Views::new(features.iter().enumerate().map(view).collect::<Result<_, _>>()?)?;
    let (start, before) = (Instant::now(), waited());
    black_box(Daimc::new(clusters).threads(1).neighbours(Neighbours::Off).fit(&views)?);
    let seconds = start.elapsed().as_secs_f64();
    Ok((seconds, waited() - before > WAITING * seconds))
}

fn whole_fit(case: String, (best, busy): (f64, bool), result: Outcome, target: Option<Target>) -> Row {
    Row { case, values: "f64", threads: 1, best: Some(best), result, target, busy, ..Row::default() }
}

/// The stages before the first iteration, against thirty iterations; default options.
pub fn start(bench: &mut Bench) -> Result {
    fn cases<T: Named>(bench: &mut Bench) -> Result
    where
        Vec<T>: Values<'static>,
    {
        for (instances, features) in [(20_000, 1000), (200_000, 100)] {
            let views = one_dense::<T>(instances, features, 10)?;
            for threads in bench.machine.threads() {
                let mut best = [f64::INFINITY; 3];
                let mut busy = true;
                for _ in 0..bench.effort.fits {
                    let (times, model) = laps(
                        &Daimc::new(10).threads(threads).neighbours(Neighbours::Off),
                        &views,
                        &bench.effort,
                    )?;
                    busy &= times.busy;
                    let now = [model.timings.prepare, model.timings.initialise, times.best];
                    best.iter_mut().zip(now).for_each(|(best, now)| *best = best.min(now));
                }
                let [prepare, initialise, lap] = best;
                let rows =
                    [("prepare", prepare, None), ("initialise", initialise, Some(Target::AtMost(1.0)))];
                for (what, seconds, target) in rows {
                    bench.table.add(Row {
                        case: format!("{what}, {instances} × {features}, K = 10"),
                        values: T::NAME,
                        threads,
                        best: Some(seconds),
                        result: Outcome::Number(seconds / (30.0 * lap), "× 30 iterations"),
                        target,
                        busy,
                        ..Row::default()
                    });
                }
            }
        }
        Ok(())
    }
    cases::<f32>(bench)?;
    cases::<f64>(bench)
}

/// Digit with default options, from memory to labels, by V alone and with neighbourhoods.
pub fn digit(bench: &mut Bench) -> Result {
    for neighbours in [Neighbours::Off, Neighbours::Auto] {
        memory_to_labels(bench, neighbours)?;
    }
    Ok(())
}

fn memory_to_labels(bench: &mut Bench, neighbours: Neighbours) -> Result {
    for threads in bench.machine.threads() {
        let mut times = Vec::new();
        let mut iterations = 0;
        for _ in 0..4 * bench.effort.fits {
            let views = five_views(0.5)?;
            let (start, before) = (Instant::now(), waited());
            let fit = Daimc::new(10).threads(threads).neighbours(neighbours);
            let model = fit.fit(&Views::new(views)?)?;
            times.push((start.elapsed().as_secs_f64(), waited() - before));
            iterations = model.iterations();
        }
        let row = Row {
            case: format!("Digit, half missing, memory to labels, neighbourhoods {neighbours}"),
            values: "f32",
            threads,
            result: Outcome::Number(iterations as f64, "iterations"),
            ..Row::default()
        };
        bench.table.add(row.with(Laps::of(times)));
    }
    Ok(())
}
