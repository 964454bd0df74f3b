//! Numbers as they are written in binary files.

use std::io::{self, Read};

use half::f16;

use crate::Precision;

/// The type of a number in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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
    pub kind: Kind,
    pub big_endian: bool,
}

/// What numbers are read into.
pub(crate) trait Target: Copy + Default {
    /// The nearest value of this type. An index that cannot be one becomes the largest value there is, which
    /// no matrix is large enough for, so that the check of its range finds it.
    fn nearest(value: f64) -> Self;
}

impl Target for f64 {
    fn nearest(value: f64) -> Self {
        value
    }
}

impl Target for f32 {
    fn nearest(value: f64) -> Self {
        value as Self
    }
}

impl Target for u32 {
    fn nearest(value: f64) -> Self {
        if value >= 0.0 { value as Self } else { Self::MAX }
    }
}

impl Target for usize {
    fn nearest(value: f64) -> Self {
        if value >= 0.0 { value as Self } else { Self::MAX }
    }
}

impl Kind {
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

impl Encoding {
    /// Appends `count` numbers to `out`, which has room for them.
    pub(crate) fn read<T: Target>(
        self,
        reader: &mut impl Read,
        count: usize,
        out: &mut Vec<T>,
    ) -> io::Result<()> {
        let mut buffer = [0; 1 << 14];
        let size = self.kind.size();
        let mut left = count;
        while left > 0 {
            let taken = left.min(buffer.len() / size);
            let bytes = &mut buffer[..taken * size];
            reader.read_exact(bytes)?;
            self.append(bytes, out);
            left -= taken;
        }
        Ok(())
    }

    pub(crate) fn append<T: Target>(self, bytes: &[u8], out: &mut Vec<T>) {
        macro_rules! append {
            ($type:ty, $to_f64:expr) => {{
                let numbers = bytes.as_chunks().0.iter();
                if self.big_endian {
                    out.extend(numbers.map(|&b| T::nearest($to_f64(<$type>::from_be_bytes(b)))));
                } else {
                    out.extend(numbers.map(|&b| T::nearest($to_f64(<$type>::from_le_bytes(b)))));
                }
            }};
        }
        match self.kind {
            Kind::Bool => append!(u8, |value| f64::from(u8::from(value != 0))),
            Kind::I8 => append!(i8, f64::from),
            Kind::U8 => append!(u8, f64::from),
            Kind::I16 => append!(i16, f64::from),
            Kind::U16 => append!(u16, f64::from),
            Kind::I32 => append!(i32, f64::from),
            Kind::U32 => append!(u32, f64::from),
            Kind::I64 => append!(i64, |value| value as f64),
            Kind::U64 => append!(u64, |value| value as f64),
            Kind::F16 => append!(f16, f64::from),
            Kind::F32 => append!(f32, f64::from),
            Kind::F64 => append!(f64, |value: f64| value),
        }
    }
}
