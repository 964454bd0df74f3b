//! Joining views by the IDs of their rows.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use rayon::prelude::*;

use super::View;
use crate::source::MISSING;
use crate::{Error, Result};

/// The result of a join.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// The number of instances.
    pub instances: usize,
    /// The number of instances that are present in every view.
    pub in_every_view: usize,
    /// For each view, by name: the number of its instances, and of those that are in no other view.
    pub views: Vec<(String, usize, usize)>,
    /// The number of dropped IDs: every view that lists them marks them as missing.
    pub dropped: Vec<String>,
}

/// Fails if an ID of the view occurs twice.
pub(super) fn unique(view: &View<'_>) -> Result<()> {
    let ids = view.id_names().unwrap_or_default();
    let hasher = RandomState::new();
    let mut hashes: Vec<(u64, usize)> =
        ids.par_iter().enumerate().map(|(row, id)| (hasher.hash_one(id), row)).collect();
    hashes.par_sort_unstable();
    // The first repetition among IDs with the same hash, as its row and the row of the earlier one.
    let repeated = |same: &[(u64, usize)]| {
        let mut seen = HashMap::new();
        same.iter().find_map(|&(_, row)| Some((row, seen.insert(&ids[row], row)?)))
    };
    let groups = hashes.par_chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1);
    match groups.filter_map(repeated).min() {
        None => Ok(()),
        Some((second, first)) => {
            Err(Error::DuplicateId { view: view.name().into(), id: ids[second].clone(), first, second })
        }
    }
}

/// The joined IDs, the row of each of them in each view, and the account.
pub(super) fn join(views: &[View<'_>]) -> Result<(Vec<String>, Vec<Vec<u32>>, Account)> {
    // All IDs in the order in which they are first listed, and whether each is present in some view. Missing rows keep
    // their position: views that list the same IDs in the same order give results in that order.
    let mut listed: Vec<(&str, bool)> = Vec::new();
    let mut place: HashMap<&str, usize> = HashMap::new();
    for view in views {
        let ids = view.id_names().ok_or_else(|| Error::NoIds { view: view.name().into() })?;
        unique(view)?;
        for (row, id) in ids.iter().enumerate() {
            let number = *place.entry(id).or_insert_with(|| {
                listed.push((id, false));
                listed.len() - 1
            });
            listed[number].1 |= view.is_row_present(row);
        }
    }
    let (shown, hidden): (Vec<_>, Vec<_>) = listed.into_iter().partition(|(_, shown)| *shown);
    let names: Vec<&str> = shown.into_iter().map(|(id, _)| id).collect();
    let position: HashMap<&str, usize> = names.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    let mut dropped: Vec<&str> = hidden.into_iter().map(|(id, _)| id).collect();
    dropped.sort_unstable();

    let mut rows = vec![vec![MISSING; names.len()]; views.len()];
    let mut shown = vec![0_usize; names.len()];
    for (view, rows) in views.iter().zip(&mut rows) {
        for (row, id) in view.id_names().unwrap_or_default().iter().enumerate() {
            if view.is_row_present(row) {
                let i = position[id.as_str()];
                rows[i] = View::row_number(row);
                shown[i] += 1;
            }
        }
    }
    let count = |rows: &[u32], alone: bool| {
        let here =
            rows.iter().zip(&shown).filter(|(row, shown)| **row != MISSING && (!alone || **shown == 1));
        here.count()
    };
    let account = Account {
        instances: names.len(),
        in_every_view: shown.iter().filter(|&&shown| shown == views.len()).count(),
        views: views
            .iter()
            .zip(&rows)
            .map(|(view, rows)| (view.name().into(), count(rows, false), count(rows, true)))
            .collect(),
        dropped: dropped.into_iter().map(String::from).collect(),
    };
    Ok((names.into_iter().map(String::from).collect(), rows, account))
}
