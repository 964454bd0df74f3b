//! The types of values.

use std::ops::AddAssign;

use daimc_core::source::Buffer;
use fast_float2::FastFloat;

use crate::number::{Encoding, NumberType, Target};
use crate::{Cells, Csr, Precision};

/// `f32` or `f64`.
pub(crate) trait Real: Target + FastFloat + AddAssign + Send + Sync + 'static {
    /// A missing value.
    const MISSING: Self;

    /// Its type.
    const PRECISION: Precision;

    /// Its little-endian encoding.
    const ENCODING: Encoding;

    /// The values of a dense table.
    fn dense(values: Vec<Self>) -> Cells;
    /// The values of a sparse table.
    fn sparse(csr: Csr<Self>) -> Cells;
    /// As `f64`.
    fn wide(self) -> f64;
    /// Whether it is missing.
    fn is_missing(self) -> bool;
    /// Appends its little-endian bytes.
    fn append_le(self, bytes: &mut Vec<u8>);
    /// The value of little-endian bytes.
    fn from_le(bytes: &[u8]) -> Self;
    /// The values in a buffer.
    fn of(buffer: &Buffer) -> &[Self];
}

macro_rules! real {
    ($type:ident, $precision:ident, $dense:ident, $sparse:ident) => {
        impl Real for $type {
            const MISSING: Self = $type::NAN;
            const PRECISION: Precision = Precision::$precision;
            const ENCODING: Encoding = Encoding { kind: NumberType::$precision, big_endian: false };

            fn dense(values: Vec<Self>) -> Cells {
                Cells::$dense(values)
            }

            fn sparse(csr: Csr<Self>) -> Cells {
                Cells::$sparse(csr)
            }

            fn wide(self) -> f64 {
                self.into()
            }

            fn is_missing(self) -> bool {
                self.is_nan()
            }

            fn append_le(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn from_le(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(Self::MISSING, |bytes| Self::from_le_bytes(*bytes))
            }

            fn of(buffer: &Buffer) -> &[Self] {
                &buffer.$type
            }
        }
    };
}
real!(f32, F32, DenseF32, SparseF32);
real!(f64, F64, DenseF64, SparseF64);
