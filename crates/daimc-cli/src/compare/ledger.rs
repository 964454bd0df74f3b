//! What is finished: a row per run, kept in results.tsv as it is found.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::results::field;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub rate: f64,
    pub method: String,
    pub setting: String,
    pub seed: u64,
}

/// One run and what came of it.
#[derive(Clone, Debug)]
pub struct Row {
    pub cell: Cell,
    pub ac: f64,
    pub nmi: f64,
    pub ari: f64,
    pub seconds: f64,
    pub iterations: usize,
}

const HEADER: &str = "missing\tmethod\tsetting\tseed\tac\tnmi\tari\tseconds\titerations";

/// The rows that are finished.
pub struct Ledger {
    path: PathBuf,
    state: Mutex<(Vec<Row>, File)>,
}

impl Ledger {
    /// Opens the ledger of a folder; rows count only if they come from the same data and options, which `key` tells.
    pub fn open(folder: &Path, key: &Value) -> Result<Self> {
        let fail = |path: &Path, error: std::io::Error| Failure::output(&path.display().to_string(), &error);
        fs::create_dir_all(folder).map_err(|error| fail(folder, error))?;
        let (path, about) = (folder.join("results.tsv"), folder.join("compare.json"));
        let key = format!("{key:#}\n");
        if path.exists() && fs::read_to_string(&about).ok().as_ref() != Some(&key) {
            return Err(Failure::Usage(format!(
                "{}: holds the results of other data or options; choose another folder",
                folder.display()
            )));
        }
        crate::folder::write_file(Some(&about), |out| out.write_all(key.as_bytes()))?;
        let text = if path.exists() {
            fs::read_to_string(&path).map_err(|error| fail(&path, error))?
        } else {
            String::new()
        };
        // A row that was cut off when the program was killed has no end of line.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let rows: Vec<Row> = whole.lines().filter_map(parse).collect();
        let mut start = format!("{HEADER}\n");
        rows.iter().for_each(|row| start.push_str(&line(row)));
        crate::folder::write_file(Some(&path), |out| out.write_all(start.as_bytes()))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(|error| fail(&path, error))?;
        Ok(Self { path, state: Mutex::new((rows, file)) })
    }

    fn state(&self) -> MutexGuard<'_, (Vec<Row>, File)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has(&self, cell: &Cell) -> bool {
        self.state().0.iter().any(|row| row.cell == *cell)
    }

    /// Keeps a row.
    pub fn add(&self, row: Row) -> Result<()> {
        let mut state = self.state();
        let written = state.1.write_all(line(&row).as_bytes());
        written.map_err(|error| Failure::output(&self.path.display().to_string(), &error))?;
        state.0.push(row);
        Ok(())
    }

    pub fn rows(&self) -> Vec<Row> {
        self.state().0.clone()
    }
}

fn line(row: &Row) -> String {
    let Row { cell: Cell { rate, method, setting, seed }, ac, nmi, ari, seconds, iterations } = row;
    format!("{rate}\t{method}\t{}\t{seed}\t{ac}\t{nmi}\t{ari}\t{seconds:.4}\t{iterations}\n", field(setting))
}

fn parse(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [rate, method, setting, seed, ac, nmi, ari, seconds, iterations] = fields[..] else { return None };
    Some(Row {
        cell: Cell {
            rate: rate.parse().ok()?,
            method: method.into(),
            setting: setting.trim_matches('"').replace("\"\"", "\""),
            seed: seed.parse().ok()?,
        },
        ac: ac.parse().ok()?,
        nmi: nmi.parse().ok()?,
        ari: ari.parse().ok()?,
        seconds: seconds.parse().ok()?,
        iterations: iterations.parse().ok()?,
    })
}
