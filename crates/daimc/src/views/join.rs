//! Joining views by the IDs of their rows.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use rayon::prelude::*;

use super::View;
use crate::source::MISSING;
use crate::{Error, Result};

/// What a join found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// Instances in all.
    pub instances: usize,
    /// Instances that every view shows.
    pub in_every_view: usize,
    /// For each view, by name: instances it shows, and instances that it alone shows.
    pub views: Vec<(String, usize, usize)>,
    /// IDs that were dropped because every view that lists them marks them as missing.
    pub dropped: Vec<String>,
}

/// Fails if an ID of the view occurs twice.
pub(super) fn unique(view: &View<'_>) -> Result<()> {
    let ids = view.id_names().unwrap_or_default();
    let hasher = RandomState::new();
    let mut hashes: Vec<(u64, usize)> =
        ids.par_iter().enumerate().map(|(row, id)| (hasher.hash_one(id), row)).collect();
    hashes.par_sort_unstable();
    // The first repetition among IDs of the same hash, as the row and that of its forerunner.
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

/// The joined IDs, for each view the row of each of them, and the account.
pub(super) fn join(views: &[View<'_>]) -> Result<(Vec<String>, Vec<Vec<u32>>, Account)> {
    // Every ID in the order in which it is first listed, and whether some view shows it. A row that is missing keeps its
    // place: views that list the same IDs alike give results in that order.
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
