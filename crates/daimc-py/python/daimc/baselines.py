"""Baseline methods for comparison with DAIMC."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin

from daimc import _daimc
from daimc._data import array_of
from daimc._input import is_views, read, refuse_one
from daimc._mask import refuse_mask_as_y
from daimc._progress import Progress
from daimc._settings import clusters_of, seed_of, threads_of

__all__ = ["METHODS", "Baseline"]

#: The methods with the names of their options.
METHODS = {name: tuple(options) for name, options in _daimc.baseline_options()}


class Baseline(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """A baseline method.

    Parameters
    ----------
    method : str
        One of `METHODS`: "wsnmf" (weighted semi-NMF), "multinmf", "pvc", "img", "mic", "omvc", "opimc", "single" (k-means on
        one view) or "concatenation" (k-means on all views side by side).
    n_clusters : int, default=8
        The number of clusters.
    options : dict, default=None
        Options of the method; `METHODS[method]` names them.
    id_column : str, default=None
        If views are DataFrames: the column with the IDs of instances.
    handle_unseen : {"error", "keep"}, default="error"
        What to do with an instance that is missing from every view: raise an error, or keep it in its place with the
        label -1 and a row of NaN.
    random_state : int, Generator, RandomState or None, default=None
        The source of randomness.
    n_jobs : int, default=None
        The number of threads; `None` and -1 mean all processors.
    verbose : bool, default=False
        Whether to show a progress line.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each instance.
    embedding_ : ndarray of shape (n_samples, n_components)
        The representation that was clustered.
    objective_history_ : ndarray
        The objective after each iteration.
    ids_ : ndarray of shape (n_samples,)
        The IDs of the instances, in the order of `labels_`.
    """

    def __init__(
        self,
        method: str = "wsnmf",
        n_clusters: int = 8,
        *,
        options: dict[str, Any] | None = None,
        id_column: str | None = None,
        handle_unseen: str = "error",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.n_clusters = n_clusters
        self.options = options
        self.id_column = id_column
        self.handle_unseen = handle_unseen
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, mask: Any = None) -> Baseline:
        """Clusters the instances of X, a list or a dictionary of views as in `DAIMC.fit`."""
        if not is_views(X):
            refuse_one(X)
            raise TypeError("X is one matrix: pass a list or a dictionary of views")
        data = read(X, mask, self.id_column).resolve_unseen(self.handle_unseen)
        refuse_mask_as_y(y, data.views)
        progress = Progress(bool(self.verbose))
        try:
            labels, embedding, self.objective_history_ = _daimc.baseline(
                self.method,
                data.views,
                data.joined,
                clusters_of(self.n_clusters),
                seed_of(self.random_state),
                dict(self.options or {}),
                threads_of(self.n_jobs),
                progress if progress.wanted else None,
            )
        except BaseException as error:
            progress.close("stopped" if isinstance(error, KeyboardInterrupt) else "failed")
            raise
        progress.close("done")
        self.labels_ = data.spread(labels, -1)
        self.embedding_ = data.spread(embedding, np.nan)
        self.ids_ = array_of(data.names.given)
        return self

    def fit_predict(self, X: Any, y: Any = None, *, mask: Any = None) -> NDArray[np.int64]:
        """Clusters the instances of X and returns `labels_`."""
        return self.fit(X, y, mask=mask).labels_
