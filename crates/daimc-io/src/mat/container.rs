//! The file: a header and variables.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::bufread::ZlibDecoder;

use super::array::Array;
use super::element::{COMPRESSED, MATRIX, Stream, invalid};
use crate::input::Random;
use crate::{Position, Result};

/// The header's length.
const HEADER: u64 = 128;

/// The maximum compression ratio of Deflate; an element with a larger one is damaged.
const DEFLATE_LIMIT: u64 = 1032;

/// An open file.
pub(super) struct Container {
    pub place: Position,
    file: BufReader<Random>,
    length: u64,
    big_endian: bool,
}

impl Container {
    /// Opens a file of version 5; an error describes other files.
    pub(super) fn new(place: Position, bytes: Random, start: &[u8]) -> Result<Self> {
        let big_endian = byte_order(start).map_err(|reason| place.fault(reason))?;
        Ok(Self { place, length: bytes.length(), file: BufReader::new(bytes), big_endian })
    }

    /// Calls `visit` with each variable until it returns a value.
    pub(super) fn find<B>(
        &mut self,
        mut visit: impl FnMut(Array<'_>) -> Result<Option<B>>,
    ) -> Result<Option<B>> {
        let mut position = HEADER;
        while position < self.length {
            let (found, next) = self.visit(position, &mut visit)?;
            if found.is_some() {
                return Ok(found);
            }
            position = next;
        }
        Ok(None)
    }

    /// Visits the element at a position, and returns where the next one starts.
    fn visit<B>(
        &mut self,
        position: u64,
        visit: &mut impl FnMut(Array<'_>) -> Result<Option<B>>,
    ) -> Result<(Option<B>, u64)> {
        let io = |error| self.place.unreadable(error);
        self.file.seek(SeekFrom::Start(position)).map_err(io)?;
        let mut stream = Stream::new(&mut self.file, self.length - position, self.big_endian);
        let tag = stream.tag().map_err(io)?;
        let next = self.length - stream.end(tag);
        let found = match tag.kind {
            MATRIX => named(stream.child(tag.bytes)).map_err(io)?.map(visit).transpose()?.flatten(),
            COMPRESSED => {
                let mut inflated = ZlibDecoder::new((&mut self.file).take(tag.bytes));
                let limit = (tag.bytes + 1).saturating_mul(DEFLATE_LIMIT);
                let mut stream = Stream::new(&mut inflated, limit, self.big_endian);
                let inner = stream.tag().map_err(io)?;
                if inner.kind != MATRIX {
                    return Err(io(invalid("a compressed element is no matrix")));
                }
                let array = named(stream.child(inner.bytes)).map_err(io)?;
                let found = array.map(visit).transpose()?.flatten();
                if found.is_some() {
                    // The checksum is at the end.
                    io::copy(&mut inflated, &mut io::sink()).map_err(io)?;
                }
                found
            }
            _ => None,
        };
        Ok((found, next))
    }
}

/// The matrix, unless it is internal to MATLAB and has no name.
fn named(stream: Stream<'_>) -> io::Result<Option<Array<'_>>> {
    let array = Array::open(stream)?;
    Ok((!array.name.is_empty()).then_some(array))
}

/// Whether the numbers of a file are big-endian; the error describes a file of another kind.
fn byte_order(start: &[u8]) -> std::result::Result<bool, &'static str> {
    if start.starts_with(b"# ") {
        return Err("is a text file of Octave, which is not read; save it with save -v7");
    }
    match start.get(124..128) {
        Some([0, 1, b'I', b'M']) => Ok(false),
        Some([1, 0, b'M', b'I']) => Ok(true),
        _ => Err("is not a MATLAB file that can be read; save it with save(…, '-v7')"),
    }
}
