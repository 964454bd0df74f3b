//! NVIDIA GPUs as accelerators of a [`daimc`] fit.
//!
//! [`open`] opens a GPU for [`daimc::Daimc::accelerator`]. The data is copied to GPU memory once, and V stays there during the
//! iterations: a sweep reads the rows, updates V and returns its statistics. Only the NVIDIA driver is needed; without a driver or a
//! GPU, [`open`] returns the reason. Data that is in GPU memory before the fit can be used in place: pass it as [`GpuRows`] to
//! [`View::stored`](daimc::View::stored).

mod descent;
mod fused;
mod gpu;
mod holes;
mod kernels;
mod latent;
mod links;
mod nearest;
mod partitions;
mod rows;
mod shard;
mod stored;
mod sums;
mod update;

use std::sync::Arc;

use daimc::Result;
use daimc::accelerator::{Accelerator, Load, Resident};

use gpu::Gpu;
use partitions::Partitions;
pub use stored::{GpuRows, fetch};

/// The precision of products with single-precision data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Single precision: three TF32 products per factor pair.
    #[default]
    Single,
    /// TF32: factors are rounded to 11 bits, the fastest format of tensor cores.
    Tf32,
}

/// Opens a GPU by its number, counted from 0.
///
/// # Errors
/// The reason, in one sentence, if the GPU or its driver is missing or too old.
pub fn open(gpu: usize, precision: Precision) -> Result<Arc<dyn Accelerator>, String> {
    Gpus::new([gpu]).precision(precision).open()
}

/// A builder for one or several GPUs that share the instances of a fit.
#[derive(Clone, Debug)]
pub struct Gpus {
    numbers: Vec<usize>,
    precision: Precision,
    memory: Option<usize>,
}

impl Gpus {
    /// GPUs by their numbers, counted from 0.
    pub fn new(numbers: impl IntoIterator<Item = usize>) -> Self {
        Self { numbers: numbers.into_iter().collect(), precision: Precision::default(), memory: None }
    }

    /// Sets the precision of products with single-precision data.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Limits the bytes that rows and V take of the memory of each GPU. Rows beyond the limit are copied to the GPU in every sweep.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Opens the GPUs.
    ///
    /// # Errors
    /// The reason, in one sentence, if a GPU or its driver is missing or too old, or a number occurs twice.
    pub fn open(self) -> Result<Arc<dyn Accelerator>, String> {
        let Self { numbers, precision, memory } = self;
        if numbers.is_empty() || (1..numbers.len()).any(|at| numbers[..at].contains(&numbers[at])) {
            return Err("name one or several GPUs, each of them once".into());
        }
        let gpus = numbers.into_iter().map(stored::opened).collect::<Result<Vec<_>, _>>()?;
        Ok(Arc::new(Cuda { gpus, precision, memory }))
    }
}

#[derive(Debug)]
struct Cuda {
    gpus: Vec<Arc<Gpu>>,
    precision: Precision,
    memory: Option<usize>,
}

impl Accelerator for Cuda {
    fn name(&self) -> String {
        let names: Vec<&str> = self.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        names.join(", ")
    }

    fn hold<'a>(&self, load: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>> {
        Ok(Arc::new(Partitions::new(&self.gpus, load, self.precision, self.memory)?))
    }
}
