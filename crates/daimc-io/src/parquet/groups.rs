//! The columns of row groups. The `parquet` crate reads them by the schema of the file, so that a group with other columns would be
//! misread.

use std::io::Read;

use ::parquet::schema::types::SchemaDescriptor;

use crate::input::Random;

/// Whether a row group has other columns than the file. Footers that cannot be parsed here are left to the crate.
pub(super) fn differ(file: &Random, schema: &SchemaDescriptor) -> bool {
    let Some(footer) = footer(file) else { return false };
    let mut differ = false;
    let own = |index: usize, kind: Option<i64>, path: Option<Vec<&[u8]>>| {
        let column = (index < schema.num_columns()).then(|| schema.column(index));
        let same = |column: &::parquet::schema::types::ColumnDescriptor| {
            kind.is_none_or(|kind| kind == column.physical_type() as i64)
                && path.is_none_or(|path| {
                    path.into_iter().eq(column.path().parts().iter().map(String::as_bytes))
                })
        };
        differ |= !column.is_some_and(|column| same(&column));
    };
    walk(&footer, own);
    differ
}

/// The footer of the file.
fn footer(file: &Random) -> Option<Vec<u8>> {
    let end = file.length().checked_sub(8)?;
    let mut length = [0; 4];
    file.at(end).read_exact(&mut length).ok()?;
    let length = u64::from(u32::from_le_bytes(length));
    let mut footer = Vec::new();
    file.at(end.checked_sub(length)?).take(length).read_to_end(&mut footer).ok()?;
    Some(footer)
}

/// Calls `visit` with the columns of all row groups: their index in the group, physical type and path.
fn walk<'a>(
    footer: &'a [u8],
    mut visit: impl FnMut(usize, Option<i64>, Option<Vec<&'a [u8]>>),
) -> Option<()> {
    const ROW_GROUPS: i64 = 4;
    const COLUMNS: i64 = 1;
    const ABOUT: i64 = 3;
    const KIND: i64 = 1;
    const PATH: i64 = 3;
    let mut compact = Compact { bytes: footer };
    compact.fields(|compact, id, kind| {
        if (id, kind) != (ROW_GROUPS, LIST) {
            return compact.skip(kind, 0);
        }
        compact.list(|compact, _, kind| {
            if kind != STRUCT {
                return None;
            }
            compact.fields(|compact, id, kind| {
                if (id, kind) != (COLUMNS, LIST) {
                    return compact.skip(kind, 0);
                }
                compact.list(|compact, index, kind| {
                    if kind != STRUCT {
                        return None;
                    }
                    compact.fields(|compact, id, kind| {
                        if (id, kind) != (ABOUT, STRUCT) {
                            return compact.skip(kind, 0);
                        }
                        let (mut physical, mut path) = (None, None);
                        compact.fields(|compact, id, kind| match (id, kind) {
                            (KIND, I32) => {
                                physical = Some(compact.number()?);
                                Some(())
                            }
                            (PATH, LIST) => {
                                let mut parts = Vec::new();
                                compact.list(|compact, _, kind| {
                                    (kind == BINARY).then_some(())?;
                                    parts.push(compact.binary()?);
                                    Some(())
                                })?;
                                path = Some(parts);
                                Some(())
                            }
                            _ => compact.skip(kind, 0),
                        })?;
                        visit(index, physical, path);
                        Some(())
                    })
                })
            })
        })
    })
}

const BYTE: u8 = 3;
const I32: u8 = 5;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// The deepest nesting of values.
const DEEPEST: usize = 16;

/// The compact protocol of Thrift.
struct Compact<'a> {
    bytes: &'a [u8],
}

impl<'a> Compact<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// An integer with its sign in the lowest bit.
    fn number(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn binary(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (binary, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(binary)
    }

    /// Calls `visit` with ID and type of each field of a structure, to read it.
    fn fields(&mut self, mut visit: impl FnMut(&mut Self, i64, u8) -> Option<()>) -> Option<()> {
        let mut id = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            id = if head >> 4 == 0 { self.number()? } else { id + i64::from(head >> 4) };
            visit(self, id, head & 15)?;
        }
    }

    /// Calls `visit` with index and type of each element of a list, to read it.
    fn list(&mut self, mut visit: impl FnMut(&mut Self, usize, u8) -> Option<()>) -> Option<()> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        for index in 0..usize::try_from(count).ok()? {
            visit(self, index, head & 15)?;
        }
        Some(())
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            // The type of a boolean field is its value.
            1 | 2 => Some(()),
            BYTE => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            DOUBLE => {
                self.bytes = self.bytes.get(8..)?;
                Some(())
            }
            BINARY => self.binary().map(drop),
            LIST | SET => self.list(|compact, _, kind| match kind {
                1 | 2 => compact.byte().map(drop),
                _ => compact.skip(kind, depth + 1),
            }),
            MAP => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                for _ in 0..count {
                    self.skip(kinds >> 4, depth + 1)?;
                    self.skip(kinds & 15, depth + 1)?;
                }
                Some(())
            }
            STRUCT => self.fields(|compact, _, kind| compact.skip(kind, depth + 1)),
            _ => None,
        }
    }
}
