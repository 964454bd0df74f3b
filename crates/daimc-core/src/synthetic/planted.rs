//! Data with planted clusters as in several fields, to test defaults on.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::gaussian;
use crate::simulate;
use crate::{Error, Result, View, Views};

/// The kinds of planted data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// Single cells: log-normalised counts of 1000 genes, a panel of 50 proteins, accessible sites (sparse), a second,
    /// noisier panel and a targeted assay of 300 genes.
    Cells,
    /// Patients: features of very different spread and offset, a fifth of them informative, with factors that are
    /// common to many features and independent of the clusters.
    Omics,
    /// Documents: sparse word counts, with a separate vocabulary for each view.
    Text,
}

/// The mechanism by which instances go missing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Missing {
    /// Completely at random, a share of every view; views with a rate of 0 are complete.
    AtRandom,
    /// Depending on the cluster: three times as often in the first half of the clusters as in the others.
    ByCluster,
}

/// Views with planted clusters as in a field; the same seed gives the same data.
///
/// ```
/// use daimc_core::synthetic::planted::{Field, Planted};
///
/// let planted = Planted::new(Field::Cells, 500, 5).rates(vec![0.0, 0.25]).seed(3);
/// let (views, truth) = planted.make()?;
/// assert_eq!((views.len(), views.instances(), truth.len()), (2, 500, 500));
/// # Ok::<(), daimc_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Planted {
    field: Field,
    instances: usize,
    clusters: usize,
    rates: Vec<f64>,
    missing: Missing,
    seed: u64,
}

impl Planted {
    /// The given number of instances and clusters, in two complete views.
    #[must_use]
    pub fn new(field: Field, instances: usize, clusters: usize) -> Self {
        let missing = Missing::AtRandom;
        Self { field, instances, clusters: clusters.max(1), rates: vec![0.0; 2], missing, seed: 0 }
    }

    /// Sets the missing share of each view; the number of views is that of the rates, at most five.
    #[must_use]
    pub fn rates(mut self, rates: Vec<f64>) -> Self {
        self.rates = rates;
        self
    }

    /// Sets the mechanism by which instances go missing.
    #[must_use]
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// Sets the seed of all draws.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The views and the cluster of each instance.
    ///
    /// # Errors
    /// When there are more than five views, and as [`simulate::missing`].
    pub fn make(&self) -> Result<(Views<'static>, Vec<usize>)> {
        if self.rates.len() > 5 {
            return Err(Error::Simulation { reason: "planted data have at most five views".into() });
        }
        let mut rng = self.rng(0);
        let truth: Vec<usize> = (0..self.instances).map(|_| rng.random_range(0..self.clusters)).collect();
        let present = self.present(&truth, &mut rng)?;
        let views = present.iter().enumerate().map(|(view, present)| {
            let mut rng = self.rng(view as u64 + 1);
            let made = match (self.field, view) {
                (Field::Cells, 0) => self.counts("rna", 1000, 20, &truth, &mut rng),
                (Field::Cells, 1) => self.panel("protein", 50, 6, (1.2, 0.7), &truth, &mut rng),
                (Field::Cells, 2) => self.words("sites", (2000, 60), (0.2, 0.0), &truth, &mut rng),
                (Field::Cells, 3) => self.panel("second", 30, 5, (1.2, 1.0), &truth, &mut rng),
                (Field::Cells, _) => self.counts("targeted", 300, 15, &truth, &mut rng),
                (Field::Omics, view) => {
                    let (name, features) = OMICS[view];
                    self.spread(name, features, &truth, &mut rng)
                }
                (Field::Text, view) => self.words(TEXT[view], (2000, 100), (0.14, 1.0), &truth, &mut rng),
            };
            made?.mask(present)
        });
        Ok((Views::new(views.collect::<Result<_>>()?)?, truth))
    }

    /// Draws from a separate stream: fits and masks with the same seed must be independent of the data.
    fn rng(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream((1 << 40) + stream);
        rng
    }

    fn present(&self, truth: &[usize], rng: &mut ChaCha8Rng) -> Result<Vec<Vec<bool>>> {
        if self.missing == Missing::AtRandom {
            return simulate::missing(self.instances, &self.rates, self.seed);
        }
        let rate = |rate: f64, cluster: usize| {
            // The overall share is the rate.
            let often = if 2 * cluster < self.clusters { 1.5 } else { 0.5 };
            (often * rate).min(0.95)
        };
        let mut present: Vec<Vec<bool>> = Vec::new();
        for own in &self.rates {
            present.push(truth.iter().map(|&k| rng.random::<f64>() >= rate(*own, k)).collect());
        }
        for i in 0..self.instances {
            if !present.iter().any(|view| view[i]) {
                present[rng.random_range(0..self.rates.len())][i] = true;
            }
        }
        Ok(present)
    }

    /// For each cluster, the features that are increased in it.
    fn marked(&self, features: usize, each: usize, rng: &mut ChaCha8Rng) -> Vec<bool> {
        let mut marked = vec![false; self.clusters * features];
        for own in marked.chunks_exact_mut(features) {
            let mut left = each.min(features);
            while left > 0 {
                let feature = rng.random_range(0..features);
                left -= usize::from(!own[feature]);
                own[feature] = true;
            }
        }
        marked
    }

    /// Poisson counts, normalised to the same sum and log-transformed; genes of a cluster are increased by the factor e.
    fn counts(
        &self,
        name: &str,
        genes: usize,
        each: usize,
        truth: &[usize],
        rng: &mut ChaCha8Rng,
    ) -> Result<View<'static>> {
        let marked = self.marked(genes, each, rng);
        let base: Vec<f64> = (0..genes).map(|_| (gaussian(rng) - 1.7).exp()).collect();
        let mut values = Vec::with_capacity(truth.len() * genes);
        for &cluster in truth {
            let depth = (0.3 * gaussian(rng)).exp();
            let own = &marked[cluster * genes..][..genes];
            let counts: Vec<f64> = base
                .iter()
                .zip(own)
                .map(|(base, own)| poisson(depth * base * if *own { std::f64::consts::E } else { 1.0 }, rng))
                .collect();
            let sum: f64 = counts.iter().sum();
            values.extend(counts.iter().map(|count| (1e3 * count / sum.max(1.0)).ln_1p() as f32));
        }
        View::dense(name, genes, values)
    }

    /// A few features, some of which are increased in each cluster.
    fn panel(
        &self,
        name: &str,
        features: usize,
        each: usize,
        (up, noise): (f64, f64),
        truth: &[usize],
        rng: &mut ChaCha8Rng,
    ) -> Result<View<'static>> {
        let marked = self.marked(features, each, rng);
        let mut values = Vec::with_capacity(truth.len() * features);
        for &cluster in truth {
            let own = &marked[cluster * features..][..features];
            values.extend(own.iter().map(|own| (f64::from(*own) * up + noise * gaussian(rng)) as f32));
        }
        View::dense(name, features, values)
    }

    /// Features with log-normal spreads, offsets, and factors that are independent of the clusters.
    fn spread(
        &self,
        name: &str,
        features: usize,
        truth: &[usize],
        rng: &mut ChaCha8Rng,
    ) -> Result<View<'static>> {
        const FACTORS: usize = 3;
        let marked = self.marked(features, features / 5, rng);
        let shift: Vec<f64> = marked.iter().map(|own| if *own { 0.8 * gaussian(rng) } else { 0.0 }).collect();
        let spreads: Vec<f64> = (0..features).map(|_| (0.4 * gaussian(rng)).exp()).collect();
        let offsets: Vec<f64> = (0..features).map(|_| 8.0 + 2.0 * gaussian(rng)).collect();
        let loads: Vec<f64> = (0..features * FACTORS).map(|_| 0.2 * gaussian(rng)).collect();
        let mut values = Vec::with_capacity(truth.len() * features);
        for &cluster in truth {
            let factors: Vec<f64> = (0..FACTORS).map(|_| gaussian(rng)).collect();
            for f in 0..features {
                let common: f64 = (0..FACTORS).map(|k| factors[k] * loads[f * FACTORS + k]).sum();
                let own = shift[cluster * features + f] + common + gaussian(rng);
                values.push(offsets[f] + spreads[f] * own);
            }
        }
        View::dense(name, features, values)
    }

    /// Counts of words, or of sites, drawn one after another: a share `topical` from the vocabulary of the cluster, the
    /// others from all words, of which with `zipf` some are far more frequent than others.
    fn words(
        &self,
        name: &str,
        (words, each): (usize, usize),
        (topical, zipf): (f64, f64),
        truth: &[usize],
        rng: &mut ChaCha8Rng,
    ) -> Result<View<'static>> {
        let marked = self.marked(words, each, rng);
        let own: Vec<Vec<usize>> = marked
            .chunks_exact(words)
            .map(|marked| (0..words).filter(|word| marked[*word]).collect())
            .collect();
        let mut ends = Vec::with_capacity(words);
        let mut end = 0.0;
        for rank in 0..words {
            end += (rank as f64 + 10.0).powf(-zipf);
            ends.push(end);
        }
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut row = std::collections::BTreeMap::new();
        for &cluster in truth {
            row.clear();
            let length = 30 + poisson(50.0, rng) as usize;
            for _ in 0..length {
                let word = if rng.random::<f64>() < topical {
                    own[cluster][rng.random_range(0..own[cluster].len())]
                } else {
                    let at = rng.random::<f64>() * end;
                    ends.partition_point(|end| *end < at).min(words - 1)
                };
                *row.entry(word as u32).or_insert(0.0_f64) += 1.0;
            }
            columns.extend(row.keys().copied());
            values.extend(row.values().copied());
            offsets.push(columns.len());
        }
        View::sparse(name, words, offsets, columns, values)
    }
}

const OMICS: [(&str, usize); 5] =
    [("expression", 600), ("methylation", 400), ("mirna", 300), ("proteins", 150), ("metabolites", 100)];

const TEXT: [&str; 5] = ["english", "french", "german", "italian", "spanish"];

/// A Poisson number: exact, or by a normal approximation for large means.
fn poisson(mean: f64, rng: &mut impl Rng) -> f64 {
    if mean > 50.0 {
        return (mean + mean.sqrt() * gaussian(rng)).round().max(0.0);
    }
    let (end, mut product, mut count) = ((-mean).exp(), 1.0, 0.0);
    loop {
        product *= rng.random::<f64>();
        if product <= end {
            return count;
        }
        count += 1.0;
    }
}
