"""Views whose missing rows and cells are filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from daimc import _daimc
from daimc._data import Data
from daimc._input import columns_of, is_mudata, is_views
from daimc._matrix import View
from daimc._tables import is_pandas, is_polars, split_ids


def complete(
    model: _daimc.Model, X: Any, data: Data, latent: NDArray[np.float64], slices: Any, id_column: str | None
) -> Any:
    """X with its missing rows and cells filled in, for instances with these rows of V, which are NaN where no view shows them."""
    given = {view.name: view for view in data.views}
    whole = {name: _whole(model, name, given.get(name), data, latent) for name in model.views}
    if not is_views(X):
        return _one_matrix(X, data, whole, slices, id_column)
    if is_mudata(X):
        X = X.mod
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


def _whole(model: _daimc.Model, name: str, view: View | None, data: Data, latent: NDArray[np.float64]) -> Any:
    """A view with a row for every instance."""
    if view is None:
        return _made(model, name, data.seen, latent)
    rows = data.rows(view)
    here = rows >= 0
    made = _made(model, name, data.seen[~here], latent[~here])
    if sparse.issparse(view.matrix):
        stacked = sparse.vstack([view.matrix[rows[here]], sparse.csr_matrix(made)], format="csr")
        order = np.empty(len(here), dtype=np.intp)
        order[here], order[~here] = np.arange(here.sum()), here.sum() + np.arange((~here).sum())
        return stacked[order]
    whole = np.empty((len(here), view.shape[1]), dtype=view.values.dtype)
    whole[here] = view.matrix[rows[here]]
    whole[~here] = made
    lacks = np.isnan(whole) & here[:, np.newaxis]
    if lacks.any():
        filled = np.full(whole.shape, np.nan)
        filled[data.seen] = model.impute(data.views, data.joined, name, latent[data.seen])
        whole[lacks] = filled[lacks]
    return whole


def _made(model: _daimc.Model, name: str, seen: NDArray[np.bool_], latent: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a view would show of instances, where any view shows them."""
    shown = model.reconstruct(name, latent[seen])
    made = np.full((len(seen), shown.shape[1]), np.nan)
    made[seen] = shown
    return made


def _like(like: Any, rows: Any, features: list[str] | None, data: Data, id_column: str | None) -> Any:
    """Rows in a table like another one."""
    if is_pandas(like):
        index = list(data.names.given) if data.names.index is None else data.names.index
        return type(like)(rows, index=index, columns=features)
    if is_polars(like):
        frame = type(like)(rows, schema=features)
        return frame if id_column is None else frame.insert_column(0, type(like[id_column])(id_column, data.names.given))
    return rows


def _one_matrix(X: Any, data: Data, whole: dict[str, Any], slices: Any, id_column: str | None) -> Any:
    """The views back in their columns of one matrix."""
    given, X = X, split_ids(X, id_column)[0]
    out: Any = sparse.lil_matrix(X) if sparse.issparse(X) else np.array(X, dtype=data.views[0].values.dtype)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    for name, columns in columns_of(slices, out.shape[1], names).items():
        out[:, columns] = whole[name]
    if is_pandas(X) or is_polars(X):
        made = type(X)(out, index=X.index, columns=X.columns) if is_pandas(X) else type(X)(out, schema=X.columns)
        if id_column is not None:
            place = list(given.columns).index(id_column)
            (made.insert(place, id_column, given[id_column]) if is_pandas(X) else made.insert_column(place, given[id_column]))
        return made
    return out.tocsr() if sparse.issparse(out) else out
