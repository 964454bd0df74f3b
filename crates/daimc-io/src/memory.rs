//! The available memory.
//!
//! A failed allocation aborts the program, and on most systems it does not even fail: the process is killed when it uses the
//! memory. Sizes in files are therefore compared with the available memory before anything is allocated.

pub use daimc_core::machine::memory::{addresses, available, limit};
