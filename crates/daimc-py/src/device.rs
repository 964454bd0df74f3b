//! The device of a fit: the CPU or GPUs.

use std::sync::Arc;

use daimc::accelerator::{Accelerator, Device};
use daimc::{Daimc, Error, Result};

/// Sets the device of a fit. `gpu_views` lists the views in GPU memory, by name and GPU number; their GPUs must be among those
/// of `device`.
pub fn set_device<'a>(
    fit: Daimc,
    device: &str,
    precision: &str,
    gpu_views: impl Iterator<Item = (&'a str, usize)>,
) -> Result<Daimc> {
    let (device, precision) = (device.parse::<Device>()?, precision_of(precision)?);
    let mut own = None;
    for (view, gpu) in gpu_views {
        let reason = match &device {
            Device::Cuda(gpus) if !gpus.contains(&gpu) => {
                let own = Device::Cuda(vec![gpu]);
                format!("view '{view}' is on GPU {gpu}: use device='{own}', or copy all views to one GPU")
            }
            Device::Auto if own.is_some_and(|own| own != gpu) => {
                format!("view '{view}' is on GPU {gpu}, other views are on another: copy them to one GPU")
            }
            _ => {
                own = Some(gpu);
                continue;
            }
        };
        return Err(Error::Option { option: "device", value: device.to_string(), reason });
    }
    let own = own.filter(|_| device == Device::Auto);
    fit.device(&device, move |gpus| open(own.as_ref().map_or(gpus, std::slice::from_ref), precision))
}

/// The precision of matrix products on a GPU.
#[derive(Clone, Copy)]
enum Precision {
    Single,
    Tf32,
}

fn precision_of(name: &str) -> Result<Precision> {
    match name {
        "single" => Ok(Precision::Single),
        "tf32" => Ok(Precision::Tf32),
        _ => Err(Error::Option {
            option: "precision",
            value: name.into(),
            reason: "must be single or tf32".into(),
        }),
    }
}

#[cfg(feature = "cuda")]
fn open(gpus: &[usize], precision: Precision) -> Result<Arc<dyn Accelerator>, String> {
    let precision = match precision {
        Precision::Single => daimc_cuda::Precision::Single,
        Precision::Tf32 => daimc_cuda::Precision::Tf32,
    };
    daimc_cuda::Gpus::new(gpus.iter().copied()).precision(precision).open()
}

/// The error of a build without GPU support.
#[cfg(not(feature = "cuda"))]
pub const WITHOUT_CUDA: &str = "this package was built without GPU support; use device='cpu'";

#[cfg(not(feature = "cuda"))]
fn open(_: &[usize], precision: Precision) -> Result<Arc<dyn Accelerator>, String> {
    let (Precision::Single | Precision::Tf32) = precision;
    Err(WITHOUT_CUDA.into())
}
