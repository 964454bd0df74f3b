//! The nearest of many points by nearest-neighbour descent (Dong, Moses and Li, 2011): a neighbour of a neighbour is likely a
//! neighbour.
//!
//! Random trees give every point a first list. In each round the neighbours of a point are compared with each other, unless both
//! were in an earlier one. Who is compared is settled when a round begins, and every list keeps the nearest of what it is
//! offered, in whatever order that comes: so the bits do not depend on the number of threads.

use rayon::prelude::*;

use super::join::{Near, near};
use super::links::{Group, Links};
use super::lists::{FRESH, Lists};
use super::rows::Rows;
use super::shared::Shared;
use super::trees::{leaf_size, leaves};
use crate::Result;
use crate::index::index;
use crate::watch::Watch;

/// Neighbours that a point keeps, and where these were too few.
pub(super) const KEPT: usize = 26;
const MORE: usize = 48;

/// New neighbours that a point joins in a round, and as many old ones, at most. More than it keeps: others know it, too. Large
/// groups find more for the rows that are read, and need fewer rounds.
const JOINED: usize = 60;

/// Random trees.
const TREES: usize = 6;

/// Rounds, at most, and the share of all lists' entries that must be new for another one.
const ROUNDS: usize = 20;
const CHANGED: f64 = 0.02;

/// The share of the work that the trees are, roughly.
const BEGINNING: f64 = 0.3;

/// Points whose neighbours are joined before it is asked whether to stop, and those that one thread takes at a time.
const BATCH: usize = 16_384;
const TAKEN: usize = 64;

/// The points in the order of a tree's leaves: those that are near each other have numbers near each other, and what is known
/// of them lies together in memory.
pub(super) struct Arranged<'a> {
    rows: &'a Rows<'a>,
    pub order: Vec<u32>,
}

impl<'a> Arranged<'a> {
    pub fn new(rows: &'a Rows<'a>, seed: u64) -> Self {
        Self { rows, order: leaves(rows, seed, 0) }
    }
}

/// What one thread needs to join.
#[derive(Default)]
struct Scratch {
    group: Group,
    rows: Vec<f32>,
    bars: Vec<f32>,
    near: Vec<Near>,
}

impl Scratch {
    /// Compares the members of the group of which at least one is new, and offers them to each other.
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
    /// So many of the nearest of each point with their squared distances.
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

    /// The same with longer lists, which find more.
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
            // Every round changes a share of what the one before has changed.
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
