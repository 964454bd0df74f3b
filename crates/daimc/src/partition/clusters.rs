//! Reductions over the clusters of the instances.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::rows::{own_of, own_range};
use super::{Effect, Found, Partition, Reduction, TableId};
use crate::cluster_sums::ClusterSums;
use crate::confidence::confidence;
use crate::missingness::Lacking;
use daimc_core::forest::Forest;
use daimc_core::index::index;
use daimc_core::kmeans::{self, Members};
use daimc_core::scaled_view::{Parts, ScaledView};
use daimc_core::table::{Partial, unsuitable};
use daimc_core::{Matrix, Result};

/// The number of instances of each cluster, and its first instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sizes {
    pub sizes: Vec<usize>,
    /// `usize::MAX` for a cluster without instances.
    pub first: Vec<usize>,
}

impl Sizes {
    /// From labels, the first of which is that of instance `first`.
    pub fn of(labels: &[usize], clusters: usize, first: usize) -> Self {
        let mut own = Self { sizes: vec![0; clusters], first: vec![usize::MAX; clusters] };
        for (i, &label) in (first..).zip(labels) {
            own.sizes[label] += 1;
            own.first[label] = own.first[label].min(i);
        }
        own
    }
}

impl Partial for Sizes {
    fn merge(mut self, other: Self) -> Result<Self> {
        self.sizes.iter_mut().zip(other.sizes).for_each(|(own, other)| *own += other);
        self.first.iter_mut().zip(other.first).for_each(|(own, other)| *own = (*own).min(other));
        Ok(self)
    }
}

/// Assigns each instance to the centre that is nearest to its row of a table.
#[derive(Serialize, Deserialize)]
pub(crate) struct Assign {
    pub table: TableId,
    pub scaled_view: Parts,
    /// One in each column.
    pub centres: Matrix,
}

impl Reduction for Assign {
    const NAME: &'static str = "assign";
    type Partial = Sizes;

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<Sizes> {
        let rows = partition.table(self.table)?;
        let scaled_view = ScaledView::placed(&rows, 0, &self.scaled_view)?;
        let kmeans::Assignment { labels, confidence } =
            kmeans::assign(&rows, 0, &scaled_view, &self.centres)?;
        let labels: Vec<usize> = labels.par_iter().map(|&label| label as usize).collect();
        let sizes = Sizes::of(&labels, self.centres.columns(), partition.blocks().first());
        partition.found = Some(Found { labels, confidence });
        Ok(sizes)
    }
}

/// Renumbers the clusters.
#[derive(Serialize, Deserialize)]
pub(crate) struct Renumber(pub Vec<usize>);

impl Reduction for Renumber {
    const NAME: &'static str = "renumber";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        let found = partition.found.as_mut().ok_or_else(|| unsuitable("there are no clusters yet"))?;
        for label in &mut found.labels {
            let number = self.0.get(*label).ok_or_else(|| unsuitable("a cluster has no number"))?;
            *label = *number;
        }
        Ok(())
    }
}

/// Sets the clusters, given for all instances.
#[derive(Serialize, Deserialize)]
pub(crate) struct Adopt {
    pub labels: Vec<u32>,
    pub confidence: Vec<f64>,
}

impl Reduction for Adopt {
    const NAME: &'static str = "adopt";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Sets
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        let own = partition.blocks().first()..partition.blocks().first() + partition.instances();
        let (labels, confidence) = self
            .labels
            .get(own.clone())
            .zip(self.confidence.get(own))
            .ok_or_else(|| unsuitable("there are too few labels"))?;
        let labels = labels.iter().map(|&label| label as usize).collect();
        partition.found = Some(Found { labels, confidence: confidence.to_vec() });
        Ok(())
    }
}

/// Sums of the rows of V over the instances of each of this many clusters.
#[derive(Serialize, Deserialize)]
pub(crate) struct SumClusters(pub usize);

impl Reduction for SumClusters {
    const NAME: &'static str = "sum-clusters";
    type Partial = Forest<ClusterSums>;

    fn local(&self, partition: &mut Partition<'_>) -> Result<Self::Partial> {
        let v = partition.latent()?;
        Ok(ClusterSums::share(&v, partition.labels(self.0)?, self.0, *partition.blocks()))
    }
}

/// Sums of the scaled rows of V over the instances of each of this many clusters, for their means.
#[derive(Serialize, Deserialize)]
pub(crate) struct SumMembers {
    pub scaled_view: Parts,
    pub clusters: usize,
}

impl Reduction for SumMembers {
    const NAME: &'static str = "sum-members";
    type Partial = Forest<Members>;

    fn local(&self, partition: &mut Partition<'_>) -> Result<Self::Partial> {
        let rows = partition.table(TableId::Latent)?;
        let scaled_view = ScaledView::placed(&rows, 0, &self.scaled_view)?;
        kmeans::members(&rows, &scaled_view, partition.labels(self.clusters)?, self.clusters)
    }
}

/// The clusters of some instances, which are in increasing order: those of each partition by the first of its instances.
#[derive(Serialize, Deserialize)]
pub(crate) struct LabelsOf(pub Vec<u32>);

impl Reduction for LabelsOf {
    const NAME: &'static str = "labels-of";
    type Partial = Vec<(u32, Vec<u32>)>;

    fn local(&self, partition: &mut Partition<'_>) -> Result<Self::Partial> {
        let Some((first, own)) = own_of(partition.blocks(), &self.0) else { return Ok(Vec::new()) };
        let labels = &partition.found()?.labels;
        Ok(vec![(first, own.iter().map(|&i| index(labels[i as usize])).collect())])
    }
}

/// The clusters and the confidence of a range of instances, by partition as in [`LabelsOf`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Confidence(pub std::ops::Range<usize>);

impl Reduction for Confidence {
    const NAME: &'static str = "confidence";
    type Partial = Vec<(u32, (Vec<u32>, Vec<f64>))>;

    fn local(&self, partition: &mut Partition<'_>) -> Result<Self::Partial> {
        let Some((first, own)) = own_range(partition.blocks(), &self.0) else { return Ok(Vec::new()) };
        let Found { labels, confidence } = partition.found()?;
        let labels = labels[own.clone()].iter().map(|&label| index(label)).collect();
        Ok(vec![(first, (labels, confidence[own].to_vec()))])
    }
}

/// The number of instances of each of this many clusters that lack each view.
#[derive(Serialize, Deserialize)]
pub(crate) struct CountMissing(pub usize);

impl Reduction for CountMissing {
    const NAME: &'static str = "count-missing";
    type Partial = Lacking;

    fn local(&self, partition: &mut Partition<'_>) -> Result<Lacking> {
        let rows = partition.table(TableId::Prepared)?;
        Ok(Lacking::of(rows.schema(), partition.labels(self.0)?, self.0))
    }
}

impl Partial for Lacking {
    fn merge(mut self, other: Self) -> Result<Self> {
        self.add(&other);
        Ok(self)
    }
}

/// Computes the confidence of the instances from their margins and the reproducibility of the clusters: the last step of a fit.
#[derive(Serialize, Deserialize)]
pub(crate) struct Finish {
    pub reproducibility: Option<f64>,
}

impl Reduction for Finish {
    const NAME: &'static str = "finish";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        let found = partition.found.as_mut().ok_or_else(|| unsuitable("there are no clusters yet"))?;
        found.confidence = confidence(std::mem::take(&mut found.confidence), self.reproducibility);
        Ok(())
    }
}

impl Partition<'_> {
    /// The clusters of the instances, which must be this many.
    fn labels(&self, clusters: usize) -> Result<&[usize]> {
        let labels = &self.found()?.labels;
        let fits = labels.iter().all(|label| *label < clusters);
        if fits { Ok(labels) } else { Err(unsuitable("the labels belong to other clusters")) }
    }
}
