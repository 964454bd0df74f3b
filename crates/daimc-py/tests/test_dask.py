"""Dask collections on a real cluster: the bits of one process, and workers that die."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from held import KINDS, LEAF, TOTAL, accuracy, alone, estimator, planted, same

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
_dask = pytest.importorskip("daimc._dask")


@contextmanager
def cluster(workers):
    """A scheduler and so many worker processes that nobody starts again, each with one thread."""
    settings = {"n_workers": 0, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as local, distributed.Client(local) as client:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", local.scheduler_address]
        started = [
            subprocess.Popen([*command, "--no-nanny", "--no-dashboard", "--nthreads", "1"], stderr=subprocess.DEVNULL)
            for _ in range(workers)
        ]
        try:
            client.wait_for_workers(workers, timeout=60)
            yield client
        finally:
            for process in started:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def two():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as local, distributed.Client(local) as client:
        yield client


def collection(matrix, chunk):
    """A Dask array of any matrix, in row chunks."""
    blocks = [
        da.from_array(matrix[start : start + chunk], chunks=-1, asarray=False, name=False)
        for start in range(0, matrix.shape[0], chunk)
    ]
    return da.concatenate(blocks)


def collections(views, chunk=LEAF):
    return {name: collection(view, chunk) for name, view in views.items()}


def pids(client):
    return list(client.run(os.getpid).values())


@pytest.mark.parametrize("kind", KINDS)
def test_two_workers_give_the_bits_of_one_process(two, kind):
    views, masks, _ = planted(kind)
    one = alone(kind)
    given = None if masks is None else {name: da.from_array(mask, chunks=9000) for name, mask in masks.items()}
    many = estimator().fit(collections(views), mask=given)
    assert isinstance(many.labels_, da.Array) and many.labels_.chunks == ((LEAF,) * 3 + (TOTAL - 3 * LEAF,),)
    same(one, many)
    lazily = many.transform(collections(views), mask=given)
    assert isinstance(lazily, da.Array)
    np.testing.assert_array_equal(lazily.compute(), one.transform(views, mask=masks))
    np.testing.assert_array_equal(many.predict(collections(views), mask=given).compute(), one.predict(views, mask=masks))


@pytest.mark.parametrize("workers", [1, 4])
def test_any_number_of_workers_gives_the_same_bits(workers):
    views, _, _ = planted("gaps")
    one = alone("gaps")
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    ) as local, distributed.Client(local) as client:
        same(one, estimator().fit(collections(views), client=client))


def test_neighbourhoods_are_gathered_by_the_client(two):
    some = {name: view[: LEAF + 1000] for name, view in planted("gaps")[0].items()}
    settings = {"neighbours": "auto", "map": False}
    one = estimator(**settings).fit(some)
    many = estimator(**settings).fit(collections(some, 9000))
    assert one.neighbours_[0] == "auto" and many.neighbours_ == one.neighbours_
    same(one, many)
    np.testing.assert_array_equal(many.predict(collections(some, 9000)).compute(), one.predict(some))


def test_chunks_of_any_and_of_unknown_size_give_the_same_bits(two):
    views, _, _ = planted("dense")
    one = alone("dense")
    uneven = {"first": collection(views["first"], 23_456), "second": collection(views["second"], 9_999)}
    same(one, estimator().fit(uneven))
    unknown = {name: array[array[:, 0] > -1e9] for name, array in uneven.items()}
    assert np.isnan(unknown["first"].chunks[0][0])
    many = estimator().fit({name: two.persist(array) for name, array in unknown.items()})
    same(one, many)
    assert many.labels_.chunks[0][0] == 23_456


def test_shards_are_to_be_made_where_their_rows_are(two, monkeypatch):
    views, _, _ = planted("dense")
    compute, homes = two.compute, []

    def noted(*collections, workers=None, **settings):
        homes.extend(workers or [])
        return compute(*collections, workers=workers, **settings)

    monkeypatch.setattr(two, "compute", noted)
    first, second = two.nthreads()
    order = [first, second, second, first]
    held = {}
    for name, view in views.items():
        rows = [view[start : start + LEAF] for start in range(0, TOTAL, LEAF)]
        futures = [two.scatter(part, workers=[worker]) for part, worker in zip(rows, order)]
        held[name] = da.concatenate([da.from_delayed(own, part.shape, part.dtype) for own, part in zip(futures, rows)])
    same(alone("dense"), estimator().fit(held, client=two))
    assert homes == order


def test_frames_are_joined_by_index(two, caplog):
    views, _, target = planted("gaps")
    ids = np.array([f"i{number:05}" for number in range(TOTAL)])
    frames = []
    for number, view in enumerate(views.values()):
        own = pd.DataFrame(view, index=ids, columns=[f"f{column}" for column in range(view.shape[1])])
        own = own[~np.isnan(view).all(axis=1)]
        frames.append(dd.from_pandas(own, npartitions=3 + number))
    caplog.set_level("INFO", logger="daimc")
    model = estimator().fit(frames)
    assert "joined by their index, which takes one shuffle" in caplog.text
    labels = model.labels_.compute()
    assert sorted(labels.index) == ids.tolist() and isinstance(model.labels_, dd.Series)
    expected = accuracy(target, alone("gaps").labels_)
    assert abs(accuracy(target, labels[ids].to_numpy()) - expected) < 0.01
    assert model.feature_names("view0")[0] == "f0"
    again = model.predict(frames).compute()
    assert (again[ids] == labels[ids]).mean() > 0.999
    twice = dd.concat([frames[0], frames[0]])
    with pytest.raises(ValueError, match="is in two rows of a view"):
        estimator().fit([twice, frames[1]])


def test_what_does_not_fit_together_is_told(two):
    views, _, _ = planted("dense")
    some = collections(views)
    for X, kind, words in [
        ({"first": some["first"], "second": views["second"]}, TypeError, "give all of them as Dask"),
        ({"first": some["first"], "second": some["second"][:-1]}, ValueError, "'second' has 51151 rows, view 'first' has 51152"),
        ({"first": some["first"][:, 0]}, ValueError, "expected a matrix"),
    ]:
        with pytest.raises(kind, match=words):
            estimator().fit(X)
    mixed = {"first": da.concatenate([some["first"][:LEAF].astype("f4"), some["first"][LEAF:]], allow_unknown_chunksizes=True)}
    mixed["first"] = mixed["first"].map_blocks(lambda block: block.astype("f4") if len(block) < LEAF else block)
    with pytest.raises(ValueError, match="parts of view 'first' differ in how they are stored"):
        estimator().fit(mixed)


def killing(monkeypatch, victims, when):
    """Lets processes be killed while a request is on its way, the first for which `when` is true."""
    ask, done = _dask._Cluster.ask, []

    def disturbed(self, number, request, setup):
        if not done and when(number, setup):
            done.append(number)
            threading.Timer(0.02, lambda: [os.kill(pid, signal.SIGKILL) for pid in victims]).start()
            time.sleep(0.01)
        return ask(self, number, request, setup)

    monkeypatch.setattr(_dask._Cluster, "ask", disturbed)
    return done


def test_options_map_contributions_and_report_are_those_of_one_process(two, tmp_path):
    views, _, _ = planted("gaps")
    for params in ({"runs": 2, "map": True}, {"view_weights": "learned"}):
        settings = {"max_iter": 5, **params}
        one, many = estimator(**settings).fit(views), estimator(**settings).fit(collections(views))
        same(one, many)
        if one.map_ is not None:
            np.testing.assert_array_equal(np.asarray(many.map_), one.map_)
    many.report(tmp_path / "report.html", collections(views))
    assert (tmp_path / "report.html").stat().st_size > 100_000


@pytest.mark.parametrize("when", ["iterations", "initialisation"])
def test_a_worker_that_is_killed_is_replaced_without_a_trace(monkeypatch, caplog, when):
    views, _, _ = planted("dense")
    undisturbed = estimator(tol=1e-9).fit(views)
    counted = []

    def now(number, setup):
        if when == "initialisation":
            return number == 6
        counted.append(number) if len(setup) >= 3 else None
        return len(counted) == 8

    with cluster(2) as client:
        done = killing(monkeypatch, pids(client)[:1], now)
        same(undisturbed, estimator(tol=1e-9).fit(collections(views), client=client))
    assert done and "a worker has died" in caplog.text


def test_without_workers_there_is_one_error(monkeypatch):
    views, _, _ = planted("dense")
    monkeypatch.setattr(_dask, "_PATIENCE", 3.0)
    with cluster(2) as client:
        done = killing(monkeypatch, pids(client), lambda number, setup: len(setup) >= 3)
        with pytest.raises(RuntimeError, match="all workers of the Dask cluster are gone"):
            estimator(tol=1e-9).fit(collections(views), client=client)
        assert done
