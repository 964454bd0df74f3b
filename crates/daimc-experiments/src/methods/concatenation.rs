//! K-means on the concatenated views.

use std::ops::ControlFlow;

use daimc::{Matrix, Result, Scale, Source};

use crate::methods::data::{Filled, check_clusters, cluster};
use crate::methods::{Clustering, Method};

/// K-means on the concatenated views, with missing rows filled with the mean of the others.
///
/// Each view is first scaled and then weighted equally: the mean squared length of its rows is 1. The objective is
/// the sum of squared distances to the centres. The embedding holds N × Σ d numbers, whether views are sparse or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concatenation {
    /// How the rows of each view are scaled before they are filled in and compared.
    pub scale: Scale,
}

impl Default for Concatenation {
    /// Rows of length 1.
    fn default() -> Self {
        Self { scale: Scale::Unit }
    }
}

impl Method for Concatenation {
    fn name(&self) -> String {
        "concatenation".into()
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        check_clusters(source.instances(), clusters)?;
        let features = (0..source.views()).map(|view| source.features(view)).sum();
        let mut embedding = Matrix::zeros(source.instances(), features);
        let mut first = 0;
        for view in 0..source.views() {
            let filled = Filled::new(source, view, self.scale)?;
            let mean_square = filled.sum_squares(0.0) / source.schema().view(view).present() as f64;
            // A view of zeros stays zero.
            let weight = if mean_square > 0.0 { mean_square.sqrt().recip() } else { 1.0 };
            for (instance, row) in filled.dense().iter_rows().enumerate() {
                let to = &mut embedding.row_mut(instance)[first..first + row.len()];
                to.iter_mut().zip(row).for_each(|(to, x)| *to = weight * x);
            }
            first += filled.features();
        }
        let (labels, inertia) = cluster(&embedding, clusters, seed)?;
        // The fit is finished: a break has no effect.
        let _ = each(1, inertia);
        Ok(Clustering { labels, embedding, history: vec![inertia], confidence: Vec::new() })
    }
}
