"""Conversion of the input to views: matrices with a name, a mask, and IDs if instances are joined by ID."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, ItemsView, Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from daimc._daimc import GpuRows
from daimc._data import Data, Names, alike, join_names, own_names, row_numbers
from daimc._gpu import is_on_gpu
from daimc._mask import apply_mask
from daimc._matrix import View, from_matrix
from daimc._scverse import Slots, is_mudata, read_annotated
from daimc._tables import (
    check_numbers,
    is_annotated,
    is_foreign,
    is_series,
    is_table,
    read_table,
    refuse_foreign,
    split_ids,
    text_of,
)

if TYPE_CHECKING:
    from daimc._estimator import DAIMC


@dataclass
class Known:
    """The views of a fitted model and their features, which new data have to match."""

    names: list[str]
    features: dict[str, list[str] | None]


def is_views(X: Any) -> bool:
    """Whether X is several views rather than one matrix."""
    if sparse.issparse(X):
        return False  # a DOK matrix is also a dictionary
    if isinstance(X, Mapping) or is_mudata(X):
        return True
    if isinstance(X, (Iterator, ValuesView)):
        raise TypeError(f"X is a {type(X).__name__}, not a list of views: pass list(X)")
    if isinstance(X, ItemsView):
        raise TypeError(f"X is a {type(X).__name__}, not a dictionary of views: pass dict(X)")
    if isinstance(X, Set):
        raise TypeError(f"X is a {type(X).__name__}, which has no order: pass a list or a dictionary of views")
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        return any(_is_view(part) for part in X)
    if isinstance(X, (str, PathLike)) or (isinstance(X, (list, tuple)) and any(isinstance(x, (str, PathLike)) for x in X)):
        raise TypeError("X contains file names: pass the data, such as the result of pandas.read_csv or numpy.load")
    if not isinstance(X, (list, tuple)):
        return False
    if not X:
        raise ValueError("X has no views: at least one is needed")
    # Vectors of equal length are the rows of one matrix.
    lengths = {len(part) if _dimensions(part) == 1 else 0 for part in X}
    return len(lengths) > 1 or any(_is_view(part) for part in X)


def _is_view(part: Any) -> bool:
    return part is None or is_table(part) or is_series(part) or is_foreign(part) or _dimensions(part) > 1


def refuse_one(X: Any, known: Sequence[str] = ("",)) -> None:
    """Rejects objects that could be mistaken for a matrix, and one matrix if the model has several views (`known`)."""
    refuse_foreign(X, "X")
    if is_on_gpu(X):
        raise TypeError("X is one array on a GPU: pass a list of views, such as [X] or [X[:, :10], X[:, 10:]]")
    if len(known) > 1:
        raise TypeError(
            f"X is one matrix, but the model has {len(known)} views ({', '.join(known)}): pass a list or a dictionary of "
            "views; one instance is one row of each, as x.reshape(1, -1)"
        )
    if is_annotated(X):
        raise TypeError(
            "X is an AnnData, which is one view: pass several, such as {'rna': adata, 'protein': other}, or a MuData"
        )


def data_of(estimator: DAIMC, X: Any, mask: Any, reset: bool, device: str | None = None) -> Data:
    """Reads the input of an estimator: for a fit (`reset`), or with the views and features of the fitted model.

    GPU arrays are not copied for a fit on `device`.
    """
    slots = Slots(estimator.layer, estimator.use_rep)
    if is_views(X) or is_annotated(X):
        if reset:
            data = read(X, mask, estimator.id_column, slots=slots, device=device)
            estimator.n_features_in_ = sum(view.shape[1] for view in data.views)
            if hasattr(estimator, "feature_names_in_"):
                del estimator.feature_names_in_
        else:
            features = {name: estimator._model.features(name) for name in estimator.view_names_}
            known = Known(estimator.view_names_, features)
            data = read(X, mask, estimator.id_column, known, slots).without_empty_views()
        return data.resolve_unseen(estimator.handle_unseen)
    refuse_one(X, estimator.view_names_ if not reset and estimator.view_slices is None else ("",))
    slots.check({"X": X})
    X, ids, index = split_ids(X, estimator.id_column)
    check_numbers(X, "X", estimator.id_column)
    accepted = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
    X = validate_data(estimator, X, reset=reset, **accepted)
    names = None if ids is None else own_names(ids, index)
    data = from_slices(X, estimator.view_slices, getattr(estimator, "feature_names_in_", None), names, mask)
    if not reset:
        data = data.without_empty_views()
    return data.resolve_unseen(estimator.handle_unseen)


def read(
    X: Any,
    mask: Any = None,
    id_column: str | None = None,
    known: Known | None = None,
    slots: Slots = Slots(),  # noqa: B008
    device: str | None = None,
) -> Data:
    """Reads views from a list, a dictionary, a MuData or an AnnData, which is one view."""
    alone = is_annotated(X)
    parts = _by_name([X] if alone else X.mod if is_mudata(X) else X, known)
    slots.check(parts)
    views: list[View] = []
    given: list[Sequence[Hashable]] = []
    indexes: list[Any] = []
    for name, part in parts.items():
        if isinstance(part, (str, PathLike)):
            part = _mapped(part, name)
        refuse_foreign(part, f"view '{name}'")
        if isinstance(part, Iterator):
            raise TypeError(
                f"view '{name}' is a {type(part).__name__}, which can be read only once: convert it to an array, such "
                "as numpy.array(list(rows))"
            )
        if not is_table(part):
            views.append(from_matrix(part, name, device))
            continue
        features = known.features[name] if known else None
        if is_annotated(part):
            table = read_annotated(part, name, slots, features)
        else:
            table = read_table(part, name, id_column, features)
        view = from_matrix(table.matrix, name)
        view.features = table.features
        if table.ids is not None:
            view.ids = [text_of(name, row, value) for row, value in enumerate(table.ids)]
            given.append(table.ids)
            indexes.append(table.index)
        views.append(view)
    if alone:  # nothing is joined, so IDs may contain duplicates
        names = own_names(given[0], indexes[0])
        views[0].ids = names.texts
        apply_mask(mask, views, False)
        return Data(views, names)
    joined = any(view.ids is not None for view in views)
    _check_alignment(views, joined)
    names = join_names(views, given, indexes) if joined else row_numbers(views[0].shape[0])
    apply_mask(mask, views, joined)
    return Data(views, names, joined)


def _mapped(path: str | PathLike[str], name: str) -> Any:
    """Maps the array of a file into memory; the system reads its pages on demand and may evict them."""
    if not str(path).endswith(".npy"):
        raise TypeError(
            f"view '{name}' is the file {path}, which is no .npy: pass its data, such as the result of pandas.read_csv"
        )
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"view '{name}': {path} cannot be read as an array: {error}") from None


def warn_of_ids(data: Data, alone: list[str], stacklevel: int) -> None:
    """Warns of views that share no instance with another, and of IDs that differ only in spelling."""
    if not data.by_id:
        return
    like = alike(data.views)
    if like is not None:
        warnings.warn(like, UserWarning, stacklevel=stacklevel)
    for name in alone:
        warnings.warn(
            f"view '{name}' shares no ID with another view; do all views use the same kind of IDs?",
            UserWarning,
            stacklevel=stacklevel,
        )


def from_slices(X: Any, slices: Any, feature_names: Any, names_of_rows: Names | None, mask: Any = None) -> Data:
    """Views as columns of one matrix."""
    rows = row_numbers(X.shape[0]) if names_of_rows is None else names_of_rows
    names = None if feature_names is None else [str(name) for name in feature_names]
    views = []
    for name, columns in columns_of(slices, X.shape[1], names).items():
        view = from_matrix(X[:, columns], name)
        view.ids = rows.texts
        if names is not None:
            view.features = [names[i] for i in np.arange(X.shape[1])[columns]]
        views.append(view)
    apply_mask(mask, views, False)
    return Data(views, rows)


def columns_of(slices: Any, features: int, names: list[str] | None) -> dict[str, Any]:
    """The columns of each view, as an index of a matrix."""
    if slices is None:
        return {"view0": slice(None)}
    if isinstance(slices, Mapping):
        parts = {_name(name): part for name, part in slices.items()}
    elif isinstance(slices, Sequence) and not isinstance(slices, str):
        parts = {f"view{number}": part for number, part in enumerate(slices)}
    else:
        raise TypeError(f"view_slices = {slices!r}: must be a list or a dictionary of slices or lists of columns")
    if not parts:
        raise ValueError("view_slices is empty: it needs the columns of at least one view")
    columns = {name: _columns(name, part, features, names) for name, part in parts.items()}
    for name, part in columns.items():
        if len(np.arange(features)[part]) == 0:
            raise ValueError(f"view_slices: view '{name}' has no columns among {features} feature(s)")
    return columns


def _columns(name: str, part: Any, features: int, names: list[str] | None) -> Any:
    """The columns of a view, as an index of an array."""
    if isinstance(part, slice):
        return part
    columns = np.asarray(part)
    if columns.ndim != 1:
        raise TypeError(f"view_slices: view '{name}' is {part!r}: must be a slice or a list of columns")
    if columns.dtype.kind in "UO":
        if names is None:
            raise ValueError(f"view_slices: view '{name}' names columns, but the columns of X have no names")
        absent = [column for column in columns if column not in names]
        if absent:
            raise ValueError(f"view_slices: view '{name}': X has no column '{absent[0]}'")
        return np.array([names.index(column) for column in columns])
    if columns.dtype.kind not in "iu" and columns.size:
        raise TypeError(f"view_slices: view '{name}': columns are numbers or names, not {columns.dtype}")
    outside = columns[(columns < -features) | (columns >= features)]
    if outside.size:
        raise ValueError(f"view_slices: view '{name}': X has no column {outside[0]}; it has {features}")
    return columns


def _by_name(X: Any, known: Known | None) -> dict[str, Any]:
    """The parts of X by the names of their views, without absent views (`None`), which only new data may have."""
    if isinstance(X, Mapping):
        parts = {_name(name): part for name, part in X.items()}
    else:
        parts = _by_number(X, known)
    if not parts:
        raise ValueError("X has no views: at least one is needed")
    if known is None:
        absent = [name for name, part in parts.items() if part is None]
        if absent:
            raise ValueError(f"view '{absent[0]}' is None: only new data may lack a view; omit it from the fit")
        return parts
    for name in parts:
        if name not in known.names:
            raise ValueError(f"view '{name}' is not part of the model, which has: {', '.join(known.names)}")
    parts = {name: parts[name] for name in known.names if parts.get(name) is not None}
    if not parts:
        raise ValueError("every view is None: at least one is needed to assign instances to clusters")
    return parts


def _by_number(X: Any, known: Known | None) -> dict[str, Any]:
    if known is None:
        return {f"view{number}": part for number, part in enumerate(X)}
    if len(X) != len(known.names):
        raise ValueError(
            f"X has {len(X)} view(s), but the model has {len(known.names)} ({', '.join(known.names)}): "
            "pass None for a view that is absent"
        )
    return dict(zip(known.names, X))


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"view name {name!r}: must be a string")
    return name


def _dimensions(X: Any) -> int:
    if hasattr(X, "ndim"):
        return int(X.ndim)
    if isinstance(X, (list, tuple)):
        return 1 + (_dimensions(X[0]) if X else 0)
    return 0


def _check_alignment(views: list[View], joined: bool) -> None:
    first = views[0]
    on_gpu = next((view.name for view in views if isinstance(view.values, GpuRows)), None)
    for view in views:
        if on_gpu is not None and view.offsets is not None:
            raise ValueError(
                f"view '{view.name}' is sparse, which cannot be combined with view '{on_gpu}' on a GPU: pass all views "
                "in host memory"
            )
        if joined and view.ids is None:
            other = next(view.name for view in views if view.ids is not None)
            hint = "" if view.features is None else "; id_column= names the column that has them"
            raise ValueError(
                f"view '{view.name}' has no IDs, but view '{other}' does: pass every view as a table with IDs{hint}"
            )
        if not joined and view.shape[0] != first.shape[0]:
            hint = "; id_column= names a column of IDs to join by" if view.features is not None else ""
            raise ValueError(
                f"view '{view.name}' has {view.shape[0]} rows and view '{first.name}' has {first.shape[0]}: rows are "
                f"the same instances in every view, and a missing one is a row of NaN{hint}"
            )
