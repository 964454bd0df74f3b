//! Finds the ends of fields and records, with quotes.
//!
//! A quote opens a quoted field only at the start of a field; within a field it is an ordinary character. Within quotes, two
//! quotes are one. All readers of text follow these two rules.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2, memchr3, memrchr};

use super::fault_kind::FaultKind;
use crate::chunks::Cut;

/// The maximum length of a quoted field; a longer one is an unclosed quote.
const LONGEST_QUOTED: usize = 1 << 20;

/// What separates fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    /// One character.
    Byte(u8),
    /// Any number of blanks and tabs.
    Blanks,
}

impl Separator {
    fn is(self, byte: u8) -> bool {
        match self {
            Self::Byte(separator) => byte == separator,
            Self::Blanks => is_blank(byte),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// One field of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    start: usize,
    end: usize,
    quoted: bool,
    /// The start of the next field or record.
    pub next: usize,
    /// Whether this is the last field of its record.
    pub last: bool,
}

impl Field {
    /// The contents without quotes or surrounding blanks.
    pub fn content(self, text: &[u8]) -> Cow<'_, [u8]> {
        let content = &text[self.start..self.end];
        if !self.quoted {
            return Cow::Borrowed(content.trim_ascii());
        }
        if memchr(b'"', content).is_none() {
            return Cow::Borrowed(content);
        }
        let mut unescaped = Vec::with_capacity(content.len());
        let mut after_quote = false;
        for &byte in content {
            after_quote = byte == b'"' && !after_quote;
            if !after_quote {
                unescaped.push(byte);
            }
        }
        Cow::Owned(unescaped)
    }

    /// Fails for a carriage return before the end of the line, which other programs take for the end.
    pub fn check_returns(self, text: &[u8]) -> Result<(), FaultKind> {
        let content = &text[self.start..self.end];
        let returns = memchr(b'\r', content).map(|first| &content[first..]).filter(|_| !self.quoted);
        let within = returns.is_some_and(|rest| !self.last || rest.iter().any(|byte| *byte != b'\r'));
        if within { Err(FaultKind::Return) } else { Ok(()) }
    }

    /// The contents as text.
    pub fn text(self, text: &[u8]) -> Result<String, FaultKind> {
        self.check_returns(text)?;
        let content = self.content(text);
        if memchr(0, &content).is_some() {
            return Err(FaultKind::Nul);
        }
        String::from_utf8(content.into_owned()).map_err(|_| FaultKind::NotUtf8)
    }

    /// The number of lines that end in it.
    pub fn newlines(self, text: &[u8]) -> usize {
        if self.quoted { memchr_iter(b'\n', &text[self.start..self.end]).count() } else { 0 }
    }
}

/// The field that starts at `at`.
pub(super) fn field(text: &[u8], at: usize, separator: Separator) -> Result<Field, FaultKind> {
    if text.get(at) == Some(&b'"') {
        return quoted(text, at, separator);
    }
    let rest = &text[at..];
    let length = match separator {
        Separator::Byte(separator) => memchr2(separator, b'\n', rest),
        Separator::Blanks => memchr3(b' ', b'\t', b'\n', rest),
    };
    let end = at + length.unwrap_or(rest.len());
    let (next, last) = after(text, end, separator);
    Ok(Field { start: at, end, quoted: false, next, last })
}

fn quoted(text: &[u8], at: usize, separator: Separator) -> Result<Field, FaultKind> {
    let end = closing_quote(text, at).ok_or(FaultKind::OpenQuote)?;
    let follows = text.get(end + 1).copied().unwrap_or(b'\n');
    let closed = separator.is(follows) || follows == b'\n' || text[end + 1..].starts_with(b"\r\n");
    if !closed && text[end + 1..] != *b"\r" {
        return Err(FaultKind::AfterQuote);
    }
    let at_return = end + 1 + usize::from(follows == b'\r');
    let (next, last) = after(text, at_return, separator);
    Ok(Field { start: at + 1, end, quoted: true, next, last })
}

/// The quote that closes the one at `at`.
fn closing_quote(text: &[u8], at: usize) -> Option<usize> {
    let mut from = at + 1;
    loop {
        let quote = from + memchr(b'"', &text[from..])?;
        if text.get(quote + 1) != Some(&b'"') {
            return Some(quote);
        }
        from = quote + 2;
    }
}

/// The start of the next field after one that ends at `end`, and whether its record ends there, too.
fn after(text: &[u8], end: usize, separator: Separator) -> (usize, bool) {
    match text.get(end) {
        None => (end, true),
        Some(b'\n') => (end + 1, true),
        Some(_) if separator == Separator::Blanks => {
            let next = skip_blanks(text, end);
            record_end(text, next).map_or((next, false), |end| (end, true))
        }
        Some(_) => (end + 1, false),
    }
}

/// The start of the next record, if one ends at `at`.
pub(super) fn record_end(text: &[u8], at: usize) -> Option<usize> {
    match text[at..] {
        [] => Some(at),
        [b'\n', ..] | [b'\r'] => Some(at + 1),
        [b'\r', b'\n', ..] => Some(at + 2),
        _ => None,
    }
}

/// The first byte from `at` that is neither blank nor tab.
pub(super) fn skip_blanks(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().position(|&byte| !is_blank(byte)).unwrap_or(text.len() - at)
}

/// The start of the first field of the record at `at`.
pub(super) fn record_start(text: &[u8], at: usize, separator: Separator) -> usize {
    if separator == Separator::Blanks { skip_blanks(text, at) } else { at }
}

/// The end of the line at `at`, if it is blank. (Tabs may be empty fields.)
pub(super) fn blank_line(text: &[u8], at: usize, separator: Separator) -> Option<usize> {
    let start = record_start(text, at, separator);
    let blanks = text[start..].iter().take_while(|&&byte| byte == b' ').count();
    record_end(text, start + blanks)
}

/// The fields of the record at `at`, and the start of the next one.
pub(super) fn fields(text: &[u8], at: usize, separator: Separator) -> Result<(Vec<Field>, usize), FaultKind> {
    let mut found = Vec::new();
    let mut at = record_start(text, at, separator);
    loop {
        let field = field(text, at, separator)?;
        found.push(field);
        at = field.next;
        if field.last {
            return Ok((found, at));
        }
    }
}

/// The end of the last whole record of a piece of text.
pub(super) fn cut(text: &[u8], separator: Separator) -> Cut {
    let mut end = None;
    let mut at = 0;
    while let Some(quote) = memchr(b'"', &text[at..]).map(|found| at + found) {
        end = memrchr(b'\n', &text[at..quote]).map(|newline| at + newline + 1).or(end);
        let opens = quote == 0 || text[quote - 1] == b'\n' || separator.is(text[quote - 1]);
        at = quote + 1;
        if opens {
            match closing_quote(text, quote) {
                Some(closing) => at = closing + 1,
                None if text.len() - quote > LONGEST_QUOTED => return Cut::Never,
                None => return end.map_or(Cut::Later, Cut::At),
            }
        }
    }
    end = memrchr(b'\n', &text[at..]).map(|newline| at + newline + 1).or(end);
    end.map_or(Cut::Later, Cut::At)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(text: &str, separator: Separator) -> Vec<String> {
        let (found, _) = fields(text.as_bytes(), 0, separator).unwrap();
        found.into_iter().map(|field| field.text(text.as_bytes()).unwrap()).collect()
    }

    #[test]
    fn quotes_open_only_at_the_start_of_a_field() {
        let comma = Separator::Byte(b',');
        assert_eq!(contents("a\"b,\"c,\"\"d\"\"\ne\", f \r\nnext", comma), ["a\"b", "c,\"d\"\ne", "f"]);
        assert_eq!(contents("", comma), [""]);
        assert_eq!(contents("a,", comma), ["a", ""]);
        assert_eq!(contents("\"a\"\r", comma), ["a"]);
    }

    #[test]
    fn any_number_of_blanks_is_one_separator() {
        assert_eq!(contents("  a \t b  \r\nc", Separator::Blanks), ["a", "b"]);
        assert_eq!(contents("\"a b\"  c\n", Separator::Blanks), ["a b", "c"]);
    }
}
