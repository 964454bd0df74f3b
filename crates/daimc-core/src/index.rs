//! Row numbers in 32 bits, and the rows of instances.

/// The entry of an index for an instance without a row.
pub const MISSING: u32 = u32::MAX;

/// Converts a row number to 32 bits. A [`Schema`](crate::Schema) does not allow more rows than fit.
pub fn index(row: usize) -> u32 {
    u32::try_from(row).expect("schemas of more rows are refused")
}

/// The row of a matrix for each instance of a block.
#[derive(Clone, Copy, Debug)]
pub enum Index<'a> {
    /// Row `first + i`; no instance is missing.
    From(usize),
    /// Row number i of this list, or none if it is [`MISSING`].
    Rows(&'a [u32]),
}

impl Index<'_> {
    /// The row of the i-th instance, if it is present.
    #[must_use]
    #[inline]
    pub fn row(&self, i: usize) -> Option<usize> {
        match self {
            Self::From(first) => Some(first + i),
            Self::Rows(rows) => (rows[i] != MISSING).then_some(rows[i] as usize),
        }
    }
}
