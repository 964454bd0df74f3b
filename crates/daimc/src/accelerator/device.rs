//! When a fit runs on an accelerator, and on which device it ran.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::{Accelerator, Load, Resident, refused};
use crate::Result;

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
