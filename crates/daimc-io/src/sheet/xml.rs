//! Events of XML in an archive.

use std::borrow::Cow;
use std::io::{self, BufReader, Read};

use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use super::rows::damaged;

/// The maximum length of one event: a tag, or the text between two.
const LONGEST: u64 = 1 << 20;

/// A document.
pub(super) struct Xml<R> {
    reader: Reader<BufReader<Limited<R>>>,
    buffer: Vec<u8>,
}

impl<R: Read> Xml<R> {
    pub(super) fn new(document: R) -> Self {
        let limited = Limited { inner: document, left: LONGEST };
        let mut reader = Reader::from_reader(BufReader::with_capacity(1 << 16, limited));
        reader.config_mut().expand_empty_elements = true;
        Self { reader, buffer: Vec::new() }
    }

    /// The next event.
    pub(super) fn next(&mut self) -> io::Result<Event<'_>> {
        self.buffer.clear();
        self.reader.get_mut().get_mut().left = LONGEST;
        self.reader.read_event_into(&mut self.buffer).map_err(wrong)
    }

    /// Continues after the end of the last opened element.
    pub(super) fn skip(&mut self) -> io::Result<()> {
        let mut depth = 0_usize;
        loop {
            match self.next()? {
                Event::Start(_) => depth += 1,
                Event::End(_) if depth == 0 => return Ok(()),
                Event::End(_) => depth -= 1,
                Event::Eof => return Err(ended()),
                _ => {}
            }
        }
    }
}

/// A reader that fails if an event is too long.
struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(damaged("a cell of it is longer than 1 MB"));
        }
        let count = self.inner.read(buffer)?;
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}

/// The value of an attribute, by its local or its whole name.
pub(super) fn attribute<'a>(element: &'a BytesStart<'_>, name: &str) -> io::Result<Option<Cow<'a, str>>> {
    for attribute in element.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| damaged(error.to_string()))?;
        if attribute.key.as_ref() == name || attribute.key.local_name().as_ref() == name {
            return attribute.normalized_value(XmlVersion::Implicit1_0).map(Some).map_err(wrong);
        }
    }
    Ok(None)
}

/// Appends the text of an event, if it is text.
pub(super) fn append(event: &Event<'_>, text: &mut String) -> io::Result<()> {
    match event {
        Event::Text(part) => text.push_str(part),
        Event::CData(part) => text.push_str(part),
        Event::GeneralRef(reference) => text.push(character(reference)?),
        _ => {}
    }
    if text.len() as u64 > LONGEST { Err(damaged("a cell of it is longer than 1 MB")) } else { Ok(()) }
}

fn character(reference: &BytesRef<'_>) -> io::Result<char> {
    if let Some(character) = reference.resolve_char_ref().map_err(wrong)? {
        return Ok(character);
    }
    Ok(match &**reference {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        other => return Err(damaged(format!("the entity {other} is not known"))),
    })
}

pub(super) fn ended() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

fn wrong(error: quick_xml::Error) -> io::Error {
    match error {
        // An error of the system or of the archive, not of the text.
        quick_xml::Error::Io(error) => io::Error::new(error.kind(), error.to_string()),
        error => damaged(error.to_string()),
    }
}
