//! Associations of clusters with clinical data.
//!
//! [`associations`] tests every column of a table for an association with the clusters: Kruskal–Wallis for numbers; for categories
//! Pearson's χ² or, if counts are small, Fisher's exact test or a permutation test. [`survival`] estimates a Kaplan–Meier curve for
//! each cluster, and compares them by the log-rank test.
//!
//! ```
//! use daimc_clinical::{Column, associations};
//!
//! let clusters = [0, 0, 0, 0, 1, 1, 1, 1];
//! let stage = Column::new("stage", ["I", "I", "I", "II", "II", "II", "II", "NA"]);
//! let age = Column::new("age", ["61", "58", "70", "66", "31", "29", "40", "35"]);
//! let found = associations(&[stage, age], &clusters)?;
//! let p: Vec<f64> = found.tests.iter().map(|test| test.p).collect();
//! assert!(p[1] < 0.05 && p[0] > 0.05);
//! # Ok::<(), daimc_clinical::Error>(())
//! ```

mod adjust;
mod association;
mod column;
mod contingency;
mod gamma;
mod ranks;
mod survival;

pub use adjust::benjamini_hochberg;
pub use association::{Associations, Breakdown, LeftOut, Test, TestKind, associations};
pub use column::Column;
pub use survival::{Curve, Followup, Step, Survival, survival};

/// Errors of the input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The number of values is not the number of instances.
    #[error("{what} has {found} values, but there are {expected} instances")]
    Length {
        /// The values of wrong length.
        what: String,
        /// The number of instances.
        expected: usize,
        /// The number of values.
        found: usize,
    },
    /// A follow-up time is not a number, or negative.
    #[error("the time {value:?} of column {column:?} is not a number of at least 0")]
    Time {
        /// The name of the column.
        column: String,
        /// The value.
        value: String,
    },
    /// An event indicator has an unknown value.
    #[error(
        "the event {value:?} of column {column:?} is not one of 1, true, yes, dead, deceased, event or 0, false, no, \
         alive, living, censored"
    )]
    Event {
        /// The name of the column.
        column: String,
        /// The value.
        value: String,
    },
    /// No instance has both a time and an event.
    #[error("no instance has both a time and an event")]
    NoFollowup,
}

/// The result of a test.
pub type Result<T, E = Error> = std::result::Result<T, E>;
