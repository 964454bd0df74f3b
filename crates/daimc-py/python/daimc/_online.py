"""Online learning: `partial_fit` of a fitted estimator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daimc import _daimc
from daimc._data import Data, array_of
from daimc._input import Known, data_of, is_views, read
from daimc._mask import refuse_mask_as_y
from daimc._scverse import Slots
from daimc._settings import threads_of
from daimc._tables import is_range

if TYPE_CHECKING:
    from daimc._estimator import DAIMC


@dataclass(frozen=True)
class Update:
    """The effect of a batch on a model.

    Attributes
    ----------
    drift : dict of float
        For each view, how far the rows that the model expects of the clusters moved, relative to their length.
    cluster_drift : dict of ndarray of shape (n_clusters,)
        The same for each cluster.
    unexplained : ndarray of int
        The positions in the batch of instances that no cluster explains: they are farther from the old model's
        reconstruction than all but one in two hundred of the instances that it had learnt from.
    emerging : list of ndarray of int
        Groups of unexplained instances that are close to each other, the largest first: they might be new clusters.
    died : ndarray of int
        Clusters with hardly any weight left in the model's memory.
    """

    drift: dict[str, float]
    cluster_drift: dict[str, NDArray[np.float64]]
    unexplained: NDArray[np.int64]
    emerging: list[NDArray[np.int64]]
    died: NDArray[np.int64]


def update(estimator: DAIMC, X: Any, y: Any, mask: Any, memory_factor: Any, add_views: Any) -> None:
    """Updates a fitted estimator with X; its attributes with a row for each instance then refer to X."""
    factor, names = _factor_of(memory_factor), _names_of(add_views)
    data = _read(estimator, X, mask, names)
    refuse_mask_as_y(y, data.views)
    # The default index of pandas repeats in every batch, so it identifies no instance.
    named = data.names.texts is not None and not (data.names.index is not None and is_range(data.names.index))
    threads = threads_of(estimator.n_jobs)
    found = _daimc.update(estimator._model, data.views, data.joined, named, factor, names, threads)
    model, contributions, drift, unexplained, groups, died = found
    estimator._adopt(model, data)
    estimator.contributions_ = data.spread(contributions, np.nan)
    estimator.ids_ = array_of(data.names.given)
    if names:
        estimator.n_features_in_ = sum(len(basis) for basis in estimator.basis_)
    positions = np.flatnonzero(data.spread(np.ones(len(model.labels), dtype=bool), False))
    order = data.spread(np.arange(len(model.labels)), -1)[positions]
    position = np.empty_like(positions)
    position[order] = positions
    estimator.update_ = Update(
        {view: total for view, total, _ in drift},
        {view: clusters for view, _, clusters in drift},
        np.sort(position[unexplained]),
        [np.sort(position[group]) for group in groups],
        died,
    )


def _read(estimator: DAIMC, X: Any, mask: Any, names: list[str]) -> Data:
    """Reads the batch, in which the views with these names are new."""
    if not names:
        return data_of(estimator, X, mask, reset=False)
    if not is_views(X) or isinstance(X, (list, tuple)):
        raise TypeError("add_views needs named views: pass X as a dictionary of views, or as a MuData")
    features = {name: estimator._model.features(name) for name in estimator.view_names_}
    known = Known(estimator.view_names_ + names, {**features, **dict.fromkeys(names)})
    data = read(X, mask, estimator.id_column, known, Slots(estimator.layer, estimator.use_rep))
    return data.without_empty_views().resolve_unseen(estimator.handle_unseen)


def _factor_of(memory_factor: Any) -> float:
    if not isinstance(memory_factor, Real) or isinstance(memory_factor, bool):
        raise TypeError(f"memory_factor = {memory_factor!r}: must be a number above 0 and at most 1")
    return float(memory_factor)


def _names_of(add_views: Any) -> list[str]:
    if isinstance(add_views, str):
        return [add_views]
    names = list(add_views) if isinstance(add_views, Iterable) else [add_views]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"add_views = {add_views!r}: must be the names of views")
    return names
