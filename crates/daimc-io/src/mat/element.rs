//! Data elements: a tag with type and length, and that many bytes with padding.

use std::io::{self, ErrorKind, Read};

use crate::number::{Encoding, NumberType};

/// A matrix of any class.
pub(super) const MATRIX: u32 = 14;
/// An element that is compressed.
pub(super) const COMPRESSED: u32 = 15;

/// The bytes of an element. At most `left` bytes can be read, and no inner element can be longer.
pub(super) struct Stream<'a> {
    reader: &'a mut dyn Read,
    pub left: u64,
    pub big_endian: bool,
}

/// The tag of an element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub kind: u32,
    pub bytes: u64,
    padding: u64,
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.reader.read(&mut buffer[..wanted])?;
        self.left -= count as u64;
        Ok(count)
    }
}

impl<'a> Stream<'a> {
    pub(super) fn new(reader: &'a mut dyn Read, left: u64, big_endian: bool) -> Self {
        Self { reader, left, big_endian }
    }

    /// Reads a tag; an error if its element is longer than the rest.
    pub(super) fn tag(&mut self) -> io::Result<Tag> {
        let first = self.u32()?;
        // Up to four bytes may share eight bytes with their tag, whose upper half is then the length.
        let tag = match first >> 16 {
            0 => {
                let bytes = u64::from(self.u32()?);
                let padding = if first == COMPRESSED { 0 } else { bytes.wrapping_neg() % 8 };
                Tag { kind: first, bytes, padding }
            }
            length @ 1..=4 => {
                let bytes = u64::from(length);
                Tag { kind: first & 0xffff, bytes, padding: 4 - bytes }
            }
            _ => return Err(invalid("a tag is none")),
        };
        if tag.bytes > self.left {
            return Err(invalid("an element is longer than what it is in"));
        }
        Ok(tag)
    }

    /// The bytes of an element within this one.
    pub(super) fn child(&mut self, bytes: u64) -> Stream<'_> {
        Stream { left: bytes, big_endian: self.big_endian, reader: self }
    }

    /// The position, as [`left`](Self::left), after the element of a tag that was just read.
    pub(super) fn end(&self, tag: Tag) -> u64 {
        self.left.saturating_sub(tag.bytes + tag.padding)
    }

    /// Skips to a position that [`end`](Self::end) returned.
    pub(super) fn go_to(&mut self, end: u64) -> io::Result<()> {
        let skipped = self.left - end;
        if io::copy(&mut self.take(skipped), &mut io::sink())? < skipped {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// The whole of a short element.
    pub(super) fn short(&mut self) -> io::Result<Vec<u8>> {
        let tag = self.tag()?;
        if tag.bytes > 1 << 12 {
            return Err(invalid("a name or a shape is too long"));
        }
        let end = self.end(tag);
        let mut bytes = vec![0; tag.bytes as usize];
        self.read_exact(&mut bytes)?;
        self.go_to(end)?;
        Ok(bytes)
    }

    /// The whole numbers of a short element.
    pub(super) fn short_u32(&mut self) -> io::Result<Vec<u32>> {
        let bytes = self.short()?;
        Ok(bytes.as_chunks().0.iter().map(|&chunk| self.to_u32(chunk)).collect())
    }

    fn u32(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.read_exact(&mut bytes)?;
        Ok(self.to_u32(bytes))
    }

    fn to_u32(&self, bytes: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

impl Tag {
    /// Encoding and number of the values of an element.
    pub(super) fn numbers(self, big_endian: bool) -> io::Result<(Encoding, usize)> {
        let kind = match self.kind {
            1 => NumberType::I8,
            2 => NumberType::U8,
            3 => NumberType::I16,
            4 => NumberType::U16,
            5 => NumberType::I32,
            6 => NumberType::U32,
            7 => NumberType::F32,
            9 => NumberType::F64,
            12 => NumberType::I64,
            13 => NumberType::U64,
            _ => return Err(invalid("an element should hold numbers and does not")),
        };
        Ok((Encoding { kind, big_endian }, self.bytes as usize / kind.size()))
    }
}

pub(super) fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}
