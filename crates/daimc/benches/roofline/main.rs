//! How close a fit comes to the limits of the computer: `cargo bench --features digit --bench roofline`.
//!
//! The peak rates are measured in the same run, before each section, and the best are kept. No iteration can be faster
//! than its **roofline**, the larger of two times:
//!
//! ```text
//! bytes of the data / stream bandwidth          each value is read at least once,
//! Σ_v 4 · present · d_v · K / peak flops        and takes part in X U and in XᵀV.
//! ```
//!
//! Every row of the table is a claim with its number and, if there is one, its target. The minimum of all times is
//! judged, because other programs can only increase it.
//!
//! `-- quick` takes fewer measurements; any other word selects the sections whose names contain it.

#![forbid(unsafe_code)]

mod large;
mod machine;
mod sections;
mod table;
mod timing;

use machine::Machine;
use table::Table;
use timing::Effort;

/// The context of every section.
struct Bench {
    machine: Machine,
    effort: Effort,
    table: Table,
}

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

type Section = fn(&mut Bench) -> Result;

const SECTIONS: [(&str, Section); 10] = [
    ("iteration", sections::iteration),
    ("holes", sections::holes),
    ("naive", sections::naive),
    ("wide", sections::wide),
    ("sparse", sections::sparse),
    ("linear", sections::linear),
    ("clusters", sections::clusters),
    ("start", sections::start),
    ("digit", sections::digit),
    ("large", large::report),
];

fn main() -> Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == large::CHILD) {
        return large::child();
    }
    // Cargo says `--bench` when it runs benchmarks and nothing when it runs tests.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let words = || arguments.iter().filter(|word| !word.starts_with('-'));
    let quick = words().any(|word| word == "quick");
    let wanted: Vec<&String> = words().filter(|word| *word != "quick").collect();

    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let mut bench = Bench { machine: Machine::new(), effort, table: Table::default() };
    for (name, section) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())) {
            eprintln!("measuring: {name}");
            bench.machine.measure(bench.effort.peaks);
            bench.table.section(name);
            section(&mut bench)?;
        }
    }
    bench.table.print(&bench.machine);
    Ok(())
}
