//! Stratified samples of the instances.

use rayon::prelude::*;

/// The number of instances per parallel task, which is many more than there are clusters.
const BLOCK: usize = 1 << 16;

/// The instances of each cluster in ascending order.
pub(super) fn members(labels: &[usize], clusters: usize) -> Vec<Vec<usize>> {
    let of_block = |(block, labels): (usize, &[usize])| {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); clusters];
        for (i, &label) in labels.iter().enumerate() {
            members[label].push(block * BLOCK + i);
        }
        members
    };
    let blocks: Vec<Vec<Vec<usize>>> = labels.par_chunks(BLOCK).enumerate().map(of_block).collect();
    let of_cluster = |cluster: usize| blocks.iter().flat_map(|block| &block[cluster]).copied().collect();
    (0..clusters).into_par_iter().map(of_cluster).collect()
}

/// The maximum number of points of a map.
pub const POINTS: usize = 4000;

/// A deterministic sample of at most `limit` instances: each cluster in proportion to its size plus a minimum that keeps small
/// clusters visible. The sample is in pseudo-random order, so that no cluster is drawn on top of the others.
pub(super) fn stratified(members: &[Vec<usize>], limit: usize) -> Vec<usize> {
    let all: usize = members.iter().map(Vec::len).sum();
    let least = limit / (4 * members.len().max(1));
    let shared = limit - least * members.len();
    let of_cluster = |members: &Vec<usize>| {
        let quota = least + (shared as f64 * members.len() as f64 / all as f64) as usize;
        let mut members = members.clone();
        if quota < members.len() && all > limit {
            members.select_nth_unstable_by_key(quota, |&instance| mix(instance));
            members.truncate(quota);
        }
        members
    };
    let mut chosen: Vec<usize> = members.par_iter().flat_map(of_cluster).collect();
    chosen.par_sort_unstable_by_key(|&instance| mix(instance));
    chosen
}

/// A hash of an instance's number (the mixing function of `SplitMix64`).
fn mix(instance: usize) -> u64 {
    let z = (instance as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
