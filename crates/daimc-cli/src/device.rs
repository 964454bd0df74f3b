//! `--device`: the device for the iterations and the neighbour search.

use std::sync::Arc;

use clap::Args;
use daimc::accelerator::{Accelerator, Device, DeviceUsed};
use daimc::{Daimc, Fit};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use crate::help::RESOURCES;

/// The options of the device.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct DeviceOptions {
    /// Device for the iterations and the neighbour search: cpu, cuda or auto [default: cpu]
    ///
    /// `cuda` is an NVIDIA GPU, `cuda:1` the second, `cuda:0,1` two that share the instances. `auto` uses a GPU if one is
    /// available and the fit takes more than two seconds. Results of a GPU differ from those of the CPU by rounding errors.
    #[arg(long, value_name = "DEVICE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,

    /// Round the factors of products to 11 bits on a GPU (TF32), which is faster
    #[arg(long, help_heading = RESOURCES)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tf32: bool,
}

impl DeviceOptions {
    /// Fails if the options are inconsistent.
    pub fn check(&self) -> Result<()> {
        if self.tf32 && matches!(self.device, None | Some(Device::Cpu)) {
            let reason = "--tf32 is for GPUs: add --device cuda or auto, or leave it out";
            return Err(Failure::Usage(reason.into()));
        }
        Ok(())
    }

    /// Sets the device of a fit.
    pub fn set_device(&self, fit: Daimc) -> Result<Daimc> {
        let (device, tf32) = (self.device.clone().unwrap_or_default(), self.tf32);
        Ok(fit.device(&device, move |gpus| open(gpus, tf32))?)
    }
}

/// The device that was used and why, unless it was the CPU by default.
pub fn describe(fitted: &Fit) -> Option<String> {
    let DeviceUsed { name, reason, .. } = &fitted.device;
    match reason {
        None if fitted.device == DeviceUsed::default() => None,
        None => Some(format!("device: {name}")),
        Some(reason) => Some(format!("device: {name} ({reason})")),
    }
}

#[cfg(feature = "cuda")]
fn open(gpus: &[usize], tf32: bool) -> Result<Arc<dyn Accelerator>, String> {
    use daimc_cuda::{Gpus, Precision};

    let precision = if tf32 { Precision::Tf32 } else { Precision::Single };
    Gpus::new(gpus.iter().copied()).precision(precision).open()
}

#[cfg(not(feature = "cuda"))]
fn open(_: &[usize], _: bool) -> Result<Arc<dyn Accelerator>, String> {
    Err("this program was built without GPU support; build it with the feature `cuda`, or use --device cpu"
        .into())
}
