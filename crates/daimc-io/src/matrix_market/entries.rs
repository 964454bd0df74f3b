//! Parses the entries of a piece of text.

use std::path::Path;

use daimc_core::text::quoted;
use memchr::memchr;

use super::header::{Header, Symmetry};
use crate::real::Real;
use crate::{Error, Position, Result};

/// An invalid entry.
pub(super) struct Fault {
    /// The line, from 0 at the start of the piece.
    line: usize,
    text: String,
    reason: String,
}

impl Fault {
    /// The error, for a piece that starts at `line` of the file.
    pub fn error(self, path: &Path, line: usize) -> Error {
        Position::line(path, line + self.line).fault(format!("{}: {}", quoted(&self.text), self.reason))
    }
}

/// Parses the entries of whole lines, and also returns the number of lines.
pub(super) fn parse<E>(
    text: &[u8],
    entry: impl Fn(&[u8]) -> Result<E, String>,
) -> Result<(Vec<E>, usize), Fault> {
    let mut found = Vec::new();
    let (mut rest, mut lines) = (text, 0);
    while !rest.is_empty() {
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = rest[..end].trim_ascii();
        if !line.is_empty() && line[0] != b'%' {
            found.push(entry(line).map_err(|reason| {
                let text = String::from_utf8_lossy(line).into_owned();
                Fault { line: lines, text, reason }
            })?);
        }
        lines += 1;
        rest = &rest[(end + 1).min(rest.len())..];
    }
    Ok((found, lines))
}

/// Parses row and column, from 0, and value.
pub(super) fn coordinates<T: Real>(line: &[u8], header: &Header) -> Result<(u32, u32, T), String> {
    let wanted = if header.pattern { 2 } else { 3 };
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (Some(row), Some(column), value) = (words.next(), words.next(), words.next()) else {
        return Err(wrong_words(wanted));
    };
    if value.is_some() == header.pattern || words.next().is_some() {
        return Err(wrong_words(wanted));
    }
    let row = index(row, header.rows, "row")?;
    let column = index(column, header.columns, "column")?;
    if header.symmetry != Symmetry::General && row < column {
        return Err("of a symmetric matrix, only the lower triangle is expected".into());
    }
    if header.symmetry == Symmetry::Skew && row == column {
        return Err("a skew-symmetric matrix has no entry on its diagonal".into());
    }
    Ok((row, column, value.map_or(Ok(T::nearest(1.0)), number)?))
}

fn wrong_words(wanted: usize) -> String {
    let parts = if wanted == 2 { "row and column" } else { "row, column and value" };
    format!("{wanted} numbers are expected, {parts}")
}

fn index(word: &[u8], count: usize, what: &str) -> Result<u32, String> {
    let mut number = 0_usize;
    for &byte in word {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 || number > count {
            number = 0;
            break;
        }
        number = number * 10 + usize::from(digit);
    }
    if number == 0 || number > count {
        return Err(format!("the {what} should be a number from 1 to {count}"));
    }
    Ok(number as u32 - 1)
}

/// Parses a value.
pub(super) fn number<T: Real>(word: &[u8]) -> Result<T, String> {
    fast_float2::parse(word).map_err(|_| "the value should be a number".into())
}
