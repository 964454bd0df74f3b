//! Matrix Market: `.mtx`, plain or compressed, with names in files beside it.

mod build;
mod entries;
mod header;
mod names;

use std::io::{Cursor, Read};
use std::path::Path;

use memchr::memrchr;

use crate::chunks::{Chunks, Cut, in_order};
use crate::input::{self, Input};
use crate::real::Real;
use crate::sparse::Shape;
use crate::transpose::transpose;
use crate::{Error, Place, Precision, Reading, Result, Table};
use entries::{Array, Coordinates, Entries};
use header::{Header, Storage};
pub use names::companions;

/// Bytes that are parsed at a time.
const CHUNK: usize = 1 << 20;

/// Reads a matrix: coordinates become sparse rows, arrays dense ones. Rows are instances, unless
/// `how.transpose` says that columns are. Names of instances and features are taken from files beside it.
pub(crate) fn read(path: &Path, input: Input<'_>, how: Reading) -> Result<Table> {
    match how.precision {
        Some(Precision::F32) => read_as::<f32>(path, input, how),
        Some(Precision::F64) | None => read_as::<f64>(path, input, how),
    }
}

fn read_as<T: Real>(path: &Path, mut input: Input<'_>, how: Reading) -> Result<Table> {
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
    let (ids, features) = names::find(path, how, rows, columns)?;
    header.check_shape(path, (rows, ids.is_some()), (columns, features.is_some()))?;
    let mut head = Cursor::new(head);
    head.set_position(header.start as u64);
    let text = head.chain(input);
    let cells = match header.storage {
        Storage::Coordinate => {
            let entries = collect::<Coordinates<T>>(path, text, &header)?;
            let entries = build::all(path, entries.found, &header, how.transpose)?;
            T::sparse(Shape { rows, columns }.rows_of_entries(&Place::file(path), entries)?)
        }
        Storage::Array => {
            let entries = collect::<Array<T>>(path, text, &header)?;
            // Columns come one after another.
            let mut values = build::full(path, entries.found, &header)?;
            if !how.transpose {
                transpose(&mut values, header.columns, header.rows);
            }
            T::dense(values)
        }
    };
    let (path, transposed) = (path.to_owned(), how.transpose);
    Ok(Table { path, variable: None, ids, features, rows, columns, cells, lines: None, transposed })
}

/// All entries, in the order of the file. There must be as many as the header says.
fn collect<E: Entries>(path: &Path, text: impl Read + Send, header: &Header) -> Result<E> {
    let lines = |text: &[u8]| memrchr(b'\n', text).map_or(Cut::Later, |newline| Cut::At(newline + 1));
    let mut all = E::default();
    let mut line = header.line;
    in_order(
        Chunks::new(text, CHUNK, lines),
        |text| E::parse(text, header),
        |part: Result<(E, usize), entries::Fault>| {
            let (part, newlines) = part.map_err(|fault| fault.error(path, line))?;
            line += newlines;
            all.append(&Place::file(path), part)?;
            if all.len() > header.stored { Err(header.wrong_count(path, "more")) } else { Ok(()) }
        },
        |error| input::failed(path, error),
    )?;
    if all.len() < header.stored {
        return Err(header.wrong_count(path, &format!("only {}", all.len())));
    }
    Ok(all)
}

fn wrong(path: &Path, line: usize, reason: impl Into<String>) -> Error {
    Error::Data { place: Place { line: Some(line), ..Place::file(path) }, reason: reason.into() }
}
