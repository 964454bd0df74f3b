"""The map of the instances."""

import numpy as np

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
