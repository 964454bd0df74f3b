"""Arrays and sparse matrices as views. Arrays in single or double precision are not copied, whatever their memory layout,
and neither are CSR matrices.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from daimc._daimc import GpuRows
from daimc._gpu import gpu_rows, host_copy, is_on_gpu, shape_of

#: Rows that are selected from an array at once.
_BLOCK = 1024


@dataclass
class View:
    """One view, as the compiled module reads it."""

    name: str
    #: The matrix, whose rows are the rows of the view.
    matrix: Any
    shape: tuple[int, int]
    #: All values, of a sparse matrix the stored ones; the `GpuRows` of a GPU array that is not copied.
    values: Any
    #: Distance between rows and between columns, in values; `None` if rows are contiguous.
    strides: tuple[int, int] | None = None
    offsets: NDArray[np.int64] | None = None
    columns: NDArray[np.uint32] | None = None
    ids: list[str] | None = None
    features: list[str] | None = None
    present: NDArray[np.bool_] | None = None


def present_rows(view: View) -> NDArray[np.bool_]:
    """Which rows of a view are present: those that the mask includes and that are not all NaN."""
    matrix = view.matrix
    if isinstance(view.values, GpuRows):
        missing = ~view.values.present()
    elif sparse.issparse(matrix):
        stored = np.diff(matrix.indptr)
        missing = np.zeros(view.shape[0], dtype=bool)
        for row in np.flatnonzero(stored == view.shape[1]):
            missing[row] = np.isnan(matrix.data[matrix.indptr[row] : matrix.indptr[row + 1]]).all()
    else:
        missing = np.isnan(matrix[:, 0])
        candidates = np.flatnonzero(missing)
        for start in range(0, len(candidates), _BLOCK):  # selected rows are copied, so a block at a time
            rows = candidates[start : start + _BLOCK]
            missing[rows] = np.isnan(matrix[rows]).all(axis=1)
    present: NDArray[np.bool_] = ~missing
    return present if view.present is None else present & view.present


def from_matrix(X: Any, name: str, device: str | None = None) -> View:
    """A view of an array or a sparse matrix, which is copied only if necessary. A GPU array is used in place for a fit on
    `device`, and copied to host memory otherwise.
    """
    if sparse.issparse(X):
        return _sparse(X, name)
    if not is_on_gpu(X):
        return _dense(X, name)
    if device is None:
        return _dense(host_copy(X, name), name)
    shape = _matrix_shape(shape_of(X, name), name, type(X).__name__)
    return View(name, X, shape, gpu_rows(X, name, device))


def _dense(X: Any, name: str) -> View:
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.promote_types(X.dtype, np.float32)), np.nan)
    given = type(X).__name__
    try:
        X = np.asarray(X)
    except ValueError as error:  # the rows of a list are of different lengths
        raise ValueError(f"view '{name}': expected a matrix, found a {given} that is none: {error}") from None
    shape = _matrix_shape(X.shape, name, given)
    X = _numbers(X, name)
    size = X.itemsize
    if not X.flags.aligned or any(stride < 0 or stride % size for stride in X.strides):
        X = X.copy()
    if X.flags.c_contiguous:
        return View(name, X, shape, X.reshape(-1))
    row, column = (stride // size for stride in X.strides)
    # All memory between the first and the last value belongs to the array.
    reach = (shape[0] - 1) * row + (shape[1] - 1) * column + 1
    values = np.lib.stride_tricks.as_strided(X, (reach,), (size,), writeable=False)
    return View(name, X, shape, values, strides=(row, column))


def _matrix_shape(shape: tuple[int, ...], name: str, given: str) -> tuple[int, int]:
    """Checks that an array is a matrix with at least one row and one column, and returns its shape."""
    if not shape:
        raise ValueError(f"view '{name}': expected a matrix, found a {given}")
    if len(shape) != 2:
        hint = "; reshape(-1, 1) makes one column of it, reshape(1, -1) one row" if len(shape) == 1 else ""
        raise ValueError(f"view '{name}': expected a matrix, found an array with {len(shape)} dimension(s){hint}")
    if shape[0] == 0:
        raise ValueError(f"view '{name}' has no rows; leave the view out")
    if shape[1] == 0:
        raise ValueError(f"view '{name}' has no features")
    return int(shape[0]), int(shape[1])


def _sparse(X: Any, name: str) -> View:
    if X.ndim != 2:
        raise ValueError(f"view '{name}': expected a matrix, found a sparse array with {X.ndim} dimension(s)")
    if X.shape[0] == 0:
        raise ValueError(f"view '{name}' has no rows; leave the view out")
    given = X
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy() if X is given else X
        X.sum_duplicates()
    values = _numbers(X.data, name)
    if X.shape[1] >= 2**32:
        raise ValueError(f"view '{name}' has {X.shape[1]} features; at most 2**32 are supported")
    # No index is negative, so int32 and uint32 have the same bits.
    columns = X.indices.view(np.uint32) if X.indices.dtype == np.int32 else X.indices.astype(np.uint32)
    offsets = X.indptr.astype(np.int64, copy=False)
    return View(
        name,
        X,
        (int(X.shape[0]), int(X.shape[1])),
        _in_order(values),
        offsets=_in_order(offsets),
        columns=_in_order(columns),
    )


def _in_order(values: NDArray[Any]) -> NDArray[Any]:
    """Values as a contiguous and aligned array: buffers received over a network may be unaligned."""
    return np.require(values, requirements=["C", "A"])


def _numbers(X: NDArray[Any], name: str) -> NDArray[Any]:
    """X in single or double precision and native byte order."""
    kind = X.dtype.kind
    if X.dtype in (np.float32, np.float64) and X.dtype.isnative:
        return X
    if kind == "f":
        return X.astype(np.float32 if X.itemsize <= 4 else np.float64)
    if kind in "iub":
        return X.astype(np.float64)
    if kind == "O":
        return _objects(X, name)
    if kind == "c":
        raise ValueError(f"Complex data not supported: view '{name}' has dtype {X.dtype}")
    raise TypeError(f"view '{name}' has dtype {X.dtype}, which is not numeric")


def is_number(value: Any) -> bool:
    """Whether an object is a number or a missing value."""
    return _is_absent(value) or (isinstance(value, (Number, np.bool_)) and not isinstance(value, complex))


def _is_absent(value: Any) -> bool:
    return value is None or value is getattr(sys.modules.get("pandas"), "NA", None)


def _objects(X: NDArray[Any], name: str) -> NDArray[np.float64]:
    numbers = np.empty(X.shape)
    for at, value in np.ndenumerate(X):
        if _is_absent(value):
            numbers[at] = np.nan
        elif is_number(value):
            numbers[at] = float(value)
        else:
            where = f"row {at[0]}, column {at[1]}" if len(at) == 2 else f"stored value {at[0]}"
            raise TypeError(f"view '{name}', {where}: {value!r} is not a number")
    return numbers
