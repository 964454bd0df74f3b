//! A dataset of one or two dimensions with elements of fixed size.

use std::io::Read;
use std::ops::Range;

use bytemuck::Pod;
use hdf5_pure::{Dataset, Datatype, DatatypeByteOrder, FloatingPointLayout, Layout};
use rayon::prelude::*;

use super::chunks::{Chunks, Decoder};
use super::source::guarded;
use crate::input::Random;
use crate::number::{Encoding, NumberType, Target};
use crate::{Position, Result};

/// Elements that are read at a time, if chunks are not larger.
const PIECE: usize = 1 << 21;

/// An array whose size was checked against the file.
pub(crate) struct Array {
    pub place: Position,
    /// One or two dimensions.
    pub shape: Vec<usize>,
    /// The type of its elements.
    pub kind: Datatype,
    /// Bytes of an element.
    size: usize,
    bytes: Random,
    storage: ElementStorage,
}

/// The storage of the elements.
enum ElementStorage {
    Inline(Vec<u8>),
    Contiguous(u64),
    Chunks(Chunks),
    /// No element was written.
    Unwritten,
}

impl Array {
    pub fn open(place: &Position, dataset: &Dataset, bytes: &Random) -> Result<Self> {
        let shape = guarded(place, || dataset.shape())?;
        let shape: Option<Vec<usize>> = shape.iter().map(|&size| usize::try_from(size).ok()).collect();
        let kind = guarded(place, || dataset.datatype())?;
        let size = guarded(place, || dataset.element_size())? as usize;
        let shape = shape.filter(|shape| matches!(shape.len(), 1 | 2)).ok_or_else(|| {
            let dimensions = guarded(place, || dataset.shape()).map_or(0, |shape| shape.len());
            place.fault(format!(
                "has {dimensions} dimensions, but a view is a matrix; reshape it to two dimensions"
            ))
        })?;
        let total = shape.iter().try_fold(size, |total, &size| total.checked_mul(size));
        let too_long =
            || place.fault("should be longer than the file can hold; copy it again or save it anew");
        let total = total.ok_or_else(too_long)? as u64;
        let storage = match guarded(place, || dataset.layout())? {
            Layout::Compact { size } if size >= total && size <= bytes.length() => {
                ElementStorage::Inline(guarded(place, || dataset.read_raw())?)
            }
            Layout::Contiguous { address: Some(address), .. }
                if address.checked_add(total).is_some_and(|end| end <= bytes.length()) =>
            {
                ElementStorage::Contiguous(address)
            }
            Layout::Contiguous { address: None, .. } if total <= bytes.length() => ElementStorage::Unwritten,
            Layout::Chunked { chunk_shape, .. } => ElementStorage::Chunks(Chunks::open(
                place,
                dataset,
                bytes,
                &shape,
                (size, encoding(&kind)),
                &chunk_shape,
            )?),
            Layout::Virtual => {
                return Err(place.fault("is a virtual dataset, whose values are in other files; read those"));
            }
            _ => return Err(too_long()),
        };
        Ok(Self { place: place.clone(), shape, kind, size, bytes: bytes.clone(), storage })
    }

    /// Lines: rows of two dimensions, elements of one.
    pub fn lines(&self) -> usize {
        self.shape[0]
    }

    /// Elements of a line.
    pub fn length(&self) -> usize {
        self.shape.get(1).copied().unwrap_or(1)
    }

    /// The number of lines to read at a time: whole chunks.
    pub fn step(&self) -> usize {
        let height = if let ElementStorage::Chunks(chunks) = &self.storage { chunks.height() } else { 1 };
        let lines = (PIECE / self.length().max(1)).max(1);
        lines.next_multiple_of(height).max(height)
    }

    /// The encoding of the numbers; an error for other types.
    pub fn encoding(&self) -> Result<Encoding> {
        encoding(&self.kind).ok_or_else(|| {
            self.place.fault(format!(
                "has elements of type {}, not real numbers; save numbers",
                type_name(&self.kind)
            ))
        })
    }

    /// All numbers of an array of one dimension.
    pub fn list<T: Target>(&self) -> Result<Vec<T>> {
        self.flat()?;
        let mut numbers = self.zeroed(self.lines())?;
        self.numbers(0..self.lines(), &mut numbers)?;
        Ok(numbers)
    }

    /// Fails unless the array has one dimension.
    pub fn flat(&self) -> Result<()> {
        if self.shape.len() == 1 || self.length() == 1 {
            return Ok(());
        }
        Err(self.place.fault("is a matrix where a list is needed; save it anew"))
    }

    /// `count` zeros.
    pub fn zeroed<T: Pod>(&self, count: usize) -> Result<Vec<T>> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        self.place.check_memory(bytes)?;
        bytemuck::try_zeroed_vec(count)
            .map_err(|()| self.place.unreadable(std::io::ErrorKind::OutOfMemory.into()))
    }

    /// Reads the numbers of some lines.
    pub fn numbers<T: Target>(&self, lines: Range<usize>, out: &mut [T]) -> Result<()> {
        let encoding = self.encoding()?;
        if let ElementStorage::Contiguous(address) = self.storage {
            let first = address + self.before(lines.start) as u64;
            let parts = out.par_chunks_mut(PIECE).enumerate();
            let read = parts.map(|(at, out)| {
                encoding.fill(&mut self.bytes.at(first + (at * PIECE * self.size) as u64), out)
            });
            return read.collect::<std::io::Result<()>>().map_err(|error| self.place.unreadable(error));
        }
        self.fill(lines, 1, out, |bytes, out| encoding.convert(bytes, out))
    }

    /// The bytes of some lines.
    pub fn raw(&self, lines: Range<usize>) -> Result<Vec<u8>> {
        let mut out = self.zeroed(lines.len() * self.length() * self.size)?;
        if let ElementStorage::Contiguous(address) = self.storage {
            let mut bytes = self.bytes.at(address + self.before(lines.start) as u64);
            bytes.read_exact(&mut out).map_err(|error| self.place.unreadable(error))?;
            return Ok(out);
        }
        self.fill(lines, self.size, &mut out, |bytes, out| out.copy_from_slice(bytes))?;
        Ok(out)
    }

    /// Bytes before a line.
    fn before(&self, line: usize) -> usize {
        line * self.length() * self.size
    }

    /// Fills the lines, which have `unit` numbers for each element; `put` converts bytes to them.
    fn fill<T: Pod + Send>(
        &self,
        lines: Range<usize>,
        unit: usize,
        out: &mut [T],
        put: impl Fn(&[u8], &mut [T]) + Sync,
    ) -> Result<()> {
        let chunks = match &self.storage {
            ElementStorage::Chunks(chunks) => chunks,
            ElementStorage::Inline(bytes) => {
                put(&bytes[self.before(lines.start)..self.before(lines.end)], out);
                return Ok(());
            }
            ElementStorage::Contiguous(_) | ElementStorage::Unwritten => return Ok(()),
        };
        let width = self.length() * unit;
        let mut bands = Vec::new();
        let (mut rest, mut first) = (out, lines.start);
        while first < lines.end {
            let end = (first / chunks.height() + 1).saturating_mul(chunks.height()).min(lines.end);
            let (band, after) = rest.split_at_mut((end - first) * width);
            bands.push((first..end, band));
            (rest, first) = (after, end);
        }
        let copy = |bytes: &[u8], column: usize, first: usize, lines: &Range<usize>, out: &mut [T]| {
            let count = chunks.width().min(self.length() - column);
            let skipped = (lines.start - first) * chunks.width() * self.size;
            if chunks.width() == self.length() {
                let length = lines.len() * count;
                put(&bytes[skipped..skipped + length * self.size], &mut out[..length * unit]);
                return;
            }
            let rows = bytes[skipped..].chunks_exact(chunks.width() * self.size);
            for (out, bytes) in out.chunks_exact_mut(width).zip(rows) {
                put(&bytes[..count * self.size], &mut out[column * unit..(column + count) * unit]);
            }
        };
        let decode = |at: usize, decoder: &mut Decoder| chunks.decode(&self.place, &self.bytes, at, decoder);
        if bands.len() >= 2 * rayon::current_num_threads() {
            return bands.into_par_iter().try_for_each_init(Decoder::default, |decoder, (lines, out)| {
                let stored = chunks.band(lines.start);
                chunks.fill_holes(stored.len(), out, &put, unit);
                for at in stored {
                    decode(at, decoder)?;
                    let [first, column] = chunks.offset(at);
                    copy(decoder.bytes(), column, first, &lines, out);
                }
                Ok(())
            });
        }
        for (lines, out) in bands {
            let stored = chunks.band(lines.start);
            chunks.fill_holes(stored.len(), out, &put, unit);
            for at in stored.clone().step_by(rayon::current_num_threads()) {
                let some = at..(at + rayon::current_num_threads()).min(stored.end);
                let decoded = some.into_par_iter().map(|at| {
                    let mut decoder = Decoder::default();
                    decode(at, &mut decoder).map(|()| (at, decoder))
                });
                for (at, decoder) in decoded.collect::<Result<Vec<_>>>()? {
                    let [first, column] = chunks.offset(at);
                    copy(decoder.bytes(), column, first, &lines, out);
                }
            }
        }
        Ok(())
    }
}

/// The encoding of a type of real numbers; `None` for other types. Booleans are an enumeration.
fn encoding(kind: &Datatype) -> Option<Encoding> {
    let (kind, order) = match kind {
        Datatype::FixedPoint { size, byte_order, layout }
            if layout.bit_offset == 0 && u32::from(layout.bit_precision) == size * 8 =>
        {
            (NumberType::integer(*size as usize, layout.signed)?, byte_order)
        }
        Datatype::FloatingPoint { size, byte_order, layout } => {
            let half = layout.exponent_size == 5 && layout.mantissa_size == 10 && layout.exponent_bias == 15;
            let kind = match size {
                2 if half => NumberType::F16,
                4 if *layout == FloatingPointLayout::IEEE754_BINARY32 => NumberType::F32,
                8 if *layout == FloatingPointLayout::IEEE754_BINARY64 => NumberType::F64,
                _ => return None,
            };
            (kind, byte_order)
        }
        Datatype::Enumeration { base_type, .. } => return encoding(base_type),
        _ => return None,
    };
    match order {
        DatatypeByteOrder::LittleEndian => Some(Encoding { kind, big_endian: false }),
        DatatypeByteOrder::BigEndian => Some(Encoding { kind, big_endian: true }),
        DatatypeByteOrder::Vax => None,
    }
}

fn type_name(kind: &Datatype) -> &'static str {
    match kind {
        Datatype::FixedPoint { .. } => "integer",
        Datatype::FloatingPoint { .. } => "float",
        Datatype::String { .. } | Datatype::VariableLength { is_string: true, .. } => "text",
        Datatype::Compound { .. } => "compound",
        Datatype::Reference { .. } => "reference",
        Datatype::Enumeration { .. } => "enumeration",
        _ => "other",
    }
}
