//! The two types of values.

use std::ops::AddAssign;

use fast_float2::FastFloat;

use crate::number::Target;
use crate::{Cells, Csr};

/// `f32` or `f64`.
pub(crate) trait Real: Target + FastFloat + AddAssign + Send + Sync + 'static {
    /// Stands for a missing value.
    const MISSING: Self;

    /// The values of a dense table.
    fn dense(values: Vec<Self>) -> Cells;
    /// The values of a sparse table.
    fn sparse(csr: Csr<Self>) -> Cells;
    /// As `f64`.
    fn wide(self) -> f64;
    /// Whether it is missing.
    fn is_missing(self) -> bool;
}

macro_rules! real {
    ($type:ident, $dense:ident, $sparse:ident) => {
        impl Real for $type {
            const MISSING: Self = $type::NAN;

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
        }
    };
}
real!(f32, DenseF32, SparseF32);
real!(f64, DenseF64, SparseF64);
