"""Selection of the number of clusters."""

import dataclasses
import logging
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy import sparse

from daimc import DAIMC, Selection

QUICK = {"n_clusters": range(3, 6), "n_resamples": 3}


def selected(views, params=None, **options):
    return DAIMC(**{"random_state": 0, **(params or {})}).select(views, **{**QUICK, **options})


def assert_same(one, other):
    assert one.n_clusters == other.n_clusters and one.reason == other.reason
    for name, column in one.candidates.items():
        np.testing.assert_array_equal(column, other.candidates[name], err_msg=name)


def test_the_planted_number_is_recommended(gaps):
    _, _, views, _ = gaps
    found = DAIMC(random_state=0).select(views, n_clusters=range(2, 9), n_resamples=5)
    assert isinstance(found, Selection)
    assert found.n_clusters == 4 and found.confidence > 0.9 and found.n_resamples == 5
    assert "resamples agree on the 4 clusters" in found.reason
    columns = found.candidates
    assert columns["n_clusters"].tolist() == list(range(2, 9))
    assert {column.shape for column in columns.values()} == {(7,)}
    np.testing.assert_allclose(columns["score"], columns["stability"] * columns["explained"], rtol=1e-12)
    assert (columns["score_error"] >= 0).all() and columns["votes"].sum() == pytest.approx(1.0)
    assert columns["votes"][2] == found.confidence


def test_stability_decides_if_no_instance_is_present_in_two_views(easy):
    found = selected(easy[0][:1])
    assert np.isnan(found.candidates["explained"]).all() and np.isnan(found.candidates["explained_error"]).all()
    np.testing.assert_array_equal(found.candidates["score"], found.candidates["stability"])
    assert "stability alone decides" in found.reason
    assert str(found).splitlines()[1].split()[4] == "-"


def test_every_form_of_views_gives_the_same_selection(gaps):
    views, mask, with_nan, _ = gaps
    first = selected(with_nan)
    assert_same(first, selected(views, mask=mask))
    assert_same(first, selected({"a": np.asfortranarray(with_nan[0]), "b": with_nan[1]}))
    slices = {"view_slices": [slice(0, 30), slice(30, None)]}
    assert_same(first, selected(np.hstack(with_nan), slices))
    complete = selected(views, {"scale": "unit"})
    rows = [sparse.csr_matrix(view) for view in views]
    np.testing.assert_allclose(
        selected(rows, {"scale": "unit"}).candidates["score"], complete.candidates["score"], rtol=1e-6
    )


def test_tables_are_joined_by_id_with_a_warning_for_views_that_share_none(gaps):
    pandas = pytest.importorskip("pandas")
    views, mask, with_nan, _ = gaps
    ids = np.array([f"p{i:03}" for i in range(300)])
    tables = [pandas.DataFrame(view[here], index=ids[here]) for view, here in zip(views, mask.T)]
    assert selected(tables).n_clusters == selected(with_nan).n_clusters == 4
    tables[1].index = [f"q{name}" for name in tables[1].index]
    with pytest.warns(UserWarning, match="view 'view0' shares no ID with another view") as warned:
        selected(tables)
    assert {warning.filename for warning in warned} == {__file__}


@pytest.mark.filterwarnings("ignore:::mudata")
def test_a_mudata_is_read_and_not_changed(gaps):
    mudata = pytest.importorskip("mudata")
    from anndata import AnnData

    views, _, _, _ = gaps
    data = mudata.MuData({name: AnnData(view.astype(np.float32)) for name, view in zip("ab", views)})
    before = list(data.obs.columns)
    assert selected(data).n_clusters == 4
    assert list(data.obs.columns) == before and "X_daimc" not in data.obsm


def test_the_estimator_is_not_changed(easy):
    views, _ = easy
    estimator = DAIMC(n_clusters=7, view_slices=[slice(0, 30), slice(30, None)], random_state=0)
    before = dict(vars(estimator))
    estimator.select(np.hstack(views), **QUICK)
    assert vars(estimator) == before


def test_the_recommended_estimator_is_ready_to_be_fitted(gaps):
    _, _, views, _ = gaps
    found = selected(views, {"scale": "min-max", "random_state": np.random.default_rng(3), "n_jobs": 1})
    seed = found.estimator.random_state
    assert isinstance(seed, int)
    assert found.estimator.get_params() == DAIMC(4, scale="min-max", random_state=seed, n_jobs=1).get_params()
    assert not hasattr(found.estimator, "labels_")
    assert found.estimator.fit(views).labels_.max() == 3
    assert_same(found, selected(views, {"scale": "min-max", "random_state": seed}))


def test_the_options_of_the_estimator_are_used(gaps):
    _, _, views, _ = gaps
    plain = selected(views)
    for params in ({"scale": "z-score"}, {"random_state": 1}, {"preset": "paper"}, {"n_components": 6}):
        other = selected(views, params)
        assert not np.array_equal(other.candidates["stability"], plain.candidates["stability"]) or not np.array_equal(
            other.candidates["explained"], plain.candidates["explained"]
        ), params
    assert not np.array_equal(selected(views, hidden=0.9).candidates["score"], plain.candidates["score"])
    # An explicit n_components is kept, even if it equals one of the numbers of clusters.
    params = {"n_components": 3}
    one, other = selected(views, params, n_clusters=[3, 4]), selected(views, params, n_clusters=[4, 5])
    assert one.candidates["score"][1] == other.candidates["score"][0]


def test_order_repetition_and_threads_do_not_matter(gaps):
    _, _, views, _ = gaps
    first = selected(views, {"n_jobs": 1})
    assert_same(first, selected(views, {"n_jobs": 5}))
    assert_same(first, selected(views, n_clusters=np.array([5, 3, 4, 4])))
    assert_same(first, selected(views, n_clusters=iter([3, 4, 5])))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_clusters": 4}, TypeError, r"n_clusters = 4: must be the numbers to choose among, such as range\(2, 13\)"),
        ({"n_clusters": [3]}, ValueError, r"n_clusters = \[3\]: give at least two numbers of clusters"),
        ({"n_clusters": []}, ValueError, r"n_clusters = \[\]: give at least two"),
        ({"n_clusters": [1, 2]}, ValueError, "n_clusters = 1: numbers to choose among go from 2 to below the number of"),
        ({"n_clusters": [2, 300]}, ValueError, "n_clusters = 300: .* the number of instances, 300"),
        ({"n_clusters": [2, 0]}, ValueError, "n_clusters = 0: must be at least 1"),
        ({"n_clusters": [2, 2.5]}, TypeError, "n_clusters = 2.5: must be a whole number"),
        ({"n_resamples": 1}, ValueError, "n_resamples = 1: must be at least 2"),
        ({"n_resamples": -1}, ValueError, "n_resamples = -1: out of range"),
        ({"n_resamples": 2.5}, TypeError, "n_resamples = 2.5: must be a whole number"),
        ({"hidden": 0}, ValueError, "hidden = 0: must be a share from 0.01 to 1"),
        ({"hidden": float("nan")}, ValueError, "hidden = NaN: must be a share"),
        ({"hidden": "half"}, TypeError, "hidden = 'half': must be a number"),
        ({"mask": np.ones((3, 2), dtype=bool)}, ValueError, "mask"),
    ],
)
def test_bad_arguments_are_named(easy, options, error, message):
    with pytest.raises(error, match=message):
        selected(easy[0], **options)


def test_bad_parameters_of_the_estimator_are_named(easy):
    with pytest.raises(ValueError, match="init is an array, which fits one number of clusters only"):
        selected(easy[0], {"init": np.ones((300, 3))})
    with pytest.raises(ValueError, match="n_components = 0: must be at least 1"):
        selected(easy[0], {"n_components": 0})
    with pytest.raises(TypeError, match="random_state = 'x'"):
        selected(easy[0], {"random_state": "x"})


def test_a_selection_is_read_only_and_survives_pickle(easy):
    found = selected(easy[0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.n_clusters = 3
    with pytest.raises(ValueError, match="read-only"):
        found.candidates["score"][0] = 1.0
    again = pickle.loads(pickle.dumps(found))
    assert_same(found, again)
    assert again.estimator.get_params() == found.estimator.get_params()


def test_a_selection_prints_its_candidates(easy, monkeypatch):
    found = selected(easy[0])
    assert repr(found) == f"Selection(n_clusters=4, confidence={found.confidence:.2f}, tried=[3, 4, 5])"
    lines = str(found).splitlines()
    assert lines[0].split() == ["n_clusters", "stability", "explained", "score", "votes"]
    assert [line.split()[0] for line in lines[1:4]] == ["3", "4", "5"]
    assert [line.endswith("  <") for line in lines[1:4]] == [False, True, False]
    score = found.candidates["score"][1], found.candidates["score_error"][1]
    assert "{:.3f} ± {:.3f}".format(*score) in lines[2]
    assert lines[4].startswith("Recommended: 4 clusters, by") and lines[4].endswith(f"{found.reason}.")

    pytest.importorskip("pandas")
    frame = found.to_frame()
    assert frame.index.name == "n_clusters" and frame.index.tolist() == [3, 4, 5]
    assert frame.columns.tolist() == list(found.candidates)[1:]
    assert frame.loc[4, "score"] == found.candidates["score"][1]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_frame needs pandas: pip install 'daimc\[frames\]'"):
        found.to_frame()


def test_a_selection_is_drawn_with_its_errors(easy):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    found = selected(easy[0])
    ax = found.plot()
    bars = dict(zip(ax.get_legend_handles_labels()[1], ax.containers))
    assert list(bars) == ["stability", "explained", "score"]
    for name, container in bars.items():
        line, _, (segments,) = container
        np.testing.assert_array_equal(line.get_ydata(), found.candidates[name])
        half = [(end[1] - start[1]) / 2 for start, end in segments.get_segments()]
        np.testing.assert_allclose(half, found.candidates[f"{name}_error"], atol=1e-12)
    assert any(list(line.get_xdata()) == [4, 4] for line in ax.lines)
    alone = selected(easy[0][:1]).plot(ax=pyplot.subplots()[1])
    assert alone.get_legend_handles_labels()[1] == ["stability", "score"]
    pyplot.close("all")


def test_fits_are_shown_and_logged(easy, capsys, caplog):
    with caplog.at_level(logging.DEBUG, logger="daimc"):
        selected(easy[0], {"verbose": True})
    shown = capsys.readouterr()
    assert shown.out == "" and "fit 9/9, 4 clusters" in shown.err
    lines = [record.message for record in caplog.records]
    assert lines[:9] == [f"fit {done} of 9" for done in range(1, 10)] and lines[9].startswith("4 clusters: resamples")
    selected(easy[0])
    assert capsys.readouterr().err == ""


INTERRUPTED = """
    import os, signal, threading
    import numpy as np
    from daimc import DAIMC
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(20_000, 100)).astype(np.float32) for _ in range(2)]
    estimator = DAIMC(random_state=0, runs=1_000_000)
    threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        estimator.select(views, [19, 20])
    except KeyboardInterrupt:
        print("interrupted")
    else:
        print("finished")
"""


def test_ctrl_c_stops_a_selection_in_the_middle_of_a_fit():
    code = textwrap.dedent(INTERRUPTED)
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True).stdout
    # A fit with that many runs would take days.
    assert output.strip() == "interrupted"


def test_an_exception_from_a_handler_of_the_log_ends_the_selection(easy):
    class Full(logging.Handler):
        def emit(self, record):
            raise RuntimeError("the disk is full")

    logger, handler = logging.getLogger("daimc"), Full()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with pytest.raises(RuntimeError, match="the disk is full"):
            selected(easy[0])
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
