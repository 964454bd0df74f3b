//! Texts, of fixed or variable length.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;

use hdf5_pure::{Datatype, StringPadding};

use super::array::Array;
use crate::fault::{MemoryMeter, STRING_OVERHEAD};
use crate::input::Random;
use crate::{Position, Result};

/// Texts that are decoded at a time.
const PIECE: usize = 1 << 16;

/// All texts of an array of one dimension; addresses count from `base`.
pub(super) fn read(array: &Array, bytes: &Random, base: u64) -> Result<Vec<String>> {
    array.flat()?;
    let mut texts = array.place.allocate(array.lines())?;
    let mut heap = Heap { bytes, base, place: &array.place, collections: HashMap::new(), held: 0 };
    let mut taken = MemoryMeter::default();
    for first in (0..array.lines()).step_by(PIECE) {
        let elements = array.raw(first..(first + PIECE).min(array.lines()))?;
        let size = (elements.len() / (array.lines() - first).min(PIECE)).max(1);
        for element in elements.chunks_exact(size) {
            let text = match &array.kind {
                Datatype::String { padding, .. } => fixed(element, padding),
                Datatype::VariableLength { is_string: true, .. } => heap.text(element)?,
                _ => {
                    return Err(array.place.fault("holds no texts where there should be some; save it anew"));
                }
            };
            taken.take(&array.place, text.len() + STRING_OVERHEAD)?;
            texts.push(String::from_utf8_lossy(text).into_owned());
        }
    }
    Ok(texts)
}

/// A text without its padding.
fn fixed<'a>(element: &'a [u8], padding: &StringPadding) -> &'a [u8] {
    let end = element.iter().position(|&byte| byte == 0).unwrap_or(element.len());
    match padding {
        StringPadding::SpacePad => element[..end].trim_ascii_end(),
        _ => &element[..end],
    }
}

/// The heap of texts of variable length: collections of numbered objects.
struct Heap<'a> {
    bytes: &'a Random,
    base: u64,
    place: &'a Position,
    collections: HashMap<u64, Collection>,
    /// Bytes of all collections.
    held: u64,
}

struct Collection {
    bytes: Vec<u8>,
    objects: HashMap<u16, Range<usize>>,
}

impl Heap<'_> {
    /// The text of an element, which is a length, the address of a collection and an index in it.
    fn text(&mut self, element: &[u8]) -> Result<&[u8]> {
        let damaged =
            || self.place.fault("has a text that is nowhere in the file; copy it again or save it anew");
        let length = number(element, 0, 4).ok_or_else(damaged)? as usize;
        let address = number(element, 4, 8).ok_or_else(damaged)?;
        let index = number(element, 12, 4).ok_or_else(damaged)?;
        if length == 0 || address == 0 || address == u64::MAX {
            return Ok(&[]);
        }
        if !self.collections.contains_key(&address) {
            let collection = self.collection(address)?;
            self.held += collection.bytes.len() as u64;
            // Collections do not overlap in a file that is not damaged.
            if self.held > self.bytes.length() {
                return Err(damaged());
            }
            self.collections.insert(address, collection);
        }
        let found = self.collections.get(&address).and_then(|collection| {
            let object = collection.objects.get(&u16::try_from(index).ok()?)?.clone();
            collection.bytes[object].get(..length)
        });
        found.ok_or_else(damaged)
    }

    fn collection(&self, address: u64) -> Result<Collection> {
        let damaged = || self.place.fault("has texts that are damaged; copy it again or save it anew");
        let start = self.base.checked_add(address).ok_or_else(damaged)?;
        let mut reader = self.bytes.at(start);
        let mut header = [0; 16];
        let read = reader.read_exact(&mut header);
        read.map_err(|error| self.place.unreadable(error))?;
        let size = number(&header, 8, 8).filter(|_| header.starts_with(b"GCOL")).ok_or_else(damaged)?;
        if size < 16 || size > self.bytes.length().saturating_sub(start) {
            return Err(damaged());
        }
        let mut bytes = self.place.allocate(size as usize - 16)?;
        bytes.resize(size as usize - 16, 0);
        reader.read_exact(&mut bytes).map_err(|error| self.place.unreadable(error))?;
        let mut objects = HashMap::new();
        let mut at = 0;
        while let (Some(index), Some(size)) = (number(&bytes, at, 2), number(&bytes, at + 8, 8)) {
            let first = at + 16;
            // Index 0 is free space.
            let end = usize::try_from(size).ok().and_then(|size| first.checked_add(size));
            let Some(end) = end.filter(|&end| index > 0 && end <= bytes.len()) else { break };
            objects.insert(index as u16, first..end);
            at = end.next_multiple_of(8);
        }
        Ok(Collection { bytes, objects })
    }
}

/// A little-endian number of `size` bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut number = [0; 8];
    number[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(number))
}
