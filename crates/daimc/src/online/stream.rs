//! A single pass over large data: a fit to the first batch, and an update for each further batch.

use std::ops::{ControlFlow, Range};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{Online, Update};
use crate::fit::{Daimc, Fit};
use crate::model::Model;
use crate::place::Place;
use daimc_core::scan::Scan;
use daimc_core::source::{Buffer, Source};
use daimc_core::subset::Subset;
use daimc_core::{Error, Result, Stop};

/// The result of one pass over all instances.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Streamed {
    /// The final model.
    pub model: Model,
    /// The cluster of each instance, as assigned by the final model.
    pub labels: Vec<usize>,
    /// The confidence of the clusters; see [`Fit::confidence`].
    pub confidence: Vec<f64>,
    /// The number of batches.
    pub batches: usize,
    /// The number of instances in all batches except the first that no cluster explained when they arrived.
    pub unexplained: usize,
    /// The number of batches that were not learnt; see [`StreamProgress::Refused`].
    pub refused: usize,
}

/// The progress of a pass.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum StreamProgress<'a> {
    /// The first batch was fitted.
    Fitted(&'a Fit),
    /// Another batch was processed: its number, from 1 for the first, and the result.
    Updated(usize, &'a Update),
    /// Another batch was not learnt, because the model would have lost a cluster: its number, and the error.
    Refused(usize, &'a Error),
    /// This many instances have been assigned by the final model.
    Placed(usize),
}

/// A batch consists of at least this many runs of consecutive instances, if there are as many.
const RUNS: usize = 128;

/// The number of a stream of random draws for this purpose alone.
const STREAM: u64 = u64::MAX / 5;

impl Online {
    /// Passes once over all instances, in batches of this size: the first is fitted with `fit`, the others are updates. Then the
    /// final model assigns all instances, for which they are read once more. The memory contains one batch, and a cluster and its
    /// confidence for each instance.
    ///
    /// A batch is a mixture of runs of consecutive instances from all over the data, which may be sorted by some property. If
    /// single rows cannot be read, batches are consecutive. `each` receives the progress; if it breaks, the work ends.
    ///
    /// # Errors
    /// As [`Daimc::fit`] and [`Online::update`]; when a batch has fewer instances than there are clusters; and
    /// [`Error::Interrupted`].
    pub fn fit(
        &self,
        fit: &Daimc,
        source: &dyn Source,
        batch: usize,
        mut each: impl FnMut(StreamProgress<'_>) -> ControlFlow<()>,
    ) -> Result<Streamed> {
        source.schema().check()?;
        if batch < fit.options().clusters {
            let reason = format!("must be at least the number of clusters, {}", fit.options().clusters);
            return Err(Error::Option { option: "batch", value: batch.to_string(), reason });
        }
        let stop = self.stop.clone();
        let mut tell = |progress: StreamProgress<'_>| match each(progress) {
            ControlFlow::Break(()) => Err(Error::Interrupted),
            ControlFlow::Continue(()) => stop.check(),
        };
        let batches = Batches::new(source, batch, fit.options().seed);
        let (mut model, mut unexplained, mut refused) = (None, 0, 0);
        for number in 0..batches.len() {
            model = Some(batches.with(number, &stop, |some| match &model {
                None => {
                    let mut fitted = fit.fit(some).map_err(of_first)?;
                    fitted.model.begin_stream();
                    tell(StreamProgress::Fitted(&fitted))?;
                    Ok(fitted.model)
                }
                Some(model) => {
                    let update = match self.update_model(model, some) {
                        Err(error @ Error::ClusterLost { .. }) => {
                            refused += 1;
                            tell(StreamProgress::Refused(number + 1, &error))?;
                            return Ok(model.clone());
                        }
                        updated => updated?,
                    };
                    unexplained += update.unexplained.len();
                    tell(StreamProgress::Updated(number + 1, &update))?;
                    Ok(update.fit.model)
                }
            })?);
        }
        let Some(model) = model else { return Err(Error::EmptyInput { what: "instances".into() }) };
        let (mut labels, mut confidence) = (Vec::new(), Vec::new());
        for start in (0..source.instances()).step_by(batch) {
            let range = start..(start + batch).min(source.instances());
            let Place { labels: own, confidence: sure, .. } =
                with_range(source, range, &stop, |some| model.place(some))?;
            labels.extend(own);
            confidence.extend(sure);
            tell(StreamProgress::Placed(labels.len()))?;
        }
        Ok(Streamed { model, labels, confidence, batches: batches.len(), unexplained, refused })
    }
}

/// The views of the first batch represent all data: a missing view there is reported as such.
fn of_first(error: Error) -> Error {
    match error {
        Error::EmptyView { view } => Error::Unsuitable {
            what: "batch",
            value: "the first".into(),
            reason: format!(
                "no instance of the batch is present in view {}: use larger batches",
                daimc_core::text::quoted(&view)
            ),
        },
        error => error,
    }
}

/// All instances of a source in batches.
struct Batches<'a> {
    source: &'a dyn Source,
    /// The instances of each batch, in increasing order; `None` if they are consecutive.
    mixed: Option<Vec<Vec<u32>>>,
    ranges: Vec<Range<usize>>,
}

impl<'a> Batches<'a> {
    fn new(source: &'a dyn Source, size: usize, seed: u64) -> Self {
        let instances = source.instances();
        // The remainder is part of the last batch: a small batch of its own would cause more forgetting than learning.
        let count = (instances / size.max(1)).max(1);
        let edge = |number: usize| instances * number / count;
        let ranges: Vec<Range<usize>> = (0..count).map(|number| edge(number)..edge(number + 1)).collect();
        let random = source.memory().is_some() || source.random_access().is_some();
        let mixed = random.then(|| {
            let run = (size / RUNS).max(1);
            let mut runs: Vec<usize> = (0..instances.div_ceil(run)).collect();
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(STREAM);
            runs.shuffle(&mut rng);
            let order: Vec<u32> = runs
                .iter()
                .flat_map(|&number| number * run..((number + 1) * run).min(instances))
                .map(daimc_core::index::index)
                .collect();
            let own = |range: &Range<usize>| {
                let mut own = order[range.clone()].to_vec();
                own.sort_unstable();
                own
            };
            ranges.iter().map(own).collect()
        });
        Self { source, mixed, ranges }
    }

    fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Calls `work` with the rows of a batch, in memory.
    fn with<T>(&self, number: usize, stop: &Stop, work: impl FnOnce(&Subset<'_>) -> Result<T>) -> Result<T> {
        match &self.mixed {
            None => with_range(self.source, self.ranges[number].clone(), stop, work),
            Some(mixed) => {
                let scan = Scan::new(self.source, stop);
                let mut buffers = vec![Buffer::default(); self.source.views()];
                work(&Subset::pick(&scan, &mixed[number], &mut buffers)?)
            }
        }
    }
}

/// Calls `work` with the rows of consecutive instances, in memory.
fn with_range<T>(
    source: &dyn Source,
    range: Range<usize>,
    stop: &Stop,
    work: impl FnOnce(&Subset<'_>) -> Result<T>,
) -> Result<T> {
    let scan = Scan::new(source, stop);
    let mut buffers = vec![Buffer::default(); source.views()];
    work(&Subset::range(&scan, range, &mut buffers)?)
}
