"""Fits to the rows of all ranks of an MPI communicator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from daimc import _daimc, shards
from daimc._matrix import View
from daimc._progress import logger
from daimc._settings import threads_of

if TYPE_CHECKING:
    from daimc._estimator import DAIMC


class _Failed:
    """An error on one of the ranks."""

    def __init__(self, rank: int, error: BaseException) -> None:
        self.rank = rank
        self.words = f"{type(error).__name__}: {error}"

    def error(self) -> RuntimeError:
        return RuntimeError(f"rank {self.rank}: {self.words}")


def _merged(one: Any, other: Any) -> Any:
    """Merges the answers of two ranks. A rank may have no rows. Of several failures the one of the lowest rank is kept."""
    failures = [reply for reply in (one, other) if isinstance(reply, _Failed)]
    if failures:
        return min(failures, key=lambda failed: failed.rank)
    if one is None or other is None:
        return one if other is None else other
    return shards.merge(one, other)


class _Ranks:
    """The shards of all ranks. Rank 0 drives the fit; an error on any rank ends it on all."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.rank = comm.Get_rank()
        self.shard: shards.Shard | None = None

    def together(self, work: Any) -> list[Any]:
        """Runs work on each rank and returns all results; raises the error of a rank that failed."""
        try:
            own = work()
        except Exception as error:  # noqa: BLE001
            own = _Failed(self.rank, error)
        results = self.comm.allgather(own)
        failed = next((each for each in results if isinstance(each, _Failed)), None)
        if failed is not None:
            raise failed.error()
        return list(results)

    def ask(self, number: int, request: bytes, setup: list[int]) -> bytes:
        """Carries a request of rank 0 to all ranks. Ranks are never replaced, so `setup` is not needed."""
        self.comm.bcast((number, request), root=0)
        answer = self._answer(number, request)
        if isinstance(answer, _Failed):
            raise answer.error()
        return bytes(answer)

    def _answer(self, number: int, request: bytes) -> Any:
        answer: Any = None
        try:
            if self.shard is not None:
                answer = self.shard.answer(number, request)
        except Exception as error:  # noqa: BLE001
            answer = _Failed(self.rank, error)
        return self.comm.reduce(answer, op=_merged, root=0)

    def drive(self, estimator: DAIMC, instances: int) -> int:
        """Fits on rank 0 and returns the number of tasks. The other ranks answer, and have the same model in the end."""
        if self.rank == 0:
            try:
                tasks, _ = shards.fitted(estimator, instances, self.ask)
            except BaseException as error:
                # One that came from a rank names it already.
                self.comm.bcast(str(error) if str(error).startswith("rank ") else _Failed(0, error).error().args[0], root=0)
                raise
            light = estimator._model.without_instances().to_bytes()
            self.comm.bcast((tasks, estimator.map_, light), root=0)
            return tasks
        while True:
            message = self.comm.bcast(None, root=0)
            if isinstance(message, str):
                raise RuntimeError(message)
            if len(message) == 2:
                self._answer(*message)
                continue
            tasks, map_, model = message
            estimator._adopt(_daimc.Model.from_bytes(model), None)
            estimator.map_ = map_
            return int(tasks)


def fit(estimator: DAIMC, X: Any, mask: Any, comm: Any) -> None:
    """What `DAIMC.fit` does with a communicator."""
    ranks = _Ranks(comm)
    views: list[View] = []

    def read() -> int:
        data = estimator._read(X, mask, reset=True)
        if data.joined:
            raise ValueError("with comm, rows of all views must be the same instances: give matrices, and no handle_unseen='keep'")
        views.extend(data.views)
        return len(data.seen)

    lengths = ranks.together(read)
    total = sum(lengths)
    ranges = shards.cut(total, np.cumsum(lengths)[:-1].tolist())
    moves = shards.pieces(lengths, ranges)
    held = _exchanged(comm, views, moves)

    def hold() -> None:
        if ranks.rank < len(ranges):
            first, _ = ranges[ranks.rank]
            parts, masks = _rows_of(held)
            features = {view.name: view.features for view in views if view.features is not None}
            threads = threads_of(estimator.n_jobs)
            ranks.shard = shards.Shard(parts, first, total, masks=masks, features=features, threads=threads)

    ranks.together(hold)
    if ranks.rank == 0:
        logger.info("%d instances on %d rank(s)", total, len(ranges))
    tasks = ranks.drive(estimator, total)

    def place() -> shards.Place | None:
        own = None if ranks.shard is None else ranks.shard.place(estimator, tasks)
        found.append(own)
        return None

    found: list[shards.Place | None] = []
    ranks.together(place)
    own = _returned(comm, found[0], moves)
    estimator.embedding_, estimator.labels_, estimator.confidence_, estimator.contributions_ = own
    estimator.n_features_in_ = sum(len(basis) for basis in estimator.basis_)
    first = sum(lengths[: ranks.rank])
    last = first + lengths[ranks.rank]
    estimator.ids_ = np.arange(first, last)
    if estimator.map_ is not None:
        estimator.map_ = estimator.map_[first:last]


def _exchanged(comm: Any, views: list[View], moves: list[list[tuple[int, int, int]]]) -> list[Any]:
    """The rows of this rank's shard: for each piece of it, the rows and masks of all views. Most are here already."""
    rank, count = comm.Get_rank(), comm.Get_size()
    sent: list[list[Any]] = [[] for _ in range(count)]
    for target, pieces in enumerate(moves):
        for source, start, stop in pieces:
            if source == rank:
                here = target == rank
                sent[target].append([(view.name, _slice(view.matrix, start, stop, here), _mask(view, start, stop)) for view in views])
    kept, sent[rank] = sent[rank], []
    received = comm.alltoall(sent)
    received[rank] = kept
    return [piece for pieces in received for piece in pieces]


def _slice(matrix: Any, start: int, stop: int, here: bool) -> Any:
    rows = matrix if (start, stop) == (0, matrix.shape[0]) else matrix[start:stop]
    return rows if here else rows.copy()


def _mask(view: View, start: int, stop: int) -> Any:
    return None if view.present is None else view.present[start:stop]


def _rows_of(pieces: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Views and masks, from pieces in their order."""
    parts: dict[str, Any] = {}
    masks: dict[str, Any] = {}
    by_name = [{name: (rows, shown) for name, rows, shown in piece} for piece in pieces]
    for name in by_name[0]:
        rows = [piece[name][0] for piece in by_name]
        shown = [piece[name][1] for piece in by_name]
        parts[name] = shards.assemble([(own, 0, own.shape[0]) for own in rows])
        if any(own is not None for own in shown):
            whole = [np.ones(own.shape[0], bool) if here is None else here for own, here in zip(rows, shown)]
            masks[name] = np.concatenate(whole)
    return parts, masks


def _returned(comm: Any, found: shards.Place | None, moves: list[list[tuple[int, int, int]]]) -> shards.Place:
    """The results for the rows that this rank gave, from the ranks whose shards have them."""
    rank, count = comm.Get_rank(), comm.Get_size()
    sent: list[list[Any]] = [[] for _ in range(count)]
    if found is not None:
        begin = 0
        for source, start, stop in moves[rank]:
            end = begin + stop - start
            sent[source].append((start, [part[begin:end] for part in found]))
            begin = end
    pieces = sorted((piece for own in comm.alltoall(sent) for piece in own), key=lambda piece: piece[0])
    return shards.Place(*(np.concatenate([piece[1][part] for piece in pieces]) for part in range(4)))
