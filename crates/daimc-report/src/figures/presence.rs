//! What is missing where.

use std::collections::HashMap;

use daimc::Views;
use serde::Serialize;

/// Which views show which instances.
#[derive(Clone, Debug, Serialize)]
pub struct Presence {
    /// Each view, in the order of the data.
    pub views: Vec<ViewPresence>,
    /// Combinations of views, the most frequent first.
    pub combinations: Vec<Combination>,
    /// Combinations that are not listed, and the instances that have them.
    pub rest: (usize, usize),
    /// The share of instances present, for each view and bin. Bins follow the instances in the order of their
    /// combinations; in all they are [`Presence::bins`].
    pub tiles: Vec<Vec<f32>>,
    /// Columns of the tile map.
    pub bins: usize,
    /// The share of all pairs of an instance and a view that is missing.
    pub missing: f64,
    /// Instances that every view shows.
    pub complete: usize,
}

/// How much of a view is there.
#[derive(Clone, Debug, Serialize)]
pub struct ViewPresence {
    /// Its name.
    pub name: String,
    /// Its features.
    pub features: usize,
    /// Instances that it shows.
    pub present: usize,
}

/// Some views, and how many instances are seen in exactly these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Combination {
    /// The views, by number.
    pub views: Vec<usize>,
    /// The instances.
    pub instances: usize,
}

/// Columns of the tile map, at most, and tiles in all.
const BINS: usize = 240;
const TILES: usize = 9600;
/// Combinations that are listed, at most.
const COMBINATIONS: usize = 500;

impl Presence {
    pub(super) fn of(views: &Views<'_>) -> Self {
        let (n, count) = (views.instances(), views.len());
        let words = count.div_ceil(64);
        // One bit per view and instance; the first view is the highest bit, so that patterns sort like their tiles.
        let mut bits = vec![0_u64; n * words];
        let mut seen = vec![0_usize; n];
        for view in 0..count {
            for instance in (0..n).filter(|&instance| views.is_present(view, instance)) {
                bits[instance * words + view / 64] |= 1 << (63 - view % 64);
                seen[instance] += 1;
            }
        }
        let mut counts: HashMap<&[u64], usize> = HashMap::new();
        for pattern in bits.chunks_exact(words) {
            *counts.entry(pattern).or_default() += 1;
        }
        let mut patterns: Vec<(&[u64], usize)> = counts.into_iter().collect();
        patterns.sort_unstable_by(|a, b| b.0.cmp(a.0));
        let bins = n.min(BINS).min((TILES / count).max(40));
        let tiles = tiles(&patterns, count, n, bins);

        patterns.sort_by_key(|&(_, instances)| std::cmp::Reverse(instances));
        let views_of = |pattern: &[u64]| (0..count).filter(|&view| has(pattern, view)).collect();
        let (listed, rest) = patterns.split_at(patterns.len().min(COMBINATIONS));
        let present: usize = seen.iter().sum();
        Self {
            views: views
                .iter()
                .enumerate()
                .map(|(number, view)| ViewPresence {
                    name: view.name().into(),
                    features: view.features(),
                    present: views.present(number),
                })
                .collect(),
            combinations: listed
                .iter()
                .map(|&(pattern, instances)| Combination { views: views_of(pattern), instances })
                .collect(),
            rest: (rest.len(), rest.iter().map(|(_, instances)| instances).sum()),
            tiles,
            bins,
            missing: 1.0 - present as f64 / (n * count) as f64,
            complete: seen.iter().filter(|&&seen| seen == count).count(),
        }
    }
}

fn has(pattern: &[u64], view: usize) -> bool {
    pattern[view / 64] >> (63 - view % 64) & 1 == 1
}

/// Spreads the instances, pattern after pattern, over the bins.
fn tiles(patterns: &[(&[u64], usize)], views: usize, instances: usize, bins: usize) -> Vec<Vec<f32>> {
    let mut tiles = vec![vec![0.0_f64; bins]; views];
    let width = instances as f64 / bins as f64;
    let mut start = 0;
    for &(pattern, count) in patterns {
        let (from, to) = (start as f64 / width, (start + count) as f64 / width);
        for bin in from as usize..(to.ceil() as usize).min(bins) {
            let share = (to.min((bin + 1) as f64) - from.max(bin as f64)).max(0.0);
            for view in (0..views).filter(|&view| has(pattern, view)) {
                tiles[view][bin] += share;
            }
        }
        start += count;
    }
    let finish = |row: Vec<f64>| row.into_iter().map(|share| share.min(1.0) as f32).collect();
    tiles.into_iter().map(finish).collect()
}
