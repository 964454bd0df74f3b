//! How instances are cut into blocks and leaves. This fixes the order in which sums are added, and so the bits of the result.
//!
//! A fit gives the same bits for any number of threads, shards and tile sizes. Blocks depend on the number of instances
//! only. Threads take blocks in order, and [`ordered`](crate::parallel::ordered) merges their sums in that order, with
//! at most about two accumulators per thread, into the sum of a *leaf* of some thousands of instances; leaves are added
//! along a binary tree ([`Forest`](crate::forest::Forest)). A shard of whole leaves contributes the same numbers on any
//! machine. Within a block, instances of one presence pattern are processed in groups of 32 and summed lane by lane
//! until the block ends (see [`sweep`](crate::sweep)).

use std::ops::Range;

/// Instances per block: a function of the number of instances only, not of the number of threads, because sums are
/// added block by block and their bits depend on the block boundaries.
pub fn block_size(instances: usize) -> usize {
    instances.div_ceil(32).clamp(256, 1024)
}

/// Minimum instances of a leaf.
const LEAF: usize = 16_384;

/// Maximum number of leaves.
const MOST_LEAVES: usize = 128;

/// A contiguous part of the instances, `first..first + instances` of `total`. Sums are added block after block within a
/// leaf, which has a power of two of blocks, and then along a binary tree over the leaves. Parts that consist of whole
/// leaves give the same bits as the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    first: usize,
    instances: usize,
    total: usize,
}

impl Blocks {
    /// All instances.
    pub fn all(instances: usize) -> Self {
        Self { first: 0, instances, total: instances }
    }

    /// The given range of the instances; `None` unless it consists of whole leaves.
    pub fn some(range: Range<usize>, total: usize) -> Option<Self> {
        let blocks = Self { first: range.start, instances: range.len(), total };
        let leaf = blocks.leaf();
        let aligned =
            range.start.is_multiple_of(leaf) && (range.end.is_multiple_of(leaf) || range.end == total);
        (aligned && range.start < range.end && range.end <= total).then_some(blocks)
    }

    /// At most `parts` ranges of whole leaves, of about equal size.
    pub fn split(total: usize, parts: usize) -> Vec<Range<usize>> {
        let (leaf, leaves) = (Self::all(total).leaf(), Self::all(total).leaves());
        let parts = parts.clamp(1, leaves.max(1));
        let edge = |part: usize| (leaves * part / parts * leaf).min(total);
        (0..parts).map(|part| edge(part)..edge(part + 1)).collect()
    }

    /// The first instance of the part.
    pub fn first(&self) -> usize {
        self.first
    }

    /// The total number of instances.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The number of instances of the part.
    pub fn instances(&self) -> usize {
        self.instances
    }

    /// Instances per block.
    pub fn size(&self) -> usize {
        block_size(self.total)
    }

    /// The ranges of the blocks, relative to the first instance of the part.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + Send + use<> {
        let (size, instances) = (self.size(), self.instances);
        (0..instances).step_by(size).map(move |start| start..(start + size).min(instances))
    }

    /// Instances per leaf.
    fn leaf(&self) -> usize {
        let size = self.size();
        let blocks = self.total.div_ceil(size);
        size * LEAF.div_ceil(size).max(blocks.div_ceil(MOST_LEAVES)).next_power_of_two()
    }

    /// The ranges of the leaves of the part, relative to the first of all instances.
    pub fn leaf_ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (leaf, end) = (self.leaf(), self.first + self.instances);
        (self.first..end).step_by(leaf).map(move |start| start..(start + leaf).min(end))
    }

    /// The number of the first leaf of the part.
    pub fn first_leaf(&self) -> usize {
        self.first / self.leaf()
    }

    /// The total number of leaves.
    pub fn leaves(&self) -> usize {
        self.total.div_ceil(self.leaf())
    }

    /// The leaf of the block that starts at an instance (relative to the part), if it is the last block of the leaf.
    pub fn ends_leaf(&self, start: usize) -> Option<usize> {
        let end = (start + self.size()).min(self.instances);
        let last = end == self.instances || (self.first + end).is_multiple_of(self.leaf());
        last.then(|| (self.first + start) / self.leaf())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_leaves_and_cover_everything() {
        for total in [1, 255, 4096, 5000, 20_000, 32_769, 1_000_000] {
            let all = Blocks::all(total);
            assert!((1..=MOST_LEAVES).contains(&all.leaves()), "{total}");
            for parts in [1, 2, 3, 5, 1000] {
                let split = Blocks::split(total, parts);
                assert_eq!((split[0].start, split.last().unwrap().end), (0, total));
                assert!(split.windows(2).all(|two| two[0].end == two[1].start));
                let mut leaves = Vec::new();
                for range in split {
                    let own = Blocks::some(range.clone(), total).unwrap();
                    assert_eq!(own.size(), all.size());
                    leaves.extend(own.ranges().filter_map(|block| own.ends_leaf(block.start)));
                }
                assert_eq!(leaves, (0..all.leaves()).collect::<Vec<_>>(), "{total} in {parts}");
            }
        }
        assert!(Blocks::some(1..16_384, 100_000).is_none() && Blocks::some(0..0, 100).is_none());
    }
}
