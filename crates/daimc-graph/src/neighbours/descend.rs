//! Nearest neighbours of many points by nearest-neighbour descent (Dong, Moses and Li, 2011): a neighbour of a neighbour is
//! likely to be a neighbour.
//!
//! Random trees initialise the lists. In each round the neighbours of a point are compared with each other, unless both were
//! compared in an earlier round.
//!
//! The usual implementation lets threads race for shared lists. Here the pairs to compare are fixed at the start of a round, and
//! threads then insert into the lists under locks. A list keeps the nearest of all points that were offered to it, in any order,
//! and the distance of a pair does not depend on the thread, so the bits do not depend on the number of threads.
//!
//! Points are numbered in the order of the leaves of a tree, so that points that are compared with each other are close in
//! memory. Groups are large: more pairs are compared for each row that is read, and fewer rounds are needed.

use rayon::prelude::*;

use super::join::{Near, near};
use super::links::{Group, Links};
use super::lists::{FRESH, Lists};
use super::rows::Rows;
use super::shared::Shared;
use super::trees::{leaf_size, leaves};
use daimc_core::Result;
use daimc_core::index::index;
use daimc_core::watch::Watch;

/// The number of neighbours of a point, and the larger number if that was insufficient.
pub(super) const KEPT: usize = 26;
const MORE: usize = 48;

/// The maximum number of new, and of old, neighbours that a point joins in a round. It is larger than the length of a list,
/// because the group includes the points whose lists contain the point. Large groups find more neighbours per row that is read,
/// and need fewer rounds.
const JOINED: usize = 60;

/// Random trees.
const TREES: usize = 6;

/// The maximum number of rounds, and the share of new entries in all lists below which no other round follows.
const ROUNDS: usize = 20;
const CHANGED: f64 = 0.02;

/// The approximate share of the trees in the work.
const BEGINNING: f64 = 0.3;

/// The number of points that are joined between checks for a stop, and the number that one thread processes at a time.
const BATCH: usize = 16_384;
const TAKEN: usize = 64;

/// The points in the order of a tree's leaves: close points have close numbers, and their data are close in memory.
pub(super) struct Arranged<'a> {
    rows: &'a Rows<'a>,
    pub order: Vec<u32>,
}

impl<'a> Arranged<'a> {
    pub fn new(rows: &'a Rows<'a>, seed: u64) -> Self {
        Self { rows, order: leaves(rows, seed, 0) }
    }
}

/// The scratch memory of one thread.
#[derive(Default)]
struct Scratch {
    group: Group,
    rows: Vec<f32>,
    bars: Vec<f32>,
    near: Vec<Near>,
}

impl Scratch {
    /// Compares the members of the group, at least one of each pair being new, and offers them to each other.
    fn join(&mut self, rows: &Arranged<'_>, lists: &Shared<'_>) {
        let Self { group: Group { members, fresh, .. }, rows: gathered, bars, near: found } = self;
        rows.rows.gather(members.iter().map(|i| rows.order[*i as usize]), gathered);
        bars.clear();
        bars.extend(members.iter().map(|i| lists.bar(*i)));
        near(gathered, rows.rows.width(), *fresh, bars, found);
        for Near { pair: [a, b], square } in found.drain(..) {
            let (a, b) = (members[a as usize], members[b as usize]);
            lists.offer(a, b, square);
            lists.offer(b, a, square);
        }
    }
}

impl Lists {
    /// Finds the `kept` nearest of each point, with their squared distances.
    pub fn find(rows: &Arranged<'_>, kept: usize, seed: u64, watch: &Watch) -> Result<Self> {
        let n = rows.order.len();
        let mut lists = Self::empty(n, kept);
        let mut place = vec![0; n];
        rows.order.iter().enumerate().for_each(|(i, point)| place[*point as usize] = index(i));
        let shared = Shared::new(&mut lists);
        for tree in 0..TREES {
            let order = if tree == 0 { &rows.order } else { &leaves(rows.rows, seed, tree) };
            order.par_chunks(leaf_size(n)).for_each_init(Scratch::default, |scratch, leaf| {
                let Group { members, fresh, .. } = &mut scratch.group;
                members.clear();
                members.extend(leaf.iter().map(|point| place[*point as usize]));
                *fresh = members.len();
                scratch.join(rows, &shared);
            });
            watch.check()?;
            watch.reach(BEGINNING * (tree + 1) as f64 / TREES as f64);
        }
        drop(shared);
        lists.descend(rows, seed, watch)?;
        Ok(lists)
    }

    /// The same with longer lists, which have a higher recall.
    pub fn find_more(self, rows: &Arranged<'_>, seed: u64, watch: &Watch) -> Result<Self> {
        let mut longer = Self::empty(self.len(), MORE);
        let lists = longer.entries.par_chunks_mut(MORE).zip(longer.squares.par_chunks_mut(MORE));
        lists.enumerate().for_each(|(i, (entries, squares))| {
            for (at, (other, square)) in self.of(i).enumerate() {
                (entries[at], squares[at]) = (other | FRESH, square);
            }
        });
        drop(self);
        longer.descend(rows, seed, watch)?;
        Ok(longer)
    }

    fn descend(&mut self, rows: &Arranged<'_>, seed: u64, watch: &Watch) -> Result<()> {
        let n = index(self.len());
        for round in 0..ROUNDS {
            let links = Links::of(self);
            let fresh = links.fresh();
            if fresh < CHANGED {
                break;
            }
            // Each round changes a share of the entries that the previous round changed.
            watch.reach(BEGINNING + (1.0 - BEGINNING) * (fresh.ln() / CHANGED.ln()).clamp(0.0, 1.0));
            let salt = seed ^ (round as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let shared = Shared::new(self);
            for start in (0..n).step_by(BATCH) {
                watch.check()?;
                let points = (start..(start + index(BATCH)).min(n)).into_par_iter().with_min_len(TAKEN);
                points.for_each_init(Scratch::default, |scratch, i| {
                    links.draw(i, JOINED, salt, &mut scratch.group);
                    if scratch.group.fresh > 0 {
                        shared.grow_old(i, &scratch.group.own);
                        scratch.join(rows, &shared);
                    }
                });
            }
        }
        Ok(())
    }
}
