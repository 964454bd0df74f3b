//! Means and standard deviations over the seeds, and tables of them.

use std::fmt::Write;

use serde::Serialize;

use super::contender::Contender;
use super::ledger::Row;

/// A mean and a standard deviation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the values, with n − 1.
    pub sd: f64,
}

impl Mean {
    /// The mean and the standard deviation of some values.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / count;
        let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
        Self { mean, sd: if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 } }
    }
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} ± {:.3}", self.mean, self.sd)
    }
}

/// The scores of a method on a data set at one share of missing instances.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// The data set.
    pub data: String,
    /// The share of missing instances.
    pub missing: f64,
    /// The method.
    pub method: String,
    /// The setting; the best of several.
    pub setting: String,
    /// The number of settings that the classes chose from.
    pub settings: usize,
    /// The number of runs.
    pub runs: usize,
    /// Accuracy, with the best matching of clusters and classes.
    pub ac: Mean,
    /// Normalised mutual information.
    pub nmi: Mean,
    /// Adjusted Rand index.
    pub ari: Mean,
    /// Seconds of a run.
    pub seconds: f64,
    /// Iterations of a run.
    pub iterations: f64,
    /// The mean confidence of the instances, over the runs that report one.
    pub confidence: Option<f64>,
}

impl Line {
    /// The means over rows of different seeds; `None` if there are no rows.
    pub fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<Self> {
        let rows: Vec<&Row> = rows.collect();
        let cell = rows.first()?.cell.clone();
        let sure = rows.iter().filter_map(|row| row.confidence);
        let mean = |of: fn(&Row) -> f64| Mean::of(rows.iter().map(move |row| of(row)));
        Some(Self {
            data: cell.data,
            missing: cell.rate,
            method: cell.method,
            setting: cell.setting,
            settings: 1,
            runs: rows.len(),
            ac: mean(|row| row.ac),
            nmi: mean(|row| row.nmi),
            ari: mean(|row| row.ari),
            seconds: mean(|row| row.seconds).mean,
            iterations: mean(|row| row.iterations as f64).mean,
            confidence: Some(Mean::of(sure).mean).filter(|mean| !mean.is_nan()),
        })
    }

    /// The method, with its setting if the classes chose it.
    pub fn name(&self) -> String {
        match self.settings {
            1 => self.method.clone(),
            count => format!("{} ({}; best of {count}, by the classes)", self.method, self.setting),
        }
    }
}

/// The line with the highest mean AC among these contenders, chosen by the classes; `settings` is their number.
pub fn best<'a>(
    rows: &[Row],
    data: &str,
    rate: f64,
    contenders: impl Iterator<Item = &'a Contender>,
) -> Option<Line> {
    let line = |contender: &Contender| {
        let own = rows.iter().filter(|row| {
            let cell = &row.cell;
            let same = cell.method == contender.method && cell.setting == contender.setting;
            same && cell.data == data && cell.rate == rate
        });
        Line::of(own)
    };
    let lines: Vec<Line> = contenders.filter_map(line).collect();
    let settings = lines.len();
    // Of equal settings the first.
    let best = lines.into_iter().reduce(|best, line| if line.ac.mean > best.ac.mean { line } else { best });
    best.map(|line| Line { settings, ..line })
}

/// A table of formatted cells.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The column titles.
    pub header: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(header: &[&str]) -> Self {
        Self { header: header.iter().map(|name| (*name).into()).collect(), rows: Vec::new() }
    }

    /// The table in Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            format!(
                "| {} |\n",
                cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | ")
            )
        };
        let mut out = line(&self.header);
        let _ = writeln!(out, "|{}", "---|".repeat(self.header.len()));
        self.rows.iter().for_each(|row| out.push_str(&line(row)));
        out
    }
}

/// The table of a comparison: scores, time and runs of every method.
pub fn comparison(lines: &[Line]) -> Table {
    let mut table = Table::new(&["missing", "method", "AC", "NMI", "ARI", "seconds", "iterations", "runs"]);
    for line in lines {
        table.rows.push(vec![
            line.missing.to_string(),
            line.name(),
            line.ac.to_string(),
            line.nmi.to_string(),
            line.ari.to_string(),
            format!("{:.2}", line.seconds),
            format!("{:.0}", line.iterations),
            line.runs.to_string(),
        ]);
    }
    table
}
