//! Changes to files, for whoever wants to read what came of them.

mod mutate;
mod random;

pub use mutate::mutate;
pub use random::Random;
