"""DAIMC on Dask workers, compared with other methods on the same data and the same workers.

    pip install 'daimc[dask]' dask-ml==2025.1.0 scikit-learn==1.9.1 'dask[dataframe]==2026.8.0' distributed==2026.8.0
    python cluster.py [--instances N] [--clusters K] [--workers 1 2]

The data are complete, in single precision: two views of 128 features with planted clusters, one chunk for each worker, already on
the workers before the measurement starts. Workers are processes with one thread each; the numerical libraries of numpy use one
thread, too. DAIMC is fitted without neighbourhoods. K-means of dask-ml, on the concatenated views, uses the largest number of
workers. `MiniBatchNMF` of scikit-learn is not distributed: it is fitted on one worker, to all rows after subtracting the minimum
of each feature, and K-means clusters its components. The transfer of the rows to that worker is not measured. Both have their
default settings.

Prints two tables in Markdown. The first has medians over the iterations: the sweep is the time of the slowest shard, the engine
the remaining time until the client has the merged reply, U and B the time until the next request. Memory is the largest increase
of a worker over its memory with its rows loaded, divided by the size of these rows; it needs the peak that Linux records. On a
busy machine the speed-up means little.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from importlib.metadata import version
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

# Before numpy reads them; workers inherit them.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import dask.array as da  # noqa: E402
import numpy as np  # noqa: E402
from distributed import Client, LocalCluster, futures_of, wait  # noqa: E402

from daimc import DAIMC, _dask, metrics, shards  # noqa: E402

FEATURES = 128
VIEWS = ("first", "second")
SEED = 0

#: Standard deviation of the cluster centres, and the number of features in which a centre differs from 0; the features differ
#: between views.
SEPARATION = 0.6
INFORMATIVE = 24

#: Instances that are generated at once.
BLOCK = 4096


# --- data -------------------------------------------------------------------------------------------------------------


def blocks_of(start: int, stop: int, rows: np.ndarray, block: Callable[[int], np.ndarray]) -> np.ndarray:
    """Generates rows `start..stop` block by block, so that they do not depend on the partition."""
    for number in range(start // BLOCK, -(-stop // BLOCK)):
        first, last = max(start, number * BLOCK), min(stop, (number + 1) * BLOCK)
        rows[first - start : last - start] = block(number)[first - number * BLOCK : last - number * BLOCK]
    return rows


def truth_of(start: int, stop: int, clusters: int) -> np.ndarray:
    """The clusters of instances; some are four times as large as others."""
    weights = np.linspace(1, 4, clusters)
    weights /= weights.sum()
    truth = np.empty(stop - start, dtype=np.int64)
    return blocks_of(start, stop, truth, lambda number: np.random.default_rng([SEED, 1, number]).choice(clusters, BLOCK, p=weights))


def rows_of(view: int, start: int, stop: int, clusters: int) -> np.ndarray:
    """Rows of a view, generated on the worker."""
    centres = np.zeros((clusters, FEATURES), dtype=np.float32)
    rng = np.random.default_rng([SEED, 2, view])
    for own in centres:
        own[rng.choice(FEATURES, INFORMATIVE, replace=False)] = rng.normal(0, SEPARATION, INFORMATIVE)

    def block(number: int) -> np.ndarray:
        rng = np.random.default_rng([SEED, 3, view, number])
        truth = truth_of(number * BLOCK, (number + 1) * BLOCK, clusters)
        rows = rng.standard_normal((BLOCK, FEATURES), dtype=np.float32)
        rows += centres[truth]
        return rows

    return blocks_of(start, stop, np.empty((stop - start, FEATURES), dtype=np.float32), block)


class Data(NamedTuple):
    views: dict[str, Any]
    truth: np.ndarray
    bytes: int


def planted(client: Client, instances: int, clusters: int) -> Data:
    """The views, with one chunk on each worker, which a shard uses in place."""
    ranges = shards.ranges(instances, len(client.nthreads()))
    views = {}
    for view, name in enumerate(VIEWS):
        futures = [
            client.submit(rows_of, view, start, stop, clusters, workers=[worker], pure=False)
            for (start, stop), worker in zip(ranges, client.nthreads())
        ]
        wait(futures)
        shapes = [(stop - start, FEATURES) for start, stop in ranges]
        views[name] = da.concatenate([da.from_delayed(future, shape, np.float32) for future, shape in zip(futures, shapes)])
    return Data(views, truth_of(0, instances, clusters), len(VIEWS) * instances * FEATURES * 4)


# --- measurements of the workers --------------------------------------------------------------------------------------


def begin_timing() -> None:
    """Records the time of each answer of the shards of this process."""
    if not hasattr(shards, "spent"):
        answer = shards.Shard.answer

        def timed(self: shards.Shard, number: int, request: bytes, setup: Any) -> bytes:
            begun = time.perf_counter()
            reply = answer(self, number, request, setup)
            shards.spent.append((number, time.perf_counter() - begun, len(reply)))  # type: ignore[attr-defined]
            return reply

        shards.Shard.answer = timed  # type: ignore[method-assign]
    shards.spent = []  # type: ignore[attr-defined]


def end_timing() -> list[tuple[int, float, int]]:
    return list(shards.spent)  # type: ignore[attr-defined]


def forget_peak() -> int:
    """Resets the peak memory of this process (Linux), and returns its current memory in bytes."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return memory("VmRSS")


def memory(what: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what)) * 1024


def peak() -> int:
    return memory("VmHWM")


class Asked(NamedTuple):
    number: int
    begun: float
    wall: float
    request: int
    reply: int


@contextmanager
def watched() -> Any:
    """Records the time of every request, from the client's call to the merged reply."""
    asked: list[Asked] = []
    ask = _dask._Cluster.ask

    def timed(self: Any, number: int, request: bytes, setup: list[int]) -> bytes:
        begun = time.perf_counter()
        reply = ask(self, number, request, setup)
        asked.append(Asked(number, begun, time.perf_counter() - begun, len(request), len(reply)))
        return reply

    _dask._Cluster.ask = timed  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        _dask._Cluster.ask = ask  # type: ignore[method-assign]


# --- methods ----------------------------------------------------------------------------------------------------------


class Fitted(NamedTuple):
    name: str
    workers: int
    seconds: float
    labels: np.ndarray
    memory: float
    iterations: int


def measured(client: Client, data: Data, name: str, fit: Callable[[], tuple[np.ndarray, int]], holders: int) -> Fitted:
    """Time and memory of a fit: the largest increase of a worker, relative to the rows of one of `holders` workers."""
    before = client.run(forget_peak)
    begun = time.perf_counter()
    labels, iterations = fit()
    seconds = time.perf_counter() - begun
    after = client.run(peak)
    grown = max(after[worker] - before[worker] for worker in before)
    return Fitted(name, holders, seconds, labels, grown / (data.bytes / holders), iterations)


class Iterations(NamedTuple):
    """Medians over the iterations of a fit: seconds, and bytes."""

    sweep: float
    engine: float
    solve: float
    request: int
    reply: int
    merged: int

    def whole(self) -> float:
        return self.sweep + self.engine + self.solve


def daimc(client: Client, data: Data, clusters: int, iterations: int, workers: int) -> tuple[Fitted, Iterations]:
    client.run(begin_timing)
    model = DAIMC(clusters, random_state=SEED, neighbours="off", assess=False, max_iter=iterations)

    def fit() -> tuple[np.ndarray, int]:
        labels: Any = model.fit(data.views).labels_
        return labels.compute(), model.n_iter_

    with watched() as asked:
        fitted = measured(client, data, "DAIMC", fit, workers)
    answers: dict[int, list[tuple[float, int]]] = {}
    for own in client.run(end_timing).values():
        for number, seconds, size in own:
            answers.setdefault(number, []).append((seconds, size))
    # The iterations are the longest run of consecutive requests of the same size.
    runs: list[list[Asked]] = []
    for one in asked:
        if runs and runs[-1][-1].request == one.request:
            runs[-1].append(one)
        else:
            runs.append([one])
    sweeps = max(runs, key=len)
    sweep = {one.number: max(seconds for seconds, _ in answers[one.number]) for one in sweeps}
    found = Iterations(
        median(sweep.values()),
        median(one.wall - sweep[one.number] for one in sweeps),
        median(later.begun - one.begun - one.wall for one, later in pairwise(sweeps)),
        sweeps[0].request,
        max(size for _, size in answers[sweeps[0].number]),
        sweeps[0].reply,
    )
    return fitted, found


def k_means(client: Client, data: Data, clusters: int, workers: int) -> Fitted:
    from dask_ml.cluster import KMeans  # type: ignore[import-untyped]

    def fit() -> tuple[np.ndarray, int]:
        whole = da.concatenate(list(data.views.values()), axis=1).rechunk({1: -1}).persist()
        model = KMeans(clusters, random_state=SEED).fit(whole)
        return np.asarray(model.labels_.compute()), int(model.n_iter_)

    return measured(client, data, "K-means (dask-ml)", fit, workers)


def factorised(rows: np.ndarray, clusters: int) -> tuple[np.ndarray, int]:
    """K-means clusters of the components of `MiniBatchNMF`, computed in this process. Modifies the rows."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import MiniBatchNMF

    rows -= rows.min(axis=0)
    model = MiniBatchNMF(clusters, random_state=SEED)
    components = model.fit_transform(rows)
    return KMeans(clusters, n_init=10, random_state=SEED).fit_predict(components), int(model.n_iter_)


def nmf(client: Client, data: Data, clusters: int) -> Fitted:
    worker = next(iter(client.nthreads()))
    side_by_side = da.concatenate(list(data.views.values()), axis=1).rechunk(-1).persist(workers=[worker])
    (rows,) = futures_of(side_by_side)

    def fit() -> tuple[np.ndarray, int]:
        labels, iterations = client.submit(factorised, rows, clusters, workers=[worker], pure=False).result()
        return labels, iterations

    wait(side_by_side)
    return measured(client, data, "MiniBatchNMF (scikit-learn)", fit, 1)


# --- tables -----------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--instances", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--max-iter", type=int, default=100)
    parser.add_argument("--daimc-only", action="store_true")
    given = parser.parse_args()
    instances, clusters, most = given.instances, given.clusters, max(given.workers)
    warnings.simplefilter("ignore")
    packages = ("daimc", "dask", "distributed", "dask-ml", "scikit-learn", "numpy")
    print(", ".join(f"{name} {version(name)}" for name in packages))
    print(f"{instances} × {{{FEATURES}, {FEATURES}}}, single precision, K = {clusters}; {os.cpu_count()} processors\n")
    iterating: dict[int, Iterations] = {}
    fits: list[Fitted] = []
    truth = np.empty(0)
    for workers in given.workers:
        # A worker that ends after the scheduler would log an error.
        silent = {"silence_logs": logging.CRITICAL, "dashboard_address": None}
        settings = {"threads_per_worker": 1, "processes": True, "memory_limit": 0, **silent}
        with LocalCluster(n_workers=workers, **settings) as local, Client(local) as client:
            data = planted(client, instances, clusters)
            truth = data.truth
            fitted, iterating[workers] = daimc(client, data, clusters, given.max_iter, workers)
            fits.append(fitted)
            if workers == most and not given.daimc_only:
                fits.append(k_means(client, data, clusters, workers))
                fits.append(nmf(client, data, clusters))
    columns = ["workers", "iteration, ms", "speed-up", "sweep, ms", "engine, ms", "U and B, ms", "not the sweep"]
    columns += ["request, kB", "reply, kB", "merged, kB"]
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    first = iterating[given.workers[0]]
    for workers, own in iterating.items():
        print(
            f"| {workers} | {1e3 * own.whole():.0f} | {first.whole() / own.whole():.2f} | {1e3 * own.sweep:.0f} | "
            f"{1e3 * own.engine:.0f} | {1e3 * own.solve:.1f} | {1 - own.sweep / own.whole():.0%} | "
            f"{own.request / 1e3:.1f} | {own.reply / 1e3:.1f} | {own.merged / 1e3:.1f} |"
        )
    print("\n| method | workers | fit, s | iterations | AC | NMI | memory of a worker, added, of its rows |")
    print("|---|---|---|---|---|---|---|")
    for fitted in fits:
        scores = metrics.scores(truth, fitted.labels)
        print(
            f"| {fitted.name} | {fitted.workers} | {fitted.seconds:.1f} | {fitted.iterations} | {scores['ac']:.3f} | "
            f"{scores['nmi']:.3f} | {fitted.memory:.2f} |"
        )


if __name__ == "__main__":
    main()
