//! Which machine a fit is made on, and when.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::{Accelerator, Load, Resident, refused};
use crate::{Daimc, Error, Result};

/// The machine that a fit is to be made on, as people name it: `cpu`, `cuda`, `cuda:1`, `cuda:0,1` or `auto`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// Graphics cards that share the rows, by their numbers from 0.
    Cuda(Vec<usize>),
    /// The first card where there is one and it is worth it, else the processor.
    Auto,
}

impl Device {
    /// Brings the machine into a fit; `open` opens cards by their numbers, or says in a sentence why not. They are opened at
    /// once where they were asked for by name.
    ///
    /// # Errors
    /// [`Error::Accelerator`] if such cards cannot be opened.
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

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(cards) if cards[..] == [0] => f.write_str("cuda"),
            Self::Cuda(cards) => {
                let numbers: Vec<String> = cards.iter().map(ToString::to_string).collect();
                write!(f, "cuda:{}", numbers.join(","))
            }
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let cards = || {
            let numbers = name.strip_prefix("cuda:")?.split(',');
            let cards: Vec<usize> = numbers.map(|number| number.parse().ok()).collect::<Option<_>>()?;
            let twice = (1..cards.len()).any(|at| cards[..at].contains(&cards[at]));
            (!twice).then_some(cards)
        };
        match name {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(vec![0])),
            "auto" => Ok(Self::Auto),
            _ => cards().map(Self::Cuda).ok_or_else(|| Error::Option {
                option: "device",
                value: name.into(),
                reason: "must be cpu, cuda, cuda:1 (the second card), cuda:0,1 (the first two) or auto"
                    .into(),
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
