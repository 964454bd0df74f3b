//! The compiled module of the Python package `daimc`, with arrays as input and output. The public API is written in
//! Python, in `python/daimc`.

mod baselines;
mod device;
mod error;
mod fit;
mod gpu;
mod input;
mod model;
mod names;
mod online;
mod options;
mod select;
mod shard;
mod tools;
mod watch;

/// The module `daimc._daimc`.
#[pyo3::pymodule]
mod _daimc {
    #[pymodule_export]
    use super::baselines::{baseline, baseline_options};
    #[pymodule_export]
    use super::fit::fit;
    #[pymodule_export]
    use super::gpu::{GpuRows, fetch};
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::online::update;
    #[pymodule_export]
    use super::options::{options, resolve};
    #[pymodule_export]
    use super::select::select;
    #[pymodule_export]
    use super::shard::{Shard, available_memory, drive, leaves, merge};
    #[pymodule_export]
    use super::tools::{digit, matching, missing, scores, synthetic};
}
