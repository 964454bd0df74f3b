//! The lists of neighbours in both directions.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rayon::prelude::*;

use super::lists::{FRESH, Lists, NONE, point};
use crate::random::mix;
use daimc_core::index::index;

/// The lists at the start of a round and, for each point, the points whose lists contain it, in any order.
pub(super) struct Links {
    kept: usize,
    /// The entries of all lists.
    to: Vec<u32>,
    /// The offset of each point in the reverse lists, whose entries are new if they are new in the list.
    starts: Vec<usize>,
    from: Vec<AtomicU32>,
}

impl Links {
    pub fn of(lists: &Lists) -> Self {
        let (n, kept, to) = (lists.len(), lists.kept, lists.entries.clone());
        let ends: Vec<AtomicUsize> = (0..=n).map(|_| AtomicUsize::new(0)).collect();
        to.par_iter().map(|entry| point(*entry)).filter(|other| *other != NONE).for_each(|other| {
            ends[other as usize].fetch_add(1, Ordering::Relaxed);
        });
        let mut all = 0;
        let starts: Vec<usize> = ends
            .iter()
            .map(|end| {
                let start = all;
                all += end.swap(start, Ordering::Relaxed);
                start
            })
            .collect();
        let from: Vec<AtomicU32> = (0..starts[n]).map(|_| AtomicU32::new(0)).collect();
        to.par_chunks(kept).enumerate().for_each(|(i, entries)| {
            for &entry in entries.iter().filter(|entry| point(**entry) != NONE) {
                let at = ends[point(entry) as usize].fetch_add(1, Ordering::Relaxed);
                from[at].store(index(i) | entry & FRESH, Ordering::Relaxed);
            }
        });
        Self { kept, to, starts, from }
    }

    /// The share of all entries that are new.
    pub fn fresh(&self) -> f64 {
        let fresh = self.to.par_iter().filter(|entry| **entry & FRESH != 0 && point(**entry) != NONE);
        fresh.count() as f64 / self.to.len() as f64
    }

    /// The entries of a point's list.
    fn to(&self, i: u32) -> impl Iterator<Item = u32> {
        let entries = &self.to[i as usize * self.kept..][..self.kept];
        entries.iter().copied().take_while(|entry| point(*entry) != NONE)
    }

    /// The points whose lists contain the point.
    fn from(&self, i: u32) -> impl Iterator<Item = u32> {
        let from = &self.from[self.starts[i as usize]..self.starts[i as usize + 1]];
        from.iter().map(|entry| entry.load(Ordering::Relaxed))
    }

    /// Fills a group with at most `most` new neighbours of a point, in either direction, and at most as many old ones: the first
    /// in a pseudorandom order. The group is empty if none is new.
    pub fn draw(&self, i: u32, most: usize, salt: u64, group: &mut Group) {
        let Group { members, fresh, own, drawn: [new, old] } = group;
        [&mut *members, &mut *own].into_iter().for_each(Vec::clear);
        [&mut *new, &mut *old].into_iter().for_each(Vec::clear);
        *fresh = 0;
        for entry in self.to(i).chain(self.from(i)) {
            let drawn = if entry & FRESH == 0 { &mut *old } else { &mut *new };
            let other = point(entry);
            let pair = u64::from(i.min(other)) << 32 | u64::from(i.max(other));
            drawn.push(u64::from(mix(salt ^ pair)) << 32 | u64::from(other));
        }
        if new.is_empty() {
            return;
        }
        let first = |drawn: &mut Vec<u64>| {
            drawn.sort_unstable();
            drawn.dedup();
            drawn.truncate(most);
        };
        first(new);
        members.extend(new.iter().map(|drawn| *drawn as u32));
        *fresh = members.len();
        own.extend(
            self.to(i).filter(|entry| entry & FRESH != 0).map(point).filter(|own| members.contains(own)),
        );
        first(old);
        for other in old.iter().map(|drawn| *drawn as u32) {
            if !members[..*fresh].contains(&other) {
                members.push(other);
            }
        }
    }
}

/// Points that are neighbours of a common point.
#[derive(Default)]
pub(super) struct Group {
    /// The first `fresh` of them are new.
    pub members: Vec<u32>,
    pub fresh: usize,
    /// The new members in the point's own list.
    pub own: Vec<u32>,
    drawn: [Vec<u64>; 2],
}
