//! Clustering: the steps, the complete fit, and the choices on the way.

mod accelerator;
mod algorithm;
mod common;
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
