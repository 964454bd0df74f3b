//! Reads tables of `FlatBuffers`, in which Arrow writes its messages. Every access is checked: offsets come from the file.

use crate::{Error, Position, Result};

/// A table: a position, and a list of where its fields are relative to it. Fields that are not stored have the value 0, or
/// are empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    place: &'a Position,
    buffer: &'a [u8],
    position: usize,
    /// The offset of each field in 16 bits, behind two sizes of 16 bits.
    offsets: &'a [u8],
}

impl<'a> Table<'a> {
    /// The root table of a buffer.
    pub fn root(place: &'a Position, buffer: &'a [u8]) -> Result<Self> {
        Self { place, buffer, position: 0, offsets: &[] }.follow(0).ok_or_else(|| damaged(place))
    }

    /// The error for this table.
    pub fn damaged(self) -> Error {
        damaged(self.place)
    }

    /// The table to which the offset at a position leads.
    fn follow(self, position: usize) -> Option<Self> {
        let position = follow(self.buffer, position)?;
        let back = i32::from_le_bytes(bytes(self.buffer, position)?);
        let start = usize::try_from(i64::try_from(position).ok()? - i64::from(back)).ok()?;
        let size = usize::from(u16::from_le_bytes(bytes(self.buffer, start)?));
        Some(Self { position, offsets: self.buffer.get(start..start + size)?, ..self })
    }

    /// The position of a field; `None` if it is not stored.
    fn field(self, index: usize) -> Option<usize> {
        let offset = u16::from_le_bytes(bytes(self.offsets, 4 + 2 * index)?);
        (offset > 0).then(|| self.position + usize::from(offset))
    }

    fn scalar<const SIZE: usize>(self, index: usize) -> Result<[u8; SIZE]> {
        let Some(position) = self.field(index) else { return Ok([0; SIZE]) };
        bytes(self.buffer, position).ok_or_else(|| self.damaged())
    }

    pub fn u8(self, index: usize) -> Result<u8> {
        self.scalar(index).map(u8::from_le_bytes)
    }

    pub fn bool(self, index: usize) -> Result<bool> {
        self.u8(index).map(|value| value != 0)
    }

    pub fn i16(self, index: usize) -> Result<i16> {
        self.scalar(index).map(i16::from_le_bytes)
    }

    pub fn i32(self, index: usize) -> Result<i32> {
        self.scalar(index).map(i32::from_le_bytes)
    }

    pub fn i64(self, index: usize) -> Result<i64> {
        self.scalar(index).map(i64::from_le_bytes)
    }

    pub fn table(self, index: usize) -> Result<Option<Self>> {
        let table = |position| self.follow(position).ok_or_else(|| self.damaged());
        self.field(index).map(table).transpose()
    }

    pub fn text(self, index: usize) -> Result<&'a str> {
        std::str::from_utf8(self.vector(index, 1)?.1).map_err(|_| self.damaged())
    }

    /// The elements of a vector of tables.
    pub fn tables(self, index: usize) -> Result<impl Iterator<Item = Result<Self>>> {
        let (start, elements) = self.vector(index, 4)?;
        let table = move |at| self.follow(start + 4 * at).ok_or_else(|| self.damaged());
        Ok((0..elements.len() / 4).map(table))
    }

    /// The bytes of each element of a vector of numbers or structures, which take `SIZE` bytes.
    pub fn structs<const SIZE: usize>(self, index: usize) -> Result<&'a [[u8; SIZE]]> {
        Ok(self.vector(index, SIZE)?.1.as_chunks().0)
    }

    /// The position and the bytes of the elements of a vector.
    fn vector(self, index: usize, size: usize) -> Result<(usize, &'a [u8])> {
        let Some(position) = self.field(index) else { return Ok((0, &[])) };
        let elements = || {
            let start = follow(self.buffer, position)?;
            let length = (u32::from_le_bytes(bytes(self.buffer, start)?) as usize).checked_mul(size)?;
            Some((start + 4, self.buffer.get(start + 4..(start + 4).checked_add(length)?)?))
        };
        elements().ok_or_else(|| self.damaged())
    }
}

fn damaged(place: &Position) -> Error {
    place.fault("is damaged; copy it again or save it anew")
}

/// The `i64` at a position of a structure.
pub(super) fn i64_at(structure: &[u8], at: usize) -> i64 {
    bytes(structure, at).map_or(0, i64::from_le_bytes)
}

fn bytes<const SIZE: usize>(buffer: &[u8], position: usize) -> Option<[u8; SIZE]> {
    buffer.get(position..)?.first_chunk().copied()
}

/// The position to which the offset at another one leads.
fn follow(buffer: &[u8], position: usize) -> Option<usize> {
    Some(position.saturating_add(u32::from_le_bytes(bytes(buffer, position)?) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root at 12 with three fields: the number 7, the text "ab", and one that is not stored.
    const BUFFER: &[u8] = &[
        12, 0, 0, 0, // the root
        8, 0, 12, 0, 4, 0, 8, 0, // sizes and offsets
        8, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0, // the table
        2, 0, 0, 0, b'a', b'b',
    ];

    #[test]
    fn fields_are_read_or_have_their_default() {
        let place = Position::default();
        let table = Table::root(&place, BUFFER).unwrap();
        assert_eq!((table.i32(0).unwrap(), table.text(1).unwrap()), (7, "ab"));
        assert_eq!((table.i64(2).unwrap(), table.text(2).unwrap()), (0, ""));
        assert!(table.table(2).unwrap().is_none());
        assert_eq!(table.tables(2).unwrap().count(), 0);
    }

    #[test]
    fn no_offset_leads_out_of_the_buffer() {
        let place = Position::default();
        for length in 0..BUFFER.len() {
            let cut = &BUFFER[..length];
            assert!(Table::root(&place, cut).and_then(|table| table.text(1)).is_err(), "{length}");
        }
        for at in 0..BUFFER.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = BUFFER.to_vec();
                damaged[at] = value;
                let Ok(table) = Table::root(&place, &damaged) else { continue };
                let _ = (table.i64(0).is_ok(), table.text(1).is_ok(), table.structs::<16>(1).is_ok());
                let _ = (table.table(0).is_ok(), table.table(1).is_ok());
                let _ = table.tables(1).map(|tables| tables.flatten().count());
            }
        }
    }
}
