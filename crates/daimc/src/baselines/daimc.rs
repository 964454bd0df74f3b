//! DAIMC behind the same trait as the methods it is compared with.

use std::ops::ControlFlow;

use super::{Clustering, Method};
use crate::{Daimc, Preset, Result, Views};

/// Any fit is a method. It keeps its options but for the number of clusters and the seed, and runs on the current rayon
/// pool. Columns of V follow the number of clusters unless [`Daimc::latent`] set them apart.
impl Method for Daimc {
    fn name(&self) -> String {
        match self.options().preset {
            Preset::Default => "daimc".into(),
            Preset::Paper => "daimc-paper".into(),
        }
    }

    fn fit(
        &self,
        views: &Views<'_>,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        let fit = self.clone().with(clusters, seed);
        let model = fit.fit_here(views, |iteration| each(iteration.number, iteration.objective.total))?;
        let history = model.history.iter().map(|objective| objective.total).collect();
        Ok(Clustering { labels: model.labels, embedding: model.latent, history })
    }
}
