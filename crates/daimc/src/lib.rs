#![forbid(unsafe_code)]
#![allow(dead_code, unused)]
mod consolidate;
#[cfg(feature = "digit")]
pub mod datasets;
mod error;
mod fit;
mod initialise;
mod kernel;
mod kmeans;
mod lens;
mod linalg;
mod matrix;
pub mod metrics;
mod model;
mod options;
mod parallel;
mod patterns;
mod scale;
pub mod simulate;
pub mod source;
pub mod steps;
mod state;
mod sweep;
pub mod synthetic;
mod views;

pub use error::{Error, Result};
pub use fit::{Daimc, Iteration, Outcome, Timings};
pub use initialise::Initialisation;
pub use kernel::Scalar;
pub use matrix::Matrix;
pub use model::{Model, Place, ViewModel};
pub use options::{Options, Preset};
pub use scale::{Scale, Scaling};
pub use source::Source;
pub use steps::latent::Solver;
pub use steps::objective::Objective;
pub use sweep::Statistics;
pub use views::{Account, Ids, Values, View, Views};
