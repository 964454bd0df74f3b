"""Results are in the order of the input tables, and carry their index."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from conftest import clusters
from daimc import DAIMC, baselines, metrics, plots


def fit(views, mask=None, **options):
    return DAIMC(**{"n_clusters": 4, "random_state": 0, **options}).fit(views, mask=mask)


def indexes(n):
    return {
        "text": pd.Index([f"p{i:03}" for i in range(n)], name="patient")[::-1],
        "numbers": pd.Index(np.arange(n) * 7 + 5),
        "nullable numbers": pd.Index(np.arange(n)[::-1], dtype="Int64"),
        "none": pd.RangeIndex(n),
        "days": pd.date_range("2020-01-01", periods=n, freq="D"),
        "days of a time zone": pd.date_range("2020-01-01", periods=n, freq="h", tz="Europe/Paris"),
        "two levels": pd.MultiIndex.from_product([["ward a", "ward b"], range(n // 2)], names=["ward", "bed"]),
        "categories": pd.CategoricalIndex([f"c{i}" for i in range(n)]),
    }


KINDS = list(indexes(2))


def tables(views, index):
    return {name: pd.DataFrame(view, index=index) for name, view in zip("ab", views)}


@pytest.mark.parametrize("kind", KINDS)
def test_tables_with_one_index_give_results_in_its_order(gaps, kind):
    views, mask, with_nan, target = gaps
    index = indexes(300)[kind]
    by_nan, whole = tables(with_nan, index), tables(views, index)
    by_mask = pd.DataFrame(mask, index=index, columns=["a", "b"]).sample(frac=1, random_state=0)
    plain = fit(with_nan)
    for model, tables_of_fit in ((fit(by_nan), by_nan), (fit(whole, by_mask), whole)):
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_array_equal(model.embedding_, plain.embedding_)
        assert list(model.ids_) == list(index)
        frame = tables_of_fit["a"].assign(cluster=model.labels_)
        assert metrics.accuracy(target, frame["cluster"]) > 0.98
    model = fit(by_nan)
    np.testing.assert_array_equal(model.predict(by_nan), plain.predict(with_nan))
    np.testing.assert_array_equal(model.transform(by_nan), plain.transform(with_nan))
    np.testing.assert_array_equal(model.contributions(by_nan), plain.contributions(with_nan))
    for name, filled in zip("ab", plain.impute(with_nan)):
        completed = model.impute(by_nan)[name]
        pd.testing.assert_index_equal(completed.index, index)
        np.testing.assert_array_equal(completed, filled)


@pytest.mark.parametrize("kind", KINDS)
def test_returned_frames_carry_the_index(gaps, kind):
    views, _, with_nan, _ = gaps
    index = indexes(300)[kind]
    both = tables(with_nan, index)
    model = DAIMC(4, random_state=0).set_output(transform="pandas")
    for frame in (model.fit_transform(both), model.transform(both)):
        pd.testing.assert_index_equal(frame.index, index)
        assert list(frame.columns) == ["daimc0", "daimc1", "daimc2", "daimc3"]
    # Rows of the second table only come after those of the first.
    some = {"a": both["a"].iloc[100:], "b": tables(views, index)["b"]}
    later = index[100:].append(index[:100])
    frame = model.transform(some)
    assert list(frame.index) == list(later) == list(model.instance_ids(some))
    assert frame.index.names == index.names and frame.index.nlevels == index.nlevels
    one = DAIMC(4, random_state=0, view_slices=[slice(0, 30), slice(30, None)]).set_output(transform="pandas")
    together = pd.concat(both.values(), axis=1).set_axis([f"f{i}" for i in range(80)], axis=1)
    pd.testing.assert_index_equal(one.fit_transform(together).index, index)
    pd.testing.assert_index_equal(one.transform(together).index, index)


@pytest.mark.parametrize("kind", KINDS)
def test_one_dataframe_keeps_its_index(gaps, kind, tmp_path):
    _, _, with_nan, _ = gaps
    index = indexes(300)[kind]
    slices = [slice(0, 30), slice(30, None)]
    frame = pd.DataFrame(np.hstack(with_nan), index=index, columns=[f"f{i}" for i in range(80)])
    model = fit(frame, view_slices=slices)
    np.testing.assert_array_equal(model.embedding_, fit(with_nan).embedding_)
    assert list(model.ids_) == list(index) == list(model.instance_ids(frame))
    pd.testing.assert_index_equal(model.impute(frame).index, index)
    model.save(tmp_path / "model.safetensors")
    assert len(DAIMC.load(tmp_path / "model.safetensors").ids_) == 300


def test_one_dataframe_may_have_rows_of_the_same_name(gaps):
    frame = pd.DataFrame(np.hstack(gaps[2]), index=["p", "q"] * 150)
    model = fit(frame, view_slices=[slice(0, 30), slice(30, None)])
    assert model.ids_.tolist() == ["p", "q"] * 150


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_id_column_of_one_table_is_no_feature(gaps, library):
    _, _, with_nan, _ = gaps
    ids = np.arange(300)[::-1]
    frame = pd.DataFrame(np.hstack(with_nan), columns=[f"f{i}" for i in range(80)])
    frame.insert(40, "who", ids)
    if library == "polars":
        frame = pl.from_pandas(frame)
    slices = {"a": [f"f{i}" for i in range(30)], "b": slice(30, None)}
    model = fit(frame, view_slices=slices, id_column="who")
    np.testing.assert_array_equal(model.embedding_, fit(with_nan).embedding_)
    assert model.ids_.tolist() == ids.tolist() and model.n_features_in_ == 80
    completed = model.impute(frame)
    assert list(completed.columns) == list(frame.columns)
    assert completed["who"].to_list() == ids.tolist()
    with pytest.raises(ValueError, match="X has no column 'who'"):
        model.predict(frame.drop(columns="who") if library == "pandas" else frame.drop("who"))


def test_another_order_is_that_of_first_appearance(gaps):
    _, _, with_nan, _ = gaps
    index = pd.Index([f"p{i:03}" for i in range(300)])
    both = tables(with_nan, index)
    # These rows are missing from the first view, but its table still determines the order.
    gone = both["a"].index[both["a"].isna().all(axis=1)]
    assert len(gone) > 20
    turned = fit({"a": both["a"], "b": both["b"].sample(frac=1, random_state=0)})
    assert turned.ids_.tolist() == index.tolist()
    some = fit({"a": both["a"].drop(gone[:10]), "b": both["b"]})
    assert some.ids_.tolist() == [*index.drop(gone[:10]), *gone[:10]]
    by_column = {
        name: pl.from_pandas(table.rename_axis("who").reset_index()) for name, table in both.items()
    }
    assert fit(by_column, id_column="who").ids_.tolist() == index.tolist()


def test_a_saved_model_has_the_same_order(gaps, tmp_path):
    both = tables(gaps[2], [f"p{i:03}" for i in range(300)])
    model = fit(both)
    model.save(tmp_path / "model.safetensors")
    again = DAIMC.load(tmp_path / "model.safetensors")
    assert again.ids_.tolist() == model.ids_.tolist()
    np.testing.assert_array_equal(again.labels_, model.labels_)


def test_ids_twice_in_a_table_are_refused_everywhere(gaps):
    both = tables(gaps[2], [f"p{i:03}" for i in range(300)])
    model = fit(both)
    twice = {"a": pd.concat([both["a"], both["a"].iloc[[5]]])}
    for call in (fit, model.predict, model.instance_ids, model.impute, plots.missingness):
        with pytest.raises(ValueError, match="view 'a': the ID 'p005' is in row 5 and in row 300"):
            call(twice)


def hidden(kind):
    """Views from all of which instances 3 and 200 are missing, as arrays, tables, or one matrix; and the mask."""
    views, target = clusters()
    gone = [3, 200]
    with_nan = [view.copy() for view in views]
    for view in with_nan:
        view[gone] = np.nan
    with_nan[0][10] = np.nan
    if kind == "arrays":
        return with_nan, None, target
    if kind == "one matrix":
        return np.hstack(with_nan), None, target
    index = pd.Index([f"p{i:03}" for i in range(300)])
    if kind == "one DataFrame":
        return pd.DataFrame(np.hstack(with_nan), index=index, columns=[f"f{i}" for i in range(80)]), None, target
    if kind == "tables":
        return [pd.DataFrame(view, index=index) for view in with_nan], None, target
    mask = pd.DataFrame(True, index=index, columns=["view0", "view1"])
    mask.iloc[gone] = False
    mask.iloc[10, 0] = False
    if kind == "tables, by mask":
        return [pd.DataFrame(view, index=index) for view in views], mask, target
    return views, mask.to_numpy(), target


HIDDEN = ["arrays", "arrays, by mask", "one matrix", "one DataFrame", "tables", "tables, by mask"]


@pytest.mark.parametrize("kind", HIDDEN)
def test_an_instance_missing_from_every_view_is_an_error(kind):
    X, mask, _ = hidden(kind)
    slices = {"view_slices": [slice(0, 30), slice(30, None)]}
    with pytest.raises(ValueError, match="instance 'p?0?0?3' is missing in every view; 2 such.*handle_unseen='keep'"):
        fit(X, mask, **slices)
    kept = fit(X, mask, handle_unseen="keep", **slices).set_params(handle_unseen="error")
    for call in (kept.predict, kept.transform, kept.contributions, kept.impute, kept.score):
        with pytest.raises(ValueError, match="missing in every view"):
            call(X, mask=mask)


@pytest.mark.parametrize("kind", HIDDEN)
def test_an_instance_missing_from_every_view_can_be_kept(kind, tmp_path):
    X, mask, target = hidden(kind)
    gone = np.isin(np.arange(300), [3, 200])
    params = {"handle_unseen": "keep", "view_slices": [slice(0, 30), slice(30, None)]}
    model = fit(X, mask, **params)
    seen = [view[~gone] for view in hidden("arrays")[0]]
    plain = fit(seen)
    assert model.labels_.dtype == np.int64
    assert (model.labels_[gone] == -1).all() and (model.confidence_[gone] == 0).all()
    assert np.isnan(model.embedding_[gone]).all() and np.isnan(model.contributions_[gone]).all()
    assert model.ids_.shape == (300,) and metrics.accuracy(target[~gone], model.labels_[~gone]) > 0.98
    for name in ("labels_", "confidence_", "embedding_", "contributions_"):
        np.testing.assert_array_equal(getattr(model, name)[~gone], getattr(plain, name))
    assert model.objective_ == plain.objective_

    # The same holds for new data,
    assert len(model.instance_ids(X, mask=mask)) == 300
    labels, rows, shares = (getattr(model, name)(X, mask=mask) for name in ("predict", "transform", "contributions"))
    assert (labels[gone] == -1).all() and np.isnan(rows[gone]).all() and np.isnan(shares[gone]).all()
    np.testing.assert_array_equal(labels[~gone], plain.predict(seen))
    np.testing.assert_array_equal(rows[~gone], plain.transform(seen))
    np.testing.assert_array_equal(shares[~gone], plain.contributions(seen))
    assert model.score(X, mask=mask) == plain.score(seen)
    completed = model.impute(X, mask=mask)
    whole = np.hstack(completed) if isinstance(completed, list) else np.asarray(completed)
    assert np.isnan(whole[gone]).all()
    np.testing.assert_array_equal(whole[~gone], np.hstack(plain.impute(seen)))

    # and for files and other results.
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.labels_, model.labels_)
    model.save(tmp_path / "model.safetensors")
    loaded = DAIMC.load(tmp_path / "model.safetensors")
    assert [str(one) for one in loaded.ids_] == [str(one) for one in model.ids_[~gone]]
    np.testing.assert_array_equal(loaded.labels_, model.labels_[~gone])
    start = np.abs(np.random.default_rng(0).normal(size=(300, 4)))
    np.testing.assert_array_equal(
        fit(X, mask, init=start, **params).embedding_[~gone], fit(seen, init=start[~gone]).embedding_
    )
    chosen = DAIMC(random_state=0, **params).select(X, [3, 4], mask=mask, n_resamples=2)
    assert str(chosen) == str(DAIMC(random_state=0).select(seen, [3, 4], n_resamples=2))


def test_baselines_and_plots_keep_instances_missing_from_every_view():
    pytest.importorskip("matplotlib").use("Agg")
    X, _, _ = hidden("tables")
    with pytest.raises(ValueError, match="missing in every view"):
        baselines.Baseline("wsnmf", 4, random_state=0).fit(X)
    other = baselines.Baseline("wsnmf", 4, random_state=0, handle_unseen="keep").fit(X)
    assert np.flatnonzero(other.labels_ == -1).tolist() == [3, 200] and len(other.ids_) == 300
    assert np.flatnonzero(np.isnan(other.embedding_).all(axis=1)).tolist() == [3, 200]
    model = fit(X, handle_unseen="keep")
    drawn = plots.embedding(model)
    assert sum(len(dots.get_offsets()) for dots in drawn.collections) == 298
    assert plots.contributions(model).images[0].get_array().shape == (4, 2)
    patterns = [label.get_text() for label in plots.missingness(X).get_yticklabels()]
    assert "·····  ·····" in patterns


def test_mudata_keeps_instances_missing_from_every_view():
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    X, _, _ = hidden("tables")
    names = {name: [f"{name}{i}" for i in range(table.shape[1])] for name, table in zip("ab", X)}
    data = mudata.MuData({name: anndata.AnnData(table.set_axis(names[name], axis=1)) for name, table in zip("ab", X)})
    model = fit(data, handle_unseen="keep")
    assert model.ids_.tolist() == data.obs_names.tolist()
    assert data.obs["daimc"].isna().to_numpy().nonzero()[0].tolist() == [3, 200]
    assert np.isnan(data.obsm["X_daimc"][[3, 200]]).all() and data.obs["daimc_confidence"].isna().sum() == 2


def test_handle_unseen_must_be_error_or_keep(easy):
    with pytest.raises(ValueError, match="handle_unseen = 'drop': must be 'error' or 'keep'"):
        fit(easy[0], handle_unseen="drop")
