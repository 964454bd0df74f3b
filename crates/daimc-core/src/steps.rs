//! The steps of one iteration, each with its equation. Rows are instances: the paper's X is our Xᵀ.

pub mod alignment;
pub mod basis;
pub mod latent;
pub mod normalise;
pub mod objective;
