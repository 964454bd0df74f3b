//! The messages of a file or a stream: the columns, and where the buffers of each batch of rows are.

use std::io::Read;

use super::flatbuffer::{Table, i64_at};
use super::schema::{Field, Storage};
use crate::fault::{MemoryMeter, STRING_OVERHEAD};
use crate::input::Random;
use crate::{Error, Position, Result};

/// The first and the last bytes of a file.
pub(crate) const MAGIC: &[u8] = b"ARROW1";

/// The start of every message of a stream; no text starts so.
pub(crate) const CONTINUATION: &[u8] = &[0xff; 4];

/// An open file or stream.
pub(crate) struct Arrow {
    pub(super) place: Position,
    pub(super) bytes: Random,
    pub(super) fields: Vec<Field>,
    /// The metadata that pandas adds, as JSON.
    pub(super) pandas: String,
    pub(super) batches: Vec<Batch>,
    pub(super) dictionaries: Vec<Dictionary>,
}

/// A batch of rows.
pub(super) struct Batch {
    pub rows: usize,
    pub codec: Option<Codec>,
    pub buffers: Vec<Buffer>,
    /// The first buffer of each column.
    pub first: Vec<usize>,
    /// Whether a column has nulls.
    pub nulls: Vec<bool>,
}

/// The compression of the buffers of a batch.
#[derive(Clone, Copy)]
pub(super) enum Codec {
    Lz4,
    Zstandard,
    Unknown,
}

/// The position of a buffer in the file.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    pub start: u64,
    pub length: u64,
}

/// The texts for the keys of a dictionary column.
pub(super) struct Dictionary {
    pub id: i64,
    /// They are appended to the texts that are known.
    pub is_delta: bool,
    /// The first batch of rows that uses them.
    pub before: usize,
    pub batch: Batch,
}

impl Arrow {
    /// Goes from message to message, and reads nothing between them.
    pub(super) fn new(place: Position, bytes: Random) -> Result<Self> {
        let mut arrow = Self {
            place,
            bytes,
            fields: Vec::new(),
            pandas: String::new(),
            batches: Vec::new(),
            dictionaries: Vec::new(),
        };
        if arrow.part(0, MAGIC.len() as u64)? == MAGIC {
            arrow.messages_of_footer()?;
        } else {
            let mut at = 0;
            while let Some((start, length)) = arrow.next(at)? {
                at = arrow.message(start, length)?;
            }
        }
        if arrow.fields.is_empty() {
            return Err(arrow.place.fault("has no columns; save it anew"));
        }
        Ok(arrow)
    }

    /// Reads the messages that the footer of a file lists: schema (1), dictionaries (2) and batches (3).
    fn messages_of_footer(&mut self) -> Result<()> {
        let length = MAGIC.len() as u64;
        let end = self.bytes.length().saturating_sub(length);
        if end < 2 * length || self.part(end, length)? != MAGIC {
            return Err(self.cut());
        }
        let footer = self.number(end - 4)?;
        let footer = self.part((end - 4).checked_sub(footer).ok_or_else(|| self.cut())?, footer)?;
        let place = self.place.clone();
        let footer = Table::root(&place, &footer)?;
        self.schema(footer.table(1)?.ok_or_else(|| footer.damaged())?)?;
        for list in [2, 3] {
            // A block is the position of a message and two lengths.
            for block in footer.structs::<24>(list)? {
                let at = u64::try_from(i64_at(block, 0)).map_err(|_| footer.damaged())?;
                let (start, length) = self.next(at)?.ok_or_else(|| footer.damaged())?;
                self.message(start, length)?;
            }
        }
        Ok(())
    }

    fn cut(&self) -> Error {
        self.place.fault("ends before its data do; copy it again or save it anew")
    }

    fn contradicts(&self) -> Error {
        self.place.fault("contradicts itself; copy it again or save it anew")
    }

    /// A part of the file; an error where the file is shorter.
    fn part(&self, start: u64, length: u64) -> Result<Vec<u8>> {
        let mut part = Vec::new();
        let read = self.bytes.at(start).take(length).read_to_end(&mut part);
        let read = read.map_err(|error| self.place.unreadable(error))?;
        if (read as u64) < length { Err(self.cut()) } else { Ok(part) }
    }

    fn number(&self, at: u64) -> Result<u64> {
        Ok(self.part(at, 4)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Start and length of the message at a position; `None` for the mark after the last one. A stream without that mark was cut
    /// off: writers leave it when they are closed.
    fn next(&self, at: u64) -> Result<Option<(u64, u64)>> {
        // Old versions write no mark before the length.
        let start = if self.part(at, 4)? == CONTINUATION { at + 4 } else { at };
        let (length, start) = (self.number(start)?, start + 4);
        if length > self.bytes.length().saturating_sub(start) {
            return Err(self.cut());
        }
        Ok((length > 0).then_some((start, length)))
    }

    /// Reads a message, and returns where it ends: the kind of its header (1), the header (2) and the length of the body (3).
    fn message(&mut self, start: u64, length: u64) -> Result<u64> {
        let (message, body) = (self.part(start, length)?, start + length);
        let place = self.place.clone();
        let message = Table::root(&place, &message)?;
        let length = u64::try_from(message.i64(3)?).map_err(|_| message.damaged())?;
        if length > self.bytes.length().saturating_sub(body) {
            return Err(self.cut());
        }
        let kind = message.u8(1)?;
        let header = message.table(2)?.ok_or_else(|| message.damaged())?;
        match (kind, self.fields.is_empty()) {
            (1, true) => self.schema(header)?,
            (2, false) => self.dictionary(header, body, length)?,
            (3, false) => self.batches.push(self.batch(header, &self.fields, body, length)?),
            _ => return Err(message.damaged()),
        }
        Ok(body + length)
    }

    /// Reads byte order (0), columns (1) and metadata (2).
    fn schema(&mut self, schema: Table<'_>) -> Result<()> {
        if schema.i16(0)? != 0 {
            return Err(self.place.fault("was written by a big-endian machine; save it anew on another"));
        }
        let mut pandas = None;
        for entry in schema.tables(2)? {
            let entry = entry?;
            if entry.text(0)? == "pandas" {
                pandas = Some(entry.text(1)?.to_owned());
            }
        }
        let (mut fields, mut taken) = (Vec::new(), MemoryMeter::default());
        for field in schema.tables(1)? {
            let field = Field::new(&self.place, field?)?;
            taken.take(&self.place, 2 * STRING_OVERHEAD + field.name.len())?;
            fields.push(field);
        }
        self.fields = fields;
        self.pandas = pandas.unwrap_or_default();
        Ok(())
    }

    /// Reads ID (0), texts (1) and whether they are appended (2), unless no column that is read uses them.
    fn dictionary(&mut self, dictionary: Table<'_>, body: u64, length: u64) -> Result<()> {
        let id = dictionary.i64(0)?;
        let text = self.fields.iter().find_map(|field| match field.storage {
            Storage::Dictionary { id: other, text, .. } if other == id => Some(text),
            _ => None,
        });
        let Some(text) = text else { return Ok(()) };
        let is_delta = dictionary.bool(2)?;
        let texts = dictionary.table(1)?.ok_or_else(|| dictionary.damaged())?;
        let batch = self.batch(texts, &[Field::of_dictionary(text)], body, length)?;
        self.dictionaries.push(Dictionary { id, is_delta, before: self.batches.len(), batch });
        Ok(())
    }

    /// Reads rows (0), nulls of the columns (1), buffers (2), compression (3) and the number of buffers of views (4).
    fn batch(&self, batch: Table<'_>, fields: &[Field], body: u64, length: u64) -> Result<Batch> {
        let stored_rows = batch.i64(0)?;
        let rows = usize::try_from(stored_rows).map_err(|_| self.contradicts())?;
        let mut buffers = Vec::new();
        for buffer in batch.structs::<16>(2)? {
            let (start, size) = (u64::try_from(i64_at(buffer, 0)), u64::try_from(i64_at(buffer, 8)));
            let (Ok(start), Ok(size)) = (start, size) else { return Err(self.contradicts()) };
            if start.checked_add(size).is_none_or(|end| end > length) {
                return Err(self.cut());
            }
            buffers.push(Buffer { start: body + start, length: size });
        }
        let mut nulls = Vec::new();
        for node in batch.structs::<16>(1)? {
            if i64_at(node, 0) != stored_rows {
                return Err(self.contradicts());
            }
            nulls.push(i64_at(node, 8) != 0);
        }
        let mut views = batch.structs::<8>(4)?.iter().map(|count| i64::from_le_bytes(*count));
        let (mut first, mut next) = (Vec::new(), 0_usize);
        for field in fields {
            first.push(next);
            // The texts of views are in any number of buffers behind them.
            let own = field.buffers.or_else(|| usize::try_from(views.next()?).ok()?.checked_add(2));
            next = own.and_then(|own| next.checked_add(own)).ok_or_else(|| self.contradicts())?;
        }
        if next > buffers.len() || nulls.len() < fields.len() {
            return Err(self.contradicts());
        }
        first.push(next);
        let codec =
            batch.table(3)?.map(|compression| compression.u8(0)).transpose()?.map(|codec| match codec {
                0 => Codec::Lz4,
                1 => Codec::Zstandard,
                _ => Codec::Unknown,
            });
        Ok(Batch { rows, codec, buffers, first, nulls })
    }
}
