//! Labels of instances: true classes, or the clusters that a fit has found.

use std::collections::HashMap;
use std::path::Path;

use crate::text::{Record, records};
use crate::{Error, Place, Result};

/// Titles of a column of labels, the likeliest first. `labels.tsv` of a fit has `cluster`.
const TITLES: [&str; 10] =
    ["cluster", "label", "class", "truth", "y", "labels", "clusters", "target", "category", "topic"];

/// Titles of a column of IDs.
const ID_TITLES: [&str; 7] = ["", "id", "ids", "index", "name", "sample", "instance"];

/// Words for a label that is not known.
const UNKNOWN: [&str; 5] = ["", "NA", "N/A", "NaN", "null"];

/// The labels of instances, in the order of their file.
#[derive(Clone, Debug)]
pub struct Labels {
    /// The IDs; row numbers from 0 where the file has no IDs.
    pub ids: Vec<String>,
    /// For each ID its label; `None` where it is not known (an empty label, `NA`, `NaN`, `null`).
    pub labels: Vec<Option<String>>,
    rows: HashMap<String, usize>,
}

impl Labels {
    /// The place of an instance in the lists, if the file has it.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.rows.get(id).copied()
    }

    /// The label of an instance, if the file has the instance and its label is known.
    pub fn get(&self, id: &str) -> Option<&str> {
        self.labels[self.position(id)?].as_deref()
    }

    /// How many instances there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Never true: a file without labels is refused.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// Reads labels from a table (CSV, TSV, …; plain, `.gz` or `.zst`). IDs are in the first column, labels in the one
/// titled `cluster`, `label`, `class`, `truth`, `y` or the like, else in the second. Where there is but one
/// column, it holds the labels, and the IDs are row numbers from 0.
///
/// # Errors
/// When the file cannot be read, has no row, rows of different length, an empty ID or the same ID twice.
pub fn read_labels(path: &Path) -> Result<Labels> {
    let mut records = records(path)?;
    let wrong = |line: usize, column: Option<usize>, reason: String| Error::Data {
        place: Place { line: Some(line), column, ..Place::file(path) },
        reason,
    };
    let width = records.last().map_or(0, |record| record.fields.len());
    let header = is_header(&records).then(|| records.remove(0));
    if records.is_empty() {
        return Err(Error::in_file(path, "there is a header but no label below it"));
    }
    let model = header.as_ref().map_or(width, |header| header.fields.len());
    // R writes no title above row names.
    let (width, shift) = if header.is_some() && width == model + 1 { (width, 1) } else { (model, 0) };
    let titles = header.map(|header| header.fields).unwrap_or_default();
    let column = label_column(&titles).map_or(usize::from(width > 1), |column| column + shift);
    // A column of labels alone, even if it comes first in a wider table, leaves no place for IDs.
    let has_ids = width > 1;
    if has_ids && column == 0 {
        return Err(wrong(1, Some(1), "the labels are in the first column: put the IDs there".into()));
    }

    let mut found = Labels { ids: Vec::new(), labels: Vec::new(), rows: HashMap::new() };
    for (row, Record { line, mut fields }) in records.into_iter().enumerate() {
        if fields.len() != width {
            let reason =
                format!("{} fields where {width} are expected: an ID and a label in each row", fields.len());
            return Err(wrong(line, None, reason));
        }
        let label = fields.swap_remove(column);
        let known = !UNKNOWN.iter().any(|word| label.eq_ignore_ascii_case(word));
        let id = if has_ids { fields.swap_remove(0) } else { row.to_string() };
        if id.is_empty() {
            return Err(wrong(line, Some(1), "the ID is empty: give the row an ID or delete it".into()));
        }
        if found.rows.insert(id.clone(), row).is_some() {
            let reason =
                format!("the ID '{id}' occurs a second time: an instance has one label, delete the other");
            return Err(wrong(line, Some(1), reason));
        }
        found.ids.push(id);
        found.labels.push(known.then_some(label));
    }
    Ok(found)
}

/// Whether the first record names columns: it has a known title, or it alone has no number in the last column.
fn is_header(records: &[Record]) -> bool {
    let first = &records[0].fields;
    let titled = |titles: &[&str], field: &String| titles.contains(&field.to_lowercase().as_str());
    if label_column(first).is_some() || (first.len() > 1 && titled(&ID_TITLES, &first[0])) {
        return true;
    }
    let number = |record: &Record| record.fields.last().is_some_and(|field| field.parse::<f64>().is_ok());
    records.len() > 1 && !number(&records[0]) && records[1..].iter().all(number)
}

fn label_column(titles: &[String]) -> Option<usize> {
    let at = |title: &str| titles.iter().position(|found| found.to_lowercase() == title);
    TITLES.iter().find_map(|title| at(title))
}
