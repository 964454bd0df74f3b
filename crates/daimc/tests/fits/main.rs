//! How clusters are found: the steps, the whole fit, and what is chosen on the way.

mod algorithm;
mod common;
mod cost;
mod map;
mod missingness;
mod neighbours;
mod online;
#[cfg(feature = "digit")]
mod quality;
mod relative;
mod runs;
mod select;
mod steps;
