//! Sums over instances that are added up along a fixed binary tree, whoever holds the instances.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What can be summed up: the share of some leaves of the tree, and of those to their right.
pub(crate) trait Merge {
    /// Adds the share of the leaves to the right.
    fn merge(&mut self, right: Self);
}

/// Sums over some leaves of a tree, as far as they could be added up: for each whole subtree its root. Numbers are added only
/// where the tree says, so that the sum over all leaves is the same to the last bit however they were shared out and in
/// whatever order the shares arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Forest<T> {
    leaves: usize,
    /// By the height of the subtree and its number from the left.
    roots: BTreeMap<(u32, usize), T>,
}

impl<T: Merge> Forest<T> {
    /// Sums over nothing, for a tree with so many leaves.
    pub fn new(leaves: usize) -> Self {
        Self { leaves, roots: BTreeMap::new() }
    }

    /// Adds the sums over a subtree: a single leaf has height 0. Returns whether there was room for it.
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
            // Else there is no leaf to the right: the subtree is its parent.
            height += 1;
            number /= 2;
        }
        self.roots.insert((height, number), sums);
        true
    }

    /// Takes in the sums over other leaves of the same tree. Returns whether they were other leaves of it.
    pub fn absorb(&mut self, other: Self) -> bool {
        let same = self.leaves == other.leaves;
        same && other.roots.into_iter().all(|((height, number), sums)| self.plant(height, number, sums))
    }

    /// The sum over all leaves, if it is known.
    pub fn whole(self) -> Option<T> {
        let mut roots = self.roots.into_iter();
        let ((height, _), sums) = roots.next()?;
        (1 << height >= self.leaves).then_some(sums)
    }

    /// The sum over all leaves; `empty` if there is none.
    ///
    /// # Errors
    /// When the share of some leaves is not there.
    pub fn sum(self, empty: T) -> Result<T> {
        let none = self.leaves == 0;
        self.whole().or(none.then_some(empty)).ok_or_else(|| Error::Unsuitable {
            what: "sums",
            value: "a share".into(),
            reason: "the share of some instances has not been merged".into(),
        })
    }

    /// The sum over the leaves that are there; `empty` if there is none.
    pub fn share(self, empty: T) -> T {
        let mut roots: Vec<_> = self.roots.into_iter().collect();
        roots.sort_by_key(|((height, number), _)| number << height);
        let merged = roots.into_iter().map(|(_, sums)| sums).reduce(|mut left, right| {
            left.merge(right);
            left
        });
        merged.unwrap_or(empty)
    }

    pub fn leaves(&self) -> usize {
        self.leaves
    }

    pub fn roots(&self) -> impl Iterator<Item = (u32, usize, &T)> {
        self.roots.iter().map(|((height, number), sums)| (*height, *number, sums))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Shows the order of additions.
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
            // Twice the same leaves are refused, and part of them is no whole.
            let some = shares.into_iter().find(|share| share.roots().next().is_some()).unwrap();
            prop_assert!(!sum.absorb(some.clone()));
            prop_assert_eq!(some.clone().whole().is_some(), some == whole);
        }
    }
}
