//! Reductions over the rows of tables.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Effect, Latent, Partition, Reduction, TableId};
use daimc_core::blocks::Blocks;
use daimc_core::index::index;
use daimc_core::prepared::{Preparation, Prepared};
use daimc_core::scaled_view::{Parts, ScaledView};
use daimc_core::schema::{Layout, Presence};
use daimc_core::source::Buffer;
use daimc_core::sweep::Sweep;
use daimc_core::table::{RowReduction, unsuitable};
use daimc_core::{Matrix, Result, ViewOf};
use daimc_graph::neighbours;

/// Forgets everything but the rows.
#[derive(Serialize, Deserialize)]
pub(crate) struct Reset;

impl Reduction for Reset {
    const NAME: &'static str = "reset";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Resets
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        *partition = Partition::of(partition.given.clone());
        Ok(())
    }
}

/// The schema of a view in a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ViewPart {
    pub name: String,
    pub features: usize,
    pub layout: Layout,
    pub feature_names: Option<Vec<String>>,
    pub missing_cells: Option<usize>,
    /// The number of stored values.
    pub entries: usize,
    /// Which of the instances of the partition have a row.
    pub presence: Presence,
}

/// The views of each partition, by its first instance and its number of instances.
#[derive(Serialize, Deserialize)]
pub(crate) struct Describe;

impl Reduction for Describe {
    const NAME: &'static str = "describe";
    type Partial = Vec<(usize, usize, Vec<ViewPart>)>;

    fn local(&self, partition: &mut Partition<'_>) -> Result<Self::Partial> {
        let scan = &partition.given;
        let view = |own: ViewOf<'_>| ViewPart {
            name: own.name().into(),
            features: own.features(),
            layout: own.layout(),
            feature_names: own.names().map(<[String]>::to_vec),
            missing_cells: own.missing_cells(),
            entries: own.entries(),
            presence: Presence::from_fn(scan.instances(), |i| own.shows(i)),
        };
        Ok(vec![(scan.blocks().first(), scan.instances(), scan.schema().views().map(view).collect())])
    }
}

/// Takes logarithms and fills missing cells of each view from now on.
#[derive(Serialize, Deserialize)]
pub(crate) struct Prepare(pub Vec<Preparation>);

impl Reduction for Prepare {
    const NAME: &'static str = "prepare";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Sets
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        partition.set_prepared(Prepared::over(partition.given.shared_source(), &self.0)?);
        Ok(())
    }
}

/// Scales each view from now on, for a V with this number of columns.
#[derive(Serialize, Deserialize)]
pub(crate) struct ScaleViews {
    pub latent: usize,
    pub scaled_views: Vec<Parts>,
}

impl Reduction for ScaleViews {
    const NAME: &'static str = "scale-views";
    type Partial = ();

    fn effect(&self) -> Effect {
        Effect::Sets
    }

    fn views_read(&self, views: usize) -> usize {
        views
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<()> {
        let scan = partition.table(TableId::Prepared)?;
        if self.scaled_views.len() != scan.schema().len() {
            return Err(unsuitable("the scalings belong to other views"));
        }
        let scaled_view = |(view, parts): (usize, &Parts)| ScaledView::placed(&scan, view, parts);
        let scaled_views = self.scaled_views.iter().enumerate().map(scaled_view).collect::<Result<_>>()?;
        partition.set_sweep(Arc::new(Sweep::new(scan, scaled_views, self.latent)));
        Ok(())
    }
}

impl<'a> Partition<'a> {
    pub(crate) fn set_prepared(&mut self, prepared: Prepared<'a>) {
        self.prepared = Some(self.given.with_source(Arc::new(prepared)));
        (self.sweep, self.latent, self.found) = (None, Latent::None, None);
    }

    /// Sets rows that are prepared and scaled already.
    pub(crate) fn set_scaled(&mut self, sweep: Arc<Sweep<'a>>) {
        self.prepared = Some(sweep.scan.clone());
        self.set_sweep(sweep);
    }

    pub(crate) fn set_sweep(&mut self, sweep: Arc<Sweep<'a>>) {
        self.sweep = Some(sweep);
        (self.latent, self.found) = (Latent::None, None);
    }
}

/// The number of instances in partitions with the required state.
#[derive(Serialize, Deserialize)]
pub(crate) struct Ready;

impl Reduction for Ready {
    const NAME: &'static str = "ready";
    type Partial = usize;

    fn local(&self, partition: &mut Partition<'_>) -> Result<usize> {
        Ok(partition.instances())
    }
}

/// A row reduction over a table.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Over<R: RowReduction> {
    pub table: TableId,
    #[serde(with = "content")]
    pub request: R::Request,
}

/// The requests of row reductions are bounded by their trait, not by serde's derived bounds.
mod content {
    use serde::de::DeserializeOwned;
    use serde::{Deserializer, Serialize, Serializer};

    pub fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub fn deserialize<'d, T: DeserializeOwned, D: Deserializer<'d>>(deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

impl<R: RowReduction> Reduction for Over<R> {
    const NAME: &'static str = R::NAME;
    type Partial = R::Partial;

    fn effect(&self) -> Effect {
        if R::KEEPS_STATE { Effect::Changes } else { Effect::None }
    }

    fn views_read(&self, _: usize) -> usize {
        usize::from(matches!(self.table, TableId::Given | TableId::Prepared))
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<R::Partial> {
        let rows = partition.table(self.table)?;
        let kept = partition.states.remove(R::NAME).and_then(|state| state.downcast::<R::State>().ok());
        let mut state = kept.unwrap_or_default();
        let answer = R::answer(&self.request, &rows, &mut state);
        if R::KEEPS_STATE {
            partition.states.insert(R::NAME, state);
        }
        answer
    }
}

/// The rows of some instances in increasing order: those of each partition by the first of its instances.
#[derive(Serialize, Deserialize)]
pub(crate) struct Pick {
    pub table: TableId,
    pub view: usize,
    pub instances: Vec<u32>,
}

impl Reduction for Pick {
    const NAME: &'static str = "pick";
    type Partial = Vec<(u32, Buffer)>;

    fn local(&self, partition: &mut Partition<'_>) -> Result<Self::Partial> {
        let Some((first, own)) = own_of(partition.blocks(), &self.instances) else { return Ok(Vec::new()) };
        let rows = partition.table(self.table)?;
        let (mut scratch, mut found) = (Buffer::default(), Buffer::default());
        let features = rows.schema().view(self.view).features();
        found.copy(&rows.pick(self.view, &own, &mut scratch)?, own.len(), features);
        Ok(vec![(first, found)])
    }
}

/// The rows of a range of instances: unchanged or, for scaled views, projected on some directions.
#[derive(Serialize, Deserialize)]
pub(crate) struct Read {
    pub table: TableId,
    pub view: usize,
    pub instances: Range<usize>,
    pub along: Option<Matrix>,
}

impl Reduction for Read {
    const NAME: &'static str = "read";
    type Partial = Vec<(u32, Buffer)>;

    fn views_read(&self, _: usize) -> usize {
        // A table is gathered range by range.
        usize::from(self.table == TableId::Prepared && self.instances.start == 0)
    }

    fn local(&self, partition: &mut Partition<'_>) -> Result<Self::Partial> {
        let Some((first, own)) = own_range(partition.blocks(), &self.instances) else {
            return Ok(Vec::new());
        };
        let found = match &self.along {
            None => {
                let rows = partition.table(self.table)?;
                let (mut scratch, mut found) = (Buffer::default(), Buffer::default());
                let features = rows.schema().view(self.view).features();
                found.copy(&rows.read(self.view, own.clone(), &mut scratch)?, own.len(), features);
                found
            }
            Some(directions) => {
                let sweep = partition.sweep()?;
                let scaled_view = sweep
                    .scaled_views
                    .get(self.view)
                    .filter(|scaled_view| scaled_view.features() == directions.rows());
                let scaled_view =
                    scaled_view.ok_or_else(|| unsuitable("the directions belong to no view"))?;
                neighbours::along((&sweep.scan, self.view, scaled_view), own, directions)?
            }
        };
        Ok(vec![(first, found)])
    }
}

/// The instances of a range that are in a partition, relative to its first, and the first of them, as a number among all
/// instances; `None` if there are none.
pub(super) fn own_range(blocks: &Blocks, instances: &Range<usize>) -> Option<(u32, Range<usize>)> {
    let (first, end) = (blocks.first(), blocks.first() + blocks.instances());
    let (start, end) = (instances.start.max(first), instances.end.min(end));
    (start < end).then(|| (index(start), start - first..end - first))
}

/// The same for some instances in increasing order.
pub(super) fn own_of(blocks: &Blocks, instances: &[u32]) -> Option<(u32, Vec<u32>)> {
    let (first, end) = (index(blocks.first()), index(blocks.first() + blocks.instances()));
    let own: Vec<u32> = instances.iter().filter(|i| (first..end).contains(i)).map(|i| i - first).collect();
    Some((own.first()? + first, own))
}

/// Rows or labels of several partitions, in the order of the instances.
pub(crate) fn in_order<T>(mut parts: Vec<(u32, T)>) -> impl Iterator<Item = T> {
    parts.sort_by_key(|(first, _)| *first);
    parts.into_iter().map(|(_, part)| part)
}
