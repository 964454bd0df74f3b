//! Spreadsheets: `.xlsx` and `.ods`.
//!
//! A sheet is read as the text that it would be saved as, row by row, with tabs between its cells: what holds for text (headers,
//! IDs, words for missing values) holds for sheets. Rows are handed on as they are decompressed, so that neither a size that
//! a file claims nor one that it unpacks to takes memory.

mod ods;
mod rows;
mod xlsx;
mod xml;

pub(crate) use ods::OpenDocument;
pub(crate) use rows::in_cell;
pub(crate) use xlsx::Workbook;
