//! The format of a text: separator, header, names.

use super::fields::Separator;
use crate::Reading;

/// The name of a field in a sheet, for messages.
pub(super) const CELL: &str = "cell";

/// The format of a text.
#[derive(Clone, Debug)]
pub(super) struct Format {
    pub separator: Separator,
    /// The names of the columns of values.
    pub header: Option<Vec<String>>,
    /// Whether the first field of a record is its name.
    pub named: bool,
    /// The number of fields of a record.
    pub fields: usize,
    /// Whether records are features.
    pub transposed: bool,
    /// The position of the first record in bytes.
    pub start: usize,
    /// The line of the first record, from 1.
    pub line: usize,
    /// What sets the number of fields, for messages: the header or the first row.
    pub model: &'static str,
    /// The name of a field, for messages.
    pub unit: &'static str,
    /// The fields of a record that are not values; empty if all are.
    pub skip: Vec<Skip>,
    /// Decimals are written with a comma.
    pub comma: bool,
    /// The number of records, if the file has it.
    pub records: Option<usize>,
    /// The titles of columns with text in the first records.
    pub texts: Vec<String>,
    /// The titles of columns that [`Reading::drop`] leaves out.
    pub dropped: Vec<String>,
    /// Notes for the user.
    pub remarks: Vec<String>,
}

/// How a field is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    /// As a value, or as the name of the record.
    No,
    /// Its column is left out.
    Column,
    /// Its column has no title and must be empty.
    Untitled,
}

impl Format {
    /// A format with the number of fields of `model`, and defaults otherwise.
    pub fn new(
        separator: Separator,
        fields: usize,
        model: &'static str,
        how: Reading,
        unit: &'static str,
    ) -> Self {
        Self {
            separator,
            header: None,
            named: !how.no_ids,
            fields,
            transposed: how.transpose,
            start: 0,
            line: 0,
            model,
            unit,
            skip: Vec::new(),
            comma: how.decimal_comma,
            records: None,
            texts: Vec::new(),
            dropped: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// The number of values of a record.
    pub fn values(&self) -> usize {
        let skipped = self.skip.iter().filter(|skip| **skip != Skip::No).count();
        self.fields - usize::from(self.named) - skipped
    }

    /// The title of the value in a field of a record, from 0.
    pub fn title(&self, field: usize) -> Option<&String> {
        let before = (0..field).filter(|field| self.skip.get(*field).is_none_or(|skip| *skip == Skip::No));
        self.header.as_ref()?.get(before.count().checked_sub(usize::from(self.named))?)
    }

    /// Leaves out the fields that `which` selects by index and title, and returns their titles.
    pub fn leave_out(&mut self, how: Skip, mut which: impl FnMut(usize, &str) -> bool) -> Vec<String> {
        let Some(header) = self.header.take() else { return Vec::new() };
        if self.skip.is_empty() {
            self.skip = vec![Skip::No; self.fields];
        }
        let (mut kept, mut out) = (Vec::new(), Vec::new());
        let mut titles = header.into_iter();
        for field in usize::from(self.named)..self.fields {
            if self.skip[field] != Skip::No {
                continue;
            }
            let Some(title) = titles.next() else { break };
            if which(field, &title) {
                self.skip[field] = how;
                out.push(title);
            } else {
                kept.push(title);
            }
        }
        self.header = Some(kept);
        if self.skip.iter().all(|skip| *skip == Skip::No) {
            self.skip.clear();
        }
        out
    }

    /// What the names of records identify, for messages.
    pub fn names_are(&self) -> &'static str {
        if self.transposed { "feature" } else { "ID" }
    }

    /// The message for a record with a wrong number of fields.
    pub fn ragged(&self, found: usize) -> String {
        let (plural, expected, model) = (if found == 1 { "" } else { "s" }, self.fields, self.model);
        if self.unit == CELL {
            return format!(
                "{found} cell{plural} where {model} has {expected}: give every column a title, and delete what is above \
                 the header or next to the table"
            );
        }
        format!(
            "{found} field{plural} where {model} has {expected}: look for a missing separator, or for one within a \
             value that should be in quotes"
        )
    }
}
