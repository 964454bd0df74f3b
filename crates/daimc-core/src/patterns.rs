//! Presence patterns: which instances are present in the same set of views.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::source::Source;

/// The presence patterns of the instances, and the order in which a block processes its instances, by pattern.
///
/// Instances that share a pattern share a Gram matrix in the V step, so that they are updated together, one per vector lane.
#[derive(Debug)]
pub(crate) struct Patterns {
    /// The pattern of each instance; empty if there is only one.
    ids: Vec<u32>,
    /// The views of each pattern.
    views: Vec<Vec<usize>>,
    /// The number of instances of each pattern.
    counts: Vec<usize>,
    /// Within each block, the instances sorted by pattern, counted from the start of the block; empty if there
    /// is only one pattern.
    order: Vec<u16>,
}

impl Patterns {
    /// Finds the patterns; `block` is the number of instances per block. The numbers of patterns depend on their views
    /// and not on their order of appearance, so that the order within a block does not depend on other blocks.
    pub fn new(source: &dyn Source, block: usize) -> Self {
        let schema = source.schema();
        let (instances, views) = (schema.instances(), schema.len());
        if schema.views().all(|view| view.is_complete()) {
            let views = vec![(0..views).collect()];
            return Self { ids: Vec::new(), views, counts: vec![instances], order: Vec::new() };
        }
        let key_of = |i: usize, key: &mut Vec<u64>| {
            key.clear();
            key.resize(views.div_ceil(64), 0);
            for v in (0..views).filter(|&v| schema.view(v).shows(i)) {
                key[v / 64] |= 1 << (v % 64);
            }
        };
        let starts = (0..instances.div_ceil(block)).into_par_iter().map(|number| number * block);
        let distinct = |start: usize| {
            let (mut seen, mut key) = (BTreeSet::new(), Vec::new());
            for i in start..(start + block).min(instances) {
                key_of(i, &mut key);
                if !seen.contains(&key) {
                    seen.insert(key.clone());
                }
            }
            seen
        };
        let keys = starts.map(distinct).reduce(BTreeSet::new, |mut all, more| {
            all.extend(more);
            all
        });
        let keys: Vec<Vec<u64>> = keys.into_iter().collect();
        let shown = keys.iter().map(|key| (0..views).filter(|v| key[v / 64] >> (v % 64) & 1 == 1).collect());
        let shown: Vec<Vec<usize>> = shown.collect();
        if shown.len() == 1 {
            return Self { ids: Vec::new(), views: shown, counts: vec![instances], order: Vec::new() };
        }
        let (mut ids, mut order) = (vec![0; instances], vec![0; instances]);
        let parts = ids.par_chunks_mut(block).zip(order.par_chunks_mut(block)).enumerate();
        parts.for_each(|(number, (ids, order))| {
            let mut key = Vec::new();
            for (i, id) in ids.iter_mut().enumerate() {
                key_of(number * block + i, &mut key);
                *id = keys.binary_search(&key).map_or(0, crate::index::index);
            }
            order.iter_mut().zip(0..).for_each(|(own, i)| *own = i);
            order.sort_by_key(|&i: &u16| ids[i as usize]);
        });
        let mut counts = vec![0; keys.len()];
        ids.iter().for_each(|id| counts[*id as usize] += 1);
        Self { ids, views: shown, counts, order }
    }

    /// The pattern of an instance.
    #[inline]
    pub fn of(&self, instance: usize) -> usize {
        if self.ids.is_empty() { 0 } else { self.ids[instance] as usize }
    }

    /// The `i`-th instance of the block that begins at `start`, in processing order.
    #[inline]
    pub fn nth(&self, start: usize, i: usize) -> usize {
        if self.order.is_empty() { start + i } else { start + self.order[start + i] as usize }
    }

    /// The views of a pattern.
    pub fn views(&self, pattern: usize) -> &[usize] {
        &self.views[pattern]
    }

    /// The number of instances of a pattern.
    pub fn count(&self, pattern: usize) -> usize {
        self.counts[pattern]
    }

    /// The number of patterns.
    pub fn len(&self) -> usize {
        self.views.len()
    }
}
