//! DAIMC behind the same trait as the methods it is compared with.

use std::ops::ControlFlow;

use daimc::{Daimc, Iteration, Preset, Result, Source};

use crate::methods::{Clustering, Method};

/// Every fit is a method. The number of clusters and the seed replace those of its options; it runs on the current rayon pool if
/// the rows are in memory. V has as many columns as clusters unless [`Daimc::latent`] sets another number.
impl Method for Daimc {
    fn name(&self) -> String {
        match self.options().preset {
            Preset::Default => "daimc".into(),
            other => format!("daimc-{other}"),
        }
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        let each = |iteration: &Iteration| each(iteration.number, iteration.objective.total);
        let fit = self.clone().clusters(clusters).seed(seed).assess(false).fit_with(source, each)?;
        let history = fit.history.iter().map(|objective| objective.total).collect();
        Ok(Clustering { labels: fit.labels, embedding: fit.latent, history, confidence: fit.confidence })
    }
}
