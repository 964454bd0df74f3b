//! Which machine a fit is made on, and when.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::{Accelerator, Load, Resident, refused};
use crate::{Daimc, Error, Result};

/// The machine that a fit is to be made on, as people name it: `cpu`, `cuda`, `cuda:1` or `auto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// A graphics card, by its number from 0.
    Cuda(usize),
    /// The first card where there is one and it is worth it, else the processor.
    Auto,
}

impl Device {
    /// Brings the machine into a fit; `open` opens a card by its number, or says in a sentence why not. It is opened at once where it
    /// was asked for by name.
    ///
    /// # Errors
    /// [`Error::Accelerator`] if such a card cannot be opened.
    pub fn bring<F>(self, fit: Daimc, open: F) -> Result<Daimc>
    where
        F: Fn(usize) -> Result<Arc<dyn Accelerator>, String> + Send + Sync + 'static,
    {
        match self {
            Self::Cpu => Ok(fit),
            Self::Cuda(card) => {
                let machine = open(card).map_err(|reason| refused(&self.to_string(), reason))?;
                Ok(fit.accelerator(machine, Use::Always))
            }
            Self::Auto => {
                Ok(fit.accelerator(Arc::new(Deferred::new("cuda", move || open(0))), Use::WhereItPays))
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(0) => f.write_str("cuda"),
            Self::Cuda(card) => write!(f, "cuda:{card}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let card = || name.strip_prefix("cuda:")?.parse().ok();
        match name {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "auto" => Ok(Self::Auto),
            _ => card().map(Self::Cuda).ok_or_else(|| Error::Option {
                option: "device",
                value: name.into(),
                reason: "must be cpu, cuda, cuda:1 (the second card) or auto".into(),
            }),
        }
    }
}

impl TryFrom<String> for Device {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        name.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

/// When a fit hands its rows to an accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Use {
    /// Always: where the accelerator refuses, that is the error of the fit.
    Always,
    /// Where the processor would take longer than handing rows over is worth, and the accelerator does not refuse. Else the fit is
    /// that of the processor, and [`DeviceUsed::reason`] tells why.
    WhereItPays,
}

/// The machine that held rows and V during the iterations of a fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceUsed {
    /// `cpu`, or what the accelerator calls itself.
    pub name: String,
    /// Why it was the processor, where an accelerator was at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Default for DeviceUsed {
    fn default() -> Self {
        Self::cpu(None)
    }
}

impl DeviceUsed {
    pub(crate) fn cpu(reason: Option<String>) -> Self {
        Self { name: "cpu".into(), reason }
    }

    pub(crate) fn accelerator(machine: &dyn Accelerator) -> Self {
        Self { name: machine.name(), reason: None }
    }

    /// Whether there was nothing but the processor.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An accelerator that is opened when rows are handed to it for the first time, so that a fit that does not need it does not wait
/// for its driver.
pub struct Deferred<F> {
    kind: String,
    open: F,
    opened: OnceLock<Result<Arc<dyn Accelerator>, String>>,
}

impl<F: Fn() -> Result<Arc<dyn Accelerator>, String>> Deferred<F> {
    /// One of a kind such as `cuda`, which `open` opens or says in a sentence why not.
    pub fn new(kind: impl Into<String>, open: F) -> Self {
        Self { kind: kind.into(), open, opened: OnceLock::new() }
    }
}

impl<F> fmt::Debug for Deferred<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred")
            .field("kind", &self.kind)
            .field("opened", &self.opened)
            .finish_non_exhaustive()
    }
}

impl<F> Accelerator for Deferred<F>
where
    F: Fn() -> Result<Arc<dyn Accelerator>, String> + Send + Sync,
{
    fn name(&self) -> String {
        match self.opened.get() {
            Some(Ok(machine)) => machine.name(),
            _ => self.kind.clone(),
        }
    }

    fn hold<'a>(&self, load: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>> {
        match self.opened.get_or_init(&self.open) {
            Ok(machine) => machine.hold(load),
            Err(reason) => Err(refused(&self.kind, reason)),
        }
    }
}
