//! Starts and monitors the workers, and sums their counts.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::Arguments;
use crate::worker::{Count, keep};

/// A worker without output for this long hangs. It reports twice a second, but may be delayed on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts by target.
type Counts = BTreeMap<String, Count>;

/// Runs all workers to their end; returns the number of findings.
pub fn run(arguments: &Arguments, scratch: &Path) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let workers: Vec<_> = (0..arguments.jobs)
        .map(|number| {
            let (program, arguments, scratch) = (program.clone(), arguments.clone(), scratch.to_owned());
            thread::spawn(move || watch(&program, &arguments, number, &scratch.join(number.to_string())))
        })
        .collect();
    let mut total = Counts::new();
    for worker in workers {
        let counts = worker.join().map_err(|_| "a thread panicked")??;
        add(&mut total, counts);
    }
    print(&total);
    let findings = total.values().map(|count| count.findings).sum();
    if findings > 0 {
        eprintln!("{findings} findings are in {}", arguments.findings.display());
    }
    Ok(findings)
}

/// Runs one worker. A worker that died or hangs is a finding, and is replaced by another.
fn watch(program: &PathBuf, arguments: &Arguments, number: u64, scratch: &Path) -> Result<Counts, String> {
    let mut total = Counts::new();
    let begun = std::time::Instant::now();
    for attempt in 0.. {
        let left = arguments.seconds.saturating_sub(begun.elapsed().as_secs());
        let done: u64 = total.values().map(|count| count.cases).sum();
        let cases = arguments.cases.div_ceil(arguments.jobs).saturating_sub(done);
        if left == 0 || cases == 0 {
            break;
        }
        std::fs::create_dir_all(scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        let mut command = Command::new(program);
        command.arg("--worker").arg(number.to_string()).arg("--scratch").arg(scratch);
        // Another attempt runs other cases, not the one that ended the previous attempt.
        command.arg("--seed").arg((arguments.seed + 1_000_003 * attempt).to_string());
        command.args(["--seconds", &left.to_string(), "--cases", &cases.to_string()]);
        command.arg("--findings").arg(&arguments.findings);
        if let Some(only) = &arguments.only {
            command.args(["--only", only]);
        }
        if let Some(dump) = &arguments.dump {
            command.arg("--dump").arg(dump.join(number.to_string()));
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start a worker: {error}"))?;
        let lines = lines_of(&mut child);
        let mut counts = Counts::new();
        let hangs = loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    if let Some((name, count)) = parse(&line) {
                        counts.insert(name, count);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break false,
                Err(RecvTimeoutError::Timeout) => break true,
            }
        };
        if hangs {
            let _ = child.kill();
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        if status.code() == Some(2) && counts.is_empty() {
            return Err("a worker failed to start".into());
        }
        if hangs || !status.success() {
            let reading = std::fs::read_to_string(scratch.join("reading")).unwrap_or_default();
            let mutant = PathBuf::from(reading);
            let target = mutant.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            let what =
                if hangs { "hang".into() } else { status.to_string().replace([' ', ':', '(', ')'], "-") };
            keep(&arguments.findings, &mutant, &format!("{target}-{what}-{number}-{attempt}"))?;
            counts.entry(target.into_owned()).or_default().findings += 1;
        }
        add(&mut total, counts);
    }
    Ok(total)
}

fn add(total: &mut Counts, counts: Counts) {
    for (name, count) in counts {
        total.entry(name).or_default().add(&count);
    }
}

/// The lines that a worker prints.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(out) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

fn parse(line: &str) -> Option<(String, Count)> {
    let mut words = line.split(' ');
    let name = words.next()?.to_owned();
    let mut number = || words.next()?.parse::<u64>().ok();
    let (cases, read, findings) = (number()?, number()?, number()?);
    let slowest = Duration::from_micros(number()?);
    Some((name, Count { cases, read, findings, slowest, memory: usize::try_from(number()?).ok()? }))
}

fn print(counts: &Counts) {
    println!("reader         cases   still read   findings   slowest (s)   memory beyond 20 x size (MB)");
    let mut sum = Count::default();
    for (name, count) in counts {
        row(name, count);
        sum.add(count);
    }
    row("all", &sum);
}

fn row(name: &str, Count { cases, read, findings, slowest, memory }: &Count) {
    let (slowest, memory) = (slowest.as_secs_f64(), *memory as f64 / 1e6);
    println!("{name:<8} {cases:>11} {read:>12} {findings:>10} {slowest:>13.3} {memory:>30.1}");
}
