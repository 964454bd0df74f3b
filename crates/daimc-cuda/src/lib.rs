//! The rows of a [`daimc`] fit on an NVIDIA graphics card.
//!
//! [`open`] finds a card; [`daimc::Daimc::accelerator`] takes it. Rows go to the card once and V stays there during the
//! iterations: a sweep reads the rows, updates V and brings back its statistics. What it needs is the driver; where there is none,
//! or no card, [`open`] says so. Rows that lie on the card already are the [stored](daimc::View::stored) rows of an [`OnCard`].

mod card;
mod descent;
mod fused;
mod given;
mod holes;
mod kernels;
mod latent;
mod links;
mod nearest;
mod parts;
mod rows;
mod shard;
mod sums;
mod update;

use std::sync::Arc;

use daimc::Result;
use daimc::accelerator::{Accelerator, Load, Resident};

use card::Card;
pub use given::{OnCard, fetch};
use parts::Parts;

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
    Cards::new([card]).precision(precision).open()
}

/// Cards that share the rows of a fit.
#[derive(Clone, Debug)]
pub struct Cards {
    numbers: Vec<usize>,
    precision: Precision,
    memory: Option<usize>,
}

impl Cards {
    /// These, by their numbers from 0.
    pub fn new(numbers: impl IntoIterator<Item = usize>) -> Self {
        Self { numbers: numbers.into_iter().collect(), precision: Precision::default(), memory: None }
    }

    /// How products of single-precision rows are made.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Bytes that rows and V take of the memory of each, at most. Rows that do not find room there go through the card in every sweep.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Opens them.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    pub fn open(self) -> Result<Arc<dyn Accelerator>, String> {
        let Self { numbers, precision, memory } = self;
        if numbers.is_empty() || (1..numbers.len()).any(|at| numbers[..at].contains(&numbers[at])) {
            return Err("name one card or several, each of them once".into());
        }
        let cards = numbers.into_iter().map(given::opened).collect::<Result<Vec<_>, _>>()?;
        Ok(Arc::new(Cuda { cards, precision, memory }))
    }
}

#[derive(Debug)]
struct Cuda {
    cards: Vec<Arc<Card>>,
    precision: Precision,
    memory: Option<usize>,
}

impl Accelerator for Cuda {
    fn name(&self) -> String {
        let names: Vec<&str> = self.cards.iter().map(|card| card.name.as_str()).collect();
        names.join(", ")
    }

    fn hold<'a>(&self, load: Load<'a>) -> Result<Arc<dyn Resident<'a> + 'a>> {
        Ok(Arc::new(Parts::new(&self.cards, load, self.precision, self.memory)?))
    }
}
