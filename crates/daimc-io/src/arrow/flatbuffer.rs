//! Reads tables of `FlatBuffers`, in which Arrow writes its messages. Every access is checked: offsets come from the file.

/// A value that lies outside of its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfBounds;

type Result<T> = std::result::Result<T, OutOfBounds>;

/// A table: a position, and a list of where its fields are relative to it. Fields that are not stored have the value 0, or
/// are empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    buffer: &'a [u8],
    position: usize,
    /// The offset of each field in 16 bits, behind two sizes of 16 bits.
    offsets: &'a [u8],
}

impl<'a> Table<'a> {
    /// The table that a buffer starts with.
    pub fn root(buffer: &'a [u8]) -> Result<Self> {
        Self::at(buffer, follow(buffer, 0)?)
    }

    fn at(buffer: &'a [u8], position: usize) -> Result<Self> {
        let back = i64::from(i32::from_le_bytes(bytes(buffer, position)?));
        let start = usize::try_from(position as i64 - back).map_err(|_| OutOfBounds)?;
        let size = usize::from(u16::from_le_bytes(bytes(buffer, start)?));
        let offsets = buffer.get(start..start + size).ok_or(OutOfBounds)?;
        Ok(Self { buffer, position, offsets })
    }

    /// The position of a field; `None` where it is not stored.
    fn field(self, index: usize) -> Option<usize> {
        let offset = u16::from_le_bytes(bytes(self.offsets, 4 + 2 * index).ok()?);
        (offset > 0).then(|| self.position + usize::from(offset))
    }

    fn scalar<const SIZE: usize>(self, index: usize) -> Result<[u8; SIZE]> {
        self.field(index).map_or(Ok([0; SIZE]), |position| bytes(self.buffer, position))
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
        let table = |position| Self::at(self.buffer, follow(self.buffer, position)?);
        self.field(index).map(table).transpose()
    }

    pub fn text(self, index: usize) -> Result<&'a str> {
        std::str::from_utf8(self.vector(index, 1)?.1).map_err(|_| OutOfBounds)
    }

    /// The elements of a vector of tables.
    pub fn tables(self, index: usize) -> Result<impl Iterator<Item = Result<Self>>> {
        let (start, elements) = self.vector(index, 4)?;
        let positions = (0..elements.len() / 4).map(move |at| start + 4 * at);
        Ok(positions.map(move |position| Self::at(self.buffer, follow(self.buffer, position)?)))
    }

    /// The bytes of each element of a vector of numbers or structures, which take `SIZE` bytes.
    pub fn structs<const SIZE: usize>(self, index: usize) -> Result<&'a [[u8; SIZE]]> {
        Ok(self.vector(index, SIZE)?.1.as_chunks().0)
    }

    /// The position and the bytes of the elements of a vector.
    fn vector(self, index: usize, size: usize) -> Result<(usize, &'a [u8])> {
        let Some(position) = self.field(index) else { return Ok((0, &[])) };
        let start = follow(self.buffer, position)?;
        let count = u32::from_le_bytes(bytes(self.buffer, start)?) as usize;
        let end = count.checked_mul(size).and_then(|length| length.checked_add(start + 4));
        let elements = end.and_then(|end| self.buffer.get(start + 4..end)).ok_or(OutOfBounds)?;
        Ok((start + 4, elements))
    }
}

/// The `i64` at a position of a structure.
pub(super) fn i64_at(bytes: &[u8], at: usize) -> i64 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

fn bytes<const SIZE: usize>(buffer: &[u8], position: usize) -> Result<[u8; SIZE]> {
    buffer.get(position..).and_then(|rest| rest.first_chunk()).copied().ok_or(OutOfBounds)
}

/// Where the offset at a position leads.
fn follow(buffer: &[u8], position: usize) -> Result<usize> {
    Ok(position + u32::from_le_bytes(bytes(buffer, position)?) as usize)
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
        let table = Table::root(BUFFER).unwrap();
        assert_eq!((table.i32(0), table.text(1)), (Ok(7), Ok("ab")));
        assert_eq!((table.i64(2), table.text(2)), (Ok(0), Ok("")));
        assert!(table.table(2).unwrap().is_none());
        assert_eq!(table.tables(2).unwrap().count(), 0);
    }

    #[test]
    fn no_offset_leads_out_of_the_buffer() {
        for length in 0..BUFFER.len() {
            let cut = &BUFFER[..length];
            assert!(Table::root(cut).and_then(|table| table.text(1)).is_err(), "{length}");
        }
        for at in 0..BUFFER.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = BUFFER.to_vec();
                damaged[at] = value;
                let Ok(table) = Table::root(&damaged) else { continue };
                let _ = (table.i64(0), table.text(1), table.structs::<16>(1), table.table(0).is_ok());
                let _ = table.tables(1).map(|tables| tables.filter(|table| table.is_ok()).count());
            }
        }
    }
}
