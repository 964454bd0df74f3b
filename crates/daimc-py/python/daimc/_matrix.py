"""Arrays and sparse matrices as views. Nothing is copied unless it has to be: arrays of single or double precision are
read where they lie, whatever their order in memory, and so are CSR matrices.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from daimc._card import card_rows, host_copy, is_on_card, shape_of
from daimc._daimc import CardRows

#: Rows that are picked from an array at once.
_BLOCK = 1024


@dataclass
class View:
    """One view, as the compiled half reads it."""

    name: str
    #: The matrix that was given, rows of which are the view's rows.
    matrix: Any
    shape: tuple[int, int]
    #: Every value, or every stored one; the `CardRows` of an array that stays on a graphics card.
    values: Any
    #: From row to row and from column to column, in values; `None` where rows stand one after another.
    strides: tuple[int, int] | None = None
    offsets: NDArray[np.int64] | None = None
    columns: NDArray[np.uint32] | None = None
    ids: list[str] | None = None
    features: list[str] | None = None
    present: NDArray[np.bool_] | None = None


def present_rows(view: View) -> NDArray[np.bool_]:
    """Which rows of a view are there: those of the mask that are not all NaN."""
    matrix = view.matrix
    if isinstance(view.values, CardRows):
        gone = ~view.values.present()
    elif sparse.issparse(matrix):
        stored = np.diff(matrix.indptr)
        gone = np.zeros(view.shape[0], dtype=bool)
        for row in np.flatnonzero(stored == view.shape[1]):
            gone[row] = np.isnan(matrix.data[matrix.indptr[row] : matrix.indptr[row + 1]]).all()
    else:
        gone = np.isnan(matrix[:, 0])
        candidates = np.flatnonzero(gone)
        for start in range(0, len(candidates), _BLOCK):  # picked rows are copied, so few at a time
            rows = candidates[start : start + _BLOCK]
            gone[rows] = np.isnan(matrix[rows]).all(axis=1)
    here: NDArray[np.bool_] = ~gone
    return here if view.present is None else here & view.present


def from_matrix(X: Any, name: str, device: str | None = None) -> View:
    """A view of an array or a sparse matrix, which is not copied if it need not be. An array on a graphics card stays there for a
    fit on `device`, and is else copied.
    """
    if sparse.issparse(X):
        return _sparse(X, name)
    if not is_on_card(X):
        return _dense(X, name)
    if device is None:
        return _dense(host_copy(X, name), name)
    shape = _matrix_shape(shape_of(X, name), name, type(X).__name__)
    return View(name, X, shape, card_rows(X, name, device))


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
    # Everything between the first value and the last belongs to the same array.
    reach = (shape[0] - 1) * row + (shape[1] - 1) * column + 1
    values = np.lib.stride_tricks.as_strided(X, (reach,), (size,), writeable=False)
    return View(name, X, shape, values, strides=(row, column))


def _matrix_shape(shape: tuple[int, ...], name: str, given: str) -> tuple[int, int]:
    """The shape of a matrix that has values."""
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
    # The same bits where they are 32, as no index is below zero.
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
    """Values one after another, where a processor can read them: those that came over a network may lie anywhere."""
    return np.require(values, requirements=["C", "A"])


def _numbers(X: NDArray[Any], name: str) -> NDArray[Any]:
    """X in single or double precision, in the order of bytes of this machine."""
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
    raise TypeError(f"view '{name}' has dtype {X.dtype}, which are not numbers")


def is_number(value: Any) -> bool:
    """Whether an object is a number, or stands for one that is missing."""
    return _is_absent(value) or (isinstance(value, (Number, np.bool_)) and not isinstance(value, complex))


def _is_absent(value: Any) -> bool:
    return value is None or value is getattr(sys.modules.get("pandas"), "NA", None)


def _objects(X: NDArray[Any], name: str) -> NDArray[np.float64]:
    numbers = np.empty(X.shape)
    for place, value in np.ndenumerate(X):
        if _is_absent(value):
            numbers[place] = np.nan
        elif is_number(value):
            numbers[place] = float(value)
        else:
            where = f"row {place[0]}, column {place[1]}" if len(place) == 2 else f"stored value {place[0]}"
            raise TypeError(f"view '{name}', {where}: {value!r} is not a number")
    return numbers
