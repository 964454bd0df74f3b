//! The rows of a [`daimc`] fit on an NVIDIA graphics card.

use std::sync::Arc;

use daimc::accelerator::Accelerator;

/// How products of single-precision rows are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// As exactly as single precision allows.
    #[default]
    Single,
    /// Of numbers that are rounded to 11 bits, which tensor cores multiply fastest (TF32).
    Tf32,
}

/// Opens a card, by its number from 0.
///
/// # Errors
/// A sentence that says what is missing.
pub fn open(_card: usize, _precision: Precision) -> Result<Arc<dyn Accelerator>, String> {
    Err("not yet".into())
}
