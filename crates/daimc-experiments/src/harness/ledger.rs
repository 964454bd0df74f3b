//! The finished runs: a row of results.tsv each, appended as soon as the run ends.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use daimc_files::Folder;
use serde_json::Value;

use crate::harness::{Error, Result};

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub experiment: String,
    pub data: String,
    pub rate: f64,
    pub method: String,
    pub setting: String,
    pub seed: u64,
}

impl Cell {
    /// Its fields in results.tsv.
    fn key(&self) -> String {
        let Self { experiment, data, rate, method, setting, seed } = self;
        let plain = |text: &str| text.replace(['\t', '\n', '\r', '"'], " ");
        format!("{experiment}\t{}\t{rate}\t{method}\t{}\t{seed}", plain(data), plain(setting))
    }
}

/// A run and its result; scores are NaN if no class is known.
#[derive(Clone, Debug)]
pub struct Row {
    pub cell: Cell,
    pub ac: f64,
    pub nmi: f64,
    pub ari: f64,
    pub seconds: f64,
    pub iterations: usize,
    /// The mean confidence of the instances, if the method reports one.
    pub confidence: Option<f64>,
}

const HEADER: &str =
    "experiment\tdata\trate\tmethod\tsetting\tseed\tac\tnmi\tari\tseconds\titerations\tconfidence";

/// The finished rows of a folder.
pub struct Ledger {
    path: PathBuf,
    state: Mutex<Contents>,
}

struct Contents {
    rows: Vec<Row>,
    keys: HashSet<String>,
    file: File,
    /// Holds the lock of the folder.
    folder: Folder,
}

impl Ledger {
    /// Opens the ledger of a folder. Fails if its rows come from other data or options than those of `key`, which the file `about`
    /// records.
    pub fn open(folder: &Path, about: &str, key: &Value) -> Result<Self> {
        let fail = |path: &Path, source| daimc_files::Error::Io { path: path.to_owned(), source };
        let mut own = Folder::begin(folder, true)?;
        let path = folder.join("results.tsv");
        let key = format!("{key:#}\n");
        if path.exists() && fs::read_to_string(folder.join(about)).ok().as_ref() != Some(&key) {
            return Err(Error::Usage(format!(
                "{}: holds the results of other data or options; choose another folder",
                folder.display()
            )));
        }
        let text = if path.exists() {
            fs::read_to_string(&path).map_err(|error| fail(&path, error))?
        } else {
            String::new()
        };
        // A row that was truncated when the program was killed has no end of line.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let rows: Vec<Row> = whole.lines().filter_map(parse).collect();
        let mut start = format!("{HEADER}\n");
        rows.iter().for_each(|row| start.push_str(&line(row)));
        own.write(about, |out| out.write_all(key.as_bytes()))?;
        own.write("results.tsv", |out| out.write_all(start.as_bytes()))?;
        own.commit()?;
        let file = OpenOptions::new().append(true).open(&path).map_err(|error| fail(&path, error))?;
        let keys = rows.iter().map(|row| row.cell.key()).collect();
        Ok(Self { path, state: Mutex::new(Contents { rows, keys, file, folder: own }) })
    }

    fn state(&self) -> MutexGuard<'_, Contents> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has(&self, cell: &Cell) -> bool {
        self.state().keys.contains(&cell.key())
    }

    /// Appends a row.
    pub fn add(&self, row: Row) -> Result<()> {
        let mut state = self.state();
        let written = state.file.write_all(line(&row).as_bytes()).and_then(|()| state.file.sync_data());
        written.map_err(|source| daimc_files::Error::Io { path: self.path.clone(), source })?;
        state.keys.insert(row.cell.key());
        state.rows.push(row);
        Ok(())
    }

    /// Writes files, each a name and a text, to the folder, atomically as a group.
    pub fn publish(&self, files: impl IntoIterator<Item = (String, String)>) -> Result<()> {
        let folder = &mut self.state().folder;
        for (name, text) in files {
            folder.write(&name, |out| out.write_all(text.as_bytes()))?;
        }
        Ok(folder.commit()?)
    }

    /// The finished rows of these seeds.
    pub fn rows(&self, seeds: u64) -> Vec<Row> {
        self.state().rows.iter().filter(|row| row.cell.seed < seeds).cloned().collect()
    }
}

fn line(row: &Row) -> String {
    let Row { cell, ac, nmi, ari, seconds, iterations, confidence } = row;
    let confidence = confidence.map_or_else(String::new, |confidence| confidence.to_string());
    format!("{}\t{ac}\t{nmi}\t{ari}\t{seconds:.4}\t{iterations}\t{confidence}\n", cell.key())
}

fn parse(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [experiment, data, rate, method, setting, seed, ac, nmi, ari, seconds, iterations, confidence] =
        fields[..]
    else {
        return None;
    };
    let [experiment, data, method, setting] = [experiment, data, method, setting].map(String::from);
    Some(Row {
        cell: Cell { experiment, data, rate: rate.parse().ok()?, method, setting, seed: seed.parse().ok()? },
        ac: ac.parse().ok()?,
        nmi: nmi.parse().ok()?,
        ari: ari.parse().ok()?,
        seconds: seconds.parse().ok()?,
        iterations: iterations.parse().ok()?,
        confidence: if confidence.is_empty() { None } else { Some(confidence.parse().ok()?) },
    })
}
