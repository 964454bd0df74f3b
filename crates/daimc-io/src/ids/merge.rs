//! Replaces the IDs of rows by those of their instances, and merges rows of the same instance.

use std::collections::HashMap;

use daimc_core::text::quoted;

use super::matching::{Duplicates, Matching};
use crate::real::Real;
use crate::{Cells, Csr, Error, Result, Table};

/// The tables with one ID per instance. If IDs differ in ignored characters, the first table decides.
pub(crate) fn instances(tables: Vec<(String, Table)>, matching: &Matching) -> Result<Vec<(String, Table)>> {
    if let Some(map) = &matching.map {
        map.check(tables.iter().map(|(name, _)| name.as_str()))?;
    }
    let mut spelled = HashMap::new();
    let mut rename = |view: &str, table: &mut Table| -> Result<()> {
        let Some(ids) = table.ids.take() else { return Ok(()) };
        let mut found = Vec::with_capacity(ids.len());
        for (row, id) in ids.iter().enumerate() {
            let instance = instance(view, table, row, id, matching)?;
            found.push(if matching.folds() {
                let key = matching.fold(instance).into_owned();
                spelled.entry(key).or_insert_with(|| instance.to_owned()).clone()
            } else {
                instance.to_owned()
            });
        }
        let groups = Groups::of(&found);
        table.ids = Some(found);
        if groups.firsts.len() == table.rows {
            return Ok(());
        }
        groups.merge(table, &ids, matching.duplicates)
    };
    let renamed = tables.into_iter().map(|(view, mut table)| {
        rename(&view, &mut table)?;
        Ok((view, table))
    });
    renamed.collect()
}

fn instance<'a>(
    view: &str,
    table: &Table,
    row: usize,
    id: &'a str,
    matching: &'a Matching,
) -> Result<&'a str> {
    if let Some(map) = &matching.map
        && let Some(instance) = map.get(view, id)?
    {
        return Ok(instance);
    }
    let part = matching.trim(id).filter(|part| !part.is_empty());
    part.ok_or_else(|| {
        table.place_of_id(row).fault(format!(
            "--id-regex matches nothing in the ID {}: write a pattern that matches in every view, or name instances with --ids",
            quoted(id)
        ))
    })
}

/// The rows of each instance.
struct Groups {
    /// The first row of each instance.
    firsts: Vec<usize>,
    /// For each row the index of its instance in `firsts`.
    of_row: Vec<usize>,
}

impl Groups {
    fn of(ids: &[String]) -> Self {
        let mut known = HashMap::with_capacity(ids.len());
        let (mut firsts, mut of_row) = (Vec::new(), Vec::with_capacity(ids.len()));
        for (row, id) in ids.iter().enumerate() {
            let group = *known.entry(id.as_str()).or_insert_with(|| {
                firsts.push(row);
                firsts.len() - 1
            });
            of_row.push(group);
        }
        Self { firsts, of_row }
    }

    /// Merges the rows of each instance; `written` are the IDs in the file.
    fn merge(&self, table: &mut Table, written: &[String], how: Duplicates) -> Result<()> {
        if how == Duplicates::Error {
            return Err(self.twice(table, written));
        }
        let mean = how == Duplicates::Mean;
        let columns = table.columns;
        table.cells = match std::mem::replace(&mut table.cells, Cells::DenseF32(Vec::new())) {
            Cells::DenseF32(values) => Cells::DenseF32(self.dense(&values, columns, mean)),
            Cells::DenseF64(values) => Cells::DenseF64(self.dense(&values, columns, mean)),
            Cells::SparseF32(csr) => Cells::SparseF32(self.sparse(&csr, mean)),
            Cells::SparseF64(csr) => Cells::SparseF64(self.sparse(&csr, mean)),
            Cells::Stored(_) => {
                let reason = "several rows are of the same instance, and the values do not fit into memory, where one could be made \
                              of them: merge the rows in the file, or allow more memory (--memory)";
                return Err(table.place().fault(reason));
            }
        };
        let first = |all: Vec<String>| self.firsts.iter().map(|&row| all[row].clone()).collect();
        table.ids = table.ids.take().map(first);
        // Lines can be kept; columns of a transposed file cannot.
        let lines = table.lines.take().filter(|_| !table.transposed);
        table.lines = lines.map(|lines| self.firsts.iter().map(|&row| lines[row]).collect());
        table.rows = self.firsts.len();
        Ok(())
    }

    fn twice(&self, table: &Table, written: &[String]) -> Error {
        let mut seen = vec![false; self.firsts.len()];
        let again = |&row: &usize| std::mem::replace(&mut seen[self.of_row[row]], true);
        let second = (0..self.of_row.len()).find(again).unwrap_or(0);
        let first = self.firsts[self.of_row[second]];
        let count = self.of_row.len() - self.firsts.len();
        let instance = table.ids.as_ref().map_or(String::new(), |ids| ids[first].clone());
        let more = if count > 1 { format!(" ({count} such rows in all)") } else { String::new() };
        table.place_of_id(second).fault(format!(
                "the IDs {} and {} are both of the instance {}{more}: keep more of the IDs, or choose one row with --duplicates \
                 first, or their mean with --duplicates mean",
                quoted(&written[first]),
                quoted(&written[second]),
                quoted(&instance)
        ))
    }

    fn dense<T: Real>(&self, values: &[T], columns: usize, mean: bool) -> Vec<T> {
        let row = |row: usize| &values[row * columns..(row + 1) * columns];
        let mut merged: Vec<T> = self.firsts.iter().flat_map(|&first| row(first)).copied().collect();
        if !mean {
            return merged;
        }
        for (group, rows) in self.several() {
            for (column, out) in merged[group * columns..(group + 1) * columns].iter_mut().enumerate() {
                let known =
                    rows.iter().map(|&r| row(r)[column]).filter(|value| !value.is_missing()).map(Real::wide);
                let (sum, count) = known.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
                *out = T::nearest(if count == 0 { f64::NAN } else { sum / count as f64 });
            }
        }
        merged
    }

    fn sparse<T: Real>(&self, csr: &Csr<T>, mean: bool) -> Csr<T> {
        let several: HashMap<usize, Vec<usize>> =
            if mean { self.several().collect() } else { HashMap::new() };
        let mut merged = Csr { offsets: vec![0], columns: Vec::new(), values: Vec::new() };
        for (group, &first) in self.firsts.iter().enumerate() {
            let entries = |row: usize| {
                let range = csr.offsets[row]..csr.offsets[row + 1];
                csr.columns[range.clone()].iter().copied().zip(csr.values[range].iter().copied())
            };
            if let Some(rows) = several.get(&group) {
                let mut sums = std::collections::BTreeMap::new();
                for (column, value) in rows.iter().flat_map(|&row| entries(row)) {
                    *sums.entry(column).or_insert(0.0) += value.wide();
                }
                merged.columns.extend(sums.keys());
                merged.values.extend(sums.values().map(|sum| T::nearest(sum / rows.len() as f64)));
            } else {
                merged.columns.extend(entries(first).map(|(column, _)| column));
                merged.values.extend(entries(first).map(|(_, value)| value));
            }
            merged.offsets.push(merged.columns.len());
        }
        merged
    }

    /// The instances with several rows, and these rows.
    fn several(&self) -> impl Iterator<Item = (usize, Vec<usize>)> {
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); self.firsts.len()];
        self.of_row.iter().enumerate().for_each(|(row, &group)| rows[group].push(row));
        rows.into_iter().enumerate().filter(|(_, rows)| rows.len() > 1)
    }
}
