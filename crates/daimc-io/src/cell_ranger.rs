//! Folders of Cell Ranger (10x Genomics): `matrix.mtx`, `barcodes.tsv` and `features.tsv` (formerly `genes.tsv`), each plain or
//! compressed. Cells are in the columns of the matrix.

use std::path::Path;

use daimc_core::text::{list, quoted};

use crate::disk::Keep;
use crate::feature_types::{distinct, numbered, unique_names};
use crate::input::{self, Opened};
use crate::matrix_market::{self, KnownNames};
use crate::paths::first_existing;
use crate::{Error, Position, Reading, Result, Table};

/// Reads the cells of a folder whose matrix is open; `kind` picks the features of a type.
pub(crate) fn read(file: &mut Opened, kind: Option<&str>, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let path = file.place.path.clone();
    let features = Features::read(&path)?;
    let kinds = features.kinds();
    let place = Position { variable: kind.map(String::from), ..Position::file(folder(&path)) };
    let mut names = unique_names(features.names, &features.ids);
    let only = match kind {
        None if kinds.len() > 1 => {
            let known = list(kinds.iter().map(|kind| quoted(kind)));
            return Err(place.fault(format!("holds {known}; pick one with ::NAME")));
        }
        None => None,
        Some(kind) => {
            let (only, count) = numbered(&features.kinds, kind);
            if count == 0 {
                let known = list(kinds.iter().map(|kind| quoted(kind)));
                return Err(
                    place.fault(format!("has no features of type {}; it holds {known}", quoted(kind)))
                );
            }
            let mut kept = only.iter().map(|number| *number != u32::MAX);
            names.retain(|_| kept.next().unwrap_or(false));
            Some(only)
        }
    };
    let barcodes = first_existing(folder(&path), ["barcodes.tsv"]).ok_or_else(|| {
        Error::in_file(folder(&path), "has no barcodes.tsv next to its matrix; copy it there")
    })?;
    let barcodes = lines(&barcodes)?.into_iter().map(|mut fields| fields.swap_remove(0)).collect();
    let how = Reading { transpose: !how.transpose, ..how };
    let known = KnownNames { rows: names, columns: barcodes, only };
    let mut table = matrix_market::read(&path, file.text()?, how, keep, Some(known))?;
    folder(&path).clone_into(&mut table.path);
    table.variable = kind.map(String::from);
    table.transposed = !how.transpose;
    Ok(table)
}

/// The types of features, if there are several.
pub(crate) fn parts(file: &Opened) -> Result<Vec<String>> {
    let kinds = Features::read(&file.place.path)?.kinds();
    Ok(if kinds.len() > 1 { kinds } else { Vec::new() })
}

/// ID, name and type of each feature.
struct Features {
    ids: Vec<String>,
    names: Vec<String>,
    kinds: Vec<String>,
}

impl Features {
    fn read(matrix: &Path) -> Result<Self> {
        let path = first_existing(folder(matrix), ["features.tsv", "genes.tsv"]).ok_or_else(|| {
            Error::in_file(
                folder(matrix),
                "has neither features.tsv nor genes.tsv next to its matrix; copy it there",
            )
        })?;
        let mut found = Self { ids: Vec::new(), names: Vec::new(), kinds: Vec::new() };
        for fields in lines(&path)? {
            let mut fields = fields.into_iter();
            let id = fields.next().unwrap_or_default();
            found.names.push(fields.next().unwrap_or_else(|| id.clone()));
            found.kinds.push(fields.next().unwrap_or_default());
            found.ids.push(id);
        }
        Ok(found)
    }

    fn kinds(&self) -> Vec<String> {
        distinct(&self.kinds)
    }
}

fn folder(matrix: &Path) -> &Path {
    matrix.parent().unwrap_or(Path::new("."))
}

/// The fields of each line.
fn lines(path: &Path) -> Result<Vec<Vec<String>>> {
    let text = String::from_utf8(input::text(path)?)
        .map_err(|_| Error::in_file(path, "the text is not UTF-8: save the file in this encoding"))?;
    let lines = text.trim_end_matches(['\n', '\r']).lines();
    Ok(lines.map(|line| line.split('\t').map(String::from).collect()).collect())
}
