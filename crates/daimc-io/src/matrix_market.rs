//! Matrix Market: `.mtx`, plain or compressed, with names in companion files.

mod build;
mod entries;
mod header;
mod names;

use std::io::{Cursor, Read};
use std::path::Path;

use memchr::memrchr;

use crate::chunks::{Chunks, Cut, in_order};
use crate::disk::{Growing, Grown, Keep};
use crate::input::{self, Input};
use crate::real::Real;
use crate::sparse::Shape;
use crate::transpose::transpose;
use crate::{Cells, Error, Position, Precision, Reading, Result, Table};
use build::Coordinates;
use entries::{Fault, coordinates, number, parse};
use header::{Header, Storage, Symmetry};
pub use names::companions;

/// Bytes that are parsed at a time.
const CHUNK: usize = 1 << 20;

/// Reads a matrix: sparse from coordinates, dense from an array. Rows are instances, or columns with `how.transpose`. Names of
/// instances and features are read from companion files.
pub(crate) fn read(
    path: &Path,
    input: Input<'_>,
    how: Reading,
    keep: Keep<'_>,
    known: Option<KnownNames>,
) -> Result<Table> {
    match how.precision {
        Some(Precision::F32) => read_as::<f32>(path, input, how, keep, known),
        Some(Precision::F64) | None => read_as::<f64>(path, input, how, keep, known),
    }
}

/// Names for a sparse matrix from other files.
pub(crate) struct KnownNames {
    /// Names of the rows of the file.
    pub rows: Vec<String>,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// If only some rows are read, the new number of each; `u32::MAX` for the others.
    pub only: Option<Vec<u32>>,
}

fn read_as<T: Real>(
    path: &Path,
    mut input: Input<'_>,
    how: Reading,
    keep: Keep<'_>,
    known: Option<KnownNames>,
) -> Result<Table> {
    let size = input.size;
    let (header, head) = header::read(path, &mut input)?;
    if let Some(size) = size {
        header.check_size(path, size.saturating_sub(header.start as u64))?;
    }
    // Before much memory is allocated.
    let (mut rows, mut columns) = (header.rows, header.columns);
    if how.transpose {
        std::mem::swap(&mut rows, &mut columns);
    }
    let mut only = None;
    let (ids, features) = match known {
        None => names::find(path, how, rows, columns)?,
        Some(known) => {
            let total = known.only.as_ref().map_or(known.rows.len(), Vec::len);
            if (total, known.columns.len()) != (header.rows, header.columns)
                || header.symmetry != Symmetry::General
                || header.storage != Storage::Coordinate
            {
                return Err(Error::in_file(
                    path,
                    "does not match the names next to it; copy the folder again",
                ));
            }
            only = known.only;
            let (ids, features) =
                if how.transpose { (known.columns, known.rows) } else { (known.rows, known.columns) };
            (rows, columns) = (ids.len(), features.len());
            (Some(ids).filter(|_| !how.no_ids), Some(features))
        }
    };
    header.check_shape(path, (rows, ids.is_some()), (columns, features.is_some()))?;
    let mut head = Cursor::new(head);
    head.set_position(header.start as u64);
    let text = head.chain(input);
    let place = Position::file(path);
    let cells = match header.storage {
        Storage::Coordinate => {
            let mut entries = Coordinates::new(path, &header, Shape { rows, columns }, how, keep)?;
            each(
                path,
                text,
                &header,
                |line| coordinates::<T>(line, &header),
                |mut found| {
                    if let Some(only) = &only {
                        found.iter_mut().for_each(|entry| entry.0 = only[entry.0 as usize]);
                        found.retain(|entry| entry.0 != u32::MAX);
                    }
                    entries.add(&found)
                },
            )?;
            entries.finish()?
        }
        Storage::Array if header.symmetry == Symmetry::General => {
            let mut values = Growing::new(keep)?;
            each(path, text, &header, number::<T>, |found| {
                values.append(&found, |values| place.reserve_by_quarters(values, found.len()))
            })?;
            match values.finish() {
                // Arrays are in column-major order.
                Grown::Disk(spool) => Cells::Stored(spool.dense::<T>(rows, columns, !how.transpose)?),
                Grown::Memory(mut values) => {
                    if !how.transpose {
                        transpose(&mut values, header.columns, header.rows);
                    }
                    T::dense(values)
                }
            }
        }
        Storage::Array => {
            build::check_memory(path, &header, size_of::<T>())?;
            let mut values = Vec::new();
            each(path, text, &header, number::<T>, |mut found| {
                place.reserve_by_quarters(&mut values, found.len())?;
                values.append(&mut found);
                Ok(())
            })?;
            let mut values = build::full(path, values, &header)?;
            if !how.transpose {
                transpose(&mut values, header.columns, header.rows);
            }
            T::dense(values)
        }
    };
    Ok(Table { ids, features, ..Table::new(place, rows, columns, cells, how) })
}

/// Calls `add` with all entries in the order of the file; an error if their number differs from the header.
fn each<E: Send>(
    path: &Path,
    text: impl Read + Send,
    header: &Header,
    entry: impl Fn(&[u8]) -> Result<E, String> + Sync,
    mut add: impl FnMut(Vec<E>) -> Result<()> + Send,
) -> Result<()> {
    let lines = |text: &[u8]| memrchr(b'\n', text).map_or(Cut::Later, |newline| Cut::At(newline + 1));
    let mut line = header.line;
    let mut count = 0;
    in_order(
        Chunks::new(text, CHUNK, lines),
        |text| parse(text, &entry),
        |part: Result<(Vec<E>, usize), Fault>| {
            let (found, newlines) = part.map_err(|fault| fault.error(path, line))?;
            line += newlines;
            count += found.len();
            if count > header.stored { Err(header.wrong_count(path, "more")) } else { add(found) }
        },
        |error| input::failed(path, error),
    )?;
    if count < header.stored {
        return Err(header.wrong_count(path, &format!("only {count}")));
    }
    Ok(())
}

/// The number of instances, and the estimated bytes of their values in memory, from the header.
pub(crate) fn size(path: &Path, mut input: Input<'_>, how: Reading) -> Result<(usize, u64)> {
    let (header, _) = header::read(path, &mut input)?;
    let value = if how.precision == Some(Precision::F32) { 4 } else { 8 };
    let rows = if how.transpose { header.columns } else { header.rows };
    let bytes = match header.storage {
        Storage::Array => (header.rows as u64).saturating_mul(header.columns as u64).saturating_mul(value),
        Storage::Coordinate => {
            let times = if header.symmetry == Symmetry::General { 1 } else { 2 };
            (header.stored as u64).saturating_mul(times * (4 + value)).saturating_add(8 * rows as u64)
        }
    };
    Ok((rows, bytes))
}
