//! Items for other crates of this workspace. Not covered by semantic versioning.

use std::ops::ControlFlow;

use crate::kernel::Scalar;
use crate::kmeans::{self, Plan};
use crate::lens::Lens;
use crate::neighbours;
use crate::prepared::{Preparation, Prepared};
use crate::scan::{Scan, off_the_pool};
use crate::source::{Block, Buffer, Memory, Rows};
use crate::{Daimc, Fit, Iteration, Matrix, Result, Scale, Scaling, Source, Stop, Views};

pub use crate::eigen::leading as leading_eigenvectors;
pub use crate::kernel::aligned::Aligned;
pub use crate::kernel::sparse;
pub use crate::layout::LAID_OUT;
pub use crate::linalg::{
    SMALLEST_EIGENVALUE, column_squares, lift, product, product_transposed, symmetric_eigen,
    transposed_product,
};
pub use crate::machine::memory;
pub use crate::matrix::dot;

/// All rows of a view, prepared: borrowed if they are in memory and need no preparation, otherwise copied.
pub struct ViewRows<'a> {
    source: &'a dyn Source,
    view: usize,
    held: Held<'a>,
}

enum Held<'a> {
    Memory(&'a dyn Memory),
    Read(Buffer),
}

impl<'a> ViewRows<'a> {
    /// Reads the rows, if they are not in memory.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn new(source: &'a dyn Source, view: usize, preparation: &Preparation) -> Result<Self> {
        let whole = source.schema().view(view).missing_cells() == Some(0) && !preparation.log;
        let held = match source.memory() {
            Some(memory) if whole => Held::Memory(memory),
            _ => {
                let prepared = Prepared::one(source, view, preparation)?;
                let mut buffer = Buffer::default();
                Scan::new(&prepared, &Stop::default()).fill(view, 0..source.instances(), &mut buffer)?;
                Held::Read(buffer)
            }
        };
        Ok(Self { source, view, held })
    }

    /// The rows; the buffer is scratch memory for rows that have to be gathered.
    pub fn block<'b>(&'b self, scratch: &'b mut Buffer) -> Block<'b> {
        let all = 0..self.source.instances();
        match &self.held {
            Held::Memory(memory) => memory.block(self.view, all, scratch),
            Held::Read(buffer) => buffer.block(self.source.schema().view(self.view).layout(), all),
        }
    }
}

/// K-means on the rows of a matrix: the cluster of each, and the centres in the columns of a d × K matrix.
///
/// # Errors
/// When a value is not finite.
pub fn kmeans(rows: &Matrix, clusters: usize, restarts: usize, seed: u64) -> Result<(Vec<usize>, Matrix)> {
    let rows = Views::of_matrix(rows)?;
    let rows = Scan::new(&rows, &Stop::default());
    let lens = Lens::new(&rows, 0, Scaling::fit(&rows, 0, Scale::None)?)?;
    let plan = Plan { clusters, restarts, seed, first: None, stop: rows.stop() };
    let centres = kmeans::centres(&rows, &lens, &plan)?;
    let labels = kmeans::assign(&rows, 0, &lens, &centres)?.labels;
    Ok((labels.into_iter().map(|label| label as usize).collect(), centres))
}

/// The nearest neighbours of each instance of a view without scaling, `count` for each (`u32::MAX` where there are
/// fewer), and the recall of the search, where it is estimated.
///
/// # Errors
/// When the rows cannot be read.
pub fn nearest(source: &dyn Source, view: usize, count: usize, seed: u64) -> Result<(Vec<u32>, Option<f64>)> {
    let scan = Scan::new(source, &Stop::default());
    let lens = Lens::new(&scan, view, Scaling::fit(&scan, view, Scale::None)?)?;
    let found = neighbours::nearest_in(&scan, view, &lens, count, seed)?;
    let of = |i: usize| {
        let near = found.of(i).map(|(other, _)| other as u32);
        near.chain(std::iter::repeat(u32::MAX)).take(count)
    };
    Ok(((0..source.instances()).flat_map(of).collect(), found.recall()))
}

/// A fit with another number of clusters and another seed, without the missingness test, on the current rayon pool if
/// the rows are in memory.
///
/// # Errors
/// As [`Daimc::fit`].
pub fn fit(
    fit: &Daimc,
    source: &dyn Source,
    clusters: usize,
    seed: u64,
    each: impl FnMut(&Iteration) -> ControlFlow<()> + Send,
) -> Result<Fit> {
    let fit = fit.clone().with(clusters, seed);
    off_the_pool(source, || fit.fit_here(source, each))
}

/// The original values of some features (columns) of a view for some instances (rows), which must be in increasing
/// order: NaN for missing instances and missing cells.
///
/// # Errors
/// When the rows cannot be read.
pub fn values(source: &dyn Source, view: usize, instances: &[u32], features: &[usize]) -> Result<Matrix> {
    fn stored<T: Scalar>((columns, values): (&[u32], &[T]), feature: usize) -> f64 {
        columns.binary_search(&(feature as u32)).map_or(0.0, |at| values[at].to_f64())
    }
    off_the_pool(source, || {
        let scan = Scan::new(source, &Stop::default());
        let (mut buffer, width) = (Buffer::default(), source.features(view));
        let block = scan.pick(view, instances, &mut buffer)?;
        let value = |i: usize, feature: usize| match (block.index.row(i), block.rows) {
            (None, _) => f64::NAN,
            (Some(row), Rows::DenseF32(x)) => x[row * width + feature].into(),
            (Some(row), Rows::DenseF64(x)) => x[row * width + feature],
            (Some(row), Rows::SparseF32(csr)) => stored(csr.row(row), feature),
            (Some(row), Rows::SparseF64(csr)) => stored(csr.row(row), feature),
        };
        Ok(Matrix::from_fn(instances.len(), features.len(), |i, f| value(i, features[f])))
    })
}
