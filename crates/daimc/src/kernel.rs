//! The two products in which a sweep spends its time, for rows that lie anywhere in memory:
//!
//! * **project**, `r_j = Uᵀ x_j`: what the basis sees in a row;
//! * **gather**, `C += Σ_j x_j v_jᵀ`: what the rows tell the basis.
//!
//! Rows come as slices, so that missing instances and shuffled files need no copy. Vector instructions are
//! chosen at run time (AVX-512, AVX2, NEON or plain) through `pulp`, which keeps the code free of `unsafe`.

pub mod aligned;
pub(crate) mod dense;
pub(crate) mod gram;
pub(crate) mod scalar;
pub mod sparse;

pub use scalar::Scalar;
pub(crate) use scalar::is_finite;
pub use sparse::Csr;

/// Lanes in which rows of V are stored and updated: `v_jk` is at `k · stride + j`. Rows with the same presence pattern fill a
/// multiple of this many lanes; lanes without a row are zero.
pub(crate) const LANES: usize = 8;
