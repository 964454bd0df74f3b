//! Decompresses buffers, and decodes their texts and numbers.

use std::io::Read;

use daimc_core::text::quoted;
use lz4_flex::frame::FrameDecoder;

use super::file::{Arrow, Batch, Codec};
use super::schema::{Storage, TextLayout};
use crate::number::NumberType;
use crate::{Error, Result, memory};

/// The length that marks an uncompressed buffer in a compressed batch.
const AS_IT_IS: i64 = -1;

/// The maximum compression ratio of LZ4.
const LZ4_LIMIT: u64 = 255;

/// The maximum length of a text inside of its view.
const SHORT: usize = 12;

impl Arrow {
    /// The bytes of a buffer: as many as are expected, or all.
    pub(super) fn buffer(&self, batch: &Batch, index: usize, expected: Option<usize>) -> Result<Vec<u8>> {
        let place = &self.place;
        let short = || place.fault("has fewer values than rows; copy it again or save it anew");
        let buffer = batch.buffers.get(index).ok_or_else(short)?;
        let mut stored = self.bytes.at(buffer.start).take(buffer.length);
        let mut length = buffer.length;
        let compressed = batch.codec.filter(|_| length > 0);
        let mut claimed = AS_IT_IS;
        if compressed.is_some() {
            let mut prefix = [0; 8];
            stored.read_exact(&mut prefix).map_err(|error| place.unreadable(error))?;
            length -= 8;
            claimed = i64::from_le_bytes(prefix);
        }
        let (reader, length): (Box<dyn Read>, u64) = match (compressed, u64::try_from(claimed)) {
            (None, _) | (Some(_), Err(_)) => (Box::new(stored), length),
            (Some(Codec::Lz4), Ok(claimed)) => {
                if claimed > length.saturating_add(64).saturating_mul(LZ4_LIMIT) {
                    return Err(place.fault("claims more than it can hold; copy it again or save it anew"));
                }
                (Box::new(FrameDecoder::new(stored)), claimed)
            }
            (Some(Codec::Zstandard), Ok(claimed)) => {
                let decoder = zstd::Decoder::new(stored).map_err(|error| place.unreadable(error))?;
                (Box::new(decoder), claimed)
            }
            (Some(Codec::Unknown), Ok(_)) => {
                return Err(place.fault("is compressed in a way that is not known; save it with LZ4 or ZSTD"));
            }
        };
        let wanted = expected.map_or(length, |expected| expected as u64);
        if wanted > length {
            return Err(short());
        }
        place.check_memory(wanted)?;
        let mut bytes = Vec::new();
        // Memory grows with the bytes that were read: the length in the file may be wrong.
        let read = reader.take(wanted).read_to_end(&mut bytes);
        let damaged = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::OutOfMemory => place.unreadable(error),
            _ if error.raw_os_error().is_some() => place.unreadable(error),
            _ => place.fault(format!("is damaged ({error}); copy it again or save it anew")),
        };
        if (read.map_err(damaged)? as u64) < wanted { Err(short()) } else { Ok(bytes) }
    }

    /// The texts of a column in a batch.
    pub(super) fn text(&self, batch: &Batch, column: usize, text: TextLayout) -> Result<Texts<'_>> {
        let first = batch.first[column];
        let width = match text {
            TextLayout::Narrow => 4,
            TextLayout::Wide => 8,
            TextLayout::Views => 16,
        };
        let ends = usize::from(text != TextLayout::Views);
        let places = batch.rows.saturating_add(ends).saturating_mul(width);
        // Without rows there may be no offsets.
        let places = if batch.rows == 0 { Vec::new() } else { self.buffer(batch, first + 1, Some(places))? };
        let mut letters = Vec::new();
        let mut taken = 0;
        for index in first + 2..batch.first[column + 1] {
            let buffer = self.buffer(batch, index, None)?;
            taken += buffer.len() as u64;
            if memory::available().is_some_and(|available| taken > available) {
                self.place.check_memory(taken)?;
            }
            letters.push(buffer);
        }
        Ok(Texts { arrow: self, valid: self.valid(batch, column)?, rows: batch.rows, text, places, letters })
    }
    /// The texts of a dictionary column, as of a batch.
    pub(super) fn words(&self, batch: usize, id: i64, text: TextLayout) -> Result<Vec<Option<String>>> {
        let mut words = Vec::new();
        for dictionary in self.dictionaries.iter().filter(|other| other.id == id && other.before <= batch) {
            if !dictionary.is_delta {
                words.clear();
            }
            self.text(&dictionary.batch, 0, text)?.each(&mut |word| {
                words.push(word);
                Ok(())
            })?;
        }
        Ok(words)
    }

    /// The validity bits of the rows, if some are null.
    pub(super) fn valid(&self, batch: &Batch, column: usize) -> Result<Option<Vec<u8>>> {
        if !batch.nulls[column] {
            return Ok(None);
        }
        let first = batch.first[column];
        // Without nulls there may be no bits.
        if batch.buffers.get(first).is_none_or(|buffer| buffer.length == 0) {
            return Ok(None);
        }
        self.buffer(batch, first, Some(batch.rows.div_ceil(8))).map(Some)
    }

    /// The stored values of a column of numbers, or the keys of a dictionary column.
    pub(super) fn plain(&self, batch: &Batch, column: usize) -> Result<Vec<u8>> {
        let length = match self.fields[column].storage {
            Storage::Number(kind) | Storage::Dictionary { keys: kind, .. } => {
                batch.rows.saturating_mul(kind.size())
            }
            Storage::Bits => batch.rows.div_ceil(8),
            _ => 0,
        };
        self.buffer(batch, batch.first[column] + 1, Some(length)).map_err(|error| match error {
            Error::Data { place, reason } => {
                place.fault(format!("column {}: {reason}", quoted(&self.fields[column].name)))
            }
            other => other,
        })
    }
}

/// The texts of a column in a batch.
pub(super) struct Texts<'a> {
    arrow: &'a Arrow,
    valid: Option<Vec<u8>>,
    rows: usize,
    text: TextLayout,
    places: Vec<u8>,
    letters: Vec<Vec<u8>>,
}

impl Texts<'_> {
    /// Calls `visit` with each text, `None` for null and invalid UTF-8.
    pub(super) fn each(&self, visit: &mut dyn FnMut(Option<String>) -> Result<()>) -> Result<()> {
        for row in 0..self.rows {
            let known = self.valid.as_ref().is_none_or(|valid| bit(valid, row));
            let bytes = match self.bytes(row) {
                Some(bytes) => bytes,
                None if known => {
                    let reason = "has a text outside of its buffer; copy it again or save it anew";
                    return Err(self.arrow.place.fault(reason));
                }
                None => &[],
            };
            visit(std::str::from_utf8(bytes).ok().filter(|_| known).map(String::from))?;
        }
        Ok(())
    }

    fn bytes(&self, row: usize) -> Option<&[u8]> {
        let wide =
            |at: usize| usize::try_from(i64::from_le_bytes(*self.places.get(at..)?.first_chunk()?)).ok();
        let narrow =
            |at: usize| usize::try_from(i32::from_le_bytes(*self.places.get(at..)?.first_chunk()?)).ok();
        let (start, end) = match self.text {
            TextLayout::Narrow => (narrow(4 * row)?, narrow(4 * row + 4)?),
            TextLayout::Wide => (wide(8 * row)?, wide(8 * row + 8)?),
            TextLayout::Views => {
                let at = 16 * row;
                let length = narrow(at)?;
                if length <= SHORT {
                    return self.places.get(at + 4..at + 4 + length);
                }
                let start = narrow(at + 12)?;
                return self.letters.get(narrow(at + 8)?)?.get(start..start.checked_add(length)?);
            }
        };
        self.letters.first()?.get(start..end)
    }
}

/// A bit of a buffer; missing bits are not set.
pub(super) fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// The little-endian integer of some bytes; `None` for other types.
pub(super) fn integer(bytes: &[u8], kind: NumberType) -> Option<i128> {
    let unsigned = bytes.iter().rev().fold(0, |number, byte| number << 8 | i128::from(*byte));
    let span = 1_i128 << (8 * bytes.len().min(8));
    match kind {
        NumberType::U8 | NumberType::U16 | NumberType::U32 | NumberType::U64 => Some(unsigned),
        NumberType::I8 | NumberType::I16 | NumberType::I32 | NumberType::I64 => {
            Some(if unsigned >= span / 2 { unsigned - span } else { unsigned })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_sign_and_every_digit() {
        assert_eq!(integer(&[0xff], NumberType::I8), Some(-1));
        assert_eq!(integer(&[0xff], NumberType::U8), Some(255));
        assert_eq!(integer(&i64::MIN.to_le_bytes(), NumberType::I64), Some(i64::MIN.into()));
        assert_eq!(integer(&u64::MAX.to_le_bytes(), NumberType::U64), Some(u64::MAX.into()));
        assert_eq!(integer(&[0; 4], NumberType::F32), None);
    }
}
