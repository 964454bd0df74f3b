//! Arrays in GPU memory.

use std::sync::Arc;

use daimc::accelerator::refused;
use daimc::source::{Buffer, RowStore};
use daimc::{Error, Layout, Result, View};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::error::raise;

/// The rows of a dense GPU array that another library owns.
#[pyclass(frozen, module = "daimc._daimc")]
pub struct GpuRows {
    rows: Arc<dyn RowStore>,
    /// The number of NaN values of each row.
    missing: Vec<u32>,
    /// The rows with infinite values.
    infinite: Vec<usize>,
    /// The number of the GPU.
    #[pyo3(get)]
    gpu: usize,
}

#[pymethods]
impl GpuRows {
    /// Rows of `shape` from a device address, `stride` values apart; `owner` keeps the memory alive.
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
        py.detach(|| open_rows(address, shape, stride, layout, owner)).map_err(raise)
    }

    /// Returns for each row whether it has a value that is not NaN.
    fn present<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        let present: Vec<bool> = (0..self.missing.len()).map(|row| self.has_values(row)).collect();
        present.into_pyarray(py)
    }
}

impl GpuRows {
    /// The number of the GPU.
    pub fn gpu(&self) -> usize {
        self.gpu
    }

    fn has_values(&self, row: usize) -> bool {
        (self.missing[row] as usize) < self.rows.shape().1
    }

    /// The rows as a view. Rows that are all NaN, or that the mask excludes, are missing.
    pub fn view(&self, name: &str, mask: Option<&[bool]>) -> Result<View<'static>> {
        let view = View::stored(name, self.rows.clone())?;
        // `View::mask` below rejects a mask of the wrong length.
        let kept = |row: usize| mask.is_none_or(|mask| mask.get(row).copied().unwrap_or(true));
        let present: Vec<bool> =
            (0..self.missing.len()).map(|row| self.has_values(row) && kept(row)).collect();
        let cells = self.missing.iter().zip(&present).filter(|(_, present)| **present);
        let cells = cells.map(|(missing, _)| *missing as usize).sum();
        let view = if let Some(mask) = mask { view.mask(mask)? } else { view };
        if let Some(&row) = self.infinite.iter().find(|row| present[**row]) {
            return Err(self.not_finite(name, row));
        }
        let view = if present.contains(&false) { view.mask(&present)? } else { view };
        Ok(view.holes(cells))
    }

    /// The error that names the first infinite value of a row. GPU arrays have neither IDs nor feature names.
    fn not_finite(&self, view: &str, row: usize) -> Error {
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

/// Copies bytes from GPU memory.
#[pyfunction]
pub fn fetch(py: Python<'_>, address: u64, length: usize) -> PyResult<Bound<'_, PyArray1<u8>>> {
    Ok(py
        .detach(|| copy_bytes(address, length))
        .map_err(|reason| raise(refused("cuda", reason)))?
        .into_pyarray(py))
}

#[cfg(feature = "cuda")]
fn open_rows(
    address: u64,
    shape: (usize, usize),
    stride: usize,
    layout: Layout,
    owner: Py<PyAny>,
) -> Result<GpuRows> {
    let rows = daimc_cuda::GpuRows::new(address, shape, stride, layout, owner);
    let rows = rows.map_err(|reason| refused("cuda", reason))?;
    let (gpu, missing) = (rows.gpu(), rows.missing()?);
    let infinite =
        rows.infinite()?.iter().enumerate().filter(|(_, count)| **count > 0).map(|(row, _)| row).collect();
    Ok(GpuRows { rows: Arc::new(rows), missing, infinite, gpu })
}

#[cfg(feature = "cuda")]
fn copy_bytes(address: u64, length: usize) -> Result<Vec<u8>, String> {
    daimc_cuda::fetch(address, length)
}

#[cfg(not(feature = "cuda"))]
fn open_rows(_: u64, _: (usize, usize), _: usize, _: Layout, _: Py<PyAny>) -> Result<GpuRows> {
    Err(refused("cuda", crate::device::WITHOUT_CUDA))
}

#[cfg(not(feature = "cuda"))]
fn copy_bytes(_: u64, _: usize) -> Result<Vec<u8>, String> {
    Err(crate::device::WITHOUT_CUDA.into())
}
