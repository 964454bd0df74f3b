"""Messy tables: read as intended, or refused with an error that names the location and the remedy."""

import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from conftest import clusters
from daimc import DAIMC

VIEWS, TARGET = clusters(n=120, k=3, features=(6, 8))
IDS = [f"p{i}" for i in range(120)]


def table(v, **more):
    return pd.DataFrame(VIEWS[v], index=IDS, columns=[f"f{i}" for i in range(VIEWS[v].shape[1])]).assign(**more)


def fit(views, **options):
    return DAIMC(**{"n_clusters": 3, "random_state": 0, **options}).fit(views)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("Int64", np.round(VIEWS[0])),
        ("int8", np.round(VIEWS[0])),
        ("boolean", VIEWS[0] > 0),
        ("bool", VIEWS[0] > 0),
        ("Float32", np.float32(VIEWS[0])),
        ("double[pyarrow]", VIEWS[0]),
        (pd.SparseDtype(float, 0.0), np.where(VIEWS[0] > 0, VIEWS[0], 0.0)),
        (pd.SparseDtype(float, np.nan), VIEWS[0]),
    ],
    ids=str,
)
def test_columns_of_numbers_are_numbers_in_every_dtype(dtype, values):
    if str(dtype).endswith("[pyarrow]"):
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame(values, index=IDS).astype(dtype)
    model = fit([frame, table(1)])
    np.testing.assert_array_equal(model.embedding_, fit([values.astype(float), VIEWS[1]]).embedding_)


def test_objects_that_are_numbers_are_numbers():
    mixed = table(0).astype(object)
    mixed.iloc[:, 1] = [Decimal(str(value)) for value in VIEWS[0][:, 1]]
    mixed.iloc[5] = [None, pd.NA, np.nan, None, pd.NA, np.nan]
    plain = [view.copy() for view in VIEWS]
    plain[0][5] = np.nan
    np.testing.assert_array_equal(fit([mixed, table(1)]).embedding_, fit(plain).embedding_)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pd.Categorical(["f", "m"] * 60), "column 'x' has dtype category, which is not numeric: remove the column"),
        (pd.Categorical([1, 2] * 60), "column 'x' has dtype category"),
        (pd.Timestamp("2020-01-01"), "column 'x' has dtype datetime64"),
        (pd.Timedelta(1), "column 'x' has dtype timedelta64"),
        (pd.array(["a"] * 120, dtype="string"), "column 'x' has dtype string"),
        (["1.5"] * 120, "row 0 (instance 'p0'), column 'x': '1.5' is not a number; pandas.to_numeric converts"),
        ([1.0] * 7 + ["12,5"] + [2] * 112, "row 7 (instance 'p7'), column 'x': '12,5' is not a number"),
    ],
)
def test_columns_that_are_not_numbers_are_refused_by_name(column, words):
    with pytest.raises(TypeError) as caught:
        fit({"lab": table(0, x=column), "other": table(1)})
    assert "view 'lab'" in str(caught.value) and words in str(caught.value)


def test_columns_of_one_name_keep_their_order_or_are_refused():
    twice = pd.concat([table(0), table(0)[::-1].set_axis(IDS)], axis=1)
    model = fit([twice, table(1)])
    plain = fit([twice.to_numpy(), VIEWS[1]])
    np.testing.assert_array_equal(model.predict([twice, None]), plain.predict([twice.to_numpy(), None]))
    with pytest.raises(ValueError, match="view 'view0' has several columns 'f5'.*cannot be matched"):
        model.predict([twice.iloc[:, ::-1], None])
    anndata = pytest.importorskip("anndata")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        annotated = anndata.AnnData(twice.to_numpy(), obs=pd.DataFrame(index=IDS), var=pd.DataFrame(index=twice.columns))
        np.testing.assert_array_equal(model.predict([annotated, None]), model.predict([twice, None]))
    with pytest.raises(ValueError, match="view 'view0' has several columns 'who'"):
        fit([pd.concat([table(0, who=IDS), table(0, who=IDS)], axis=1)], id_column="who")


def test_the_index_may_be_what_id_column_names():
    by_index = [table(v).rename_axis("who") for v in (0, 1)]
    model = fit([by_index[0], by_index[1].reset_index()], id_column="who")
    np.testing.assert_array_equal(model.embedding_, fit(by_index).embedding_)
    assert model.ids_.tolist() == IDS


@pytest.mark.parametrize(
    ("ids", "pairs"),
    [
        ([f"P{i}" for i in range(120)], 120),
        ([f" p{i}" for i in range(120)], 120),
        ([f"p{i:03}" for i in range(120)], 100),
        ([*IDS[:119], "p0119"], 1),
    ],
    ids=["case", "blanks", "zeros", "one of them"],
)
@pytest.mark.filterwarnings("ignore:view .* shares no ID")
def test_ids_that_look_alike_are_warned_of(ids, pairs):
    tables = {"a": table(0), "b": table(1).set_axis(ids)}
    with pytest.warns(UserWarning, match=rf"look alike .* in view 'a' and .* in view 'b' \({pairs} such pair") as caught:
        model = fit(tables)
    assert len(model.labels_) == 120 + pairs and caught[0].filename == __file__
    with pytest.warns(UserWarning, match="look alike"):
        DAIMC(random_state=0).select(tables, [2, 3], n_resamples=2)


@pytest.mark.parametrize("blank", [None, np.nan, pd.NA, pd.NaT])
def test_a_row_without_an_id_is_refused(blank):
    index = pd.Index([*IDS[:5], blank, *IDS[6:]], dtype=object)
    with pytest.raises(ValueError, match="view 'view1', row 5 has no ID"):
        fit([table(0), table(1).set_axis(index)])


def test_indexes_of_different_kinds_are_combined():
    levels = pd.MultiIndex.from_product([["a", "b"], range(60)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for first, second in [(levels, IDS), (IDS, levels), (range(120), IDS), (pd.date_range("2020", periods=120), IDS)]:
            tables = [table(0).set_axis(first), table(1).set_axis(second)]
            rows = DAIMC(3, random_state=0).set_output(transform="pandas").fit_transform(tables)
            assert list(rows.index) == [*tables[0].index, *tables[1].index]


def test_similar_ids_in_one_table_are_not_warned_of():
    ids = [*(f"p{i}" for i in range(60)), *(f"P{i}" for i in range(60))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit({"a": table(0).set_axis(ids), "b": table(1).set_axis(ids).iloc[10:]})
        numbers = fit({"a": table(0).set_axis(range(120)), "b": table(1).set_axis([str(i) for i in range(120)])})
    assert len(numbers.labels_) == 120


def test_new_instances_may_all_lack_a_view():
    model = fit(VIEWS)
    blank = np.full_like(VIEWS[1], np.nan)
    np.testing.assert_array_equal(model.predict([VIEWS[0], blank]), model.predict([VIEWS[0], None]))
    np.testing.assert_array_equal(
        model.contributions([VIEWS[0], blank]), model.contributions([VIEWS[0], None])
    )
    np.testing.assert_array_equal(model.impute([VIEWS[0], blank])[1], model.impute([VIEWS[0], None])[1])
    # The order is still that of the tables.
    tables = fit([table(0), table(1)])
    gone = table(0)[::-1] * np.nan
    np.testing.assert_array_equal(tables.predict([gone, table(1)]), tables.predict([None, table(1)])[::-1])
    completed = tables.impute([gone, table(1)])
    pd.testing.assert_frame_equal(completed[1], table(1)[::-1])
    pd.testing.assert_frame_equal(completed[0], tables.impute([None, table(1)])[0][::-1])
    assert tables.instance_ids([gone, table(1)]).tolist() == IDS[::-1]
    kept = tables.set_params(handle_unseen="keep")
    labels = kept.predict([gone, table(1).iloc[:100]])
    assert (labels[:20] == -1).all()
    np.testing.assert_array_equal(labels[20:], kept.predict([None, table(1)])[:100][::-1])
    # In one row of one matrix, NaN is the only way to mark a missing view.
    sliced = fit(np.hstack(VIEWS), view_slices=[slice(0, 6), slice(6, None)])
    row = np.hstack([VIEWS[0][:1], blank[:1]])
    assert sliced.predict(row) == model.predict([VIEWS[0][:1], None])
    assert np.isfinite(sliced.impute(row)).all()
    with pytest.raises(ValueError, match="view 'view1' has no instances"):
        fit([VIEWS[0], blank])
    with pytest.raises(ValueError, match="no instance is present in any view"):
        fit(VIEWS, handle_unseen="keep").predict([np.full_like(VIEWS[0], np.nan), blank])


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        ("a.csv", TypeError, "X contains file names: pass the data"),
        (["a.csv", Path("b.csv")], TypeError, "X contains file names"),
        ({"a": VIEWS[0], "b": {"x": VIEWS[1]}}, ValueError, "view 'b': expected a matrix, found a dict"),
        ([[[1, 2], [3]], VIEWS[1]], ValueError, "view 'view0': expected a matrix, found a list that is none"),
        ([VIEWS[0][0], VIEWS[1][0]], ValueError, "view 'view0': .*reshape.1, -1. one row"),
        ([table(0), table(1).iloc[:0]], ValueError, "view 'view1' has no rows"),
        ([table(0), table(1).iloc[:, :0]], ValueError, "view 'view1' has no features"),
        ([table(0), VIEWS[1]], ValueError, "view 'view1' has no IDs, but view 'view0' does"),
        ([table(0), sparse.csr_matrix(VIEWS[1])], ValueError, "view 'view1' has no IDs"),
        ({1: table(0)}, TypeError, "view name 1: must be a string"),
    ],
)
def test_input_that_is_no_list_of_views_is_refused(X, error, words):
    with pytest.raises(error, match=words):
        fit(X)


def test_views_come_in_any_container_and_order():
    plain = fit(VIEWS)
    container = np.empty(2, dtype=object)
    container[:] = VIEWS
    for views in (tuple(VIEWS), container, [view.tolist() for view in VIEWS], [pl.DataFrame(view) for view in VIEWS]):
        np.testing.assert_array_equal(fit(views).embedding_, plain.embedding_)
    named = fit({"a": VIEWS[0], "b": VIEWS[1]})
    np.testing.assert_array_equal(
        named.predict({"b": VIEWS[1], "a": VIEWS[0]}), named.predict({"a": VIEWS[0], "b": VIEWS[1]})
    )
    one = fit([table(0), table(1)[["f0"]]])
    assert one.n_features_in_ == 7 and one.feature_names("view1") == ["f0"]
