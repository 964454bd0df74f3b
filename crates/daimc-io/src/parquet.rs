//! Apache Parquet: a column per feature, and one of IDs where there is one.

mod checked;
mod column;
mod groups;
mod pages;
mod write;

use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use self::column::Chunks;
pub use self::write::{Values, write_parquet};
use crate::disk::Keep;
use crate::frame::{self, Column, Frame};
use crate::input::{Opened, Random};
use crate::number::Target;
use crate::quiet::caught;
use crate::text::Record;
use crate::{Error, Place, Precision, Reading, Result, Table};

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
