"""Tables with named columns and IDs: pandas and polars. Neither is imported here.
Tables of other libraries are rejected, since they would silently lose their IDs as arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daimc._matrix import is_number


@dataclass
class Table:
    """A matrix with the names of its columns, and the IDs of its rows if it has any."""

    matrix: Any
    features: list[str]
    ids: Sequence[Hashable] | None
    #: The pandas index, if the IDs come from pandas.
    index: Any = None


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


def is_series(X: Any) -> bool:
    """Whether X is one column of a table."""
    return any(
        (module := sys.modules.get(name)) is not None and isinstance(X, module.Series) for name in ("pandas", "polars")
    )


def is_range(index: Any) -> bool:
    """Whether a pandas index is the default one."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


#: Methods that convert a table of another library to a pandas or polars DataFrame.
_CONVERSIONS = ("to_pandas", "toPandas", "compute", "collect")


def is_foreign(X: Any) -> bool:
    """Whether X is a table of an unsupported library: Dask, Modin, cuDF, Spark, pyarrow, xarray, or a lazy frame."""
    if is_table(X) or is_series(X) or isinstance(X, (np.ndarray, Mapping, Sequence)):
        return False
    # On the class, since attribute access on a lazy table may be expensive.
    return any(hasattr(type(X), name) for name in ("__dataframe__", "columns", "to_pandas", "toPandas", "collect_schema"))


def refuse_foreign(X: Any, what: str) -> None:
    """Rejects tables that would be read by position although they have IDs, with advice on how to convert them."""
    if is_series(X):
        raise TypeError(
            f"{what} is a Series: pass its to_frame() if it is a column, its to_frame().T if it is the row of one instance"
        )
    if not is_foreign(X):
        return
    kind = f"{type(X).__module__.split('.')[0]}.{type(X).__name__}"
    if hasattr(type(X), "collect_schema"):
        raise TypeError(f"{what} is a {kind}, which is lazy: pass its collect(), with id_column= if it has IDs")
    conversion = next((name for name in _CONVERSIONS if hasattr(type(X), name)), None)
    advice = "a pandas or polars DataFrame" if conversion is None else f"its {conversion}()"
    lazy = ", which reads all of it into memory" if conversion in ("toPandas", "compute", "collect") else ""
    raise TypeError(f"{what} is a {kind}, whose IDs would be lost: pass {advice}{lazy}")


def split_ids(X: Any, id_column: str | None, what: str = "X") -> tuple[Any, Sequence[Hashable] | None, Any]:
    """Splits a table into its features, its IDs if it has any, and its pandas index."""
    if not (is_pandas(X) or is_polars(X)):
        return X, None, None
    if id_column is None:
        return X, list(X.index) if is_pandas(X) else None, X.index if is_pandas(X) else None
    if is_pandas(X) and X.index.name == id_column and id_column not in X.columns:
        return X, list(X.index), X.index
    if id_column not in X.columns:
        raise ValueError(f"{what} has no column '{id_column}', which id_column names")
    if list(X.columns).count(id_column) > 1:
        raise ValueError(f"{what} has several columns '{id_column}', which id_column names")
    if is_polars(X):
        return X.drop(id_column), X[id_column].to_list(), None
    index = sys.modules["pandas"].Index(X[id_column])
    return X.drop(columns=id_column), list(index), index


def read_table(X: Any, name: str, id_column: str | None, known: list[str] | None) -> Table:
    """Reads the table of a view; `known` are the columns of the model, to whose order those of X are brought."""
    return (read_pandas if is_pandas(X) else _polars)(X, name, id_column, known)


def read_pandas(X: Any, name: str, id_column: str | None, known: list[str] | None) -> Table:
    X, ids, index = split_ids(X, id_column, f"view '{name}'")
    features = [str(column) for column in X.columns]
    if known is not None and features != known:
        X = X.iloc[:, in_order(features, name, known)]
        features = known
    check_numbers(X, f"view '{name}'", id_column)
    if any(not isinstance(dtype, np.dtype) for dtype in X.dtypes):
        matrix = X.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        matrix = X.to_numpy()
    return Table(matrix, features, ids, index)


def _polars(X: Any, name: str, id_column: str | None, known: list[str] | None) -> Table:
    X, ids, _ = split_ids(X, id_column, f"view '{name}'")
    if known is not None:
        X = X.select([X.columns[i] for i in in_order(X.columns, name, known)])
    check_numbers(X, f"view '{name}'", id_column)
    return Table(X.to_numpy(), list(X.columns), ids)


def check_numbers(X: Any, what: str, id_column: str | None) -> None:
    """Rejects a table with a column that is not numeric; the error names the column."""
    if is_polars(X):
        for feature, dtype in X.schema.items():
            if not dtype.is_numeric() and str(dtype) != "Boolean":
                raise TypeError(_not_numbers(what, feature, dtype, id_column))
    elif is_pandas(X):
        for number, (feature, dtype) in enumerate(zip(X.columns, X.dtypes)):
            if dtype == object:
                _check_objects(X.iloc[:, number], what, feature, id_column)
            elif dtype.kind not in "fiub":
                raise TypeError(_not_numbers(what, feature, dtype, id_column))


def _not_numbers(what: str, feature: Any, dtype: Any, id_column: str | None) -> str:
    return (
        f"{what}, column '{feature}' has dtype {dtype}, which is not numeric: remove the column, or encode it as "
        f"numbers, such as a column of 0 and 1 for each category{_of_ids(feature, id_column)}"
    )


def _check_objects(column: Any, what: str, feature: Any, id_column: str | None) -> None:
    """Rejects a column of objects with one that is not a number."""
    for row, value in enumerate(column):
        if not is_number(value):
            raise TypeError(
                f"{what}, row {row} (instance '{column.index[row]}'), column '{feature}': {value!r} is not a number; "
                f"pandas.to_numeric converts text to numbers{_of_ids(feature, id_column)}"
            )


def _of_ids(feature: Any, id_column: str | None) -> str:
    return f"; if it contains the IDs of instances, use id_column={feature!r}" if id_column is None else ""


def in_order(features: list[str], name: str, known: list[str], kind: str = "column", more: bool = False) -> list[int]:
    """The positions of the model's columns in a table, which may have `more` columns."""
    if features == known:
        return list(range(len(known)))
    position = {feature: number for number, feature in enumerate(features)}
    if len(position) < len(features):
        wanted = set(known if more else features)
        for number, feature in enumerate(features):
            if position[feature] != number and feature in wanted:
                raise ValueError(
                    f"view '{name}' has several {kind}s '{feature}', and its {kind}s are not in the order of the model, "
                    "so they cannot be matched by name"
                )
    absent = [feature for feature in known if feature not in position]
    if absent:
        raise ValueError(f"view '{name}' lacks {kind} '{absent[0]}' of the model ({len(absent)} in all)")
    if len(features) > len(known) and not more:
        strange = next(feature for feature in features if feature not in set(known))
        raise ValueError(f"view '{name}' has a {kind} '{strange}' that the model does not have; remove it")
    return [position[feature] for feature in known]


def text_of(view: str, row: int, value: Hashable) -> str:
    """An ID as a string, by which views are joined: 1, 1.0 and '1' are the same ID."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):  # of a MultiIndex
        return str(tuple(text_of(view, row, part) for part in value))
    # pandas.NA cannot be compared: `value != value` is NA, too.
    if value is None or value is getattr(sys.modules.get("pandas"), "NA", None) or value != value:
        raise ValueError(f"view '{view}', row {row} has no ID: it is {value!r}")
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
