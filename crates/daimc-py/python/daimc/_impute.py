"""Views whose missing rows are filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from daimc import _daimc
from daimc._input import Data, View, columns_of, is_mudata, is_views
from daimc._matrix import present_rows
from daimc._tables import is_pandas, is_polars


def complete(
    model: _daimc.Model, X: Any, data: Data, latent: NDArray[np.float64], slices: Any, id_column: str | None
) -> Any:
    """X with its missing rows filled in, for instances with these rows of V."""
    ids = data.ids()
    given = {view.name: view for view in data.views}
    whole = {name: _whole(model, name, given.get(name), ids, latent) for name in model.views}
    if not is_views(X):
        return _one_matrix(X, data, whole, slices)
    if is_mudata(X):
        X = X.mod
    if isinstance(X, Mapping):
        likes = {name: X.get(name) for name in model.views}
    else:
        likes = dict(zip(model.views, X))
    some = next(like for like in likes.values() if like is not None)
    index = data.label(ids, len(latent))
    made = {
        name: _like(some if likes[name] is None else likes[name], rows, model.features(name), index, id_column)
        for name, rows in whole.items()
    }
    return made if isinstance(X, Mapping) else list(made.values())


def _whole(
    model: _daimc.Model, name: str, view: View | None, ids: list[str] | None, latent: NDArray[np.float64]
) -> Any:
    """A view with a row for every instance."""
    if view is None:
        return model.reconstruct(name, latent)
    rows = np.arange(view.shape[0])
    if ids is not None:
        place = {text: row for row, text in enumerate(view.ids or [])}
        rows = np.array([place.get(text, -1) for text in ids])
    here = rows >= 0
    here[here] = present_rows(view)[rows[here]]
    made = model.reconstruct(name, latent[~here])
    if sparse.issparse(view.matrix):
        stacked = sparse.vstack([view.matrix[rows[here]], sparse.csr_matrix(made)], format="csr")
        order = np.empty(len(here), dtype=np.intp)
        order[here], order[~here] = np.arange(here.sum()), here.sum() + np.arange((~here).sum())
        return stacked[order]
    whole = np.empty((len(here), view.shape[1]), dtype=view.values.dtype)
    whole[here] = view.matrix[rows[here]]
    whole[~here] = made
    return whole


def _like(like: Any, rows: Any, features: list[str] | None, index: NDArray[Any], id_column: str | None) -> Any:
    """Rows in a table like another one."""
    if is_pandas(like):
        return type(like)(rows, index=index, columns=features)
    if is_polars(like):
        frame = type(like)(rows, schema=features)
        return frame if id_column is None else frame.insert_column(0, type(like[id_column])(id_column, index))
    return rows


def _one_matrix(X: Any, data: Data, whole: dict[str, Any], slices: Any) -> Any:
    """The views back in their columns of one matrix."""
    out: Any = sparse.lil_matrix(X) if sparse.issparse(X) else np.array(X, dtype=data.views[0].values.dtype)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    for name, columns in columns_of(slices, out.shape[1], names).items():
        out[:, columns] = whole[name]
    if is_pandas(X):
        return type(X)(out, index=X.index, columns=X.columns)
    return out.tocsr() if sparse.issparse(out) else out
