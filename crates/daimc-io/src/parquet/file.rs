//! An open file, and calls of the `parquet` crate.

use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::groups;
use crate::input::Random;
use crate::quiet::caught;
use crate::{Error, Position, Result};

/// An open file whose footer was checked against its length.
pub(crate) struct Parquet {
    pub(super) place: Position,
    pub(super) bytes: Random,
    pub(super) metadata: ParquetMetaData,
}

impl Parquet {
    pub(super) fn new(place: Position, bytes: Random) -> Result<Self> {
        let metadata = guarded(&place, || ParquetMetaDataReader::new().parse_and_finish(&bytes))?;
        let length = bytes.length();
        let parquet = Self { place, bytes, metadata };
        parquet.check(length)?;
        Ok(parquet)
    }

    /// Checks offsets and counts, which the reader of columns does not.
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
}

/// Calls the `parquet` crate. Its decoders panic on some damaged pages (a missing dictionary, a run that is too long), which cannot
/// be detected before the page is decoded.
pub(super) fn guarded<T>(
    place: &Position,
    call: impl FnOnce() -> std::result::Result<T, ParquetError>,
) -> Result<T> {
    match caught(call) {
        Some(result) => result.map_err(|error| damaged(place, &error)),
        None => Err(place.fault("is damaged; copy it again or save it anew")),
    }
}

fn damaged(place: &Position, error: &ParquetError) -> Error {
    match error {
        ParquetError::EOF(_) => place.fault("ends before its data do; copy it again or save it anew"),
        error => place.fault(format!("is not a Parquet file that can be read ({error}); save it anew")),
    }
}
