//! Joins tables into views.

mod account;
mod gaps;
mod mask;
mod origin;

use std::path::{Path, PathBuf};

pub use account::{Account, ViewAccount};
use daimc_core::{View, Views};
pub use gaps::Nan;
use mask::Mask;
use origin::Origin;
use rayon::prelude::*;

use crate::ids::{self, Matching};
use crate::{Cells, Csr, Result, Table};

/// Options of [`assemble`].
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    /// Treatment of rows in which some values are missing.
    pub nan: Nan,
    /// A table of the instances that are present in each view: IDs in the first column, then a column of 0 and 1 for each view, by
    /// name. A 0 hides the instance in that view. A 1 has no effect on an instance that the view does not list.
    pub mask: Option<PathBuf>,
    /// Views may have no instance in common, e.g. those of new instances for a model.
    pub apart: bool,
    /// Which IDs name the same instance.
    pub matching: Matching,
}

/// Joins tables, each with the name of its view. A row without any value is a missing instance.
///
/// If no table has IDs, equal rows are the same instance. Otherwise instances are matched by ID, and tables without IDs have the
/// row numbers from 0. Instances that are present in no view are dropped.
///
/// # Errors
/// When the tables do not fit together, when a value is infinite, or missing where it must not be, and when the mask does
/// not fit the data; the message names the file and the place in it.
pub fn assemble(tables: Vec<(String, Table)>, how: &Assembly) -> Result<(Views<'static>, Account)> {
    let tables = if how.matching.is_exact() { tables } else { ids::instances(tables, &how.matching)? };
    let by_row = tables.iter().all(|(_, table)| table.ids.is_none());
    if by_row {
        check_equal_lengths(&tables)?;
    } else if !how.apart {
        origin::refuse_disjoint(&tables)?;
    }
    let mask = how.mask.as_deref().map(|path| Mask::read(path, &tables, &how.matching)).transpose()?;
    let (mut origins, mut accounts, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (v, (name, mut table)) in tables.into_iter().enumerate() {
        let origin = Origin::of(&name, &mut table);
        let mut present = mask.as_ref().map_or_else(|| vec![true; table.rows], |mask| mask.rows(v, &table));
        let masked = present.par_iter().filter(|present| !**present).count();
        let gaps = gaps::close(&mut table, &mut present, how.nan, &origin)?;
        origins.push(origin);
        accounts.push(ViewAccount { name: name.clone(), masked, ..gaps });
        parts.push((name, table, present, accounts.last().map_or(0, |own: &ViewAccount| own.missing)));
    }
    // Equal rows need no index, unless an instance is present in no view: joining drops it.
    let shown = |row: usize| parts.iter().any(|(_, _, present, _)| present[row]);
    let rows = parts.first().map_or(0, |(_, table, ..)| table.rows);
    let by_row = by_row && (0..rows).into_par_iter().all(shown);
    let views = parts.into_iter().map(|(name, table, present, missing)| {
        // With the number of missing values, rows on disk need no scan for them.
        let view = view(name, table, &present, by_row)?;
        Ok(view.holes(missing))
    });
    let views = views.collect::<Result<Vec<_>>>()?;
    let explain = |error| origin::explain(error, &origins);
    let (views, dropped) = if by_row {
        (Views::new(views).map_err(explain)?, Vec::new())
    } else {
        let (views, account) = Views::join(views).map_err(explain)?;
        (views, account.dropped)
    };
    let account = Account::of(&views, accounts, dropped, how.apart || by_row);
    Ok((views, account))
}

/// The rows of each table with a present instance: rows with a value that the mask does not hide.
///
/// # Errors
/// When tables without IDs differ in length, and when the mask does not fit them.
pub fn shown(tables: &[(String, Table)], mask: Option<&Path>) -> Result<Vec<Vec<bool>>> {
    if tables.iter().all(|(_, table)| table.ids.is_none()) {
        check_equal_lengths(tables)?;
    }
    let mask = mask.map(|path| Mask::read(path, tables, &Matching::default())).transpose()?;
    let shown = |(v, (_, table)): (usize, &(String, Table))| {
        let mut rows = mask.as_ref().map_or_else(|| vec![true; table.rows], |mask| mask.rows(v, table));
        rows.iter_mut().enumerate().for_each(|(row, shown)| *shown = *shown && !gaps::is_empty(table, row));
        rows
    };
    Ok(tables.iter().enumerate().map(shown).collect())
}

fn view(name: String, table: Table, present: &[bool], by_row: bool) -> Result<View<'static>> {
    let Table { ids, features, rows, columns, cells, .. } = table;
    let mut view = match cells {
        Cells::DenseF32(values) => View::dense(name, columns, values),
        Cells::DenseF64(values) => View::dense(name, columns, values),
        Cells::SparseF32(Csr { offsets, columns: at, values }) => {
            View::sparse(name, columns, offsets, at, values)
        }
        Cells::SparseF64(Csr { offsets, columns: at, values }) => {
            View::sparse(name, columns, offsets, at, values)
        }
        Cells::Stored(stored) => View::stored(name, stored.rows),
    }?;
    if present.contains(&false) {
        view = view.mask(present)?;
    }
    if !by_row {
        view = view.ids(ids.unwrap_or_else(|| (0..rows).map(|row| row.to_string()).collect()))?;
    }
    if let Some(features) = features {
        view = view.feature_names(features)?;
    }
    Ok(view)
}

/// Without IDs, views must have equally many rows.
fn check_equal_lengths(tables: &[(String, Table)]) -> Result<()> {
    let Some(((_, first), others)) = tables.split_first() else { return Ok(()) };
    let Some((_, other)) = others.iter().find(|(_, table)| table.rows != first.rows) else { return Ok(()) };
    let reason = format!(
        "{} rows, but {} has {}: without IDs, views must have the same rows; check --transpose, or use files that \
         have IDs",
        other.rows,
        first.place(),
        first.rows
    );
    Err(other.place().fault(reason))
}
