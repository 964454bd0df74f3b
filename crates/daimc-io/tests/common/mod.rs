//! Helpers of several test files.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use daimc_io::{Cells, Csr, Reading, Table, read};
use serde_json::Value;
use tempfile::TempDir;

/// A folder of files that is removed after the test.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

/// Reads a file as it is.
pub fn table(path: &Path) -> Table {
    read(path, None, Reading::default()).unwrap()
}

/// The error of a file, without its folder.
pub fn refused(path: &Path, how: Reading) -> String {
    bare(read(path, None, how).unwrap_err(), path)
}

/// A message without folders.
pub fn bare(error: impl std::fmt::Display, path: &Path) -> String {
    error.to_string().replace(&format!("{}/", path.parent().unwrap().display()), "")
}

/// The names of a table, as it has them.
#[allow(clippy::unnecessary_wraps)] // It is compared with a field that may be absent.
pub fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(ToString::to_string).collect())
}

/// Files of every format, written by other libraries, and their expected contents.
pub struct Formats {
    pub folder: TempDir,
    pub tables: Vec<Value>,
    pub errors: Vec<Value>,
}

impl Formats {
    /// Writes the files. `None` without a Python that has the libraries.
    pub fn make() -> Option<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = std::env::var_os("DAIMC_PYTHON").map(PathBuf::from);
        let python = python.unwrap_or_else(|| here.join("../../target/venv/bin/python"));
        if !python.exists() {
            skip(&format!("no Python at {}; `make test` sets it up, or set DAIMC_PYTHON", python.display()));
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let script = here.join("tests/python/make_formats.py");
        let status = Command::new(python).arg(script).arg(folder.path()).status().unwrap();
        assert!(status.success(), "the script that writes the files failed");
        let expected = std::fs::read(folder.path().join("expected.json")).unwrap();
        let mut expected: Value = serde_json::from_slice(&expected).unwrap();
        let mut list = |name: &str| match expected[name].take() {
            Value::Array(list) => list,
            other => panic!("{other}"),
        };
        Some(Self { tables: list("tables"), errors: list("errors"), folder })
    }

    /// The path of a file.
    pub fn path(&self, name: &Value) -> PathBuf {
        self.folder.path().join(name.as_str().unwrap())
    }
}

/// Reports that a test is skipped because something is missing; with `DAIMC_STRICT` that is a failure.
pub fn skip(reason: &str) {
    assert!(std::env::var_os("DAIMC_STRICT").is_none_or(|strict| strict != "1"), "{reason}");
    println!("skipped: {reason}");
}

/// A file or folder that is not part of the repository, if it exists.
pub fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !path.exists() {
        skip(&format!("{} is not there", path.display()));
        return None;
    }
    Some(path)
}

/// The values of a table in row-major order; also checks that a sparse table is sorted.
pub fn values(table: &Table) -> Vec<f64> {
    match &table.cells {
        Cells::DenseF32(values) => values.iter().map(|&value| f64::from(value)).collect(),
        Cells::DenseF64(values) => values.clone(),
        Cells::SparseF32(csr) => fill(table, csr),
        Cells::SparseF64(csr) => fill(table, csr),
        Cells::Stored(_) => panic!("the values are on disk"),
    }
}

fn fill<T: Copy + Into<f64>>(table: &Table, csr: &Csr<T>) -> Vec<f64> {
    assert_eq!(csr.offsets.len(), table.rows + 1);
    assert_eq!(csr.columns.len(), csr.values.len());
    assert_eq!(csr.offsets.last(), Some(&csr.values.len()));
    let mut values = vec![0.0; table.rows * table.columns];
    for row in 0..table.rows {
        let entries = csr.offsets[row]..csr.offsets[row + 1];
        assert!(csr.columns[entries.clone()].is_sorted_by(|a, b| a < b), "row {row}");
        for k in entries {
            values[row * table.columns + csr.columns[k] as usize] = csr.values[k].into();
        }
    }
    values
}

/// A row-major matrix in column-major order.
pub fn turned(values: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|j| (0..rows).map(move |i| values[i * columns + j])).collect()
}
