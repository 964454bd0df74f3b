//! The two products that dominate the time of a sweep:
//!
//! * **project**, `r_j = Uᵀ x_j`: projects rows onto the basis;
//! * **gather**, `C += Σ_j x_j v_jᵀ`: accumulates the products of rows and their V.
//!
//! Rows are passed as slices, so that missing instances and permuted rows need no copy. Vector instructions are
//! selected at run time (AVX-512, AVX2, NEON or plain) by `pulp`, which keeps the code free of `unsafe`.
//!
//! Products run in the precision of the data, over at most a block of rows. Sums over blocks and all K × K or d × K
//! matrices are `f64`, as is V.

pub mod aligned;
pub mod dense;
pub mod gram;
pub(crate) mod scalar;
pub mod sparse;

pub use scalar::Scalar;
pub use scalar::is_finite;
pub use sparse::Csr;

/// Lanes in which rows of V are stored and updated: `v_jk` is at `k · stride + j`. Rows with the same presence pattern
/// fill a multiple of this number of lanes; unused lanes are zero.
pub const LANES: usize = 8;
