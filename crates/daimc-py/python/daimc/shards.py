"""Fits to rows in several processes, over whatever carries bytes between them.

A :class:`Shard` has some of the instances and their rows of V. :func:`drive` fits: it passes tasks to a function that carries them
to all shards and merges their answers two at a time, in any order, by :func:`merge`. Dask and MPI are two ways to carry
tasks (see `DAIMC.fit`). The result is that of one process, to the last bit, for any number of shards.

>>> import numpy as np
>>> from daimc import DAIMC, datasets, shards
>>> data = datasets.make_views(40_000, 3, [5, 4], random_state=0)
>>> parts = [
...     shards.Shard({name: view[start:stop] for name, view in data.views.items()}, start, 40_000)
...     for start, stop in shards.ranges(40_000, 2)
... ]
>>> def ask(number, request, setup):
...     return shards.merge(*(shard.answer(number, request) for shard in parts))
>>> model = DAIMC(3, random_state=0, assess=False)
>>> tasks, setup = shards.drive(model, 40_000, ask)
>>> labels = np.concatenate([shard.place(model, tasks).labels for shard in parts])
>>> bool((labels == model.labels_).all())
True

A shard that replaces a lost one is brought into its state by the requests of the tasks in `setup`; see :meth:`Shard.answer`.
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

#: Carries a request to all shards and returns their merged answers. Given are the number of the task, the request, and the
#: numbers of the earlier tasks that the state of a shard follows from.
Ask: TypeAlias = Callable[[int, bytes, list[int]], bytes | None]


class Place(NamedTuple):
    """The results for some instances."""

    latent: NDArray[np.float64]
    labels: NDArray[np.int64]
    confidence: NDArray[np.float64]
    contributions: NDArray[np.float64]


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
    A shard can be pickled. Its rows travel, its rows of V do not: they are computed again from the requests of the fit.
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

    def answer(self, number: int, request: bytes, setup: Sequence[bytes] | None = None) -> bytes | None:
        """Answers a task of a fit. Asked twice, it answers alike.

        A shard that has not answered the task before (it was made anew) answers the requests of `setup` first. Without them it
        returns `None`.
        """
        return self._shard.answer(number, request, None if setup is None else list(setup))

    def place(self, model: DAIMC, tasks: int, setup: Sequence[bytes] | None = None) -> Place | None:
        """Returns the results for the instances, once :func:`drive` has fitted a model in this many tasks.

        As in :meth:`answer`, a shard that was made anew needs the requests of `setup`.
        """
        found = self._shard.place(model._model.without_instances().to_bytes(), tasks, None if setup is None else list(setup))
        return None if found is None else Place(*found)

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


def merge(*answers: bytes | None) -> bytes | None:
    """Merges the answers of some shards to the same request; `None` if one of them did not answer."""
    known = [answer for answer in answers if answer is not None]
    return reduce(_daimc.merge, known) if len(known) == len(answers) else None


def ranges(total: int, parts: int) -> list[tuple[int, int]]:
    """Returns where at most `parts` shards of about the same size begin and end. Few instances are in one shard."""
    return cut(total, [total * part // parts for part in range(1, parts)])


def cut(total: int, wanted: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of shards that begin as near as possible to the wanted edges."""
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


def drive(estimator: DAIMC, instances: int, ask: Ask) -> tuple[int, list[int]]:
    """Fits an estimator to the instances of all shards.

    Parameters
    ----------
    estimator : DAIMC
        The estimator to fit. For neighbourhoods, rows (projected to 128 numbers in wide views) and V are gathered in this process;
        if they do not fit into its memory, neighbourhoods are off, and `neighbours_` says so. `labels_`, `embedding_` and
        `confidence_` are those of all instances if they fit into memory, otherwise empty. `contributions_` is computed by
        the shards: see :meth:`Shard.place`.
    instances : int
        The number of instances in all shards.
    ask : callable
        Carries a request to all shards and returns their merged answers.

    Returns
    -------
    tasks, setup
        The number of tasks, and the numbers of those that the state of a shard follows from, for :meth:`Shard.place`.
    """
    done = fitted(estimator, instances, ask)
    warn_of_fit(estimator._model, stacklevel=3)
    return done


def fitted(estimator: DAIMC, instances: int, ask: Ask) -> tuple[int, list[int]]:
    """Does what :func:`drive` does, without warnings about the result."""
    clusters, seed = clusters_of(estimator.n_clusters), seed_of(estimator.random_state)
    options, start = estimator._options()
    if instances < clusters:
        raise ValueError(f"n_samples={instances} should be >= n_clusters={clusters}")
    resolved = json.loads(_daimc.resolve(clusters, seed, options))
    progress = Progress(bool(estimator.verbose), resolved["max_iterations"])
    last = _Last(ask)
    try:
        threads, each = threads_of(estimator.n_jobs), progress if progress.wanted else None
        memory = _daimc.available_memory()
        model = _daimc.drive(instances, clusters, seed, options, start, threads, memory, last, each)
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
    return last.number, last.setup


class _Last:
    """Remembers the last task."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.number = 0
        self.setup: list[int] = []

    def __call__(self, number: int, request: bytes, setup: list[int]) -> bytes | None:
        self.number, self.setup = number, setup
        return self._ask(number, request, setup)
