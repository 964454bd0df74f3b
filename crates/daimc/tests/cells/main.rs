//! Cells that are missing inside rows.

mod data;
mod fits;
#[path = "../made/mod.rs"]
mod made;
mod oracle;
mod places;
#[cfg(feature = "digit")]
mod quality;
mod sources;
