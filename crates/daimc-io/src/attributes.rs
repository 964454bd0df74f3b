//! Tables of attributes of instances, such as clinical ones: columns of any kind.

use std::path::Path;

use daimc_core::text::{list, quoted};

use crate::format::Format;
use crate::ids::{Duplicates, Index, Matching};
use crate::input::Opened;
use crate::records::{self, Record};
use crate::{Error, Position, Result, hdf5};

/// A table of texts, with IDs in its first column.
#[derive(Clone, Debug)]
pub struct Attributes {
    /// The titles of the columns without the IDs.
    pub titles: Vec<String>,
    /// The values of each column; `None` for missing ones.
    pub columns: Vec<Vec<Option<String>>>,
    /// The IDs.
    pub ids: Vec<String>,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    index: Index,
}

impl Attributes {
    /// The row of an instance, if the table has one.
    pub fn position(&self, instance: &str) -> Option<usize> {
        self.index.get(instance)
    }

    /// The index of a column; without an exact match, case is ignored.
    ///
    /// # Errors
    /// When there is no such column; the message lists the known ones.
    pub fn column(&self, path: &Path, title: &str) -> Result<usize> {
        let exact = self.titles.iter().position(|own| own == title);
        let alike = || self.titles.iter().position(|own| own.to_lowercase() == title.to_lowercase());
        exact.or_else(alike).ok_or_else(|| {
            let known = list(self.titles.iter().map(|title| quoted(title)));
            Error::in_file(path, format!("has no column {}; it has {known}", quoted(title)))
        })
    }
}

/// Reads a table with a header (CSV, TSV, …; plain or compressed), or `obs` of an `.h5ad` or `.h5mu` file. IDs are in its
/// first column.
///
/// # Errors
/// When the file cannot be read, has no rows, no column in addition to the IDs or rows of different length, and when two rows are
/// of the same instance, unless `matching` keeps the first.
pub fn read_attributes(path: &Path, matching: &Matching) -> Result<Attributes> {
    let mut file = Opened::new(path, true)?;
    let index = Index::new(matching);
    let mut found = if Format::of(path, file.start()) == Format::Hdf5 {
        let hdf5::Obs { ids, titles, columns } = hdf5::attributes(&mut file)?;
        Attributes { titles, columns, ids, sha256: file.sha256()?, index }
    } else {
        of_text(path, file, index)?
    };
    for (row, id) in found.ids.iter().enumerate() {
        if let Some(earlier) = found.index.insert(id, row)
            && matching.duplicates == Duplicates::Error
        {
            let reason = format!(
                "the IDs {} and {} are of the same instance: delete one of the rows, or take the first with \
                 --duplicates first",
                quoted(&found.ids[earlier]),
                quoted(id)
            );
            return Err(Error::in_file(path, reason));
        }
    }
    Ok(found)
}

fn of_text(path: &Path, file: Opened, index: Index) -> Result<Attributes> {
    let (mut records, sha256) = records::read(path, file)?;
    let mut titles = records.remove(0).fields;
    let Some(width) = records.first().map(|record| record.fields.len()) else {
        return Err(Error::in_file(path, "there is a header but no row below it"));
    };
    // R writes no title above row names.
    if titles.len() == width {
        titles.remove(0);
    }
    if titles.is_empty() {
        return Err(Error::in_file(path, "has no column in addition to the IDs"));
    }
    let mut found = Attributes {
        columns: vec![Vec::with_capacity(records.len()); titles.len()],
        titles,
        ids: Vec::with_capacity(records.len()),
        sha256,
        index,
    };
    for Record { line, fields } in records {
        if fields.len() != found.titles.len() + 1 {
            let (expected, count) = (found.titles.len() + 1, fields.len());
            let place = Position::line(path, line);
            return Err(place.fault(format!("{count} fields where {expected} are expected")));
        }
        let mut fields = fields.into_iter();
        found.ids.extend(fields.next());
        for (column, value) in found.columns.iter_mut().zip(fields) {
            column.push((!value.is_empty()).then_some(value));
        }
    }
    Ok(found)
}
