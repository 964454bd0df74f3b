//! The nearest of many points by nearest-neighbour descent (Dong, Moses and Li, 2011): a neighbour of a neighbour is likely a
//! neighbour.
//!
//! Random trees give every point a first list. In each round the neighbours of a point are compared with each other, unless both
//! were in an earlier one. The lists of a batch of points are joined at once, against lists that do not change
//! meanwhile, and every list keeps the nearest of what it is offered, in whatever order that comes: so the bits do not depend on
//! the number of threads.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::join::{PADDED, distances};
use super::lists::{FRESH, Lists, NONE, insert, point};
use super::rows::Rows;
use crate::Result;
use crate::views::index;
use crate::watch::Watch;

/// Neighbours that a point keeps, and where these were too few.
pub(super) const KEPT: [usize; 2] = [30, 60];

/// New neighbours that a point joins in a round, and as many old ones: a share of those that it keeps.
fn joined(kept: usize) -> usize {
    kept * 2 / 3
}

/// Random trees, and the points in one of their leaves, at most.
const TREES: usize = 6;
const LEAF: usize = 64;

/// Rounds, at most, and the share of all lists' entries that must have changed for another one.
const ROUNDS: usize = 20;
const CHANGED: f64 = 0.001;

/// The share of the work that the trees are, roughly.
const BEGINNING: f64 = 0.3;

/// Points whose lists are joined before anybody's list changes, and those that one thread takes at a time.
const BATCH: usize = 4096;
const TAKEN: usize = 64;

/// Points that know each other by somebody: the first `fresh` of them are new to him.
struct Group {
    members: Vec<u32>,
    fresh: usize,
}

/// Another for a point's list.
struct Offer {
    point: u32,
    other: u32,
    square: f32,
}

impl Lists {
    /// The nearest of each point with their squared distances.
    pub fn find(rows: &Rows<'_>, seed: u64, watch: &Watch) -> Result<Self> {
        let n = rows.len();
        let mut lists = Self::empty(n, KEPT[0]);
        for tree in 0..TREES {
            let order = leaves(rows, seed, tree);
            let groups = |batch: &[u32]| {
                let group = |leaf: &[u32]| Group { members: leaf.to_vec(), fresh: leaf.len() };
                batch.chunks(leaf_size(n)).map(group).collect::<Vec<_>>()
            };
            for batch in order.chunks(BATCH / leaf_size(n) * leaf_size(n)) {
                watch.check()?;
                lists.join(rows, &groups(batch));
            }
            watch.reach(BEGINNING * (tree + 1) as f64 / TREES as f64);
        }
        lists.descend(rows, seed, watch)?;
        Ok(lists)
    }

    /// The same with longer lists, which find more.
    pub fn find_more(self, rows: &Rows<'_>, seed: u64, watch: &Watch) -> Result<Self> {
        let mut longer = Self::empty(rows.len(), KEPT[1]);
        let lists = longer.entries.par_chunks_mut(KEPT[1]).zip(longer.squares.par_chunks_mut(KEPT[1]));
        lists.enumerate().for_each(|(i, (entries, squares))| {
            for (at, (other, square)) in self.of(i).enumerate() {
                (entries[at], squares[at]) = (other | FRESH, square);
            }
        });
        drop(self);
        longer.descend(rows, seed, watch)?;
        Ok(longer)
    }

    fn descend(&mut self, rows: &Rows<'_>, seed: u64, watch: &Watch) -> Result<()> {
        let n = rows.len();
        for round in 0..ROUNDS {
            let candidates = self.candidates(seed, round);
            self.grow_old(&candidates);
            let mut changed = 0;
            for start in (0..n).step_by(BATCH) {
                watch.check()?;
                let groups = (start..(start + BATCH).min(n)).into_par_iter().map(|i| candidates.group(i));
                changed += self.join(rows, &groups.collect::<Vec<_>>());
            }
            let changed = changed as f64 / self.entries.len() as f64;
            if changed < CHANGED {
                break;
            }
            // Every round changes a share of what the one before has changed.
            watch.reach(BEGINNING + (1.0 - BEGINNING) * (changed.ln() / CHANGED.ln()).clamp(0.0, 1.0));
        }
        Ok(())
    }

    /// Compares the members of each group of which at least one is new, and offers them to each other. Returns how many were
    /// taken into a list.
    fn join(&mut self, rows: &Rows<'_>, groups: &[Group]) -> usize {
        let of_some = |groups: &[Group]| {
            let (mut near, mut squares, mut offers) = (Vec::new(), Vec::new(), Vec::new());
            for Group { members, fresh } in groups.iter().filter(|group| group.fresh > 0) {
                rows.gather(members.iter().copied(), &mut near);
                distances(&near, rows.width(), *fresh, &mut squares);
                let bars: Vec<f32> = members.iter().map(|&i| self.bar(i as usize)).collect();
                for (a, squares) in squares.chunks_exact(members.len()).take(*fresh).enumerate() {
                    for (b, &square) in squares.iter().enumerate().skip(a + 1) {
                        let mut offer = |to: usize, other: usize| {
                            if square <= bars[to] {
                                offers.push(Offer { point: members[to], other: members[other], square });
                            }
                        };
                        offer(a, b);
                        offer(b, a);
                    }
                }
            }
            offers
        };
        let offers: Vec<Vec<Offer>> = groups.par_chunks(TAKEN).map(of_some).collect();
        let kept = self.kept;
        // Each thread looks after some points and takes what is offered to these.
        let part = self.len().div_ceil(rayon::current_num_threads());
        let lists = self
            .entries
            .par_chunks_mut(part * kept)
            .zip(self.squares.par_chunks_mut(part * kept))
            .enumerate();
        let taken = lists.map(|(owner, (entries, squares))| {
            let own = owner * part..(owner + 1) * part;
            let mut taken = 0;
            for Offer { point, other, square } in offers.iter().flatten() {
                if own.contains(&(*point as usize)) {
                    let at = (*point as usize - own.start) * kept;
                    let at = at..at + kept;
                    let found = insert(&mut entries[at.clone()], &mut squares[at], other | FRESH, *square);
                    taken += usize::from(found);
                }
            }
            taken
        });
        taken.sum()
    }

    /// Some of those that each point knows, or that know it, drawn anew in each round.
    fn candidates(&self, seed: u64, round: usize) -> Candidates {
        let (n, joined) = (self.len(), joined(self.kept));
        let part = n.div_ceil(rayon::current_num_threads());
        let salt = seed ^ (round as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut drawn = Candidates { joined, all: vec![NONE; 2 * n * joined] };
        drawn.all.par_chunks_mut(2 * part * joined).enumerate().for_each(|(owner, all)| {
            let own = owner * part..owner * part + all.len() / (2 * joined);
            for (i, entries) in self.entries.chunks_exact(self.kept).enumerate() {
                let here = own.contains(&i);
                for &entry in entries.iter().filter(|entry| point(**entry) != NONE) {
                    let j = point(entry);
                    let there = own.contains(&(j as usize));
                    let old = usize::from(entry == j);
                    let mut draw = |to: usize, other: u32| {
                        let at = (2 * (to - own.start) + old) * joined;
                        draw(&mut all[at..at + joined], index(to), other, salt);
                    };
                    if here {
                        draw(i, j);
                    }
                    if there {
                        draw(j as usize, index(i));
                    }
                }
            }
        });
        drawn
    }

    /// Those that are about to be joined are no longer new.
    fn grow_old(&mut self, candidates: &Candidates) {
        self.entries.par_chunks_mut(self.kept).enumerate().for_each(|(i, entries)| {
            let joined = candidates.some(i, 0);
            for entry in entries.iter_mut().filter(|entry| joined.contains(&point(**entry))) {
                *entry = point(*entry);
            }
        });
    }
}

/// For each point up to so many new ones, then as many old ones, in the order in which they were drawn.
struct Candidates {
    joined: usize,
    all: Vec<u32>,
}

impl Candidates {
    fn some(&self, i: usize, old: usize) -> &[u32] {
        let all = &self.all[(2 * i + old) * self.joined..][..self.joined];
        &all[..all.iter().position(|other| *other == NONE).unwrap_or(self.joined)]
    }

    fn group(&self, i: usize) -> Group {
        let mut members = self.some(i, 0).to_vec();
        let fresh = members.len();
        if fresh > 0 {
            let old = self.some(i, 1).iter().filter(|other| !members[..fresh].contains(other));
            let old: Vec<u32> = old.copied().collect();
            members.extend(old);
        }
        Group { members, fresh }
    }
}

/// Draws another for a point: the first in an order that looks random are kept, each once. The order of a pair is made up anew
/// wherever it is needed, and takes no memory.
fn draw(drawn: &mut [u32], to: u32, other: u32, salt: u64) {
    let order = |other: u32| {
        let pair = u64::from(to.min(other)) << 32 | u64::from(to.max(other));
        (if other == NONE { u32::MAX } else { mix(salt ^ pair) }, other)
    };
    let mut at = drawn.len() - 1;
    let own = order(other);
    if own >= order(drawn[at]) || drawn.contains(&other) {
        return;
    }
    while at > 0 && own < order(drawn[at - 1]) {
        drawn[at] = drawn[at - 1];
        at -= 1;
    }
    drawn[at] = other;
}

/// A number that looks random.
pub(crate) fn mix(number: u64) -> u32 {
    let mut x = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x >> 32) as u32
}

fn depth(points: usize) -> u32 {
    points.div_ceil(LEAF).next_power_of_two().trailing_zeros()
}

fn leaf_size(points: usize) -> usize {
    points.div_ceil(1 << depth(points))
}

/// The points in the order of the leaves of a random tree: each level halves the points of a node at the median of their
/// products with a direction, the difference of two points drawn for that level.
fn leaves(rows: &Rows<'_>, seed: u64, tree: usize) -> Vec<u32> {
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
