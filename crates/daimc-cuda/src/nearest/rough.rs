//! The search in half precision.

use daimc::{Result, Stop};

use super::{CONCURRENT, CentredRows, WAITING};
use crate::gpu::{Argument, Gpu, Memory};

/// Rows per block, other rows with which it compares them at a time, and features of a slab of either.
const QUERIES: usize = 256;
const OTHERS: usize = 64;
const DEPTH: usize = 64;

/// Maximum number of features with which the rows of a block stay in shared memory.
const NARROW: usize = 2 * DEPTH;

/// Rows in half precision, with the values that `halved` in `kernels/nearest.cu` computes.
pub struct HalfRows {
    x: Memory<u16>,
    rows: usize,
    pub deep: usize,
    pub scale: f32,
    pub starts: Memory<f32>,
    pub losses: Memory<f32>,
    pub worst: Memory<f32>,
}

/// Bytes of GPU memory.
pub fn bytes(gpu: &Gpu, rows: usize, width: usize) -> usize {
    rows.next_multiple_of(QUERIES) * (width.next_multiple_of(DEPTH) * 2 + 8) + waiting(gpu) * 8
}

fn waiting(gpu: &Gpu) -> usize {
    gpu.processors * CONCURRENT * QUERIES * WAITING
}

impl HalfRows {
    pub fn new(gpu: &Gpu, rows: &CentredRows) -> Result<Self> {
        let deep = rows.width.next_multiple_of(DEPTH);
        let padded = rows.rows.next_multiple_of(QUERIES);
        let halves = Self {
            x: gpu.allocate::<u16>(padded * deep)?,
            rows: rows.rows,
            deep,
            scale: scale(gpu.read(&rows.lengths)?.into_iter().fold(0.0, f32::max)),
            starts: gpu.allocate::<f32>(padded)?,
            losses: gpu.allocate::<f32>(rows.rows)?,
            worst: gpu.zeros::<f32>(1)?,
        };
        let kernel = gpu.kernel("nearest", "halved", 0)?;
        let arguments = [
            rows.x.at(),
            Argument::long(rows.width),
            Argument::long(rows.rows),
            Argument::Float(halves.scale),
            Argument::long(deep),
            halves.x.at(),
            halves.starts.at(),
            halves.losses.at(),
            halves.worst.at(),
        ];
        gpu.launch(&kernel, (padded / 8, 1, 1), (256, 1), &arguments)?;
        Ok(halves)
    }

    /// Searches for the lists of all rows.
    pub fn search(&self, gpu: &Gpu, lists: &Memory<u64>, stop: &Stop) -> Result<()> {
        let narrow = self.deep <= NARROW;
        let kernel = if narrow { "rough_narrow" } else { "rough_wide" };
        let kernel = gpu.kernel("nearest", kernel, shared(self.deep))?;
        let waiting = gpu.allocate::<u64>(waiting(gpu))?;
        let tiles = self.rows.div_ceil(OTHERS);
        let batch = gpu.processors * CONCURRENT;
        for first in (0..self.rows).step_by(QUERIES * batch) {
            stop.check()?;
            let arguments = [
                self.x.at(),
                Argument::long(self.deep),
                self.starts.at(),
                Argument::long(self.rows),
                Argument::long(tiles),
                Argument::long(stride(tiles)),
                Argument::long(first),
                waiting.at(),
                lists.at(),
            ];
            let blocks = (self.rows - first).div_ceil(QUERIES).min(batch);
            gpu.launch(&kernel, (blocks, 1, 1), (128, 1), &arguments)?;
            gpu.wait()?;
        }
        Ok(())
    }
}

/// Bytes of shared memory per block.
fn shared(deep: usize) -> usize {
    let (own, theirs) = (QUERIES * DEPTH * 2, OTHERS * DEPTH * 2 + OTHERS * 4);
    QUERIES * 8 + if deep <= NARROW { deep / DEPTH * own + 3 * theirs } else { 2 * (own + theirs) }
}

/// A power of two by which rows fit the range of half precision best; `longest` is the square of the greatest length.
fn scale(longest: f32) -> f32 {
    let longest = longest.sqrt();
    if longest.is_normal() { (14.0 - longest.log2().ceil()).clamp(-100.0, 100.0).exp2() } else { 1.0 }
}

/// Distance between successively visited tiles: about the golden section of their number, so that these are far apart, and coprime
/// to it, so that all are visited.
fn stride(tiles: usize) -> usize {
    fn divisor(a: usize, b: usize) -> usize {
        if b == 0 { a } else { divisor(b, a % b) }
    }
    let near = tiles * 618 / 1000;
    (near..=tiles).find(|&stride| divisor(stride, tiles) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{MIN_SHARED, constant};

    #[test]
    fn shared_memory_suffices_on_every_gpu() {
        for deep in [64, 128, 192, 1024] {
            assert!(shared(deep) <= MIN_SHARED, "{deep}");
        }
    }

    #[test]
    fn the_kernel_has_the_same_sizes() {
        let source = include_str!("../../kernels/rough.cuh");
        for (name, value) in [("QUERIES", QUERIES), ("OTHERS", OTHERS), ("DEPTH", DEPTH), ("THREADS", 128)] {
            assert_eq!(constant::<usize>(source, name), value, "{name}");
        }
    }

    #[test]
    fn all_tiles_are_visited() {
        for tiles in 1..300 {
            let stride = stride(tiles);
            let mut seen = vec![false; tiles];
            (0..tiles).for_each(|i| seen[i * stride % tiles] = true);
            assert!(seen.iter().all(|&seen| seen) && stride < tiles, "{tiles}, {stride}");
        }
    }

    #[test]
    fn scaled_rows_fit_half_precision() {
        for length in [0.0, 1e-30, 1.0, 3.9, 4.0, 1e30, f32::MAX, f32::INFINITY] {
            let scale = scale(length);
            assert!(scale.is_normal() && scale.log2().fract() == 0.0, "{length}: {scale}");
            assert!(!length.is_normal() || (8192.0..=16384.0).contains(&(scale * length.sqrt())), "{length}");
        }
    }
}
