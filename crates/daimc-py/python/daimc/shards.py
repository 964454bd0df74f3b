"""Fits to rows that several processes hold, in whatever engine carries bytes between them.

A :class:`Shard` holds some of the instances and their rows of V. :func:`drive` fits: it asks, all shards answer, and their
answers are merged two at a time, in any order, by :func:`merge`. An engine needs no more than to carry requests to
everybody and to bring merged answers back; Dask and MPI are two (see `DAIMC.fit`). The result is the same to the last bit for any
number of shards, and without neighbourhoods the same as that of one process.

>>> import numpy as np
>>> from daimc import DAIMC, datasets, shards
>>> data = datasets.make_views(40_000, 3, [5, 4], random_state=0)
>>> held = [
...     shards.Shard({name: view[start:stop] for name, view in data.views.items()}, start, 40_000)
...     for start, stop in shards.ranges(40_000, 2)
... ]
>>> requests = {}
>>> def before(setup):  # what a shard is asked first that takes the place of one that was lost
...     return [(number, requests[number]) for number in setup]
>>> def ask(number, request, setup):
...     requests[number] = request
...     return shards.merge(*(shard.answer(number, request, before(setup)) for shard in held))
>>> model = DAIMC(3, random_state=0, assess=False, neighbours="off")
>>> last, setup = shards.drive(model, 40_000, ask)
>>> labels = np.concatenate([shard.place(last, before(setup)).labels for shard in held])
>>> bool((labels == model.predict(data.views)).mean() > 0.99)
True
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from daimc import _daimc
from daimc._matrix import from_matrix
from daimc._progress import Progress, logger
from daimc._settings import clusters_of, seed_of, threads_of
from daimc._warnings import warn_of_fit

if TYPE_CHECKING:
    from daimc._estimator import DAIMC

__all__ = ["Ask", "Place", "Shard", "drive", "merge", "ranges"]

#: Carries a request to all shards: its number, its bytes, and the numbers of earlier requests that each must have answered.
Ask: TypeAlias = Callable[[int, bytes, list[int]], bytes]


class Place(NamedTuple):
    """What was found for some instances."""

    latent: NDArray[np.float64]
    labels: NDArray[np.int64]
    confidence: NDArray[np.float64]


class Shard:
    """Some instances of many: their rows in all views, and their rows of V.

    Parameters
    ----------
    views : dict of str to matrix
        The rows of the instances: numpy arrays (a row of NaN is missing, as is a cell), memory maps, or scipy matrices. They are
        not copied. Every shard has the same views, of the same type.
    first : int
        The number of the first of them among all instances. Shards begin and end where :func:`ranges` says.
    total : int
        How many instances there are in all.
    masks : dict of str to array of bool, default=None
        Which rows of a view are there, where that is not told by NaN.
    features : dict of str to list of str, default=None
        The names of a view's features.
    threads : int, default=1
        Threads that it works on.

    Notes
    -----
    It can be pickled. Its rows travel then, and its rows of V do not: where it arrives, they are made again from the bases.
    """

    def __init__(
        self,
        views: Mapping[str, Any],
        first: int,
        total: int,
        *,
        masks: Mapping[str, NDArray[np.bool_]] | None = None,
        features: Mapping[str, list[str]] | None = None,
        threads: int = 1,
    ) -> None:
        self._given = (dict(views), first, total, masks, features, threads)
        parts = []
        for name, matrix in views.items():
            part = from_matrix(matrix, name)
            if masks and name in masks:
                part.present = np.ascontiguousarray(masks[name], dtype=bool)
            if features and name in features:
                part.features = features[name]
            parts.append(part)
        self._shard = _daimc.Shard(parts, first, total, threads)

    def answer(self, number: int, request: bytes, setup: Sequence[tuple[int, bytes]]) -> bytes:
        """Answers a request. A shard that has not answered those of `setup` does so first; asked twice, it answers alike."""
        return self._shard.answer(number, request, list(setup))

    def place(self, request: bytes, setup: Sequence[tuple[int, bytes]]) -> Place:
        """What was found for the instances, once :func:`drive` has ended."""
        return Place(*self._shard.place(request, list(setup)))

    def __reduce__(self) -> Any:
        return _make, self._given

    def __sizeof__(self) -> int:
        return sum(map(_bytes_of, self._given[0].values()))


def _make(views: Any, first: int, total: int, masks: Any, features: Any, threads: int) -> Shard:
    return Shard(views, first, total, masks=masks, features=features, threads=threads)


def _bytes_of(matrix: Any) -> int:
    if sparse.issparse(matrix):
        return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)
    return int(np.asarray(matrix).nbytes)


def merge(*replies: bytes) -> bytes:
    """Merges the answers of several shards to the same request; those of others may still come."""
    return reduce(_daimc.merge, replies)


def ranges(total: int, parts: int) -> list[tuple[int, int]]:
    """Where at most so many shards of about the same size begin and end. Few instances cannot be parted."""
    return cut(total, [total * part // parts for part in range(1, parts)])


def cut(total: int, wanted: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of shards that begin as near as can be to where it is wanted."""
    edges = np.array(_daimc.leaves(total))
    # The last leaf may be short, so that all instances end where it does.
    nearest = {int(edges[np.abs(edges - edge).argmin()]) for edge in wanted}
    return list(pairwise(sorted({0, total, *nearest})))


def pieces(lengths: Sequence[int], wanted: Sequence[tuple[int, int]]) -> list[list[tuple[int, int, int]]]:
    """For each range of rows the parts it is made of, where all rows are parts of these lengths: part, first row, last row."""
    edges = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    found = []
    for start, stop in wanted:
        parts = range(int(np.searchsorted(edges, start, "right")) - 1, int(np.searchsorted(edges, stop, "left")))
        own = [(part, max(start, int(edges[part])), min(stop, int(edges[part + 1]))) for part in parts]
        found.append([(part, first - int(edges[part]), last - int(edges[part])) for part, first, last in own if first < last])
    return found


def assemble(parts: Sequence[tuple[Any, int, int]]) -> Any:
    """Rows of several matrices one after another; one that is taken whole is not copied."""
    rows = [part if (start, stop) == (0, part.shape[0]) else part[start:stop] for part, start, stop in parts]
    if len(rows) == 1:
        return rows[0]
    return sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.concatenate(rows)


def drive(estimator: DAIMC, instances: int, ask: Ask) -> tuple[bytes, list[int]]:
    """Fits an estimator to instances that shards hold.

    The estimator can then place new instances, but has none of its own: `labels_`, `embedding_` and `confidence_` are empty. What
    was found is with the shards.

    Parameters
    ----------
    estimator : DAIMC
        What to fit. For neighbourhoods, rows (shortened to 128 numbers in wide views) and V are gathered in this process; if it
        has not the memory, they are off, and `neighbours_` tells. Several runs, learned view weights, an automatic penalty and a
        given start are refused, and there is no map.
    instances : int
        How many there are in all.
    ask : callable
        Carries a request to all shards and returns their merged answers.

    Returns
    -------
    request, setup
        The last request, for :meth:`Shard.place`, and the numbers of those that it follows from.
    """
    last = fitted(estimator, instances, ask)
    warn_of_fit(estimator._model, stacklevel=3)
    return last


def fitted(estimator: DAIMC, instances: int, ask: Ask) -> tuple[bytes, list[int]]:
    """What :func:`drive` does, without a warning of what the fit has to say against its result."""
    clusters, seed = clusters_of(estimator.n_clusters), seed_of(estimator.random_state)
    options, start = estimator._options()
    if start is not None:
        raise ValueError("init = array: not where several hold the rows; use 'aligned' or 'paper'")
    if instances < clusters:
        raise ValueError(f"n_samples={instances} should be >= n_clusters={clusters}")
    resolved = json.loads(_daimc.resolve(clusters, seed, options))
    progress = Progress(bool(estimator.verbose), resolved["max_iterations"])
    course = _Course(ask)
    try:
        threads, each = threads_of(estimator.n_jobs), progress if progress.wanted else None
        memory = _daimc.available_memory()
        model, last = _daimc.drive(instances, clusters, seed, options, threads, memory, course, each)
    except BaseException as error:
        progress.close("stopped" if isinstance(error, KeyboardInterrupt) else "failed")
        raise
    progress.close("converged" if model.converged else "not converged")
    estimator._adopt(model, None)
    estimator.n_features_in_ = sum(len(basis) for basis in estimator.basis_)
    logger.info(
        "%d instances in %d view(s): %s after %d iterations, objective %.6g",
        instances,
        len(estimator.view_names_),
        "converged" if estimator.converged_ else "not converged",
        estimator.n_iter_,
        estimator.objective_,
    )
    return last, course.setup


class _Course:
    """Remembers what a shard must have answered by now."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.setup: list[int] = []

    def __call__(self, number: int, request: bytes, setup: list[int]) -> bytes:
        self.setup = setup
        return self._ask(number, request, setup)
