//! Presence of instances in views.

use std::collections::HashMap;

use daimc::Schema;
use rayon::prelude::*;
use serde::Serialize;

/// The presence of instances in views.
#[derive(Clone, Debug, Serialize)]
pub struct Presence {
    /// Each view, in the order of the data.
    pub views: Vec<ViewPresence>,
    /// Combinations of views, the most frequent first.
    pub combinations: Vec<Combination>,
    /// The number of combinations that are not listed, and of their instances.
    pub rest: (usize, usize),
    /// The share of instances present, for each view and each of [`Presence::bins`] bins. Instances are assigned to bins in
    /// the order of their combinations.
    pub tiles: Vec<Vec<f32>>,
    /// Columns of the tile map.
    pub bins: usize,
    /// The share of all pairs of an instance and a view that is missing.
    pub missing: f64,
    /// The number of instances present in every view.
    pub complete: usize,
}

/// The instances present in a view.
#[derive(Clone, Debug, Serialize)]
pub struct ViewPresence {
    /// Its name.
    pub name: String,
    /// The number of its features.
    pub features: usize,
    /// The number of instances present in it.
    pub present: usize,
}

/// A combination of views, and the number of instances present in exactly these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Combination {
    /// The views, by number.
    pub views: Vec<usize>,
    /// The number of instances.
    pub instances: usize,
}

/// The maximum numbers of columns and of tiles of the tile map.
const BINS: usize = 240;
const TILES: usize = 9600;
/// The maximum number of combinations listed.
const COMBINATIONS: usize = 500;
/// The number of instances per parallel task.
const BLOCK: usize = 1 << 14;

impl Presence {
    pub(super) fn of(schema: &Schema) -> Self {
        let (n, count) = (schema.instances(), schema.len());
        let mut patterns: Vec<(Vec<u64>, usize)> = count_patterns(schema).into_iter().collect();
        patterns.sort_unstable_by(|a, b| b.0.cmp(&a.0));
        let bins = n.min(BINS).min((TILES / count).max(40));
        let tiles = tiles(&patterns, count, n, bins);

        patterns.sort_by_key(|(_, instances)| std::cmp::Reverse(*instances));
        let views_of = |pattern: &[u64]| (0..count).filter(|&view| has(pattern, view)).collect();
        let (listed, rest) = patterns.split_at(patterns.len().min(COMBINATIONS));
        let shows = |view: usize| {
            let having = patterns.iter().filter(|(pattern, _)| has(pattern, view));
            having.map(|(_, instances)| instances).sum::<usize>()
        };
        let shown: Vec<usize> = (0..count).map(shows).collect();
        let everywhere = patterns.iter().filter(|(pattern, _)| (0..count).all(|view| has(pattern, view)));
        Self {
            views: schema
                .views()
                .enumerate()
                .map(|(number, view)| ViewPresence {
                    name: view.name().into(),
                    features: view.features(),
                    present: shown[number],
                })
                .collect(),
            combinations: listed
                .iter()
                .map(|(pattern, instances)| Combination { views: views_of(pattern), instances: *instances })
                .collect(),
            rest: (rest.len(), rest.iter().map(|(_, instances)| instances).sum()),
            tiles,
            bins,
            missing: 1.0 - shown.iter().sum::<usize>() as f64 / (n * count) as f64,
            complete: everywhere.map(|(_, instances)| instances).sum(),
        }
    }
}

/// Counts the instances of each presence pattern. A pattern has one bit per view, the first view in the highest bit, so that
/// sorted patterns are in the order of the tile map.
fn count_patterns(schema: &Schema) -> HashMap<Vec<u64>, usize> {
    let empty = vec![0_u64; schema.len().div_ceil(64)];
    let of_block = |block: usize| {
        let mut counts: HashMap<Vec<u64>, usize> = HashMap::new();
        let mut pattern = empty.clone();
        for instance in block * BLOCK..((block + 1) * BLOCK).min(schema.instances()) {
            pattern.fill(0);
            for view in (0..schema.len()).filter(|&view| schema.view(view).shows(instance)) {
                pattern[view / 64] |= 1 << (63 - view % 64);
            }
            match counts.get_mut(&pattern) {
                Some(count) => *count += 1,
                None => drop(counts.insert(pattern.clone(), 1)),
            }
        }
        counts
    };
    let sum = |mut a: HashMap<Vec<u64>, usize>, b: HashMap<Vec<u64>, usize>| {
        b.into_iter().for_each(|(pattern, count)| *a.entry(pattern).or_default() += count);
        a
    };
    (0..schema.instances().div_ceil(BLOCK)).into_par_iter().map(of_block).reduce(HashMap::new, sum)
}

fn has(pattern: &[u64], view: usize) -> bool {
    pattern[view / 64] >> (63 - view % 64) & 1 == 1
}

/// Distributes the instances over the bins, pattern by pattern.
fn tiles(patterns: &[(Vec<u64>, usize)], views: usize, instances: usize, bins: usize) -> Vec<Vec<f32>> {
    let mut tiles = vec![vec![0.0_f64; bins]; views];
    let width = instances as f64 / bins as f64;
    let mut start = 0;
    for (pattern, count) in patterns {
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
