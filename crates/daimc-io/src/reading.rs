//! Options of reading a file.

/// Options of [`read`](crate::read).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading<'a> {
    /// Instances are in columns, features in rows.
    pub transpose: bool,
    /// The file has no IDs: its first column holds values like the others.
    pub no_ids: bool,
    /// The type of the values; by default that of the file (`f64` for text).
    pub precision: Option<Precision>,
    /// Text has decimal commas.
    pub decimal_comma: bool,
    /// Columns to leave out of text, spreadsheets, Parquet and Arrow, by name. Where instances are in columns, these are columns
    /// about the features.
    pub drop: &'a [String],
}

/// The type of the values of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}
