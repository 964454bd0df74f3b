//! Parses a piece of text.

use super::fault::Fault;
use super::fault_kind::FaultKind;
use super::fields::{self, Separator, field};
use super::format::{Format, Skip};
use super::layout::empty_record;
use super::number::{number, number_with_comma};
use crate::real::Real;

/// Whole records, parsed.
pub(super) struct Piece<T> {
    /// The names of the records, if they have names.
    pub names: Vec<String>,
    /// The values of all records.
    pub values: Vec<T>,
    /// The line on which each record starts, from 0 at the start of the piece.
    pub lines: Vec<u32>,
    /// The number of lines that end in the piece.
    pub newlines: usize,
    /// The first of the empty lines at its end.
    pub empty: Option<usize>,
    /// The length of its text.
    pub bytes: usize,
}

/// Parses whole records.
pub(super) fn parse<T: Real>(text: &[u8], format: &Format) -> Result<Piece<T>, Fault> {
    let piece = Piece {
        names: Vec::new(),
        values: Vec::new(),
        lines: Vec::new(),
        newlines: 0,
        empty: None,
        bytes: text.len(),
    };
    let mut parser = Parser { text, format, at: 0, skipped: 0, piece };
    while parser.at < text.len() {
        if let Some(next) = parser.blank(parser.at) {
            parser.empty_line(next)?;
            continue;
        }
        parser.record()?;
        if parser.piece.lines.len() == 1 {
            // Records are about equally long.
            parser.piece.values.reserve_exact(format.values() * (text.len() / parser.at + 1));
        }
    }
    Ok(parser.piece)
}

struct Parser<'a, T> {
    text: &'a [u8],
    format: &'a Format,
    at: usize,
    /// The number of fields of the record that are not values.
    skipped: usize,
    piece: Piece<T>,
}

impl<T: Real> Parser<'_, T> {
    /// The end of the line at `at`, if it is empty. Without names, a line of separators is a row of missing values.
    fn blank(&self, at: usize) -> Option<usize> {
        let separator = self.format.separator;
        let record = || self.format.named.then(|| empty_record(self.text, at, separator)).flatten();
        fields::blank_line(self.text, at, separator).or_else(record)
    }

    fn empty_line(&mut self, next: usize) -> Result<(), Fault> {
        let line = *self.piece.empty.get_or_insert(self.piece.newlines);
        self.go_to(next);
        if next == self.text.len() || self.blank(next).is_some() {
            return Ok(());
        }
        Err(Fault { line, column: None, name: None, kind: FaultKind::EmptyLine })
    }

    /// Continues at `next`, the start of a record or the end of the text.
    fn go_to(&mut self, next: usize) {
        self.piece.newlines += usize::from(self.text[..next].ends_with(b"\n"));
        self.at = next;
    }

    fn record(&mut self) -> Result<(), Fault> {
        let (start, line) = (self.at, self.piece.newlines);
        let (names, values) = (self.piece.names.len(), self.piece.values.len());
        self.skipped = 0;
        self.piece.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
        self.at = fields::record_start(self.text, start, self.format.separator);
        let read = if self.format.named { self.name() } else { self.values() };
        let found = self.piece.names.len() - names + self.piece.values.len() - values + self.skipped;
        let kind = match read {
            Ok(()) if found == self.format.fields => return Ok(()),
            Ok(()) => FaultKind::Ragged(found),
            Err(kind) => self.ragged(start).unwrap_or(kind),
        };
        if let FaultKind::Ragged(_) = kind {
            return Err(Fault { line, column: None, name: None, kind });
        }
        let name = if self.piece.names.len() > names { self.piece.names.pop() } else { None };
        Err(Fault { line: self.piece.newlines, column: Some(found + 1), name, kind })
    }

    /// A wrong number of fields, which explains other errors of a record.
    fn ragged(&self, start: usize) -> Option<FaultKind> {
        let (found, _) = fields::fields(self.text, start, self.format.separator).ok()?;
        (found.len() != self.format.fields).then_some(FaultKind::Ragged(found.len()))
    }

    fn name(&mut self) -> Result<(), FaultKind> {
        let field = field(self.text, self.at, self.format.separator)?;
        let name = field.text(self.text)?;
        if name.is_empty() {
            return Err(FaultKind::NoName);
        }
        self.piece.names.push(name);
        self.piece.newlines += field.newlines(self.text);
        if field.last {
            self.go_to(field.next);
            return Ok(());
        }
        self.at = field.next;
        self.values()
    }

    fn values(&mut self) -> Result<(), FaultKind> {
        if self.format.comma || !self.format.skip.is_empty() {
            return self.chosen_values();
        }
        let separator = self.format.separator;
        loop {
            // Fast path: a number, directly followed by a separator or the end of the line. Searching for the separator first would
            // read numbers twice.
            if let Ok((value, length)) = fast_float2::parse_partial::<T, _>(&self.text[self.at..]) {
                let end = self.at + length;
                let plain = match (separator, &self.text[end..]) {
                    (_, [b'\n', ..]) => {
                        self.piece.values.push(value);
                        self.go_to(end + 1);
                        return Ok(());
                    }
                    (Separator::Byte(separator), [byte, ..]) => *byte == separator,
                    (Separator::Blanks, [b' ', next, ..]) => !next.is_ascii_whitespace(),
                    _ => false,
                };
                if plain {
                    self.piece.values.push(value);
                    self.at = end + 1;
                    continue;
                }
            }
            let field = field(self.text, self.at, separator)?;
            field.check_returns(self.text)?;
            let content = field.content(self.text);
            let Some(value) = number(&content) else {
                return Err(field.text(self.text).map_or_else(|kind| kind, FaultKind::NotNumber));
            };
            self.piece.values.push(value);
            self.piece.newlines += field.newlines(self.text);
            if field.last {
                self.go_to(field.next);
                return Ok(());
            }
            self.at = field.next;
        }
    }

    /// As [`values`](Self::values), for formats with skipped fields or decimal commas.
    fn chosen_values(&mut self) -> Result<(), FaultKind> {
        for index in usize::from(self.format.named).. {
            let field = field(self.text, self.at, self.format.separator)?;
            field.check_returns(self.text)?;
            let content = field.content(self.text);
            let value = match self.format.skip.get(index).unwrap_or(&Skip::No) {
                Skip::No if self.format.comma => Some(number_with_comma(&content)),
                Skip::No => Some(number(&content)),
                Skip::Untitled if !content.is_empty() => return Err(FaultKind::Untitled),
                Skip::Column | Skip::Untitled => None,
            };
            match value {
                Some(Some(value)) => self.piece.values.push(value),
                Some(None) => {
                    return Err(field.text(self.text).map_or_else(|kind| kind, FaultKind::NotNumber));
                }
                None => self.skipped += 1,
            }
            self.piece.newlines += field.newlines(self.text);
            if field.last {
                self.go_to(field.next);
                break;
            }
            self.at = field.next;
        }
        Ok(())
    }
}
