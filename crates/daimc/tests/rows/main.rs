//! What data may be and where they may come from.

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
