//! A subset of the instances of a source, picked once, with some of their views hidden.

use std::ops::Range;

use crate::scan::Scan;
use crate::source::{Block, Buffer, Holes, Index, MISSING, Memory, ReadError, Rows, Source};
use crate::{Ids, Presence, Result, Schema, ViewSchema};

/// A subset of the instances of a source, in memory.
pub struct Subset<'a> {
    schema: Schema,
    rows: Vec<(Rows<'a>, Holes<'a>)>,
    /// The row of each instance in each view, or [`MISSING`].
    index: Vec<Vec<u32>>,
}

impl<'a> Subset<'a> {
    /// Picks the instances (in increasing order); there is one buffer per view.
    pub fn pick(scan: &'a Scan<'_>, instances: &[u32], buffers: &'a mut [Buffer]) -> Result<Self> {
        Self::of_views(scan, 0, instances, buffers)
    }

    /// Picks the instances in a single view.
    pub fn of_view(
        scan: &'a Scan<'_>,
        view: usize,
        instances: &[u32],
        buffer: &'a mut Buffer,
    ) -> Result<Self> {
        Self::of_views(scan, view, instances, std::slice::from_mut(buffer))
    }

    fn of_views(
        scan: &'a Scan<'_>,
        first: usize,
        instances: &[u32],
        buffers: &'a mut [Buffer],
    ) -> Result<Self> {
        let views = first..first + buffers.len();
        let blocks = scan.pick_views(views.clone(), instances, buffers)?;
        Ok(Self::of_blocks(scan.schema(), views, instances, &blocks))
    }

    /// Consecutive instances, read at once.
    pub fn range(scan: &'a Scan<'_>, range: Range<usize>, buffers: &'a mut [Buffer]) -> Result<Self> {
        let views = 0..buffers.len();
        let read = |(view, buffer)| scan.read(view, range.clone(), buffer);
        let blocks = views.clone().zip(buffers).map(read).collect::<Result<Vec<_>>>()?;
        let instances: Vec<u32> = range.map(crate::index::index).collect();
        Ok(Self::of_blocks(scan.schema(), views, &instances, &blocks))
    }

    /// The instances of these blocks.
    fn of_blocks(known: &Schema, views: Range<usize>, instances: &[u32], blocks: &[Block<'a>]) -> Self {
        let of_block = |(view, block): (usize, &Block<'_>)| {
            let known = known.view(view);
            // If missing cells have not been counted yet, a row may turn out to be empty.
            let looked = known.missing_cells().is_some();
            let here = |row: &usize| looked || !block.rows.is_nan(*row, known.features());
            let row = |i| block.index.row(i).filter(here).map_or(MISSING, crate::index::index);
            (0..instances.len()).map(row).collect()
        };
        let index: Vec<Vec<u32>> = views.clone().zip(blocks).map(of_block).collect();
        let ids = match known.ids() {
            Ids::Numbers(_) => Ids::Names(instances.iter().map(u32::to_string).collect()),
            Ids::Names(names) => Ids::Names(instances.iter().map(|&i| names[i as usize].clone()).collect()),
        };
        let view = |(view, index): (usize, &Vec<u32>)| {
            let known = known.view(view);
            let own = ViewSchema::new(known.name(), known.features(), known.layout());
            let own = own.holes_of_some(known.missing_cells());
            match known.shared_names() {
                Some(names) => shown(own, index).feature_names(names),
                None => shown(own, index),
            }
        };
        let schema = Schema::unchecked(ids, views.zip(&index).map(view).collect());
        Self { schema, rows: blocks.iter().map(|block| (block.rows, block.holes)).collect(), index }
    }

    /// The same instances without the hidden rows: for each view, positions among the instances.
    #[must_use]
    pub fn without(&self, hidden: &[Vec<usize>]) -> Self {
        let mut index = self.index.clone();
        for (index, hidden) in index.iter_mut().zip(hidden) {
            hidden.iter().for_each(|&i| index[i] = MISSING);
        }
        let views =
            self.schema.views().zip(&index).map(|(view, index)| shown(ViewSchema::clone(&view), index));
        let schema = Schema::unchecked(self.schema.shared_ids(), views.collect());
        Self { schema, rows: self.rows.clone(), index }
    }

    /// The same instances with other rows in a view, given in a buffer; they may have missing cells.
    pub fn with_rows<'b>(&'b self, view: usize, buffer: &'b Buffer) -> Subset<'b> {
        let (mut rows, mut index) = (self.rows.clone(), self.index.clone());
        let block = buffer.block(self.schema.view(view).layout(), 0..self.schema.instances());
        rows[view] = (block.rows, block.holes);
        index[view].clone_from(&buffer.index);
        let of_view = |(number, own): (usize, crate::ViewOf<'_>)| {
            let own = ViewSchema::clone(&own);
            if number == view { own.holes_of_some(None) } else { own }
        };
        let views = self.schema.views().enumerate().map(of_view).collect();
        Subset { schema: Schema::unchecked(self.schema.shared_ids(), views), rows, index }
    }

    /// Some rows of a view.
    fn with<'b>(&'b self, view: usize, index: &'b [u32]) -> Block<'b> {
        let (rows, holes) = self.rows[view];
        Block { rows, index: Index::Rows(index), holes }
    }
}

/// The view, with the instances that have a row.
fn shown(view: ViewSchema, index: &[u32]) -> ViewSchema {
    view.presence(Presence::from_fn(index.len(), |i| index[i] != MISSING))
}

impl Source for Subset<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(
        &self,
        view: usize,
        instances: Range<usize>,
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        let block = self.with(view, &self.index[view][instances.clone()]);
        buffer.copy(&block, instances.len(), self.features(view));
        Ok(())
    }

    fn memory(&self) -> Option<&dyn Memory> {
        Some(self)
    }
}

impl Memory for Subset<'_> {
    fn block<'b>(&'b self, view: usize, instances: Range<usize>, _: &'b mut Buffer) -> Block<'b> {
        self.with(view, &self.index[view][instances])
    }

    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Block<'b> {
        buffer.index.clear();
        buffer.index.extend(instances.iter().map(|&i| self.index[view][i as usize]));
        self.with(view, &buffer.index)
    }
}
