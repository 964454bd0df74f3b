//! Reductions as messages. A reduction is sent to partitions in other processes by name, as bytes; [`REDUCTIONS`] lists all of
//! them.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Partition, Reduction, clusters, latent, rows, runs};
use daimc_core::table::{Partial, unsuitable};
use daimc_core::{Result, kmeans, scale, scaled_view};

/// A reduction with its name: how a partition answers it, and how two answers are merged.
pub(crate) struct Entry {
    name: &'static str,
    answer: fn(&mut Partition<'_>, &[u8]) -> Result<Vec<u8>>,
    merge: fn(&[u8], &[u8]) -> Result<Vec<u8>>,
}

impl Entry {
    const fn of<R: Reduction>() -> Self {
        Self {
            name: R::NAME,
            answer: |partition, request| {
                let request: R = decode(request)?;
                encode(R::NAME, &request.local(partition)?)
            },
            merge: |one, other| encode(R::NAME, &decode::<R::Partial>(one)?.merge(decode(other)?)?),
        }
    }

    fn named(name: &str) -> Result<&'static Self> {
        let entry = REDUCTIONS.iter().find(|entry| entry.name == name);
        entry.ok_or_else(|| {
            unsuitable(format!("no reduction is called '{name}': use one version of daimc everywhere"))
        })
    }
}

/// All reductions.
const REDUCTIONS: &[Entry] = &[
    Entry::of::<rows::Reset>(),
    Entry::of::<rows::Describe>(),
    Entry::of::<rows::Prepare>(),
    Entry::of::<rows::ScaleViews>(),
    Entry::of::<rows::Ready>(),
    Entry::of::<rows::Pick>(),
    Entry::of::<rows::Read>(),
    Entry::of::<rows::Over<scale::SumColumns<'static>>>(),
    Entry::of::<rows::Over<scaled_view::RowNorms<'static>>>(),
    Entry::of::<rows::Over<kmeans::LloydStep<'static>>>(),
    Entry::of::<rows::Over<kmeans::SumLatent>>(),
    Entry::of::<rows::Over<kmeans::LeadingColumns<'static>>>(),
    Entry::of::<latent::Begin>(),
    Entry::of::<latent::Start>(),
    Entry::of::<latent::Sweep>(),
    Entry::of::<latent::Rescale>(),
    Entry::of::<latent::Leading>(),
    Entry::of::<latent::Restart>(),
    Entry::of::<latent::Save>(),
    Entry::of::<latent::Restore>(),
    Entry::of::<latent::Accept>(),
    Entry::of::<clusters::Assign>(),
    Entry::of::<clusters::Renumber>(),
    Entry::of::<clusters::Adopt>(),
    Entry::of::<clusters::SumClusters>(),
    Entry::of::<clusters::SumMembers>(),
    Entry::of::<clusters::LabelsOf>(),
    Entry::of::<clusters::CountMissing>(),
    Entry::of::<clusters::Finish>(),
    Entry::of::<clusters::Confidence>(),
    Entry::of::<runs::Keep>(),
    Entry::of::<runs::Stack>(),
    Entry::of::<runs::CompareRun>(),
    Entry::of::<runs::Agree>(),
];

/// The request for a reduction: the number of the fork and the reduction.
pub(crate) fn request<R: Reduction>(fork: u32, reduction: &R) -> Result<Vec<u8>> {
    encode(R::NAME, &(fork, reduction))
}

impl Partition<'_> {
    /// Answers a request of a [`Task`](crate::Task).
    ///
    /// # Errors
    /// When rows cannot be read, when the bytes are not a valid request, or when earlier requests that it depends on were not
    /// answered.
    pub fn answer(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        let (name, content) = named(request)?;
        let (fork, content) = postcard::take_from_bytes::<u32>(content).map_err(|error| broken(&error))?;
        (Entry::named(name)?.answer)(self.forked(fork)?, content)
    }
}

/// The result of a reduction, from the merged answers of all partitions.
pub(crate) fn result<R: Reduction>(answer: &[u8]) -> Result<R::Partial> {
    let (name, content) = named(answer)?;
    if name == R::NAME { decode(content) } else { Err(unsuitable(format!("'{name}' answers '{}'", R::NAME))) }
}

/// Merges two answers to the same request.
pub(crate) fn merge(one: &[u8], other: &[u8]) -> Result<Vec<u8>> {
    let ((name, one), (same, other)) = (named(one)?, named(other)?);
    if name != same {
        return Err(unsuitable(format!("answers to '{name}' and to '{same}' cannot be merged")));
    }
    (Entry::named(name)?.merge)(one, other)
}

fn named(message: &[u8]) -> Result<(&str, &[u8])> {
    if message.is_empty() {
        return Err(unsuitable("a message is empty: an answer of a partition was lost"));
    }
    postcard::take_from_bytes(message).map_err(|error| broken(&error))
}

fn encode(name: &str, content: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(&(name, content)).map_err(|error| unsuitable(error.to_string()))
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| broken(&error))
}

fn broken(error: &postcard::Error) -> daimc_core::Error {
    unsuitable(format!("the bytes are not a valid message ({error})"))
}
