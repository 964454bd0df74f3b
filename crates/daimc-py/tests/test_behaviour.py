"""Side effects of a fit: threads, signals, logs, progress."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from daimc import DAIMC, baselines


def test_the_number_of_threads_does_not_matter(gaps):
    _, _, views, _ = gaps
    views = [np.tile(view, (5, 1)) + np.arange(1500)[:, None] * 1e-4 for view in views]
    models = [DAIMC(4, random_state=0, n_jobs=jobs).fit(views) for jobs in (1, 2, 5, -1, -2, None)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.embedding_, models[0].embedding_)
        np.testing.assert_array_equal(model.transform(views), models[0].transform(views))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_threads_run_during_a_fit():
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(20_000, 100)).astype(np.float32) for _ in range(2)]
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.monotonic()
    DAIMC(10, random_state=0, tol=0, max_iter=30, n_jobs=1, verbose=False).fit_predict(views)
    ended = time.monotonic()
    done.set()
    thread.join()
    during = [moment for moment in ticks if begun < moment < ended]
    # There would be none if the fit held the GIL.
    assert len(during) > 5 and ended - begun > 0.05


INTERRUPTED = """
    import os, signal
    import numpy as np
    from daimc import DAIMC, baselines
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(20_000, 100)).astype(np.float32) ** 2 for _ in range(2)]
    steps = []
    class Handler(__import__("logging").Handler):
        def emit(self, record):
            steps.append(record)
            if len(steps) == 3:
                os.kill(os.getpid(), signal.SIGINT)
    log = __import__("logging").getLogger("daimc")
    log.setLevel("DEBUG")
    log.addHandler(Handler())
    model = {model}
    try:
        model.fit(views)
    except KeyboardInterrupt:
        print("interrupted", len(steps), hasattr(model, "labels_"))
    else:
        print("finished")
"""


@pytest.mark.parametrize(
    "model",
    [
        "DAIMC(20, random_state=0, tol=0, max_iter=100_000, runs=3)",
        "baselines.Baseline('wsnmf', 20, random_state=0, options=dict(tol=0, max_iter=100_000))",
    ],
)
def test_ctrl_c_stops_a_fit_within_an_iteration(model):
    code = textwrap.dedent(INTERRUPTED).format(model=model)
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True).stdout
    word, steps, fitted = output.split()
    assert word == "interrupted" and fitted == "False"
    # Of 100 000: those that had started or were already reported when the signal arrived.
    assert int(steps) < 100


def test_an_exception_from_a_handler_of_the_log_ends_the_fit(easy):
    class Full(logging.Handler):
        def emit(self, record):
            raise RuntimeError("the disk is full")

    logger = logging.getLogger("daimc")
    handler = Full()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with pytest.raises(RuntimeError, match="the disk is full"):
            DAIMC(4, random_state=0).fit(easy[0])
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def test_iterations_are_logged(easy, caplog):
    with caplog.at_level(logging.DEBUG, logger="daimc"):
        model = DAIMC(4, random_state=0).fit(easy[0])
    lines = [record.message for record in caplog.records]
    assert sum("iteration" in line and "objective" in line for line in lines) >= model.n_iter_
    assert f"converged after {model.n_iter_} iterations" in lines[-1]
    assert {record.name for record in caplog.records} == {"daimc"}


def test_verbose_shows_progress_on_standard_error_only(easy, capsys):
    DAIMC(4, random_state=0, runs=2, verbose=True).fit(easy[0])
    shown = capsys.readouterr()
    assert shown.out == ""
    # Runs are concurrent: either may be the last to report.
    assert "/2, iteration" in shown.err and "converged" in shown.err and "\r" not in shown.err
    DAIMC(4, random_state=0).fit(easy[0])
    assert capsys.readouterr().err == ""


def test_a_notebook_shows_one_line_that_is_overwritten(easy, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    DAIMC(4, random_state=0, verbose=True).fit(easy[0])
    shown = capsys.readouterr().err
    assert shown.startswith("\r") and shown.count("\n") == 1 and "█" in shown


def test_a_fit_needs_no_more_processes_or_threads_than_before(easy):
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("threads are counted in /proc")
    DAIMC(4, random_state=0).fit(easy[0])
    before = len(os.listdir("/proc/self/task"))
    for _ in range(5):
        DAIMC(4, random_state=0, n_jobs=4).fit(easy[0]).predict(easy[0])
    deadline = time.monotonic() + 5
    while len(os.listdir("/proc/self/task")) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/task")) <= before


@pytest.mark.parametrize("method", sorted(baselines.METHODS))
def test_every_baseline_runs(gaps, method):
    views, mask, _, target = gaps
    views = [np.abs(view) for view in views]
    quick = {"multinmf": {"rounds": 3, "iterations": 20}, "mic": {"rounds": 3, "iterations": 20}}
    model = baselines.Baseline(method, 4, random_state=0, options=quick.get(method, {}))
    labels = model.fit_predict(views, mask=mask)
    assert labels.shape == (300,) and set(labels) <= set(range(4))
    assert model.embedding_.shape[0] == 300
    np.testing.assert_array_equal(labels, model.fit_predict(views, mask=mask))


def test_options_of_baselines_are_checked(easy):
    views, _ = easy

    def fit(**options):
        return baselines.Baseline(**{"n_clusters": 4, "random_state": 0, **options}).fit(views)

    with pytest.raises(ValueError, match="there is no method 'best'; there are wsnmf"):
        fit(method="best")
    with pytest.raises(ValueError, match="method 'opimc' has no option 'gamma'; it has scale"):
        fit(method="opimc", options={"gamma": 1})
    with pytest.raises(TypeError, match="block = 'x': must be a whole number"):
        fit(method="opimc", options={"block": "x"})
    with pytest.raises(ValueError, match="takes no values below zero"):
        fit(method="mic")
    with pytest.raises(TypeError, match="X is one matrix"):
        baselines.Baseline().fit(views[0])
    one, other = (fit(method="single", options={"view": v}).embedding_ for v in (0, 1))
    assert not np.array_equal(one, other)
