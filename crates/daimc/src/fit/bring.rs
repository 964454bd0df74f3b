//! The device that a fit runs on.

use std::sync::Arc;

use super::Daimc;
use crate::Result;
use crate::accelerator::{Accelerator, Deferred, Use, refused};
use crate::device::Device;

impl Device {
    /// Sets the device of a fit. `open` opens GPUs by their numbers, or returns the reason why it cannot. GPUs that are given by
    /// number are opened at once; with [`Device::Auto`] the first is opened when the fit hands its rows over.
    ///
    /// # Errors
    /// [`Error::Accelerator`](crate::Error::Accelerator) if these GPUs cannot be opened.
    pub fn bring<F>(self, fit: Daimc, open: F) -> Result<Daimc>
    where
        F: Fn(&[usize]) -> Result<Arc<dyn Accelerator>, String> + Send + Sync + 'static,
    {
        match &self {
            Self::Cpu => Ok(fit),
            Self::Cuda(cards) => {
                let machine = open(cards).map_err(|reason| refused(&self.to_string(), reason))?;
                Ok(fit.accelerator(machine, Use::Always))
            }
            Self::Auto => {
                Ok(fit.accelerator(Arc::new(Deferred::new("cuda", move || open(&[0]))), Use::WhereItPays))
            }
        }
    }
}
