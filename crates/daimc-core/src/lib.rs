//! Data, passes over rows, scaling and the steps of DAIMC: the lowest layer of the crate [`daimc`](https://docs.rs/daimc).
//!
//! Applications use the crate `daimc`, which exports what they need. This crate is for code that works on rows itself:
//! readers, accelerators, other methods. Its modules, without import cycles:
//!
//! | modules | contents |
//! |---|---|
//! | [`error`], [`text`], [`stop`], [`watch`], [`choice!`] | errors, wording of messages, interruption, progress |
//! | [`matrix`], [`kernel`], [`linalg`], [`eigen`], [`metrics`] | dense matrices, SIMD products, decompositions, scores of clusterings |
//! | [`schema`], [`index`], [`source`], [`views`], [`subset`] | instances, views, presence, and the trait of inputs |
//! | [`blocks`], [`forest`], [`parallel`], [`machine`] | the fixed order of sums, threads, memory |
//! | [`scan`], [`table`], [`prepared`] | the only pass over rows, reductions over it, logarithms and missing cells |
//! | [`scaling`], [`scaled_view`], [`scale`] | scaling of a view, products with scaled rows, the choice of a scaling |
//! | [`statistics`], [`steps`], [`shard`], [`sweep`], [`kmeans`] | the steps of Algorithm 1, and the pass of an iteration |
//! | [`device`], [`patterns`], [`accelerator`] | data in the memory of an accelerator |
//! | [`simulate`], [`synthetic`] | missing views, planted data |
//!
//! Functions that pass over rows return the error of the source, or that of [`Stop`] after a cancellation. Only other
//! errors are documented where they occur; indices out of bounds panic.
#![allow(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod accelerator;
pub mod blocks;
mod choice;
pub mod device;
pub mod eigen;
pub mod error;
pub mod forest;
pub mod index;
pub mod kernel;
pub mod kmeans;
pub mod linalg;
pub mod machine;
pub mod matrix;
pub mod metrics;
pub mod parallel;
pub mod patterns;
pub mod prepared;
pub mod scale;
pub mod scaled_view;
pub mod scaling;
pub mod scan;
pub mod schema;
pub mod shard;
pub mod simulate;
pub mod source;
pub mod statistics;
pub mod steps;
pub mod stop;
pub mod subset;
pub mod sweep;
pub mod synthetic;
pub mod table;
pub mod text;
pub mod views;
pub mod watch;

pub use error::{Error, ErrorKind, Result};
pub use kernel::Scalar;
pub use matrix::Matrix;
pub use prepared::{MissingCells, Preparation, Prepared};
pub use scaling::{Scale, Scaling};
pub use schema::{Ids, Layout, Presence, Schema, ViewOf, ViewSchema};
pub use shard::{Shard, Shards, VStep, aligned, leaves};
pub use source::Source;
pub use statistics::{Factors, Statistics, Totals};
pub use steps::basis::Bases;
pub use steps::latent::Solver;
pub use steps::objective::Objective;
pub use stop::Stop;
pub use sweep::Cpu;
pub use views::{Account, Values, View, Views};
pub use watch::Stage;
