"""Metrics, data and plots."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from daimc import DAIMC, datasets, metrics, plots, simulate_missing


def test_metrics_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 500)
    labels = np.where(rng.random(500) < 0.3, rng.integers(0, 6, 500), truth)
    assert metrics.ari(truth, labels) == pytest.approx(adjusted_rand_score(truth, labels))
    for average in ("arithmetic", "geometric", "max"):
        expected = normalized_mutual_info_score(truth, labels, average_method=average)
        assert metrics.nmi(truth, labels, average) == pytest.approx(expected)


def test_labels_may_have_any_names():
    truth = np.array(["cat", "cat", "dog", "dog", "dog", "bird"])
    labels = [10, 10, -3, -3, 10, 7]
    assert metrics.accuracy(truth, labels) == pytest.approx(5 / 6)
    assert metrics.purity(truth, labels) == pytest.approx(5 / 6)
    assert metrics.matching(truth, labels) == {10: "cat", -3: "dog", 7: "bird"}
    assert metrics.scores(truth, truth) == pytest.approx(dict.fromkeys(metrics.scores(truth, truth), 1.0))
    # Two pairs share both class and label; four pairs share a label, and four a class.
    assert metrics.pairwise_f(truth, labels) == pytest.approx(0.5)


def test_metrics_refuse_invalid_input():
    with pytest.raises(ValueError, match="expected 2 values, found 3"):
        metrics.accuracy([0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match="nothing was given"):
        metrics.scores([], [])
    with pytest.raises(ValueError, match="expected a vector"):
        metrics.ari([[0, 1]], [0, 1])
    with pytest.raises(ValueError, match="average = 'min'"):
        metrics.nmi([0, 1], [0, 1], "min")


def test_digit_is_there(digit):
    assert {name: view.shape for name, view in digit.views.items()} == {
        "fac": (2000, 216),
        "fou": (2000, 76),
        "kar": (2000, 64),
        "pix": (2000, 240),
        "zer": (2000, 47),
    }
    assert np.bincount(digit.target).tolist() == [200] * 10
    assert list(datasets.load_digit(["mor"]).views) == ["mor"]
    with pytest.raises(ValueError, match="no view 'mri'"):
        datasets.load_digit(["mri"])


def test_digit_with_half_of_every_view_missing_is_clustered(digit):
    scores = []
    for seed in range(3):
        mask = simulate_missing(digit.views, 0.5, random_state=seed)
        labels = DAIMC(10, random_state=seed).fit_predict(digit.views, mask=mask)
        scores.append(metrics.accuracy(digit.target, labels))
    # The mean of 30 seeds is 0.82; see docs/performance.md.
    assert np.mean(scores) > 0.78


def test_made_views_follow_their_random_state():
    one = datasets.make_views(50, 3, [4, 5], random_state=1)
    same = datasets.make_views(50, 3, [4, 5], random_state=1)
    other = datasets.make_views(50, 3, [4, 5], random_state=2)
    assert [view.shape for view in one.views.values()] == [(50, 4), (50, 5)]
    np.testing.assert_array_equal(one.views["view1"], same.views["view1"])
    assert (one.views["view1"] != other.views["view1"]).all()


def test_impossible_missing_rates_are_refused(easy):
    with pytest.raises(ValueError, match="a common share of at most 0.5 works"):
        simulate_missing(easy[0], 0.9)
    with pytest.raises(ValueError, match="3 shares for 2 views"):
        simulate_missing(easy[0], [0.1, 0.1, 0.1])


@pytest.fixture
def axes():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot.subplots()[1]
    pyplot.close("all")


def test_missingness_counts_every_combination(gaps, axes):
    views, mask, with_nan, _ = gaps
    drawn = plots.missingness(with_nan, ax=axes)
    assert drawn is axes
    widths = [int(bar.get_width()) for bar in axes.patches]
    patterns = [tuple(row) for row in mask]
    assert widths == sorted((patterns.count(p) for p in set(patterns)), reverse=True)
    assert [label.get_text() for label in axes.get_yticklabels()][0] == "view0  view1"
    by_mask = plots.missingness({"a": views[0], "b": views[1]}, mask)
    assert [int(bar.get_width()) for bar in by_mask.patches] == widths


def test_the_convergence_is_the_history(gaps, axes):
    model = DAIMC(4, random_state=0).fit(gaps[2])
    plots.convergence(model, ax=axes)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), model.objective_history_)


def test_the_embedding_shows_every_instance_once(gaps, axes):
    _, _, views, target = gaps
    model = DAIMC(4, random_state=0).fit(views)
    plots.embedding(model, ax=axes)
    assert [len(dots.get_offsets()) for dots in axes.collections] == np.bincount(model.labels_).tolist()
    other = plots.embedding(model, labels=np.array(list("abcd"))[target])
    assert [text.get_text() for text in other.get_legend().get_texts()] == list("abcd")
    with pytest.raises(ValueError, match="labels has 2 entries for 300 instances"):
        plots.embedding(model, labels=[0, 1])
    single = plots.embedding(DAIMC(1, random_state=0).fit(views))
    assert len(single.collections) == 1


def test_the_features_are_the_most_relevant(gaps, axes):
    model = DAIMC(4, random_state=0).fit(gaps[2])
    plots.features(model, "view1", n=5, ax=axes)
    best = np.argsort(-model.feature_relevance_[1])[:5]
    assert [label.get_text() for label in axes.get_yticklabels()] == [str(i) for i in best]
    with pytest.raises(ValueError, match="view 'x' is not part of the model"):
        plots.features(model, "x")


def test_the_contributions_are_means_over_what_is_shown(gaps, axes):
    model = DAIMC(4, random_state=0).fit(gaps[2])
    plots.contributions(model, ax=axes)
    drawn = axes.images[0].get_array()
    assert drawn.shape == (4, 2)
    own = model.contributions_[model.labels_ == 2]
    np.testing.assert_allclose(drawn[2], np.nanmean(own, axis=0))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["view0", "view1"]
    del model.contributions_
    with pytest.raises(ValueError, match="has no contributions: fit it"):
        plots.contributions(model)
