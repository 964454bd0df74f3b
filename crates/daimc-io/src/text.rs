//! CSV, TSV and the like, plain or compressed.
//!
//! The text is read in pieces of whole records, the pieces are parsed in parallel, and their values are appended
//! in the order of the file.

mod body;
mod detect;
mod fault;
mod fault_kind;
mod fields;
mod format;
mod layout;
mod look;
mod number;
mod piece;
mod records;
#[cfg(test)]
mod tests;

use std::io::{Cursor, Read};
use std::path::Path;

pub(crate) use fault::shell_list;
pub(crate) use records::{Record, parse as records};

use crate::chunks::{Chunks, in_order};
use crate::disk::Keep;
use crate::input::{self, Input};
use crate::real::Real;
use crate::{Precision, Reading, Result, Table};

/// Bytes that are parsed at a time: large enough that the overhead of pieces is negligible, and small compared with the matrix.
const CHUNK: usize = 1 << 20;

/// Reads a table. Everything that [`Reading`] does not specify is detected from the text:
///
/// - The separator is the one of tab, comma, semicolon, `|` and blanks that fits the first records best.
/// - The first record is a header if one of its fields except the first, the ID, is not a number, if the first is empty or
///   a word like `id`, or if it is one field shorter than the rows, as R writes it. A transposed table with IDs always has a
///   header, which has the IDs.
/// - Lines at the top that start with `#` are skipped; the last of them is the header if it fits the rows.
/// - Trailing columns without titles and values, and trailing lines of separators, are ignored.
/// - GCT files and the tables of featureCounts have features in rows; their columns about features are ignored.
/// - An empty field, `NA`, `NaN`, `N/A`, `#N/A`, `<NA>`, `null`, `none`, `-`, `.` and `?` are missing values.
pub(crate) fn read(path: &Path, input: Input<'_>, how: Reading, keep: Keep<'_>) -> Result<Table> {
    match how.precision {
        Some(Precision::F32) => read_as::<f32>(path, input, how, CHUNK, keep),
        Some(Precision::F64) | None => read_as::<f64>(path, input, how, CHUNK, keep),
    }
}

fn read_as<T: Real>(
    path: &Path,
    mut input: Input<'_>,
    how: Reading,
    chunk: usize,
    keep: Keep<'_>,
) -> Result<Table> {
    let size = input.size;
    let (format, head) = detect::detect(path, &mut input, how)?;
    let mut body =
        body::Body::<T>::new(path, &format, size.map(|size| size.saturating_sub(format.start as u64)), keep)?;
    let mut head = Cursor::new(head);
    head.set_position(format.start as u64);
    let chunks = Chunks::new(head.chain(input), chunk, |text| fields::cut(text, format.separator));
    in_order(
        chunks,
        |text| piece::parse(text, &format),
        |piece| body.add(piece),
        |error| input::failed(path, error),
    )?;
    body.finish(how)
}
