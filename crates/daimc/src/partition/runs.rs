//! Reductions over the results of several runs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Effect, Partition, Reduction, Run};
use daimc_core::index::index;
use daimc_core::scan::Scan;
use daimc_core::table::{Partial, unsuitable};
use daimc_core::{Ids, Layout, Result, Schema, Stop, View, ViewSchema, Views};

/// Keeps the rows of V and the clusters of a run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Keep {
    pub run: u32,
}

impl Reduction for Keep {
    const NAME: &'static str = "keep";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Keeps
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        let (v, found) = (partition.latent()?, partition.found()?);
        let row = |row: &[f64]| {
            let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
            let unit = if length > 0.0 { 1.0 / length } else { 0.0 };
            row.iter().map(|v| (v * unit) as f32).collect::<Vec<_>>()
        };
        let rows: Vec<f32> = v.iter_rows().flat_map(row).collect();
        let labels = found.labels.iter().map(|&label| index(label)).collect();
        let run = Run { rows, latent: v.columns(), labels };
        partition.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(self.run, run);
        Ok(())
    }
}

/// Concatenates the rows of V of all kept runs into a table.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stack;

impl Reduction for Stack {
    const NAME: &'static str = "stack";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Sets
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        let blocks = *partition.blocks();
        let mut kept = partition.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let width: usize = kept.values().map(|run| run.latent).sum();
        let mut stacked = vec![0.0_f32; blocks.instances() * width];
        let mut at = 0;
        // One run after the other, so that the memory needed is less than twice the table.
        for Run { rows, latent, .. } in kept.values_mut() {
            let rows = std::mem::take(rows);
            for (stacked, row) in stacked.chunks_exact_mut(width).zip(rows.chunks_exact(*latent)) {
                stacked[at..at + *latent].copy_from_slice(row);
            }
            at += *latent;
        }
        drop(kept);
        let views = Views::new(vec![View::dense("runs", width, stacked)?])?;
        partition.stacked = Some(Scan::shared(Arc::new(views), blocks, &Stop::new()));
        Ok(())
    }
}

/// The schema of the stacked table.
pub(crate) fn schema(instances: usize, columns: usize) -> Result<Schema> {
    Schema::new(Ids::Numbers(instances), vec![ViewSchema::new("runs", columns, Layout::DenseF32).holes(0)])
}

/// The number of instances in each pair of a cluster and a cluster of a run, for pairs with instances. Runs are numbered in their
/// order, without those that were interrupted.
#[derive(Serialize, Deserialize)]
pub(crate) struct CompareRun(pub u32);

/// The cluster, that of the run, the number of instances in both and the first of these.
pub(crate) type Overlap = (u32, u32, u64, u64);

impl Reduction for CompareRun {
    const NAME: &'static str = "compare-run";
    type Partial = Vec<Overlap>;

    fn local(&self, partition: &mut Partition<'_>) -> Result<Vec<Overlap>> {
        let (first, found) = (partition.blocks().first() as u64, partition.found()?);
        let kept = partition.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let run = kept.values().nth(self.0 as usize).ok_or_else(|| unsuitable("the run was not kept"))?;
        let mut overlaps: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        for (i, (&label, &own)) in (first..).zip(found.labels.iter().zip(&run.labels)) {
            overlaps.entry((index(label), own)).or_insert((0, i)).0 += 1;
        }
        Ok(overlaps.into_iter().map(|((label, own), (count, first))| (label, own, count, first)).collect())
    }
}

/// The overlaps of all partitions, in the order in which the pairs of clusters first appear.
pub(crate) fn overlaps(parts: Vec<Overlap>) -> Vec<(usize, usize, u64)> {
    let mut all: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for (label, own, count, first) in parts {
        let overlap = all.entry((label, own)).or_insert((0, first));
        *overlap = (overlap.0 + count, overlap.1.min(first));
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_unstable_by_key(|(_, (_, first))| *first);
    all.into_iter().map(|((label, own), (count, _))| (label as usize, own as usize, count)).collect()
}

/// Sets the confidence of an instance to the share of the runs that agree with its cluster. For each run it has the matched pairs
/// of a cluster and a cluster of that run, in increasing order. Returns the number of instances on which each run agrees.
#[derive(Serialize, Deserialize)]
pub(crate) struct Agree(pub Vec<Vec<(usize, usize)>>);

/// Counts that are added elementwise.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Counts(pub Vec<u64>);

impl Partial for Counts {
    fn merge(mut self, other: Self) -> Result<Self> {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
        Ok(self)
    }
}

impl Reduction for Agree {
    const NAME: &'static str = "agree";
    type Partial = Counts;

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<Counts> {
        let found = partition.found.as_mut().ok_or_else(|| unsuitable("there are no clusters yet"))?;
        let kept = partition.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut agreed = vec![0_usize; found.labels.len()];
        let mut by_run = Vec::with_capacity(self.0.len());
        for (run, matched) in kept.values().zip(&self.0) {
            let mut count = 0;
            for ((&label, &own), agreed) in found.labels.iter().zip(&run.labels).zip(&mut agreed) {
                if matched.binary_search(&(label, own as usize)).is_ok() {
                    *agreed += 1;
                    count += 1;
                }
            }
            by_run.push(count);
        }
        let runs = self.0.len() as f64;
        found.confidence = agreed.into_par_iter().map(|count| count as f64 / runs).collect();
        Ok(Counts(by_run))
    }
}
