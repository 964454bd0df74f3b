"""Imputation of missing rows and cells, in the form of the input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from daimc import _daimc
from daimc._data import Data
from daimc._input import columns_of, is_views
from daimc._matrix import View
from daimc._scverse import Slots, filled_annotated, filled_mudata, is_mudata
from daimc._tables import is_annotated, is_pandas, is_polars, split_ids


def complete(
    model: _daimc.Model,
    X: Any,
    data: Data,
    latent: NDArray[np.float64],
    slices: Any,
    id_column: str | None,
    slots: Slots,
    threads: int,
) -> tuple[Any, dict[str, dict[str, float]]]:
    """Imputes the missing rows and cells of X, given the rows of V, which are NaN for instances missing from every view.

    Also returns, for each view, the errors of held-out rows and of held-out cells.
    """
    given = {view.name: view for view in data.views}
    whole: dict[str, Any] = {}
    errors: dict[str, dict[str, float]] = {}
    for name in model.views:
        whole[name], errors[name] = _whole(model, name, given.get(name), data, latent, threads)
    return _in_the_form_of(X, model, data, whole, slices, id_column, slots), errors


def _in_the_form_of(
    X: Any, model: _daimc.Model, data: Data, whole: dict[str, Any], slices: Any, id_column: str | None, slots: Slots
) -> Any:
    if is_annotated(X) or is_mudata(X):
        features = {name: model.features(name) for name in whole}
        return (filled_annotated if is_annotated(X) else filled_mudata)(X, whole, features, data, slots)
    if not is_views(X):
        return _one_matrix(X, data, whole, slices, id_column)
    if isinstance(X, Mapping):
        likes = {name: X.get(name) for name in model.views}
    else:
        likes = dict(zip(model.views, X))
    some = next(like for like in likes.values() if like is not None)
    made = {
        name: _like(some if likes[name] is None else likes[name], rows, model.features(name), data, id_column)
        for name, rows in whole.items()
    }
    return made if isinstance(X, Mapping) else list(made.values())


def _whole(
    model: _daimc.Model, name: str, view: View | None, data: Data, latent: NDArray[np.float64], threads: int
) -> tuple[Any, dict[str, float]]:
    """A view with a row for every instance, and the errors of the imputed rows and cells."""
    errors = {"rows": np.nan, "cells": np.nan}
    rows = np.full(len(data.seen), -1) if view is None else data.rows(view)
    here = rows >= 0
    if view is not None and sparse.issparse(view.matrix):
        if here.all():
            return view.matrix[rows], errors
    elif view is not None and here.all():
        whole = np.array(view.matrix[rows], dtype=view.values.dtype)
        if not np.isnan(whole).any():
            return whole, errors
    made, *estimates = model.impute(data.views, data.joined, name, data.gather(latent), threads)
    errors = {what: np.nan if error is None else error for what, error in zip(errors, estimates)}
    made = data.spread(made, np.nan)
    if view is None:
        return made, errors
    if sparse.issparse(view.matrix):
        stacked = sparse.vstack([view.matrix[rows[here]], sparse.csr_matrix(made[~here])], format="csr")
        order = np.empty(len(here), dtype=np.intp)
        order[here], order[~here] = np.arange(here.sum()), here.sum() + np.arange((~here).sum())
        return stacked[order], errors
    # In the dtype of the view, so that present values are bit-identical to those of X.
    return made.astype(view.values.dtype), errors


def _like(like: Any, rows: Any, features: list[str] | None, data: Data, id_column: str | None) -> Any:
    """Rows as a table of the same kind as `like`."""
    if is_pandas(like):
        index = list(data.names.given) if data.names.index is None else data.names.index
        return type(like)(rows, index=index, columns=features)
    if is_polars(like):
        frame = type(like)(rows, schema=features)
        return frame if id_column is None else frame.insert_column(0, type(like[id_column])(id_column, data.names.given))
    return rows


def _one_matrix(X: Any, data: Data, whole: dict[str, Any], slices: Any, id_column: str | None) -> Any:
    """Writes the views back into their columns of one matrix."""
    given, X = X, split_ids(X, id_column)[0]
    out: Any = sparse.lil_matrix(X) if sparse.issparse(X) else np.array(X, dtype=data.views[0].values.dtype)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    for name, columns in columns_of(slices, out.shape[1], names).items():
        out[:, columns] = whole[name]
    if is_pandas(X) or is_polars(X):
        made = type(X)(out, index=X.index, columns=X.columns) if is_pandas(X) else type(X)(out, schema=X.columns)
        if id_column is not None:
            at = list(given.columns).index(id_column)
            (made.insert(at, id_column, given[id_column]) if is_pandas(X) else made.insert_column(at, given[id_column]))
        return made
    return out.tocsr() if sparse.issparse(out) else out
