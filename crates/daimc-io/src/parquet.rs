//! Apache Parquet: a column per feature, and one of IDs where there is one.

mod checked;
mod column;
mod groups;
mod pages;

use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use daimc::text::quoted;

use self::column::{Column, ColumnType};
use crate::dense::Lie;
use crate::disk::{Disk, Keep, Spool};
use crate::fault::TEXT;
use crate::input::{Opened, Random};
use crate::number::Target;
use crate::quiet::caught;
use crate::real::Real;
use crate::{Cells, Error, Place, Precision, Reading, Result, Stored, Table};

/// Reads the columns of numbers. IDs are in the index of pandas if the file has it, or in the first column if
/// that holds text or whole numbers.
pub fn read(file: &mut Opened, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let place = file.place.clone();
    file.at_random(|bytes| table(&Parquet::open(place, bytes)?, how, keep))
}

/// Rows, columns and type of a table, from the description at its end.
pub fn shape(file: &mut Opened) -> Result<(usize, usize, Precision)> {
    let place = file.place.clone();
    file.at_random(|bytes| {
        let file = Parquet::open(place, bytes)?;
        let columns = file.columns()?;
        let rows = usize::try_from(file.metadata.file_metadata().num_rows()).unwrap_or(0);
        let numbers = || columns.iter().filter(|column| column.is_numeric());
        let single = numbers().all(|column| column.kind == ColumnType::Number(Precision::F32));
        Ok((rows, numbers().count(), if single { Precision::F32 } else { Precision::F64 }))
    })
}

fn table(file: &Parquet, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let mut columns = file.columns()?;
    let position = if how.no_ids { None } else { file.id_column(&columns)? };
    let id_column = position.map(|position| columns.remove(position));
    if columns.is_empty() {
        return Err(file
            .place
            .fault("has no column of values; if its first column is one, read it without IDs"));
    }
    if let Some(column) = columns.iter().find(|column| !column.is_numeric()) {
        return Err(file.place.fault(format!(
            "has a column {} of type {}; drop it, or turn it into numbers",
            quoted(&column.name),
            column.type_name()
        )));
    }
    let rows = file.rows(id_column.as_ref().unwrap_or(&columns[0]))?;
    let lines = match &id_column {
        Some(column) => Some(column.texts(file)?),
        None if how.no_ids => None,
        None => {
            file.place.ask((rows as u64).saturating_mul(TEXT as u64))?;
            file.counted_index(rows)
        }
    };
    let names = columns.iter().map(|column| column.name.clone()).collect();

    let lie = Lie::new(rows, columns.len(), true, how);
    let single = columns.iter().all(|column| column.kind == ColumnType::Number(Precision::F32));
    let precision = if single { Precision::F32 } else { Precision::F64 };
    let cells = match (how.precision.unwrap_or(precision), keep.disk()) {
        (Precision::F32, None) => Cells::DenseF32(file.values(lie, &columns)?),
        (Precision::F64, None) => Cells::DenseF64(file.values(lie, &columns)?),
        (Precision::F32, Some(disk)) => Cells::Stored(file.spool::<f32>(lie, &columns, disk)?),
        (Precision::F64, Some(disk)) => Cells::Stored(file.spool::<f64>(lie, &columns, disk)?),
    };
    let (ids, features) = match how {
        // Columns are instances, and their names the only IDs that there may be.
        Reading { transpose: true, no_ids, .. } => ((!no_ids).then_some(names), lines),
        _ => (lines, Some(names)),
    };
    Ok(Table {
        path: file.place.path.clone(),
        variable: None,
        ids,
        features,
        rows: lie.rows(),
        columns: lie.columns(),
        cells,
        lines: None,
        transposed: how.transpose,
    })
}

/// An open file whose description of itself fits its length.
struct Parquet {
    place: Place,
    bytes: Random,
    metadata: ParquetMetaData,
}

impl Parquet {
    fn open(place: Place, bytes: Random) -> Result<Self> {
        let metadata = guarded(&place, || ParquetMetaDataReader::new().parse_and_finish(&bytes))?;
        let length = bytes.length();
        let parquet = Self { place, bytes, metadata };
        parquet.check(length)?;
        Ok(parquet)
    }

    /// The reader of columns takes offsets and counts on trust.
    fn check(&self, length: u64) -> Result<()> {
        let columns = self.metadata.file_metadata().schema_descr().num_columns();
        let mut rows: i64 = 0;
        let fits = self.metadata.row_groups().iter().all(|group| {
            rows = rows.saturating_add(group.num_rows());
            group.num_rows() >= 0
                && group.num_columns() == columns
                && group.columns().iter().all(|chunk| {
                    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
                    let end = start.checked_add(chunk.compressed_size());
                    start >= 0 && chunk.compressed_size() >= 0 && end.is_some_and(|end| end as u64 <= length)
                })
        });
        if !fits || rows != self.metadata.file_metadata().num_rows() {
            return Err(self.place.fault("contradicts itself; copy it again or save it anew"));
        }
        if groups::differ(&self.bytes, self.metadata.file_metadata().schema_descr()) {
            let reason =
                "has a row group whose columns are not those of the file, by name or type; save it anew";
            return Err(self.place.fault(reason));
        }
        Ok(())
    }

    fn columns(&self) -> Result<Vec<Column>> {
        let schema = self.metadata.file_metadata().schema_descr();
        let columns = (0..schema.num_columns()).map(|index| Column::new(index, schema.column(index)));
        columns.map(|column| column.map_err(|reason| self.place.fault(reason))).collect()
    }

    /// Which column holds the IDs.
    fn id_column(&self, columns: &[Column]) -> Result<Option<usize>> {
        let index = self.pandas_index();
        if index.len() > 1 {
            return Err(self.place.fault(format!(
                "has an index of {} levels; make it one column of IDs before saving",
                index.len()
            )));
        }
        let stored = index.first().and_then(|name| columns.iter().position(|column| &column.name == name));
        Ok(stored.or_else(|| columns.first().filter(|column| column.may_be_id()).map(|_| 0)))
    }

    /// An index of pandas that only counts, where it does not count from 0 in steps of 1: it tells rows apart, but is not
    /// stored.
    fn counted_index(&self, rows: usize) -> Option<Vec<String>> {
        let index = self.pandas();
        let range = index["index_columns"].as_array()?.iter().find(|index| index["kind"] == "range")?;
        let (start, step) = (range["start"].as_i64()?, range["step"].as_i64()?);
        let id =
            |row: usize| Some(start.checked_add(step.checked_mul(i64::try_from(row).ok()?)?)?.to_string());
        if (start, step) == (0, 1) { None } else { (0..rows).map(id).collect() }
    }

    /// The columns that pandas made of an index.
    fn pandas_index(&self) -> Vec<String> {
        let pandas = self.pandas();
        let index = pandas["index_columns"].as_array();
        index.into_iter().flatten().filter_map(|name| name.as_str().map(String::from)).collect()
    }

    /// What pandas says about the table.
    fn pandas(&self) -> serde_json::Value {
        let entries = self.metadata.file_metadata().key_value_metadata();
        let entry = entries.and_then(|entries| entries.iter().find(|entry| entry.key == "pandas"));
        let text = entry.and_then(|entry| entry.value.as_deref()).unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The number of rows, which is believed when a column really has as many.
    fn rows(&self, column: &Column) -> Result<usize> {
        let mut rows = 0;
        column.count(self, &mut rows)?;
        if rows == 0 {
            return Err(self.place.fault("has no rows"));
        }
        Ok(rows)
    }

    /// Writes column after column to a spool file.
    fn spool<T: Real>(&self, lie: Lie, columns: &[Column], disk: &Disk) -> Result<Stored> {
        let mut spool = Spool::new(disk)?;
        let mut values: Vec<T> = self.place.room(lie.length)?;
        for column in columns {
            values.clear();
            column.numbers(self, &mut values)?;
            spool.write(&values)?;
        }
        drop(values);
        spool.dense::<T>(lie.rows(), lie.columns(), !lie.lines_are_rows)
    }

    fn values<T: Target>(&self, lie: Lie, columns: &[Column]) -> Result<Vec<T>> {
        lie.lay_out(&self.place, |lines, out| {
            columns[lines].iter().try_for_each(|column| column.numbers(self, out))
        })
    }
}

/// Calls the `parquet` crate. Its decoders panic on some damaged pages (a dictionary that is not there, a run that is
/// too long), which cannot be seen before the page is decoded. Whatever it was working on is dropped.
fn guarded<T>(place: &Place, call: impl FnOnce() -> std::result::Result<T, ParquetError>) -> Result<T> {
    match caught(call) {
        Some(result) => result.map_err(|error| damaged(place, &error)),
        None => Err(place.fault("is damaged; copy it again or save it anew")),
    }
}

fn damaged(place: &Place, error: &ParquetError) -> Error {
    match error {
        ParquetError::EOF(_) => place.fault("ends before its data do; copy it again or save it anew"),
        error => place.fault(format!("is not a Parquet file that can be read ({error}); save it anew")),
    }
}
