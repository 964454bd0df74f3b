//! Writes the rows of a sparse matrix to spool files.

use std::sync::Arc;

use super::sparse::{Numbers, Sparse};
use super::spool::Spool;
use crate::number::{Encoding, NumberType};
use crate::real::Real;
use crate::{Csr, Place, Precision, Result, Stored};

/// Spool files of the rows of a sparse matrix, written one after another.
pub(super) struct Writer {
    columns: Spool,
    values: Spool,
    offsets: Vec<usize>,
    missing: Vec<u32>,
}

impl Writer {
    /// For so many rows.
    pub fn new(place: &Place, columns: Spool, values: Spool, rows: usize) -> Result<Self> {
        let mut offsets = place.room(rows + 1)?;
        offsets.push(0);
        Ok(Self { columns, values, offsets, missing: place.room(rows)? })
    }

    /// Appends rows, whose columns increase.
    pub fn append<T: Real>(&mut self, rows: &Csr<T>) -> Result<()> {
        self.columns.write_columns(&rows.columns)?;
        self.values.write(&rows.values)?;
        let before = self.offsets.last().copied().unwrap_or(0);
        self.offsets.extend(rows.offsets[1..].iter().map(|end| before + end));
        self.missing.extend(missing(rows));
        Ok(())
    }

    /// The matrix.
    pub fn finish<T: Real>(self, width: usize) -> Result<Stored> {
        let kind = if T::PRECISION == Precision::F32 { NumberType::F32 } else { NumberType::F64 };
        let numbers = |file, kind| {
            let encoding = Encoding { kind, big_endian: false };
            Numbers { file, offset: 0, encoding }
        };
        let sparse = Sparse {
            width,
            offsets: self.offsets,
            columns: numbers(self.columns.finish()?, NumberType::U32),
            values: numbers(self.values.finish()?, kind),
            precision: T::PRECISION,
        };
        Ok(Stored { rows: Arc::new(sparse), missing: Arc::new(self.missing) })
    }
}

/// How many stored values of each row are missing.
pub(crate) fn missing<T: Real>(rows: &Csr<T>) -> impl Iterator<Item = u32> {
    rows.offsets.windows(2).map(|bounds| {
        rows.values[bounds[0]..bounds[1]].iter().map(|value| u32::from(value.is_missing())).sum()
    })
}
