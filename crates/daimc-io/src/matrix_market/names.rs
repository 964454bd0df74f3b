//! Names of instances and features in companion files of a matrix.
//!
//! Those of `x.mtx` or `x.mtx.gz` are `x.ids`, `x.terms` and the like, also with `.txt` or `.tsv` and compressed.
//! Those of `…matrix.mtx`, which single-cell software writes, can also be `…barcodes.tsv` and `…features.tsv`.

use std::path::{Path, PathBuf};

use crate::paths::{ENDINGS, first_existing, stem};
use crate::{Error, Position, Reading, Result, input};

const INSTANCES: [&str; 7] = ["ids", "docs", "barcodes", "cells", "samples", "instances", "obs"];
const FEATURES: [&str; 6] = ["features", "terms", "genes", "vocab", "words", "var"];
const ROWS: [&str; 2] = ["rows", "rownames"];
const COLUMNS: [&str; 3] = ["cols", "columns", "colnames"];

/// The names of instances and of features, if there are any.
type Names = (Option<Vec<String>>, Option<Vec<String>>);

/// Looks for names of `rows` instances and `columns` features.
pub(super) fn find(path: &Path, how: Reading, rows: usize, columns: usize) -> Result<Names> {
    let (by_row, by_column) =
        if how.transpose { (&COLUMNS[..], &ROWS[..]) } else { (&ROWS[..], &COLUMNS[..]) };
    let instances = if how.no_ids { None } else { companion(path, &[&INSTANCES, by_row]) };
    let features = companion(path, &[&FEATURES, by_column]);
    let ids = instances.map(|names| read(path, &names, rows, "instances")).transpose()?;
    let features = features.map(|names| read(path, &names, columns, "features")).transpose()?;
    Ok((ids, features))
}

/// The existing companion files of a Matrix Market file, which may have the names of its rows and columns.
pub fn companions(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if !ENDINGS.iter().any(|ending| name.ends_with(&format!(".mtx{ending}"))) {
        return Vec::new();
    }
    let kinds: [[&[&str]; 2]; 4] =
        [[&INSTANCES, &ROWS], [&INSTANCES, &COLUMNS], [&FEATURES, &COLUMNS], [&FEATURES, &ROWS]];
    kinds.iter().filter_map(|kinds| companion(path, kinds)).collect()
}

/// The first companion file that exists.
fn companion(path: &Path, kinds: &[&[&str]]) -> Option<PathBuf> {
    let stem = stem(path);
    let prefix = stem.strip_suffix("matrix");
    let own = |kind: &&str| ["", ".txt", ".tsv"].map(|ending| format!("{stem}.{kind}{ending}"));
    let shared = |kind: &&str| prefix.map(|prefix| format!("{prefix}{kind}.tsv"));
    let kinds = || kinds.iter().copied().flatten();
    let names = kinds().flat_map(own).chain(kinds().filter_map(shared));
    first_existing(path.parent().unwrap_or(Path::new("")), names)
}

/// Reads one name per line: its first field.
fn read(matrix: &Path, path: &Path, count: usize, what: &str) -> Result<Vec<String>> {
    let text = input::text(path)?;
    let text = String::from_utf8(text)
        .map_err(|_| Error::in_file(path, "the text is not UTF-8: save the file in this encoding"))?;
    let text = text.trim_start_matches('\u{feff}');
    let names: Vec<String> = text
        .trim_end()
        .lines()
        .map(|line| line.split('\t').next().unwrap_or_default().trim().into())
        .collect();
    if let Some(at) = names.iter().position(|name| name.contains('\0')) {
        let place = Position::line(path, at + 1);
        return Err(place.fault("there is a NUL in the name: remove it"));
    }
    if names.len() == count {
        return Ok(names);
    }
    let reason = format!(
        "{} names, but {} has {count} {what}: rename the file if it belongs to another matrix, or say whether instances \
         are in columns (--transpose)",
        names.len(),
        matrix.display()
    );
    Err(Error::in_file(path, reason))
}
