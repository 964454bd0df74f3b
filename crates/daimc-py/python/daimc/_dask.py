"""Fits to Dask collections: partitions become shards on the workers that hold them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from daimc import shards
from daimc._progress import logger

if TYPE_CHECKING:
    from daimc._estimator import DAIMC

#: Seconds between two looks at who is still there while answers are awaited.
_LOOK = 1.0

#: Seconds that fetching what is finished may take before somebody looks whether its worker has died since.
_FETCH = 10.0

#: Seconds after which a cluster without workers is given up; a nanny starts a worker again much sooner.
_PATIENCE = 30.0

#: Answers that one task merges, or the client.
_FAN_IN = 8

#: Bytes of a request that tasks carry themselves, all together.
_WITH_TASKS = 4_000_000

#: What a Dask collection can be, in messages.
_KINDS = "Dask arrays or Dask DataFrames"


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection, or views some of which are. Nothing is imported to find out."""
    if isinstance(X, Mapping):
        return any(map(_is_collection, X.values()))
    if isinstance(X, (list, tuple)):
        return any(map(_is_collection, X))
    return _is_collection(X)


def _is_collection(part: Any) -> bool:
    return type(part).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(part, "__dask_graph__")


def client_of(client: Any) -> Any:
    """The client that was given, or the current one, or `None`."""
    if client is not None:
        return client
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


class Rows:
    """The rows of some views as blocks, whose lengths are known."""

    def __init__(self, blocks: dict[str, list[Any]], lengths: dict[str, list[int]]) -> None:
        self.blocks = blocks
        self.lengths = lengths
        self.total = {name: sum(own) for name, own in lengths.items()}

    def of(self, ranges: Sequence[tuple[int, int]]) -> Iterator[dict[str, list[tuple[Any, int, int]]]]:
        """For each range of instances the parts of blocks it is made of, by view."""
        found = {name: shards.pieces(own, ranges) for name, own in self.lengths.items()}
        for number in range(len(ranges)):
            yield {
                name: [(self.blocks[name][part], start, stop) for part, start, stop in own[number]]
                for name, own in found.items()
            }


class Collection:
    """Views that are Dask collections of the same instances."""

    def __init__(self, X: Any, mask: Any, known: Sequence[str] | None = None) -> None:
        import dask.array as da

        parts = X if isinstance(X, Mapping) else {f"view{i}": x for i, x in enumerate(X if isinstance(X, (list, tuple)) else [X])}
        self.names = [str(name) for name, part in parts.items() if part is not None]
        if known is not None and not isinstance(X, Mapping):
            self.names = [name for name, part in zip(known, parts.values()) if part is not None]
        given = [part for part in parts.values() if part is not None]
        arrays = all(isinstance(part, da.Array) for part in given)
        frames = not arrays and _are_frames(given)
        if not arrays and not frames:
            kinds = ", ".join(f"{type(part).__module__.split('.')[0]}.{type(part).__name__}" for part in given)
            raise TypeError(f"views are {kinds}: give all of them as {_KINDS}, of one kind")
        #: The frame that all views are columns of, with IDs as its index.
        self.frame: Any = None
        self.features: dict[str, list[str]] = {}
        self.masks: dict[str, Any] = {}
        if frames:
            if mask is not None:
                raise TypeError("mask: rows of Dask DataFrames are missing where they are NaN or not listed")
            self._join(given)
        else:
            self.arrays = {name: _matrix(name, part) for name, part in zip(self.names, given)}
            self._take_masks(mask)

    def _join(self, frames: list[Any]) -> None:
        """Makes one frame of all, by index. The columns of each view stand together."""
        widths = [len(frame.columns) for frame in frames]
        for name, frame in zip(self.names, frames):
            self.features[name] = [str(column) for column in frame.columns]
        ends = np.cumsum(widths)
        self.columns = {name: slice(int(end) - width, int(end)) for name, width, end in zip(self.names, widths, ends)}
        numbered = [
            frame.rename(columns={column: f"{view}:{i}" for i, column in enumerate(frame.columns)})
            for view, frame in enumerate(frames)
        ]
        self.frame = numbered[0]
        if len(frames) > 1:
            alike = all(frame.known_divisions and frame.divisions == frames[0].divisions for frame in frames)
            how = "partition by partition" if alike else "which takes one shuffle of all rows"
            logger.info("%d views are joined by their index, %s", len(frames), how)
            self.frame = reduce(lambda left, right: left.join(right, how="outer"), numbered)

    def _take_masks(self, mask: Any) -> None:
        import dask.array as da

        if mask is None:
            return
        if isinstance(mask, Mapping):
            unknown = [str(name) for name in mask if str(name) not in self.names]
            if unknown:
                raise ValueError(f"mask: there is no view '{unknown[0]}'; there are {', '.join(self.names)}")
            masks = {str(name): own for name, own in mask.items()}
        elif isinstance(mask, (list, tuple)):
            if len(mask) != len(self.names):
                raise ValueError(f"mask has {len(mask)} entries, and there are {len(self.names)} views: give one for each")
            masks = dict(zip(self.names, mask))
        else:
            table = da.asarray(mask)
            if table.ndim != 2 or table.shape[1] != len(self.names):
                raise ValueError(f"mask has shape {table.shape}: expected (n_samples, {len(self.names)}), a column for each view")
            masks = {name: table[:, number] for number, name in enumerate(self.names)}
        self.masks = {name: da.asarray(own) for name, own in masks.items() if own is not None}

    def rows(self, client: Any) -> Rows:
        """Blocks and their lengths. Where these are not known, blocks are computed, and kept until shards hold them."""
        import dask

        if self.frame is not None:
            self.frame = client.persist(self.frame)
            parts = self.frame.to_delayed()
            lengths = _awaited(client, client.compute([dask.delayed(_length)(part) for part in parts]))
            #: The IDs of each partition.
            self.index = client.compute([dask.delayed(_ids)(part, len(self.names) > 1) for part in parts])
            _awaited(client, self.index, fetch=False)
            self.partitions = lengths
            blocks = {name: [dask.delayed(_columns)(part, own) for part in parts] for name, own in self.columns.items()}
            return Rows(blocks, dict.fromkeys(self.names, lengths))
        blocks, known = {}, {}
        # Nothing is optimised: what is fused has the names of what it was made of, and workers that know one of these with other
        # dependencies, from a graph that has not quite gone yet, wait for ever (dask/dask#9888).
        for name, array in [*self.arrays.items(), *((f"mask of {name}", own) for name, own in self.masks.items())]:
            unknown = any(np.isnan(array.chunks[0]))
            if unknown and not _is_persisted(array):
                array = client.persist(array, optimize_graph=False)
            blocks[name] = list(array.to_delayed(optimize_graph=False).ravel())
            if unknown:
                known[name] = _awaited(client, client.compute([dask.delayed(_length)(block) for block in blocks[name]]))
            else:
                known[name] = [int(length) for length in array.chunks[0]]
        rows = Rows(blocks, known)
        first = self.names[0]
        for name, total in rows.total.items():
            if total != rows.total[first]:
                raise ValueError(f"view '{name}' has {total} rows, view '{first}' has {rows.total[first]}: rows are instances")
        self.partitions = known[first]
        return rows


def _are_frames(parts: list[Any]) -> bool:
    """Whether all are DataFrames. Arrays do without what these need."""
    try:
        import dask.dataframe as dd
    except ImportError:
        return False
    return all(isinstance(part, dd.DataFrame) for part in parts)


def _matrix(name: str, array: Any) -> Any:
    if array.ndim != 2:
        raise ValueError(f"view '{name}': expected a matrix, found a Dask array with {array.ndim} dimension(s)")
    return array if array.numblocks[1] == 1 else array.rechunk({1: -1})


def _is_persisted(array: Any) -> bool:
    """Whether the blocks are with the workers, or on their way to them."""
    from dask.core import flatten
    from distributed import futures_of

    return {future.key for future in futures_of(array)}.issuperset(flatten(array.__dask_keys__()))


# --- tasks ------------------------------------------------------------------------------------------------------------


def _length(block: Any) -> int:
    return int(block.shape[0])


def _ids(part: Any, joined: bool) -> Any:
    if joined and not part.index.is_unique:
        twice = part.index[part.index.duplicated()][0]
        raise ValueError(f"the ID '{twice}' is in two rows of a view: an instance has one row in a view")
    return part.index


def _columns(part: Any, columns: slice) -> Any:
    return part.iloc[:, columns].to_numpy()


def _rows_of(pieces: Mapping[str, list[tuple[Any, int, int]]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Views and masks, from the parts they are made of."""
    whole = {name: shards.assemble(own) for name, own in pieces.items()}
    masks = {name.removeprefix("mask of "): whole.pop(name) for name in list(whole) if name.startswith("mask of ")}
    return {name: _readable(matrix) for name, matrix in whole.items()}, masks


def _readable(matrix: Any) -> Any:
    """A chunk of pydata's sparse as one of scipy; others as they are."""
    return matrix.tocsr() if hasattr(matrix, "tocsr") else matrix


def _hold(pieces: Any, first: int, total: int, features: Any, threads: int) -> shards.Shard:
    views, masks = _rows_of(pieces)
    return shards.Shard(views, first, total, masks=masks, features=features, threads=threads)


def _answer(shard: shards.Shard, number: int, request: bytes, replay: bool, *setup: bytes) -> bytes | None:
    return shard.answer(number, request, setup if replay else None)


def _found(shard: shards.Shard, tasks: int, model: DAIMC, replay: bool, *setup: bytes) -> shards.Place | None:
    return shard.place(model, tasks, setup if replay else None)


def _is_missing(found: shards.Place | None) -> bool:
    return found is None


def _placed(estimator: DAIMC, pieces: Any, what: int) -> Any:
    views, masks = _rows_of(pieces)
    _, latent, labels = estimator._place(views, masks or None)
    return (latent, labels)[what]


# --- fits -------------------------------------------------------------------------------------------------------------


class _Cluster:
    """The shards of a fit on the workers of a cluster."""

    def __init__(self, client: Any, rows: Rows, features: Any, ranges: list[tuple[int, int]]) -> None:
        self.client = client
        self._requests: dict[int, bytes] = {}
        self._sent: dict[int, Any] = {}
        self._last: list[Any] = []
        self._make(rows, features, ranges)
        self._settle()

    def _make(self, rows: Rows, features: Any, ranges: list[tuple[int, int]]) -> None:
        """Lets each shard be made where its rows are, or else by the workers in turn; Dask makes it again elsewhere if need be."""
        import dask
        from distributed import futures_of

        self._await_workers()
        threads = self.client.nthreads()
        each = max(1, sum(threads.values()) // len(ranges))
        homes = {}
        futures = futures_of([block for blocks in rows.blocks.values() for block in blocks])
        if futures:
            homes = self.client.who_has(futures)
        workers = list(threads)
        self.shards = []
        for number, ((first, _), pieces) in enumerate(zip(ranges, rows.of(ranges))):
            blocks = [block for own in pieces.values() for block, *_ in own] if homes else []
            # A block has the graph of the whole collection with it.
            keys = (key for block in blocks for key in block.__dask_graph__().cull({block.key}).to_dict())
            held = Counter(home for key in keys for home in homes.get(key, ()))
            home = held.most_common(1)[0][0] if held else workers[number * len(workers) // len(ranges)]
            made = dask.delayed(_hold, pure=False)(pieces, first, rows.total[next(iter(rows.total))], features, each)
            self.shards.append(self.client.compute(made, workers=[home], allow_other_workers=True))

    def _settle(self) -> None:
        """Waits until every shard is somewhere."""
        self.homes: list[str] = []
        while len(self.homes) < len(self.shards):
            _awaited(self.client, self.shards, fetch=False)
            homes = self.client.who_has(self.shards)
            self.homes = [homes[shard.key][0] for shard in self.shards if homes[shard.key]]

    def _await_workers(self) -> None:
        begun = time.monotonic()
        while not self.client.nthreads():
            if time.monotonic() - begun > _PATIENCE:
                raise RuntimeError(_ALL_GONE)
            time.sleep(_LOOK / 10)

    def ask(self, number: int, request: bytes, setup: list[int]) -> bytes:
        """Carries a request to all shards. Those whose worker dies are made again by Dask, and asked again here."""
        kept = {*setup, number}
        self._requests = {old: own for old, own in {**self._requests, number: request}.items() if old in kept}
        self._sent = {old: own for old, own in self._sent.items() if old in kept}
        before: list[int] | None = None
        while True:
            try:
                answers = self._submit(_answer, number, self._carried(number), before)
                # A client sends a message every ten milliseconds. Releasing the last answers must not delay the request.
                self._last = []
                while len(answers) > _FAN_IN:
                    groups = (answers[i : i + _FAN_IN] for i in range(0, len(answers), _FAN_IN))
                    answers = [self.client.submit(shards.merge, *group, pure=False) for group in groups]
                merged = shards.merge(*_awaited(self.client, answers, self.homes))
                self._last = answers
                if merged is not None:
                    return merged
                # A shard was made anew, and needs the requests that its state follows from.
                before = setup
            except _Lost:
                self._again()

    def found(self, tasks: int, setup: list[int], model: DAIMC) -> list[Any]:
        """The results, shard by shard, on the workers."""
        light = self.client.scatter(model, broadcast=True, hash=False)
        before: list[int] | None = None
        while True:
            try:
                found = self._submit(_found, tasks, light, before)
                missing = [self.client.submit(_is_missing, own, pure=False) for own in found]
                if not any(_awaited(self.client, missing, self.homes)):
                    return found
                before = setup
            except _Lost:
                self._again()

    def _again(self) -> None:
        logger.warning("a worker has died; its partitions are computed again elsewhere")
        self._sent = {}
        self._await_workers()
        self._settle()

    def _submit(self, task: Any, number: int, content: Any, setup: list[int] | None) -> list[Any]:
        before = [self._carried(old) for old in setup or []]
        return [
            self.client.submit(task, shard, number, content, setup is not None, *before, workers=[home], pure=False)
            for shard, home in zip(self.shards, self.homes)
        ]

    def _carried(self, number: int) -> Any:
        """A request as an argument of tasks: itself if it is small, which saves a round trip, otherwise a copy on each worker."""
        if len(self._requests[number]) * len(self.shards) <= _WITH_TASKS:
            return self._requests[number]
        if number not in self._sent:
            try:
                self._sent[number] = self.client.scatter(self._requests[number], broadcast=True, hash=False)
            except (OSError, asyncio.TimeoutError):  # somebody went just now
                raise _Lost from None
        return self._sent[number]


class _Lost(Exception):
    """A worker that was asked is not there any more."""


_ALL_GONE = (
    f"all workers of the Dask cluster are gone, and none has come back within {_PATIENCE:.0f} s: start workers, with more "
    "memory if that is what they died of, and fit again"
)


def _awaited(client: Any, futures: list[Any], homes: Sequence[str] = (), fetch: bool = True) -> Any:
    """The results of futures, as long as there are workers, and those among them whom nobody else can replace."""
    from distributed import CancelledError, KilledWorker, TimeoutError, wait

    seen, patience = time.monotonic(), _FETCH
    while True:
        try:
            wait(futures, timeout=_LOOK)
            if fetch:
                # Not `client.gather`: a result that is lost now and can be made by its dead worker alone is awaited for ever.
                # What takes longer to come is large, and is begun anew: next time it has longer.
                patience *= 2
                return [future.result(timeout=patience / 2) for future in futures]
            failed = next((future for future in futures if future.status != "finished"), None)
            if failed is None:
                return None
            failed.result(timeout=_LOOK)
        except TimeoutError:
            pass
        except KilledWorker as error:
            raise RuntimeError(f"workers of the Dask cluster die again and again: {error}") from None
        except CancelledError:
            if not homes:
                raise
            raise _Lost from None
        workers = client.nthreads()
        seen = time.monotonic() if workers else seen
        if time.monotonic() - seen > _PATIENCE:
            raise RuntimeError(_ALL_GONE)
        if workers and not set(workers).issuperset(homes):
            raise _Lost


def fit(estimator: DAIMC, X: Any, mask: Any, client: Any) -> None:
    """What `DAIMC.fit` does with Dask collections."""
    import dask.array as da

    if estimator.view_slices is not None or estimator.id_column is not None:
        raise ValueError(f"view_slices and id_column are not for Dask collections: give a dictionary of {_KINDS}, IDs as index")
    given = Collection(X, mask)
    rows = given.rows(client)
    total = rows.total[given.names[0]]
    if total == 0:
        raise ValueError("there are no instances: every partition is empty")
    ranges = shards.cut(total, np.cumsum(given.partitions)[:-1].tolist())
    logger.info("%d instances in %d shard(s), on %d worker(s)", total, len(ranges), len(client.nthreads()))
    cluster = _Cluster(client, rows, given.features, ranges)
    del rows
    tasks, setup = shards.fitted(estimator, total, cluster.ask)
    found = cluster.found(tasks, setup, estimator._without_instances())
    sizes = [stop - start for start, stop in ranges]
    columns = {"embedding_": estimator.basis_[0].shape[1], "contributions_": len(estimator.view_names_)}
    for number, name in enumerate(("embedding_", "labels_", "confidence_", "contributions_")):
        dtype = np.int64 if name == "labels_" else np.float64
        own = [client.submit(itemgetter(number), place, pure=False) for place in found]
        shape = (columns[name],) if name in columns else ()
        blocks = [da.from_delayed(block, (size, *shape), dtype) for block, size in zip(own, sizes)]
        whole = da.concatenate(blocks).rechunk({0: tuple(given.partitions)})
        setattr(estimator, name, _framed(given, whole))
    if estimator.map_ is not None:
        estimator.map_ = _framed(given, da.from_array(estimator.map_, chunks=(tuple(given.partitions), 2)))
    labels: Any = estimator.labels_
    estimator.ids_ = da.arange(total, chunks=(tuple(given.partitions),)) if given.frame is None else labels.index
    given.frame = None


def place(estimator: DAIMC, X: Any, mask: Any, client: Any, what: int) -> Any:
    """What `DAIMC.transform` (0) and `DAIMC.predict` (1) do with Dask collections: lazily, block by block."""
    import dask
    import dask.array as da

    given = Collection(X, mask, estimator.view_names_)
    for name, features in given.features.items():
        if features != (estimator._model.features(name) or features):
            raise ValueError(f"view '{name}': its columns are not those of the fit in their order: select them by name first")
    rows = given.rows(client)
    edges = [0, *np.cumsum(given.partitions).tolist()]
    ranges = list(zip(edges, edges[1:]))
    light = dask.delayed(estimator._without_instances())
    columns = (estimator.basis_[0].shape[1],) if what == 0 else ()
    dtype = (np.float64, np.int64)[what]
    blocks = []
    for (start, stop), pieces in zip(ranges, rows.of(ranges)):
        shape = (stop - start, *columns)
        made = dask.delayed(_placed)(light, pieces, what) if stop > start else dask.delayed(np.empty)(shape, dtype)
        blocks.append(da.from_delayed(made, shape, dtype))
    return _framed(given, da.concatenate(blocks))


def _framed(given: Collection, whole: Any) -> Any:
    """Rows with the index of the frames, where views are frames."""
    if given.frame is None:
        return whole
    import dask
    import dask.dataframe as dd
    import pandas as pd

    kind = pd.Series if whole.ndim == 1 else pd.DataFrame
    # An optimised graph would not hold on to its futures.
    blocks = whole.to_delayed(optimize_graph=False).ravel()
    parts = [dask.delayed(kind)(block, index=index) for block, index in zip(blocks, given.index)]
    meta = kind(np.empty((0, *whole.shape[1:]), whole.dtype), index=given.frame._meta.index[:0])
    return dd.from_delayed(parts, meta=meta, verify_meta=False)
