//! Neighbour lists that several threads modify at the same time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lists::{FRESH, Lists, insert, point};

/// The number of points whose lists share a lock.
const TOGETHER: usize = 8;

/// Lists that keep the nearest of all points offered to them, in any order: the result does not depend on the order of the
/// threads.
pub(super) struct Shared<'a> {
    kept: usize,
    lists: Vec<Mutex<Few<'a>>>,
    /// The bits of the squared distance of the last entry of each list: a farther point needs no lock.
    bars: Vec<AtomicU32>,
}

/// The entries and the squared distances of a few points.
type Few<'a> = (&'a mut [u32], &'a mut [f32]);

impl<'a> Shared<'a> {
    pub fn new(lists: &'a mut Lists) -> Self {
        let kept = lists.kept;
        let bars = (0..lists.len()).map(|i| AtomicU32::new(lists.bar(i).to_bits())).collect();
        let entries = lists.entries.chunks_mut(TOGETHER * kept);
        let few = entries.zip(lists.squares.chunks_mut(TOGETHER * kept));
        Self { kept, bars, lists: few.map(Mutex::new).collect() }
    }

    /// The squared distance of the last entry of a list, possibly slightly out of date.
    pub fn bar(&self, i: u32) -> f32 {
        f32::from_bits(self.bars[i as usize].load(Ordering::Relaxed))
    }

    /// Inserts another point into the list of a point if it is among the nearest, and marks it as new.
    pub fn offer(&self, i: u32, other: u32, square: f32) {
        if square > self.bar(i) {
            return;
        }
        let (mut few, at) = self.lock(i);
        let (entries, squares) = &mut *few;
        let squares = &mut squares[at..at + self.kept];
        if insert(&mut entries[at..at + self.kept], squares, other | FRESH, square) {
            self.bars[i as usize].store(squares[self.kept - 1].to_bits(), Ordering::Relaxed);
        }
    }

    /// Marks some entries in the list of a point as old.
    pub fn grow_old(&self, i: u32, some: &[u32]) {
        let (mut few, at) = self.lock(i);
        for entry in few.0[at..at + self.kept].iter_mut().filter(|entry| some.contains(&point(**entry))) {
            *entry = point(*entry);
        }
    }

    fn lock(&self, i: u32) -> (MutexGuard<'_, Few<'a>>, usize) {
        let few = self.lists[i as usize / TOGETHER].lock().unwrap_or_else(PoisonError::into_inner);
        (few, i as usize % TOGETHER * self.kept)
    }
}
