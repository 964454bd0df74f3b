//! Predictions of given clusters by single views: a linear discriminant of the clusters, in a space of few dimensions, is fitted
//! to most of the instances and applied to the others, so that no instance predicts itself.
//!
//! The space consists of the 64 leading directions of the view's rows, computed by a few subspace iterations on a sample. A
//! covariance matrix of all features (d × d) would not have linear cost.

mod mixture;

use pulp::{Arch, Simd, WithSimd};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::project::{Projected, SAMPLE, each_block, longest};
use daimc_core::matrix::dot;
use daimc_core::scaled_view::ScaledView;
use daimc_core::scan::Scan;
use daimc_core::watch::Watch;
use daimc_core::{Matrix, Result, linalg};

pub use mixture::Mixed;

/// Dimensions of the space.
const DIMENSIONS: usize = 64;

/// The number of folds; the rule for one is fitted to the others.
const FOLDS: usize = 5;
const FOLD_STREAM: u64 = 1 << 41;

/// The least log probability that a single view can assign to a cluster.
const LEAST: f64 = -30.0;

/// The predictions of the views.
pub struct Evidence<'a> {
    scan: &'a Scan<'a>,
    spaces: Vec<Space<'a>>,
    /// The fold of each instance.
    folds: Vec<u8>,
}

/// A view, projected on its leading directions.
struct Space<'a> {
    view: usize,
    scaled_view: &'a ScaledView,
    /// Orthonormal columns, if there are as many directions.
    directions: Matrix,
}

impl<'a> Evidence<'a> {
    /// Projects the rows of each view, for the discriminants.
    ///
    /// # Errors
    /// When rows cannot be read, or [`Error::Interrupted`](daimc_core::Error::Interrupted) after a request to stop.
    pub fn new(scan: &'a Scan<'a>, scaled_views: &'a [ScaledView], seed: u64, watch: &Watch) -> Result<Self> {
        let mut spaces = Vec::with_capacity(scaled_views.len());
        for (view, scaled_view) in scaled_views.iter().enumerate() {
            watch.check()?;
            spaces.extend(Space::new(scan, view, scaled_view, seed, watch)?);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // A separate stream: a simulated mask with the same seed must not use the same numbers.
        rng.set_stream(FOLD_STREAM);
        let folds = (0..scan.instances()).map(|_| rng.random_range(0..FOLDS as u8)).collect();
        Ok(Self { scan, spaces, folds })
    }

    /// The leading directions of each view; `None` for a view without instances.
    pub fn into_directions(self) -> Vec<Option<Matrix>> {
        let mut all: Vec<Option<Matrix>> = vec![None; self.scan.schema().len()];
        self.spaces.into_iter().for_each(|space| all[space.view] = Some(space.directions));
        all
    }

    /// The square root of the probability of each cluster for each instance, from all its views: rows of length 1.
    pub fn of(&self, labels: &[usize], clusters: usize, watch: &Watch) -> Result<Matrix> {
        let mut shares = vec![0.0; clusters];
        labels.iter().for_each(|&label| shares[label] += 1.0 / labels.len() as f64);
        // The logarithm for a cluster without instances is −∞, and views do not change it.
        let priors: Vec<f64> = shares.into_iter().map(f64::ln).collect();
        let mut predictions = Matrix::zeros(labels.len(), clusters);
        predictions.each_row(|_, row| row.copy_from_slice(&priors));
        for space in &self.spaces {
            watch.check()?;
            let moments = space.moments(self, labels, clusters)?;
            let rules = (0..FOLDS).into_par_iter().map(|fold| Rule::without(fold, &moments));
            let rules = rules.collect::<Result<Vec<_>>>()?;
            space.ask(self, &rules, &priors, &mut predictions)?;
        }
        predictions.each_row(|_, row| {
            normalise(row);
            row.iter_mut().for_each(|log| *log = (0.5 * *log).exp());
        });
        Ok(predictions)
    }
}

/// Normalises log probabilities.
#[inline(always)]
fn normalise(logs: &mut [f64]) {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    logs.iter_mut().for_each(|log| *log -= most + sum.ln());
}

impl<'a> Space<'a> {
    /// `None` for a view without instances.
    fn new(
        scan: &Scan<'_>,
        view: usize,
        scaled_view: &'a ScaledView,
        seed: u64,
        watch: &Watch,
    ) -> Result<Option<Self>> {
        let directions = longest((scan, view, scaled_view), DIMENSIONS, SAMPLE, seed, watch)?;
        Ok(directions.map(|directions| Self { view, scaled_view, directions }))
    }

    /// Sums over the instances of each fold.
    fn moments(&self, of: &Evidence<'_>, labels: &[usize], clusters: usize) -> Result<Vec<Moments>> {
        let width = self.directions.columns();
        let none = || -> Vec<Moments> { (0..FOLDS).map(|_| Moments::new(clusters, width)).collect() };
        let mut all = none();
        each_block(
            (of.scan, self.view, self.scaled_view),
            &self.directions,
            std::iter::repeat(()),
            || (none(), vec![Vec::new(); FOLDS]),
            |seen, (), (folds, rows)| {
                folds.iter_mut().for_each(Moments::clear);
                rows.iter_mut().for_each(Vec::clear);
                for (i, row) in seen.iter() {
                    let fold = usize::from(of.folds[i]);
                    folds[fold].add(labels[i], row);
                    rows[fold].extend_from_slice(row);
                }
                folds.iter_mut().zip(rows).for_each(|(moments, rows)| moments.multiply(rows));
                Ok(())
            },
            |(folds, _)| all.iter_mut().zip(folds).for_each(|(all, fold)| all.absorb(fold)),
        )?;
        Ok(all)
    }

    /// Adds the log likelihood of each cluster to the rows of `said`.
    fn ask(
        &self,
        of: &Evidence<'_>,
        rules: &[Option<Rule>],
        priors: &[f64],
        said: &mut Matrix,
    ) -> Result<()> {
        let importance = self.scaled_view.scaling.importance;
        let block = of.scan.blocks().size() * said.columns();
        each_block(
            (of.scan, self.view, self.scaled_view),
            &self.directions,
            said.values_mut().chunks_mut(block),
            || vec![0.0; priors.len()],
            |seen, said, logs| {
                let folds = &of.folds;
                Arch::new().dispatch(AddLogLikelihoods {
                    seen,
                    folds,
                    rules,
                    priors,
                    importance,
                    said,
                    logs,
                });
                Ok(())
            },
            |_| (),
        )
    }
}

/// Adds the log likelihoods of a view for the instances of a block.
struct AddLogLikelihoods<'a> {
    seen: &'a Projected<'a>,
    folds: &'a [u8],
    rules: &'a [Option<Rule>],
    priors: &'a [f64],
    importance: f64,
    /// The answers of the block.
    said: &'a mut [f64],
    /// Scratch memory for one instance.
    logs: &'a mut [f64],
}

impl WithSimd for AddLogLikelihoods<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { seen, folds, rules, priors, importance, said, logs } = self;
        for (i, row) in seen.iter() {
            // Without a rule, the view has no instances to fit it to.
            let Some(rule) = &rules[usize::from(folds[i])] else { continue };
            rule.scores(row, logs);
            logs.iter_mut().zip(priors).for_each(|(log, prior)| *log += prior);
            normalise(logs);
            let said = &mut said[(i - seen.first) * logs.len()..][..logs.len()];
            for ((said, log), prior) in said.iter_mut().zip(&*logs).zip(priors) {
                *said += importance * (log.max(LEAST) - prior.max(LEAST));
            }
        }
    }
}

/// Sums over some instances.
struct Moments {
    counts: Vec<f64>,
    /// Of the rows of each cluster: clusters × dimensions.
    sums: Matrix,
    /// `Σ z zᵀ`.
    products: Matrix,
}

impl Moments {
    fn new(clusters: usize, width: usize) -> Self {
        Self {
            counts: vec![0.0; clusters],
            sums: Matrix::zeros(clusters, width),
            products: Matrix::zeros(width, width),
        }
    }

    fn clear(&mut self) {
        self.counts.fill(0.0);
        self.sums.values_mut().fill(0.0);
        self.products.values_mut().fill(0.0);
    }

    /// Adds an instance, without its products.
    fn add(&mut self, label: usize, row: &[f64]) {
        self.counts[label] += 1.0;
        self.sums.row_mut(label).iter_mut().zip(row).for_each(|(sum, z)| *sum += z);
    }

    /// Adds the products of all instances, whose rows are concatenated.
    fn multiply(&mut self, rows: &[f64]) {
        if !rows.is_empty() {
            linalg::gram_into(&mut self.products, rows);
        }
    }

    fn absorb(&mut self, other: &Self) {
        let pairs = [(&mut self.sums, &other.sums), (&mut self.products, &other.products)];
        for (all, own) in pairs {
            all.values_mut().iter_mut().zip(own.values()).for_each(|(all, own)| *all += own);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(all, own)| *all += own);
    }
}

/// A linear discriminant: clusters are normal with a common covariance.
struct Rule {
    /// `Σ⁻¹ μ` of each cluster: clusters × dimensions.
    weights: Matrix,
    /// `−½ μᵀ Σ⁻¹ μ`; −∞ for a cluster without instances.
    offsets: Vec<f64>,
}

impl Rule {
    /// The rule fitted to all folds except one; `None` if those have no instances.
    fn without(fold: usize, moments: &[Moments]) -> Result<Option<Self>> {
        let (clusters, width) = (moments[0].sums.rows(), moments[0].sums.columns());
        let mut all = Moments::new(clusters, width);
        let others = moments.iter().enumerate().filter(|(other, _)| *other != fold);
        others.for_each(|(_, other)| all.absorb(other));
        let Moments { counts, sums: mut means, products: mut covariance } = all;
        for (cluster, count) in counts.iter().enumerate() {
            means.row_mut(cluster).iter_mut().for_each(|mean| *mean /= count.max(1.0));
        }
        let mut weighted = means.clone();
        for (cluster, count) in counts.iter().enumerate() {
            weighted.row_mut(cluster).iter_mut().for_each(|mean| *mean *= count);
        }
        let instances: f64 = counts.iter().sum();
        if instances == 0.0 {
            return Ok(None);
        }
        let divisor = (instances - clusters as f64).max(1.0);
        let between = linalg::transposed_product(&means, &weighted);
        for (entry, between) in covariance.values_mut().iter_mut().zip(between.values()) {
            *entry = (*entry - between) / divisor;
        }
        shrink(&mut covariance, instances);
        let (mut values, vectors) = linalg::symmetric_eigen(&covariance)?;
        linalg::lift(&mut values, 1.0);
        let mut scaled = vectors.clone();
        scaled.scale_columns(&values.iter().map(|value| value.recip()).collect::<Vec<_>>());
        let weights = linalg::product_transposed(&linalg::product(&means, &scaled), &vectors);
        let offset = |cluster: usize| {
            let likely = -0.5 * dot(weights.row(cluster), means.row(cluster));
            if counts[cluster] > 0.0 { likely } else { f64::NEG_INFINITY }
        };
        let offsets = (0..clusters).map(offset).collect();
        Ok(Some(Self { weights, offsets }))
    }

    /// The log likelihood of each cluster, up to a constant.
    #[inline(always)]
    fn scores(&self, row: &[f64], scores: &mut [f64]) {
        let clusters = self.weights.iter_rows().zip(&self.offsets);
        scores
            .iter_mut()
            .zip(clusters)
            .for_each(|(score, (weights, offset))| *score = dot(weights, row) + offset);
    }
}

/// Shrinks a covariance towards a multiple of the identity, by the optimal share for normal data (oracle approximating
/// shrinkage).
fn shrink(covariance: &mut Matrix, instances: f64) {
    let p = covariance.rows() as f64;
    let trace: f64 = (0..covariance.rows()).map(|i| covariance[(i, i)]).sum();
    let squares = dot(covariance.values(), covariance.values());
    let spread = (instances + 1.0 - 2.0 / p) * (squares - trace * trace / p);
    let share = (1.0 - 2.0 / p) * squares + trace * trace;
    let share = if spread > share { share / spread } else { 1.0 };
    covariance.values_mut().iter_mut().for_each(|entry| *entry *= 1.0 - share);
    (0..covariance.rows()).for_each(|i| covariance[(i, i)] += share * trace / p);
}

#[cfg(test)]
mod tests {
    use super::*;
    use daimc_core::Stop;
    use daimc_core::kmeans;
    use daimc_core::scaling::{Scale, Scaling};
    use daimc_core::simulate;
    use daimc_core::source::Buffer;
    use daimc_core::synthetic::Synthetic;
    use daimc_core::{View, Views};

    const INSTANCES: usize = 300;
    const CLUSTERS: usize = 4;

    fn data() -> (Views<'static>, Vec<usize>) {
        let data = Synthetic::new(INSTANCES, CLUSTERS).noise(1.5).seed(2);
        let present = simulate::missing(INSTANCES, &[0.3, 0.4], 2).unwrap();
        let view = |name, d, v: usize| data.dense::<f64>(name, d).unwrap().mask(&present[v]).unwrap();
        (Views::new(vec![view("x", 6, 0), view("y", 9, 1)]).unwrap(), data.truth())
    }

    fn scaled_views(source: &Views<'_>) -> Vec<ScaledView> {
        let of = |view| {
            let scaling = Scaling::fit(&Scan::new(source, &Stop::default()), view, Scale::None).unwrap();
            ScaledView::fit(&Scan::new(source, &Stop::default()), view, scaling, true).unwrap()
        };
        (0..source.len()).map(of).collect()
    }

    /// The scaled row of an instance.
    fn row(source: &Views<'_>, view: usize, scaled_view: &ScaledView, i: usize) -> Vec<f64> {
        let mut buffer = Buffer::default();
        let chosen = [daimc_core::index::index(i)];
        kmeans::Points::new(&Scan::new(source, &Stop::default()), view, scaled_view, &chosen, &mut buffer)
            .unwrap()
            .values(0)
    }

    /// The predictions by their definition, cluster by cluster and feature by feature.
    fn literal(
        source: &Views<'_>,
        scaled_views: &[ScaledView],
        evidence: &Evidence<'_>,
        labels: &[usize],
    ) -> Matrix {
        let share = |k: usize| labels.iter().filter(|label| **label == k).count() as f64 / INSTANCES as f64;
        Matrix::from_fn(INSTANCES, CLUSTERS, |i, wanted| {
            let mut logs: Vec<f64> = (0..CLUSTERS).map(|k| share(k).ln()).collect();
            for (view, scaled_view) in
                scaled_views.iter().enumerate().filter(|(view, _)| source.is_present(*view, i))
            {
                let d = scaled_view.features();
                let others: Vec<(usize, Vec<f64>)> = (0..INSTANCES)
                    .filter(|&j| evidence.folds[j] != evidence.folds[i] && source.is_present(view, j))
                    .map(|j| (labels[j], row(source, view, scaled_view, j)))
                    .collect();
                let mean = |k: usize| {
                    let own: Vec<_> = others.iter().filter(|other| other.0 == k).collect();
                    let sum = |f: usize| own.iter().map(|other| other.1[f]).sum::<f64>();
                    (0..d).map(|f| sum(f) / own.len() as f64).collect::<Vec<f64>>()
                };
                let means: Vec<Vec<f64>> = (0..CLUSTERS).map(mean).collect();
                let mut covariance = Matrix::from_fn(d, d, |a, b| {
                    let product = |(k, x): &(usize, Vec<f64>)| (x[a] - means[*k][a]) * (x[b] - means[*k][b]);
                    others.iter().map(product).sum::<f64>() / (others.len() - CLUSTERS) as f64
                });
                shrink(&mut covariance, others.len() as f64);
                let (values, vectors) = linalg::symmetric_eigen(&covariance).unwrap();
                let x = row(source, view, scaled_view, i);
                let mut own: Vec<f64> = (0..CLUSTERS)
                    .map(|k| {
                        let along =
                            |e: usize| (0..d).map(|f| vectors[(f, e)] * (x[f] - means[k][f])).sum::<f64>();
                        share(k).ln() - 0.5 * (0..d).map(|e| along(e).powi(2) / values[e]).sum::<f64>()
                    })
                    .collect();
                normalise(&mut own);
                (0..CLUSTERS).for_each(|k| logs[k] += own[k].max(LEAST) - share(k).ln());
            }
            normalise(&mut logs);
            logs[wanted].exp().sqrt()
        })
    }

    #[test]
    fn answers_are_those_of_a_discriminant_of_the_other_instances() {
        let (source, truth) = data();
        let scaled_views = scaled_views(&source);
        let watch = Watch::default();
        let scan = Scan::new(&source, &Stop::default());
        let evidence = Evidence::new(&scan, &scaled_views, 3, &watch).unwrap();
        let found = evidence.of(&truth, CLUSTERS, &watch).unwrap();
        let expected = literal(&source, &scaled_views, &evidence, &truth);
        for (found, expected) in found.values().iter().zip(expected.values()) {
            assert!((found - expected).abs() < 1e-8, "{found} {expected}");
        }
    }

    #[test]
    fn what_varies_most_is_kept() {
        // Ten directions of large variance among 200 features of small variance.
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let strong = Matrix::from_fn(10, 200, |_, _| rng.random_range(-1.0..1.0));
        let values: Vec<f64> = (0..400)
            .flat_map(|_| {
                let own: Vec<f64> = (0..10).map(|_| rng.random_range(-1.0..1.0)).collect();
                let noise: Vec<f64> = (0..200).map(|_| rng.random_range(-0.3..0.3)).collect();
                (0..200).map(move |f| (own.clone(), noise[f], f)).collect::<Vec<_>>()
            })
            .map(|(own, noise, f)| {
                noise + own.iter().enumerate().map(|(k, x)| x * strong[(k, f)]).sum::<f64>()
            })
            .collect();
        let source = Views::new(vec![View::dense("x", 200, values).unwrap()]).unwrap();
        let scaled_views = scaled_views(&source);
        let space =
            Space::new(&Scan::new(&source, &Stop::default()), 0, &scaled_views[0], 0, &Watch::default())
                .unwrap()
                .unwrap();
        assert_eq!((space.directions.rows(), space.directions.columns()), (200, DIMENSIONS));
        let gram = linalg::transposed_product(&space.directions, &space.directions);
        for i in 0..DIMENSIONS {
            (0..DIMENSIONS).for_each(|j| assert!((gram[(i, j)] - f64::from(u8::from(i == j))).abs() < 1e-9));
        }
        for k in 0..10 {
            let along = linalg::product(&Matrix::from_fn(1, 200, |_, f| strong[(k, f)]), &space.directions);
            let kept = dot(along.values(), along.values()) / dot(strong.row(k), strong.row(k));
            assert!(kept > 0.99, "{k}: {kept}");
        }
    }

    #[test]
    fn an_empty_cluster_has_probability_zero_and_a_view_of_one_instance_has_no_effect() {
        let (source, truth) = data();
        let first: Vec<bool> = (0..INSTANCES).map(|i| i == 7).collect();
        let alone = Synthetic::new(INSTANCES, CLUSTERS).dense::<f64>("z", 5).unwrap().mask(&first).unwrap();
        let more = Views::new(source.iter().cloned().chain([alone]).collect()).unwrap();
        let watch = Watch::default();
        let of = |source: &Views<'_>, clusters| {
            let scaled_views = scaled_views(source);
            Evidence::new(&Scan::new(source, &Stop::default()), &scaled_views, 3, &watch)
                .unwrap()
                .of(&truth, clusters, &watch)
                .unwrap()
        };
        let (plain, empty) = (of(&source, CLUSTERS), of(&source, CLUSTERS + 1));
        for i in 0..INSTANCES {
            assert_eq!(empty[(i, CLUSTERS)], 0.0, "{i}: {:?}", empty.row(i));
            // The covariance has one degree of freedom less.
            (0..CLUSTERS).for_each(|k| assert!((plain[(i, k)] - empty[(i, k)]).abs() < 0.02));
        }
        assert_eq!(of(&more, CLUSTERS), plain);
    }

    #[test]
    fn no_instance_predicts_itself() {
        let (source, _) = data();
        let scaled_views = scaled_views(&source);
        let watch = Watch::default();
        let scan = Scan::new(&source, &Stop::default());
        let evidence = Evidence::new(&scan, &scaled_views, 3, &watch).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let drawn: Vec<usize> = (0..INSTANCES).map(|_| rng.random_range(0..CLUSTERS)).collect();
        let predictions = evidence.of(&drawn, CLUSTERS, &watch).unwrap();
        let right = drawn.iter().enumerate().map(|(i, &label)| predictions[(i, label)].powi(2)).sum::<f64>();
        let share = right / INSTANCES as f64;
        assert!((share - 0.25).abs() < 0.05, "{share}");
    }
}
