"""Cells that are missing inside rows."""

import numpy as np
import pandas as pd
import pytest
from daimc import DAIMC, baselines, metrics
from scipy import sparse


def fit(views, random_state=0, mask=None, **options):
    return DAIMC(n_clusters=4, random_state=random_state, **options).fit(views, mask=mask)


@pytest.fixture
def lacking(gaps):
    """Views with missing rows and a tenth of the other cells missing, the complete views, and the classes."""
    views, mask, with_nan, truth = gaps
    rng = np.random.default_rng(3)
    some = [np.where(rng.random(view.shape) < 0.1, np.nan, view) for view in with_nan]
    for view, whole in zip(some, with_nan):  # no row loses all its cells
        gone = np.isnan(view).all(axis=1) & ~np.isnan(whole).all(axis=1)
        view[gone] = whole[gone]
    return views, mask, some, truth


def test_rows_may_lack_cells(lacking):
    _, mask, some, truth = lacking
    paper = {"preset": "paper", "max_iter": 100, "random_state": 1}  # from seed 0 it loses a cluster, also of whole rows
    for options in ({}, {"runs": 3}, paper, {"neighbours": "off", "view_weights": "learned"}):
        model = fit(some, **options)
        assert metrics.scores(truth, model.labels_)["ac"] > 0.9
        assert np.isfinite(model.embedding_).all()
        for view, (own, counts) in enumerate(zip(some, model.missing_cells_)):
            np.testing.assert_array_equal(counts, np.isnan(own[mask[:, view]]).sum(axis=0))
        assert 0 < model.score(some) <= 1


def test_the_order_in_memory_and_the_kind_of_table_make_no_difference(lacking):
    _, _, some, _ = lacking
    model = fit(some)
    for other in ([np.asfortranarray(view) for view in some], [np.ma.masked_invalid(view) for view in some]):
        np.testing.assert_array_equal(fit(other).labels_, model.labels_)
    tables = {f"view{v}": pd.DataFrame(view) for v, view in enumerate(some)}
    np.testing.assert_array_equal(fit(tables).labels_, model.labels_)


def test_cells_and_rows_are_imputed_and_others_kept(lacking):
    views, mask, some, _ = lacking
    model = fit(some)
    whole = model.impute(some)
    for v, (view, shown) in enumerate(zip(views, some)):
        there = ~np.isnan(shown)
        np.testing.assert_array_equal(whole[v][there], shown[there])
        assert np.isfinite(whole[v]).all()
        lacks = ~there & mask[:, [v]]
        mean = np.broadcast_to(np.nanmean(shown, axis=0), view.shape)
        assert ((whole[v] - view)[lacks] ** 2).sum() < 0.5 * ((mean - view)[lacks] ** 2).sum()
    frames = {f"view{v}": pd.DataFrame(view, index=[f"p{i}" for i in range(len(view))]) for v, view in enumerate(some)}
    filled = model.impute(frames)
    for v, name in enumerate(frames):
        np.testing.assert_allclose(filled[name].to_numpy(), whole[v])
        pd.testing.assert_index_equal(filled[name].index, frames[name].index)


def test_imputation_reports_its_error_and_keeps_values_in_range(lacking):
    views, mask, some, _ = lacking
    whole, error = fit(some).impute(some, return_error=True)
    assert list(error) == ["view0", "view1"]
    for v, (view, shown) in enumerate(zip(views, some)):
        low, high = np.nanmin(shown, axis=0), np.nanmax(shown, axis=0)
        assert ((whole[v] >= low) & (whole[v] <= high)).all()
        standard = (whole[v] - view) / np.nanstd(shown, axis=0)
        there = mask[:, v]
        for kind, gone in (("rows", standard[~there]), ("cells", standard[there][np.isnan(shown[there])])):
            assert error[f"view{v}"][kind] == pytest.approx(np.sqrt((gone**2).mean()), rel=0.3)
    _, error = fit(views).impute(views, return_error=True)
    assert np.isnan([list(own.values()) for own in error.values()]).all()


def test_imputation_does_not_depend_on_threads(lacking):
    _, _, some, _ = lacking
    model = fit(some)
    for one, all_ in zip(model.set_params(n_jobs=1).impute(some), model.set_params(n_jobs=None).impute(some)):
        np.testing.assert_array_equal(one, all_)


def test_tables_of_single_precision_and_sparse_ones_keep_their_form(lacking):
    _, mask, some, _ = lacking
    tables = {"a": pd.DataFrame(some[0].astype(np.float32), columns=[f"f{f}" for f in range(some[0].shape[1])])}
    tables["b"] = pd.DataFrame(np.nan_to_num(some[1]), index=tables["a"].index)[mask[:, 1]]
    filled = fit(tables).impute(tables)
    assert (filled["a"].dtypes == np.float32).all() and list(filled["a"].columns) == list(tables["a"].columns)
    pd.testing.assert_index_equal(filled["b"].index, tables["a"].index)
    pd.testing.assert_frame_equal(filled["b"][mask[:, 1]], tables["b"].set_axis(filled["b"].columns, axis=1))
    thin = [np.nan_to_num(some[0]), sparse.csr_matrix(np.nan_to_num(some[1]))]
    filled = fit(thin, mask=mask).impute(thin, mask=mask)
    assert sparse.issparse(filled[1]) and filled[1].shape == some[1].shape
    np.testing.assert_array_equal(filled[1][mask[:, 1]].toarray(), thin[1][mask[:, 1]].toarray())


@pytest.mark.filterwarnings("ignore:::mudata", "ignore:::anndata")
def test_a_mudata_comes_back_as_one(lacking):
    mudata = pytest.importorskip("mudata")
    from anndata import AnnData

    _, mask, some, _ = lacking
    names = np.array([f"c{i}" for i in range(len(mask))])
    parts = {}
    for v, name in enumerate("ab"):
        here = mask[:, v]
        obs = pd.DataFrame({"batch": v}, index=names[here])
        var = pd.DataFrame({"kind": name}, index=[f"{name}{f}" for f in range(some[v].shape[1])])
        parts[name] = AnnData(some[v][here], obs=obs, var=var)
    data = mudata.MuData(parts)
    model = DAIMC(4, random_state=0).fit(data)
    filled = model.impute(data)
    assert isinstance(filled, mudata.MuData)
    tables = model.impute({name: part.to_df() for name, part in parts.items()})
    for name, part in parts.items():
        own = filled.mod[name]
        assert list(own.obs_names) == list(model.instance_ids(data)) and list(own.var["kind"]) == [name] * own.n_vars
        np.testing.assert_array_equal(own.X, tables[name].to_numpy())
        pd.testing.assert_series_equal(own.obs["batch"][part.obs_names], part.obs["batch"], check_dtype=False)


def test_one_instance_with_a_missing_cell_is_assigned(lacking):
    views, mask, some, _ = lacking
    model = fit(some)
    full = np.flatnonzero(mask.all(axis=1))[:20]
    same = 0
    for i in full:
        rows = [view[[i]].copy() for view in views]
        rows[0][0, 1] = np.nan
        same += model.predict(rows)[0] == model.predict([view[[i]] for view in views])[0]
    assert same >= 18


def test_a_feature_without_a_value_is_ignored(lacking):
    _, _, some, _ = lacking
    wider = [np.insert(some[0], 2, np.nan, axis=1), some[1]]
    model, plain = fit(wider), fit(some)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.missing_cells_[0][2] == (~np.isnan(some[0]).all(axis=1)).sum()


def test_baselines_impute_the_mean(lacking):
    _, _, some, truth = lacking
    labels = baselines.Baseline("concatenation", 4, random_state=0).fit(some).labels_
    assert metrics.scores(truth, labels)["ac"] > 0.8
