//! Arrays that lie on a card.

use std::sync::Arc;

use daimc::accelerator::refused;
use daimc::source::{Buffer, RowStore};
use daimc::{Error, Layout, Result, View};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::error::raise;

/// Dense rows on a card, of an array that another library holds.
#[pyclass(frozen, module = "daimc._daimc")]
pub struct CardRows {
    rows: Arc<dyn RowStore>,
    /// How many values of each row are NaN.
    missing: Vec<u32>,
    /// Rows that have values which are infinite.
    infinite: Vec<usize>,
    /// The number of the card.
    #[pyo3(get)]
    card: usize,
}

#[pymethods]
impl CardRows {
    /// Rows of `shape` that begin at an address, `stride` values from each to the next; `owner` keeps them there.
    #[new]
    fn new(
        py: Python<'_>,
        address: u64,
        shape: (usize, usize),
        stride: usize,
        double: bool,
        owner: Py<PyAny>,
    ) -> PyResult<Self> {
        let layout = if double { Layout::DenseF64 } else { Layout::DenseF32 };
        py.detach(|| found(address, shape, stride, layout, owner)).map_err(raise)
    }

    /// Which rows are not all NaN.
    fn present<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        let here: Vec<bool> = (0..self.missing.len()).map(|row| self.shows(row)).collect();
        here.into_pyarray(py)
    }
}

impl CardRows {
    /// The number of the card.
    pub fn card(&self) -> usize {
        self.card
    }

    fn shows(&self, row: usize) -> bool {
        (self.missing[row] as usize) < self.rows.shape().1
    }

    /// The rows as a view, in which those are missing that are all NaN or that a mask leaves out.
    pub fn view(&self, name: &str, mask: Option<&[bool]>) -> Result<View<'static>> {
        let view = View::stored(name, self.rows.clone())?;
        // A mask of another length is refused by the view.
        let left = |row: usize| mask.is_none_or(|mask| mask.get(row).copied().unwrap_or(true));
        let present: Vec<bool> = (0..self.missing.len()).map(|row| self.shows(row) && left(row)).collect();
        let cells = self.missing.iter().zip(&present).filter(|(_, here)| **here);
        let cells = cells.map(|(missing, _)| *missing as usize).sum();
        let view = if let Some(mask) = mask { view.mask(mask)? } else { view };
        if let Some(&row) = self.infinite.iter().find(|row| present[**row]) {
            return Err(self.refusal(name, row));
        }
        let view = if present.contains(&false) { view.mask(&present)? } else { view };
        Ok(view.holes(cells))
    }

    /// The error that names the first infinite value of a row. Arrays on a card have neither IDs nor names of features.
    fn refusal(&self, view: &str, row: usize) -> Error {
        let mut buffer = Buffer::default();
        if let Err(source) = self.rows.read(row..row + 1, &mut buffer) {
            return Error::Read { view: view.into(), first: row, last: row, source };
        }
        let wide = || buffer.f32.iter().map(|&x| f64::from(x)).chain(buffer.f64.iter().copied());
        let column = wide().position(f64::is_infinite).unwrap_or_default();
        let value = wide().nth(column).unwrap_or(f64::INFINITY);
        let (id, feature) = (row.to_string(), column.to_string());
        Error::NotFinite { view: view.into(), row, id, column, feature, value }
    }
}

/// A copy of bytes in the memory of a card.
#[pyfunction]
pub fn fetch(py: Python<'_>, address: u64, length: usize) -> PyResult<Bound<'_, PyArray1<u8>>> {
    Ok(py
        .detach(|| bytes(address, length))
        .map_err(|reason| raise(refused("cuda", reason)))?
        .into_pyarray(py))
}

#[cfg(feature = "cuda")]
fn found(
    address: u64,
    shape: (usize, usize),
    stride: usize,
    layout: Layout,
    owner: Py<PyAny>,
) -> Result<CardRows> {
    let rows = daimc_cuda::GpuRows::new(address, shape, stride, layout, owner);
    let rows = rows.map_err(|reason| refused("cuda", reason))?;
    let (card, missing) = (rows.gpu(), rows.missing()?);
    let infinite =
        rows.infinite()?.iter().enumerate().filter(|(_, count)| **count > 0).map(|(row, _)| row).collect();
    Ok(CardRows { rows: Arc::new(rows), missing, infinite, card })
}

#[cfg(feature = "cuda")]
fn bytes(address: u64, length: usize) -> Result<Vec<u8>, String> {
    daimc_cuda::fetch(address, length)
}

#[cfg(not(feature = "cuda"))]
fn found(_: u64, _: (usize, usize), _: usize, _: Layout, _: Py<PyAny>) -> Result<CardRows> {
    Err(refused("cuda", crate::device::WITHOUT))
}

#[cfg(not(feature = "cuda"))]
fn bytes(_: u64, _: usize) -> Result<Vec<u8>, String> {
    Err(crate::device::WITHOUT.into())
}
