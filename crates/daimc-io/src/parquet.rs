//! Apache Parquet: a column per feature, and one of IDs where there is one.

mod checked;
mod column;
mod file;
mod groups;
mod pages;
mod write;

use self::column::Chunks;
use self::file::Parquet;
pub use self::write::{Values, write_parquet};
use crate::disk::Keep;
use crate::frame::{self, Column, Frame};
use crate::input::Opened;
use crate::number::Target;
use crate::text::Record;
use crate::{Place, Precision, Reading, Result, Table};

/// Reads the columns of numbers, and the IDs.
pub fn read(file: &mut Opened, how: Reading, keep: Keep<'_>) -> Result<Table> {
    let place = file.place.clone();
    file.at_random(|bytes| frame::table(&Parquet::open(place, bytes)?, how, keep))
}

/// All cells as text, below the names of the columns.
pub(crate) fn records(file: &mut Opened) -> Result<Vec<Record>> {
    let place = file.place.clone();
    file.at_random(|bytes| frame::records(&Parquet::open(place, bytes)?))
}

/// Rows, columns and type of a table, from the description at its end.
pub fn shape(file: &mut Opened) -> Result<(usize, usize, Precision)> {
    let place = file.place.clone();
    file.at_random(|bytes| {
        let file = Parquet::open(place, bytes)?;
        let rows = usize::try_from(file.metadata.file_metadata().num_rows()).unwrap_or(0);
        let (columns, precision) = frame::shape(&file)?;
        Ok((rows, columns, precision))
    })
}

impl Parquet {
    fn chunks(&self, index: usize) -> Result<Chunks> {
        let description = self.metadata.file_metadata().schema_descr().column(index);
        Chunks::new(index, description).map_err(|reason| self.place.fault(reason))
    }
}

impl Frame for Parquet {
    fn place(&self) -> &Place {
        &self.place
    }

    fn columns(&self) -> Result<Vec<Column>> {
        let count = self.metadata.file_metadata().schema_descr().num_columns();
        (0..count).map(|index| self.chunks(index).map(Chunks::column)).collect()
    }

    fn pandas(&self) -> &str {
        let entries = self.metadata.file_metadata().key_value_metadata();
        let entry = entries.and_then(|entries| entries.iter().find(|entry| entry.key == "pandas"));
        entry.and_then(|entry| entry.value.as_deref()).unwrap_or_default()
    }

    fn count(&self, column: &Column) -> Result<usize> {
        let mut rows = 0;
        self.chunks(column.index)?.count(self, &mut rows)?;
        Ok(rows)
    }

    fn numbers<T: Target>(&self, column: &Column, out: &mut Vec<T>) -> Result<()> {
        self.chunks(column.index)?.numbers(self, out)
    }

    fn texts(&self, column: &Column, visit: &mut dyn FnMut(Option<String>) -> Result<()>) -> Result<()> {
        self.chunks(column.index)?.texts(self, visit)
    }
}
