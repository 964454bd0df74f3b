//! Rows for work that may be stopped.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Block, Buffer, Source};
use crate::{Error, Result};

/// A source whose rows can no longer be read once `stop` is set, so that a fit ends in the middle of whatever it does, with an
/// error.
#[derive(Clone, Copy)]
pub struct Stoppable<'a> {
    /// Where the rows come from.
    pub source: &'a dyn Source,
    /// Whether the work is to end.
    pub stop: &'a AtomicBool,
}

impl Stoppable<'_> {
    fn check(&self, view: usize) -> Result<()> {
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (view, last) = (self.source.name(view).into(), self.source.instances());
        Err(Error::Read { view, first: 0, last, source: "interrupted".into() })
    }
}

impl Source for Stoppable<'_> {
    fn instances(&self) -> usize {
        self.source.instances()
    }

    fn views(&self) -> usize {
        self.source.views()
    }

    fn name(&self, view: usize) -> &str {
        self.source.name(view)
    }

    fn features(&self, view: usize) -> usize {
        self.source.features(view)
    }

    fn is_present(&self, view: usize, instance: usize) -> bool {
        self.source.is_present(view, instance)
    }

    fn id(&self, instance: usize) -> String {
        self.source.id(instance)
    }

    fn block<'b>(
        &'b self,
        view: usize,
        instances: Range<usize>,
        buffer: &'b mut Buffer,
    ) -> Result<Block<'b>> {
        self.check(view)?;
        self.source.block(view, instances, buffer)
    }

    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Result<Block<'b>> {
        self.check(view)?;
        self.source.pick(view, instances, buffer)
    }
}
