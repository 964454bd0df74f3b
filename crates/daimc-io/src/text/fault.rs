//! Errors in a text, with their place and advice.

use std::path::Path;

use daimc_core::text::quoted;

use super::fault_kind::FaultKind;
use super::format::Format;
use crate::{Error, Position};

/// The most columns of text that a message lists.
const LISTED: usize = 20;

/// An error in a piece of text.
#[derive(Debug)]
pub(super) struct Fault {
    /// The line, from 0 at the start of the piece.
    pub line: usize,
    /// The field, from 1; `None` for the whole record.
    pub column: Option<usize>,
    /// The name of the record, if records have names.
    pub name: Option<String>,
    /// What is wrong.
    pub kind: FaultKind,
}

impl Fault {
    /// The error, for a piece that starts at `line` (from 1) of the file.
    pub fn error(self, path: &Path, line: usize, format: &Format) -> Error {
        let place = Position { column: self.column, ..Position::line(path, line + self.line) };
        let reason = match &self.kind {
            FaultKind::Ragged(found) => format.ragged(*found),
            FaultKind::NotNumber(text) => {
                format!(
                    "{} is not a number{}: {}",
                    quoted(text),
                    self.cell(format),
                    self.what_to_do(text, format)
                )
            }
            kind => kind.reason(format.names_are()).into(),
        };
        place.fault(reason)
    }

    /// Instance and feature of the value.
    fn cell(&self, format: &Format) -> String {
        let header = self.column.and_then(|column| format.title(column - 1));
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

impl Fault {
    fn what_to_do(&self, text: &str, format: &Format) -> String {
        let decimal_comma =
            text.contains(',') && text.bytes().all(|byte| byte.is_ascii_digit() || b",.-+eE".contains(&byte));
        let own = self.column.and_then(|column| format.title(column - 1));
        if own.is_some_and(|own| format.texts.contains(own)) && format.texts.len() <= LISTED {
            let several = if format.texts.len() > 1 { "these columns hold" } else { "this column holds" };
            return format!(
                "{several} text, leave out what is no value: --drop {}",
                shell_list(&format.texts)
            );
        }
        if decimal_comma && format.comma {
            return "write decimals with a comma and no separator of thousands".into();
        }
        if format.comma && text.contains('.') {
            return "a point is no decimal comma: write all decimals alike, and no separator of thousands"
                .into();
        }
        if decimal_comma && !text.contains('.') && text.matches(',').count() == 1 {
            return "if that is a decimal comma, read the file with --decimal ,".into();
        }
        if decimal_comma {
            return "write decimals with a point and no separator of thousands".into();
        }
        "write NA or nothing where a value is missing, and leave out features that are text (--drop)".into()
    }
}

/// Names as one argument in a shell.
pub(crate) fn shell_list(names: &[String]) -> String {
    let names = names.join(",");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.,:/+%@".contains(&byte);
    if names.bytes().all(plain) { names } else { format!("'{}'", names.replace('\'', "'\\''")) }
}
