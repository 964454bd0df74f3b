//! Writes the rows of a sparse matrix to spool files.

use std::sync::Arc;

use super::sparse::{Numbers, Sparse};
use super::spool::Spool;
use crate::number::{Encoding, NumberType};
use crate::real::Real;
use crate::{Csr, Position, Result, Stored};

/// Spool files of the rows of a sparse matrix.
pub(super) struct Writer {
    columns: Spool,
    values: Spool,
    offsets: Vec<usize>,
    missing: Vec<u32>,
}

impl Writer {
    /// Starts a matrix of `rows` rows.
    pub fn new(place: &Position, columns: Spool, values: Spool, rows: usize) -> Result<Self> {
        let mut offsets = place.allocate(rows + 1)?;
        offsets.push(0);
        Ok(Self { columns, values, offsets, missing: place.allocate(rows)? })
    }

    /// Appends rows with increasing columns.
    pub fn append<T: Real>(&mut self, rows: &Csr<T>) -> Result<()> {
        self.columns.write_columns(&rows.columns)?;
        self.values.write(&rows.values)?;
        let before = self.offsets.last().copied().unwrap_or(0);
        self.offsets.extend(rows.offsets[1..].iter().map(|end| before + end));
        self.missing.extend(missing(rows));
        Ok(())
    }

    /// Returns the matrix.
    pub fn finish<T: Real>(self, width: usize) -> Result<Stored> {
        let indices = Encoding { kind: NumberType::U32, big_endian: false };
        let sparse = Sparse {
            width,
            offsets: self.offsets,
            columns: Numbers { file: self.columns.finish()?, offset: 0, encoding: indices },
            values: Numbers { file: self.values.finish()?, offset: 0, encoding: T::ENCODING },
            precision: T::PRECISION,
        };
        Ok(Stored { rows: Arc::new(sparse), missing: Arc::new(self.missing) })
    }
}

/// The number of missing values of each row.
pub(crate) fn missing<T: Real>(rows: &Csr<T>) -> impl Iterator<Item = u32> {
    rows.offsets.windows(2).map(|bounds| {
        rows.values[bounds[0]..bounds[1]].iter().map(|value| u32::from(value.is_missing())).sum()
    })
}
