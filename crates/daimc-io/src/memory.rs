//! How much memory there is to take, and what is taken of it where a file decides.
//!
//! An allocation that fails ends the program without a word, and on most systems it does not even fail: the process is
//! killed when it uses what it was promised. So what a file asks for is compared with what there is beforehand.

pub use daimc::internal::memory::{addresses, available, limit};
