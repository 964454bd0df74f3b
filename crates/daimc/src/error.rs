//! The one error type. Every message says what is wrong, where, and, if it is not plain, what to do.

use crate::text::{path as path_shown, plain, quoted};

/// Everything that can go wrong in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No view was given.
    #[error("no view was given: at least one is needed")]
    NoViews,

    /// Two views have one name.
    #[error("two views are named {}: give each view a name of its own", quoted(view))]
    DuplicateView {
        /// The name that occurs twice.
        view: String,
    },

    /// A view has no feature.
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

    /// The parts of a view do not fit together.
    #[error("view {}: {what}: expected {expected}, found {found}", quoted(view))]
    Shape {
        /// The view's name.
        view: String,
        /// What was counted.
        what: &'static str,
        /// The count that fits.
        expected: usize,
        /// The count that was found.
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

    /// A value is below zero and the method takes none such.
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

    /// Values are so large or so small that their squares leave the range of numbers.
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

    /// A choice of the number of clusters was stopped before anything could be said.
    #[error("stopped after {done} resample(s): at least two are needed for a recommendation")]
    Cancelled {
        /// Resamples that were finished.
        done: usize,
    },

    /// Work was stopped by a [`Stop`](crate::Stop) before there was anything to keep.
    #[error("the fit was interrupted")]
    Interrupted,

    /// The fit left the range of floating point.
    #[error(
        "numbers became too large or too small to compute with: scale the views (for example with unit rows), and take \
         alpha, beta and the start nearer to 1"
    )]
    OutOfRange,

    /// A machine beside the processor cannot do it.
    #[error("{name}: {reason}")]
    Accelerator {
        /// The machine.
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
        /// The row where it stands first, from 0.
        first: usize,
        /// The row where it stands again, from 0.
        second: usize,
    },

    /// A view that is to be joined has no IDs.
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
        /// How many instances are seen in no view.
        count: usize,
    },

    /// More instances than can be counted in 32 bits.
    #[error("view {} has {rows} rows; at most {limit} are supported", quoted(view))]
    TooManyRows {
        /// The view's name.
        view: String,
        /// Its rows.
        rows: usize,
        /// The limit.
        limit: usize,
    },

    /// An option has a value that makes no sense.
    #[error("{option} = {}: {reason}", plain(value))]
    Option {
        /// The option's name.
        option: &'static str,
        /// The value that was given.
        value: String,
        /// What it should be.
        reason: String,
    },

    /// Something that makes sense, but not for these data.
    #[error("{what} = {}: {reason}", plain(value))]
    Unsuitable {
        /// What does not fit: an option's name, or that of a part of the data.
        what: &'static str,
        /// What was found.
        value: String,
        /// What it should be.
        reason: String,
    },

    /// The threads that were asked for cannot be started.
    #[error("{threads} threads cannot be started ({reason}): ask for fewer")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
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

    /// A view that the model does not know.
    #[error("view {} is not part of the model, which has: {known}", quoted(view))]
    UnknownView {
        /// The view's name.
        view: String,
        /// The views of the model.
        known: String,
    },

    /// Two sequences that belong together differ in length.
    #[error("{what}: expected {expected} values, found {found}")]
    LengthMismatch {
        /// What was counted.
        what: String,
        /// The length that fits.
        expected: usize,
        /// The length that was found.
        found: usize,
    },

    /// Nothing to work on.
    #[error("{what}: nothing was given")]
    EmptyInput {
        /// What is empty.
        what: String,
    },

    /// Gaps that cannot be simulated.
    #[error("missing instances cannot be simulated: {reason}")]
    Simulation {
        /// Why not.
        reason: String,
    },

    /// A model without the statistics that an update starts from.
    #[error(
        "the model cannot be updated, because it does not have the statistics of its data: it was written by an earlier version, or \
         fitted to rows that several processes hold; fit again, with this version and in one process"
    )]
    NotUpdatable,

    /// An instance that the model has learnt from already.
    #[error(
        "the model has already learnt from instance {}; {count} such instance(s) in all: leave them out, or give them IDs of \
         their own",
        quoted(id)
    )]
    LearntBefore {
        /// The instance's ID.
        id: String,
        /// How many instances of the batch it has learnt from.
        count: usize,
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
        /// What the system said.
        source: std::io::Error,
    },

    /// A [`Source`](crate::Source) could not deliver its rows.
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

/// What kind of thing went wrong; whoever was asked can tell from it whom to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for makes no sense, whatever the data.
    Usage,
    /// The data cannot be used, or not in the way that was asked for.
    Data,
    /// The system did not let it be done.
    Failed,
    /// Somebody asked to stop.
    Interrupted,
}

impl Error {
    /// What kind of error it is.
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
            | Self::ModelFile { .. } => ErrorKind::Data,
            Self::Threads { .. }
            | Self::Accelerator { .. }
            | Self::NoConvergence { .. }
            | Self::Io { .. }
            | Self::Read { .. } => ErrorKind::Failed,
            Self::Cancelled { .. } | Self::Interrupted => ErrorKind::Interrupted,
        }
    }
}

/// A result whose error is this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Daimc, View, Views};

    #[test]
    fn the_kind_says_whether_the_data_are_at_fault() {
        let views = Views::new(vec![View::dense("a", 2, vec![1.0; 8]).unwrap()]).unwrap();
        let kind = |fit: Daimc| fit.fit(&views).unwrap_err().kind();
        assert_eq!(kind(Daimc::new(5)), ErrorKind::Data);
        assert_eq!(kind(Daimc::new(0)), ErrorKind::Usage);
        assert_eq!(kind(Daimc::new(2).alpha(-1.0)), ErrorKind::Usage);
        let fitted = Daimc::new(2).fit(&views).unwrap();
        assert_eq!(fitted.model.contributions_of(&views, &[0, 1, 2, 0]).unwrap_err().kind(), ErrorKind::Data);
        assert_eq!(Error::Cancelled { done: 1 }.kind(), ErrorKind::Interrupted);
        assert_eq!(Error::Threads { threads: 9, reason: "no".into() }.kind(), ErrorKind::Failed);
    }

    #[test]
    fn names_are_told_in_one_short_line() {
        let id = "\u{1b}[2J\n".to_owned() + &"x".repeat(3_000_000);
        let error = Error::DuplicateId { view: id.clone(), id, first: 0, second: 1 }.to_string();
        assert!(error.starts_with(r"view '\u{1b}[2J\nxxx") && error.len() < 300, "{error}");
    }
}
