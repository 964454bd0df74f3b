"""Fits to rows that the ranks of an MPI communicator hold, each its own."""

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
    """What went wrong on one of the ranks."""

    def __init__(self, rank: int, error: BaseException) -> None:
        self.rank = rank
        self.words = f"{type(error).__name__}: {error}"

    def error(self) -> RuntimeError:
        return RuntimeError(f"rank {self.rank}: {self.words}")


def _merged(one: Any, other: Any) -> Any:
    """Answers of two ranks. One may have no rows, and the first failure is told."""
    failures = [reply for reply in (one, other) if isinstance(reply, _Failed)]
    if failures:
        return min(failures, key=lambda failed: failed.rank)
    if one is None or other is None:
        return one if other is None else other
    return shards.merge(one, other)


class _Ranks:
    """The shards of all ranks. Rank 0 asks; what fails anywhere ends the fit everywhere."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.rank = comm.Get_rank()
        self.shard: shards.Shard | None = None

    def together(self, work: Any) -> list[Any]:
        """What each rank has worked out; an error if one of them could not."""
        try:
            own = work()
        except Exception as error:  # noqa: BLE001
            own = _Failed(self.rank, error)
        everybody = self.comm.allgather(own)
        failed = next((each for each in everybody if isinstance(each, _Failed)), None)
        if failed is not None:
            raise failed.error()
        return list(everybody)

    def ask(self, number: int, request: bytes, setup: list[int]) -> bytes:
        """Carries a request of rank 0 to all ranks."""
        self.comm.bcast((number, request, setup), root=0)
        reply = self._answer(number, request, setup)
        if isinstance(reply, _Failed):
            raise reply.error()
        return bytes(reply)

    def _answer(self, number: int, request: bytes, setup: list[int]) -> Any:
        reply: Any = None
        try:
            if self.shard is not None:
                # Nobody is ever replaced, so numbers are enough.
                reply = self.shard.answer(number, request, [(earlier, b"") for earlier in setup])
        except Exception as error:  # noqa: BLE001
            reply = _Failed(self.rank, error)
        return self.comm.reduce(reply, op=_merged, root=0)

    def drive(self, estimator: DAIMC, instances: int) -> tuple[bytes, list[int]]:
        """Fits on rank 0; the other ranks answer, and have the same model in the end."""
        if self.rank == 0:
            try:
                last = shards.fitted(estimator, instances, self.ask)
            except BaseException as error:
                # One that came from a rank names it already.
                self.comm.bcast(str(error) if str(error).startswith("rank ") else _Failed(0, error).error().args[0], root=0)
                raise
            self.comm.bcast((last, estimator._model.to_bytes()), root=0)
            return last
        while True:
            told = self.comm.bcast(None, root=0)
            if isinstance(told, str):
                raise RuntimeError(told)
            if len(told) == 3:
                self._answer(*told)
                continue
            (request, setup), model = told
            estimator._adopt(_daimc.Model.from_bytes(model), None)
            return request, setup


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
    request, setup = ranks.drive(estimator, total)

    def place() -> shards.Place | None:
        own = None if ranks.shard is None else ranks.shard.place(request, [(earlier, b"") for earlier in setup])
        found.append(own)
        return None

    found: list[shards.Place | None] = []
    ranks.together(place)
    own = _returned(comm, found[0], moves)
    estimator.embedding_, estimator.labels_, estimator.confidence_ = own
    estimator.n_features_in_ = sum(len(basis) for basis in estimator.basis_)
    first = sum(lengths[: ranks.rank])
    estimator.ids_ = np.arange(first, first + lengths[ranks.rank])


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
    """What was found for the rows that this rank gave, from whoever held them."""
    rank, count = comm.Get_rank(), comm.Get_size()
    sent: list[list[Any]] = [[] for _ in range(count)]
    if found is not None:
        begin = 0
        for source, start, stop in moves[rank]:
            end = begin + stop - start
            sent[source].append((start, [part[begin:end] for part in found]))
            begin = end
    pieces = sorted((piece for own in comm.alltoall(sent) for piece in own), key=lambda piece: piece[0])
    return shards.Place(*(np.concatenate([piece[1][part] for piece in pieces]) for part in range(3)))
