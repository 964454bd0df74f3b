//! The files of a data set: reads them and records their SHA-256.

use std::path::PathBuf;

use daimc_io::{Cells, Reading, Table};
use serde_json::{Value, json};

use crate::harness::{Error, Result};

/// The files of a data set.
pub struct Files {
    /// The folder in `--data`, and the expected files.
    name: &'static str,
    expected: &'static str,
    pub folder: PathBuf,
    /// The files that were read and their SHA-256.
    pub inputs: Vec<Value>,
}

impl Files {
    pub fn new(name: &'static str, expected: &'static str, folder: PathBuf) -> Self {
        Self { name, expected, folder, inputs: Vec::new() }
    }

    /// The path of a file; fails if it is missing.
    pub fn path(&self, file: &str) -> Result<PathBuf> {
        let path = self.folder.join(file);
        if !path.is_file() {
            return Err(Error::Data(format!(
                "{} is not there: the folder {} under --data must hold {}",
                path.display(),
                self.name,
                self.expected
            )));
        }
        Ok(path)
    }

    /// Records that a file was read.
    pub fn note(&mut self, file: &str, sha256: &str) {
        if !self.inputs.iter().any(|input| input[0] == file) {
            self.inputs.push(json!([file, sha256]));
        }
    }

    pub fn text(&mut self, file: &str) -> Result<(PathBuf, String)> {
        let path = self.path(file)?;
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Error::Data(format!("{}: cannot be read: {error}", path.display())))?;
        self.note(file, &daimc_io::sha256(text.as_bytes()));
        Ok((path, text))
    }

    pub fn table(&mut self, file: &str, variable: Option<&str>, transpose: bool) -> Result<Table> {
        let how = Reading { transpose, ..Reading::default() };
        let (table, sha256) = daimc_io::read_hashed(&self.path(file)?, variable, how)?;
        self.note(file, &sha256);
        Ok(table)
    }

    /// Reads whole numbers as classes.
    pub fn classes(&mut self, file: &str, variable: &str) -> Result<Vec<usize>> {
        let table = self.table(file, Some(variable), false)?;
        Ok(dense(table)?.0.into_iter().map(|class| class as usize).collect())
    }
}

/// The values of a dense table and its number of columns.
pub fn dense(table: Table) -> Result<(Vec<f64>, usize)> {
    let values = match table.cells {
        Cells::DenseF64(values) => values,
        Cells::DenseF32(values) => values.into_iter().map(f64::from).collect(),
        Cells::SparseF32(_) | Cells::SparseF64(_) | Cells::Stored(_) => {
            let place = table.path.display();
            return Err(Error::Data(format!("{place}: a dense array is expected, this one is sparse")));
        }
    };
    Ok((values, table.columns))
}
