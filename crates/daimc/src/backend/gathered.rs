//! Rows of all instances, gathered from the partitions into this process.

use std::ops::Range;

use crate::partition::TableId;
use crate::partition::rows::{Read, in_order};
use daimc_core::source::{Block, Buffer, Index, Memory, ReadError, Source};
use daimc_core::{Error, Layout, Matrix, Result, Schema, Stop};
use daimc_graph::neighbours::{Shortened, travelling};

/// Runs a [`Read`] on all partitions.
type Fetch<'f> = &'f dyn Fn(Read) -> Result<Vec<(u32, Buffer)>>;

/// The rows of all instances, in memory.
pub(super) struct GatheredRows {
    schema: Schema,
    views: Vec<Buffer>,
}

impl GatheredRows {
    /// Fetches the views, each as it is or shortened.
    pub fn views(read: Fetch<'_>, schema: &Schema, shortened: &[Shortened], stop: &Stop) -> Result<Self> {
        let views = schema.views().zip(shortened).map(|(known, shortened)| shortened.schema(known)).collect();
        let own = Schema::unchecked(schema.shared_ids(), views);
        let fetch = |(view, shortened): (usize, &Shortened)| {
            fetch(read, (TableId::Prepared, view), &own, shortened.directions.as_ref(), stop)
        };
        let views = shortened.iter().enumerate().map(fetch).collect::<Result<_>>()?;
        Ok(Self { schema: own, views })
    }
}

/// Fetches V, which has this schema.
pub(super) fn fetch_latent(read: Fetch<'_>, schema: &Schema, stop: &Stop) -> Result<Matrix> {
    let rows = fetch(read, (TableId::Latent, 0), schema, None, stop)?;
    Matrix::new(schema.instances(), schema.view(0).features(), rows.f64)
}

/// Fetches all rows of a view, some at a time.
fn fetch(
    read: Fetch<'_>,
    (table, view): (TableId, usize),
    schema: &Schema,
    along: Option<&Matrix>,
    stop: &Stop,
) -> Result<Buffer> {
    let (known, instances) = (schema.view(view), schema.instances());
    // A buffer that grew as rows arrive would need twice the memory.
    let mut all = Buffer::default();
    match known.layout() {
        Layout::DenseF32 | Layout::SparseF32 => all.f32.reserve_exact(known.entries()),
        Layout::DenseF64 | Layout::SparseF64 => all.f64.reserve_exact(known.entries()),
    }
    if !known.layout().is_dense() {
        all.columns.reserve_exact(known.entries());
    }
    let step = travelling(known.bytes_per_row(), along);
    for start in (0..instances).step_by(step) {
        stop.check()?;
        let range = start..(start + step).min(instances);
        let parts = read(Read { table, view, instances: range.clone(), along: along.cloned() })?;
        let mut some = Buffer::default();
        in_order(parts).for_each(|mut part| some.append(&mut part));
        let unreadable = |reason: String| Error::Read {
            view: known.name().into(),
            first: range.start,
            last: range.end - 1,
            source: reason.into(),
        };
        some.check(known, range.clone()).map_err(unreadable)?;
        all.append(&mut some);
    }
    all.trim(known.layout());
    Ok(all)
}

impl Source for GatheredRows {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(
        &self,
        view: usize,
        instances: Range<usize>,
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        let block_of = &mut Buffer::default();
        let block = self.block(view, instances.clone(), block_of);
        buffer.copy(&block, instances.len(), self.features(view));
        Ok(())
    }

    fn memory(&self) -> Option<&dyn Memory> {
        Some(self)
    }
}

impl Memory for GatheredRows {
    fn block<'b>(&'b self, view: usize, instances: Range<usize>, _: &'b mut Buffer) -> Block<'b> {
        self.views[view].block(self.schema.view(view).layout(), instances)
    }

    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Block<'b> {
        let rows = &self.views[view];
        let row = |&i: &u32| rows.index.get(i as usize).copied().unwrap_or(i);
        buffer.index.clear();
        buffer.index.extend(instances.iter().map(row));
        Block { index: Index::Rows(&buffer.index), ..rows.block(self.schema.view(view).layout(), 0..0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daimc_core::index::index;
    use daimc_core::source::MISSING;
    use daimc_core::{Ids, Presence, ViewSchema};

    const FEATURES: usize = 128;
    const INSTANCES: usize = 100_000;

    fn is_present(instance: usize) -> bool {
        !instance.is_multiple_of(3)
    }

    /// The rows of two partitions with half of the instances each; every cell is the number of its instance.
    #[allow(clippy::unnecessary_wraps)] // The signature of a fetch.
    fn two(Read { instances, .. }: Read) -> Result<Vec<(u32, Buffer)>> {
        let of = |partition: Range<usize>| {
            let own = instances.start.max(partition.start)..instances.end.min(partition.end);
            let mut rows = Buffer::default();
            rows.offsets.push(0);
            for i in own.clone() {
                rows.index.push(if is_present(i) { index(rows.offsets.len() - 1) } else { MISSING });
                if is_present(i) {
                    rows.f32.extend([i as f32; FEATURES]);
                    rows.offsets.push(0);
                }
            }
            (!own.is_empty()).then_some((index(own.start), rows))
        };
        let halves = [INSTANCES / 2..INSTANCES, 0..INSTANCES / 2];
        Ok(halves.into_iter().filter_map(of).collect())
    }

    #[test]
    fn rows_of_several_partitions_are_gathered_in_order() {
        let presence = Presence::from_fn(INSTANCES, is_present);
        let view = ViewSchema::new("x", FEATURES, Layout::DenseF32).presence(presence);
        let schema = Schema::unchecked(Ids::Numbers(INSTANCES), vec![view]);
        assert!(travelling(schema.view(0).bytes_per_row(), None) < INSTANCES);
        let complete = Shortened { directions: None };
        let rows = GatheredRows::views(&two, &schema, &[complete], &Stop::new()).unwrap();
        let mut buffer = Buffer::default();
        let chosen: Vec<u32> = (0..INSTANCES as u32).step_by(7).collect();
        for block in [rows.block(0, 0..INSTANCES, &mut Buffer::default()), rows.pick(0, &chosen, &mut buffer)]
        {
            let daimc_core::source::Rows::DenseF32(values) = block.rows else { panic!("dense rows") };
            assert_eq!(values.len(), schema.view(0).entries());
            let picked = matches!(block.index, Index::Rows(own) if own.len() == chosen.len());
            for at in 0..chosen.len() {
                let i = chosen[at] as usize;
                let row = block.index.row(if picked { at } else { i });
                assert_eq!(row.map(|row| values[row * FEATURES + 5]), is_present(i).then_some(i as f32));
            }
        }
        let other = ViewSchema::new("x", FEATURES, Layout::DenseF32);
        let schema = Schema::unchecked(Ids::Numbers(INSTANCES), vec![other]);
        let error = GatheredRows::views(&two, &schema, &[Shortened { directions: None }], &Stop::new());
        assert!(matches!(error, Err(Error::Read { .. })));
    }
}
