//! What is wrong with a text, where, and what to do.

use std::path::Path;

use daimc::text::quoted;

use super::format::Format;
use crate::{Error, Place};

/// Something wrong in a piece of text.
#[derive(Debug)]
pub(super) struct Fault {
    /// The line, from 0 at the start of the piece.
    pub line: usize,
    /// The field, from 1; `None` where the whole record is meant.
    pub column: Option<usize>,
    /// The first field of the record, where records have names.
    pub name: Option<String>,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// A record of this many fields.
    Ragged(usize),
    /// This text where a number should be.
    NotNumber(String),
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A NUL, with which a text would end for many programs.
    Nul,
    /// A carriage return before the end of the line.
    Return,
    /// A record without a name.
    NoName,
    /// A quote that is never closed.
    OpenQuote,
    /// Something between a closing quote and the next separator.
    AfterQuote,
    /// Nothing on the line, but something below.
    EmptyLine,
}

impl Fault {
    /// The error, for a piece that starts at `line` (from 1) of the file.
    pub fn error(self, path: &Path, line: usize, format: &Format) -> Error {
        let place = Place { line: Some(line + self.line), column: self.column, ..Place::file(path) };
        let reason = match &self.kind {
            FaultKind::Ragged(found) => format.ragged(*found),
            FaultKind::NotNumber(text) => {
                format!("{} is not a number{}: {}", quoted(text), self.cell(format), what_to_do(text))
            }
            kind => kind.reason(format.names_are()).into(),
        };
        Error::Data { place, reason }
    }

    /// Whose value it should be.
    fn cell(&self, format: &Format) -> String {
        let first = usize::from(format.named) + 1;
        let header = format.header.as_ref().zip(self.column);
        let header = header.and_then(|(header, column)| header.get(column.checked_sub(first)?));
        let (mut instance, mut feature) = (self.name.as_ref(), header);
        if format.transposed {
            std::mem::swap(&mut instance, &mut feature);
        }
        match (instance, feature) {
            (Some(instance), Some(feature)) => {
                format!(" (feature {} of instance {})", quoted(feature), quoted(instance))
            }
            (Some(instance), None) => format!(" (instance {})", quoted(instance)),
            (None, Some(feature)) => format!(" (feature {})", quoted(feature)),
            (None, None) => String::new(),
        }
    }
}

impl FaultKind {
    /// What is wrong, where it does not depend on the file's format.
    pub fn reason(&self, name: &str) -> &'static str {
        match (self, name) {
            (Self::NotUtf8, _) => "the text is not UTF-8: save the file in this encoding",
            (Self::Nul, _) => "there is a NUL in the text: remove it",
            (Self::Return, _) => {
                "a carriage return stands within the line: remove it, or save the file with line ends of Unix or Windows"
            }
            (Self::NoName, "ID") => "the ID is empty: give the row an ID or delete it",
            (Self::NoName, _) => "the name of the feature is empty: name it or delete the row",
            (Self::OpenQuote, _) => "a quote is opened and never closed: close it or remove it",
            (Self::AfterQuote, _) => {
                "text follows a closing quote: put the whole field in quotes and double those within"
            }
            (Self::EmptyLine, _) => {
                "the line is empty, but rows follow: delete it, or write NA for what is missing"
            }
            (Self::Ragged(_), _) => "the row has another number of fields than those before",
            (Self::NotNumber(_), _) => "a number is expected",
        }
    }
}

fn what_to_do(text: &str) -> &'static str {
    let decimal_comma =
        text.contains(',') && text.bytes().all(|byte| byte.is_ascii_digit() || b",.-+eE".contains(&byte));
    if decimal_comma {
        "write decimals with a point and no separator of thousands"
    } else {
        "write NA or nothing where a value is missing, and leave out features that are text"
    }
}
