//! The rows of a [`daimc`] fit on an NVIDIA graphics card.
//!
//! [`open`] finds a card; [`daimc::Daimc::accelerator`] takes it. Rows go to the card once and V stays there during the
//! iterations: a sweep reads the rows, updates V and brings back its statistics. What it needs is the driver; where there is none,
//! or no card, [`open`] says so.

mod card;
mod fused;
mod holes;
mod kernels;
mod nearest;
mod rows;
mod shard;
mod sums;
mod update;

use std::sync::Arc;

use daimc::Result;
use daimc::accelerator::{Accelerator, Load, Resident};

use card::Card;
use shard::Held;

/// How products of single-precision rows are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// As exactly as single precision allows.
    #[default]
    Single,
    /// Of numbers that are rounded to 11 bits, which tensor cores multiply fastest (TF32).
    Tf32,
}

/// Opens a card, by its number from 0.
///
/// # Errors
/// A sentence that says what is missing.
pub fn open(card: usize, precision: Precision) -> Result<Arc<dyn Accelerator>, String> {
    Ok(Arc::new(Cuda { card: Arc::new(Card::open(card)?), precision }))
}

#[derive(Debug)]
struct Cuda {
    card: Arc<Card>,
    precision: Precision,
}

impl Accelerator for Cuda {
    fn name(&self) -> String {
        self.card.name.clone()
    }

    fn hold<'a>(&self, load: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>> {
        Ok(Arc::new(Held::new(self.card.clone(), load, self.precision)?))
    }
}
