//! The comparison of clusters with chance: a fit to a sample, and fits to the sample with every feature permuted.

use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::explore::by_latent;
use super::{Daimc, search};
use crate::options::Options;
use crate::routes;
use crate::significance::Significance;
use daimc_core::prepared::Prepared;
use daimc_core::scale::rejected;
use daimc_core::scan::Scan;
use daimc_core::source::{Block, Buffer, Memory, Rows, Source};
use daimc_core::subset::Subset;
use daimc_core::watch::{Stage, Watch};
use daimc_core::{Error, Result, Scaling, Stop, View, Views};

/// The number of permutations.
const PERMUTATIONS: usize = 10;

/// The number of instances that are clustered, at least, and for each cluster.
const SAMPLE: usize = 500;
const SAMPLE_OF_CLUSTER: usize = 20;

/// The number of features of a view that are used, evenly spread over all.
const FEATURES: usize = 1000;

/// The least number of instances per cluster for a meaningful comparison.
const LEAST: usize = 5;

/// The iteration limit of these fits. They need not converge, as long as the fit to the data has the same limit.
const ITERATIONS: usize = 20;
const RESTARTS: usize = 4;

/// A sample of the instances and features, with scalings of the features.
pub(super) struct Sampled {
    /// The instances, in increasing order.
    pub instances: Vec<u32>,
    pub views: Views<'static>,
    pub scalings: Vec<Scaling>,
    /// The rejected scalings, if there was a choice.
    others: Option<Vec<Scaling>>,
    /// Whether quick fits may take clusters of a mixture, as the fit did.
    pub mixture: bool,
}

impl Daimc {
    /// A sample of prepared rows; `None` if it is too small for a comparison or the fit was stopped.
    pub(super) fn sampled(
        &self,
        scan: &Scan<'_>,
        scalings: &[Scaling],
        others: Option<&[Scaling]>,
    ) -> Result<Option<Sampled>> {
        let clusters = self.options.clusters;
        if clusters < 2 || LEAST * clusters > scan.instances() || scan.stop().is_set() {
            return Ok(None);
        }
        let instances = self.sample(scan, SAMPLE.max(SAMPLE_OF_CLUSTER * clusters));
        let mut buffers: Vec<Buffer> = scalings.iter().map(|_| Buffer::default()).collect();
        let Some(part) = if_available(Subset::pick(scan, &instances, &mut buffers))? else {
            return Ok(None);
        };
        let all = |view: usize| scan.source().features(view);
        let features = scalings.iter().enumerate().map(|(view, own)| looked_at(&own.kept(all(view))));
        let features: Vec<Vec<usize>> = features.collect();
        let views = permuted(&part, Some(&features), None)?;
        let some = |scalings: &[Scaling]| {
            scalings.iter().zip(&features).map(|(own, features)| own.some(features)).collect()
        };
        let others = others.map(some);
        Ok(Some(Sampled { instances, views, scalings: some(scalings), others, mixture: false }))
    }

    /// Whether the clusters of a sample, or those of the same sample with the rejected scalings, are clearer than chance; `None`
    /// if the fit was stopped.
    ///
    /// A feature that is larger than all others creates clusters by itself, which a permutation preserves. Clusters that are
    /// unclear with one scaling may therefore be clear with the other.
    pub(super) fn significance(&self, sampled: &Sampled, stop: &Stop) -> Result<Option<Significance>> {
        let found = || {
            let found = self.against_chance(sampled, &sampled.scalings, stop)?;
            let Some(others) = sampled.others.as_deref().filter(|_| !found.is_clear()) else {
                return Ok(found);
            };
            let other = self.against_chance(sampled, others, stop)?;
            Ok(if other.is_clear() { other } else { found })
        };
        if_available(found())
    }

    /// The same for given rows, which are not scaled yet.
    pub(crate) fn chance(&self, given: &Scan<'_>) -> Result<Option<Significance>> {
        let Some(observed) = if_available(self.observe(given))? else { return Ok(None) };
        let prepared = Prepared::observed(given.shared_source(), &observed)?;
        let taken: Vec<Scaling> = observed.iter().map(|view| view.scalings.likely().clone()).collect();
        let others = rejected(&observed, &taken);
        let Some(sampled) =
            self.sampled(&given.with_source(Arc::new(prepared)), &taken, others.as_deref())?
        else {
            return Ok(None);
        };
        self.significance(&sampled, given.stop())
    }

    fn against_chance(&self, sampled: &Sampled, scalings: &[Scaling], stop: &Stop) -> Result<Significance> {
        let Sampled { views, mixture, .. } = sampled;
        let watch = self.watch.begin(Stage::Significance);
        let fitted = watch.pieces(1 + PERMUTATIONS);
        // The data themselves, then each permutation.
        let found = (0..=PERMUTATIONS).into_par_iter().map(|number| {
            let fit = self.quick(self.options.seed.wrapping_add(number as u64));
            let agreement = if number == 0 {
                fit.agreement(views, scalings, *mixture, stop)
            } else {
                let mut rng = ChaCha8Rng::seed_from_u64(self.options.seed);
                rng.set_stream(u64::MAX / 7 + number as u64);
                fit.agreement(&permuted(views, None, Some(&mut rng))?, scalings, *mixture, stop)
            };
            fitted();
            agreement
        });
        let found = found.collect::<Result<Vec<f64>>>()?;
        Ok(Significance::new(found[0], &found[1..]))
    }

    /// The same fit with fewer iterations and starts.
    pub(super) fn quick(&self, seed: u64) -> Self {
        let mut fit = self.in_short(seed);
        fit.options = Options {
            consolidate: false,
            solve_to_optimality: false,
            restarts: fit.options.restarts.min(RESTARTS),
            max_iterations: fit.options.max_iterations.min(ITERATIONS),
            ..fit.options
        };
        fit
    }

    /// The agreement of neighbours in single views on the clusters.
    fn agreement(&self, views: &Views<'_>, scalings: &[Scaling], mixture: bool, stop: &Stop) -> Result<f64> {
        let (sweep, v) = self.latent_of(&Scan::new(views, stop), scalings)?;
        let quiet = Watch::default().within(stop);
        let nearest = search::nearest(&sweep, &self.options, Vec::new(), true, &quiet)?;
        let labels = by_latent(&sweep, v, mixture.then_some(&nearest[..]), &self.options, &quiet)?;
        Ok(routes::agreement(&labels, self.options.clusters, &nearest))
    }
}

/// The result of an optional fit: `None` if it was stopped, or if a quick fit left the range of floating point, as the published
/// steps can with unscaled data.
pub(super) fn if_available<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(Error::Interrupted | Error::OutOfRange | Error::NoConvergence { .. }) => Ok(None),
        found => found.map(Some),
    }
}

/// The features of a view that are used, out of those that are kept.
fn looked_at(kept: &[usize]) -> Vec<usize> {
    let count = kept.len().min(FEATURES);
    (0..count).map(|f| kept[f * kept.len() / count]).collect()
}

/// The rows of a sample, either unchanged or with each feature permuted among the instances of its view; with some or all
/// features of each view.
fn permuted<S: Source + Memory>(
    part: &S,
    some: Option<&[Vec<usize>]>,
    mut rng: Option<&mut ChaCha8Rng>,
) -> Result<Views<'static>> {
    let n = part.instances();
    let views = (0..part.views()).map(|view| {
        let mut buffer = Buffer::default();
        let block = Memory::block(part, view, 0..n, &mut buffer);
        let shown: Vec<usize> = (0..n).filter(|&i| block.index.row(i).is_some()).collect();
        let features = some.map_or_else(|| (0..part.features(view)).collect(), |some| some[view].clone());
        let columns: Vec<Vec<(usize, f64)>> = columns(&block, part.features(view), &features, &shown);
        let columns = columns.into_iter().map(|column| match &mut rng {
            Some(rng) => scattered(column, &shown, rng),
            None => column,
        });
        let present: Vec<bool> = (0..n).map(|i| block.index.row(i).is_some()).collect();
        let name = part.name(view);
        if matches!(block.rows, Rows::DenseF32(_) | Rows::DenseF64(_)) {
            let mut values = vec![0.0; n * features.len()];
            for (f, column) in columns.enumerate() {
                column.into_iter().for_each(|(i, x)| values[i * features.len() + f] = x);
            }
            return View::dense(name, features.len(), values)?.mask(&present);
        }
        let mut rows: Vec<Vec<(u32, f64)>> = vec![Vec::new(); n];
        for (f, column) in (0..).zip(columns) {
            column.into_iter().for_each(|(i, x)| rows[i].push((f, x)));
        }
        let offsets = std::iter::once(0).chain(rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        }));
        let offsets: Vec<usize> = offsets.collect();
        let (columns, values): (Vec<u32>, Vec<f64>) = rows.into_iter().flatten().unzip();
        View::sparse(name, features.len(), offsets, columns, values)?.mask(&present)
    });
    Views::new(views.collect::<Result<_>>()?)
}

/// The values of some features, each with its instance; for a sparse view the stored values.
fn columns(block: &Block<'_>, all: usize, features: &[usize], shown: &[usize]) -> Vec<Vec<(usize, f64)>> {
    let mut columns = vec![Vec::new(); features.len()];
    for &i in shown {
        let Some(row) = block.index.row(i) else { continue };
        let mut put = |f: usize, x: f64| columns[f].push((i, x));
        let mut put_sparse = |column: &u32, x: f64| {
            if let Ok(f) = features.binary_search(&(*column as usize)) {
                put(f, x);
            }
        };
        match block.rows {
            Rows::DenseF32(x) => {
                features.iter().enumerate().for_each(|(f, at)| put(f, x[row * all + at].into()));
            }
            Rows::DenseF64(x) => features.iter().enumerate().for_each(|(f, at)| put(f, x[row * all + at])),
            Rows::SparseF32(csr) => {
                csr.row(row).0.iter().zip(csr.row(row).1).for_each(|(f, x)| put_sparse(f, (*x).into()));
            }
            Rows::SparseF64(csr) => {
                csr.row(row).0.iter().zip(csr.row(row).1).for_each(|(f, x)| put_sparse(f, *x));
            }
        }
    }
    columns
}

/// The same values, assigned to other instances.
fn scattered(column: Vec<(usize, f64)>, shown: &[usize], rng: &mut ChaCha8Rng) -> Vec<(usize, f64)> {
    let mut instances = shown.to_vec();
    let (drawn, _) = instances.partial_shuffle(rng, column.len());
    let drawn = drawn.iter();
    let mut moved: Vec<(usize, f64)> = drawn.copied().zip(column.into_iter().map(|(_, x)| x)).collect();
    moved.sort_unstable_by_key(|(i, _)| *i);
    moved
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::simulate;
    use crate::synthetic::Synthetic;
    use daimc_core::Scale;

    fn rng(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    /// Two views, one of them sparse, some instances missing.
    fn views(n: usize) -> Views<'static> {
        let data = Synthetic::new(n, 3).noise(0.5).seed(2);
        let present = simulate::missing(n, &[0.3, 0.2], 4).unwrap();
        let (offsets, columns): (Vec<usize>, Vec<u32>) =
            ((0..=n).map(|i| 2 * i).collect(), (0..n as u32).flat_map(|i| [i % 4, 4 + i % 3]).collect());
        let values: Vec<f32> = (0..2 * n).map(|i| 1.0 + i as f32).collect();
        let sparse = View::sparse("b", 7, offsets, columns, values).unwrap();
        let views = vec![data.dense::<f64>("a", 6).unwrap(), sparse];
        let masked = views.into_iter().zip(&present).map(|(view, present)| view.mask(present).unwrap());
        Views::new(masked.collect()).unwrap()
    }

    #[test]
    fn a_permutation_keeps_the_values_of_each_feature_and_the_presence() {
        let views = views(40);
        let scan = Scan::new(&views, &Stop::default());
        let mut buffers = vec![Buffer::default(), Buffer::default()];
        let all: Vec<u32> = (0..40).collect();
        let part = Subset::pick(&scan, &all, &mut buffers).unwrap();
        let of = |source: &dyn Source, view: usize| {
            let mut buffer = Buffer::default();
            let block = source.memory().unwrap().block(view, 0..40, &mut buffer);
            let shown: Vec<usize> = (0..40).filter(|&i| source.is_present(view, i)).collect();
            let features: Vec<usize> = (0..source.features(view)).collect();
            (columns(&block, features.len(), &features, &shown), shown)
        };
        let (same, other) =
            (permuted(&part, None, None).unwrap(), permuted(&part, None, Some(&mut rng(3))).unwrap());
        for view in 0..2 {
            let given = of(&views, view);
            assert_eq!(of(&same, view), given);
            let moved = of(&other, view);
            assert_eq!(moved.1, given.1);
            for (moved, given) in moved.0.iter().zip(&given.0) {
                let sorted = |column: &[(usize, f64)]| {
                    let mut values: Vec<f64> = column.iter().map(|own| own.1).collect();
                    values.sort_unstable_by(f64::total_cmp);
                    values
                };
                assert_eq!(sorted(moved), sorted(given));
                assert_ne!(moved, given);
            }
        }
    }

    #[test]
    fn clusters_are_clear_and_those_of_noise_are_not() {
        let clear = |views: &Views<'_>, clusters, scale| {
            let fit = Daimc::new(clusters).scale(scale).fit(views).unwrap();
            fit.significance.unwrap().is_clear()
        };
        let mut warned = 0;
        for seed in 0..20 {
            let mut rng = rng(seed);
            let n = [60, 150, 400][seed as usize % 3];
            let mut noise = |d: usize| {
                let values: Vec<f64> =
                    (0..n * d).map(|_| rng.random::<f64>() + rng.random::<f64>()).collect();
                View::dense(format!("v{d}"), d, values).unwrap()
            };
            let views = Views::new(vec![noise(20), noise(35)]).unwrap();
            warned += usize::from(!clear(&views, 2 + seed as usize % 4, Scale::MinMaxUnit));
        }
        assert!(warned >= 19, "{warned}");
        for seed in 0..10 {
            let data = Synthetic::new(150, 4).noise(1.0).seed(seed);
            let present = simulate::missing(150, &[0.3, 0.3], seed).unwrap();
            let views = [("a", 20), ("b", 30)].into_iter().zip(&present);
            let views =
                views.map(|((name, d), present)| data.dense::<f64>(name, d).unwrap().mask(present).unwrap());
            assert!(clear(&Views::new(views.collect()).unwrap(), 4, Scale::MinMaxUnit), "{seed}");
        }
    }
}
