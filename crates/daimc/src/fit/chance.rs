//! What chance would make of the data: the fit to a sample, and to the sample with every feature permuted.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::Daimc;
use crate::model::Place;
use crate::options::Options;
use crate::prepared::Prepared;
use crate::scale::Scaling;
use crate::scan::Scan;
use crate::significance::Significance;
use crate::source::{Block, Buffer, Memory, Rows, Source};
use crate::subset::Subset;
use crate::watch::{Stage, Watch};
use crate::{Error, Result, Stop, View, Views, neighbours, routes};

/// Permutations.
const PERMUTATIONS: usize = 10;

/// Instances that are looked at, for each cluster at least, and of each view, if it has so many; and features of a view,
/// evenly spread over all.
const SAMPLE: usize = 500;
const SAMPLE_OF_CLUSTER: usize = 20;
const SAMPLE_OF_VIEW: usize = 100;
const FEATURES: usize = 1000;

/// Fewer instances than this, for each cluster, tell nothing.
const LEAST: usize = 3;

/// How far the fits go. Whether they have converged is of no importance: that to the data goes no further.
const ITERATIONS: usize = 20;
const RESTARTS: usize = 4;

impl Daimc {
    /// Whether the clusters of data so scaled are clearer than chance, or those of data that are scaled in the other way that
    /// was tried; `None` if there is nothing to be clear about, or the fit was stopped. The rows are prepared.
    ///
    /// A feature that is larger than all others makes clusters of itself, which a permutation does not take from it. So what is
    /// not clear in one scaling may be clear in the other.
    pub(super) fn significance(
        &self,
        scan: &Scan<'_>,
        scalings: &[Scaling],
        others: Option<&[Scaling]>,
    ) -> Result<Option<Significance>> {
        let clusters = self.options.clusters;
        if clusters < 2 || LEAST * clusters > scan.instances() || scan.stop().is_set() {
            return Ok(None);
        }
        self.watch.tell(&Stage::Significance);
        let found = || {
            let found = self.beside_chance(scan, scalings)?;
            match others.filter(|_| !found.is_clear()) {
                Some(others) => {
                    let other = self.beside_chance(scan, others)?;
                    Ok(if other.is_clear() { other } else { found })
                }
                None => Ok(found),
            }
        };
        match found() {
            Err(Error::Interrupted) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The same, of rows as they are given and not yet scaled.
    pub(crate) fn chance(&self, given: &Scan<'_>) -> Result<Option<Significance>> {
        let observed = match self.observe(given) {
            Err(Error::Interrupted) => return Ok(None),
            observed => observed?,
        };
        let prepared = Prepared::observed(given.source(), &observed)?;
        let taken: Vec<Scaling> = observed.iter().map(|view| view.scalings.likely().clone()).collect();
        let others = super::rejected(&observed, &taken);
        self.significance(&given.as_source(&prepared), &taken, others.as_deref())
    }

    fn beside_chance(&self, scan: &Scan<'_>, scalings: &[Scaling]) -> Result<Significance> {
        let size = SAMPLE.max(SAMPLE_OF_CLUSTER * self.options.clusters);
        let chosen = self.sample(scan, size, SAMPLE_OF_VIEW);
        let mut buffers: Vec<Buffer> = scalings.iter().map(|_| Buffer::default()).collect();
        let part = Subset::pick(scan, &chosen, &mut buffers)?;
        let scalings: Vec<Scaling> =
            scalings.iter().enumerate().map(|(v, own)| own.some(&looked_at(&part, v))).collect();
        // The data themselves, then what is left of them by each permutation.
        let found = (0..=PERMUTATIONS).into_par_iter().map(|number| {
            let mut rng = ChaCha8Rng::seed_from_u64(self.options.seed);
            rng.set_stream(u64::MAX / 7 + number as u64);
            let views = permuted(&part, (number > 0).then_some(&mut rng))?;
            let fit = self.quick(self.options.seed.wrapping_add(number as u64));
            fit.agreement(&views, &scalings, scan.stop())
        });
        let found = found.collect::<Result<Vec<f64>>>()?;
        Ok(Significance::new(found[0], &found[1..]))
    }

    /// The same fit, in a hurry.
    fn quick(&self, seed: u64) -> Self {
        let mut fit = self.in_short(seed);
        fit.options = Options {
            consolidate: false,
            restarts: fit.options.restarts.min(RESTARTS),
            max_iterations: fit.options.max_iterations.min(ITERATIONS),
            view_scales: BTreeMap::new(),
            ..fit.options
        };
        fit
    }

    /// How far neighbours in single views agree on the clusters of V.
    fn agreement(&self, views: &Views<'_>, scalings: &[Scaling], stop: &Stop) -> Result<f64> {
        let (sweep, v) = self.latent_of(Scan::new(views, stop), scalings)?;
        let labels = Place::by_columns(v, &self.options, stop)?.2.labels;
        let quiet = Watch { stop: stop.clone(), listener: None };
        let nearest = neighbours::nearest(&sweep, &self.options, &quiet)?;
        Ok(routes::agreement(&labels, self.options.clusters, &nearest))
    }
}

/// The features of a view that are looked at.
fn looked_at(part: &Subset<'_>, view: usize) -> Vec<usize> {
    let all = part.features(view);
    let count = all.min(FEATURES);
    (0..count).map(|f| f * all / count).collect()
}

/// The rows of a sample, each feature permuted among the instances of its view, or as they are.
fn permuted(part: &Subset<'_>, mut rng: Option<&mut ChaCha8Rng>) -> Result<Views<'static>> {
    let n = part.instances();
    let views = (0..part.views()).map(|view| {
        let mut room = Buffer::default();
        let block = Memory::block(part, view, 0..n, &mut room);
        let shown: Vec<usize> = (0..n).filter(|&i| block.index.row(i).is_some()).collect();
        let features = looked_at(part, view);
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

/// The values of some features, each with its instance; of a sparse view those that are stored.
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

/// The same values, of other instances.
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
    use crate::scale::Scale;
    use crate::simulate;
    use crate::synthetic::Synthetic;

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
    fn a_permutation_keeps_the_values_of_each_feature_and_who_is_there() {
        let views = views(40);
        let scan = Scan::of(&views);
        let mut buffers = vec![Buffer::default(), Buffer::default()];
        let all: Vec<u32> = (0..40).collect();
        let part = Subset::pick(&scan, &all, &mut buffers).unwrap();
        let of = |source: &dyn Source, view: usize| {
            let mut room = Buffer::default();
            let block = source.memory().unwrap().block(view, 0..40, &mut room);
            let shown: Vec<usize> = (0..40).filter(|&i| source.is_present(view, i)).collect();
            let features: Vec<usize> = (0..source.features(view)).collect();
            (columns(&block, features.len(), &features, &shown), shown)
        };
        let (same, other) = (permuted(&part, None).unwrap(), permuted(&part, Some(&mut rng(3))).unwrap());
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
