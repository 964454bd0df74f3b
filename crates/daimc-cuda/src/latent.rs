//! V in GPU memory.

use crate::gpu::Memory;

/// V, instances × columns, row by row in GPU memory.
pub struct Latent<'a> {
    pub v: &'a Memory<f64>,
    pub instances: usize,
    pub columns: usize,
}
