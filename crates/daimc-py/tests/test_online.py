"""Online learning with `partial_fit`."""

import pickle
import subprocess

import numpy as np
import pandas as pd
import pytest

from daimc import DAIMC, datasets, metrics


@pytest.fixture(scope="module")
def data():
    return datasets.make_views(900, 3, [10, 12], noise=0.8, random_state=1)


def batch(data, start, stop, names=None):
    return {name: rows[start:stop] for name, rows in data.views.items() if names is None or name in names}


def learnt(data, size, **options):
    model = DAIMC(3, random_state=0, neighbours="off", assess=False)
    for start in range(0, 900, size):
        assert model.partial_fit(batch(data, start, start + size), **options) is model
    return model


def test_batches_lead_to_the_clusters_of_all(data):
    model = learnt(data, 150)
    assert metrics.accuracy(data.target, model.predict(data.views)) > 0.95
    # Attributes with a row for each instance are those of the last batch.
    assert len(model.labels_) == len(model.embedding_) == len(model.ids_) == len(model.contributions_) == 150
    assert np.array_equal(model.labels_, model.predict(batch(data, 750, 900)))
    assert set(model.update_.drift) == set(model.view_names_)
    assert all(len(clusters) == 3 for clusters in model.update_.cluster_drift.values())


def test_the_first_call_is_a_fit(data):
    one = DAIMC(3, random_state=0).partial_fit(batch(data, 0, 300))
    other = DAIMC(3, random_state=0).fit(batch(data, 0, 300))
    assert np.array_equal(one.labels_, other.labels_) and not hasattr(one, "update_")
    # A fit starts from scratch.
    one.partial_fit(batch(data, 300, 600)).fit(batch(data, 0, 300))
    assert np.array_equal(one.labels_, other.labels_) and not hasattr(one, "update_")


@pytest.mark.parametrize("neighbours", ["auto", "off"])
def test_a_cohort_is_placed_as_before_after_an_update(neighbours):
    cohort = datasets.make_views(320, 4, [40, 60, 30], noise=1.5, random_state=2)
    model = DAIMC(4, random_state=0, neighbours=neighbours, assess=False).fit(batch(cohort, 0, 256))
    before, new = model.labels_, model.predict(batch(cohort, 256, 320))
    model.partial_fit(batch(cohort, 256, 320))
    assert np.mean(model.labels_ == new) >= 0.98
    assert np.mean(model.predict(batch(cohort, 0, 256)) == before) >= 0.98


def test_a_batch_by_which_a_cluster_would_be_lost_is_refused():
    random = np.random.default_rng(0)

    def around(axis, count):
        return np.eye(8)[axis] + 0.1 + 0.15 * (random.random((count, 8)) - 0.5)

    model = DAIMC(2, random_state=0, neighbours="off", assess=False)
    model.fit([np.concatenate([around(0, 30), around(1, 30)])])
    labels = model.labels_
    with pytest.raises(ValueError, match="the batch was not learnt: the model would place instances of its own cluster"):
        model.partial_fit([around(6, 5000)])
    assert model.labels_ is labels and not hasattr(model, "update_")


def test_none_in_a_list_is_an_absent_view(data):
    first, second = data.views.values()
    model = DAIMC(3, random_state=0).fit([first[:300], second[:300]])
    before = [basis.copy() for basis in model.basis_]
    model.partial_fit([None, second[300:600]])
    moved = [np.linalg.norm(new - old) / np.linalg.norm(old) for new, old in zip(model.basis_, before)]
    assert moved[0] == 0 and moved[1] > 0
    assert np.isnan(model.contributions_[:, 0]).all()


def test_an_update_survives_pickle_and_files(data, tmp_path):
    model = learnt(data, 300)
    again = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "model.safetensors")
    loaded = DAIMC.load(tmp_path / "model.safetensors")
    new = batch(datasets.make_views(60, 3, [10, 12], noise=0.8, random_state=1), 0, 60)
    for one in (model, again, loaded):
        one.partial_fit(new)
    assert np.array_equal(model.embedding_, again.embedding_) and np.array_equal(model.embedding_, loaded.embedding_)


def test_a_new_view_needs_add_views(data):
    name, other = data.views
    model = DAIMC(3, random_state=0, neighbours="off").fit(batch(data, 0, 400, [name]))
    with pytest.raises(ValueError, match=f"view '{other}' is not part of the model"):
        model.partial_fit(batch(data, 400, 700))
    model.partial_fit(batch(data, 400, 700), add_views=[other])
    assert model.view_names_ == [name, other] and model.n_features_in_ == 22
    found = model.predict(batch(data, 700, 900, [other]))
    assert metrics.accuracy(data.target[700:], found) > 0.9


def test_repeated_ids_are_refused_and_row_numbers_are_not(data):
    def tables(start, stop, index):
        return {name: pd.DataFrame(rows[start:stop], index=index) for name, rows in data.views.items()}

    names = [f"p{i}" for i in range(900)]
    model = DAIMC(3, random_state=0).partial_fit(tables(0, 300, names[:300]))
    model.partial_fit(tables(300, 600, names[300:600]))
    for start in (0, 299, 599):
        with pytest.raises(ValueError, match=f"already learnt from instance 'p{start}'"):
            model.partial_fit(tables(start, start + 1, names[start : start + 1]))
    model.partial_fit(tables(600, 900, names[600:]))
    # The default index of pandas is the same for every batch.
    model = DAIMC(3, random_state=0).partial_fit(tables(0, 300, None))
    assert len(model.partial_fit(tables(300, 600, None)).labels_) == 300


def test_an_instance_missing_from_every_view_keeps_its_row(data):
    model = DAIMC(3, random_state=0, handle_unseen="keep").fit(batch(data, 0, 300))
    new = batch(data, 300, 400)
    new = {name: np.where(np.arange(100)[:, None] == 7, np.nan, rows) for name, rows in new.items()}
    for _ in range(2):
        model.partial_fit(new)
        assert model.labels_[7] == -1 and (np.delete(model.labels_, 7) >= 0).all()
    new = {name: np.where(np.arange(100)[:, None] == 9, 50 - 100 * rows, rows) for name, rows in new.items()}
    assert 9 in model.partial_fit(new).update_.unexplained


@pytest.mark.parametrize("factor", [0, -0.5, 1.5, float("nan")])
def test_a_memory_factor_out_of_range_is_an_error(data, factor):
    model = DAIMC(3, random_state=0).fit(batch(data, 0, 300))
    with pytest.raises(ValueError, match="memory_factor"):
        model.partial_fit(batch(data, 300, 600), memory_factor=factor)
    assert len(model.labels_) == 300


def test_invalid_batches_are_refused(data):
    model = DAIMC(3, random_state=0).fit(batch(data, 0, 300))
    with pytest.raises(TypeError, match="memory_factor = 'all'"):
        model.partial_fit(batch(data, 300, 600), memory_factor="all")
    with pytest.raises(TypeError, match="add_views = 3"):
        model.partial_fit(batch(data, 300, 600), add_views=3)
    with pytest.raises(TypeError, match="pass X as a dictionary"):
        model.partial_fit(list(data.views.values()), add_views=["c"])
    with pytest.raises(ValueError, match="expected 10, found 12"):
        model.partial_fit(dict.fromkeys(data.views, data.views["view1"][:5]))


def test_the_command_line_gives_the_same(data, tmp_path):
    import os

    program = os.environ.get("DAIMC_CLI")
    if program is None:
        pytest.skip("no program: set DAIMC_CLI")
    model = DAIMC(3, random_state=0).fit(batch(data, 0, 300))
    model.save(tmp_path / "model.safetensors")
    arguments = []
    for name, rows in data.views.items():
        np.save(tmp_path / f"{name}.npy", rows[300:600])
        arguments += ["--view", f"{name}={tmp_path / name}.npy"]
    folder = tmp_path / "next"
    subprocess.run([program, "update", tmp_path / "model.safetensors", *arguments, "-o", folder, "-q"], check=True)
    model.partial_fit(batch(data, 300, 600))
    assert np.array_equal(DAIMC.load(folder / "model.safetensors").embedding_, model.embedding_)
    # The model of one pass has no instances; it assigns new ones, and can be updated.
    once = tmp_path / "once"
    subprocess.run([program, "fit", *arguments, "-k", "3", "--online", "--batch", "150", "-o", once, "-q"], check=True)
    loaded = DAIMC.load(once / "model.safetensors")
    assert len(loaded.labels_) == 0 and loaded.basis_[0].shape == (10, 3)
    labels = loaded.predict(batch(data, 300, 600))
    assert metrics.accuracy(data.target[300:600], labels) > 0.9
    loaded.partial_fit(batch(data, 600, 900))
    assert len(loaded.labels_) == 300
