"""The report about a fit and its data."""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from daimc import __version__
from daimc._dask import is_dask
from daimc._data import Data
from daimc._settings import threads_of
from daimc._tables import is_series, text_of

if TYPE_CHECKING:
    from daimc._estimator import DAIMC

#: Tolerance for the difference between the loss of the fit and the loss of X, for rounding: relative to the loss and to Σ‖x‖².
_OF_LOSS, _OF_DATA = 1e-4, 1e-5


def page_of(model: DAIMC, X: Any, truth: Any, title: str | None, mask: Any) -> str:
    """Renders the report. Raises an error if X is not the data of the fit."""
    if X is None:
        raise TypeError("X is needed: pass the data of the fit, report(path, X); a model does not store them")
    if is_dask(X):
        import dask

        X, mask = dask.compute(X, mask)
    data = model._read(X, mask, reset=False)
    absent = set(model.view_names_) - {view.name for view in data.views}
    if absent:
        raise ValueError(f"X lacks the view '{min(absent)}': pass the data of the fit")
    instances, expected = int(np.count_nonzero(data.seen)), len(model._model.labels)
    if expected == 0:
        raise ValueError(
            "the model has no instances, which a report shows: it was saved without them, or they did not fit into the memory "
            "of the process that drove the fit"
        )
    if instances != expected:
        raise ValueError(f"X has {instances} instances, but the model was fitted to {expected}: pass the data of the fit")
    classes = None if truth is None else _classes(truth, data)
    provenance = {"version": __version__, "written by": f"daimc for Python {platform.python_version()}"}
    page, error, square = model._with_map().report(
        data.views, data.joined, classes, title, json.dumps(provenance), threads_of(model.n_jobs)
    )
    loss = model._model.loss
    if abs(error - loss) > _OF_LOSS * loss + _OF_DATA * square:
        raise ValueError(
            f"X differs from the data of the fit: its loss is {error:.6g}, that of the fit was {loss:.6g}; pass the "
            "data of the fit, with its mask, and rows in the same order"
        )
    return page


def _classes(truth: Any, data: Data) -> list[str | None]:
    """The classes of the instances present in any view, in the order of the library."""
    if is_series(truth) and hasattr(truth, "index") and data.names.texts is not None:
        by_id = {text_of("truth", row, name): value for row, (name, value) in enumerate(truth.items())}
        known = [by_id.get(text) for text in data.names.texts]
        if all(value is None for value in known):
            raise ValueError("truth has no ID in common with X: its index must contain the IDs of X")
    else:
        known = list(truth)
    if len(known) != len(data.seen):
        raise ValueError(f"truth has {len(known)} entries for {len(data.seen)} instances")
    texts = np.array([None if _is_unknown(value) else str(value) for value in known], dtype=object)
    return data.gather(texts).tolist()  # type: ignore[no-any-return]


def _is_unknown(value: Any) -> bool:
    # pandas.NA cannot be compared: `value != value` is NA, too.
    return value is None or type(value).__name__ == "NAType" or value != value
