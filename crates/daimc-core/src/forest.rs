//! Sums over instances along a fixed binary tree, independent of the partition of the instances.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A summand: the sum over some leaves of the tree. Merged with the sum over the leaves to their right.
pub trait Merge {
    /// Adds the sum over the leaves to the right.
    fn merge(&mut self, right: Self);
}

/// Only which leaves are summed.
impl Merge for () {
    fn merge(&mut self, (): Self) {}
}

/// Partial sums over leaves of a tree: for each complete subtree its root. Numbers are only added along the tree, so
/// that the sum over all leaves has the same bits for every partition of the leaves and every order of arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forest<T> {
    leaves: usize,
    /// By height of the subtree and its number from the left.
    roots: BTreeMap<(u32, usize), T>,
}

impl<T: Merge> Forest<T> {
    /// Creates empty sums for a tree with this number of leaves.
    pub fn new(leaves: usize) -> Self {
        Self { leaves, roots: BTreeMap::new() }
    }

    /// Adds the sum over a subtree; a single leaf has height 0. Returns `false` if the subtree is not in the tree or
    /// overlaps with sums that are present.
    pub fn plant(&mut self, mut height: u32, mut number: usize, mut sums: T) -> bool {
        let span = |height: u32, number: usize| number << height..(number + 1) << height;
        let own = span(height, number);
        let mut taken = self.roots.keys().map(|&(height, number)| span(height, number));
        if own.start >= self.leaves || taken.any(|other| other.start < own.end && own.start < other.end) {
            return false;
        }
        while 1 << height < self.leaves {
            let (left, right) = (number & !1, number | 1);
            if right << height < self.leaves {
                let other = if number == left { right } else { left };
                let Some(sibling) = self.roots.remove(&(height, other)) else { break };
                if number == left {
                    sums.merge(sibling);
                } else {
                    let right = std::mem::replace(&mut sums, sibling);
                    sums.merge(right);
                }
            }
            // Without a leaf to the right, the subtree is its own parent.
            height += 1;
            number /= 2;
        }
        self.roots.insert((height, number), sums);
        true
    }

    /// Merges the sums over other leaves of the same tree. Returns `false` if the trees differ or leaves overlap.
    pub fn absorb(&mut self, other: Self) -> bool {
        let same = self.leaves == other.leaves;
        same && other.roots.into_iter().all(|((height, number), sums)| self.plant(height, number, sums))
    }

    /// The sum over all leaves, if it is complete.
    pub fn whole(self) -> Option<T> {
        let mut roots = self.roots.into_iter();
        let ((height, _), sums) = roots.next()?;
        (1 << height >= self.leaves).then_some(sums)
    }

    /// The sum over all leaves; `empty` if there are no leaves.
    ///
    /// # Errors
    /// When the sum over some leaves is missing.
    pub fn sum(self, empty: T) -> Result<T> {
        let none = self.leaves == 0;
        self.whole().or(none.then_some(empty)).ok_or_else(|| Error::Unsuitable {
            what: "sums",
            value: "a share".into(),
            reason: "the share of some instances has not been merged".into(),
        })
    }

    /// The sum over the present leaves; `empty` if there are none.
    pub fn share(self, empty: T) -> T {
        let mut roots: Vec<_> = self.roots.into_iter().collect();
        roots.sort_by_key(|((height, number), _)| number << height);
        let merged = roots.into_iter().map(|(_, sums)| sums).reduce(|mut left, right| {
            left.merge(right);
            left
        });
        merged.unwrap_or(empty)
    }

    /// The number of leaves of the tree.
    pub fn leaves(&self) -> usize {
        self.leaves
    }

    /// The sums, each with the height of its subtree and its number from the left.
    pub fn roots(&self) -> impl Iterator<Item = (u32, usize, &T)> {
        self.roots.iter().map(|((height, number), sums)| (*height, *number, sums))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records the order of additions.
    impl Merge for String {
        fn merge(&mut self, right: Self) {
            *self = format!("({self}{right})");
        }
    }

    fn letter(leaf: usize) -> String {
        char::from(b'a' + leaf as u8).to_string()
    }

    #[test]
    fn the_tree_is_balanced_from_the_left() {
        for (leaves, expected) in
            [(1, "a"), (2, "(ab)"), (3, "((ab)c)"), (5, "(((ab)(cd))e)"), (6, "(((ab)(cd))(ef))")]
        {
            let mut forest = Forest::new(leaves);
            (0..leaves).for_each(|leaf| assert!(forest.plant(0, leaf, letter(leaf))));
            assert_eq!(forest.clone().share(String::new()), expected);
            assert_eq!(forest.whole().unwrap(), expected);
        }
    }

    #[test]
    fn a_share_is_the_sum_over_the_leaves_that_are_there() {
        let mut forest = Forest::new(8);
        assert_eq!(forest.clone().share("none".into()), "none");
        [6, 1, 4, 5].into_iter().for_each(|leaf| assert!(forest.plant(0, leaf, letter(leaf))));
        assert_eq!(forest.clone().share(String::new()), "((b(ef))g)");
        assert!(forest.whole().is_none());
    }

    proptest! {
        #[test]
        fn shares_in_any_order_give_the_same_tree(leaves in 1_usize..20, parts in 1_usize..6, seed in any::<u64>()) {
            let mut whole = Forest::new(leaves);
            (0..leaves).for_each(|leaf| assert!(whole.plant(0, leaf, letter(leaf))));
            let mut shares = vec![Forest::new(leaves); parts];
            for leaf in 0..leaves {
                let part = (seed >> (leaf % 60)) as usize % parts;
                prop_assert!(shares[part].plant(0, leaf, letter(leaf)));
            }
            shares.rotate_left(seed as usize % parts);
            let mut sum = Forest::new(leaves);
            for share in shares.clone() {
                prop_assert!(sum.absorb(share));
            }
            prop_assert_eq!(&sum, &whole);
            // A leaf that is added twice is refused, and incomplete sums have no total.
            let some = shares.into_iter().find(|share| share.roots().next().is_some()).unwrap();
            prop_assert!(!sum.absorb(some.clone()));
            prop_assert_eq!(some.clone().whole().is_some(), some == whole);
        }
    }
}
