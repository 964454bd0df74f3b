//! Sizes, confidence and silhouettes of the clusters.

use daimc::{Fit, Schema};
use rayon::prelude::*;
use serde::Serialize;

use super::latent::scaled_rows;
use super::sample::stratified;
use super::silhouette::silhouettes;
use super::spread::Spread;
use crate::numbers::largest;

/// The clusters.
#[derive(Clone, Debug, Serialize)]
pub struct Clusters {
    /// Each cluster, by number.
    pub clusters: Vec<Cluster>,
    /// The mean silhouette of all instances, estimated from the sample.
    pub silhouette: f64,
    /// The number of instances in the sample.
    pub silhouettes_from: usize,
}

/// One cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Cluster {
    /// Its number.
    pub number: usize,
    /// The number of its instances.
    pub size: usize,
    /// The confidence of its instances.
    pub confidence: Option<Spread>,
    /// The silhouettes of its instances in the sample.
    pub silhouette: Option<Spread>,
    /// The same silhouettes in descending order.
    pub silhouettes: Vec<f64>,
    /// The mean number of views in which its instances are present.
    pub views_seen: f64,
}

/// The maximum size of the sample for silhouettes.
pub const SILHOUETTES: usize = 2000;

impl Clusters {
    /// Summarises the clusters; `members` are the instances of each cluster.
    pub(super) fn of(schema: &Schema, fit: &Fit, members: &[Vec<usize>]) -> Self {
        let count = members.len();
        let sample = stratified(members, SILHOUETTES);
        let labels: Vec<usize> = sample.iter().map(|&i| fit.labels[i]).collect();
        let mut by_cluster = vec![Vec::new(); count];
        for (value, &label) in silhouettes(&scaled_rows(fit, &sample), &labels, count).iter().zip(&labels) {
            by_cluster[label].push(*value);
        }
        let views_of = |&i: &usize| schema.views().filter(|view| view.shows(i)).count();
        let clusters: Vec<Cluster> = members
            .par_iter()
            .zip(by_cluster)
            .enumerate()
            .map(|(number, (members, silhouettes))| {
                let size = members.len();
                let seen: usize = members.iter().map(views_of).sum();
                Cluster {
                    number,
                    size,
                    views_seen: if size == 0 { 0.0 } else { seen as f64 / size as f64 },
                    confidence: Spread::of(members.iter().map(|&i| fit.confidence[i]).collect()),
                    silhouette: Spread::of(silhouettes.clone()),
                    silhouettes: descending(silhouettes),
                }
            })
            .collect();
        // The sample over-represents small clusters, so that means are weighted by cluster size.
        let weighted = |cluster: &Cluster| cluster.silhouette.map_or(0.0, |s| s.mean * cluster.size as f64);
        let silhouette = clusters.iter().map(weighted).sum::<f64>() / fit.labels.len().max(1) as f64;
        Self { clusters, silhouette, silhouettes_from: sample.len() }
    }

    /// The `limit` largest clusters, in the order of their numbers.
    pub(crate) fn largest(&self, limit: usize) -> Vec<&Cluster> {
        let sizes: Vec<usize> = self.clusters.iter().map(|cluster| cluster.size).collect();
        largest(&sizes, limit).into_iter().map(|number| &self.clusters[number]).collect()
    }
}

fn descending(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(|a, b| b.total_cmp(a));
    values
}
