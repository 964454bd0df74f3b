//! The mask: a table of the instances that are present in each view.

use std::path::Path;

use daimc_core::text::{list, quoted};

use crate::ids::{Index, Matching};
use crate::input::Opened;
use crate::records::{self, Record};
use crate::{Error, Position, Result, Table};

/// The present instances of each view.
pub(super) struct Mask {
    rows: Index,
    /// For each view, whether the instance of a row is present.
    shown: Vec<Vec<bool>>,
}

impl Mask {
    /// Reads a mask for these tables, which must have the same views and instances.
    pub fn read(path: &Path, tables: &[(String, Table)], matching: &Matching) -> Result<Self> {
        let refuse = |reason: String| Err(Error::in_file(path, reason));
        let (mut records, _) = records::read(path, Opened::new(path, false)?)?;
        let header = records.remove(0).fields;
        if records.is_empty() {
            return refuse("the mask has a header but no row: an ID, and 0 or 1 for each view".into());
        }
        let width = records[0].fields.len();
        // R writes no title above row names.
        let columns = if header.len() + 1 == width { &header[..] } else { &header[1..] };
        if columns.iter().any(|column| bit(column).is_some()) {
            return refuse("the mask has no header: name the columns, id first, then the views".into());
        }
        let views: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
        for (at, column) in columns.iter().enumerate() {
            if !views.contains(&column.as_str()) {
                let (column, known) = (quoted(column), list(views.iter().map(|view| quoted(view))));
                return refuse(format!(
                    "the mask has a column {column}, but there is no such view: {known} are there"
                ));
            }
            if columns[..at].contains(column) {
                return refuse(format!("the mask has two columns {}: leave one per view", quoted(column)));
            }
        }
        let (mut ids, mut lines, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for Record { line, fields } in records {
            let place = |column| Position { column, ..Position::line(path, line) };
            if fields.len() != columns.len() + 1 {
                let (found, expected) = (fields.len(), columns.len() + 1);
                let reason =
                    format!("{found} fields where {expected} are expected: an ID, and 0 or 1 for each view");
                return Err(place(None).fault(reason));
            }
            for (at, (value, view)) in fields[1..].iter().zip(columns).enumerate() {
                let Some(shown) = bit(value) else {
                    let found = if value.is_empty() { "empty".into() } else { quoted(value).to_string() };
                    let reason = format!(
                        "the mask of view {} for instance {} is {found}: write 1 (shown) or 0 (missing)",
                        quoted(view),
                        quoted(&fields[0])
                    );
                    return Err(place(Some(at + 2)).fault(reason));
                };
                values.push(shown);
            }
            ids.extend(fields.into_iter().next());
            lines.push(line);
        }
        let mut shown = Vec::with_capacity(views.len());
        for view in views {
            let Some(column) = columns.iter().position(|column| column == view) else {
                let view = quoted(view);
                return refuse(format!("the mask has no column for the view {view}: add one of 0 and 1"));
            };
            shown.push(values.iter().skip(column).step_by(columns.len()).copied().collect());
        }
        let at = |row: usize| Position { column: Some(1), ..Position::line(path, lines[row]) };
        let mut rows = Index::new(matching);
        for (row, id) in ids.iter().enumerate() {
            if let Some(first) = rows.insert(id, row) {
                let (id, earlier) = (quoted(id), lines[first]);
                let reason = format!("the ID {id} is also that of line {earlier}: delete one of the two");
                return Err(at(row).fault(reason));
            }
        }
        let mask = Self { rows, shown };
        mask.check_instances(path, tables, &ids, at)?;
        Ok(mask)
    }

    /// The present rows of the table of a view.
    pub fn rows(&self, view: usize, table: &Table) -> Vec<bool> {
        // `check_instances` ensures that every instance has a row.
        let shown = |row| self.rows.get(&table.id(row)).is_some_and(|at| self.shown[view][at]);
        (0..table.rows).map(shown).collect()
    }

    fn check_instances(
        &self,
        path: &Path,
        tables: &[(String, Table)],
        ids: &[String],
        at: impl Fn(usize) -> Position,
    ) -> Result<()> {
        let mut known = vec![false; ids.len()];
        let (mut absent, mut count) = (None, 0);
        for (name, table) in tables {
            for id in (0..table.rows).map(|row| table.id(row)) {
                if let Some(row) = self.rows.get(&id) {
                    known[row] = true;
                } else {
                    count += 1;
                    absent.get_or_insert((id, name));
                }
            }
        }
        if let Some((id, view)) = absent {
            let reason = format!(
                "the mask has no row for the instance {} of view {} ({count} such row(s) in all): add one",
                quoted(&id),
                quoted(view)
            );
            return Err(Error::in_file(path, reason));
        }
        let Some(row) = known.iter().position(|known| !known) else { return Ok(()) };
        let reason = format!(
            "the instance {} is in no view: delete its row from the mask, or check the IDs",
            quoted(&ids[row])
        );
        Err(at(row).fault(reason))
    }
}

/// The value of a field of a mask, also in the words of R and pandas.
fn bit(field: &str) -> Option<bool> {
    match field.to_ascii_lowercase().as_str() {
        "1" | "1.0" | "true" | "t" | "yes" => Some(true),
        "0" | "0.0" | "false" | "f" | "no" => Some(false),
        _ => None,
    }
}
