//! The choice between an accelerator and the CPU, and the record of the device that ran a fit.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::{Accelerator, Load, Resident, refused};
use crate::Result;

/// When a fit passes its rows to an accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Use {
    /// Always. An error of the accelerator is the error of the fit.
    Always,
    /// Only if the time that the fit would take on the CPU justifies the transfer, and the accelerator accepts the rows.
    /// Otherwise the fit runs on the CPU, and [`DeviceUsed::reason`] says why.
    WhereItPays,
}

/// The device that ran the iterations of a fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceUsed {
    /// `cpu`, or the name of the accelerator.
    pub name: String,
    /// The reason why the fit ran on the CPU although it was given an accelerator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Default for DeviceUsed {
    fn default() -> Self {
        Self::cpu(None)
    }
}

impl DeviceUsed {
    /// The CPU. `reason` says why an accelerator that was given did not run the fit.
    pub fn cpu(reason: Option<String>) -> Self {
        Self { name: "cpu".into(), reason }
    }

    /// An accelerator.
    pub fn accelerator(accelerator: &dyn Accelerator) -> Self {
        Self { name: accelerator.name(), reason: None }
    }

    /// Whether this is the CPU of a fit that was not given an accelerator.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An accelerator that is opened when a fit first passes rows to it, so that fits which stay on the CPU do not wait for
/// the driver.
pub struct Deferred<F> {
    kind: String,
    open: F,
    opened: OnceLock<Result<Arc<dyn Accelerator>, String>>,
}

impl<F: Fn() -> Result<Arc<dyn Accelerator>, String>> Deferred<F> {
    /// An accelerator of a kind such as `cuda`, which is its name until it is open. `open` is called at most once. It
    /// returns the accelerator, or one sentence that says why it is not available.
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
            Some(Ok(accelerator)) => accelerator.name(),
            _ => self.kind.clone(),
        }
    }

    fn hold<'a>(&self, load: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>> {
        match self.opened.get_or_init(&self.open) {
            Ok(accelerator) => accelerator.hold(load),
            Err(reason) => Err(refused(&self.kind, reason)),
        }
    }
}
