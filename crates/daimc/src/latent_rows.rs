//! The rows of V as a source.

use std::ops::Range;
use std::sync::Arc;

use daimc_core::source::{Block, Buffer, Holes, Index, Memory, ReadError, Rows, Source};
use daimc_core::{Ids, Layout, Matrix, Result, Schema, ViewSchema};

/// A single view with the columns of V as features, without missing rows or cells.
pub(crate) struct LatentRows {
    v: Arc<Matrix>,
    schema: Schema,
}

impl LatentRows {
    pub fn new(v: Arc<Matrix>) -> Result<Self> {
        let schema = Self::schema(v.rows(), v.columns())?;
        Ok(Self { v, schema })
    }

    /// The schema of a V of this shape.
    pub fn schema(instances: usize, columns: usize) -> Result<Schema> {
        let view = ViewSchema::new("V", columns, Layout::DenseF64).holes(0);
        Schema::new(Ids::Numbers(instances), vec![view])
    }
}

impl Source for LatentRows {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(
        &self,
        _: usize,
        instances: Range<usize>,
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        let rows = Rows::DenseF64(self.v.values());
        let block = Block { rows, index: Index::From(instances.start), holes: Holes::default() };
        buffer.copy(&block, instances.len(), self.v.columns());
        Ok(())
    }

    fn memory(&self) -> Option<&dyn Memory> {
        Some(self)
    }
}

impl Memory for LatentRows {
    fn block<'b>(&'b self, _: usize, instances: Range<usize>, _: &'b mut Buffer) -> Block<'b> {
        Block {
            rows: Rows::DenseF64(self.v.values()),
            index: Index::From(instances.start),
            holes: Holes::default(),
        }
    }

    fn pick<'b>(&'b self, _: usize, instances: &[u32], buffer: &'b mut Buffer) -> Block<'b> {
        buffer.index.clear();
        buffer.index.extend_from_slice(instances);
        Block {
            rows: Rows::DenseF64(self.v.values()),
            index: Index::Rows(&buffer.index),
            holes: Holes::default(),
        }
    }
}
