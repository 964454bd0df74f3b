//! Reads a table and prints its size, the seconds, and the peak of the memory (on Linux).
//!
//! ```text
//! cargo run --release -p daimc-io --example read -- table.csv [--transpose] [--no-ids] [--f32] [--hash]
//! ```

use std::path::Path;
use std::time::Instant;

use daimc_io::{Precision, Reading, read, read_hashed};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let Some(path) = arguments.iter().find(|argument| !argument.starts_with("--")) else {
        eprintln!("which file?");
        std::process::exit(2);
    };
    let how = Reading {
        transpose: given("--transpose"),
        no_ids: given("--no-ids"),
        precision: given("--f32").then_some(Precision::F32),
        ..Reading::default()
    };
    let start = Instant::now();
    let path = Path::new(path);
    let table = if given("--hash") {
        read_hashed(path, None, how).map(|(table, _)| table)
    } else {
        read(path, None, how)
    };
    match table {
        Ok(table) => {
            let seconds = start.elapsed().as_secs_f64();
            println!("{} rows, {} columns, {seconds:.2} s, {}", table.rows, table.columns, peak());
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(3);
        }
    }
}

/// The peak of the memory, reported by the kernel.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<f64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kib.map_or("peak memory unknown".into(), |kib| format!("peak memory {:.0} MB", kib * 1024.0 / 1e6))
}
