//! What is asked, and what is answered.

use std::ops::Range;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cluster_sums::ClusterSums;
use crate::forest::{Forest, Merge};
use crate::initialise::Votes;
use crate::kmeans::{ColumnTotals, Members};
use crate::lens::{Limits, Norms, Parts};
use crate::missingness::Lacking;
use crate::place::Place;
use crate::prepared::Preparation;
use crate::scale::{ColumnSums, Measure, Scaling};
use crate::schema::{Layout, Presence};
use crate::shard::VStep;
use crate::source::Buffer;
use crate::statistics::{Factors, Statistics};
use crate::{Error, Matrix, Result};

/// The rows that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Table {
    /// Those of the views.
    Views,
    /// Those of V.
    Latent,
}

/// How instances are assigned to clusters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Clusters {
    /// To those of the nearest centres among rows of V.
    Nearest(Box<Nearest>),
    /// As was told, to so many.
    Told(usize),
}

/// Rows of V as they are seen, and centres among them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Nearest {
    pub lens: Parts,
    pub centres: Matrix,
    /// The number of the cluster of each.
    pub numbers: Vec<usize>,
}

impl Clusters {
    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Nearest(nearest) => nearest.numbers.len(),
            Self::Told(count) => *count,
        }
    }
}

/// What whoever holds rows is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// To forget everything but the rows.
    Reset,
    Describe,
    Columns {
        table: Table,
        view: usize,
        measure: Measure,
    },
    Norms {
        table: Table,
        view: usize,
        scaling: Scaling,
        pilot: Vec<f64>,
        limits: Limits,
    },
    /// The rows of those of some instances that are held.
    Rows {
        table: Table,
        view: usize,
        instances: Vec<u32>,
    },
    /// The rows of those of successive instances that are held: as they are, or, of views as they are seen, along some directions.
    Range {
        table: Table,
        view: usize,
        instances: Range<usize>,
        along: Option<Matrix>,
    },
    /// To prepare rows from now on.
    Prepare(Vec<Preparation>),
    /// To see rows in this way from now on.
    Lenses {
        latent: usize,
        lenses: Vec<Parts>,
    },
    /// To make the first V.
    Begin(Votes),
    /// To take these rows of V, which are those of all instances.
    Start(Matrix),
    Sweep {
        factors: Factors,
        step: VStep,
    },
    /// To multiply the columns of V.
    Rescale(Vec<f64>),
    /// The column of `V · scale` that is largest for each instance.
    Leading(Vec<f64>),
    ColumnTotals,
    Leaders {
        lens: Parts,
        totals: ColumnTotals,
    },
    /// One of Lloyd's iterations; the first of several knows no labels before.
    Refine {
        lens: Parts,
        centres: Matrix,
        first: bool,
    },
    Members(Clusters),
    /// To start again from clusters of which there are so many instances.
    Restart {
        clusters: Clusters,
        sizes: Vec<usize>,
    },
    /// The clusters of those of some instances that are held.
    Labels {
        clusters: Clusters,
        instances: Vec<u32>,
    },
    Lacking(Clusters),
    /// To take these clusters from now on, which are those of all instances, and how clear they are.
    Adopt {
        labels: Vec<u32>,
        confidence: Vec<f64>,
    },
    /// The members of the clusters that were told, so many, among rows of V.
    Means {
        lens: Parts,
        clusters: usize,
    },
    /// What was found for instances that are held, from one on (counted from the first that is held), as many as a leaf has: who
    /// wants more asks again, so that V need not be there twice. The answers of several holders are not merged.
    Place {
        clusters: Clusters,
        reproducibility: Option<f64>,
        from: usize,
    },
}

/// What is known of a view whose instances are shared out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ViewShare {
    pub name: String,
    pub features: usize,
    pub layout: Layout,
    pub feature_names: Option<Vec<String>>,
    pub missing_cells: Option<usize>,
    /// Values that are stored.
    pub entries: usize,
    /// Which of the instances that are held it shows.
    pub presence: Presence,
}

/// What some holders have answered together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Done,
    /// The views of each holder, by its first instance and its number of instances.
    Described(Vec<(usize, usize, Vec<ViewShare>)>),
    Columns(Forest<ColumnSums>),
    Norms(Forest<Norms>),
    /// By the first instance of each.
    Rows(Vec<(u32, Buffer)>),
    Statistics(Statistics),
    Refined(Forest<Members>, usize),
    Members(Forest<Members>),
    ColumnTotals(Forest<ColumnTotals>),
    ClusterSums(Forest<ClusterSums>),
    /// By the first instance of each.
    Labels(Vec<(u32, Vec<u32>)>),
    Lacking(Lacking),
    Place {
        latent: Matrix,
        labels: Vec<usize>,
        confidence: Vec<f64>,
    },
}

impl Reply {
    /// Both together.
    fn merge(self, other: Self) -> Result<Self> {
        fn add<T: Merge>(mut one: Forest<T>, other: Forest<T>) -> Result<Forest<T>> {
            let added = one.absorb(other);
            added.then_some(one).ok_or_else(|| unfit("the same instances were counted twice, or others"))
        }
        fn list<T>(mut one: Vec<T>, mut other: Vec<T>) -> Vec<T> {
            one.append(&mut other);
            one
        }
        Ok(match (self, other) {
            (Self::Done, Self::Done) => Self::Done,
            (Self::Described(a), Self::Described(b)) => Self::Described(list(a, b)),
            (Self::Columns(a), Self::Columns(b)) => Self::Columns(add(a, b)?),
            (Self::Norms(a), Self::Norms(b)) => Self::Norms(add(a, b)?),
            (Self::Rows(a), Self::Rows(b)) => Self::Rows(list(a, b)),
            (Self::Statistics(a), Self::Statistics(b)) => Self::Statistics(a.merge(b)?),
            (Self::Refined(a, moved), Self::Refined(b, others)) => Self::Refined(add(a, b)?, moved + others),
            (Self::Members(a), Self::Members(b)) => Self::Members(add(a, b)?),
            (Self::ColumnTotals(a), Self::ColumnTotals(b)) => Self::ColumnTotals(add(a, b)?),
            (Self::ClusterSums(a), Self::ClusterSums(b)) => Self::ClusterSums(add(a, b)?),
            (Self::Labels(a), Self::Labels(b)) => Self::Labels(list(a, b)),
            (Self::Lacking(mut a), Self::Lacking(b)) => {
                a.add(&b);
                Self::Lacking(a)
            }
            _ => return Err(unfit("they answer different requests")),
        })
    }
}

/// What a reply holds, if it holds that.
macro_rules! holds {
    ($($kind:ident: $held:ty),+ $(,)?) => {$(
        impl TryFrom<Reply> for $held {
            type Error = Error;

            fn try_from(reply: Reply) -> Result<Self> {
                match reply {
                    Reply::$kind(held) => Ok(held),
                    _ => Err(unfit("it answers another request")),
                }
            }
        }
    )+};
}

holds!(
    Described: Vec<(usize, usize, Vec<ViewShare>)>,
    Columns: Forest<ColumnSums>,
    Norms: Forest<Norms>,
    Rows: Vec<(u32, Buffer)>,
    Statistics: Statistics,
    Members: Forest<Members>,
    ColumnTotals: Forest<ColumnTotals>,
    ClusterSums: Forest<ClusterSums>,
    Labels: Vec<(u32, Vec<u32>)>,
    Lacking: Lacking,
);

impl TryFrom<Reply> for (Forest<Members>, usize) {
    type Error = Error;

    fn try_from(reply: Reply) -> Result<Self> {
        match reply {
            Reply::Refined(members, moved) => Ok((members, moved)),
            _ => Err(unfit("it answers another request")),
        }
    }
}

/// Merges the replies of two holders, or of several each, to the same request.
///
/// # Errors
/// When they are none, or not of the same request.
pub fn merge_replies(one: &[u8], other: &[u8]) -> Result<Vec<u8>> {
    encode(&decode::<Reply>(one)?.merge(decode(other)?)?)
}

/// What was found for so many instances that a holder has: its rows of V, clusters and confidence. `last` is the last request of a
/// fit, which [`Daimc::fit_elsewhere`](crate::Daimc::fit_elsewhere) returns; `tell` lets the holder answer, some thousand
/// instances at a time.
///
/// # Errors
/// When it is no such request, and when it cannot be answered.
pub fn gather_place<E: From<Error>>(
    last: &[u8],
    instances: usize,
    mut tell: impl FnMut(&[u8]) -> std::result::Result<Vec<u8>, E>,
) -> std::result::Result<Place, E> {
    let Request::Place { clusters, reproducibility, .. } = decode(last)? else {
        return Err(unfit("this is not the last request of a fit").into());
    };
    let mut values = Vec::new();
    let (mut all, mut margins) = (Vec::with_capacity(instances), Vec::with_capacity(instances));
    while all.len() < instances {
        let (clusters, from) = (clusters.clone(), all.len());
        match decode(&tell(&encode(&Request::Place { clusters, reproducibility, from })?)?)? {
            Reply::Place { latent, labels, confidence } if !labels.is_empty() => {
                values.reserve_exact(if from == 0 { instances * latent.columns() } else { 0 });
                values.extend(latent.into_values());
                all.extend(labels);
                margins.extend(confidence);
            }
            _ => return Err(unfit("it answers another request").into()),
        }
    }
    let columns = values.len() / instances.max(1);
    Ok(Place { latent: Matrix::new(instances, columns, values)?, labels: all, confidence: margins })
}

/// The request to forget everything but the rows: before a holder that was left behind answers what it should have answered.
///
/// # Panics
/// Never: it has no content.
#[must_use]
pub fn reset() -> Vec<u8> {
    encode(&Request::Reset).expect("a request without content")
}

/// The request by which holders tell what was found.
pub(crate) fn last_request(request: &Request) -> Result<Vec<u8>> {
    encode(request)
}

pub(super) fn encode(message: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(message).map_err(|error| unfit(&error.to_string()))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| unfit(&format!("these bytes are none: {error}")))
}

pub(super) fn unfit(reason: &str) -> Error {
    Error::Unsuitable { what: "replies", value: "of those who hold rows".into(), reason: reason.into() }
}
