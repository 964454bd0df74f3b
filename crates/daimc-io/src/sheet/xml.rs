//! XML documents in the archive of a spreadsheet, read event by event.

use std::borrow::Cow;
use std::io::{self, BufReader, Read};

use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use super::rows::damaged;

/// The maximum number of bytes of an event (a tag, or the text between two tags), and of the text of a cell.
const MAX_LENGTH: u64 = 1 << 20;

/// A document, whose events are read one after the other.
pub(super) struct Xml<R> {
    reader: Reader<BufReader<Limited<R>>>,
    buffer: Vec<u8>,
}

impl<R: Read> Xml<R> {
    pub(super) fn new(document: R) -> Self {
        let limited = Limited { inner: document, left: MAX_LENGTH };
        let mut reader = Reader::from_reader(BufReader::with_capacity(1 << 16, limited));
        reader.config_mut().expand_empty_elements = true;
        Self { reader, buffer: Vec::new() }
    }

    /// The next event.
    pub(super) fn next(&mut self) -> io::Result<Event<'_>> {
        self.buffer.clear();
        self.reader.get_mut().get_mut().left = MAX_LENGTH;
        self.reader.read_event_into(&mut self.buffer).map_err(xml_error)
    }

    /// Skips the rest of the element whose start was the last event, including its end.
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

/// A reader that fails when it has read `left` bytes.
struct Limited<R> {
    inner: R,
    /// Set to [`MAX_LENGTH`] before each event.
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(too_long());
        }
        let count = self.inner.read(buffer)?;
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}

/// The value of an attribute; `name` is with or without its namespace prefix.
pub(super) fn attribute<'a>(element: &'a BytesStart<'_>, name: &str) -> io::Result<Option<Cow<'a, str>>> {
    for attribute in element.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| damaged(error.to_string()))?;
        if attribute.key.as_ref() == name || attribute.key.local_name().as_ref() == name {
            return attribute.normalized_value(XmlVersion::Implicit1_0).map(Some).map_err(xml_error);
        }
    }
    Ok(None)
}

/// Appends the text of an event to the text of a cell; tags and comments have none.
pub(super) fn append(event: &Event<'_>, text: &mut String) -> io::Result<()> {
    match event {
        Event::Text(part) => text.push_str(part),
        Event::CData(part) => text.push_str(part),
        Event::GeneralRef(reference) => text.push(character(reference)?),
        _ => {}
    }
    if text.len() as u64 > MAX_LENGTH { Err(too_long()) } else { Ok(()) }
}

/// The character that a reference such as `&#65;` or `&lt;` stands for.
fn character(reference: &BytesRef<'_>) -> io::Result<char> {
    if let Some(character) = reference.resolve_char_ref().map_err(xml_error)? {
        return Ok(character);
    }
    Ok(match &**reference {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        other => return Err(damaged(format!("unknown entity &{other};"))),
    })
}

/// The error for a document that ends inside an element.
pub(super) fn ended() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

fn too_long() -> io::Error {
    damaged("a cell is longer than 1 MB")
}

fn xml_error(error: quick_xml::Error) -> io::Error {
    match error {
        // The document could not be read or decompressed; its XML may be valid.
        quick_xml::Error::Io(error) => io::Error::new(error.kind(), error.to_string()),
        error => damaged(error.to_string()),
    }
}
