//! The number of clusters, chosen without labels.
//!
//! For each number K the data are resampled: some instances lose one of their views, and a model is fitted to the rest with
//! another seed. Two properties of its clusters are measured. *Stability* is the agreement of the clusters of different resamples
//! (adjusted Rand index, which is 0 for chance whatever K is). *Explained variance* is the share of the variance of the hidden
//! rows that the mean of the instance's cluster predicts, when the cluster was found from the instance's other views.
//!
//! Neither suffices alone. Few clusters are easily stable and explain little (three broad topics are more stable than six), and
//! structure within clusters always explains a little more variance as K grows. The score is the product of the two, the
//! reproducible share of the variance. One cluster too few reduces both factors by about 1/K, and splitting real clusters gains
//! less than that. The recommendation is therefore the smallest K whose score is within a tenth of the best. If no instance has
//! two views, nothing can be predicted: the recommendation is then the largest K whose stability is within a twentieth of the
//! best.
//!
//! Hidden rows are predicted by the mean of the cluster, and not by `U v`, whose noise hides the gain in small views. The hidden
//! share refers to the views of an instance beyond its first: a fixed share of all cells would be too much of two views and too
//! little of five.
//!
//! Clusters of noise can be stable too. The clusters of the recommended K are therefore compared with chance ([`Significance`]);
//! if they are no clearer, the recommendation is a single cluster.

mod resample;
mod rule;

use std::ops::ControlFlow;
use std::sync::Mutex;

use rayon::prelude::*;
use serde::Serialize;

use crate::{Daimc, Significance};
use daimc_core::metrics::ari;
use daimc_core::scan::Scan;
use daimc_core::source::{Buffer, Source};
use daimc_core::subset::Subset;
use daimc_core::{Error, Result};
use resample::{Resample, Sample};
use rule::Records;

/// Chooses the number of clusters; see the [module](self) for how.
///
/// ```
/// use daimc::{Daimc, Views, select::Select, synthetic::Synthetic};
///
/// let data = Synthetic::new(200, 4).seed(1);
/// let views = Views::new(vec![data.dense::<f64>("a", 20)?, data.dense::<f64>("b", 30)?])?;
/// let selection = Select::new(Daimc::new(2), 2..=6).resamples(4).run(&views)?;
/// assert_eq!(selection.recommended, 4);
/// # Ok::<(), daimc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Select {
    fit: Daimc,
    clusters: Vec<usize>,
    resamples: usize,
    hidden: f64,
}

/// The results for all numbers of clusters, and the recommended one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Selection {
    /// The numbers of clusters with their results, in increasing order.
    pub candidates: Vec<Candidate>,
    /// The recommended number of clusters; 1 if there is nothing to separate.
    pub recommended: usize,
    /// The share of the bootstrap samples of the resamples (1000, less those of a single resample) with the same recommendation;
    /// NaN if one cluster is recommended, which they cannot recommend.
    pub confidence: f64,
    /// Whether the clusters of the best number are clearer than chance; `None` if that is unknown.
    pub significance: Option<Significance>,
    /// The reason, in a sentence.
    pub reason: String,
    /// The number of resamples; fewer than requested if it was stopped.
    pub resamples: usize,
    /// Whether it was stopped before the last resample.
    pub interrupted: bool,
}

/// The results for one number of clusters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The number of clusters.
    pub clusters: usize,
    /// Adjusted Rand index between the clusters of two resamples.
    pub stability: Estimate,
    /// The share of the variance of hidden rows that the clusters predict, the mean of the views; negative if the mean of the
    /// view predicts better. `None` if no instance has two views, so that nothing can be hidden.
    pub explained: Option<Estimate>,
    /// The criterion of the recommendation: stability × explained variance, or stability alone.
    pub score: Estimate,
    /// The share of the bootstrap samples that recommend this number.
    pub votes: f64,
}

/// A median over the resamples and its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The median over the resamples, which is robust against a failed fit.
    pub value: f64,
    /// Its standard error, by the bootstrap.
    pub error: f64,
}

/// The progress after a fit, as passed to a callback.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Step {
    /// The number of finished fits.
    pub done: usize,
    /// The total number of fits.
    pub of: usize,
}

impl Daimc {
    /// Recommends a number of clusters among those given, with the present values of the other options.
    ///
    /// # Errors
    /// As [`Select::run`].
    pub fn select(
        &self,
        source: &dyn Source,
        clusters: impl IntoIterator<Item = usize>,
    ) -> Result<Selection> {
        Select::new(self.clone(), clusters).run(source)
    }
}

impl Select {
    /// Chooses among these numbers of clusters, with the other options of `fit`.
    #[must_use]
    pub fn new(fit: Daimc, clusters: impl IntoIterator<Item = usize>) -> Self {
        let mut clusters: Vec<usize> = clusters.into_iter().collect();
        clusters.sort_unstable();
        clusters.dedup();
        Self { fit, clusters, resamples: 10, hidden: 0.5 }
    }

    /// The number of resamples of the data (default 10), each with a fit for each number of clusters.
    #[must_use]
    pub fn resamples(mut self, resamples: usize) -> Self {
        self.resamples = resamples;
        self
    }

    /// The share that a resample hides (default 0.5) of the cells of each instance beyond one, so that every instance keeps a
    /// view. If no instance has two views, 0.4 times this share of the instances is left out.
    #[must_use]
    pub fn hidden(mut self, share: f64) -> Self {
        self.hidden = share;
        self
    }

    /// Fits all numbers of clusters and recommends one.
    ///
    /// # Errors
    /// When an option is invalid for these data, and as [`Daimc::fit`].
    pub fn run(&self, source: &dyn Source) -> Result<Selection> {
        self.run_with(source, |_| ControlFlow::Continue(()))
    }

    /// As [`Select::run`], and calls `each` after every fit. If it breaks, or the switch of the fit ([`Daimc::stop`]) is set, the
    /// recommendation uses the finished resamples.
    ///
    /// # Errors
    /// As [`Select::run`], and [`Error::Interrupted`] with fewer than two finished resamples.
    pub fn run_with(
        &self,
        source: &dyn Source,
        each: impl FnMut(Step) -> ControlFlow<()> + Send,
    ) -> Result<Selection> {
        self.check(source.instances())?;
        self.fit.on_threads(source, || self.work(source, each))
    }

    fn check(&self, instances: usize) -> Result<()> {
        let bad = |option, value: String, reason: &str| {
            Err(Error::Option { option, value, reason: reason.to_string() })
        };
        if self.clusters.len() < 2 {
            let given = format!("{:?}", self.clusters);
            return bad("clusters", given, "give at least two numbers of clusters");
        }
        let in_range = |k: &&usize| **k < 2 || **k >= instances;
        if let Some(wrong) = self.clusters.iter().rev().find(in_range) {
            let reason =
                format!("numbers to choose among go from 2 to below the number of instances, {instances}");
            let value = wrong.to_string();
            return Err(if *wrong < 2 {
                Error::Option { option: "clusters", value, reason }
            } else {
                Error::Unsuitable { what: "clusters", value, reason }
            });
        }
        if self.resamples < 2 {
            return bad("resamples", self.resamples.to_string(), "must be at least 2");
        }
        if !(0.01..=1.0).contains(&self.hidden) {
            return bad("hidden", self.hidden.to_string(), "must be a share from 0.01 to 1");
        }
        Ok(())
    }

    fn work(
        &self,
        source: &dyn Source,
        each: impl FnMut(Step) -> ControlFlow<()> + Send,
    ) -> Result<Selection> {
        let stop = self.fit.watch.stop.part();
        let scan = Scan::new(source, &stop);
        let instances: Vec<u32> = (0..daimc_core::index::index(source.instances())).collect();
        let mut buffers: Vec<Buffer> = (0..source.views()).map(|_| Buffer::default()).collect();
        let part = Subset::pick(&scan, &instances, &mut buffers)?;
        // Each number of clusters with the scaling that a fit with it takes; the largest first, because they take the longest.
        let resolve = |&clusters: &usize| self.fit.clone().clusters(clusters).resolved(&scan);
        let resolved: Vec<Daimc> = self.clusters.par_iter().rev().map(resolve).collect::<Result<_>>()?;
        let of = self.resamples * self.clusters.len();
        let progress = Mutex::new((each, 0));
        let seed = self.fit.options().seed;
        let mut finished: Vec<Vec<Sample>> = Vec::new();
        for number in 0..self.resamples {
            let resample = Resample::draw(&part, self.hidden, seed, number);
            let one = |resolved: &Daimc| -> Result<Option<Sample>> {
                if stop.is_set() {
                    return Ok(None);
                }
                let fit = resolved.clone().alone(resample.seed()).stop(&stop);
                let Some(found) = resample.fit(&fit, &part, &stop)? else { return Ok(None) };
                let (each, done) = &mut *progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                *done += 1;
                if each(Step { done: *done, of }).is_break() {
                    stop.set();
                }
                Ok(Some(found))
            };
            let all: Vec<Option<Sample>> = resolved.par_iter().map(one).collect::<Result<Vec<_>>>()?;
            let all: Option<Vec<Sample>> = all.into_iter().rev().collect();
            finished.extend(all);
            if stop.is_set() {
                break;
            }
        }
        if finished.len() < 2 {
            return Err(Error::Interrupted);
        }
        let of_clusters = |k: usize| -> Result<Records> {
            let samples: Vec<&Sample> = finished.iter().map(|resample| &resample[k]).collect();
            let mut agreement = vec![vec![1.0; samples.len()]; samples.len()];
            for (i, a) in samples.iter().enumerate() {
                for (j, b) in samples[..i].iter().enumerate() {
                    let (a, b) = a.common(b);
                    let found = ari(&a, &b)?;
                    (agreement[i][j], agreement[j][i]) = (found, found);
                }
            }
            let explained = samples.iter().map(|sample| sample.explained).collect();
            Ok(Records { clusters: self.clusters[k], agreement, explained })
        };
        let records: Vec<Records> =
            (0..self.clusters.len()).into_par_iter().map(of_clusters).collect::<Result<_>>()?;
        let mut selection = rule::recommend(&records, seed);
        selection.interrupted = finished.len() < self.resamples;
        let best = self.fit.clone().clusters(selection.recommended).seed(seed);
        Ok(rule::against_chance(selection, best.chance(&scan)?))
    }
}
