//! The mask: a table that says which instances each view shows.

use std::collections::HashMap;
use std::path::Path;

use super::id;
use super::origin::Origin;
use crate::{Cells, Error, Place, Precision, Reading, Result, Table, text};

/// What each view shows.
pub(super) struct Mask {
    /// The row of each ID.
    rows: HashMap<String, usize>,
    /// For each view, whether it shows the instance of a row.
    shown: Vec<Vec<bool>>,
}

impl Mask {
    /// Reads a mask for these tables, which must be about the same views and the same instances.
    pub fn read(path: &Path, tables: &[(String, Table)]) -> Result<Self> {
        let how = Reading { precision: Some(Precision::F32), ..Reading::default() };
        let mut table = text::read(path, how)?;
        let refuse = |reason: String| Err(Error::in_file(path, reason));
        let Some(columns) = table.features.take() else {
            return refuse("the mask has no header: name the columns, id first, then the views".into());
        };
        let views: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
        for (at, column) in columns.iter().enumerate() {
            if !views.contains(&column.as_str()) {
                let known = views.join("', '");
                return refuse(format!(
                    "the mask has a column '{column}', but there is no such view: '{known}' are there"
                ));
            }
            if columns[..at].contains(column) {
                return refuse(format!("the mask has two columns '{column}': leave one per view"));
            }
        }
        let ids = table.ids.clone().unwrap_or_default();
        let origin = Origin::of("mask", &mut table);
        let values = bits(&table, &origin, &columns, &ids)?;
        let mut shown = Vec::with_capacity(views.len());
        for view in views {
            let Some(column) = columns.iter().position(|column| column == view) else {
                return refuse(format!("the mask has no column for the view '{view}': add one of 0 and 1"));
            };
            shown.push(values.iter().skip(column).step_by(columns.len()).copied().collect());
        }
        let mask = Self { rows: index(ids, &origin)?, shown };
        mask.check_instances(path, tables, &origin)?;
        Ok(mask)
    }

    /// Which rows of the table of a view are shown.
    pub fn rows(&self, view: usize, table: &Table) -> Vec<bool> {
        (0..table.rows).map(|row| self.shown[view][self.rows[&id(table, row)]]).collect()
    }

    fn check_instances(&self, path: &Path, tables: &[(String, Table)], origin: &Origin) -> Result<()> {
        let mut known = vec![false; self.rows.len()];
        let (mut absent, mut count) = (None, 0);
        for (name, table) in tables {
            for id in (0..table.rows).map(|row| id(table, row)) {
                if let Some(&row) = self.rows.get(&id) {
                    known[row] = true;
                } else {
                    count += 1;
                    absent.get_or_insert((id, name));
                }
            }
        }
        if let Some((id, view)) = absent {
            let reason = format!(
                "the mask has no row for the instance '{id}' of view '{view}' ({count} such row(s) in all): add one"
            );
            return Err(Error::in_file(path, reason));
        }
        let Some(row) = known.iter().position(|known| !known) else { return Ok(()) };
        let id = self.rows.iter().find(|(_, at)| **at == row).map_or("", |(id, _)| id);
        let reason =
            format!("the instance '{id}' is in no view: delete its row from the mask, or check the IDs");
        Err(Error::Data { place: Place { column: Some(1), ..origin.cell(row, 0) }, reason })
    }
}

/// The values, which must be 0 or 1.
fn bits(table: &Table, origin: &Origin, columns: &[String], ids: &[String]) -> Result<Vec<bool>> {
    let Cells::DenseF32(values) = &table.cells else { return Ok(Vec::new()) };
    if let Some(at) = values.iter().position(|value| *value != 0.0 && *value != 1.0) {
        let (row, column) = (at / table.columns, at % table.columns);
        let found = if values[at].is_nan() { "missing".into() } else { values[at].to_string() };
        let (view, id) = (&columns[column], &ids[row]);
        let reason = format!(
            "the mask of view '{view}' for instance '{id}' is {found}: write 1 (shown) or 0 (missing)"
        );
        return Err(Error::Data { place: origin.cell(row, column), reason });
    }
    Ok(values.iter().map(|value| *value == 1.0).collect())
}

fn index(ids: Vec<String>, origin: &Origin) -> Result<HashMap<String, usize>> {
    let mut rows = HashMap::with_capacity(ids.len());
    for (row, id) in ids.into_iter().enumerate() {
        if let Some(first) = rows.insert(id.clone(), row) {
            return Err(origin.twice(&id, first, row));
        }
    }
    Ok(rows)
}
