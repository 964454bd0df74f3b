//! The start of a text, from which its format is detected.

use std::path::Path;

use memchr::{memchr, memchr_iter};

use super::fault_kind::FaultKind;
use super::fields::{self, Field, Separator};
use super::format::CELL;
use crate::{Error, Position, Result};

/// Bytes from which the format is detected, if they hold two records.
pub(super) const HEAD: usize = 1 << 16;

/// Separators, the likeliest first.
pub(super) const SEPARATORS: [Separator; 5] = [
    Separator::Byte(b'\t'),
    Separator::Byte(b','),
    Separator::Byte(b';'),
    Separator::Byte(b'|'),
    Separator::Blanks,
];

/// The start of a text.
pub(super) struct Look<'a> {
    pub path: &'a Path,
    pub text: &'a [u8],
    /// This is the whole text.
    pub complete: bool,
    /// Tabs are known to separate fields.
    pub tabs: bool,
}

impl Look<'_> {
    /// The name of a field, for messages.
    pub fn unit(&self) -> &'static str {
        if self.tabs { CELL } else { "field" }
    }

    /// Why a long text has no whole record with any separator.
    pub fn why_no_record(&self, start: usize) -> &'static str {
        let open = |&separator: &Separator| {
            fields::fields(self.text, start, separator).is_err_and(|kind| kind == FaultKind::OpenQuote)
        };
        if SEPARATORS.iter().any(open) {
            return FaultKind::OpenQuote.reason("");
        }
        "the line is longer than 256 MB: put each instance on a line of its own, or use a binary format"
    }

    /// The start of the records, and of the last line before them that starts with `#`.
    pub fn skip_comments(&self) -> Result<(usize, Option<usize>)> {
        let text = self.text;
        let utf16 = text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff]);
        if utf16 || memchr(0, &text[..text.len().min(HEAD)]).is_some() {
            let reason = if utf16 {
                "the text is UTF-16: save the file in UTF-8"
            } else {
                "this is not text: the name of the file should end with the format it has (.npy, .mat, …)"
            };
            return Err(Error::in_file(self.path, reason));
        }
        let mut at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let mut comment = None;
        loop {
            let rest = &text[at..];
            let blank = fields::blank_line(text, at, Separator::Blanks);
            if rest.first() == Some(&b'#') {
                comment = Some(at);
            } else if blank.is_none() || rest.is_empty() {
                return Ok((at, comment));
            }
            at += memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
        }
    }

    pub fn record(&self, at: usize, separator: Separator) -> Result<(Vec<String>, usize)> {
        let (found, next) =
            fields::fields(self.text, at, separator).map_err(|kind| self.error(at, None, kind.reason("")))?;
        let text = |(column, field): (usize, Field)| {
            field.text(self.text).map_err(|kind| self.error(at, Some(column + 1), kind.reason("")))
        };
        Ok((found.into_iter().enumerate().map(text).collect::<Result<_>>()?, next))
    }

    /// The line of a byte.
    pub fn line(&self, at: usize) -> usize {
        memchr_iter(b'\n', &self.text[..at]).count() + 1
    }

    pub fn error(&self, at: usize, column: Option<usize>, reason: &str) -> Error {
        let place = Position { column, ..Position::line(self.path, self.line(at)) };
        place.fault(reason)
    }

    pub fn empty(&self) -> Error {
        Error::in_file(self.path, "the file is empty: a row per instance is expected, below a header")
    }

    pub fn only_one_column(&self, start: usize) -> Error {
        let reason = "only one column is found: separate columns by tab, comma, semicolon, | or blanks (where the \
                      one column holds values, say that there are no IDs: --no-ids)";
        self.error(start, None, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_not_an_open_quote() {
        let why = |text: &str| {
            let look = Look { path: Path::new("a.csv"), text: text.as_bytes(), complete: false, tabs: false };
            look.why_no_record(0)
        };
        assert!(why("id,a,b,\"c\",it's 5\" wide").contains("longer than 256 MB"));
        for text in ["\"id,a,b", "id,a,\"b", "\"id\"\t\"a"] {
            assert!(why(text).contains("never closed"), "{text}");
        }
    }
}
