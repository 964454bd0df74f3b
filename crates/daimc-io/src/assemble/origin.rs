//! The origin of values, for messages that name the file, the line and the column.

use std::collections::{HashMap, HashSet};

use daimc_core::text::{list, plain, quoted};

use crate::ids::near;
use crate::{Error, Position, Result, Table};

/// The origin of a table whose values became a view.
pub(super) struct Origin {
    name: String,
    place: Position,
    lines: Option<Vec<u32>>,
    transposed: bool,
    /// Fields before the first value in a record.
    before: usize,
}

impl Origin {
    /// Takes the lines of a table.
    pub fn of(name: &str, table: &mut Table) -> Self {
        let named = if table.transposed { table.features.is_some() } else { table.ids.is_some() };
        Self {
            name: name.into(),
            place: table.place(),
            lines: table.lines.take(),
            transposed: table.transposed,
            before: usize::from(named),
        }
    }

    /// The place of a value.
    pub fn cell(&self, row: usize, column: usize) -> Position {
        let (record, value) = if self.transposed { (column, row) } else { (row, column) };
        let Some(line) = self.line(record) else { return self.place.clone() };
        Position { line: Some(line), column: Some(value + 1 + self.before), ..self.place.clone() }
    }

    /// The place of an instance's ID.
    fn id(&self, row: usize) -> Position {
        if self.transposed && self.lines.is_some() {
            return Position { column: Some(row + 1 + self.before), ..self.place.clone() };
        }
        Position { line: self.line(row), ..self.place.clone() }
    }

    /// The error that rows `first` and `second` have the same ID.
    pub fn twice(&self, id: &str, first: usize, second: usize) -> Error {
        let earlier = match self.id(first) {
            Position { line: Some(line), .. } => format!("line {line}"),
            Position { column: Some(column), .. } => format!("column {column}"),
            _ => format!("row {first} (rows from 0)"),
        };
        let reason = format!(
            "the ID {} is also that of {earlier}: an instance has one row in a view, so rename or delete one of the two",
            quoted(id)
        );
        self.id(second).fault(reason)
    }

    fn line(&self, record: usize) -> Option<usize> {
        self.lines.as_ref()?.get(record).map(|line| *line as usize)
    }
}

/// Adds the place in a file to an error of the views.
pub(super) fn explain(error: daimc_core::Error, origins: &[Origin]) -> Error {
    let find = |view: &str| origins.iter().find(|origin| origin.name == view);
    match &error {
        daimc_core::Error::NotFinite { view, row, id, column, feature, value } => match find(view) {
            Some(origin) => origin.cell(*row, *column).fault(format!(
                    "the value of feature {} of instance {} is {value}: write NA in the whole row if the instance is \
                     missing, or a finite value",
                    quoted(feature),
                    quoted(id)
            )),
            None => error.into(),
        },
        daimc_core::Error::DuplicateId { view, id, first, second } => match find(view) {
            Some(origin) => origin.twice(id, *first, *second),
            None => error.into(),
        },
        _ => error.into(),
    }
}

/// Fails if a table has no ID in common with another one.
pub(super) fn refuse_disjoint(tables: &[(String, Table)]) -> Result<()> {
    let mut lister = HashMap::new();
    let mut shares = vec![tables.len() < 2; tables.len()];
    // Row by row through all tables, which finds common IDs soon if tables have the same order.
    for row in 0..tables.iter().map(|(_, table)| table.rows).max().unwrap_or(0) {
        if shares.iter().all(|shares| *shares) {
            return Ok(());
        }
        for (v, (_, table)) in tables.iter().enumerate().filter(|(_, (_, table))| row < table.rows) {
            let first = *lister.entry(table.id(row)).or_insert(v);
            if first != v {
                (shares[first], shares[v]) = (true, true);
            }
        }
    }
    let Some(odd) = shares.iter().position(|shares| !shares) else { return Ok(()) };
    let (table, other) = (&tables[odd].1, &tables[usize::from(odd == 0)].1);
    let reason = format!(
        "no common IDs: the view {} has no instance in common with another; here IDs are like {}, in {} like {}; {}",
        quoted(&tables[odd].0),
        examples(table),
        other.place(),
        examples(other),
        way_out(tables, odd)
    );
    Err(table.place().fault(reason))
}

/// The options that would match the instances of a view with those of another.
fn way_out(tables: &[(String, Table)], odd: usize) -> String {
    let ids = |v: usize| tables[v].1.ids.iter().flatten().map(String::as_str).collect::<HashSet<_>>();
    // If either of two tables could be the transposed one, the number of matching titles decides.
    let turned = (0..tables.len()).filter(|&v| !tables[v].1.transposed).map(|turned| {
        let others = (0..tables.len()).filter(|&v| v != turned && (turned == odd || v == odd)).map(ids);
        let titles = || tables[turned].1.features.iter().flatten();
        let named = |ids: HashSet<&str>| titles().filter(|title| ids.contains(title.as_str())).count();
        (others.map(named).max().unwrap_or(0), turned)
    });
    if let Some((columns, turned)) = turned.max().filter(|(columns, _)| *columns > 0) {
        let (name, place) = (plain(&tables[turned].0), tables[turned].1.place());
        return format!(
            "{columns} columns of {place} have the IDs of instances for titles: add --transpose={name}"
        );
    }
    let table = &tables[odd].1;
    let listed: Vec<Vec<String>> =
        tables.iter().map(|(_, table)| table.ids.clone().unwrap_or_default()).collect();
    if let Some(near) = near(&listed).filter(|near| near.shared[odd] > 0) {
        return format!(
            "add {near}, with which {} of its {} instances are in others too",
            near.shared[odd], table.rows
        );
    }
    "if instances are in columns, use --transpose, if there are no IDs, --no-ids, and if they are meant to be other instances, \
     --allow-disjoint"
        .into()
}

fn examples(table: &Table) -> String {
    list((0..table.rows.min(3)).map(|row| quoted(&table.id(row)).to_string()))
}
