//! V in GPU memory.

use crate::card::Memory;

/// V, instances × columns, row by row in GPU memory.
pub struct Latent<'a> {
    pub v: &'a Memory<f64>,
    pub instances: usize,
    pub columns: usize,
}
