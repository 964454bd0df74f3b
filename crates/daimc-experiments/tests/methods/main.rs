//! The public interface of the compared methods.

mod nmf;
mod online;
mod pairs;
