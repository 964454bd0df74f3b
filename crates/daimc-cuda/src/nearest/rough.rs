//! The search in half precision.

use daimc::{Result, Stop};

use super::{AT_ONCE, Compared, WAITING};
use crate::card::{Argument, Card, Memory};

/// Rows that a block searches for, others that it compares them with at a time, and features of a slab of either.
const QUERIES: usize = 256;
const OTHERS: usize = 64;
const DEPTH: usize = 64;

/// Features up to which the rows of a block stay in shared memory.
const NARROW: usize = 2 * DEPTH;

/// Rows in half precision, and what is known about them: see the kernel.
pub struct Halves {
    x: Memory<u16>,
    rows: usize,
    pub deep: usize,
    pub scale: f32,
    pub starts: Memory<f32>,
    pub losses: Memory<f32>,
    pub worst: Memory<f32>,
}

/// Bytes that it takes on a card.
pub fn bytes(card: &Card, rows: usize, width: usize) -> usize {
    rows.next_multiple_of(QUERIES) * (width.next_multiple_of(DEPTH) * 2 + 8) + waiting(card) * 8
}

fn waiting(card: &Card) -> usize {
    card.processors * AT_ONCE * QUERIES * WAITING
}

impl Halves {
    pub fn new(card: &Card, rows: &Compared) -> Result<Self> {
        let deep = rows.width.next_multiple_of(DEPTH);
        let padded = rows.rows.next_multiple_of(QUERIES);
        let halves = Self {
            x: card.room::<u16>(padded * deep)?,
            rows: rows.rows,
            deep,
            scale: scale(card.read(&rows.lengths)?.into_iter().fold(0.0, f32::max)),
            starts: card.room::<f32>(padded)?,
            losses: card.room::<f32>(rows.rows)?,
            worst: card.zeros::<f32>(1)?,
        };
        let kernel = card.kernel("nearest", "halved", 0)?;
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
        card.launch(&kernel, (padded / 8, 1, 1), (256, 1), &arguments)?;
        Ok(halves)
    }

    /// The lists of all rows.
    pub fn search(&self, card: &Card, lists: &Memory<u64>, stop: &Stop) -> Result<()> {
        let narrow = self.deep <= NARROW;
        let kernel = if narrow { "rough_narrow" } else { "rough_wide" };
        let kernel = card.kernel("nearest", kernel, shared(self.deep))?;
        let waiting = card.room::<u64>(waiting(card))?;
        let tiles = self.rows.div_ceil(OTHERS);
        let some = card.processors * AT_ONCE;
        for first in (0..self.rows).step_by(QUERIES * some) {
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
            let blocks = (self.rows - first).div_ceil(QUERIES).min(some);
            card.launch(&kernel, (blocks, 1, 1), (128, 1), &arguments)?;
            card.wait()?;
        }
        Ok(())
    }
}

/// Bytes of shared memory that a block needs.
fn shared(deep: usize) -> usize {
    let (own, theirs) = (QUERIES * DEPTH * 2, OTHERS * DEPTH * 2 + OTHERS * 4);
    QUERIES * 8 + if deep <= NARROW { deep / DEPTH * own + 3 * theirs } else { 2 * (own + theirs) }
}

/// A power of two that brings rows, the square of the longest of which is given, to where half precision is at its best.
fn scale(longest: f32) -> f32 {
    let longest = longest.sqrt();
    if longest.is_normal() { (14.0 - longest.log2().ceil()).clamp(-100.0, 100.0).exp2() } else { 1.0 }
}

/// Tiles from one to the next that is visited: about the golden section of all, so that they are far from each other, and without
/// a common divisor, so that all are visited.
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
    use crate::kernels::{LEAST_SHARED, constant};

    #[test]
    fn blocks_find_room_on_every_card() {
        for deep in [64, 128, 192, 1024] {
            assert!(shared(deep) <= LEAST_SHARED, "{deep}");
        }
    }

    #[test]
    fn the_kernel_has_the_same_sizes() {
        let source = include_str!("../../kernels/rough.cuh");
        for (name, value) in [("QUERIES", QUERIES), ("OTHERS", OTHERS), ("DEPTH", DEPTH), ("THREADS", 128)] {
            assert_eq!(constant(source, name), value as f64, "{name}");
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
