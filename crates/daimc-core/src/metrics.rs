//! Agreement between a clustering and the true classes.
//!
//! All metrics are functions of the contingency table `n_ij`, the number of instances of class `i` in cluster `j`, with
//! row sums `a_i`, column sums `b_j` and total `n`. Labels are names only: any `usize` can denote a class or a cluster,
//! and no metric depends on the choice. Conventions in degenerate cases follow scikit-learn.

use std::collections::{HashMap, HashSet};

use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;
use serde::{Deserialize, Serialize};

use crate::Error;

/// All metrics of one clustering; each is 1 for a perfect one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Clustering accuracy, see [`accuracy`].
    pub ac: f64,
    /// NMI over the arithmetic mean of the entropies, see [`nmi`].
    pub nmi: f64,
    /// NMI over the larger entropy, see [`nmi`].
    pub nmi_max: f64,
    /// NMI over the geometric mean of the entropies, see [`nmi`].
    pub nmi_sqrt: f64,
    /// Adjusted Rand index, see [`ari`].
    pub ari: f64,
    /// Purity, see [`purity`].
    pub purity: f64,
    /// Pairwise F1, see [`pairwise_f`].
    pub f: f64,
}

/// The denominator of [`nmi`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalisation {
    /// `max(H(truth), H(labels))`
    Max,
    /// `(H(truth) + H(labels)) / 2`
    Arithmetic,
    /// `√(H(truth) · H(labels))`
    Geometric,
}

/// Every metric at once, from a single contingency table.
///
/// ```
/// let truth = [0, 0, 0, 1, 1, 1];
/// let labels = [7, 7, 7, 4, 4, 7];
/// let scores = daimc_core::metrics::scores(&truth, &labels)?;
/// assert!((scores.ac - 5.0 / 6.0).abs() < 1e-12);
/// assert!((scores.f - 8.0 / 13.0).abs() < 1e-12);
///
/// // The names of labels do not matter, only which instances are together.
/// let renamed = daimc_core::metrics::scores(&truth, &[9, 9, 9, 2, 2, 2])?;
/// assert_eq!((renamed.ac, renamed.nmi, renamed.ari), (1.0, 1.0, 1.0));
/// # Ok::<(), daimc_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if the slices differ in length,
/// [`Error::EmptyInput`] if they are empty.
pub fn scores(truth: &[usize], labels: &[usize]) -> Result<Scores, Error> {
    let table = Contingency::new(truth, labels)?;
    Ok(Scores {
        ac: table.accuracy(),
        nmi: table.nmi(Normalisation::Arithmetic),
        nmi_max: table.nmi(Normalisation::Max),
        nmi_sqrt: table.nmi(Normalisation::Geometric),
        ari: table.ari(),
        purity: table.purity(),
        f: table.pairwise_f(),
    })
}

/// Clustering accuracy: `AC = max_π Σ_i n_{i,π(i)} / n`.
///
/// `π` pairs each class with at most one cluster and each cluster with at most one
/// class; instances of an unpaired class or cluster count as wrong. The time is
/// cubic in the number of classes and clusters that overlap one another, directly
/// or through others.
///
/// # Errors
/// As [`scores`].
pub fn accuracy(truth: &[usize], labels: &[usize]) -> Result<f64, Error> {
    Ok(Contingency::new(truth, labels)?.accuracy())
}

/// The pairs of class and cluster that [`accuracy`] matches, by class. Pairs without instances are omitted.
///
/// ```
/// let matching = daimc_core::metrics::matching(&[0, 0, 1, 1, 2], &[7, 7, 4, 7, 4])?;
/// assert_eq!(matching, [(0, 7), (1, 4)]);
/// # Ok::<(), daimc_core::Error>(())
/// ```
///
/// # Errors
/// As [`scores`].
pub fn matching(truth: &[usize], labels: &[usize]) -> Result<Vec<(usize, usize)>, Error> {
    let table = Contingency::new(truth, labels)?;
    Ok(table.matching(&distinct(truth.iter().copied()), &distinct(labels.iter().copied())))
}

/// The pairs of a contingency table: classes, clusters and counts, in the order in which the pairs first appear.
pub fn matching_of(pairs: &[(usize, usize, u64)]) -> Vec<(usize, usize)> {
    let classes = distinct(pairs.iter().map(|pair| pair.0));
    Contingency::of(pairs.iter().copied()).matching(&classes, &distinct(pairs.iter().map(|pair| pair.1)))
}

/// Normalised mutual information:
/// `NMI = Σ_ij (n_ij / n) ln(n n_ij / (a_i b_j)) / mean(H(truth), H(labels))`.
///
/// Papers differ in the mean; say which. One cluster on both sides scores 1, on one
/// side only 0.
///
/// # Errors
/// As [`scores`].
pub fn nmi(truth: &[usize], labels: &[usize], by: Normalisation) -> Result<f64, Error> {
    Ok(Contingency::new(truth, labels)?.nmi(by))
}

/// Adjusted Rand index: `ARI = (S − E) / ((A + B) / 2 − E)`, `E = A B / C(n, 2)`.
///
/// `S = Σ_ij C(n_ij, 2)`, `A = Σ_i C(a_i, 2)` and `B = Σ_j C(b_j, 2)` count the pairs of instances together in both, in
/// the classes, in the clusters. The expectation for a random clustering is 0, so scores can be negative.
///
/// # Errors
/// As [`scores`].
pub fn ari(truth: &[usize], labels: &[usize]) -> Result<f64, Error> {
    Ok(Contingency::new(truth, labels)?.ari())
}

/// Purity: `Σ_j max_i n_ij / n`.
///
/// It favours many clusters: one per instance scores 1.
///
/// # Errors
/// As [`scores`].
pub fn purity(truth: &[usize], labels: &[usize]) -> Result<f64, Error> {
    Ok(Contingency::new(truth, labels)?.purity())
}

/// Pairwise F1: `F = 2 S / (A + B)`, the pairs of [`ari`] without its correction.
///
/// Precision is `S / B`, recall `S / A`. If no pair is together on either side, the score is 1.
///
/// # Errors
/// As [`scores`].
pub fn pairwise_f(truth: &[usize], labels: &[usize]) -> Result<f64, Error> {
    Ok(Contingency::new(truth, labels)?.pairwise_f())
}

/// The one-to-one assignment of rows to columns with the largest total weight.
///
/// `min(rows, cols)` pairs are always made, even where a weight is negative; the
/// rows left over are `None`. Sums of `min(rows, cols)²` weights must fit an `i64`.
/// The time is `O(min(rows, cols)² · max(rows, cols))`.
pub fn best_assignment(rows: usize, cols: usize, weight: impl Fn(usize, usize) -> i64) -> Vec<Option<usize>> {
    if rows == 0 || cols == 0 {
        return vec![None; rows];
    }
    // `kuhn_munkres` leaves no row unassigned, so the shorter side goes in the rows.
    if rows <= cols {
        let weights = Matrix::from_fn(rows, cols, |(row, col)| weight(row, col));
        kuhn_munkres(&weights).1.into_iter().map(Some).collect()
    } else {
        let weights = Matrix::from_fn(cols, rows, |(col, row)| weight(row, col));
        let mut assigned = vec![None; rows];
        for (col, row) in kuhn_munkres(&weights).1.into_iter().enumerate() {
            assigned[row] = Some(col);
        }
        assigned
    }
}

/// A non-zero entry `n_ij` of the contingency table.
#[derive(Debug, Clone, Copy)]
struct Cell {
    class: usize,
    cluster: usize,
    count: u64,
}

/// The contingency table, sparse: there are never more cells than instances,
/// however many classes and clusters there are.
pub struct Contingency {
    /// By class then cluster, so that floating-point sums have one order.
    cells: Vec<Cell>,
    /// `a_i`
    classes: Vec<u64>,
    /// `b_j`
    clusters: Vec<u64>,
    /// `n`
    total: u64,
}

impl Contingency {
    /// Counts the instances by class and cluster.
    ///
    /// # Errors
    /// When the lengths differ or are 0.
    pub fn new(truth: &[usize], labels: &[usize]) -> Result<Self, Error> {
        if truth.len() != labels.len() {
            return Err(Error::LengthMismatch {
                what: "labels".into(),
                expected: truth.len(),
                found: labels.len(),
            });
        }
        if truth.is_empty() {
            return Err(Error::EmptyInput { what: "labels".into() });
        }

        Ok(Self::of(truth.iter().zip(labels).map(|(&class, &cluster)| (class, cluster, 1))))
    }

    /// Creates the table of pairs of a class and a cluster, each with its number of instances.
    fn of(pairs: impl Iterator<Item = (usize, usize, u64)>) -> Self {
        let mut class_names = HashMap::new();
        let mut cluster_names = HashMap::new();
        let mut counts = HashMap::new();
        for (class, cluster, count) in pairs {
            let class = index_of(class, &mut class_names);
            let cluster = index_of(cluster, &mut cluster_names);
            *counts.entry((class, cluster)).or_insert(0) += count;
        }

        let mut cells: Vec<Cell> =
            counts.into_iter().map(|((class, cluster), count)| Cell { class, cluster, count }).collect();
        cells.sort_unstable_by_key(|cell| (cell.class, cell.cluster));

        let mut classes = vec![0; class_names.len()];
        let mut clusters = vec![0; cluster_names.len()];
        for cell in &cells {
            classes[cell.class] += cell.count;
            clusters[cell.cluster] += cell.count;
        }
        let total = classes.iter().sum();
        Self { cells, classes, clusters, total }
    }

    /// The pairs of the assignment that covers most instances, by class, given the names in order of first appearance.
    fn matching(&self, classes: &[usize], clusters: &[usize]) -> Vec<(usize, usize)> {
        let cells = self.components().into_iter().flat_map(|cells| best_match(&cells));
        let mut pairs: Vec<_> = cells.map(|cell| (classes[cell.class], clusters[cell.cluster])).collect();
        pairs.sort_unstable();
        pairs
    }

    fn accuracy(&self) -> f64 {
        let matched = self.components().into_iter().flat_map(|cells| best_match(&cells));
        ratio(matched.map(|cell| cell.count).sum(), self.total)
    }

    fn nmi(&self, by: Normalisation) -> f64 {
        if self.classes.len() == 1 && self.clusters.len() == 1 {
            return 1.0;
        }
        let mutual = self.mutual_information();
        if mutual <= 0.0 {
            return 0.0;
        }
        let (truth, labels) = (self.entropy(&self.classes), self.entropy(&self.clusters));
        let normaliser = match by {
            Normalisation::Max => truth.max(labels),
            Normalisation::Arithmetic => f64::midpoint(truth, labels),
            Normalisation::Geometric => (truth * labels).sqrt(),
        };
        (mutual / normaliser).min(1.0)
    }

    /// `I = Σ_ij (n_ij / n) ln(n n_ij / (a_i b_j))`
    pub fn mutual_information(&self) -> f64 {
        // The products are exact integers: equal ones give ln 1 = 0, so independent
        // labels score 0 and not 1e-17; and a cluster equal to its class gives the
        // very term of `entropy`, so equal partitions score 1 and not 0.9999.
        let term = |cell: &Cell| {
            let observed = u128::from(self.total) * u128::from(cell.count);
            let expected = u128::from(self.classes[cell.class]) * u128::from(self.clusters[cell.cluster]);
            ratio(cell.count, self.total) * (float(observed) / float(expected)).ln()
        };
        self.cells.iter().map(term).sum()
    }

    /// `H = Σ_i (a_i / n) ln(n / a_i)`
    fn entropy(&self, counts: &[u64]) -> f64 {
        counts.iter().map(|&count| ratio(count, self.total) * ratio(self.total, count).ln()).sum()
    }

    fn ari(&self) -> f64 {
        let pairs = self.pairs();
        let only_truth = pairs.truth - pairs.both;
        let only_labels = pairs.labels - pairs.both;
        // Equal partitions. Also the one way for the denominator to be zero.
        if only_truth == 0 && only_labels == 0 {
            return 1.0;
        }
        let neither = pairs.all - pairs.both - only_truth - only_labels;

        let [both, only_truth, only_labels, neither] =
            [pairs.both, only_truth, only_labels, neither].map(float);
        2.0 * (both * neither - only_truth * only_labels)
            / ((both + only_truth) * (only_truth + neither) + (both + only_labels) * (only_labels + neither))
    }

    fn purity(&self) -> f64 {
        let mut largest = vec![0; self.clusters.len()];
        for cell in &self.cells {
            largest[cell.cluster] = cell.count.max(largest[cell.cluster]);
        }
        ratio(largest.into_iter().sum(), self.total)
    }

    fn pairwise_f(&self) -> f64 {
        let pairs = self.pairs();
        let together = pairs.truth + pairs.labels;
        if together == 0 {
            return 1.0;
        }
        float(2 * pairs.both) / float(together)
    }

    fn pairs(&self) -> Pairs {
        let within = |count: u64| u128::from(count) * u128::from(count - 1) / 2;
        Pairs {
            both: self.cells.iter().map(|cell| within(cell.count)).sum(),
            truth: self.classes.iter().map(|&count| within(count)).sum(),
            labels: self.clusters.iter().map(|&count| within(count)).sum(),
            all: within(self.total),
        }
    }

    /// The cells, split into groups that share neither a class nor a cluster.
    ///
    /// A pair outside every group has weight zero, so the best assignment is the union of the best assignments of the
    /// groups. A dense table of all labels (one per instance, say) is thus avoided if the groups are small.
    fn components(&self) -> Vec<Vec<Cell>> {
        // Union–find over the classes, then the clusters.
        let mut parent: Vec<usize> = (0..self.classes.len() + self.clusters.len()).collect();
        for cell in &self.cells {
            let class = root(cell.class, &mut parent);
            let cluster = root(self.classes.len() + cell.cluster, &mut parent);
            parent[cluster] = class;
        }
        // A class is the root of its group: clusters are only ever hung below one.
        let mut groups = vec![Vec::new(); self.classes.len()];
        for &cell in &self.cells {
            groups[root(cell.class, &mut parent)].push(cell);
        }
        groups
    }
}

/// Pairs of instances in the same group: on both sides, in the classes, in the
/// clusters; and all the pairs there are.
struct Pairs {
    both: u128,
    truth: u128,
    labels: u128,
    all: u128,
}

/// The cells of the one-to-one assignment that covers most instances.
fn best_match(cells: &[Cell]) -> Vec<Cell> {
    let mut classes = HashMap::new();
    let mut clusters = HashMap::new();
    for cell in cells {
        index_of(cell.class, &mut classes);
        index_of(cell.cluster, &mut clusters);
    }
    let width = clusters.len();
    let mut dense = vec![0; classes.len() * width];
    for cell in cells {
        dense[classes[&cell.class] * width + clusters[&cell.cluster]] = cell.count;
    }

    let assigned = best_assignment(classes.len(), width, |class, cluster| {
        i64::try_from(dense[class * width + cluster]).expect("a slice has fewer than 2^63 values")
    });
    let paired = |cell: &&Cell| assigned[classes[&cell.class]] == Some(clusters[&cell.cluster]);
    cells.iter().filter(paired).copied().collect()
}

/// The names, in order of first appearance.
fn distinct(names: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut seen = HashSet::new();
    names.filter(|&name| seen.insert(name)).collect()
}

/// The index of a name among those seen so far, in order of first appearance.
fn index_of(name: usize, names: &mut HashMap<usize, usize>) -> usize {
    let next = names.len();
    *names.entry(name).or_insert(next)
}

/// The root of a node's tree, halving the path to it on the way.
fn root(mut node: usize, parent: &mut [usize]) -> usize {
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}

fn ratio(numerator: u64, denominator: u64) -> f64 {
    float(numerator.into()) / float(denominator.into())
}

/// The nearest `f64`: exact up to 2^53, within a few units in the last place above.
fn float(integer: u128) -> f64 {
    integer.to_be_bytes().into_iter().fold(0.0, |value, byte| value * 256.0 + f64::from(byte))
}

#[cfg(test)]
mod tests;
