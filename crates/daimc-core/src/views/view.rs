//! One view: a matrix with a name.

use std::borrow::Cow;
use std::sync::Arc;

use super::not_finite::NotFinite;
use super::strided::Strided;
use crate::index::index;
use crate::kernel::Scalar;
use crate::source::{Block, Buffer, Csr, Holes, Index, MISSING, RowStore, Rows};
use crate::{Error, Layout, Result, ViewSchema};

/// One view of the instances: a dense or sparse matrix of `f32` or `f64`, one row per instance.
///
/// The values are owned or borrowed; they are copied only if cells are missing. NaN in a dense view is a missing cell,
/// which the loss does not count; a row of NaN only is a missing instance.
#[derive(Clone, Debug)]
pub struct View<'a> {
    name: String,
    rows: usize,
    features: usize,
    data: Data<'a>,
    feature_names: Option<Arc<Vec<String>>>,
    ids: Option<Vec<String>>,
    present: Option<Vec<bool>>,
    /// The number of missing cells inside present rows, if the store reports it.
    holes: Option<usize>,
}

#[derive(Clone, Debug)]
enum Data<'a> {
    DenseF32(Cow<'a, [f32]>),
    DenseF64(Cow<'a, [f64]>),
    SparseF32(Sparse<'a, f32>),
    SparseF64(Sparse<'a, f64>),
    StridedF32(Strided<'a, f32>),
    StridedF64(Strided<'a, f64>),
    Stored(Stored),
}

/// Rows that are not in memory.
#[derive(Clone)]
pub(super) struct Stored(pub Arc<dyn RowStore>);

impl std::fmt::Debug for Stored {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Stored").field(&self.0.shape()).field(&self.0.layout()).finish()
    }
}

#[derive(Clone, Debug)]
struct Sparse<'a, T: Scalar> {
    offsets: Cow<'a, [usize]>,
    columns: Cow<'a, [u32]>,
    values: Cow<'a, [T]>,
}

impl<T: Scalar> Sparse<'_, T> {
    fn csr(&self) -> Csr<'_, T> {
        Csr { offsets: &self.offsets, columns: &self.columns, values: &self.values }
    }
}

/// Values that a [`View`] can be built from: slices and vectors of `f32` or `f64`.
pub trait Values<'a> {
    #[doc(hidden)]
    fn dense(self) -> Dense<'a>;
}

/// Values of either type.
#[doc(hidden)]
pub enum Dense<'a> {
    F32(Cow<'a, [f32]>),
    F64(Cow<'a, [f64]>),
}

macro_rules! values {
    ($($from:ty => $variant:ident),*) => {$(
        impl<'a> Values<'a> for $from {
            fn dense(self) -> Dense<'a> {
                Dense::$variant(self.into())
            }
        }
    )*};
}
values!(Vec<f32> => F32, &'a [f32] => F32, &'a Vec<f32> => F32, Cow<'a, [f32]> => F32,
        Vec<f64> => F64, &'a [f64] => F64, &'a Vec<f64> => F64, Cow<'a, [f64]> => F64);

impl<'a> View<'a> {
    /// A dense view: `values` row by row, with `features` in each row.
    ///
    /// # Errors
    /// When the number of values is not a multiple of `features`.
    pub fn dense(name: impl Into<String>, features: usize, values: impl Values<'a>) -> Result<Self> {
        let name = name.into();
        let (length, data) = match values.dense() {
            Dense::F32(values) => (values.len(), Data::DenseF32(values)),
            Dense::F64(values) => (values.len(), Data::DenseF64(values)),
        };
        if features == 0 {
            return Err(Error::NoFeatures { view: name });
        }
        if length % features != 0 {
            let what = "values in the last row";
            return Err(Error::Shape { view: name, what, expected: features, found: length % features });
        }
        Self::new(name, length / features, features, data)
    }

    /// A dense view with strides: the value of row i and column j is at `i · strides[0] + j · strides[1]`. A matrix in
    /// column order, or some columns of a larger one, is thus read in place; a few rows at a time are gathered into a
    /// buffer.
    ///
    /// # Errors
    /// When there are no features or the strides reach beyond the values.
    ///
    /// ```
    /// // Two rows, stored column by column.
    /// let view = daimc_core::View::strided("a", [2, 3], [1, 2], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0])?;
    /// assert_eq!((view.rows(), view.features()), (2, 3));
    /// # Ok::<(), daimc_core::Error>(())
    /// ```
    pub fn strided(
        name: impl Into<String>,
        [rows, features]: [usize; 2],
        strides: [usize; 2],
        values: impl Values<'a>,
    ) -> Result<Self> {
        let name = name.into();
        if features == 0 {
            return Err(Error::NoFeatures { view: name });
        }
        let fit = |length| Strided::<f64>::check(&name, [rows, features], strides, length);
        let data = match values.dense() {
            Dense::F32(values) => {
                fit(values.len())?;
                Data::StridedF32(Strided { values, strides, features })
            }
            Dense::F64(values) => {
                fit(values.len())?;
                Data::StridedF64(Strided { values, strides, features })
            }
        };
        Self::new(name, rows, features, data)
    }

    /// A dense view of the rows of an iterator, such as the records of a collection or the result of a query, each with
    /// the ID of its instance. [`Views::join`](super::Views::join) combines views with different instances. NaN marks a
    /// missing cell.
    ///
    /// ```
    /// use daimc_core::{View, Views};
    ///
    /// struct Visit { patient: u32, pulse: f32, weight: Option<f32> }
    ///
    /// let visits = [Visit { patient: 17, pulse: 61.0, weight: None }, Visit { patient: 4, pulse: 70.0, weight: Some(80.0) }];
    /// let row = |visit: &Visit| (visit.patient, [visit.pulse, visit.weight.unwrap_or(f32::NAN)]);
    /// let visits = View::from_rows("visits", 2, visits.iter().map(row))?;
    /// let genes = View::from_rows("genes", 3, [(4, vec![0.1, 2.0, 0.3]), (9, vec![0.2, 1.0, 0.0])])?;
    /// let (views, account) = Views::join(vec![visits, genes])?;
    /// assert_eq!((views.instances(), account.in_every_view), (3, 1));
    /// # Ok::<(), daimc_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are no features or a row has another number of values.
    pub fn from_rows<I: ToString, R: AsRef<[T]>, T: Scalar>(
        name: impl Into<String>,
        features: usize,
        rows: impl IntoIterator<Item = (I, R)>,
    ) -> Result<Self>
    where
        Vec<T>: Values<'a>,
    {
        let (name, mut ids, mut values) = (name.into(), Vec::new(), Vec::new());
        for (id, row) in rows {
            let (id, found) = (id.to_string(), row.as_ref().len());
            if found != features {
                return Err(Error::RowLength { view: name, row: ids.len(), id, expected: features, found });
            }
            ids.push(id);
            values.extend_from_slice(row.as_ref());
        }
        Self::dense(name, features, values)?.ids(ids)
    }

    /// As [`View::from_rows`], for sparse rows: the columns and values that are not zero, columns in increasing order.
    ///
    /// ```
    /// let words = [("a", vec![(17, 2.0), (4031, 1.0)]), ("b", vec![])];
    /// let view = daimc_core::View::from_sparse_rows("words", 5000, words)?;
    /// assert_eq!((view.rows(), view.features()), (2, 5000));
    /// # Ok::<(), daimc_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When columns are not in increasing order and below `features`, or there are no features.
    pub fn from_sparse_rows<I: ToString, R: IntoIterator<Item = (u32, T)>, T: Scalar>(
        name: impl Into<String>,
        features: usize,
        rows: impl IntoIterator<Item = (I, R)>,
    ) -> Result<Self>
    where
        Vec<T>: Values<'a>,
    {
        let (mut ids, mut offsets, mut columns, mut values) = (Vec::new(), vec![0], Vec::new(), Vec::new());
        for (id, row) in rows {
            ids.push(id.to_string());
            for (column, value) in row {
                columns.push(column);
                values.push(value);
            }
            offsets.push(columns.len());
        }
        Self::sparse(name, features, offsets, columns, values)?.ids(ids)
    }

    /// A sparse view in compressed rows (CSR): the entries of row i are at `offsets[i]..offsets[i + 1]` of `columns`
    /// and `values`, columns in increasing order.
    ///
    /// # Errors
    /// When the arrays are not a valid CSR matrix.
    pub fn sparse(
        name: impl Into<String>,
        features: usize,
        offsets: impl Into<Cow<'a, [usize]>>,
        columns: impl Into<Cow<'a, [u32]>>,
        values: impl Values<'a>,
    ) -> Result<Self> {
        let (name, offsets, columns) = (name.into(), offsets.into(), columns.into());
        let values = values.dense();
        let stored = match &values {
            Dense::F32(values) => values.len(),
            Dense::F64(values) => values.len(),
        };
        let shape = |what, expected, found| Err(Error::Shape { view: name.clone(), what, expected, found });
        if columns.len() != stored {
            return shape("column numbers (one per value)", stored, columns.len());
        }
        if offsets.is_empty() {
            return shape("offsets (one more than rows)", 1, 0);
        }
        if offsets[0] != 0 {
            return shape("first offset", 0, offsets[0]);
        }
        if offsets.last() != Some(&stored) {
            return shape("last offset (the number of values)", stored, *offsets.last().unwrap_or(&0));
        }
        for (row, bounds) in offsets.windows(2).enumerate() {
            let broken = |reason| Err(Error::Sparse { view: name.clone(), row, reason });
            if bounds[0] > bounds[1] || bounds[1] > stored {
                return broken("its offsets are not in order");
            }
            let columns = &columns[bounds[0]..bounds[1]];
            if columns.windows(2).any(|pair| pair[0] >= pair[1]) {
                return broken("its columns are not in increasing order, each at most once");
            }
            if columns.last().is_some_and(|&last| last as usize >= features) {
                return broken("a column number is not below the number of features");
            }
        }
        let rows = offsets.len() - 1;
        let data = match values {
            Dense::F32(values) => Data::SparseF32(Sparse { offsets, columns, values }),
            Dense::F64(values) => Data::SparseF64(Sparse { offsets, columns, values }),
        };
        Self::new(name, rows, features, data)
    }

    /// A view whose rows are not in memory. They are read when needed, on a thread of their own.
    ///
    /// # Errors
    /// When there are no features.
    pub fn stored(name: impl Into<String>, rows: Arc<dyn RowStore>) -> Result<Self> {
        let (name, (count, features)) = (name.into(), rows.shape());
        if features == 0 {
            return Err(Error::NoFeatures { view: name });
        }
        Self::new(name, count, features, Data::Stored(Stored(rows)))
    }

    fn new(name: String, rows: usize, features: usize, data: Data<'a>) -> Result<Self> {
        let limit = MISSING as usize - 1;
        if rows > limit {
            return Err(Error::TooManyRows { view: name, rows, limit });
        }
        Ok(Self { name, rows, features, data, feature_names: None, ids: None, present: None, holes: None })
    }

    /// Sets which rows are present. The values of the others are never read.
    ///
    /// # Errors
    /// When there is not one entry per row.
    pub fn mask(mut self, present: &[bool]) -> Result<Self> {
        self.fits("entries of the mask", self.rows, present.len())?;
        self.present = Some(present.to_vec());
        Ok(self)
    }

    /// Sets the number of missing cells (NaN) in the present rows of a [stored](View::stored) dense view, none of which
    /// lacks all cells.
    #[must_use]
    pub fn holes(mut self, cells: usize) -> Self {
        self.holes = Some(cells);
        self
    }

    /// Marks rows of NaN only as missing (in addition to [`View::mask`]), so that [`Views::join`](super::Views::join)
    /// drops instances that are present in no view.
    #[must_use]
    pub fn missing_where_nan(mut self) -> Self {
        fn all_nan<T: Scalar>(row: &[T]) -> bool {
            !row.is_empty() && row.iter().all(|value| value.to_f64().is_nan())
        }
        let (rows, d) = (0..self.rows, self.features);
        let gone: Vec<bool> = match &self.data {
            Data::DenseF32(values) => values.chunks(d).map(all_nan).collect(),
            Data::DenseF64(values) => values.chunks(d).map(all_nan).collect(),
            Data::SparseF32(of) => rows.map(|i| of.csr().row_is(i, d, all_nan)).collect(),
            Data::SparseF64(of) => rows.map(|i| of.csr().row_is(i, d, all_nan)).collect(),
            Data::StridedF32(of) => rows.map(|i| of.row(i).all(f32::is_nan)).collect(),
            Data::StridedF64(of) => rows.map(|i| of.row(i).all(f64::is_nan)).collect(),
            // A store reports its missing rows itself.
            Data::Stored(_) => return self,
        };
        if gone.contains(&true) {
            let present = self.present.get_or_insert_with(|| vec![true; gone.len()]);
            for (present, gone) in present.iter_mut().zip(gone) {
                *present &= !gone;
            }
        }
        self
    }

    /// Sets the IDs of the rows, for [`Views::join`](super::Views::join) and for the results.
    ///
    /// # Errors
    /// When there is not one ID per row.
    pub fn ids(mut self, ids: Vec<String>) -> Result<Self> {
        self.fits("IDs", self.rows, ids.len())?;
        self.ids = Some(ids);
        Ok(self)
    }

    /// Sets the names of the columns.
    ///
    /// # Errors
    /// When there is not one name per column.
    pub fn feature_names(mut self, names: Vec<String>) -> Result<Self> {
        self.fits("feature names", self.features, names.len())?;
        self.feature_names = Some(Arc::new(names));
        Ok(self)
    }

    fn fits(&self, what: &'static str, expected: usize, found: usize) -> Result<()> {
        if expected == found {
            return Ok(());
        }
        Err(Error::Shape { view: self.name.clone(), what, expected, found })
    }

    /// The view's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of rows, including missing ones.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of features.
    #[must_use]
    pub fn features(&self) -> usize {
        self.features
    }

    /// The names of the features, if they have any.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        self.feature_names.as_ref().map(|names| names.as_slice())
    }

    /// The name of feature `column`, or its number if it has none.
    #[must_use]
    pub fn feature_name(&self, column: usize) -> String {
        let name = self.feature_names.as_ref().and_then(|names| names.get(column));
        name.cloned().unwrap_or_else(|| column.to_string())
    }

    /// The same view with borrowed values.
    pub(super) fn borrowed(&self) -> View<'_> {
        fn sparse<'b, T: Scalar>(of: &'b Sparse<'_, T>) -> Sparse<'b, T> {
            let Sparse { offsets, columns, values } = of;
            Sparse {
                offsets: (&**offsets).into(),
                columns: (&**columns).into(),
                values: Cow::Borrowed(values),
            }
        }
        let data = match &self.data {
            Data::DenseF32(values) => Data::DenseF32(Cow::Borrowed(values)),
            Data::DenseF64(values) => Data::DenseF64(Cow::Borrowed(values)),
            Data::SparseF32(of) => Data::SparseF32(sparse(of)),
            Data::SparseF64(of) => Data::SparseF64(sparse(of)),
            Data::StridedF32(of) => Data::StridedF32(of.borrowed()),
            Data::StridedF64(of) => Data::StridedF64(of.borrowed()),
            Data::Stored(of) => Data::Stored(of.clone()),
        };
        let Self { name, rows, features, feature_names, ids, present, holes, .. } = self;
        View {
            name: name.clone(),
            rows: *rows,
            features: *features,
            data,
            feature_names: feature_names.clone(),
            ids: ids.clone(),
            present: present.clone(),
            holes: *holes,
        }
    }

    pub(super) fn id_names(&self) -> Option<&[String]> {
        self.ids.as_deref()
    }

    pub(super) fn presence(&self) -> Option<&[bool]> {
        self.present.as_deref()
    }

    pub(super) fn is_row_present(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|present| present[row])
    }

    /// The schema of the view, with all rows present.
    pub(super) fn schema(&self) -> ViewSchema {
        let layout = match &self.data {
            Data::Stored(rows) => rows.0.layout(),
            Data::DenseF32(_) | Data::StridedF32(_) => Layout::DenseF32,
            Data::DenseF64(_) | Data::StridedF64(_) => Layout::DenseF64,
            Data::SparseF32(_) => Layout::SparseF32,
            Data::SparseF64(_) => Layout::SparseF64,
        };
        let mut schema = ViewSchema::new(self.name.clone(), self.features, layout);
        match &self.data {
            Data::SparseF32(of) => schema = schema.stored(of.values.len()),
            Data::SparseF64(of) => schema = schema.stored(of.values.len()),
            Data::Stored(rows) => {
                if let Some(values) = rows.0.stored() {
                    schema = schema.stored(values);
                }
            }
            _ => {}
        }
        if let Some(cells) = self.holes.filter(|_| matches!(self.data, Data::Stored(_))) {
            schema = schema.holes(cells);
        }
        match &self.feature_names {
            Some(names) => schema.feature_names(names.clone()),
            None => schema,
        }
    }

    /// The values in place, unless rows have to be gathered.
    pub(super) fn matrix(&self) -> Option<Rows<'_>> {
        match &self.data {
            Data::DenseF32(values) => Some(Rows::DenseF32(values)),
            Data::DenseF64(values) => Some(Rows::DenseF64(values)),
            Data::SparseF32(sparse) => Some(Rows::SparseF32(sparse.csr())),
            Data::SparseF64(sparse) => Some(Rows::SparseF64(sparse.csr())),
            Data::StridedF32(_) | Data::StridedF64(_) | Data::Stored(_) => None,
        }
    }

    /// The rows, if they are not in memory.
    pub(super) fn store(&self) -> Option<&dyn RowStore> {
        if let Data::Stored(rows) = &self.data { Some(&*rows.0) } else { None }
    }

    /// The rows that the index of the buffer names.
    pub(super) fn pick<'b>(&'b self, buffer: &'b mut Buffer) -> Block<'b> {
        match &self.data {
            Data::StridedF32(strided) => strided.gather(&mut buffer.index, &mut buffer.f32),
            Data::StridedF64(strided) => strided.gather(&mut buffer.index, &mut buffer.f64),
            _ => {}
        }
        let rows = match &self.data {
            Data::StridedF32(_) => Rows::DenseF32(&buffer.f32),
            Data::StridedF64(_) => Rows::DenseF64(&buffer.f64),
            _ => self.matrix().expect("only strided values are gathered"),
        };
        Block { rows, index: Index::Rows(&buffer.index), holes: Holes::default() }
    }

    /// Searches `rows` (pairs of instance and row) for NaN and infinite values.
    pub(super) fn not_finite(&self, rows: impl Iterator<Item = (usize, usize)>) -> NotFinite {
        let mut found = NotFinite::default();
        let d = self.features;
        match &self.data {
            Data::DenseF32(x) => rows.for_each(|at| found.dense(at, &x[at.1 * d..][..d])),
            Data::DenseF64(x) => rows.for_each(|at| found.dense(at, &x[at.1 * d..][..d])),
            Data::SparseF32(of) => rows.for_each(|at| found.sparse(at, of.csr())),
            Data::SparseF64(of) => rows.for_each(|at| found.sparse(at, of.csr())),
            Data::StridedF32(of) => of.for_each(rows, |at, values| found.dense(at, values)),
            Data::StridedF64(of) => of.for_each(rows, |at, values| found.dense(at, values)),
            // Stored rows are checked when they are first read.
            Data::Stored(_) => {}
        }
        found
    }

    pub(super) fn row_number(row: usize) -> u32 {
        index(row)
    }
}
