"""Tables with named columns and IDs: pandas, polars and the modalities of a MuData. None of them is imported here."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Table:
    """A matrix with the names of its columns, and the IDs of its rows if it has any."""

    matrix: Any
    features: list[str]
    ids: Sequence[Hashable] | None


def is_pandas(X: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def is_polars(X: Any) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(X, polars.DataFrame)


def is_annotated(X: Any) -> bool:
    anndata = sys.modules.get("anndata")
    return anndata is not None and isinstance(X, anndata.AnnData)


def is_table(X: Any) -> bool:
    return is_pandas(X) or is_polars(X) or is_annotated(X)


def read_table(X: Any, name: str, id_column: str | None, known: list[str] | None) -> Table:
    """The table of a view; `known` are the columns that a model was fitted to, whatever their order here."""
    if is_annotated(X):
        if known is not None:
            X = X[:, _in_order([str(feature) for feature in X.var_names], name, known)]
        return Table(X.X, [str(feature) for feature in X.var_names], list(X.obs_names))
    if id_column is not None and id_column not in X.columns:
        raise ValueError(f"view '{name}' has no column '{id_column}', which id_column names")
    return (_pandas if is_pandas(X) else _polars)(X, name, id_column, known)


def _pandas(X: Any, name: str, id_column: str | None, known: list[str] | None) -> Table:
    ids = X.index if id_column is None else X[id_column]
    if id_column is not None:
        X = X.drop(columns=id_column)
    features = [str(column) for column in X.columns]
    if known is not None and features != known:
        X = X.iloc[:, _in_order(features, name, known)]
        features = known
    for feature, dtype in zip(features, X.dtypes):
        # Objects may be numbers all the same; which cell is not one is said later.
        if dtype.kind not in "fiub" and dtype != object:
            raise TypeError(f"view '{name}', column '{feature}': {dtype} are not numbers")
    if any(not isinstance(dtype, np.dtype) for dtype in X.dtypes):
        matrix = X.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        matrix = X.to_numpy()
    return Table(matrix, features, list(ids))


def _polars(X: Any, name: str, id_column: str | None, known: list[str] | None) -> Table:
    ids = None if id_column is None else X[id_column].to_list()
    if id_column is not None:
        X = X.drop(id_column)
    if known is not None:
        X = X.select([X.columns[i] for i in _in_order(X.columns, name, known)])
    for feature, dtype in X.schema.items():
        if not dtype.is_numeric() and str(dtype) != "Boolean":
            raise TypeError(f"view '{name}', column '{feature}': {dtype} are not numbers")
    return Table(X.to_numpy(), list(X.columns), ids)


def _in_order(features: list[str], name: str, known: list[str]) -> list[int]:
    """Where the columns of the model stand in a table."""
    place = {feature: number for number, feature in enumerate(features)}
    absent = [feature for feature in known if feature not in place]
    if absent:
        raise ValueError(f"view '{name}' lacks column '{absent[0]}' of the model ({len(absent)} in all)")
    if len(features) > len(known):
        strange = next(feature for feature in features if feature not in set(known))
        raise ValueError(f"view '{name}' has a column '{strange}' that the model does not have; leave it out")
    return [place[feature] for feature in known]


def text_of(view: str, row: int, value: Hashable) -> str:
    """An ID as text, by which views are joined: 1, 1.0 and '1' are one ID."""
    if isinstance(value, str):
        return value
    if value is None or value != value or value is getattr(sys.modules.get("pandas"), "NA", None):
        raise ValueError(f"view '{view}', row {row} has no ID: it is {value!r}")
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
