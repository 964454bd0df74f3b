//! Arrays that Python holds, as views that borrow them.

use daimc::{View, Views};
use numpy::{PyReadonlyArray1, PyReadonlyArrayDyn};
use pyo3::prelude::*;

use crate::card::CardRows;
use crate::error::raise;

/// One view, as the class `View` of the Python half describes it.
#[derive(FromPyObject)]
pub struct ViewInput<'py> {
    name: String,
    shape: (usize, usize),
    values: Numbers<'py>,
    /// From row to row and from column to column, in values; `None` where rows stand one after another.
    strides: Option<(usize, usize)>,
    /// Where rows of a sparse matrix begin and end.
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
    Card(Bound<'py, CardRows>),
}

/// Parts whose arrays are borrowed as slices, which may be read without Python's lock.
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
    Card(&'a CardRows),
}

impl<'a> Data<'a> {
    /// The arrays of `parts`, which are the same instances row by row or are joined by ID.
    pub fn borrow(parts: &'a [ViewInput<'_>], joined: bool) -> PyResult<Self> {
        let slices = |part: &'a ViewInput<'_>| -> PyResult<Slices<'a>> {
            // What does not fit after the conversion is refused by the library, with the row.
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
                    Numbers::Card(rows) => Values::Card(rows.get()),
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

    /// The views, checked; and the names of those that share no instance with another, where they are joined.
    pub fn views(&self) -> daimc::Result<(Views<'_>, Vec<String>)> {
        let views = self.parts.iter().map(Slices::view).collect::<daimc::Result<Vec<_>>>()?;
        if !self.joined {
            return Ok((Views::new(views)?, Vec::new()));
        }
        let (views, account) = Views::join(views)?;
        let several = views.len() > 1;
        let alone = account.views.into_iter().filter(|(_, shown, alone)| several && shown == alone);
        Ok((views, alone.map(|(name, ..)| name).collect()))
    }
}

impl Data<'_> {
    /// The names of the views that lie on cards, and the numbers of these.
    pub fn on_cards(&self) -> impl Iterator<Item = (&str, usize)> {
        let card =
            |part: &Slices<'_>| if let Values::Card(rows) = part.values { Some(rows.card()) } else { None };
        self.parts.iter().filter_map(move |part| Some((part.name, card(part)?)))
    }

    /// The views, of some of more instances.
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
            (Values::Card(rows), ..) => rows.view(self.name, self.present)?,
        };
        if let Some(present) = self.present.filter(|_| !matches!(self.values, Values::Card(_))) {
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

/// A matrix of the library from an array with two dimensions.
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
