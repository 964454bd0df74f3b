//! Means and spreads over the seeds.

use std::fmt::Write;

use serde::Serialize;

use super::ledger::Row;
use super::methods::Contender;

/// A mean and the standard deviation of what it is the mean of.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Mean {
    pub mean: f64,
    pub sd: f64,
}

impl Mean {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / count;
        let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
        Self { mean, sd: if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 } }
    }
}

/// A method at one share of missing instances.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub missing: f64,
    pub method: String,
    /// The setting; the best where there were several.
    pub setting: String,
    /// How many settings the classes chose from.
    pub settings: usize,
    pub runs: usize,
    pub ac: Mean,
    pub nmi: Mean,
    pub ari: Mean,
    pub seconds: f64,
    pub iterations: f64,
}

/// A line for each method and share, in the order of the methods. Where a method has several settings, that of the highest
/// mean AC: the classes choose it, and the line says so.
pub fn summarise(rows: &[Row], contenders: &[Contender], rates: &[f64], seeds: u64) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for &rate in rates {
        for contender in contenders {
            let own: Vec<&Row> = rows
                .iter()
                .filter(|row| {
                    let cell = &row.cell;
                    let same = cell.method == contender.method && cell.setting == contender.setting;
                    same && cell.rate == rate && cell.seed < seeds
                })
                .collect();
            if own.is_empty() {
                continue;
            }
            let mean = |of: fn(&Row) -> f64| Mean::of(own.iter().map(move |row| of(row)));
            let line = Line {
                missing: rate,
                method: contender.method.into(),
                setting: contender.setting.clone(),
                settings: 1,
                runs: own.len(),
                ac: mean(|row| row.ac),
                nmi: mean(|row| row.nmi),
                ari: mean(|row| row.ari),
                seconds: mean(|row| row.seconds).mean,
                iterations: mean(|row| row.iterations as f64).mean,
            };
            match lines.iter_mut().find(|other| other.method == line.method && other.missing == rate) {
                None => lines.push(line),
                Some(other) => {
                    let settings = other.settings + 1;
                    if line.ac.mean > other.ac.mean {
                        *other = line;
                    }
                    other.settings = settings;
                }
            }
        }
    }
    lines
}

pub fn markdown(lines: &[Line]) -> String {
    let mut out = String::from(
        "| missing | method | AC | NMI | ARI | seconds | iterations | runs |\n|---|---|---|---|---|---|---|---|\n",
    );
    for line in lines {
        let name = match line.settings {
            1 => line.method.clone(),
            count => format!("{} ({}; best of {count}, by the classes)", line.method, line.setting),
        };
        let score = |mean: Mean| format!("{:.3} ± {:.3}", mean.mean, mean.sd);
        let _ = writeln!(
            out,
            "| {} | {name} | {} | {} | {} | {:.2} | {:.0} | {} |",
            line.missing,
            score(line.ac),
            score(line.nmi),
            score(line.ari),
            line.seconds,
            line.iterations,
            line.runs
        );
    }
    out
}
