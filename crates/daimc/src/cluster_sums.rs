//! Sums over the instances of each cluster.

use serde::{Deserialize, Serialize};

use daimc_core::Matrix;
use daimc_core::blocks::Blocks;
use daimc_core::forest::{Forest, Merge};
use daimc_core::parallel::ordered;

/// The mean row of V of each cluster, one per column, and the cluster sizes.
pub(crate) fn mean_rows(latent: &Matrix, labels: &[usize], clusters: usize) -> (Matrix, Vec<usize>) {
    let empty = ClusterSums::new(clusters, latent.columns());
    let sums = ClusterSums::share(latent, labels, clusters, Blocks::all(labels.len()));
    sums.whole().unwrap_or(empty).means()
}

/// Sums over the instances of each cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClusterSums {
    /// Sums of rows of V: clusters × latent.
    rows: Matrix,
    pub sizes: Vec<usize>,
}

impl ClusterSums {
    pub fn new(clusters: usize, columns: usize) -> Self {
        let rows = Matrix::zeros(clusters, columns);
        Self { rows, sizes: vec![0; clusters] }
    }

    /// The sums over the instances of a part, leaf by leaf.
    pub fn share(latent: &Matrix, labels: &[usize], clusters: usize, blocks: Blocks) -> Forest<Self> {
        let new = || Self::new(clusters, latent.columns());
        let mut forest = Forest::new(blocks.leaves());
        let (mut sums, mut starts) = (new(), blocks.ranges().map(|block| block.start));
        let added = ordered(
            blocks.ranges(),
            new,
            |block, own| {
                *own = new();
                for i in block {
                    let label = labels[i];
                    own.sizes[label] += 1;
                    let sum = own.rows.row_mut(label).iter_mut();
                    sum.zip(latent.row(i)).for_each(|(sum, value)| *sum += value);
                }
                Ok(())
            },
            |own| {
                sums.merge(own.clone());
                if let Some(leaf) = starts.next().and_then(|start| blocks.ends_leaf(start)) {
                    forest.plant(0, leaf, std::mem::replace(&mut sums, new()));
                }
            },
        );
        let Ok::<(), std::convert::Infallible>(()) = added;
        forest
    }

    /// The mean row of each cluster, one per column, and the sizes.
    pub fn means(self) -> (Matrix, Vec<usize>) {
        let factors: Vec<f64> = self.sizes.iter().map(|&size| 1.0 / size.max(1) as f64).collect();
        let mut means =
            Matrix::from_fn(self.rows.columns(), self.sizes.len(), |k, label| self.rows[(label, k)]);
        means.scale_columns(&factors);
        (means, self.sizes)
    }
}

impl Merge for ClusterSums {
    fn merge(&mut self, right: Self) {
        self.rows.values_mut().iter_mut().zip(right.rows.values()).for_each(|(own, right)| *own += right);
        self.sizes.iter_mut().zip(right.sizes).for_each(|(own, right)| *own += right);
    }
}
