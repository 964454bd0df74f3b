//! The machine that a fit is made on.

use std::sync::Arc;

use daimc::accelerator::{Accelerator, Device};
use daimc::{Daimc, Error, Result};

/// The same fit on the machine that was asked for, to which the cards that views lie on have to belong; `lying` tells their names and
/// cards.
pub fn bring<'a>(
    fit: Daimc,
    device: &str,
    precision: &str,
    lying: impl Iterator<Item = (&'a str, usize)>,
) -> Result<Daimc> {
    let (device, precision) = (device.parse::<Device>()?, precision_of(precision)?);
    let mut own = None;
    for (view, card) in lying {
        let reason = match &device {
            Device::Cuda(cards) if !cards.contains(&card) => {
                let there = Device::Cuda(vec![card]);
                format!(
                    "view '{view}' lies on card {card}: give device='{there}', or bring all views to one card"
                )
            }
            Device::Auto if own.is_some_and(|own| own != card) => {
                format!("view '{view}' lies on card {card}, and another on another: bring them to one card")
            }
            _ => {
                own = Some(card);
                continue;
            }
        };
        return Err(Error::Option { option: "device", value: device.to_string(), reason });
    }
    let own = own.filter(|_| device == Device::Auto);
    device.bring(fit, move |cards| open(own.as_ref().map_or(cards, std::slice::from_ref), precision))
}

/// How products are made on a card.
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
fn open(cards: &[usize], precision: Precision) -> Result<Arc<dyn Accelerator>, String> {
    let precision = match precision {
        Precision::Single => daimc_cuda::Precision::Single,
        Precision::Tf32 => daimc_cuda::Precision::Tf32,
    };
    daimc_cuda::Gpus::new(cards.iter().copied()).precision(precision).open()
}

/// Why there is no card.
#[cfg(not(feature = "cuda"))]
pub const WITHOUT: &str = "this package was built without support for graphics cards; use device='cpu'";

#[cfg(not(feature = "cuda"))]
fn open(_: &[usize], precision: Precision) -> Result<Arc<dyn Accelerator>, String> {
    let (Precision::Single | Precision::Tf32) = precision;
    Err(WITHOUT.into())
}
