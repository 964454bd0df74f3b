//! Small tables of text, such as labels.

use std::io::Read;
use std::path::Path;

use super::fields::{self, Separator};
use super::format::Look;
use crate::archive::{self, Content};
use crate::fault::TEXT;
use crate::format::Format;
use crate::input::{Opened, failed};
use crate::{Error, Place, Result, arrow, parquet};

/// One record and the line on which it starts, from 1.
pub(crate) struct Record {
    pub line: usize,
    pub fields: Vec<String>,
}

/// All records of a table, the header included, and the SHA-256 of its file. Where no separator is found, they have one
/// field each.
pub(crate) fn records(path: &Path, mut file: Opened) -> Result<(Vec<Record>, String)> {
    let frame = match Format::of(path, file.start()) {
        Format::Parquet => Some(parquet::records(&mut file)?),
        Format::Arrow => Some(arrow::records(&mut file)?),
        _ => None,
    };
    if let Some(records) = frame {
        return Ok((records, file.sha256()?));
    }
    let (text, tabs, sha256) = whole_text(path, file)?;
    // The shortest records, of a letter and a separator per field, take so much more than their text.
    Place::file(path).ask((text.len() as u64).saturating_mul(TEXT as u64 / 2))?;
    let look = Look { path, text: &text, complete: true, tabs };
    let (start, _) = look.skip_comments()?;
    // One column is taken as it is; a record separator is no part of any field.
    let separator = look.separator(start).unwrap_or(Separator::Byte(b'\n'));
    let (mut found, mut at, mut line) = (Vec::new(), start, look.line(start));
    while at < text.len() {
        if let Some(next) = fields::blank_line(&text, at, separator) {
            line += usize::from(text[..next].ends_with(b"\n"));
            at = next;
            continue;
        }
        let place = |column| Place { line: Some(line), column, ..Place::file(path) };
        let broken = |column, kind: super::fault::FaultKind| Error::Data {
            place: place(column),
            reason: kind.reason("ID").into(),
        };
        let (parts, next) = fields::fields(&text, at, separator).map_err(|kind| broken(None, kind))?;
        let contents = parts
            .iter()
            .enumerate()
            .map(|(column, field)| field.text(&text).map_err(|kind| broken(Some(column + 1), kind)));
        found.push(Record { line, fields: contents.collect::<Result<_>>()? });
        line += memchr::memchr_iter(b'\n', &text[at..next]).count();
        at = next;
    }
    if found.is_empty() {
        return Err(look.empty());
    }
    Ok((found, sha256))
}

/// The whole text of a small file, decompressed, or of the only table of an archive, whether tabs separate its fields; and the
/// SHA-256 of the file.
fn whole_text(path: &Path, mut file: Opened) -> Result<(Vec<u8>, bool, String)> {
    let content = match Format::of(path, file.start()) {
        Format::Zip => Some(Content::of(&mut file)?).filter(|content| *content != Content::Arrays),
        _ => None,
    };
    let Some(content) = content else {
        return file.whole_text().map(|(text, sha256)| (text, false, sha256));
    };
    let (text, tabs) = archive::with_text(&mut file, content, None, |_, mut input| {
        let mut text = Vec::new();
        input.read_to_end(&mut text).map_err(|error| failed(path, error))?;
        Ok((text, input.tabs))
    })?;
    Ok((text, tabs, file.sha256()?))
}
