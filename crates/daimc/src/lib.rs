//! Clusters instances that are described by several views (omics, sensors, languages, image features) when each view is
//! missing for some of the instances.
//!
//! The core is DAIMC, Doubly Aligned Incomplete Multi-view Clustering (Hu and Chen, IJCAI 2018). One latent matrix V ≥
//! 0 is shared by all views, `x_vj ≈ U_v v_j` for the instances j that are present in view v, and the bases `U_v` are
//! aligned by a regression `B_vᵀU_v ≈ I` whose coefficients are sparse in features:
//!
//! ```text
//! J = Σ_v { Σ_j w_vj ‖x_vj − U_v v_j‖²  +  α ( ‖B_vᵀU_v − I‖² + β ‖B_v‖_{2,1} ) },   V ≥ 0
//! ```
//!
//! ```
//! use daimc::{Daimc, View, Views};
//!
//! // Five instances; the second view does not show the last one.
//! let a = View::dense("a", 2, vec![1.0, 0.1, 0.9, 0.0, 0.1, 1.0, 0.0, 0.8, 1.1, 0.0])?;
//! let b = View::dense("b", 1, vec![3.0_f32, 3.1, -2.9, -3.0, 0.0])?.mask(&[true, true, true, true, false])?;
//! let views = Views::new(vec![a, b])?;
//!
//! let fit = Daimc::new(2).seed(7).fit(&views)?;
//! assert_eq!(fit.labels[0], fit.labels[1]);
//! assert_eq!(fit.labels[0], fit.labels[4]);
//! assert_ne!(fit.labels[0], fit.labels[2]);
//!
//! // New instances are placed from whichever views they have.
//! let new = Views::new(vec![View::dense("b", 1, vec![2.8_f32])?])?;
//! assert_eq!(fit.model.predict(&new)?, [fit.labels[0]]);
//! # Ok::<(), daimc::Error>(())
//! ```
//!
//! The data flow one way: [`Views`] → scaling → initialisation → sweeps → clusters. The result is a [`Fit`]: the
//! results of the clustered instances, and the [`Model`] that places new ones.
//!
//! Items of the lower layers, `daimc_core` and `daimc_graph`, are exported here. Their examples import them from the layer; the
//! same names can be imported from `daimc`.
//!
//! The crate contains no `unsafe` code. Vector instructions come from `pulp`, which selects AVX-512, AVX2, NEON or
//! plain code at run time, so results can differ in the last bits between kinds of processors.

mod backend;
mod cluster_sums;
mod combine;
mod confidence;
mod consolidate;
#[cfg(feature = "digit")]
pub mod datasets;
mod descent;
pub mod estimate;
mod explain;
mod fit;
mod initialise;
mod latent_rows;
mod leaders;
mod missingness;
mod model;
mod novelty;
mod numbering;
mod online;
mod options;
mod partition;
mod place;
mod retained;
mod routes;
pub mod select;
mod significance;
mod store;

pub use backend::{Executor, Task, merge, reset};
pub use descent::{Descent, Outcome};
pub use explain::{Contributions, Explanation, Residual};
pub use fit::{Daimc, Decision, Fit, Iteration, Run, Timings};
pub use initialise::Initialisation;
pub use missingness::{Concentration, Missingness};
pub use model::{Accuracy, Gap, Imputed, Misfit, Model, Shares, ViewModel};
pub use online::{Drift, Online, StreamProgress, Streamed, Update};
pub use options::{Neighbours, Options, Penalty, Preset, ViewWeights};
pub use partition::Partition;
pub use place::Place;
pub use retained::{Learnt, Retained};
pub use significance::Significance;

pub use daimc_core::{
    Account, Bases, Cpu, Error, ErrorKind, Factors, Ids, Layout, Matrix, MissingCells, Objective,
    Preparation, Prepared, Presence, Result, Scalar, Scale, Scaling, Schema, Shard, Shards, Solver, Source,
    Stage, Statistics, Stop, Totals, VStep, Values, View, ViewOf, ViewSchema, Views, accelerator, aligned,
    leaves, metrics, simulate, source, steps, synthetic, text,
};
pub use daimc_graph::References;

/// Compiles the examples of the page about custom sources and accelerators.
#[cfg(doctest)]
#[doc = include_str!("../docs/extending.md")]
struct Extending;
