//! Joins the pieces of a text.

use std::path::Path;

use super::fault::Fault;
use super::fault_kind::FaultKind;
use super::format::Format;
use super::piece::Piece;
use crate::disk::{Growing, Grown, Keep};
use crate::fault::{MemoryMeter, STRING_OVERHEAD};
use crate::real::Real;
use crate::transpose::transpose;
use crate::{Cells, Error, Position, Reading, Result, Table};

/// The records so far.
pub(super) struct Body<'a, T> {
    path: &'a Path,
    format: &'a Format,
    names: Vec<String>,
    values: Growing<'a, T>,
    lines: Vec<u32>,
    /// The line on which the next piece starts, from 1.
    line: usize,
    /// The first empty line, after which no record is allowed.
    empty: Option<usize>,
    /// The number of bytes to come, if known.
    to_come: Option<usize>,
    pieces: MemoryMeter,
}

impl<'a, T: Real> Body<'a, T> {
    /// Starts a text of `bytes` bytes, if known.
    pub fn new(path: &'a Path, format: &'a Format, bytes: Option<u64>, keep: Keep<'a>) -> Result<Self> {
        let to_come = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        Ok(Self {
            path,
            format,
            names: Vec::new(),
            values: Growing::new(keep)?,
            lines: Vec::new(),
            line: format.line,
            empty: None,
            to_come,
            pieces: MemoryMeter::default(),
        })
    }

    /// Adds the next piece.
    pub fn add(&mut self, piece: Result<Piece<T>, Fault>) -> Result<()> {
        let goes_on = piece.as_ref().map_or(true, |piece| !piece.lines.is_empty());
        if let Some(empty) = self.empty.filter(|_| goes_on) {
            let fault = Fault { line: 0, column: None, name: None, kind: FaultKind::EmptyLine };
            return Err(fault.error(self.path, empty, self.format));
        }
        let piece = piece.map_err(|fault| fault.error(self.path, self.line, self.format))?;
        let (path, to_come) = (self.path, self.to_come);
        let more = piece.values.len();
        self.values.append(&piece.values, |values| reserve(path, values, more, piece.bytes, to_come))?;
        let names = piece.names.iter().map(|name| STRING_OVERHEAD + name.len()).sum::<usize>();
        self.pieces.take(&Position::file(self.path), names + size_of_val(&*piece.lines))?;
        self.names.extend(piece.names);
        let first = u32::try_from(self.line).unwrap_or(u32::MAX);
        self.lines.extend(piece.lines.iter().map(|line| first.saturating_add(*line)));
        self.empty = self.empty.or(piece.empty.map(|line| self.line + line));
        self.line += piece.newlines;
        self.to_come = self.to_come.map(|bytes| bytes.saturating_sub(piece.bytes));
        Ok(())
    }

    /// The table.
    pub fn finish(self, how: Reading) -> Result<Table> {
        let (records, values, format) = (self.lines.len(), self.format.values(), self.format);
        if records == 0 {
            let reason = "there is a header but no row below it: a row per instance is expected";
            return Err(Error::in_file(self.path, reason));
        }
        if let Some(expected) = format.records.filter(|expected| *expected != records) {
            let reason = format!(
                "line 2 says that there are {expected} rows, but there are {records}: the file was cut off or put together, \
                 copy it again"
            );
            return Err(Error::in_file(self.path, reason));
        }
        let mut names = format.named.then_some(self.names);
        let mut header = format.header.clone();
        let (mut rows, mut columns) = (records, values);
        if format.transposed {
            std::mem::swap(&mut names, &mut header);
            std::mem::swap(&mut rows, &mut columns);
        }
        let cells = match self.values.finish() {
            Grown::Disk(spool) => Cells::Stored(spool.dense::<T>(rows, columns, format.transposed)?),
            Grown::Memory(mut all) => {
                if format.transposed {
                    transpose(&mut all, records, values);
                }
                T::dense(all)
            }
        };
        let how = Reading { transpose: format.transposed, ..how };
        Ok(Table {
            ids: names.filter(|_| !how.no_ids),
            features: header,
            lines: Some(self.lines),
            dropped: format.dropped.clone(),
            remarks: format.remarks.clone(),
            ..Table::new(Position::file(self.path), rows, columns, cells, how)
        })
    }
}

/// Reserves memory for the `more` values of a piece of `bytes` bytes and, if the length of the text is known, for all values to come:
/// doubling the vector could take twice the memory of the matrix.
fn reserve<T>(
    path: &Path,
    values: &mut Vec<T>,
    more: usize,
    bytes: usize,
    to_come: Option<usize>,
) -> Result<()> {
    if values.capacity() - values.len() >= more {
        return Ok(());
    }
    let per_byte = more as f64 / bytes.max(1) as f64;
    let expected = to_come.map_or(values.len() / 4, |bytes| (1.01 * per_byte * bytes as f64) as usize);
    Position::file(path).reserve(values, expected.max(more))
}
