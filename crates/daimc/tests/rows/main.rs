//! Sources and values of data.

mod bad_input;
mod distributed;
mod hostile;
#[path = "../made/mod.rs"]
mod made;
mod numbers;
mod scaling;
mod shards;
mod sources;
mod streams;
