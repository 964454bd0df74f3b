//! Small tables of text, such as labels.

use std::path::Path;

use super::fault_kind::FaultKind;
use super::fields::{self, Separator};
use super::look::Look;
use crate::fault::STRING_OVERHEAD;
use crate::{Position, Result};

/// One record, and its first line, from 1.
pub(crate) struct Record {
    pub line: usize,
    pub fields: Vec<String>,
}

/// All records of a text, the header included. Where no separator is found, they have one field each.
pub(crate) fn parse(path: &Path, text: &[u8], tabs: bool) -> Result<Vec<Record>> {
    // The shortest fields are a letter and a separator, and take the overhead of a string each.
    Position::file(path).check_memory((text.len() as u64).saturating_mul(STRING_OVERHEAD as u64 / 2))?;
    let look = Look { path, text, complete: true, tabs };
    let (start, _) = look.skip_comments()?;
    // A single column has no separator: a line end is no part of any field.
    let separator = look.separator(start).unwrap_or(Separator::Byte(b'\n'));
    let (mut found, mut at, mut line) = (Vec::new(), start, look.line(start));
    while at < text.len() {
        if let Some(next) = fields::blank_line(text, at, separator) {
            line += usize::from(text[..next].ends_with(b"\n"));
            at = next;
            continue;
        }
        let place = |column| Position { column, ..Position::line(path, line) };
        let broken = |column, kind: FaultKind| place(column).fault(kind.reason("ID"));
        let (parts, next) = fields::fields(text, at, separator).map_err(|kind| broken(None, kind))?;
        let contents = parts
            .iter()
            .enumerate()
            .map(|(column, field)| field.text(text).map_err(|kind| broken(Some(column + 1), kind)));
        found.push(Record { line, fields: contents.collect::<Result<_>>()? });
        line += memchr::memchr_iter(b'\n', &text[at..next]).count();
        at = next;
    }
    if found.is_empty() {
        return Err(look.empty());
    }
    Ok(found)
}
