//! Data frames: named columns of one type each, as in Parquet and Arrow.

use daimc_core::text::{list, quoted};
use serde_json::Value;

use crate::dense::MatrixLayout;
use crate::disk::{Disk, Keep, Spool};
use crate::fault::{MemoryMeter, STRING_OVERHEAD};
use crate::input::{Opened, Random};
use crate::number::Target;
use crate::real::Real;
use crate::text::{Record, shell_list};
use crate::{Cells, Position, Precision, Reading, Result, Stored, Table};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Number(Precision),
    Whole { signed: bool },
    Text,
    Other,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: String,
    pub kind: ColumnType,
    /// The name of the type, for a message.
    pub type_name: String,
    /// Its index in the file.
    pub index: usize,
}

impl Column {
    fn is_numeric(&self) -> bool {
        matches!(self.kind, ColumnType::Number(_) | ColumnType::Whole { .. })
    }

    fn may_be_id(&self) -> bool {
        matches!(self.kind, ColumnType::Text | ColumnType::Whole { .. })
    }
}

/// A file of columns.
pub(crate) trait Frame: Sized {
    /// Opens a file.
    fn open(place: Position, bytes: Random) -> Result<Self>;

    /// The number of rows, by the header.
    fn rows(&self) -> usize;

    /// The file.
    fn place(&self) -> &Position;

    /// Its columns; an error if one is of lists or records.
    fn columns(&self) -> Result<Vec<Column>>;

    /// The metadata of pandas, as JSON.
    fn pandas(&self) -> &str;

    /// The number of stored rows of a column.
    fn count(&self, column: &Column) -> Result<usize>;

    /// The numbers of all rows, NaN for null, appended to `out`.
    fn numbers<T: Target>(&self, column: &Column, out: &mut Vec<T>) -> Result<()>;

    /// Calls `visit` with the text, or the integer as text, of each row; `None` for null and invalid UTF-8.
    fn texts(&self, column: &Column, visit: &mut dyn FnMut(Option<String>) -> Result<()>) -> Result<()>;
}

/// Reads the columns of numbers. IDs are in the index of pandas, if the file has one, or in a first column of text or integers.
pub(crate) fn read<F: Frame>(file: &mut Opened, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let place = file.place.clone();
    file.at_random(|bytes| table(&F::open(place, bytes)?, how, keep))
}

fn table<F: Frame>(frame: &F, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let place = frame.place();
    let (dropped, mut columns): (Vec<Column>, Vec<Column>) =
        frame.columns()?.into_iter().partition(|column| how.drop.contains(&column.name));
    let dropped = dropped.into_iter().map(|column| column.name).collect();
    let index = Index::of(frame);
    let position = if how.no_ids { None } else { index.column(place, &columns)? };
    let id_column = position.map(|position| columns.remove(position));
    if columns.is_empty() {
        return Err(place.fault("has no column of values; if its first column is one, read it without IDs"));
    }
    refuse_others(place, &columns)?;
    let rows = frame.count(id_column.as_ref().unwrap_or(&columns[0]))?;
    if rows == 0 {
        return Err(place.fault("has no rows"));
    }
    let lines = match &id_column {
        Some(column) => Some(ids(frame, column)?),
        None if how.no_ids => None,
        None => {
            place.check_memory((rows as u64).saturating_mul(STRING_OVERHEAD as u64))?;
            index.counted(rows)
        }
    };
    let names = columns.iter().map(|column| column.name.clone()).collect();

    let layout = MatrixLayout::new(rows, columns.len(), true, how);
    let cells = match (how.precision.unwrap_or(precision(&columns)), keep.disk()) {
        (Precision::F32, None) => Cells::DenseF32(values(frame, layout, &columns)?),
        (Precision::F64, None) => Cells::DenseF64(values(frame, layout, &columns)?),
        (Precision::F32, Some(disk)) => Cells::Stored(spool::<f32, F>(frame, layout, &columns, disk)?),
        (Precision::F64, Some(disk)) => Cells::Stored(spool::<f64, F>(frame, layout, &columns, disk)?),
    };
    let (ids, features) = match how {
        // Columns are instances, and their names are the IDs.
        Reading { transpose: true, no_ids, .. } => ((!no_ids).then_some(names), lines),
        _ => (lines, Some(names)),
    };
    let table = Table::new(place.clone(), layout.rows(), layout.columns(), cells, how);
    Ok(Table { ids, features, dropped, ..table })
}

/// Rows, columns and type of the numbers of a table.
pub(crate) fn shape<F: Frame>(file: &mut Opened) -> Result<(usize, usize, Precision)> {
    let place = file.place.clone();
    file.at_random(|bytes| {
        let frame = F::open(place, bytes)?;
        let mut columns = frame.columns()?;
        columns.retain(Column::is_numeric);
        Ok((frame.rows(), columns.len(), precision(&columns)))
    })
}

/// All cells as text, with the names of the columns first, and IDs as the first column.
pub(crate) fn records<F: Frame>(file: &mut Opened) -> Result<Vec<Record>> {
    let place = file.place.clone();
    file.at_random(|bytes| records_of(&F::open(place, bytes)?))
}

fn records_of<F: Frame>(frame: &F) -> Result<Vec<Record>> {
    let place = frame.place();
    let mut columns = frame.columns()?;
    if let Some(position) = Index::of(frame).column(place, &columns)? {
        let ids = columns.remove(position);
        columns.insert(0, ids);
    }
    let rows = columns.first().map_or(Ok(0), |column| frame.count(column))?;
    place.check_memory((rows as u64).saturating_mul((columns.len() * STRING_OVERHEAD) as u64))?;
    let mut records: Vec<Record> =
        (0..=rows).map(|row| Record { line: row + 1, fields: Vec::with_capacity(columns.len()) }).collect();
    let mut pieces = MemoryMeter::default();
    for column in &columns {
        records[0].fields.push(column.name.clone());
        let mut below = records[1..].iter_mut();
        let mut push = |text: Option<String>| {
            let text = text.unwrap_or_default();
            pieces.take(place, text.len())?;
            below.next().into_iter().for_each(|record| record.fields.push(text.clone()));
            Ok(())
        };
        match column.kind {
            ColumnType::Text | ColumnType::Whole { .. } => frame.texts(column, &mut push)?,
            ColumnType::Number(_) => {
                let mut numbers = place.allocate::<f64>(rows)?;
                frame.numbers(column, &mut numbers)?;
                let text = |number: f64| if number.is_nan() { None } else { Some(number.to_string()) };
                numbers.into_iter().try_for_each(|number| push(text(number)))?;
            }
            ColumnType::Other => (0..rows).try_for_each(|_| push(None))?,
        }
    }
    Ok(records)
}

/// Fails with the names of all columns that are not numeric.
fn refuse_others(place: &Position, columns: &[Column]) -> Result<()> {
    let others: Vec<&Column> = columns.iter().filter(|column| !column.is_numeric()).collect();
    let shown = |column: &&Column| format!("{} of type {}", quoted(&column.name), column.type_name);
    let names: Vec<String> = others.iter().map(|column| column.name.clone()).collect();
    let (what, them) = match others.len() {
        0 => return Ok(()),
        1 => ("a column", "it"),
        _ => ("columns", "them"),
    };
    let others = list(others.iter().map(shown));
    let names = shell_list(&names);
    Err(place.fault(format!(
        "has {what} {others}; leave {them} out (--drop {names}), or turn {them} into numbers"
    )))
}

fn precision(columns: &[Column]) -> Precision {
    let single = columns.iter().all(|column| column.kind == ColumnType::Number(Precision::F32));
    if single { Precision::F32 } else { Precision::F64 }
}

fn ids<F: Frame>(frame: &F, column: &Column) -> Result<Vec<String>> {
    let place = frame.place();
    if !column.may_be_id() {
        return Err(place.fault(format!(
            "has its IDs in column {} of type {}; turn them into text or whole numbers",
            quoted(&column.name),
            column.type_name
        )));
    }
    let mut ids: Vec<String> = Vec::new();
    // Many rows may share a long text.
    let mut pieces = MemoryMeter::default();
    frame.texts(column, &mut |text| {
        let (row, name) = (ids.len() + 1, quoted(&column.name));
        let reason = || format!("has no ID in row {row}: column {name} is empty or not UTF-8");
        let text = text.ok_or_else(|| place.fault(reason()))?;
        if text.contains('\0') {
            return Err(place.fault(format!("has a NUL in the ID of row {row} (column {name}): remove it")));
        }
        pieces.take(place, STRING_OVERHEAD + text.len())?;
        ids.push(text);
        Ok(())
    })?;
    Ok(ids)
}

/// Writes column after column to a spool file.
fn spool<T: Real, F: Frame>(
    frame: &F,
    layout: MatrixLayout,
    columns: &[Column],
    disk: &Disk,
) -> Result<Stored> {
    let mut spool = Spool::new(disk)?;
    let mut values: Vec<T> = frame.place().allocate(layout.length)?;
    for column in columns {
        values.clear();
        frame.numbers(column, &mut values)?;
        spool.write(&values)?;
    }
    drop(values);
    spool.dense::<T>(layout.rows(), layout.columns(), !layout.lines_are_rows)
}

fn values<T: Target, F: Frame>(frame: &F, layout: MatrixLayout, columns: &[Column]) -> Result<Vec<T>> {
    layout.lay_out(frame.place(), |lines, out| {
        columns[lines].iter().try_for_each(|column| frame.numbers(column, out))
    })
}

/// The metadata of pandas on the index of a table.
struct Index(Value);

impl Index {
    fn of(frame: &impl Frame) -> Self {
        Self(serde_json::from_str(frame.pandas()).unwrap_or_default())
    }

    /// The position of the column of IDs.
    fn column(&self, place: &Position, columns: &[Column]) -> Result<Option<usize>> {
        let names: Vec<&str> =
            self.0["index_columns"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if names.len() > 1 {
            return Err(place.fault(format!(
                "has an index of {} levels; make it one column of IDs before saving",
                names.len()
            )));
        }
        let stored = names.first().and_then(|name| columns.iter().position(|column| column.name == *name));
        Ok(stored.or_else(|| columns.first().filter(|column| column.may_be_id()).map(|_| 0)))
    }

    /// The IDs of a range index, which is not stored; `None` for the default one from 0 in steps of 1.
    fn counted(&self, rows: usize) -> Option<Vec<String>> {
        let range = self.0["index_columns"].as_array()?.iter().find(|index| index["kind"] == "range")?;
        let (start, step) = (range["start"].as_i64()?, range["step"].as_i64()?);
        let id =
            |row: usize| Some(start.checked_add(step.checked_mul(i64::try_from(row).ok()?)?)?.to_string());
        if (start, step) == (0, 1) { None } else { (0..rows).map(id).collect() }
    }
}
