//! Nearest neighbours, their graph and its layout: a layer of the crate [`daimc`](https://docs.rs/daimc).
//!
//! [`neighbours`] finds the nearest neighbours of all instances in each view and fuses them into one graph,
//! [`layout`] draws it in the plane. Applications use the crate `daimc`.
//!
//! Functions that pass over rows return the error of the source, or that of [`Stop`](daimc_core::Stop) after a cancellation. Only other
//! errors are documented where they occur; indices out of bounds panic.
#![allow(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod layout;
pub mod neighbours;
mod random;

pub use neighbours::References;
