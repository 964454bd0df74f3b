//! Agreement of clusters and true classes.

use std::collections::HashMap;

use daimc::metrics::{self, Scores};
use daimc::{Fit, Result};
use serde::Serialize;

use super::classes::{Classes, SHOWN, largest};

/// The agreement of clusters and classes.
#[derive(Clone, Debug, Serialize)]
pub struct Agreement {
    /// The metrics, over the instances whose class is known.
    pub scores: Scores,
    /// Instances whose class is known.
    pub known: usize,
    /// The classes shown: the largest, in natural order.
    pub classes: Vec<String>,
    /// The clusters shown, each in the row of its matched class, if it has one.
    pub clusters: Vec<usize>,
    /// For each cluster shown, the column of its matched class.
    pub matched: Vec<Option<usize>>,
    /// Instances of each cluster (row) and class (column).
    pub counts: Vec<Vec<usize>>,
    /// Instances of each shown cluster whose class is known.
    pub sizes: Vec<usize>,
    /// The total numbers of classes and clusters.
    pub total: (usize, usize),
}

impl Agreement {
    /// `None` if no class is known.
    pub(super) fn of(fit: &Fit, classes: &Classes) -> Result<Option<Self>> {
        let known = classes.of.iter().zip(&fit.labels).filter_map(|(class, &label)| Some(((*class)?, label)));
        let (truth, labels): (Vec<usize>, Vec<usize>) = known.unzip();
        if truth.is_empty() {
            return Ok(None);
        }
        let mut cells: HashMap<(usize, usize), usize> = HashMap::new();
        let class_sizes = classes.sizes();
        let mut cluster_sizes = vec![0; fit.model.options.clusters];
        for (&class, &cluster) in truth.iter().zip(&labels) {
            *cells.entry((class, cluster)).or_default() += 1;
            cluster_sizes[cluster] += 1;
        }
        let pairs = metrics::matching(&truth, &labels)?;
        let shown_classes = largest(&class_sizes);
        let mut clusters: Vec<usize> = Vec::new();
        let mut matched = Vec::new();
        // A cluster is in the row of its class, so that matched pairs are on the diagonal.
        for (column, &class) in shown_classes.iter().enumerate() {
            if let Ok(at) = pairs.binary_search_by_key(&class, |pair| pair.0) {
                clusters.push(pairs[at].1);
                matched.push(Some(column));
            }
        }
        for cluster in largest(&cluster_sizes) {
            if clusters.len() < SHOWN && !clusters.contains(&cluster) {
                clusters.push(cluster);
                matched.push(None);
            }
        }
        let count = |cluster: usize, class: usize| cells.get(&(class, cluster)).copied().unwrap_or(0);
        Ok(Some(Self {
            scores: metrics::scores(&truth, &labels)?,
            known: truth.len(),
            counts: clusters
                .iter()
                .map(|&cluster| shown_classes.iter().map(|&class| count(cluster, class)).collect())
                .collect(),
            sizes: clusters.iter().map(|&cluster| cluster_sizes[cluster]).collect(),
            classes: shown_classes.iter().map(|&class| classes.names[class].clone()).collect(),
            clusters,
            matched,
            total: (class_sizes.len(), cluster_sizes.len()),
        }))
    }
}
