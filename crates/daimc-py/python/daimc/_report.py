"""The page about a fit and its data."""

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

#: How far the loss of the fit and that of the same data may be apart, which is rounding: as a share of the loss and of the data.
_OF_LOSS, _OF_DATA = 1e-4, 1e-5


def page_of(model: DAIMC, X: Any, truth: Any, title: str | None, mask: Any) -> str:
    """The page, if X is what the model was fitted to."""
    if X is None:
        raise TypeError("X is needed: give the data of the fit, report(path, X), as a model does not keep them")
    if is_dask(X):
        import dask

        X, mask = dask.compute(X, mask)
    data = model._read(X, mask, reset=False)
    absent = set(model.view_names_) - {view.name for view in data.views}
    if absent:
        raise ValueError(f"X does not show the view '{min(absent)}': give the data of the fit")
    instances, expected = int(np.count_nonzero(data.seen)), len(model._model.labels)
    if expected == 0:
        raise ValueError(
            "the model has no instances, which a report shows: it was saved without them, or they did not fit into the memory "
            "of the process that drove the fit"
        )
    if instances != expected:
        raise ValueError(f"X has {instances} instances, but the model was fitted to {expected}: give the data of the fit")
    classes = None if truth is None else _classes(truth, data)
    provenance = {"version": __version__, "written by": f"daimc for Python {platform.python_version()}"}
    page, error, square = model._model.report(
        data.views, data.joined, classes, title, json.dumps(provenance), threads_of(model.n_jobs)
    )
    loss = model._model.loss
    if abs(error - loss) > _OF_LOSS * loss + _OF_DATA * square:
        raise ValueError(
            f"X is not what the model was fitted to: its loss is {error:.6g}, that of the fit was {loss:.6g}; give the "
            "data of the fit, with its mask, and rows in the same order"
        )
    return page


def _classes(truth: Any, data: Data) -> list[str | None]:
    """The classes of the instances that are seen, in the order of the library."""
    if is_series(truth) and hasattr(truth, "index") and data.names.texts is not None:
        by_id = {text_of("truth", row, name): value for row, (name, value) in enumerate(truth.items())}
        known = [by_id.get(text) for text in data.names.texts]
        if all(value is None for value in known):
            raise ValueError("truth has no ID in common with X: give it with the IDs of X as its index")
    else:
        known = list(truth)
    if len(known) != len(data.seen):
        raise ValueError(f"truth has {len(known)} entries for {len(data.seen)} instances")
    texts = np.array([None if _is_unknown(value) else str(value) for value in known], dtype=object)
    return data.gather(texts).tolist()  # type: ignore[no-any-return]


def _is_unknown(value: Any) -> bool:
    # What pandas calls NA is neither equal nor unequal to itself.
    return value is None or type(value).__name__ == "NAType" or value != value
