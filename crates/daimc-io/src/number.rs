//! Numbers as they are written in binary files.

use std::io::{self, Read};

use bytemuck::Pod;
use half::f16;
use rayon::prelude::*;

use crate::Precision;

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

/// The type of a number and the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding {
    pub kind: NumberType,
    pub big_endian: bool,
}

/// What numbers are read into.
pub(crate) trait Target: Copy + Default + Send + Sync + Pod {
    /// The numbers of files that have the same bits, but for their order.
    const KIND: Option<NumberType>;

    /// The nearest value of this type. An index that cannot be one becomes the largest value there is, which
    /// no matrix is large enough for, so that the check of its range finds it.
    fn nearest(value: f64) -> Self;
}

impl Target for f64 {
    const KIND: Option<NumberType> = Some(NumberType::F64);

    fn nearest(value: f64) -> Self {
        value
    }
}

impl Target for f32 {
    const KIND: Option<NumberType> = Some(NumberType::F32);

    fn nearest(value: f64) -> Self {
        value as Self
    }
}

impl Target for u32 {
    const KIND: Option<NumberType> = Some(NumberType::U32);

    fn nearest(value: f64) -> Self {
        if value >= 0.0 { value as Self } else { Self::MAX }
    }
}

impl Target for usize {
    const KIND: Option<NumberType> = None;

    fn nearest(value: f64) -> Self {
        if value >= 0.0 { value as Self } else { Self::MAX }
    }
}

impl NumberType {
    /// How many bytes a number takes.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The narrowest type that holds what was measured: whole numbers are counts and get 64 bits.
    pub(crate) fn precision(self) -> Precision {
        if matches!(self, Self::F16 | Self::F32) { Precision::F32 } else { Precision::F64 }
    }
}

/// Bytes that are read at a time, so that what was not read yet takes no memory.
const PIECE: usize = 1 << 23;

/// Numbers that a thread converts at a time.
const PART: usize = 1 << 15;

impl Encoding {
    /// Appends `count` numbers to `out`, which has room for them.
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

    /// Reads as many numbers as there is room for.
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

    /// Appends as many numbers as the bytes are.
    pub(crate) fn append<T: Target>(self, bytes: &[u8], out: &mut Vec<T>) {
        let before = out.len();
        out.resize(before + bytes.len() / self.kind.size(), T::default());
        self.convert(bytes, &mut out[before..]);
    }

    /// Turns bytes into as many numbers as there are.
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
