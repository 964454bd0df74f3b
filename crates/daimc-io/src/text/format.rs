//! What a text looks like: separator, header, names.

use super::fields::Separator;
use crate::Reading;

/// What parts of a record of a sheet are called.
pub(super) const CELL: &str = "cell";

/// What a text looks like.
#[derive(Clone, Debug)]
pub(super) struct Format {
    pub separator: Separator,
    /// The names of the columns of values.
    pub header: Option<Vec<String>>,
    /// Whether the first field of a record is its name.
    pub named: bool,
    /// How many fields a record has.
    pub fields: usize,
    /// Whether records are features.
    pub transposed: bool,
    /// Where the records start, in bytes.
    pub start: usize,
    /// Where the records start, in lines from 1.
    pub line: usize,
    /// What tells how many fields there should be.
    pub model: &'static str,
    /// What parts of a record are called.
    pub unit: &'static str,
    /// Which fields of a record are no values; empty where all are.
    pub skip: Vec<Skip>,
    /// Whether decimals are written with a comma.
    pub comma: bool,
    /// How many records there are, where the file says.
    pub records: Option<usize>,
    /// The titles of columns in which the first records have text.
    pub texts: Vec<String>,
    /// The titles of columns that were left out because that was asked for.
    pub dropped: Vec<String>,
    /// What people should know.
    pub remarks: Vec<String>,
}

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    /// It is a value, or the name of the record.
    No,
    /// Its column is left out.
    Column,
    /// Nothing is expected in it: its column has no title.
    Untitled,
}

impl Format {
    /// Records of so many fields, as `model` tells; nothing else is known of them.
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

    /// How many values a record has.
    pub fn values(&self) -> usize {
        let skipped = self.skip.iter().filter(|skip| **skip != Skip::No).count();
        self.fields - usize::from(self.named) - skipped
    }

    /// The title of the value in a field of a record, from 0.
    pub fn title(&self, field: usize) -> Option<&String> {
        let before = (0..field).filter(|field| self.skip.get(*field).is_none_or(|skip| *skip == Skip::No));
        self.header.as_ref()?.get(before.count().checked_sub(usize::from(self.named))?)
    }

    /// Leaves out the fields for which this holds of their number, from 0, and their title.
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

    /// What the first fields of the records are.
    pub fn names_are(&self) -> &'static str {
        if self.transposed { "feature" } else { "ID" }
    }

    /// Says that a record has another number of fields.
    pub fn ragged(&self, found: usize) -> String {
        let (plural, expected, model) = (if found == 1 { "" } else { "s" }, self.fields, self.model);
        if self.unit == CELL {
            return format!(
                "{found} cell{plural} where {model} has {expected}: give every column a title, and delete what is above \
                 the header or beside the table"
            );
        }
        format!(
            "{found} field{plural} where {model} has {expected}: look for a missing separator, or for one within a \
             value that should be in quotes"
        )
    }
}
