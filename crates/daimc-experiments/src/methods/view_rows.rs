//! All rows of a view at once, for methods that keep them in memory.

use daimc_core::prepared::{Preparation, Prepared};
use daimc_core::scan::Scan;
use daimc_core::source::{Block, Buffer, Memory};
use daimc_core::{Result, Source, Stop};

/// All rows of a view, prepared: borrowed if they are in memory and need no preparation, otherwise copied.
pub(crate) struct ViewRows<'a> {
    source: &'a dyn Source,
    view: usize,
    held: Held<'a>,
}

enum Held<'a> {
    Memory(&'a dyn Memory),
    Read(Buffer),
}

impl<'a> ViewRows<'a> {
    /// Reads the rows, if they are not in memory.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn new(source: &'a dyn Source, view: usize, preparation: &Preparation) -> Result<Self> {
        let whole = source.schema().view(view).missing_cells() == Some(0) && !preparation.log;
        let held = match source.memory() {
            Some(memory) if whole => Held::Memory(memory),
            _ => {
                let prepared = Prepared::one(source, view, preparation)?;
                let mut buffer = Buffer::default();
                Scan::new(&prepared, &Stop::default()).fill(view, 0..source.instances(), &mut buffer)?;
                Held::Read(buffer)
            }
        };
        Ok(Self { source, view, held })
    }

    /// The rows; the buffer is scratch memory for rows that have to be gathered.
    pub fn block<'b>(&'b self, scratch: &'b mut Buffer) -> Block<'b> {
        let all = 0..self.source.instances();
        match &self.held {
            Held::Memory(memory) => memory.block(self.view, all, scratch),
            Held::Read(buffer) => buffer.block(self.source.schema().view(self.view).layout(), all),
        }
    }
}
