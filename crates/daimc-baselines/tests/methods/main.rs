//! The compared methods from outside.

mod nmf;
mod pairs;
