//! The names of devices, and rows in device memory.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The device that a fit runs on, in its text form: `cpu`, `cuda`, `cuda:1`, `cuda:0,1` or `auto`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// GPUs that share the rows, by their numbers from 0.
    Cuda(Vec<usize>),
    /// The first GPU if there is one and using it pays off, else the CPU.
    Auto,
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
                reason: "must be cpu, cuda, cuda:1 (the second GPU), cuda:0,1 (the first two) or auto".into(),
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

/// Dense rows in device memory. The values of a row are contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRows {
    /// The device, such as a GPU by its number.
    pub device: Device,
    /// The address of the first row.
    pub address: u64,
    /// The number of rows.
    pub rows: usize,
    /// Values from the start of a row to the start of the next.
    pub stride: usize,
}
