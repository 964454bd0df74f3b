//! Labels of instances: true classes, or the clusters of a fit.

use std::path::Path;

use daimc_core::text::{list, quoted};

use crate::format::Format;
use crate::ids::{Duplicates, Index, Matching};
use crate::input::Opened;
use crate::records::{self, Record};
use crate::{Error, Position, Result, hdf5};

/// The titles of `labels.tsv` of a fit.
const OURS: [&str; 3] = ["id", "cluster", "confidence"];

/// Titles of a column of labels, the likeliest first.
const TITLES: [&str; 10] =
    ["cluster", "label", "class", "truth", "y", "labels", "clusters", "target", "category", "topic"];

/// Titles of a column of IDs.
const ID_TITLES: [&str; 7] = ["", "id", "ids", "index", "name", "sample", "instance"];

/// Words for an unknown label.
const UNKNOWN: [&str; 5] = ["", "NA", "N/A", "NaN", "null"];

/// The labels of instances, in the order of their file.
#[derive(Clone, Debug)]
pub struct Labels {
    /// The IDs; row numbers from 0 in a file without IDs.
    pub ids: Vec<String>,
    /// The label of each ID; `None` if unknown (an empty label, `NA`, `NaN`, `null`).
    pub labels: Vec<Option<String>>,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    index: Index,
}

impl Labels {
    /// The index of an instance, if the file has it.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.index.get(id)
    }

    /// The label of an instance, if known.
    pub fn get(&self, id: &str) -> Option<&str> {
        self.labels[self.position(id)?].as_deref()
    }

    /// The error for a second row of an instance: duplicate IDs are an error, and so are two labels, unless the first is kept.
    fn twice(&self, id: &str, label: Option<&str>, earlier: usize, matching: &Matching) -> Option<String> {
        let first = &self.ids[earlier];
        if first == id {
            return Some(format!(
                "the ID {} occurs a second time: an instance has one label, delete the other",
                quoted(id)
            ));
        }
        let differ = self.labels[earlier].as_deref() != label && matching.duplicates == Duplicates::Error;
        differ.then(|| {
            format!(
                "the IDs {} and {} are of the same instance and have different labels: delete one of the rows, or take the \
                 first with --duplicates first",
                quoted(first),
                quoted(id)
            )
        })
    }

    /// The number of instances.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Always false: a file without labels is an error.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// Reads labels from a table (CSV, TSV, …; plain, `.gz` or `.zst`). IDs are in its first column. Of an `.h5ad` or `.h5mu` file
/// the table is `obs`, and `column` is `obs/NAME` or `NAME`.
///
/// Labels are in the column with the title `column`. By default they are in the second column, which must be the last, or, in
/// the `labels.tsv` of [a fit](https://docs.rs/daimc), in that of the clusters. A table of one column holds labels, and the IDs
/// are row numbers from 0. `matching` says how IDs are looked up.
///
/// # Errors
/// When the file cannot be read, has no rows, rows of different length, an empty ID or the same ID twice; when it has no
/// such column, or several and none was named.
pub fn read_labels(path: &Path, column: Option<&str>, matching: &Matching) -> Result<Labels> {
    let file = Opened::new(path, true)?;
    if Format::of(path, file.start()) == Format::Hdf5 {
        return of_obs(path, file, column, matching);
    }
    let (mut records, sha256) = records::read(path, file)?;
    let wrong = |line: usize, column: Option<usize>, reason: String| {
        Position { column, ..Position::line(path, line) }.fault(reason)
    };
    let width = records.last().map_or(0, |record| record.fields.len());
    // Several columns must have titles, in the first record, to choose one.
    let header = (column.is_some() || width > 2 || is_header(&records)).then(|| records.remove(0));
    if records.is_empty() {
        return Err(Error::in_file(path, "there is a header but no label below it"));
    }
    let titles = header.map(|header| header.fields).unwrap_or_default();
    // R writes no title above row names.
    let shift = usize::from(!titles.is_empty() && width == titles.len() + 1);
    let width = if titles.is_empty() { width } else { titles.len() + shift };
    let place = match column {
        Some(column) => named(&titles, column).map(|place| place + shift).ok_or_else(|| {
            let reason = format!("has no column {}; it has {}", quoted(column), columns(&titles, shift));
            Error::in_file(path, reason)
        })?,
        None if titles == OURS => 1,
        None if width > 2 => {
            let reason = format!(
                "has {} columns in addition to the IDs: {}; pick the one of the labels with ::COLUMN after the path",
                width - 1,
                columns(&titles, shift)
            );
            return Err(Error::in_file(path, reason));
        }
        None => label_column(&titles).map_or(usize::from(width > 1), |place| place + shift),
    };
    // A single column holds labels.
    let has_ids = width > 1;
    if has_ids && place == 0 {
        return Err(wrong(1, Some(1), "the labels are in the first column: put the IDs there".into()));
    }

    let mut found = Labels { ids: Vec::new(), labels: Vec::new(), sha256, index: Index::new(matching) };
    for (row, Record { line, mut fields }) in records.into_iter().enumerate() {
        if fields.len() != width {
            let reason =
                format!("{} fields where {width} are expected: an ID and a label in each row", fields.len());
            return Err(wrong(line, None, reason));
        }
        let label = fields.swap_remove(place);
        let known = !UNKNOWN.iter().any(|word| label.eq_ignore_ascii_case(word));
        let id = if has_ids { fields.swap_remove(0) } else { row.to_string() };
        if id.is_empty() {
            return Err(wrong(line, Some(1), "the ID is empty: give the row an ID or delete it".into()));
        }
        let label = known.then_some(label);
        if let Some(earlier) = found.index.insert(&id, row)
            && let Some(reason) = found.twice(&id, label.as_deref(), earlier, matching)
        {
            return Err(wrong(line, Some(1), reason));
        }
        found.ids.push(id);
        found.labels.push(label);
    }
    Ok(found)
}

/// Labels in a column of `obs`, of annotated data.
fn of_obs(path: &Path, mut file: Opened, column: Option<&str>, matching: &Matching) -> Result<Labels> {
    let (ids, labels) = hdf5::labels(&mut file, column)?;
    let known = |label: &String| !UNKNOWN.iter().any(|word| label.eq_ignore_ascii_case(word));
    let labels: Vec<Option<String>> = labels.into_iter().map(|label| label.filter(known)).collect();
    let mut found = Labels { ids, labels, sha256: file.sha256()?, index: Index::new(matching) };
    for (row, id) in found.ids.iter().enumerate() {
        if let Some(earlier) = found.index.insert(id, row)
            && let Some(reason) = found.twice(id, found.labels[row].as_deref(), earlier, matching)
        {
            return Err(Error::in_file(path, format!("in obs, {reason}")));
        }
    }
    if found.is_empty() {
        return Err(Error::in_file(path, "there is no row in obs"));
    }
    Ok(found)
}

/// Whether the first record is a header: it has a known title, or only its last field is not a number.
fn is_header(records: &[Record]) -> bool {
    let first = &records[0].fields;
    let titled = |titles: &[&str], field: &String| titles.contains(&field.to_lowercase().as_str());
    if label_column(first).is_some() || (first.len() > 1 && titled(&ID_TITLES, &first[0])) {
        return true;
    }
    let number = |record: &Record| record.fields.last().is_some_and(|field| field.parse::<f64>().is_ok());
    records.len() > 1 && !number(&records[0]) && records[1..].iter().all(number)
}

/// The column with a title; without an exact match, case is ignored.
fn named(titles: &[String], column: &str) -> Option<usize> {
    let exact = titles.iter().position(|title| title == column);
    exact.or_else(|| titles.iter().position(|title| title.to_lowercase() == column.to_lowercase()))
}

/// The titles of all columns except that of the IDs, for a message.
fn columns(titles: &[String], shift: usize) -> String {
    list(titles.iter().skip(usize::from(shift == 0 && titles.len() > 1)).map(|title| quoted(title)))
}

fn label_column(titles: &[String]) -> Option<usize> {
    let at = |title: &str| titles.iter().position(|found| found.to_lowercase() == title);
    TITLES.iter().find_map(|title| at(title))
}
