//! One pass over data that are too large to be read often: a fit to the first batch, and an update for each of the others.

use std::ops::{ControlFlow, Range};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{Online, Update};
use crate::fit::{Daimc, Fit};
use crate::model::Model;
use crate::place::Place;
use crate::scan::Scan;
use crate::source::{Buffer, Source};
use crate::subset::Subset;
use crate::{Error, Result, Stop};

/// What one pass over all instances has led to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Streamed {
    /// What was learnt.
    pub model: Model,
    /// The cluster of each instance, as the model places it in the end.
    pub labels: Vec<usize>,
    /// How sure the clusters are; see [`Fit::confidence`].
    pub confidence: Vec<f64>,
    /// How many batches there were.
    pub batches: usize,
    /// How many instances of all batches but the first no cluster explained when they came.
    pub unexplained: usize,
}

/// How far a pass is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum StreamProgress<'a> {
    /// The first batch was fitted.
    Fitted(&'a Fit),
    /// Another batch was taken in: its number, from 1 for the first, and what came of it.
    Updated(usize, &'a Update),
    /// So many instances have been placed by the final model.
    Placed(usize),
}

/// A batch is made of at least so many runs of successive instances, if there are as many.
const RUNS: usize = 128;

/// A stream of random draws that nobody else has.
const STREAM: u64 = u64::MAX / 5;

impl Online {
    /// Goes once over all instances, in batches of so many: the first is fitted as `fit` says, the others are updates. Then all
    /// are placed by the final model, for which they are read once more. In memory are a batch, and a cluster and its confidence for
    /// each instance.
    ///
    /// A batch is a mixture of runs of successive instances from all over the data, which may be sorted by what they show; where
    /// single rows cannot be read, batches are successive. `each` hears how far it is; if it breaks, the work ends.
    ///
    /// # Errors
    /// As [`Daimc::fit`] and [`Online::update`]; when a batch has fewer instances than there are clusters, and
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
        let (mut model, mut unexplained) = (None, 0);
        for number in 0..batches.len() {
            model = Some(batches.with(number, &stop, |some| match &model {
                None => {
                    let fitted = fit.fit(some).map_err(of_first)?;
                    tell(StreamProgress::Fitted(&fitted))?;
                    Ok(fitted.model)
                }
                Some(model) => {
                    let update = self.update_model(model, some)?;
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
        Ok(Streamed { model, labels, confidence, batches: batches.len(), unexplained })
    }
}

/// The first batch stands for all: what it lacks must be told as such.
fn of_first(error: Error) -> Error {
    match error {
        Error::EmptyView { view } => Error::Unsuitable {
            what: "batch",
            value: "the first".into(),
            reason: format!("it shows nobody in view {}: take larger batches", crate::text::quoted(&view)),
        },
        error => error,
    }
}

/// All instances of a source in batches.
struct Batches<'a> {
    source: &'a dyn Source,
    /// The instances of each batch, in increasing order, or where they are successive none.
    mixed: Option<Vec<Vec<u32>>>,
    ranges: Vec<Range<usize>>,
}

impl<'a> Batches<'a> {
    fn new(source: &'a dyn Source, size: usize, seed: u64) -> Self {
        let instances = source.instances();
        // The rest is part of the last batch: a batch of few would be forgotten more than it has taught.
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
                .map(crate::index::index)
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

    /// Does something with the rows of a batch, which are in memory meanwhile.
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

/// Does something with the rows of successive instances, which are in memory meanwhile.
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
