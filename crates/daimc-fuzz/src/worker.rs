//! A worker process, which reads mutants one after another on one thread.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use daimc_fuzz::{Random, mutate};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::MEMORY;
use crate::dump::Dump;
use crate::envelope::Envelope;
use crate::target::{How, Outcome, Target};

/// The maximum CPU time of a case.
const LONGEST: Duration = Duration::from_secs(5);

/// The maximum memory of a case in addition to twenty times its size.
const BUFFERS: usize = 64 << 20;

/// The address space limit of the process, which protects the machine.
const ADDRESSES: u64 = 4 << 30;

/// The number of consecutive cases of one target.
const BATCH: u64 = 64;

/// The interval of progress reports.
const REPORT: Duration = Duration::from_millis(500);

/// The settings of a worker.
pub struct Settings {
    pub number: u64,
    pub seed: u64,
    pub cases: u64,
    pub until: Instant,
    pub scratch: PathBuf,
    pub findings: PathBuf,
    pub only: Option<String>,
    pub dump: Option<PathBuf>,
}

/// Counts of the cases of a target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub cases: u64,
    pub read: u64,
    pub findings: u64,
    pub slowest: Duration,
    /// The maximum memory in excess of twenty times the size of the file.
    pub memory: usize,
}

impl Count {
    pub fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.read += other.read;
        self.findings += other.findings;
        self.slowest = self.slowest.max(other.slowest);
        self.memory = self.memory.max(other.memory);
    }
}

/// A seed, and its content if it has a container.
struct Seed {
    whole: Vec<u8>,
    inner: Option<Envelope>,
}

/// Reads mutants until all cases are done or the time is over, and prints counts for the driver.
pub fn work(settings: &Settings) -> Result<(), String> {
    let limit = Rlimit { current: Some(ADDRESSES), maximum: Some(ADDRESSES) };
    setrlimit(Resource::As, limit).map_err(|error| format!("cannot limit the memory: {error}"))?;
    std::panic::set_hook(Box::new(|_| ()));
    let mut targets = Target::all(&settings.scratch)?;
    targets.retain(|target| settings.only.as_deref().is_none_or(|only| only == target.name));
    if targets.is_empty() {
        return Err("no such reader".into());
    }
    let seeds: Vec<Vec<Seed>> = targets
        .iter()
        .map(|target| {
            let seed = |whole: &Vec<u8>| Seed { whole: whole.clone(), inner: Envelope::open(whole) };
            target.seeds.iter().map(seed).collect()
        })
        .collect();
    let mut dump = settings.dump.as_deref().map(Dump::begin).transpose()?;
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    let mut reported = Instant::now();
    let mut case = 0;
    while case < settings.cases && Instant::now() < settings.until {
        let which = (case / BATCH) as usize % targets.len();
        let target = &targets[which];
        // If this process dies, the driver finds the mutant through this file.
        let reading = settings.scratch.join("reading");
        fs::write(reading, target.path().as_os_str().as_encoded_bytes())
            .map_err(|error| error.to_string())?;
        let count = counts.entry(target.name).or_default();
        for case in case..(case + BATCH).min(settings.cases) {
            let mut random = Random::of_case(settings.seed, settings.number, case);
            let mutant = mutant(&seeds[which], &mut random);
            let how = if dump.is_some() { How::default() } else { target.how(&mut random) };
            fs::write(target.path(), &mutant).map_err(|error| error.to_string())?;
            let (outcome, taken, time) = measured(target, &mutant, how);
            count.cases += 1;
            count.slowest = count.slowest.max(time);
            let beyond = taken.saturating_sub(20 * mutant.len());
            count.memory = count.memory.max(beyond);
            let fault = match &outcome {
                Err(()) => Some("panic".to_owned()),
                Ok(Outcome::Differs) => Some("differs-on-disk".to_owned()),
                Ok(_) if beyond > BUFFERS => Some(format!("memory-{}-MB", taken >> 20)),
                Ok(_) if time > LONGEST => Some(format!("time-{}-s", time.as_secs())),
                Ok(_) => None,
            };
            if let Some(fault) = fault {
                count.findings += 1;
                let name = format!("{}-{fault}-{}-{case}-{how}", target.name, settings.number);
                keep(&settings.findings, target.path(), &name)?;
            }
            if let Ok(Outcome::Read(table)) = outcome {
                count.read += 1;
                if let (Some(dump), Some(table)) = (&mut dump, table) {
                    dump.add(target, &mutant, how, &table)?;
                }
            }
        }
        case += BATCH;
        if reported.elapsed() > REPORT {
            report(&counts)?;
            reported = Instant::now();
        }
    }
    report(&counts)
}

/// Reads a file of a target with various options, and prints memory and time.
pub fn replay(path: &Path, name: &str, scratch: &Path) -> Result<(), String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let targets = Target::all(scratch)?;
    let target = targets.iter().find(|target| target.name == name).ok_or("no such reader")?;
    fs::write(target.path(), &bytes).map_err(|error| error.to_string())?;
    for case in 0..200 {
        let how = target.how(&mut Random::of_case(0, 0, case));
        println!("{how}");
        let (_, taken, time) = measured(target, &bytes, how);
        println!("  {} MB, {:.2} s", taken >> 20, time.as_secs_f64());
    }
    Ok(())
}

fn measured(target: &Target, bytes: &[u8], how: How) -> (Result<Outcome, ()>, usize, Duration) {
    let start = cpu_time();
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let outcome = catch_unwind(AssertUnwindSafe(|| target.read(bytes, how))).map_err(drop);
    let taken = MEMORY.peak_usage().saturating_sub(before);
    (outcome, taken, cpu_time().saturating_sub(start))
}

/// The CPU time of this process, which does not depend on other load.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn mutant(seeds: &[Seed], random: &mut Random) -> Vec<u8> {
    let seed = random.pick(seeds);
    let other = random.pick(seeds);
    match &seed.inner {
        Some(envelope) if !random.once_in(3) => {
            envelope.wrap(random, |part, random| mutate(part, &other.whole, random))
        }
        _ => {
            let mut bytes = seed.whole.clone();
            mutate(&mut bytes, &other.whole, random);
            bytes
        }
    }
}

/// Copies a mutant to the folder of findings.
pub fn keep(findings: &Path, mutant: &Path, name: &str) -> Result<(), String> {
    let file = mutant.file_name().unwrap_or_default().to_string_lossy();
    let copied =
        fs::create_dir_all(findings).and_then(|()| fs::copy(mutant, findings.join(format!("{name}-{file}"))));
    copied.map(|_| ()).map_err(|error| format!("{}: {error}", findings.display()))
}

/// Prints a line per target.
fn report(counts: &BTreeMap<&str, Count>) -> Result<(), String> {
    let mut out = io::stdout().lock();
    for (name, Count { cases, read, findings, slowest, memory }) in counts {
        let micros = slowest.as_micros();
        writeln!(out, "{name} {cases} {read} {findings} {micros} {memory}")
            .map_err(|error| error.to_string())?;
    }
    writeln!(out, "continue").and_then(|()| out.flush()).map_err(|error| error.to_string())
}
