//! Views that borrow the arrays of Python.

use daimc::{View, Views};
use numpy::{PyReadonlyArray1, PyReadonlyArrayDyn};
use pyo3::prelude::*;

use crate::error::raise;
use crate::gpu::GpuRows;

/// One view: the fields of the Python class `View`.
#[derive(FromPyObject)]
pub struct ViewInput<'py> {
    name: String,
    shape: (usize, usize),
    values: Numbers<'py>,
    /// Distance between rows and between columns, in values; `None` if rows are contiguous.
    strides: Option<(usize, usize)>,
    /// The row pointers of a sparse matrix.
    offsets: Option<PyReadonlyArray1<'py, i64>>,
    columns: Option<PyReadonlyArray1<'py, u32>>,
    ids: Option<Vec<String>>,
    features: Option<Vec<String>>,
    present: Option<PyReadonlyArray1<'py, bool>>,
}

#[derive(FromPyObject)]
enum Numbers<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
    Gpu(Bound<'py, GpuRows>),
}

/// Views whose arrays are borrowed as slices, so that they can be read without the GIL.
pub struct Data<'a> {
    parts: Vec<Slices<'a>>,
    joined: bool,
}

struct Slices<'a> {
    name: &'a str,
    shape: (usize, usize),
    values: Values<'a>,
    strides: Option<(usize, usize)>,
    sparse: Option<(Vec<usize>, &'a [u32])>,
    ids: Option<&'a [String]>,
    features: Option<&'a [String]>,
    present: Option<&'a [bool]>,
}

#[derive(Clone, Copy)]
enum Values<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    Gpu(&'a GpuRows),
}

impl<'a> Data<'a> {
    /// Borrows the arrays of `parts`, whose rows are the same instances or are joined by ID.
    pub fn borrow(parts: &'a [ViewInput<'_>], joined: bool) -> PyResult<Self> {
        let slices = |part: &'a ViewInput<'_>| -> PyResult<Slices<'a>> {
            // The library rejects an offset that is out of range, and names the row.
            let offset = |&offset: &i64| usize::try_from(offset).unwrap_or(usize::MAX);
            let sparse = match (&part.offsets, &part.columns) {
                (Some(offsets), Some(columns)) => {
                    Some((offsets.as_slice()?.iter().map(offset).collect(), columns.as_slice()?))
                }
                _ => None,
            };
            Ok(Slices {
                name: &part.name,
                shape: part.shape,
                values: match &part.values {
                    Numbers::F32(values) => Values::F32(values.as_slice()?),
                    Numbers::F64(values) => Values::F64(values.as_slice()?),
                    Numbers::Gpu(rows) => Values::Gpu(rows.get()),
                },
                strides: part.strides,
                sparse,
                ids: part.ids.as_deref(),
                features: part.features.as_deref(),
                present: part.present.as_ref().map(PyReadonlyArray1::as_slice).transpose()?,
            })
        };
        Ok(Self { parts: parts.iter().map(slices).collect::<PyResult<_>>()?, joined })
    }

    /// The checked views and, if they are joined by ID, the names of those that share no instance with another.
    pub fn views(&self) -> daimc::Result<(Views<'_>, Vec<String>)> {
        let views = self.parts.iter().map(Slices::view).collect::<daimc::Result<Vec<_>>>()?;
        if !self.joined {
            return Ok((Views::new(views)?, Vec::new()));
        }
        let (views, joined) = Views::join(views)?;
        let several = views.len() > 1;
        let alone = joined.views.into_iter().filter(|(_, present, alone)| several && present == alone);
        Ok((views, alone.map(|(name, ..)| name).collect()))
    }
}

impl Data<'_> {
    /// The views in GPU memory: name and GPU number.
    pub fn gpu_views(&self) -> impl Iterator<Item = (&str, usize)> {
        let gpu =
            |part: &Slices<'_>| if let Values::Gpu(rows) = part.values { Some(rows.gpu()) } else { None };
        self.parts.iter().filter_map(move |part| Some((part.name, gpu(part)?)))
    }

    /// The views of a shard: some of the instances of a larger data set.
    pub fn part(&self) -> daimc::Result<Views<'_>> {
        Views::part(self.parts.iter().map(Slices::view).collect::<daimc::Result<Vec<_>>>()?)
    }
}

impl Slices<'_> {
    fn view(&self) -> daimc::Result<View<'_>> {
        let (rows, features) = self.shape;
        let mut view = match (self.values, &self.sparse, self.strides) {
            (Values::F32(x), Some((offsets, columns)), _) => {
                View::sparse(self.name, features, &offsets[..], *columns, x)?
            }
            (Values::F64(x), Some((offsets, columns)), _) => {
                View::sparse(self.name, features, &offsets[..], *columns, x)?
            }
            (Values::F32(x), None, Some((row, column))) => {
                View::strided(self.name, [rows, features], [row, column], x)?
            }
            (Values::F64(x), None, Some((row, column))) => {
                View::strided(self.name, [rows, features], [row, column], x)?
            }
            (Values::F32(x), None, None) => View::dense(self.name, features, x)?,
            (Values::F64(x), None, None) => View::dense(self.name, features, x)?,
            (Values::Gpu(rows), ..) => rows.view(self.name, self.present)?,
        };
        if let Some(present) = self.present.filter(|_| !matches!(self.values, Values::Gpu(_))) {
            view = view.mask(present)?;
        }
        if let Some(ids) = self.ids {
            view = view.ids(ids.to_vec())?;
        }
        if let Some(features) = self.features {
            view = view.feature_names(features.to_vec())?;
        }
        Ok(view.missing_where_nan())
    }
}

/// Converts a two-dimensional array to a matrix of the library.
pub fn matrix(array: &PyReadonlyArrayDyn<'_, f64>) -> PyResult<daimc::Matrix> {
    let array = array.as_array();
    let (rows, columns) = match array.shape() {
        [rows, columns] => (*rows, *columns),
        other => {
            let reason = format!("expected a matrix, found an array with {} dimensions", other.len());
            return Err(pyo3::exceptions::PyValueError::new_err(reason));
        }
    };
    daimc::Matrix::new(rows, columns, array.iter().copied().collect()).map_err(raise)
}
