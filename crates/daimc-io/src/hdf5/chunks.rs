//! The chunks of a dataset: their positions in the file and their contents.

use std::io::Read;
use std::ops::Range;

use hdf5_pure::{Chunk, Dataset};

use super::filters::Filter;
use super::source::guarded;
use crate::input::Random;
use crate::number::{Encoding, NumberType};
use crate::quiet::caught;
use crate::{Position, Result};

/// The most bytes of a chunk whose compression has no limit, and of chunks that were never written.
const BELIEVED: u64 = 1 << 26;

/// Chunks in order, whose sizes were checked against the file.
pub(super) struct Chunks {
    /// The lines of a chunk, and the elements of each.
    shape: [usize; 2],
    /// The number of chunks across a line.
    across: usize,
    /// Bytes of a decoded chunk.
    length: usize,
    filters: Vec<Filter>,
    stored: Vec<Chunk>,
    /// The bytes of an element that was never written.
    fill: Vec<u8>,
}

/// Reads and decodes chunks, one after another.
#[derive(Default)]
pub(super) struct Decoder {
    bytes: Vec<u8>,
    other: Vec<u8>,
}

impl Decoder {
    /// The last decoded chunk.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Chunks {
    /// The chunks of an array of this shape, of elements of this size.
    pub fn open(
        place: &Position,
        dataset: &Dataset,
        bytes: &Random,
        shape: &[usize],
        (size, encoding): (usize, Option<Encoding>),
        chunk: &[u64],
    ) -> Result<Self> {
        let damaged = || place.fault("contradicts itself; copy it again or save it anew");
        let width = shape.get(1).copied().unwrap_or(1);
        let side = |at: usize| match chunk.get(at) {
            Some(&side) => usize::try_from(side).ok().filter(|&side| side > 0).ok_or_else(damaged),
            None => Ok(1),
        };
        let sides = [side(0)?, side(1)?];
        let length = sides[0].checked_mul(sides[1]).and_then(|count| count.checked_mul(size));
        let length = length.filter(|_| chunk.len() == shape.len()).ok_or_else(damaged)?;
        let filters = guarded(place, || Ok(dataset.filter_pipeline()))?.into_iter().map(|filter| {
            Filter::new(filter.id, size).map_err(|name| {
                place.fault(format!(
                    "is compressed with {name}, which is not read; save it with compression='gzip'"
                ))
            })
        });
        let filters = filters.collect::<Result<Vec<_>>>()?;
        let mut stored = guarded(place, || dataset.chunks())?;
        stored.sort_by(|a, b| a.offset.cmp(&b.offset));
        let in_place = |chunk: &Chunk| {
            let side = |at: usize| chunk.offset.get(at).copied().unwrap_or(0);
            side(0) % sides[0] as u64 == 0
                && side(1) % sides[1] as u64 == 0
                && side(0) < shape[0] as u64
                && side(1) < width as u64
        };
        // Chunks beyond the end remain when an array is shrunk.
        stored.retain(in_place);
        stored.dedup_by(|a, b| a.offset == b.offset);
        let limit = filters.iter().map(|filter| filter.limit()).fold(1, u64::saturating_mul);
        let fits = |chunk: &Chunk| {
            let most = if limit == 0 {
                BELIEVED
            } else {
                chunk.storage_size.saturating_mul(limit).saturating_add(64)
            };
            length as u64 <= most && (!filters.is_empty() || chunk.storage_size >= length as u64)
        };
        let taken = stored.iter().fold(0, |sum: u64, chunk| sum.saturating_add(chunk.storage_size));
        let total = shape.iter().fold(size as u64, |total, &size| total.saturating_mul(size as u64));
        let held = (stored.len() as u64).saturating_mul(length as u64);
        if taken > bytes.length() || !stored.iter().all(fits) || total > held.saturating_add(BELIEVED) {
            return Err(place.fault("should be longer than the file can hold; copy it again or save it anew"));
        }
        let fill = fill_value(dataset, encoding, size);
        Ok(Self { shape: sides, across: width.div_ceil(sides[1]), length, filters, stored, fill })
    }

    /// Lines of a chunk.
    pub fn height(&self) -> usize {
        self.shape[0]
    }

    /// Elements of a line of a chunk.
    pub fn width(&self) -> usize {
        self.shape[1]
    }

    /// The chunks that contain a line.
    pub fn band(&self, line: usize) -> Range<usize> {
        let first = (line / self.height() * self.height()) as u64;
        let start = self.stored.partition_point(|chunk| chunk.offset[0] < first);
        let count = self.stored[start..].partition_point(|chunk| chunk.offset[0] == first);
        start..start + count
    }

    /// The first line of a chunk, and the first element of its lines.
    pub fn offset(&self, at: usize) -> [usize; 2] {
        let offset = &self.stored[at].offset;
        [offset[0] as usize, offset.get(1).copied().unwrap_or(0) as usize]
    }

    /// Fills lines with the fill value, unless all of their chunks were written.
    pub fn fill_holes<T>(&self, stored: usize, out: &mut [T], put: impl Fn(&[u8], &mut [T]), unit: usize) {
        if stored < self.across {
            out.chunks_exact_mut(unit).for_each(|out| put(&self.fill, out));
        }
    }

    /// Reads a chunk and undoes its filters.
    pub fn decode(&self, place: &Position, bytes: &Random, at: usize, decoder: &mut Decoder) -> Result<()> {
        let chunk = &self.stored[at];
        let damaged = || place.fault("has a chunk that is damaged; copy the file again or save it anew");
        let stored = if self.filters.is_empty() { self.length } else { chunk.storage_size as usize };
        decoder.bytes.resize(stored, 0);
        let read = bytes.at(chunk.address).read_exact(&mut decoder.bytes);
        read.map_err(|error| place.unreadable(error))?;
        // A sum that was added before compression comes out with it.
        let most = self.length + 4 * self.filters.len();
        for (at, filter) in self.filters.iter().enumerate().rev() {
            if at < 32 && chunk.filter_mask >> at & 1 == 1 {
                continue;
            }
            filter.undo(&decoder.bytes, &mut decoder.other, most).ok_or_else(damaged)?;
            std::mem::swap(&mut decoder.bytes, &mut decoder.other);
        }
        if decoder.bytes.len() != self.length {
            return Err(damaged());
        }
        Ok(())
    }
}

/// The bytes of a number that was never written, by default zero.
fn fill_value(dataset: &Dataset, encoding: Option<Encoding>, size: usize) -> Vec<u8> {
    macro_rules! bytes {
        ($type:ty, $big_endian:expr) => {
            caught(|| dataset.fill_value::<$type>().ok().flatten()).flatten().map(|value| {
                if $big_endian { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
            })
        };
    }
    let found = encoding.and_then(|Encoding { kind, big_endian }| match kind {
        NumberType::F32 => bytes!(f32, big_endian),
        NumberType::F64 => bytes!(f64, big_endian),
        NumberType::I8 => bytes!(i8, big_endian),
        NumberType::U8 => bytes!(u8, big_endian),
        NumberType::I16 => bytes!(i16, big_endian),
        NumberType::U16 => bytes!(u16, big_endian),
        NumberType::I32 => bytes!(i32, big_endian),
        NumberType::U32 => bytes!(u32, big_endian),
        NumberType::I64 => bytes!(i64, big_endian),
        NumberType::U64 => bytes!(u64, big_endian),
        NumberType::Bool | NumberType::F16 => None,
    });
    found.filter(|bytes| bytes.len() == size).unwrap_or_else(|| vec![0; size])
}
