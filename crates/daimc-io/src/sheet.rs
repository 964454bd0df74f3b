//! Spreadsheets: `.xlsx` and `.ods`.
//!
//! A sheet is converted to tab-separated text row by row, so that the rules for text (headers, IDs, words for missing values) hold
//! for sheets. Rows are parsed while they are decompressed, so that memory does not depend on sizes in the file.

mod ods;
mod rows;
mod xlsx;
mod xml;

pub(crate) use ods::OpenDocument;
pub(crate) use rows::in_cell;
pub(crate) use xlsx::Workbook;
