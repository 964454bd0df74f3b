//! The association between clusters and missing views.
//!
//! If views are missing at random there should be none: a cluster of instances that lack the same view is then an artefact. In
//! real data there may be one, because the result of one measurement can decide about another. The data cannot distinguish the
//! two cases, but they show whether there is an association.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use daimc_core::Schema;

/// The number of permutations for the comparison, and the maximum number of permuted instances.
const PERMUTATIONS: usize = 499;
const SAMPLE: usize = 50_000;

/// The p-value and the difference of shares that lead to a warning.
const SIGNIFICANT: f64 = 0.01;
const NOTABLE: f64 = 0.15;

/// The minimum size of a cluster that a warning names.
const LEAST: usize = 10;

/// The association between the clusters and the presence patterns (which views an instance has).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Missingness {
    /// The mutual information of clusters and presence patterns in nats, minus its mean over permutations of the patterns; about
    /// 0 without an association. Estimated on a sample if there are many instances.
    pub information: f64,
    /// The p-value of the permutation test: the share of the permutations, including the data, whose mutual information is at
    /// least as large.
    pub p_value: f64,
    /// The cluster whose share of missing rows in a view differs most from that of all instances.
    pub most: Option<Concentration>,
}

/// A cluster in which a view is missing more, or less, often than in all instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Concentration {
    /// The cluster.
    pub cluster: usize,
    /// The view's name.
    pub view: String,
    /// The share of the cluster's instances that lack the view.
    pub in_cluster: f64,
    /// The share of all instances that lack it.
    pub overall: f64,
}

impl Concentration {
    fn difference(&self) -> f64 {
        (self.in_cluster - self.overall).abs()
    }
}

impl Default for Missingness {
    /// No association.
    fn default() -> Self {
        Self { information: 0.0, p_value: 1.0, most: None }
    }
}

impl Missingness {
    /// Tests the association of clusters with presence patterns.
    pub(crate) fn of(schema: &Schema, labels: &[usize], clusters: usize, seed: u64) -> Self {
        let some = |chosen: &[usize]| Ok::<_, Infallible>(chosen.iter().map(|&i| labels[i]).collect());
        let Ok(found) =
            Self::asked(schema, clusters, seed, some, || Ok(Lacking::of(schema, labels, clusters)));
        found
    }

    /// The same, with functions that return the clusters of some instances and the missing counts of all.
    pub(crate) fn asked<E>(
        schema: &Schema,
        clusters: usize,
        seed: u64,
        labels_of: impl FnOnce(&[usize]) -> Result<Vec<usize>, E>,
        lacking: impl FnOnce() -> Result<Lacking, E>,
    ) -> Result<Self, E> {
        let (patterns, instances) = (patterns(schema), schema.instances());
        let kinds = patterns.iter().max().map_or(0, |last| *last as usize + 1);
        if kinds < 2 {
            return Ok(Self::default());
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::MAX / 3);
        let chosen: Vec<usize> = if instances > SAMPLE {
            (0..SAMPLE).map(|_| rng.random_range(0..instances)).collect()
        } else {
            (0..instances).collect()
        };
        let labels_of = labels_of(&chosen)?;
        let patterns_of: Vec<u32> = chosen.iter().map(|&i| patterns[i]).collect();
        let of = |patterns: &[u32]| information(&labels_of, clusters, patterns, kinds);
        let own = of(&patterns_of);
        let permuted: Vec<f64> = (0..PERMUTATIONS)
            .into_par_iter()
            .map_init(
                || patterns_of.clone(),
                |permuted, number| {
                    let mut rng = ChaCha8Rng::seed_from_u64(seed);
                    rng.set_stream(u64::MAX / 3 + 1 + number as u64);
                    permuted.copy_from_slice(&patterns_of);
                    permuted.shuffle(&mut rng);
                    of(permuted)
                },
            )
            .collect();
        // Sums of the same cells in another order differ in their last bits.
        let as_large = permuted.iter().filter(|other| **other >= own - 1e-12).count();
        Ok(Self {
            information: own - permuted.iter().sum::<f64>() / PERMUTATIONS as f64,
            p_value: (1 + as_large) as f64 / (1 + PERMUTATIONS) as f64,
            most: lacking()?.most(schema),
        })
    }

    /// Whether the association is large enough for a warning.
    #[must_use]
    pub fn notable(&self) -> bool {
        let difference = self.most.as_ref().map_or(0.0, Concentration::difference);
        self.p_value <= SIGNIFICANT && difference >= NOTABLE
    }

    /// The warning, in a sentence or two; `None` without a notable association.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let most = self.most.as_ref().filter(|_| self.notable())?;
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        Some(format!(
            "clusters are associated with missing views (p = {:.3}): {} of cluster {} lack view '{}', of all \
             instances {}. This may be real, if what is missing depends on the class, or an artefact: check the \
             clusters of the instances that have every view",
            self.p_value,
            percent(most.in_cluster),
            most.cluster,
            most.view,
            percent(most.overall),
        ))
    }

    /// Whether a fit would warn of these clusters and not of others of the same instances.
    pub(crate) fn exceeds(&self, other: &Self) -> bool {
        self.notable() && !other.notable()
    }
}

/// The number of instances that one thread processes at a time.
const BLOCK: usize = 1 << 14;

/// The number of each instance's presence pattern, in order of first appearance.
fn patterns(schema: &Schema) -> Vec<u32> {
    let words = schema.len().div_ceil(64).max(1);
    let mut bits = vec![0_u64; schema.instances() * words];
    bits.par_chunks_mut(words).enumerate().for_each(|(i, bits)| {
        let shown = (0..schema.len()).filter(|view| schema.view(*view).shows(i));
        shown.for_each(|v| bits[v / 64] |= 1 << (v % 64));
    });
    // The patterns of each block, in order of their first appearance in it.
    let distinct = |block| {
        let mut seen = HashSet::new();
        <[u64]>::chunks_exact(block, words).filter(|pattern| seen.insert(*pattern)).collect::<Vec<_>>()
    };
    let mut known = HashMap::new();
    for pattern in bits.par_chunks(words * BLOCK).flat_map_iter(distinct).collect::<Vec<_>>() {
        let next = known.len() as u32;
        known.entry(pattern).or_insert(next);
    }
    bits.par_chunks(words).map(|pattern| known[pattern]).collect()
}

/// The mutual information of clusters and patterns.
fn information(labels: &[usize], clusters: usize, patterns: &[u32], kinds: usize) -> f64 {
    let mut table = vec![0.0; clusters * kinds];
    let (mut rows, mut columns) = (vec![0.0; clusters], vec![0.0; kinds]);
    for (&label, &pattern) in labels.iter().zip(patterns) {
        table[label * kinds + pattern as usize] += 1.0;
        rows[label] += 1.0;
        columns[pattern as usize] += 1.0;
    }
    let all = labels.len() as f64;
    let mut sum = 0.0;
    for (cells, row) in table.chunks_exact(kinds).zip(&rows) {
        for (cell, column) in cells.iter().zip(&columns).filter(|(cell, _)| **cell > 0.0) {
            sum += cell / all * (cell * all / (row * column)).ln();
        }
    }
    sum
}

/// The size of each cluster, and the number of its instances without each view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lacking {
    sizes: Vec<usize>,
    by_view: Vec<Vec<usize>>,
}

impl Lacking {
    pub fn of(schema: &Schema, labels: &[usize], clusters: usize) -> Self {
        // The number of instances of each cluster for which `counts` is true.
        let count = |counts: &(dyn Fn(usize) -> bool + Sync)| {
            let of_block = |(block, labels): (usize, &[usize])| {
                let mut sizes = vec![0_usize; clusters];
                let counted = labels.iter().enumerate().filter(|(i, _)| counts(block * BLOCK + i));
                counted.for_each(|(_, &label)| sizes[label] += 1);
                sizes
            };
            let sum = |mut a: Vec<usize>, b: Vec<usize>| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                a
            };
            labels.par_chunks(BLOCK).enumerate().map(of_block).reduce(|| vec![0; clusters], sum)
        };
        let by_view = schema.views().map(|view| count(&|i| !view.shows(i))).collect();
        Self { sizes: count(&|_| true), by_view }
    }

    /// Adds the counts of other instances.
    pub fn add(&mut self, other: &Self) {
        let own = self.by_view.iter_mut().chain([&mut self.sizes]);
        for (own, other) in own.zip(other.by_view.iter().chain([&other.sizes])) {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        }
    }

    /// The cluster that differs most from all instances.
    fn most(&self, schema: &Schema) -> Option<Concentration> {
        let Self { sizes, by_view } = self;
        let all = sizes.iter().sum::<usize>() as f64;
        let mut found: Option<Concentration> = None;
        for (view, lacking) in by_view.iter().enumerate() {
            let overall = lacking.iter().sum::<usize>() as f64 / all;
            for cluster in (0..sizes.len()).filter(|k| sizes[*k] >= LEAST) {
                let in_cluster = lacking[cluster] as f64 / sizes[cluster] as f64;
                let own = Concentration { cluster, view: schema.view_name(view).into(), in_cluster, overall };
                if found.as_ref().is_none_or(|most| own.difference() > most.difference()) {
                    found = Some(own);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate;
    use daimc_core::{Source, View, Views};

    const INSTANCES: usize = 600;

    /// Two views with arbitrary values.
    fn source(present: &[Vec<bool>]) -> Views<'static> {
        let view = |v: usize| {
            let values = vec![1.0; INSTANCES];
            View::dense(format!("view {v}"), 1, values).unwrap().mask(&present[v]).unwrap()
        };
        Views::new((0..present.len()).map(view).collect()).unwrap()
    }

    #[test]
    fn clusters_independent_of_missingness_are_like_permuted_ones() {
        let mut significant = 0;
        for seed in 0..40 {
            let source = source(&simulate::missing(INSTANCES, &[0.3, 0.4], seed).unwrap());
            let labels: Vec<usize> = (0..INSTANCES).map(|i| i % 5).collect();
            let found = Missingness::of(source.schema(), &labels, 5, seed);
            assert!(found.information.abs() < 0.02 && !found.notable(), "{found:?}");
            significant += usize::from(found.p_value <= 0.1);
        }
        // One tenth of them, by chance.
        assert!(significant <= 10, "{significant}");
    }

    #[test]
    fn a_cluster_of_instances_that_lack_a_view_is_reported() {
        let labels: Vec<usize> = (0..INSTANCES).map(|i| i % 3).collect();
        let lacks = |i: usize| i.is_multiple_of(if i % 3 == 1 { 5 } else { 10 }) != (i % 3 == 1);
        let source = source(&[vec![true; INSTANCES], (0..INSTANCES).map(|i| !lacks(i)).collect()]);
        let found = Missingness::of(source.schema(), &labels, 3, 0);
        assert!(found.notable() && found.p_value < 0.005 && found.information > 0.1, "{found:?}");
        let most = found.most.as_ref().unwrap();
        assert_eq!((most.cluster, most.view.as_str()), (1, "view 1"));
        assert!((most.in_cluster - 0.8).abs() < 1e-12);
        let warning = found.warning().unwrap();
        assert!(
            warning.contains("80 % of cluster 1 lack view 'view 1'") && warning.contains("33 %"),
            "{warning}"
        );
        assert!(found.exceeds(&Missingness { p_value: 0.2, ..found.clone() }));
        // The weaker of two associations is not better if both lead to a warning.
        assert!(!found.exceeds(&Missingness { information: 0.01, ..found.clone() }));
    }

    #[test]
    fn complete_views_have_no_association() {
        let source = source(&vec![vec![true; INSTANCES]; 2]);
        let labels: Vec<usize> = (0..INSTANCES).map(|i| i % 3).collect();
        let found = Missingness::of(source.schema(), &labels, 3, 0);
        assert_eq!((found.information, found.p_value, found.warning()), (0.0, 1.0, None));
    }

    #[test]
    fn the_information_is_that_of_the_definition() {
        let (labels, patterns) = ([0, 0, 0, 1, 1, 1, 1, 0], [0, 0, 1, 1, 1, 1, 0, 0]);
        // Cells 3, 1, 1, 3 of 8; margins are halves.
        let expected = 2.0 * (3.0 / 8.0 * (1.5_f64).ln() + 1.0 / 8.0 * (0.5_f64).ln());
        assert!((information(&labels, 2, &patterns, 2) - expected).abs() < 1e-12);
    }
}
