//! DAIMC without its second alignment.

use std::ops::ControlFlow;

use daimc::{Daimc, Preset, Result, Source};

use crate::methods::{Clustering, Method};

/// Weighted semi-NMF, Eq. 8 of the DAIMC paper: one latent matrix, and bases without constraints.
///
/// ```text
/// J = Σ_v Σ_j w_vj ‖x_vj − U_v v_j‖²,   V ≥ 0
/// ```
///
/// It is DAIMC with α = 0: the U step becomes `U = C S⁻¹`, and B is not used. Everything else is as published (rows of unit
/// length, the unmatched start, Eq. 19), so that the two differ only by the alignment.
#[derive(Clone, Debug)]
pub struct WeightedSemiNmf {
    /// The options of the fit; α is set to zero.
    pub fit: Daimc,
}

impl Default for WeightedSemiNmf {
    fn default() -> Self {
        Self { fit: Daimc::new(1).preset(Preset::Paper) }
    }
}

impl Method for WeightedSemiNmf {
    fn name(&self) -> String {
        "wsnmf".into()
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering> {
        Method::fit(&self.fit.clone().alpha(0.0), source, clusters, seed, each)
    }
}
