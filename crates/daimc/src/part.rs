//! Some instances of a source, picked once, and with some of their views hidden.

use std::ops::Range;

use crate::Result;
use crate::source::{Block, Buffer, Index, MISSING, Rows, Source};

/// Some instances of a source.
pub(crate) struct Part<'a> {
    source: &'a dyn Source,
    /// Which of its views is the first here.
    first: usize,
    instances: &'a [u32],
    rows: Vec<Rows<'a>>,
    /// For each view, the row of each instance, or [`MISSING`].
    index: Vec<Vec<u32>>,
}

impl<'a> Part<'a> {
    /// Picks the instances (in increasing order); there is a buffer for each view.
    pub fn pick(source: &'a dyn Source, instances: &'a [u32], buffers: &'a mut [Buffer]) -> Result<Self> {
        Self::of_views(source, 0, instances, buffers)
    }

    /// Picks the instances, in one view alone.
    pub fn of_view(
        source: &'a dyn Source,
        view: usize,
        instances: &'a [u32],
        buffer: &'a mut Buffer,
    ) -> Result<Self> {
        Self::of_views(source, view, instances, std::slice::from_mut(buffer))
    }

    fn of_views(
        source: &'a dyn Source,
        first: usize,
        instances: &'a [u32],
        buffers: &'a mut [Buffer],
    ) -> Result<Self> {
        let (mut rows, mut index) = (Vec::with_capacity(buffers.len()), Vec::with_capacity(buffers.len()));
        for (view, buffer) in (first..).zip(buffers) {
            let block = source.pick(view, instances, buffer)?;
            let row = |i| block.index.row(i).map_or(MISSING, crate::views::index);
            index.push((0..instances.len()).map(row).collect());
            rows.push(block.rows);
        }
        Ok(Self { source, first, instances, rows, index })
    }

    /// The same instances, without what is hidden: for each view, positions among the instances.
    pub fn without(&self, hidden: &[Vec<usize>]) -> Self {
        let Self { source, first, instances, ref rows, .. } = *self;
        let mut index = self.index.clone();
        for (index, hidden) in index.iter_mut().zip(hidden) {
            hidden.iter().for_each(|&i| index[i] = MISSING);
        }
        Self { source, first, instances, rows: rows.clone(), index }
    }
}

impl Source for Part<'_> {
    fn instances(&self) -> usize {
        self.instances.len()
    }

    fn views(&self) -> usize {
        self.rows.len()
    }

    fn name(&self, view: usize) -> &str {
        self.source.name(self.first + view)
    }

    fn features(&self, view: usize) -> usize {
        self.source.features(self.first + view)
    }

    fn is_present(&self, view: usize, instance: usize) -> bool {
        self.index[view].get(instance).is_some_and(|&row| row != MISSING)
    }

    fn id(&self, instance: usize) -> String {
        self.source.id(self.instances[instance] as usize)
    }

    fn block<'b>(&'b self, view: usize, instances: Range<usize>, _: &'b mut Buffer) -> Result<Block<'b>> {
        Ok(Block { rows: self.rows[view], index: Index::Rows(&self.index[view][instances]) })
    }

    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Result<Block<'b>> {
        buffer.index.clear();
        buffer.index.extend(instances.iter().map(|&i| self.index[view][i as usize]));
        Ok(Block { rows: self.rows[view], index: Index::Rows(&buffer.index) })
    }
}
