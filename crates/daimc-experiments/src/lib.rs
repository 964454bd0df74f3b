//! Experiments with DAIMC: the methods that it is compared with, and the comparisons behind `daimc compare` and
//! `daimc reproduce`.
//!
//! | module | contents |
//! |---|---|
//! | [`methods`] | the compared methods, one file each, behind the trait [`Method`](methods::Method) |
//! | [`compare`](mod@compare) | every method on one data set and the same masks |
//! | [`reproduce`](mod@reproduce) | the tables and figures of the paper, and a panel of many data sets |
//!
//! The feature `experiments`, on by default, adds the last two. Without it the crate is [`methods`] alone and reads no files; the
//! Python package uses it so.

pub mod methods;

#[cfg(feature = "experiments")]
pub mod compare;
#[cfg(feature = "experiments")]
mod harness;
#[cfg(feature = "experiments")]
pub mod reproduce;

#[cfg(feature = "experiments")]
pub use harness::{Dataset, Error, Line, Mean, Monitor, Result, Section, Table, markdown};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
