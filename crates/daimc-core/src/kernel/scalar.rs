//! `f32` and `f64` behind one trait, with the vector registers of each.

use std::fmt::{Debug, Display};
use std::ops::{AddAssign, Mul};

use pulp::Simd;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// The element type of data: `f32` or `f64`.
pub trait Scalar:
    sealed::Sealed
    + Lanes
    + Copy
    + Default
    + Debug
    + Display
    + PartialOrd
    + AddAssign
    + Mul<Output = Self>
    + Send
    + Sync
    + 'static
{
    /// Machine epsilon, as `f64`.
    const EPSILON: f64;

    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;

    /// The same value in double precision.
    fn to_f64(self) -> f64;
}

/// The vector operations of a [`Scalar`]; `S` is the instruction set.
pub trait Lanes: Sized {
    /// A register of values.
    type Register<S: Simd>: Copy;

    /// How many values fit into a register.
    fn lanes<S: Simd>() -> usize;

    /// A register that holds `value` in every lane.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Register<S>;

    /// `a · b + c`, fused if the CPU supports it.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Register<S>,
        b: Self::Register<S>,
        c: Self::Register<S>,
    ) -> Self::Register<S>;

    /// The sum of the lanes.
    fn sum<S: Simd>(simd: S, a: Self::Register<S>) -> Self;

    /// The slice as whole registers and a remainder.
    fn split<S: Simd>(slice: &[Self]) -> (&[Self::Register<S>], &[Self]);

    /// The slice as whole registers and a remainder, mutable.
    fn split_mut<S: Simd>(slice: &mut [Self]) -> (&mut [Self::Register<S>], &mut [Self]);

    /// Loads a slice shorter than a register; the other lanes are zero.
    fn load_part<S: Simd>(simd: S, slice: &[Self]) -> Self::Register<S>;

    /// Stores the first lanes into a slice shorter than a register.
    fn store_part<S: Simd>(simd: S, slice: &mut [Self], value: Self::Register<S>);
}

macro_rules! scalar {
    ($type:ty, $register:ident, $lanes:ident, $splat:ident, $mul_add:ident, $sum:ident, $split:ident,
     $split_mut:ident, $load:ident, $store:ident) => {
        impl Lanes for $type {
            type Register<S: Simd> = S::$register;

            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$lanes
            }

            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$register {
                simd.$splat(value)
            }

            #[inline(always)]
            fn mul_add<S: Simd>(simd: S, a: S::$register, b: S::$register, c: S::$register) -> S::$register {
                simd.$mul_add(a, b, c)
            }

            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: S::$register) -> Self {
                simd.$sum(a)
            }

            #[inline(always)]
            fn split<S: Simd>(slice: &[Self]) -> (&[S::$register], &[Self]) {
                S::$split(slice)
            }

            #[inline(always)]
            fn split_mut<S: Simd>(slice: &mut [Self]) -> (&mut [S::$register], &mut [Self]) {
                S::$split_mut(slice)
            }

            #[inline(always)]
            fn load_part<S: Simd>(simd: S, slice: &[Self]) -> S::$register {
                simd.$load(slice)
            }

            #[inline(always)]
            fn store_part<S: Simd>(simd: S, slice: &mut [Self], value: S::$register) {
                simd.$store(slice, value);
            }
        }
    };
}

scalar!(
    f32,
    f32s,
    F32_LANES,
    splat_f32s,
    mul_add_e_f32s,
    reduce_sum_f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    partial_load_f32s,
    partial_store_f32s
);
scalar!(
    f64,
    f64s,
    F64_LANES,
    splat_f64s,
    mul_add_e_f64s,
    reduce_sum_f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    partial_load_f64s,
    partial_store_f64s
);

impl Scalar for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Scalar for f64 {
    const EPSILON: f64 = f64::EPSILON;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
}

/// Whether every value of a row is finite.
#[inline]
pub fn is_finite<T: Scalar>(values: &[T]) -> bool {
    // A product with zero is zero unless the value is NaN or infinite. The sums, lane by lane, can be vectorised.
    let zero = T::default();
    let mut sums = [zero; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += *value * zero;
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += *value * zero;
    }
    sums == [zero; 16]
}
