"""Plots: nothing is cut off or hidden when they are saved."""

import numpy as np
import pytest

from daimc import DAIMC, Selection, datasets, plots

pyplot = pytest.importorskip("matplotlib.pyplot")

AWKWARD = ["$x^2 & _", "_hidden\tname\n", "a" * 200, "ÄÖÜ " * 50, "$" + "\\frac{" * 30]


@pytest.fixture(autouse=True)
def closed():
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def named(number):
    return f"{AWKWARD[number % len(AWKWARD)]}{number}"


class Fitted:
    """The attributes of a model that plots use."""

    def __init__(self, clusters, views, n=400, seed=0):
        rng = np.random.default_rng(seed)
        self.view_names_ = [named(view) for view in range(views)]
        self.labels_ = np.arange(n) % clusters
        self.embedding_ = np.eye(clusters)[self.labels_] + rng.random((n, clusters))
        self.map_ = 8 * rng.random((clusters, 2))[self.labels_] + rng.random((n, 2))
        self.contributions_ = rng.uniform(-1, 1, (n, views))
        self.feature_relevance_ = [rng.random(50) for _ in range(views)]
        self.objective_history_ = 1e-7 * np.arange(clusters, 0, -1)

    def feature_names(self, view):
        return [named(number) for number in range(50)]


def selection(numbers):
    rng = np.random.default_rng(0)
    columns = {"n_clusters": np.arange(2, 2 + numbers)}
    for name in ("stability", "explained", "score"):
        columns[name], columns[f"{name}_error"] = rng.random(numbers), rng.random(numbers)
    return Selection(2 + numbers // 2, 0.9, "", columns, 10, DAIMC())


def missing(views):
    rng = np.random.default_rng(0)
    mask = rng.random((200, views)) < 0.7
    mask[:, 0] |= ~mask.any(axis=1)
    return {named(view): np.where(mask[:, [view]], rng.random((200, 2)), np.nan) for view in range(views)}


PICTURES = {
    "missingness": lambda clusters, views, ax: plots.missingness(missing(views), ax=ax),
    "convergence": lambda clusters, views, ax: plots.convergence(Fitted(clusters, views), ax=ax),
    "embedding": lambda clusters, views, ax: plots.embedding(Fitted(clusters, views), ax=ax),
    "pca": lambda clusters, views, ax: plots.embedding(Fitted(clusters, views), kind="pca", ax=ax),
    "classes": lambda clusters, views, ax: plots.embedding(
        Fitted(clusters, views), [named(i % clusters) for i in range(400)], ax=ax
    ),
    "features": lambda clusters, views, ax: plots.features(Fitted(clusters, views), ax=ax),
    "contributions": lambda clusters, views, ax: plots.contributions(Fitted(clusters, views), ax=ax),
    "selection": lambda clusters, views, ax: plots.selection(selection(clusters), ax=ax),
}


def assert_whole(ax):
    """Asserts that everything drawn is inside the figure, and that the legend does not overlap the axes."""
    figure = ax.figure
    figure.savefig("/dev/null", format="png")
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    for artist in [*figure.axes, *(child for axes in figure.axes for child in axes.get_default_bbox_extra_artists())]:
        box = artist.get_tightbbox(renderer)
        if box is None or not box.width or not artist.get_visible():
            continue
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, (artist, box, (width, height))
    own = ax.get_window_extent(renderer)
    assert own.width > 100 and own.height > 40, own
    legend = ax.get_legend()
    if legend is not None:
        assert not legend.get_window_extent(renderer).overlaps(own)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("views", [1, 20])
@pytest.mark.parametrize("clusters", [2, 40])
@pytest.mark.parametrize("picture", PICTURES)
def test_nothing_is_cut_off(picture, clusters, views):
    assert_whole(PICTURES[picture](clusters, views, None))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("picture", PICTURES)
def test_nothing_is_cut_off_on_existing_axes(picture):
    ax = pyplot.subplots()[1]
    assert_whole(PICTURES[picture](3, 3, ax))
    figure = pyplot.figure(layout="tight")
    PICTURES[picture](3, 3, figure.subplots())
    assert "Tight" in type(figure.get_layout_engine()).__name__


def test_clusters_have_different_markers_or_colours():
    ax = plots.embedding(Fitted(100, 1))
    looks = {
        (tuple(dots.get_facecolor()[0]), dots.get_paths()[0].vertices.tobytes()) for dots in ax.collections
    }
    assert len(looks) == 100
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [str(cluster) for cluster in range(100)]
    assert plots.embedding(Fitted(2, 1), np.arange(400)).get_legend() is None


def test_long_names_keep_their_ends():
    ax = plots.features(Fitted(2, 1))
    texts = [label.get_text() for label in ax.get_yticklabels()]
    assert all(len(text.replace("\\$", "$")) <= 31 for text in texts)
    assert any("…" in text and text.startswith("aaa") and text[-1].isdigit() for text in texts)


def test_rare_combinations_are_counted_together():
    data = missing(20)
    ax = plots.missingness(data)
    assert sum(bar.get_width() for bar in ax.patches) == 200 and len(ax.patches) == 31
    assert [label.get_text() for label in ax.get_yticklabels()][-1].endswith(" others")
    assert len(ax.get_legend().get_texts()) == 20


def test_plots_of_a_fit():
    data = datasets.make_views(60, 3, [4, 5], random_state=0)
    assert_whole(plots.embedding(DAIMC(3, random_state=0, assess=False).fit(data.views)))


def points(ax):
    return np.vstack([dots.get_offsets() for dots in ax.collections])


def test_the_map_is_plotted_if_there_is_one():
    model = Fitted(2, 1)
    order = np.argsort(model.labels_, kind="stable")
    np.testing.assert_array_equal(points(plots.embedding(model)), model.map_[order])
    pca = points(plots.embedding(model, kind="pca"))
    assert not np.allclose(pca, model.map_[order])
    model.map_ = None
    np.testing.assert_array_equal(points(plots.embedding(model)), pca)
    with pytest.raises(ValueError, match="has no map: fit it with map=True, or use kind='pca'"):
        plots.embedding(model, kind="map")
    with pytest.raises(ValueError, match="kind = 'umap': must be 'map' or 'pca'"):
        plots.embedding(model, kind="umap")
