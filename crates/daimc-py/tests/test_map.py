"""The map of the instances."""

import pickle
from copy import copy, deepcopy

import numpy as np
import pytest
from sklearn.base import clone

from daimc import DAIMC, datasets


def fitted(**options):
    data = datasets.make_views(300, 3, [8, 9], noise=0.5, random_state=0)
    return DAIMC(3, random_state=0, assess=False, **options).fit(data.views)


def test_the_nearest_on_the_map_are_of_the_same_cluster():
    model = fitted()
    assert model.map_.shape == (300, 2) and np.isfinite(model.map_).all()
    squares = ((model.map_[:, None] - model.map_) ** 2).sum(axis=2)
    nearest = squares.argsort(axis=1)[:, 1:11]
    assert (model.labels_[nearest] == model.labels_[:, None]).mean() > 0.9


def test_clusters_do_not_depend_on_the_map_nor_the_map_on_threads():
    model, without = fitted(), fitted(map=False)
    assert without.map_ is None
    np.testing.assert_array_equal(model.labels_, without.labels_)
    np.testing.assert_array_equal(model.map_, fitted(n_jobs=3).map_)


def test_the_map_is_computed_when_it_is_first_used():
    for options in ({}, {"neighbours": "off"}):
        model = fitted(**options)
        assert "map_" not in vars(model) and model._model.map is None
        shown = model.map_
        assert model.map_ is shown
        np.testing.assert_array_equal(model._model.map, shown)
        # A fit forgets the map of the one before.
        model.set_params(map=False).fit(datasets.make_views(60, 3, [8, 9], random_state=1).views)
        assert model.map_ is None
    assert not hasattr(DAIMC(3), "map_")


@pytest.mark.parametrize("neighbours", ["off", "refine"])
def test_every_copy_has_the_same_map_whether_it_was_used_before_or_not(neighbours, tmp_path):
    expected = fitted(neighbours=neighbours).map_

    def saved(model):
        model.save(tmp_path / "model.safetensors")
        return DAIMC.load(tmp_path / "model.safetensors")

    for same in (copy, deepcopy, saved, lambda model: pickle.loads(pickle.dumps(model))):
        before, after = fitted(neighbours=neighbours), fitted(neighbours=neighbours)
        after.map_  # noqa: B018
        for model in (before, after):
            np.testing.assert_array_equal(same(model).map_, expected)
            np.testing.assert_array_equal(model.map_, expected)
    assert not hasattr(clone(after), "map_")


def test_the_report_shows_the_map(tmp_path):
    data = datasets.make_views(60, 3, [8, 9], random_state=0)
    model = DAIMC(3, random_state=0, assess=False).fit(data.views)
    model.report(tmp_path / "report.html", data.views)
    assert "A layout of the graph that the clusters were cut from" in (tmp_path / "report.html").read_text()
    assert model._model.map is not None


def test_a_file_keeps_the_map(tmp_path):
    model = fitted()
    model.save(tmp_path / "model.safetensors")
    loaded = DAIMC.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.map_, model.map_)
    assert loaded.map is True


def test_an_instance_missing_from_every_view_is_not_on_the_map():
    data = datasets.make_views(60, 3, [8, 9], random_state=0)
    views = [np.vstack([np.full((1, view.shape[1]), np.nan), view]) for view in data.views.values()]
    model = DAIMC(3, random_state=0, assess=False, handle_unseen="keep").fit(views)
    assert np.isnan(model.map_[0]).all() and np.isfinite(model.map_[1:]).all()
