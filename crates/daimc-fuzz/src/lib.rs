//! Mutations of bytes, for fuzzing file readers.

mod mutate;
mod random;

pub use mutate::mutate;
pub use random::Random;
