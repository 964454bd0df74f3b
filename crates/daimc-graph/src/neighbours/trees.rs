//! Random trees, each of whose leaves contains points that are likely close to each other.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::join::PADDED;
use super::rows::Rows;
use daimc_core::index::index;

/// The maximum number of points in a leaf.
const LEAF: usize = 64;

/// The number of points that one thread processes at a time.
const TAKEN: usize = 64;

fn depth(points: usize) -> u32 {
    points.div_ceil(LEAF).next_power_of_two().trailing_zeros()
}

pub(super) fn leaf_size(points: usize) -> usize {
    points.div_ceil(1 << depth(points))
}

/// The points in the order of the leaves of a random tree: each level halves the points of a node at the median of their
/// products with a direction, the difference of two points drawn for that level.
pub(super) fn leaves(rows: &Rows<'_>, seed: u64, tree: usize) -> Vec<u32> {
    let n = rows.len();
    let levels = depth(n) as usize;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(tree as u64);
    let directions: Vec<Vec<f32>> = (0..levels)
        .map(|_| {
            let pair = [rng.random_range(0..n), rng.random_range(0..n)].map(index);
            let mut both = Vec::new();
            rows.gather(pair, &mut both);
            let (a, b) = both.split_at(rows.width());
            a.iter().zip(b).map(|(a, b)| a - b).collect()
        })
        .collect();
    let mut coordinates = vec![0.0; n * levels];
    let parts = coordinates.par_chunks_mut(levels.max(1) * TAKEN).enumerate();
    parts.for_each_init(Vec::new, |near, (part, own)| {
        let first = part * TAKEN;
        rows.gather(index(first)..index((first + TAKEN).min(n)), near);
        for (own, row) in own.chunks_exact_mut(levels.max(1)).zip(near.chunks_exact(rows.width())) {
            for (own, direction) in own.iter_mut().zip(&directions) {
                let mut sums = [0.0; PADDED];
                let pairs = row.as_chunks::<PADDED>().0.iter().zip(direction.as_chunks::<PADDED>().0);
                pairs.for_each(|(x, u)| (0..PADDED).for_each(|k| sums[k] += x[k] * u[k]));
                *own = sums.iter().sum();
            }
        }
    });
    let mut order: Vec<u32> = (0..index(n)).collect();
    split(&mut order, leaf_size(n), 0, &coordinates, levels);
    order
}

/// Splits at multiples of the size of a leaf, so that the leaves are the chunks of that size.
fn split(order: &mut [u32], leaf: usize, level: usize, coordinates: &[f32], levels: usize) {
    let leaves = order.len().div_ceil(leaf);
    if leaves < 2 || level == levels {
        return;
    }
    let middle = leaves / 2 * leaf;
    let key = |i: u32| (coordinates[i as usize * levels + level], i);
    let _ = order.select_nth_unstable_by(middle, |&a, &b| {
        let (a, b) = (key(a), key(b));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    });
    let (low, high) = order.split_at_mut(middle);
    rayon::join(
        || split(low, leaf, level + 1, coordinates, levels),
        || split(high, leaf, level + 1, coordinates, levels),
    );
}
