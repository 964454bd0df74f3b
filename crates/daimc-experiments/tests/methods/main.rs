//! The compared methods from outside.

mod nmf;
mod online;
mod pairs;
