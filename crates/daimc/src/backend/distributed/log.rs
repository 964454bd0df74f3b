//! The requests that determine the state of the partitions.
//!
//! A partition keeps its rows, their scaling, V and labels. Each request has a number, and each task lists the numbers of the
//! requests from which the state must follow. A partition that replaces a lost one answers those first. The list stays short: a
//! request that computes V anew makes the earlier changes of V unnecessary.

use std::collections::BTreeMap;

use crate::partition::Effect;

/// Requests that a partition answers again if it takes the place of a lost one. Answered in the order of their numbers, they give
/// the state of the lost one to the last bit.
#[derive(Default)]
pub(super) struct Log {
    /// Settings, by fork and reduction.
    set: BTreeMap<(u32, &'static str), u64>,
    /// The requests that determine V and the labels of each fork.
    changes: BTreeMap<u32, Vec<u64>>,
    /// The same before an attempt at a better V, which may be undone.
    saved: BTreeMap<u32, Vec<u64>>,
    /// The requests that determine what is kept of finished runs.
    kept: Vec<u64>,
}

impl Log {
    /// The numbers, in increasing order.
    pub fn setup(&self) -> Vec<u64> {
        let changes = self.changes.values().chain(self.saved.values()).flatten();
        let mut all: Vec<u64> = self.set.values().chain(changes).chain(&self.kept).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Records a request that all partitions have answered.
    pub fn keep(&mut self, fork: u32, number: u64, name: &'static str, effect: Effect) {
        let changes = self.changes.entry(fork).or_default();
        match effect {
            Effect::None => {}
            Effect::Sets => {
                self.set.insert((fork, name), number);
            }
            Effect::Begins => *changes = vec![number],
            Effect::Changes => changes.push(number),
            Effect::Saves => {
                changes.push(number);
                self.saved.insert(fork, changes.clone());
            }
            Effect::Restores => {
                *changes = self.saved.remove(&fork).unwrap_or_default();
                changes.push(number);
            }
            Effect::Accepts => {
                self.saved.remove(&fork);
            }
            Effect::Keeps => {
                self.kept.extend_from_slice(changes);
                self.kept.push(number);
            }
            Effect::Resets => {
                changes.clear();
                self.saved.remove(&fork);
                self.set.retain(|(own, _), _| *own != fork);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_v_makes_earlier_ones_unimportant_and_settings_stay() {
        let mut log = Log::default();
        let requests = [("prepare", Effect::Sets), ("begin", Effect::Begins), ("sweep", Effect::Changes)];
        for (number, (name, effect)) in (1..).zip(requests) {
            log.keep(0, number, name, effect);
        }
        assert_eq!(log.setup(), [1, 2, 3]);
        log.keep(0, 4, "describe", Effect::None);
        log.keep(0, 5, "adopt", Effect::Sets);
        log.keep(0, 6, "sweep", Effect::Begins);
        assert_eq!(log.setup(), [1, 5, 6]);
        log.keep(0, 7, "adopt", Effect::Sets);
        assert_eq!(log.setup(), [1, 6, 7]);
    }

    #[test]
    fn a_restored_attempt_keeps_the_earlier_requests() {
        let mut log = Log::default();
        log.keep(0, 1, "begin", Effect::Begins);
        log.keep(0, 2, "save", Effect::Saves);
        log.keep(0, 3, "restart", Effect::Changes);
        log.keep(0, 4, "sweep", Effect::Begins);
        assert_eq!(log.setup(), [1, 2, 4]);
        let mut other = Log { set: log.set.clone(), changes: log.changes.clone(), ..Log::default() };
        log.keep(0, 5, "restore", Effect::Restores);
        assert_eq!(log.setup(), [1, 2, 5]);
        other.keep(0, 5, "accept", Effect::Accepts);
        assert_eq!(other.setup(), [4]);
    }

    #[test]
    fn runs_that_were_kept_outlive_their_fork() {
        let mut log = Log::default();
        log.keep(0, 1, "prepare", Effect::Sets);
        log.keep(1, 2, "begin", Effect::Begins);
        log.keep(1, 3, "assign", Effect::Changes);
        log.keep(1, 4, "keep", Effect::Keeps);
        log.keep(1, 5, "reset", Effect::Resets);
        log.keep(2, 6, "begin", Effect::Begins);
        assert_eq!(log.setup(), [1, 2, 3, 4, 6]);
    }
}
