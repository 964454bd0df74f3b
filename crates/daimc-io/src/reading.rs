//! Options of reading a file.

/// How a file is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading<'a> {
    /// Instances are in columns, features in rows.
    pub transpose: bool,
    /// The file has no IDs: its first column holds values like the others.
    pub no_ids: bool,
    /// The type of the values; where `None`, that of the file (`f64` for text).
    pub precision: Option<Precision>,
    /// Decimals of text are written with a comma.
    pub decimal_comma: bool,
    /// The names of columns that are left out, of text, spreadsheets, Parquet and Arrow: whatever they hold. Where instances are
    /// in columns, these are columns about the features.
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
