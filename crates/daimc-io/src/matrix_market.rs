//! Matrix Market: `.mtx`, plain or compressed, with names in files beside it.

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
use crate::{Cells, Error, Place, Precision, Reading, Result, Table};
use build::Coordinates;
use entries::{Parse, Parsed};
use header::{Header, Storage, Symmetry};
pub use names::companions;

/// Bytes that are parsed at a time.
const CHUNK: usize = 1 << 20;

/// Reads a matrix: coordinates become sparse rows, arrays dense ones. Rows are instances, unless
/// `how.transpose` says that columns are. Names of instances and features are taken from files beside it.
pub(crate) fn read(
    path: &Path,
    input: Input<'_>,
    how: Reading,
    keep: Keep<'_>,
    known: Option<Known>,
) -> Result<Table> {
    match how.precision {
        Some(Precision::F32) => read_as::<f32>(path, input, how, keep, known),
        Some(Precision::F64) | None => read_as::<f64>(path, input, how, keep, known),
    }
}

/// What is known of a sparse matrix from elsewhere.
pub(crate) struct Known {
    /// Names of the rows of the file.
    pub rows: Vec<String>,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Where only some rows are wanted, the new number of each; `u32::MAX` for others.
    pub only: Option<Vec<u32>>,
}

fn read_as<T: Real>(
    path: &Path,
    mut input: Input<'_>,
    how: Reading,
    keep: Keep<'_>,
    known: Option<Known>,
) -> Result<Table> {
    let size = input.size;
    let (header, head) = header::read(path, &mut input)?;
    if let Some(size) = size {
        header.check_size(path, size.saturating_sub(header.start as u64))?;
    }
    // Also before much memory is taken.
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
                    "is not the matrix of the names beside it; copy the folder again",
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
    let place = Place::file(path);
    let cells = match header.storage {
        Storage::Coordinate => {
            let mut entries = Coordinates::new(path, &header, Shape { rows, columns }, how, keep)?;
            each(path, text, &header, |mut part: Parsed<(u32, u32, T)>| {
                if let Some(only) = &only {
                    part.found.iter_mut().for_each(|entry| entry.0 = only[entry.0 as usize]);
                    part.found.retain(|entry| entry.0 != u32::MAX);
                }
                entries.add(&part.found)
            })?;
            entries.finish()?
        }
        Storage::Array if header.symmetry == Symmetry::General => {
            let mut values = Growing::new(keep)?;
            each(path, text, &header, |part: Parsed<T>| {
                values.append(&part.found, |values| place.reserve_by_quarters(values, part.found.len()))
            })?;
            match values.finish() {
                // Columns come one after another.
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
            build::room(path, &header, size_of::<T>())?;
            let mut values = Vec::new();
            each(path, text, &header, |mut part: Parsed<T>| {
                place.reserve_by_quarters(&mut values, part.found.len())?;
                values.append(&mut part.found);
                Ok(())
            })?;
            let mut values = build::full(path, values, &header)?;
            if !how.transpose {
                transpose(&mut values, header.columns, header.rows);
            }
            T::dense(values)
        }
    };
    let (path, transposed) = (path.to_owned(), how.transpose);
    let (dropped, remarks) = (Vec::new(), Vec::new());
    Ok(Table {
        path,
        variable: None,
        ids,
        features,
        rows,
        columns,
        cells,
        lines: None,
        transposed,
        dropped,
        remarks,
    })
}

/// Shows all entries to `add`, in the order of the file. There must be as many as the header says.
fn each<E: Send>(
    path: &Path,
    text: impl Read + Send,
    header: &Header,
    mut add: impl FnMut(Parsed<E>) -> Result<()> + Send,
) -> Result<()>
where
    Parsed<E>: Parse,
{
    let lines = |text: &[u8]| memrchr(b'\n', text).map_or(Cut::Later, |newline| Cut::At(newline + 1));
    let mut line = header.line;
    let mut count = 0;
    in_order(
        Chunks::new(text, CHUNK, lines),
        |text| Parsed::parse(text, header),
        |part: Result<(Parsed<E>, usize), entries::Fault>| {
            let (part, newlines) = part.map_err(|fault| fault.error(path, line))?;
            line += newlines;
            count += part.found.len();
            if count > header.stored { Err(header.wrong_count(path, "more")) } else { add(part) }
        },
        |error| input::failed(path, error),
    )?;
    if count < header.stored {
        return Err(header.wrong_count(path, &format!("only {count}")));
    }
    Ok(())
}

/// How many instances there are, and about how many bytes their values take in memory, from the first lines.
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
