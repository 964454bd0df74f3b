//! Numbers in binary files.

use std::io::{self, Read};

use bytemuck::Pod;
use half::f16;
use rayon::prelude::*;

use crate::{Position, Precision, Result};

/// The type of a number in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberType {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

/// The type and byte order of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding {
    pub kind: NumberType,
    pub big_endian: bool,
}

/// A type that numbers are converted to.
pub(crate) trait Target: Copy + Default + Send + Sync + Pod {
    /// The type of numbers in files with the same bits, except for byte order.
    const KIND: Option<NumberType>;

    /// The nearest value of this type. An invalid index becomes the largest value, which every check of a range refuses.
    fn nearest(value: f64) -> Self;
}

macro_rules! target {
    ($type:ty, $kind:expr, $nearest:expr) => {
        impl Target for $type {
            const KIND: Option<NumberType> = $kind;

            fn nearest(value: f64) -> Self {
                $nearest(value)
            }
        }
    };
}
target!(f64, Some(NumberType::F64), |value| value);
target!(f32, Some(NumberType::F32), |value| value as Self);
target!(u32, Some(NumberType::U32), |value| if value >= 0.0 { value as Self } else { Self::MAX });
target!(usize, None, |value| if value >= 0.0 { value as Self } else { Self::MAX });

impl NumberType {
    /// The integer of a size in bytes; `None` for other sizes.
    pub(crate) fn integer(size: usize, signed: bool) -> Option<Self> {
        Some(match (size, signed) {
            (1, true) => Self::I8,
            (1, false) => Self::U8,
            (2, true) => Self::I16,
            (2, false) => Self::U16,
            (4, true) => Self::I32,
            (4, false) => Self::U32,
            (8, true) => Self::I64,
            (8, false) => Self::U64,
            _ => return None,
        })
    }

    /// The size in bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The narrowest type for measured values: integers are counts and need 64 bits.
    pub(crate) fn precision(self) -> Precision {
        if matches!(self, Self::F16 | Self::F32) { Precision::F32 } else { Precision::F64 }
    }
}

/// Bytes that are read at a time: memory grows with what was read, not with what a header claims.
const PIECE: usize = 1 << 23;

/// Numbers that are in memory at a time, of an array on disk.
const VISITED: usize = 1 << 16;

/// Numbers that a thread converts at a time.
const PART: usize = 1 << 15;

impl Encoding {
    /// Appends `count` numbers to `out`, which has the capacity for them.
    pub(crate) fn read<T: Target>(
        self,
        reader: &mut impl Read,
        count: usize,
        out: &mut Vec<T>,
    ) -> io::Result<()> {
        let mut left = count;
        while left > 0 {
            let taken = left.min(PIECE / self.kind.size());
            let start = out.len();
            out.resize(start + taken, T::default());
            self.fill(reader, &mut out[start..])?;
            left -= taken;
        }
        Ok(())
    }

    /// Reads `count` numbers in pieces, and calls `visit` with each.
    pub(crate) fn pieces<T: Target>(
        self,
        place: &Position,
        reader: &mut impl Read,
        count: usize,
        mut visit: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        let mut numbers = Vec::new();
        for at in (0..count).step_by(VISITED) {
            numbers.clear();
            let read = self.read(reader, VISITED.min(count - at), &mut numbers);
            read.map_err(|error| place.unreadable(error))?;
            visit(&numbers)?;
        }
        Ok(())
    }

    /// Fills `out` with numbers.
    pub(crate) fn fill<T: Target>(self, reader: &mut impl Read, out: &mut [T]) -> io::Result<()> {
        if T::KIND == Some(self.kind) && self.big_endian == cfg!(target_endian = "big") {
            return reader.read_exact(bytemuck::cast_slice_mut(out));
        }
        let size = self.kind.size();
        let mut buffer = vec![0; (out.len().saturating_mul(size)).min(PIECE)];
        for out in out.chunks_mut(PIECE / size) {
            let bytes = &mut buffer[..out.len() * size];
            reader.read_exact(bytes)?;
            let parts = out.par_chunks_mut(PART).zip(bytes.par_chunks(PART * size));
            parts.for_each(|(out, bytes)| self.convert(bytes, out));
        }
        Ok(())
    }

    /// Appends the numbers of some bytes.
    pub(crate) fn append<T: Target>(self, bytes: &[u8], out: &mut Vec<T>) {
        let before = out.len();
        out.resize(before + bytes.len() / self.kind.size(), T::default());
        self.convert(bytes, &mut out[before..]);
    }

    /// Converts bytes to numbers.
    pub(crate) fn convert<T: Target>(self, bytes: &[u8], out: &mut [T]) {
        if T::KIND == Some(self.kind) && self.big_endian == cfg!(target_endian = "big") {
            let out: &mut [u8] = bytemuck::cast_slice_mut(out);
            let count = out.len().min(bytes.len());
            out[..count].copy_from_slice(&bytes[..count]);
            return;
        }
        macro_rules! convert {
            ($type:ty, $to_f64:expr) => {{
                let numbers = out.iter_mut().zip(bytes.as_chunks().0);
                if self.big_endian {
                    numbers.for_each(|(out, &b)| *out = T::nearest($to_f64(<$type>::from_be_bytes(b))));
                } else {
                    numbers.for_each(|(out, &b)| *out = T::nearest($to_f64(<$type>::from_le_bytes(b))));
                }
            }};
        }
        match self.kind {
            NumberType::Bool => convert!(u8, |value| f64::from(u8::from(value != 0))),
            NumberType::I8 => convert!(i8, f64::from),
            NumberType::U8 => convert!(u8, f64::from),
            NumberType::I16 => convert!(i16, f64::from),
            NumberType::U16 => convert!(u16, f64::from),
            NumberType::I32 => convert!(i32, f64::from),
            NumberType::U32 => convert!(u32, f64::from),
            NumberType::I64 => convert!(i64, |value| value as f64),
            NumberType::U64 => convert!(u64, |value| value as f64),
            NumberType::F16 => convert!(f16, f64::from),
            NumberType::F32 => convert!(f32, f64::from),
            NumberType::F64 => convert!(f64, |value: f64| value),
        }
    }
}
