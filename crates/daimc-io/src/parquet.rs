//! Apache Parquet: a column per feature, and possibly one of IDs.

mod checked;
mod column;
mod file;
mod groups;
mod pages;
mod write;

use self::column::Chunks;
pub(crate) use self::file::Parquet;
pub use self::write::{Values, write_parquet};
use crate::frame::{Column, Frame};
use crate::input::Random;
use crate::number::Target;
use crate::{Position, Result};

impl Parquet {
    fn chunks(&self, index: usize) -> Result<Chunks> {
        let description = self.metadata.file_metadata().schema_descr().column(index);
        Chunks::new(index, description).map_err(|reason| self.place.fault(reason))
    }
}

impl Frame for Parquet {
    fn open(place: Position, bytes: Random) -> Result<Self> {
        Self::new(place, bytes)
    }

    fn rows(&self) -> usize {
        usize::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    fn place(&self) -> &Position {
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
