//! Arrow's IPC formats: files (`.arrow`, and `.feather` from version 2 on) and streams.
//!
//! Messages and buffers are decoded here, straight into the matrix: every offset and length in the file is checked, so that
//! nothing panics.

mod buffers;
mod file;
mod flatbuffer;
mod schema;

use self::buffers::{bit, integer};
pub(crate) use self::file::{Arrow, CONTINUATION, MAGIC};
use self::schema::{Field, Storage};
use crate::frame::{Column, ColumnType, Frame};
use crate::input::Random;
use crate::number::{Encoding, NumberType, Target};
use crate::{Position, Precision, Result};

impl Frame for Arrow {
    fn open(place: Position, bytes: Random) -> Result<Self> {
        Self::new(place, bytes)
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(|batch| batch.rows).sum()
    }

    fn place(&self) -> &Position {
        &self.place
    }

    fn columns(&self) -> Result<Vec<Column>> {
        let column = |(index, field): (usize, &Field)| {
            let kind = match field.storage {
                Storage::Null | Storage::Bits | Storage::Number(NumberType::F64) => {
                    ColumnType::Number(Precision::F64)
                }
                Storage::Number(NumberType::F16 | NumberType::F32) => ColumnType::Number(Precision::F32),
                Storage::Number(NumberType::U8 | NumberType::U16 | NumberType::U32 | NumberType::U64) => {
                    ColumnType::Whole { signed: false }
                }
                Storage::Number(_) => ColumnType::Whole { signed: true },
                Storage::Text(_) | Storage::Dictionary { .. } => ColumnType::Text,
                Storage::Other => ColumnType::Other,
            };
            Column { name: field.name.clone(), kind, type_name: field.type_name.clone(), index }
        };
        Ok(self.fields.iter().enumerate().map(column).collect())
    }

    fn pandas(&self) -> &str {
        &self.pandas
    }

    fn count(&self, column: &Column) -> Result<usize> {
        // A column of nulls has no values to count.
        let stored = |index: &usize| self.fields[*index].storage != Storage::Null;
        let Some(index) = Some(column.index).filter(stored).or_else(|| (0..self.fields.len()).find(stored))
        else {
            return Err(self.place.fault("has no column of values"));
        };
        let mut rows = 0;
        for batch in &self.batches {
            match self.fields[index].storage {
                Storage::Text(text) => self.text(batch, index, text)?.each(&mut |_| Ok(()))?,
                _ => drop(self.plain(batch, index)?),
            }
            rows += batch.rows;
        }
        Ok(rows)
    }

    fn numbers<T: Target>(&self, column: &Column, out: &mut Vec<T>) -> Result<()> {
        let nan = T::nearest(f64::NAN);
        for batch in &self.batches {
            let before = out.len();
            match self.fields[column.index].storage {
                Storage::Number(kind) => {
                    let bytes = self.plain(batch, column.index)?;
                    Encoding { kind, big_endian: false }.append(&bytes, out);
                }
                Storage::Bits => {
                    let bits = self.plain(batch, column.index)?;
                    out.extend((0..batch.rows).map(|row| T::nearest(f64::from(u8::from(bit(&bits, row))))));
                }
                _ => out.resize(before + batch.rows, nan),
            }
            if let Some(valid) = self.valid(batch, column.index)? {
                for (row, value) in out[before..].iter_mut().enumerate() {
                    if !bit(&valid, row) {
                        *value = nan;
                    }
                }
            }
        }
        Ok(())
    }

    fn texts(&self, column: &Column, visit: &mut dyn FnMut(Option<String>) -> Result<()>) -> Result<()> {
        for (number, batch) in self.batches.iter().enumerate() {
            match self.fields[column.index].storage {
                Storage::Text(text) => self.text(batch, column.index, text)?.each(visit)?,
                Storage::Dictionary { keys, id, text } => {
                    let words = self.words(number, id, text)?;
                    let bytes = self.plain(batch, column.index)?;
                    let valid = self.valid(batch, column.index)?;
                    for (row, key) in bytes.chunks_exact(keys.size()).enumerate() {
                        let known = valid.as_ref().is_none_or(|valid| bit(valid, row));
                        let key = integer(key, keys).filter(|_| known);
                        let key = key.and_then(|key| usize::try_from(key).ok());
                        visit(key.and_then(|key| words.get(key).cloned().flatten()))?;
                    }
                }
                Storage::Number(kind) => {
                    let bytes = self.plain(batch, column.index)?;
                    let valid = self.valid(batch, column.index)?;
                    for (row, value) in bytes.chunks_exact(kind.size()).enumerate() {
                        let known = valid.as_ref().is_none_or(|valid| bit(valid, row));
                        visit(integer(value, kind).filter(|_| known).map(|value| value.to_string()))?;
                    }
                }
                // Only columns of text and of integers are read as text.
                _ => (0..batch.rows).try_for_each(|_| visit(None))?,
            }
        }
        Ok(())
    }
}
