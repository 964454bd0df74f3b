//! The error type. Every message says what is wrong, where, and, if it is not obvious, what to do.

use crate::text::{path as path_shown, plain, quoted};

/// The errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No view was given.
    #[error("no view was given: at least one is needed")]
    NoViews,

    /// Two views have the same name.
    #[error("two views are named {}: view names must be unique", quoted(view))]
    DuplicateView {
        /// The name that occurs twice.
        view: String,
    },

    /// A view has no features.
    #[error("view {} has no features", quoted(view))]
    NoFeatures {
        /// The view's name.
        view: String,
    },

    /// Every instance is missing in a view.
    #[error("view {} has no instances: every row is missing; leave the view out", quoted(view))]
    EmptyView {
        /// The view's name.
        view: String,
    },

    /// The dimensions of a view do not match.
    #[error("view {}: {what}: expected {expected}, found {found}", quoted(view))]
    Shape {
        /// The view's name.
        view: String,
        /// The quantity that was counted.
        what: &'static str,
        /// The expected count.
        expected: usize,
        /// The count found.
        found: usize,
    },

    /// The arrays of a sparse view are not a valid CSR matrix.
    #[error("view {}, row {row}: not a valid sparse matrix: {reason}", quoted(view))]
    Sparse {
        /// The view's name.
        view: String,
        /// The row, from 0.
        row: usize,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// A value is NaN or infinite.
    #[error(
        "view {}, row {row} (instance {}), column {column} ({}): the value is {value}; mark the instance as missing in this \
         view or fill the value in",
        quoted(view),
        quoted(id),
        quoted(feature)
    )]
    NotFinite {
        /// The view's name.
        view: String,
        /// The row of the view's own matrix, from 0.
        row: usize,
        /// The instance's ID.
        id: String,
        /// The column, from 0.
        column: usize,
        /// The column's name.
        feature: String,
        /// The value.
        value: f64,
    },

    /// A negative value, which the method does not support.
    #[error(
        "view {}, row {row} (instance {}), column {column} ({}): the value is {value}, and {method} takes no values below \
         zero; scale the views with min-max, or choose a method that takes them, such as daimc or wsnmf",
        quoted(view),
        quoted(id),
        quoted(feature)
    )]
    Negative {
        /// The view's name.
        view: String,
        /// The instance's position, from 0.
        row: usize,
        /// The instance's ID.
        id: String,
        /// The column, from 0.
        column: usize,
        /// The column's name.
        feature: String,
        /// The value.
        value: f64,
        /// The method's name.
        method: String,
    },

    /// A row with more or fewer values than the view has features.
    #[error(
        "view {}, row {row} (instance {}): the number of values should be {expected}, not {found}",
        quoted(view),
        quoted(id)
    )]
    RowLength {
        /// The view's name.
        view: String,
        /// The row, from 0.
        row: usize,
        /// The instance's ID.
        id: String,
        /// The number of features.
        expected: usize,
        /// The number of values.
        found: usize,
    },

    /// Values whose squares overflow or underflow.
    #[error(
        "view {}, row {row} (instance {}): the values are too large to be squared; rescale the view, for example with min-max",
        quoted(view),
        quoted(id)
    )]
    TooLarge {
        /// The view's name.
        view: String,
        /// The instance's position, from 0.
        row: usize,
        /// The instance's ID.
        id: String,
    },

    /// A partition of a distributed fit failed or could not be reached; for executors.
    #[error("partition {partition}: {source}")]
    Partition {
        /// The number of the partition, from 0.
        partition: usize,
        /// What happened.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// Work was stopped by a [`Stop`](crate::Stop) before it had a result.
    #[error("the fit was interrupted")]
    Interrupted,

    /// The fit left the range of floating-point numbers.
    #[error(
        "numerical overflow or underflow: scale the views (for example with unit rows), and choose alpha, beta and the \
         start closer to 1"
    )]
    OutOfRange,

    /// An accelerator failed or does not support the fit.
    #[error("{name}: {reason}")]
    Accelerator {
        /// The name of the accelerator.
        name: String,
        /// Why not, and what to do.
        reason: String,
    },

    /// The eigenvalues of a matrix were not found.
    #[error(
        "the eigenvalues of a {order} × {order} matrix were not found: scale the views (for example with unit rows), or \
         try another seed"
    )]
    NoConvergence {
        /// Rows of the matrix.
        order: usize,
    },

    /// An ID occurs twice in one view.
    #[error("view {}: the ID {} occurs in row {first} and again in row {second}", quoted(view), quoted(id))]
    DuplicateId {
        /// The view's name.
        view: String,
        /// The ID.
        id: String,
        /// The first row with the ID, from 0.
        first: usize,
        /// The second row with the ID, from 0.
        second: usize,
    },

    /// A view to be joined has no IDs.
    #[error("view {} has no IDs: views are joined by ID, so each of them needs IDs", quoted(view))]
    NoIds {
        /// The view's name.
        view: String,
    },

    /// An instance is missing in every view.
    #[error(
        "instance {} (row {row}) is missing in every view; {count} such instance(s) in all: leave them out",
        quoted(id)
    )]
    SeenInNoView {
        /// The instance's position, from 0.
        row: usize,
        /// The instance's ID.
        id: String,
        /// The number of instances that are present in no view.
        count: usize,
    },

    /// A view has more instances than 32 bits can count.
    #[error("view {} has {rows} rows; at most {limit} are supported", quoted(view))]
    TooManyRows {
        /// The view's name.
        view: String,
        /// Its rows.
        rows: usize,
        /// The limit.
        limit: usize,
    },

    /// The value of an option is not valid.
    #[error("{option} = {}: {reason}", plain(value))]
    Option {
        /// The option's name.
        option: &'static str,
        /// The value that was given.
        value: String,
        /// What is allowed.
        reason: String,
    },

    /// An option or input that is valid in itself but not for these data.
    #[error("{what} = {}: {reason}", plain(value))]
    Unsuitable {
        /// What does not fit: the name of an option or of a part of the data.
        what: &'static str,
        /// The value found.
        value: String,
        /// What is expected.
        reason: String,
    },

    /// The requested threads cannot be started.
    #[error("{threads} threads cannot be started ({reason}): ask for fewer")]
    Threads {
        /// The number of requested threads.
        threads: usize,
        /// The error of the system.
        reason: String,
    },

    /// A scaling cannot be applied to a view.
    #[error("view {}: {scale} cannot be applied: {reason}", quoted(view))]
    Scaling {
        /// The view's name.
        view: String,
        /// The scaling's name.
        scale: String,
        /// Why not, and what to do.
        reason: String,
    },

    /// A view that is not part of the model.
    #[error("view {} is not part of the model, which has: {known}", quoted(view))]
    UnknownView {
        /// The view's name.
        view: String,
        /// The views of the model.
        known: String,
    },

    /// Two sequences of different lengths.
    #[error("{what}: expected {expected} values, found {found}")]
    LengthMismatch {
        /// The quantity that was counted.
        what: String,
        /// The expected length.
        expected: usize,
        /// The length found.
        found: usize,
    },

    /// An empty input.
    #[error("{what}: nothing was given")]
    EmptyInput {
        /// What is empty.
        what: String,
    },

    /// Missing instances cannot be simulated.
    #[error("missing instances cannot be simulated: {reason}")]
    Simulation {
        /// Why not.
        reason: String,
    },

    /// A model without the statistics that an update needs.
    #[error(
        "the model cannot be updated, because it does not have the statistics of its data: it was written by an earlier version; \
         fit again"
    )]
    NotUpdatable,

    /// An instance that the model has learnt from before.
    #[error(
        "the model has already learnt from instance {}; {count} such instance(s) in all: leave them out, or give them unique IDs",
        quoted(id)
    )]
    LearntBefore {
        /// The instance's ID.
        id: String,
        /// The number of instances of the batch that the model has learnt from before.
        count: usize,
    },

    /// A model that learns from this batch would lose part of one of its clusters.
    #[error(
        "the batch was not learnt: the model would place instances of its own cluster {cluster} in cluster {other} \
         afterwards; assign the batch to clusters without learning from it (predict), or fit again to all instances"
    )]
    ClusterLost {
        /// The cluster that would be lost.
        cluster: usize,
        /// The cluster that would take its place.
        other: usize,
    },

    /// A model file cannot be read.
    #[error("not a model that this version can read: {reason}")]
    ModelFile {
        /// What is wrong with it.
        reason: String,
    },

    /// A file could not be read or written.
    #[error("{}: {source}", path_shown(path))]
    Io {
        /// The file.
        path: String,
        /// The error of the system.
        source: std::io::Error,
    },

    /// A [`Source`](crate::Source) failed to read rows.
    #[error("view {}, instances {first} to {last}: the rows could not be read: {source}", quoted(view))]
    Read {
        /// The view's name.
        view: String,
        /// The first instance of the block.
        first: usize,
        /// The last instance of the block.
        last: usize,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Error category, e.g. for an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is not valid, whatever the data.
    Usage,
    /// The data cannot be used, or not in the requested way.
    Data,
    /// The system failed: threads, files, devices, numerics.
    Failed,
    /// The work was stopped.
    Interrupted,
}

impl Error {
    /// The category of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoViews | Self::DuplicateView { .. } | Self::Option { .. } | Self::Simulation { .. } => {
                ErrorKind::Usage
            }
            Self::NoFeatures { .. }
            | Self::EmptyView { .. }
            | Self::Shape { .. }
            | Self::Sparse { .. }
            | Self::NotFinite { .. }
            | Self::Negative { .. }
            | Self::RowLength { .. }
            | Self::TooLarge { .. }
            | Self::OutOfRange
            | Self::DuplicateId { .. }
            | Self::NoIds { .. }
            | Self::SeenInNoView { .. }
            | Self::TooManyRows { .. }
            | Self::Unsuitable { .. }
            | Self::Scaling { .. }
            | Self::UnknownView { .. }
            | Self::LengthMismatch { .. }
            | Self::EmptyInput { .. }
            | Self::NotUpdatable
            | Self::LearntBefore { .. }
            | Self::ClusterLost { .. }
            | Self::ModelFile { .. } => ErrorKind::Data,
            Self::Threads { .. }
            | Self::Accelerator { .. }
            | Self::NoConvergence { .. }
            | Self::Io { .. }
            | Self::Partition { .. }
            | Self::Read { .. } => ErrorKind::Failed,
            Self::Interrupted => ErrorKind::Interrupted,
        }
    }
}

/// A result whose error is this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_in_one_short_line() {
        let id = "\u{1b}[2J\n".to_owned() + &"x".repeat(3_000_000);
        let error = Error::DuplicateId { view: id.clone(), id, first: 0, second: 1 }.to_string();
        assert!(error.starts_with(r"view '\u{1b}[2J\nxxx") && error.len() < 300, "{error}");
    }
}
