//! What `compare` and `reproduce` share: methods are run on samples of data, cell by cell, and shown as tables and plots.

pub mod chart;
pub mod course;
pub mod ledger;
pub mod methods;
pub mod page;
pub mod runs;
pub mod sample;
pub mod setting;
pub mod table;
