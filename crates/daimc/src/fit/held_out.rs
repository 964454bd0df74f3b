//! Prediction of hidden rows: some instances lose one of their views, a model is fitted to the rest, and it predicts the hidden
//! rows from the other views. This measures the quality of a fit without labels.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Fit;
use crate::ViewModel;
use crate::model::Misfit;
use daimc_core::linalg::product;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scan::Scan;
use daimc_core::source::Source;
use daimc_core::subset::Subset;
use daimc_core::sweep::Sweep;
use daimc_core::{Matrix, Result, Stop};

/// The hidden cells (an instance in a view): for each view, its hidden instances.
#[derive(Clone, Debug)]
pub(crate) struct Hidden(Vec<Vec<usize>>);

/// A view keeps at least this share of its rows.
const KEPT: f64 = 0.5;

impl Hidden {
    /// Hides a random share of the cells, except one view per instance. The more views instances have, the more is hidden. `None`
    /// if no instance has two views.
    pub fn draw(source: &dyn Source, share: f64, seed: u64) -> Option<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut seen_in = vec![0_usize; source.instances()];
        let mut cells = Vec::new();
        let mut capacity = Vec::with_capacity(source.views());
        for view in 0..source.views() {
            let before = cells.len();
            cells.extend((0..source.instances()).filter(|&i| source.is_present(view, i)).map(|i| (view, i)));
            cells[before..].iter().for_each(|&(_, i)| seen_in[i] += 1);
            capacity.push(((1.0 - KEPT) * (cells.len() - before) as f64) as usize);
        }
        let others: usize = seen_in.iter().map(|views| views.saturating_sub(1)).sum();
        let mut wanted = (share * others as f64).ceil() as usize;
        let mut hidden = vec![Vec::new(); source.views()];
        while wanted > 0 && !cells.is_empty() {
            let (view, i) = cells.swap_remove(rng.random_range(0..cells.len()));
            if seen_in[i] >= 2 && capacity[view] > 0 {
                seen_in[i] -= 1;
                capacity[view] -= 1;
                wanted -= 1;
                hidden[view].push(i);
            }
        }
        hidden.iter().any(|cells| !cells.is_empty()).then_some(Self(hidden))
    }

    /// The data without the hidden cells.
    pub fn rest<'a>(&self, part: &Subset<'a>) -> Subset<'a> {
        part.without(&self.0)
    }
}

/// The predictor of hidden rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The mean of the instance's cluster.
    Cluster,
    /// The same for the features whose row of B is not zero; for the others the mean of all instances, which predicts an
    /// uninformative feature better.
    Selected,
}

/// How well a fit to the rest predicts the hidden rows of each view: the explained share of their variance (squared distance from
/// the mean of the rows in the fit, in the scaling of the fit). Negative if the mean predicts better. `None` for a view without
/// hidden rows or without variance.
pub(crate) fn explained(
    fit: &Fit,
    part: &Subset<'_>,
    hidden: &Hidden,
    by: By,
    stop: &Stop,
) -> Result<Vec<Option<f64>>> {
    let rest = hidden.rest(part);
    let (rest, part) = (fit.model.prepare(&rest)?, fit.model.prepare(part)?);
    let (rest, all_rows) = (Scan::new(&rest, stop), Scan::new(&part, stop));
    let scaled_views = |part: &Scan<'_>| {
        let scaled_view = |(view, own): (usize, &ViewModel)| ScaledView::new(part, view, own.scaling.clone());
        fit.model.views.iter().enumerate().map(scaled_view).collect::<Result<Vec<_>>>()
    };
    let clusters = fit.model.options.clusters;
    let mut own_cluster = Matrix::zeros(part.instances(), clusters);
    for (i, &label) in fit.labels.iter().enumerate() {
        own_cluster[(i, label)] = 1.0;
    }
    let seen = scaled_views(&rest)?;
    let sums = Sweep::new(rest, seen, clusters).gather(&mut own_cluster, stop)?.whole()?;

    let all = Matrix::from_fn(part.instances(), 1, |_, _| 1.0);
    let mut out = Vec::with_capacity(part.views());
    for (view, (scaled_view, hidden)) in scaled_views(&all_rows)?.iter().zip(&hidden.0).enumerate() {
        let counts: Vec<f64> = (0..clusters).map(|k| sums.gram[view][(k, k)]).collect();
        let total: f64 = counts.iter().sum();
        let mean = product(&sums.cross[view], &Matrix::from_fn(clusters, 1, |_, _| 1.0 / total));
        let left_out = |f: usize| {
            by == By::Selected && fit.model.views[view].alignment.row(f).iter().all(|&weight| weight == 0.0)
        };
        // Without instances of a cluster in this view, the mean of all instances predicts.
        let predicted = |f: usize, k: usize| match counts[k] {
            count if count > 0.0 && !left_out(f) => sums.cross[view][(f, k)] / count,
            _ => mean[(f, 0)],
        };
        let predicted = Matrix::from_fn(mean.rows(), clusters, predicted);
        let predicted = Misfit::of(&all_rows, view, scaled_view, &predicted, &own_cluster)?;
        let from_mean = Misfit::of(&all_rows, view, scaled_view, &mean, &all)?;
        let sum = |of: &[f64]| hidden.iter().map(|&i| of[i]).sum::<f64>();
        let (error, variance) = (sum(&predicted.error), sum(&from_mean.error));
        // In a constant view, only rounding errors remain.
        out.push((variance > 1e-9 * sum(&from_mean.square)).then(|| 1.0 - error / variance));
    }
    Ok(out)
}
