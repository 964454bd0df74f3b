//! What data may be and where they may come from.

mod bad_input;
mod elsewhere;
mod hostile;
#[path = "../made/mod.rs"]
mod made;
mod numbers;
mod scaling;
mod shards;
mod sources;
mod streams;
