//! The device of a fit: its choice, and the transfer of the rows.

use std::sync::Arc;

use super::Daimc;
use crate::backend::Backend;
use crate::estimate::Effort;
use crate::options::{Neighbours, Options};
use daimc_core::accelerator::{Accelerator, Deferred, DeviceUsed, Use, refused};
use daimc_core::device::Device;
use daimc_core::steps::latent::Solver;
use daimc_core::{Error, Result, Schema};

/// The minimum time of a fit on the CPU, in seconds, for which a transfer of the rows pays.
const WORTH: f64 = 2.0;

impl Daimc {
    /// Sets the device. `open` opens GPUs by their numbers, or returns the reason why it cannot. GPUs that are given by
    /// number are opened at once; with [`Device::Auto`] the first is opened when the fit passes it the rows.
    ///
    /// # Errors
    /// [`Error::Accelerator`](daimc_core::Error::Accelerator) if these GPUs cannot be opened.
    pub fn device<F>(self, device: &Device, open: F) -> Result<Self>
    where
        F: Fn(&[usize]) -> Result<Arc<dyn Accelerator>, String> + Send + Sync + 'static,
    {
        match device {
            Device::Cpu => Ok(Self { accelerator: None, ..self }),
            Device::Cuda(numbers) => {
                let gpus = open(numbers).map_err(|reason| refused(&device.to_string(), reason))?;
                Ok(self.accelerator(gpus, Use::Always))
            }
            Device::Auto => {
                Ok(self.accelerator(Arc::new(Deferred::new("cuda", move || open(&[0]))), Use::WhereItPays))
            }
        }
    }

    /// Hands the rows to the accelerator, if there is one and the options or the estimate favour it.
    pub(super) fn hand_over<'a>(&self, rows: &mut impl Backend<'a>, schema: &Schema) -> Result<DeviceUsed> {
        let Some((machine, when)) = &self.accelerator else { return Ok(DeviceUsed::default()) };
        if *when == Use::WhereItPays && self.seconds(schema) < WORTH {
            let reason = format!("it needs less than {WORTH} seconds, not worth a transfer of the rows");
            return Ok(DeviceUsed::cpu(Some(reason)));
        }
        let handed = match self.options.solver {
            Solver::Coordinate => rows.hand_to(&**machine, *when),
            solver => Err(refused(
                &machine.name(),
                format!("solver = {solver} runs on the CPU only; use the coordinate solver, or device = cpu"),
            )),
        };
        match handed {
            Err(error @ Error::Accelerator { .. }) if *when == Use::WhereItPays => {
                Ok(DeviceUsed::cpu(Some(error.to_string())))
            }
            handed => handed.map(|()| DeviceUsed::accelerator(&**machine)),
        }
    }

    /// The time on the threads of this machine, in seconds, of the work that an accelerator can do.
    fn seconds(&self, schema: &Schema) -> f64 {
        let Options { clusters, runs, neighbours, .. } = self.options;
        let effort = Effort::new(schema, clusters);
        let search = if neighbours == Neighbours::Off { 0.0 } else { effort.search };
        (effort.fit * runs as f64 + search) / rayon::current_num_threads() as f64
    }
}
