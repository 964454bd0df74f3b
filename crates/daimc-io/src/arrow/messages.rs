//! The messages of a file or a stream: what columns there are, and where the buffers of each batch of rows lie.

use std::io::Read;

use arrow_ipc::{
    CompressionType, Endianness, MessageHeader, Precision, RecordBatch, Schema, Type, root_as_footer,
    root_as_message,
};
use daimc::text::quoted;

use super::buffers::Text;
use super::{Arrow, FILE, MESSAGE};
use crate::input::Random;
use crate::number::NumberType;
use crate::{Place, Result};

/// The type of a column, by how it is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Every value is null, and nothing is stored.
    Null,
    /// Truth values, eight to a byte.
    Bits,
    Number(NumberType),
    Text(Text),
    /// Words of a dictionary, by their number in it.
    Category {
        keys: NumberType,
        id: i64,
        text: Text,
    },
    Other,
}

/// A column of the file.
pub(super) struct Field {
    pub name: String,
    pub kind: Kind,
    pub type_name: String,
    /// How many buffers it has in a batch; `None` where the batch tells.
    buffers: Option<usize>,
}

/// Rows.
pub(super) struct Batch {
    pub rows: usize,
    pub codec: Option<CompressionType>,
    pub buffers: Vec<Buffer>,
    /// The first buffer of each column.
    pub first: Vec<usize>,
    /// Whether a column has nulls.
    pub nulls: Vec<bool>,
}

/// Where a buffer lies in the file.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    pub start: u64,
    pub length: u64,
}

/// Words for the numbers in columns of categories.
pub(super) struct Dictionary {
    pub id: i64,
    /// They come after those that are known.
    pub more: bool,
    /// The first batch of rows for which they hold.
    pub before: usize,
    pub batch: Batch,
}

impl Arrow {
    /// Goes from message to message, and reads nothing of what lies between them.
    pub(super) fn open(place: Place, bytes: Random) -> Result<Self> {
        let mut arrow = Self {
            place,
            bytes,
            fields: Vec::new(),
            pandas: String::new(),
            batches: Vec::new(),
            dictionaries: Vec::new(),
        };
        if arrow.part(0, FILE.len() as u64)? == FILE {
            arrow.file()?;
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

    /// Takes in the messages that the end of a file lists.
    fn file(&mut self) -> Result<()> {
        let length = FILE.len() as u64;
        let end = self.bytes.length().saturating_sub(length);
        if end < 2 * length || self.part(end, length)? != FILE {
            return Err(self.cut());
        }
        let footer = self.number(end - 4)?;
        let footer = self.part((end - 4).checked_sub(footer).ok_or_else(|| self.cut())?, footer)?;
        let footer = root_as_footer(&footer).map_err(|_| self.damaged())?;
        self.schema(footer.schema().ok_or_else(|| self.damaged())?)?;
        let lists = [footer.dictionaries(), footer.recordBatches()];
        for block in lists.into_iter().flatten().flatten() {
            let at = u64::try_from(block.offset()).map_err(|_| self.damaged())?;
            let (start, length) = self.next(at)?.ok_or_else(|| self.damaged())?;
            self.message(start, length)?;
        }
        Ok(())
    }

    fn damaged(&self) -> crate::Error {
        self.place.fault("is damaged; copy it again or save it anew")
    }

    fn cut(&self) -> crate::Error {
        self.place.fault("ends before its data do; copy it again or save it anew")
    }

    fn contradicts(&self) -> crate::Error {
        self.place.fault("contradicts itself; copy it again or save it anew")
    }

    /// Bytes of the file, which has as many.
    fn part(&self, start: u64, length: u64) -> Result<Vec<u8>> {
        let mut part = Vec::new();
        let read = self.bytes.at(start).take(length).read_to_end(&mut part);
        let read = read.map_err(|error| self.place.unreadable(error))?;
        if (read as u64) < length { Err(self.cut()) } else { Ok(part) }
    }

    fn number(&self, at: u64) -> Result<u64> {
        Ok(self.part(at, 4)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Where the head of the message at a place lies, and how long it is; `None` for the mark after the last one. A stream that
    /// ends without the mark was cut off: every writer that was closed has left it.
    fn next(&self, at: u64) -> Result<Option<(u64, u64)>> {
        // Old versions write no mark before the length.
        let start = if self.part(at, 4)? == MESSAGE { at + 4 } else { at };
        let (length, start) = (self.number(start)?, start + 4);
        if length > self.bytes.length().saturating_sub(start) {
            return Err(self.cut());
        }
        Ok((length > 0).then_some((start, length)))
    }

    /// Takes a message in, and returns where it ends.
    fn message(&mut self, start: u64, length: u64) -> Result<u64> {
        let (head, body) = (self.part(start, length)?, start + length);
        let damaged = || self.damaged();
        let message = root_as_message(&head).map_err(|_| damaged())?;
        let length = u64::try_from(message.bodyLength()).map_err(|_| damaged())?;
        if length > self.bytes.length().saturating_sub(body) {
            return Err(self.cut());
        }
        match message.header_type() {
            MessageHeader::Schema if self.fields.is_empty() => {
                let schema = message.header_as_schema().ok_or_else(damaged)?;
                self.schema(schema)?;
            }
            MessageHeader::RecordBatch if !self.fields.is_empty() => {
                let batch = message.header_as_record_batch().ok_or_else(damaged)?;
                let batch = self.batch(batch, &self.fields, body, length)?;
                self.batches.push(batch);
            }
            MessageHeader::DictionaryBatch if !self.fields.is_empty() => {
                let dictionary = message.header_as_dictionary_batch().ok_or_else(damaged)?;
                let (id, more) = (dictionary.id(), dictionary.isDelta());
                let words = self.fields.iter().find_map(|field| match field.kind {
                    Kind::Category { id: other, text, .. } if other == id => Some(text),
                    _ => None,
                });
                // Those of columns that are not read may be anything.
                if let Some(text) = words {
                    let buffers = if text == Text::Views { None } else { Some(3) };
                    let field = Field {
                        name: String::new(),
                        kind: Kind::Text(text),
                        type_name: String::new(),
                        buffers,
                    };
                    let batch = self.batch(dictionary.data().ok_or_else(damaged)?, &[field], body, length)?;
                    self.dictionaries.push(Dictionary { id, more, before: self.batches.len(), batch });
                }
            }
            _ => return Err(damaged()),
        }
        Ok(body + length)
    }

    fn schema(&mut self, schema: Schema<'_>) -> Result<()> {
        if schema.endianness() != Endianness::Little {
            return Err(self.place.fault("was written by a big-endian machine; save it anew on another"));
        }
        for entry in schema.custom_metadata().into_iter().flatten() {
            if entry.key() == Some("pandas") {
                self.pandas = entry.value().unwrap_or_default().into();
            }
        }
        for field in schema.fields().into_iter().flatten() {
            let field = Field::new(field).map_err(|reason| self.place.fault(reason))?;
            self.fields.push(field);
        }
        Ok(())
    }

    fn batch(&self, batch: RecordBatch<'_>, fields: &[Field], body: u64, length: u64) -> Result<Batch> {
        let rows = usize::try_from(batch.length()).map_err(|_| self.contradicts())?;
        let mut buffers = Vec::new();
        for buffer in batch.buffers().into_iter().flatten() {
            let (start, size) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length()));
            let (Ok(start), Ok(size)) = (start, size) else { return Err(self.contradicts()) };
            if start.checked_add(size).is_none_or(|end| end > length) {
                return Err(self.cut());
            }
            buffers.push(Buffer { start: body + start, length: size });
        }
        let mut nulls = Vec::new();
        for node in batch.nodes().into_iter().flatten() {
            if node.length() != batch.length() {
                return Err(self.contradicts());
            }
            nulls.push(node.null_count() != 0);
        }
        let mut views = batch.variadicBufferCounts().into_iter().flatten();
        let (mut first, mut next) = (Vec::new(), 0_usize);
        for field in fields {
            first.push(next);
            // The texts themselves lie in any number of buffers behind the views of them.
            let own = field.buffers.or_else(|| usize::try_from(views.next()?).ok()?.checked_add(2));
            next = own.and_then(|own| next.checked_add(own)).ok_or_else(|| self.contradicts())?;
        }
        if next > buffers.len() || nulls.len() < fields.len() {
            return Err(self.contradicts());
        }
        first.push(next);
        Ok(Batch { rows, codec: batch.compression().map(|how| how.codec()), buffers, first, nulls })
    }
}

impl Field {
    /// A column of the file; the error says why it cannot be one of a table.
    fn new(field: arrow_ipc::Field<'_>) -> std::result::Result<Self, String> {
        let name = field.name().unwrap_or_default().to_owned();
        let number = |kind| (Kind::Number(kind), Some(2));
        let (kind, buffers) = match field.type_type() {
            Type::Null => (Kind::Null, Some(0)),
            Type::Bool => (Kind::Bits, Some(2)),
            Type::Int => number(field.type_as_int().and_then(whole_type).unwrap_or(NumberType::I64)),
            Type::FloatingPoint => {
                number(match field.type_as_floating_point().map(|float| float.precision()) {
                    Some(Precision::HALF) => NumberType::F16,
                    Some(Precision::SINGLE) => NumberType::F32,
                    _ => NumberType::F64,
                })
            }
            Type::Utf8 => (Kind::Text(Text::Narrow), Some(3)),
            Type::LargeUtf8 => (Kind::Text(Text::Wide), Some(3)),
            Type::Utf8View => (Kind::Text(Text::Views), None),
            Type::Binary | Type::LargeBinary => (Kind::Other, Some(3)),
            Type::BinaryView => (Kind::Other, None),
            Type::Date
            | Type::Time
            | Type::Timestamp
            | Type::Duration
            | Type::Interval
            | Type::Decimal
            | Type::FixedSizeBinary => (Kind::Other, Some(2)),
            _ if field.dictionary().is_some() => (Kind::Other, Some(2)),
            _ => {
                return Err(format!(
                    "has a column {} of lists or records; drop it, or make a column of each part",
                    quoted(&name)
                ));
            }
        };
        let mut type_name = field.type_type().variant_name().unwrap_or("unknown").to_lowercase();
        if matches!(kind, Kind::Text(_)) {
            type_name = "string".into();
        }
        let Some(dictionary) = field.dictionary() else {
            return Ok(Self { name, kind, type_name, buffers });
        };
        let keys = dictionary.indexType().map_or(Some(NumberType::I32), whole_type);
        let kind = match (kind, keys) {
            (Kind::Text(text), Some(keys)) => Kind::Category { keys, id: dictionary.id(), text },
            _ => Kind::Other,
        };
        Ok(Self { name, kind, type_name: format!("category of {type_name}"), buffers: Some(2) })
    }
}

fn whole_type(int: arrow_ipc::Int<'_>) -> Option<NumberType> {
    Some(match (int.bitWidth(), int.is_signed()) {
        (8, true) => NumberType::I8,
        (8, false) => NumberType::U8,
        (16, true) => NumberType::I16,
        (16, false) => NumberType::U16,
        (32, true) => NumberType::I32,
        (32, false) => NumberType::U32,
        (64, true) => NumberType::I64,
        (64, false) => NumberType::U64,
        _ => return None,
    })
}
