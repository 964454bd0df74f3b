//! The header: kind and size of the matrix.

use std::io::Read;
use std::path::Path;

use daimc_core::text::quoted;
use memchr::memchr;

use crate::input::{self, Input};
use crate::{Error, Position, Result};

/// The format of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// Row, column, value.
    Coordinate,
    /// Values alone, column by column.
    Array,
}

/// Which entries are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symmetry {
    General,
    /// The lower triangle.
    Symmetric,
    /// The lower triangle without the diagonal; the upper one has the opposite sign.
    Skew,
}

/// The contents of the header.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub storage: Storage,
    pub symmetry: Symmetry,
    /// Entries have no value: they are ones.
    pub pattern: bool,
    pub rows: usize,
    pub columns: usize,
    /// The number of stored entries.
    pub stored: usize,
    /// The position of the entries in bytes.
    pub start: usize,
    /// The first line of the entries, from 1.
    pub line: usize,
}

/// Reads the header. Also returns all text that was read.
pub(super) fn read(path: &Path, input: &mut Input<'_>) -> Result<(Header, Vec<u8>)> {
    let mut head = Vec::new();
    loop {
        let wanted = head.len().max(1 << 16);
        let read = input.by_ref().take(wanted as u64).read_to_end(&mut head);
        let complete = read.map_err(|error| input::failed(path, error))? < wanted;
        if let Some(header) = parse(path, &head, complete)? {
            return Ok((header, head));
        }
    }
}

/// `None` if more text is needed.
fn parse(path: &Path, head: &[u8], complete: bool) -> Result<Option<Header>> {
    let (mut at, mut line, mut banner) = (0, 1, None);
    loop {
        let length = match memchr(b'\n', &head[at..]) {
            Some(newline) => newline + 1,
            None if !complete => return Ok(None),
            None => head.len() - at,
        };
        if length == 0 {
            return Err(Error::in_file(path, "the matrix has no size: the file is empty or was cut off"));
        }
        let text = String::from_utf8_lossy(&head[at..at + length]).to_lowercase();
        (at, line) = (at + length, line + 1);
        let words: Vec<&str> = text.split_whitespace().collect();
        match banner {
            None => banner = Some(parse_banner(path, &words)?),
            Some(_) if words.is_empty() || text.starts_with('%') => {}
            Some((storage, symmetry, pattern)) => {
                let header = parse_size(&words, storage, symmetry, pattern, at, line);
                let expected =
                    if storage == Storage::Array { "rows columns" } else { "rows columns entries" };
                return header.map(Some).ok_or_else(|| {
                    Position::line(path, line - 1)
                        .fault(format!("the size of the matrix should be here: {expected}"))
                });
            }
        }
    }
}

fn parse_banner(path: &Path, words: &[&str]) -> Result<(Storage, Symmetry, bool)> {
    let refused = |reason: String| Err(Position::line(path, 1).fault(reason));
    let &["%%matrixmarket", "matrix", storage, field, symmetry] = words else {
        return refused("'%%MatrixMarket matrix …' should be here: this is not a Matrix Market file".into());
    };
    let storage = match storage {
        "coordinate" => Storage::Coordinate,
        "array" => Storage::Array,
        other => return refused(format!("{} is not supported: use coordinate or array", quoted(other))),
    };
    let pattern = match field {
        "real" | "double" | "integer" | "unsigned-integer" => false,
        "pattern" if storage == Storage::Coordinate => true,
        other => {
            return refused(format!("{} is not supported: values must be real or integer", quoted(other)));
        }
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        other => return refused(format!("{} is not supported: use general or symmetric", quoted(other))),
    };
    Ok((storage, symmetry, pattern))
}

fn parse_size(
    words: &[&str],
    storage: Storage,
    symmetry: Symmetry,
    pattern: bool,
    start: usize,
    line: usize,
) -> Option<Header> {
    let numbers: Vec<usize> = words.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let (rows, columns, stored) = match (storage, numbers.as_slice()) {
        (Storage::Coordinate, &[rows, columns, stored]) => (rows, columns, stored),
        (Storage::Array, &[rows, columns]) => {
            let all = rows.checked_mul(columns)?;
            let stored = match symmetry {
                Symmetry::General => all,
                Symmetry::Symmetric => usize::midpoint(all, rows),
                Symmetry::Skew => (all - rows.min(all)) / 2,
            };
            (rows, columns, stored)
        }
        _ => return None,
    };
    let square = symmetry == Symmetry::General || rows == columns;
    let counted = u32::try_from(rows.max(columns)).is_ok();
    (square && counted).then_some(Header { storage, symmetry, pattern, rows, columns, stored, start, line })
}

impl Header {
    /// Fails if the file is too short for the size, before memory is allocated.
    pub fn check_size(&self, path: &Path, bytes: u64) -> Result<()> {
        // "1 1\n", "1 1 1\n", "1\n"; the last may have no end of line.
        let shortest = match self.storage {
            Storage::Coordinate if self.pattern => 4,
            Storage::Coordinate => 6,
            Storage::Array => 2,
        };
        if (self.stored as u64).saturating_mul(shortest) > bytes + 1 {
            return Err(self.wrong_count(path, "fewer"));
        }
        Ok(())
    }

    /// Fails if the shape is too large for the number of entries: empty rows and columns take memory, too. Rows or columns with
    /// names exist.
    pub fn check_shape(
        &self,
        path: &Path,
        (rows, ids): (usize, bool),
        (columns, features): (usize, bool),
    ) -> Result<()> {
        let refused = |reason: String| Err(Position::line(path, self.line - 1).fault(reason));
        if rows == 0 || columns == 0 {
            return refused(format!("the matrix is empty: its size is {} × {}", self.rows, self.columns));
        }
        if self.storage == Storage::Array {
            return Ok(());
        }
        let most = 1_000_000_usize.saturating_add(self.stored.saturating_mul(1000));
        for (count, named, what) in [(rows, ids, "instances"), (columns, features, "features")] {
            if count > most && !named {
                let stored = self.stored;
                return refused(format!("{count} {what}, but only {stored} entries: the header is wrong"));
            }
        }
        Ok(())
    }

    /// The error for a wrong number of entries.
    pub fn wrong_count(&self, path: &Path, found: &str) -> Error {
        let reason = format!(
            "the header says {} entries, but there are {found}: the file was cut off or its header is wrong",
            self.stored
        );
        Position::line(path, self.line - 1).fault(reason)
    }
}
