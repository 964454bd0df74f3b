//! The choice of α and β by the prediction of hidden rows: kept features are predicted by the mean of the instance's cluster,
//! other features by the mean of all instances.

use std::ops::ControlFlow;

use super::Daimc;
use super::held_out::{By, Hidden, explained};
use super::importance::sampled;
use crate::options::Penalty;
use daimc_core::Result;
use daimc_core::scan::Scan;
use daimc_core::source::Buffer;
use daimc_core::subset::Subset;
use daimc_core::watch::Watch;

/// The candidate values of α and β, relative to the data.
const ALPHAS: [f64; 2] = [0.1, 1.0];
const BETAS: [f64; 7] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4];

/// Hidden subsets, and the share of cells that each hides in addition to the one that each instance keeps.
const HIDINGS: u64 = 3;
const SHARE: f64 = 0.5;

/// The choice if nothing can be hidden or the fit is stopped.
const OTHERWISE: (f64, f64) = (1.0, 0.15);

/// The same fit with [`Penalty::Relative`] and the best α and β. Of all pairs whose prediction of hidden rows is within one
/// standard error (of the difference) of the best, it takes the one that drops the most features, then the one with the least α.
pub(crate) fn penalty(fit: &Daimc, scan: &Scan<'_>, watch: &Watch) -> Result<Daimc> {
    let relative = fit.clone().penalty(Penalty::Relative);
    let instances = sampled(scan.source(), fit.options().seed);
    let mut buffers: Vec<Buffer> = (0..scan.schema().len()).map(|_| Buffer::default()).collect();
    let part = Subset::pick(scan, &instances, &mut buffers)?;
    let pairs: Vec<(f64, f64)> =
        BETAS.iter().rev().flat_map(|&beta| ALPHAS.map(|alpha| (alpha, beta))).collect();
    let mut shares: Vec<Vec<f64>> = vec![Vec::new(); pairs.len()];
    let tried = watch.pieces(HIDINGS as usize * pairs.len());
    for hiding in 0..HIDINGS {
        let seed = fit.options().seed.wrapping_sub(1 + hiding);
        let Some(hidden) = Hidden::draw(&part, SHARE, seed) else {
            return Ok(relative.alpha(OTHERWISE.0).beta(OTHERWISE.1));
        };
        let rest = hidden.rest(&part);
        for (shares, (alpha, beta)) in shares.iter_mut().zip(&pairs) {
            let own = relative.clone().alpha(*alpha).beta(*beta).runs(1).alone(seed);
            let fitted = own.fit_here(&rest, |_| ControlFlow::Continue(()));
            let found =
                fitted.and_then(|fitted| explained(&fitted, &part, &hidden, By::Selected, scan.stop()));
            if scan.stop().is_set() {
                return Ok(relative.alpha(OTHERWISE.0).beta(OTHERWISE.1));
            }
            let found = found?;
            let known: Vec<f64> = found.into_iter().flatten().collect();
            shares.push(known.iter().sum::<f64>() / known.len().max(1) as f64);
            tried();
        }
    }
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
    let best =
        (0..pairs.len()).fold(0, |best, at| if mean(&shares[at]) > mean(&shares[best]) { at } else { best });
    let good = |at: &usize| {
        let worse: Vec<f64> = shares[best].iter().zip(&shares[*at]).map(|(best, own)| best - own).collect();
        let by = mean(&worse);
        let squares: f64 = worse.iter().map(|worse| (worse - by).powi(2)).sum();
        let count = worse.len() as f64;
        by <= (squares / (count - 1.0) / count).sqrt()
    };
    let (alpha, beta) = pairs[(0..pairs.len()).find(good).unwrap_or(best)];
    Ok(relative.alpha(alpha).beta(beta))
}
