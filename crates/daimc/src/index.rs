//! Row numbers in 32 bits, and which row holds which instance.

/// The entry of an index for an instance without a row.
pub const MISSING: u32 = u32::MAX;

/// A row number in 32 bits. A [`Schema`](crate::Schema) admits no more rows than fit.
pub(crate) fn index(row: usize) -> u32 {
    u32::try_from(row).expect("schemas of more rows are refused")
}

/// Which row of a matrix holds the i-th instance of a block.
#[derive(Clone, Copy, Debug)]
pub enum Index<'a> {
    /// Row `first + i`; nothing is missing.
    From(usize),
    /// The i-th of these rows, or none if it is [`MISSING`].
    Rows(&'a [u32]),
}

impl Index<'_> {
    /// The row of the i-th instance, if it is there.
    #[must_use]
    #[inline]
    pub fn row(&self, i: usize) -> Option<usize> {
        match self {
            Self::From(first) => Some(first + i),
            Self::Rows(rows) => (rows[i] != MISSING).then_some(rows[i] as usize),
        }
    }
}
