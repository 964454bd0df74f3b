//! K-means on one view.

use std::ops::ControlFlow;

use daimc::{Error, Result, Scale, Source};

use crate::methods::data::{Filled, check_clusters, cluster};
use crate::methods::{Clustering, Method};

/// K-means on the rows of one view, with missing rows filled with the mean of the others.
///
/// The best of these over all views is known as BSV; only labels show which view is best, so the caller chooses. The
/// objective is the sum of squared distances to the centres. The embedding is the filled view, N × d numbers, whether the
/// view is sparse or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleView {
    /// The view, from 0.
    pub view: usize,
    /// How its rows are scaled before they are filled in and compared.
    pub scale: Scale,
}

impl SingleView {
    /// View `view`, its rows scaled to length 1.
    #[must_use]
    pub fn new(view: usize) -> Self {
        Self { view, scale: Scale::Unit }
    }
}

impl Method for SingleView {
    fn name(&self) -> String {
        format!("view-{}", self.view)
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        check_clusters(source.instances(), clusters)?;
        if self.view >= source.views() {
            let reason = format!("there are {} views, numbered from 0", source.views());
            return Err(Error::Option { option: "view", value: self.view.to_string(), reason });
        }
        let embedding = Filled::new(source, self.view, self.scale)?.dense();
        let (labels, inertia) = cluster(&embedding, clusters, seed)?;
        // The fit is finished: a break has no effect.
        let _ = each(1, inertia);
        Ok(Clustering { labels, embedding, history: vec![inertia], confidence: Vec::new() })
    }
}
