//! A million instances, in a separate process so that its peak memory is measured alone.

use std::process::Command;

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Views};

use crate::table::{Outcome, Row, Target};
use crate::timing::Volume;
use crate::{Bench, Result};

/// The argument that starts this program as the child.
pub const CHILD: &str = "--large-child";

const INSTANCES: usize = 1_000_000;
const FEATURES: usize = 128;
const CLUSTERS: usize = 20;
const ITERATIONS: usize = 10;

/// Generates the data, fits, and prints four times in seconds, iterations, bytes of the data and of the peak.
pub fn child() -> Result {
    let data = Synthetic::new(INSTANCES, CLUSTERS).noise(1.0);
    let views = Views::new(vec![data.dense::<f32>("a", FEATURES)?, data.dense::<f32>("b", FEATURES)?])?;
    let model = Daimc::new(CLUSTERS).max_iterations(ITERATIONS).fit(&views)?;
    let times = &model.timings;
    let bytes = Volume::of(&views, CLUSTERS)?.bytes;
    let peak = peak_bytes().unwrap_or(f64::NAN);
    print!("{} {} {} {} ", times.prepare, times.initialise, times.iterate, times.assign);
    println!("{} {bytes} {peak}", model.iterations());
    Ok(())
}

/// The peak memory of this process, if the system reports it.
fn peak_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(1024.0 * kilobytes)
}

/// Runs the child and reports what it printed.
pub fn report(bench: &mut Bench) -> Result {
    let [prepare, initialise, iterate, assign, iterations, bytes, peak] = run_child()?;
    let size = format!("10⁶ × {{{FEATURES}, {FEATURES}}}, K = {CLUSTERS}");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let row = |what: &str| Row { case: format!("{what}, {size}"), values: "f32", threads, ..Row::default() };
    let steps = [
        ("prepare".into(), prepare),
        ("initialise".into(), initialise),
        (format!("{iterations} iterations"), iterate),
        ("assign".into(), assign),
        ("whole fit".into(), prepare + initialise + iterate + assign),
    ];
    for (step, seconds) in steps {
        bench.table.add(Row { best: Some(seconds), ..row(&step) });
    }
    let result = Outcome::Number(peak / bytes, "× the data");
    bench.table.add(Row { result, target: Some(Target::AtMost(1.25)), ..row("peak memory") });
    Ok(())
}

fn run_child() -> Result<[f64; 7]> {
    let output = Command::new(std::env::current_exe()?).arg(CHILD).output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    Ok(numbers.try_into().map_err(|_| "the child process failed")?)
}
