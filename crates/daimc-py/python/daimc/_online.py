"""What `partial_fit` does: a fitted estimator learns from a batch of new instances."""

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
    """How far a model moved when it took in a batch.

    Attributes
    ----------
    drift : dict of float
        For each view how far what the model expects of the clusters has moved, as a share of its length.
    cluster_drift : dict of ndarray of shape (n_clusters,)
        The same for each cluster.
    unexplained : ndarray of int
        The instances of the batch, by their position, that no cluster explains: they are farther from what the old model
        makes of them than all but one in two hundred of those that it had learnt from.
    emerging : list of ndarray of int
        Groups of such instances that lie near each other, the largest first: they might be new clusters.
    died : ndarray of int
        Clusters of which hardly an instance is remembered.
    """

    drift: dict[str, float]
    cluster_drift: dict[str, NDArray[np.float64]]
    unexplained: NDArray[np.int64]
    emerging: list[NDArray[np.int64]]
    died: NDArray[np.int64]


def update(estimator: DAIMC, X: Any, y: Any, mask: Any, memory_factor: Any, add_views: Any) -> None:
    """Lets a fitted estimator learn from X, whose instances become those of its attributes."""
    factor, names = _factor_of(memory_factor), _names_of(add_views)
    data = _read(estimator, X, mask, names)
    refuse_mask_as_y(y, data.views)
    # The index that pandas makes itself numbers the rows of every batch alike.
    named = data.names.texts is not None and not (data.names.index is not None and is_range(data.names.index))
    threads = threads_of(estimator.n_jobs)
    found = _daimc.update(estimator._model, data.views, data.joined, named, factor, names, threads)
    model, contributions, drift, unexplained, groups, died = found
    estimator._adopt(model, data)
    estimator.contributions_ = data.spread(contributions, np.nan)
    estimator.ids_ = array_of(data.names.given)
    if names:
        estimator.n_features_in_ = sum(len(basis) for basis in estimator.basis_)
    places = np.flatnonzero(data.spread(np.ones(len(model.labels), dtype=bool), False))
    order = data.spread(np.arange(len(model.labels)), -1)[places]
    place = np.empty_like(places)
    place[order] = places
    estimator.update_ = Update(
        {view: total for view, total, _ in drift},
        {view: clusters for view, _, clusters in drift},
        np.sort(place[unexplained]),
        [np.sort(place[group]) for group in groups],
        died,
    )


def _read(estimator: DAIMC, X: Any, mask: Any, names: list[str]) -> Data:
    """The batch, in which the views of these names are new."""
    if not names:
        return data_of(estimator, X, mask, reset=False)
    if not is_views(X) or isinstance(X, (list, tuple)):
        raise TypeError("add_views names views: give X as a dictionary of views, or as a MuData")
    features = {name: estimator._model.features(name) for name in estimator.view_names_}
    known = Known(estimator.view_names_ + names, {**features, **dict.fromkeys(names)})
    data = read(X, mask, estimator.id_column, known, Slots(estimator.layer, estimator.use_rep))
    return data.without_empty_views().settle_unseen(estimator.handle_unseen)


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
