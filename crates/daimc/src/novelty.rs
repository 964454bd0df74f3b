//! Instances that a model does not explain: how far they are from their reconstructions, compared with the instances that the
//! model has learnt from.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::model::{Misfit, Model};
use crate::retained::{BINS, Spread};
use daimc_core::kmeans;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scan::Scan;
use daimc_core::source::Buffer;
use daimc_core::subset::Subset;
use daimc_core::sweep::Sweep;
use daimc_core::{Matrix, Result};

/// The ranges of misfits are from 2⁻⁴ to 2⁸.
const FIRST: f64 = -4.0;
const PER_DOUBLING: f64 = 4.0;

/// An instance is unexplained if its misfit is one range beyond those of all but this share of the earlier instances.
const TAIL: f64 = 0.005;

/// Instances that are compared with each other, at most.
pub(crate) const MOST: usize = 2000;

/// Instances that make a group, at least.
const FEWEST: usize = 10;

/// The most groups that are looked for, and the rounds in which a prototype is refined.
const GROUPS: usize = 8;
const REFINEMENTS: usize = 4;

impl Spread {
    /// Whether it contains at least one instance.
    fn is_known(&self) -> bool {
        self.counts.iter().sum::<f64>() >= 1.0
    }

    /// Adds instances, given their misfits in the views at `places`. Each counts as `weight` instances.
    pub fn add(&mut self, misfits: &[Misfit], shown: &[f64], places: &[usize], weight: f64) {
        for (misfit, &place) in misfits.iter().zip(places) {
            self.errors[place] += weight * misfit.error.iter().sum::<f64>();
        }
        for misfit in self.misfits(misfits, shown, places).into_iter().flatten() {
            self.counts[bin(misfit)] += weight;
        }
    }

    /// The misfit of each instance; `None` for an instance without a nonzero row.
    pub fn misfits(&self, misfits: &[Misfit], shown: &[f64], places: &[usize]) -> Vec<Option<f64>> {
        let mean = |place: usize| if shown[place] > 0.0 { self.errors[place] / shown[place] } else { 0.0 };
        let means: Vec<f64> = places.iter().map(|&place| mean(place)).collect();
        let instances = misfits.first().map_or(0, |misfit| misfit.error.len());
        let of_instance = |i: usize| {
            let (mut error, mut expected) = (0.0, 0.0);
            for (misfit, mean) in misfits.iter().zip(&means) {
                if misfit.square[i] > 0.0 && *mean > 0.0 {
                    error += misfit.error[i];
                    expected += mean;
                }
            }
            (expected > 0.0).then(|| error / expected)
        };
        (0..instances).map(of_instance).collect()
    }

    /// The misfit above which an instance is unexplained.
    pub fn limit(&self) -> f64 {
        if !self.is_known() {
            return f64::INFINITY;
        }
        let (mut tail, all) = (0.0, self.counts.iter().sum::<f64>());
        for (bin, count) in self.counts.iter().enumerate().rev() {
            tail += count;
            if tail > TAIL * all {
                return edge(bin + 2);
            }
        }
        edge(1)
    }
}

fn bin(misfit: f64) -> usize {
    (((misfit.log2() - FIRST) * PER_DOUBLING).floor().max(0.0) as usize).min(BINS - 1)
}

/// The lower end of a range.
fn edge(bin: usize) -> f64 {
    (FIRST + bin as f64 / PER_DOUBLING).exp2()
}

/// Instances of a fit whose misfit is measured, at most.
const SAMPLE: usize = 4096;

/// Records in a model the misfits of the instances of its fit, from a seeded sample of them. `latent` returns the rows of V of
/// the sample.
pub(crate) fn observe(
    scan: &Scan<'_>,
    model: &mut Model,
    latent: impl FnOnce(&[u32]) -> Result<Matrix>,
) -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(model.options.seed);
    rng.set_stream(u64::MAX / 3);
    let chosen = kmeans::sample_instances(scan.source(), SAMPLE, &mut rng);
    let mut buffers: Vec<Buffer> = model.views.iter().map(|_| Buffer::default()).collect();
    let some = Subset::pick(scan, &chosen, &mut buffers)?;
    let some = Scan::new(&some, scan.stop());
    let rows = latent(&chosen)?;
    let (places, scaled_views) = model.scaled_views(&some)?;
    let of_view =
        |own: usize| Misfit::of(&some, own, &scaled_views[own], &model.views[places[own]].basis, &rows);
    let misfits = (0..places.len()).map(of_view).collect::<Result<Vec<_>>>()?;
    let weight = scan.instances() as f64 / chosen.len().max(1) as f64;
    if let Some(retained) = &mut model.retained {
        retained.spread.add(&misfits, &retained.shown, &places, weight);
    }
    Ok(())
}

/// Groups of nearby instances among those given, whose numbers increase: one prototype per view explains a group as well as the
/// clusters explain other instances. The distance to the prototype is compared with `limit` and `spread`, as a misfit is.
pub(crate) fn groups(
    sweep: &Sweep<'_>,
    (spread, limit): (&Spread, f64),
    (shown, places): (&[f64], &[usize]),
    instances: &[u32],
) -> Result<Vec<Vec<u32>>> {
    let (scan, mut left) = (&sweep.scan, instances.to_vec());
    let mut found = Vec::new();
    for _ in 0..GROUPS {
        if left.len() < FEWEST {
            break;
        }
        let mut buffers: Vec<Buffer> = sweep.scaled_views.iter().map(|_| Buffer::default()).collect();
        let some = Subset::pick(scan, &left, &mut buffers)?;
        let some = Scan::new(&some, scan.stop());
        let scaled_view = |(view, scaled_view): (usize, &ScaledView)| {
            ScaledView::new(&some, view, scaled_view.scaling.clone())
        };
        let scaled_views =
            sweep.scaled_views.iter().enumerate().map(scaled_view).collect::<Result<Vec<_>>>()?;
        let one = Sweep::new(some, scaled_views, 1);
        let explained = near_each_other(&one, |misfits| {
            spread.misfits(misfits, shown, places).into_iter().map(|own| own.unwrap_or(0.0)).collect()
        })?;
        let group: Vec<u32> =
            left.iter().zip(&explained).filter(|(_, misfit)| **misfit <= limit).map(|(&i, _)| i).collect();
        if group.len() < FEWEST {
            break;
        }
        left.retain(|i| group.binary_search(i).is_err());
        found.push(group);
    }
    found.sort_by_key(|group| std::cmp::Reverse(group.len()));
    Ok(found)
}

/// The distance of each instance from the prototype of their densest part: first the mean of all, then repeatedly the mean of the
/// nearest half.
fn near_each_other(sweep: &Sweep<'_>, judge: impl Fn(&[Misfit]) -> Vec<f64>) -> Result<Vec<f64>> {
    let scan = &sweep.scan;
    let mut weights = Matrix::from_fn(scan.instances(), 1, |_, _| 1.0);
    let mut misfits = Vec::new();
    for _ in 0..REFINEMENTS {
        let totals = sweep.gather(&mut weights, scan.stop())?.whole()?;
        let bases: Vec<Matrix> = totals
            .gram
            .iter()
            .zip(&totals.cross)
            .map(|(gram, cross)| {
                let mut mean = cross.clone();
                mean.scale_columns(&[if gram[(0, 0)] > 0.0 { 1.0 / gram[(0, 0)] } else { 0.0 }]);
                mean
            })
            .collect();
        let v = sweep.place(&bases)?;
        let each = (0..bases.len())
            .map(|view| Misfit::of(scan, view, &sweep.scaled_views[view], &bases[view], &v))
            .collect::<Result<Vec<_>>>()?;
        misfits = judge(&each);
        let mut sorted = misfits.clone();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        for (i, misfit) in misfits.iter().enumerate() {
            weights[(i, 0)] = if *misfit <= median { 1.0 } else { 0.0 };
        }
    }
    Ok(misfits)
}
