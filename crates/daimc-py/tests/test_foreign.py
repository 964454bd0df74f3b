"""Input that is not a list of views, a table or a mask is refused, and never read by position or ignored."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from daimc import DAIMC, baselines, plots, simulate_missing


def tables(views):
    ids = [f"p{i:03}" for i in range(300)]
    return [pd.DataFrame(view, index=ids, columns=[f"f{i}" for i in range(view.shape[1])]) for view in views]


def dask(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)


def xarray(frame):
    return pytest.importorskip("xarray").DataArray(frame)


def pyarrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


FOREIGN = {
    "dask": (dask, r"is a dask.DataFrame, .*: pass its compute\(\), which reads all of it into memory"),
    "xarray": (xarray, r"is a xarray.DataArray, .*: pass its to_pandas\(\)$"),
    "pyarrow": (pyarrow, r"is a pyarrow.Table, .*: pass its to_pandas\(\)$"),
    "polars, lazy": (lambda frame: pl.from_pandas(frame).lazy(), r"is a polars.LazyFrame, .*: pass its collect\(\)"),
    "pandas, a column": (lambda frame: frame["f0"], r"is a Series: pass its to_frame\(\)"),
    "polars, a column": (lambda frame: pl.from_pandas(frame)["f0"], r"is a Series: pass its to_frame\(\)"),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.filterwarnings("error")
def test_tables_of_other_libraries_are_refused_with_advice(easy, kind):
    make, words = FOREIGN[kind]
    one, other = tables(easy[0])
    model = DAIMC(4, random_state=0).fit([one, other])
    foreign = make(one.iloc[::-1])
    for views in ([foreign, make(other)], [foreign, other], {"view0": foreign, "view1": other}):
        for call in (DAIMC(4).fit, baselines.Baseline("single", 4).fit, model.predict, model.impute, plots.missingness):
            with pytest.raises(TypeError, match=f"view 'view0' {words}"):
                call(views)
    with pytest.raises(TypeError, match=f"X {words}"):
        DAIMC(4).fit(foreign)
    with pytest.raises(TypeError, match=f"X {words}"):
        baselines.Baseline("single", 4).fit(foreign)
    if "column" not in kind:
        with pytest.raises(TypeError, match=f"mask {words}"):
            DAIMC(4).fit([one, other], mask=foreign)


def test_the_advised_conversions_are_accepted(easy):
    one, other = tables(easy[0])
    plain = DAIMC(4, random_state=0).fit([one, other])
    turned = other.iloc[::-1]
    for converted in (dask(turned).compute(), xarray(turned).to_pandas(), pyarrow(turned).to_pandas()):
        np.testing.assert_array_equal(DAIMC(4, random_state=0).fit([one, converted]).embedding_, plain.embedding_)
    columns = DAIMC(4, random_state=0).fit([one["f0"].to_frame(), other])
    np.testing.assert_array_equal(
        columns.embedding_, DAIMC(4, random_state=0).fit([one.to_numpy()[:, :1], other.to_numpy()]).embedding_
    )


def test_a_baseline_refuses_one_view(easy):
    anndata = pytest.importorskip("anndata")
    one, other = (anndata.AnnData(table) for table in tables(easy[0]))
    with pytest.raises(TypeError, match="X is an AnnData, which is one view: .*MuData"):
        baselines.Baseline("single", 4).fit(one)
    assert len(baselines.Baseline("single", 4).fit({"rna": one, "protein": other}).labels_) == len(easy[1])


@pytest.mark.parametrize("make", [iter, lambda views: (view for view in views), lambda views: dict(enumerate(views)).values()])
def test_iterators_of_views_are_refused(easy, make):
    with pytest.raises(TypeError, match=r"not a list of views: pass list\(X\)"):
        DAIMC(4).fit(make(easy[0]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda views: dict(enumerate(views)).items(), r"X is a dict_items, .*: pass dict\(X\)"),
        (lambda views: {1, 2}, "X is a set, which has no order"),
        (lambda views: [iter(views[0]), views[1]], "view 'view0' is a .*, which can be read only once: convert it to an array"),
        (lambda views: {"a": (row for row in views[0])}, "view 'a' is a generator, which can be read only once"),
    ],
)
def test_collections_that_are_no_list_of_matrices_are_refused_with_advice(easy, make, words):
    with pytest.raises(TypeError, match=words):
        DAIMC(4).fit(make(easy[0]))


def test_a_lazy_frame_has_to_be_collected(easy):
    lazy = pl.DataFrame(easy[0][0]).lazy()
    for X in (lazy, [lazy, lazy], {"a": lazy}):
        with pytest.raises(TypeError, match=r"is a polars.LazyFrame, which is lazy: pass its collect\(\)"):
            DAIMC(4).fit(X)
    DAIMC(4).fit([lazy.collect()])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_of_ids_has_to_be_named(easy, library):
    frame = pd.DataFrame(easy[0][0]).rename(columns=str).assign(patient=[f"p{i}" for i in range(300)])
    frame = frame if library == "pandas" else pl.from_pandas(frame)
    for X in (frame, [frame, frame], {"a": frame}):
        with pytest.raises(TypeError, match="column 'patient'.*if it contains the IDs of instances, use id_column='patient'"):
            DAIMC(4).fit(X)
        assert DAIMC(4, id_column="patient", random_state=0).fit(X).ids_[1] == "p1"


def test_polars_without_ids_cannot_be_joined_with_tables_with_ids(easy):
    one, other = tables(easy[0])
    with pytest.raises(ValueError, match="view 'b' has no IDs, but view 'a' does: .*; id_column= names the column"):
        DAIMC(4).fit({"a": one, "b": pl.from_pandas(other)})


def test_one_instance_is_one_row_of_each_view(easy):
    views, _ = easy
    model = DAIMC(4, random_state=0).fit(views)
    for X in (views[0][0], [views[0][0], views[0][1]], views[0]):
        with pytest.raises(TypeError, match=r"X is one matrix, but the model has 2 views .*x.reshape\(1, -1\)"):
            model.predict(X)
    for X in ([view[0] for view in views], {"view0": views[0][0]}):
        with pytest.raises(ValueError, match=r"view 'view0': expected a matrix, .*reshape\(1, -1\) one row"):
            model.predict(X)
    assert model.predict([view[0].reshape(1, -1) for view in views]).shape == (1,)
    with pytest.raises(ValueError, match=r"reshape\(1, -1\)"):
        DAIMC(4, random_state=0).fit(views[0]).predict(views[0][0])


def masks(mask):
    return {
        "matrix": mask,
        "numbers": mask.astype(float),
        "list of rows": mask.tolist(),
        "vectors": [mask[:, 0], mask[:, 1]],
        "by name": {"view0": mask[:, 0], "view1": mask[:, 1]},
        "frame": pd.DataFrame(mask, columns=["view0", "view1"]),
        "polars": pl.DataFrame(mask.astype(int), schema=["view0", "view1"]),
        "frame without names": pd.DataFrame(mask),
        "series": [pd.Series(mask[:, 0]), pd.Series(mask[:, 1])],
        "upside down": mask.T,
    }


@pytest.mark.parametrize("kind", masks(np.ones((1, 2))))
def test_a_mask_in_the_place_of_y_is_refused(gaps, kind):
    views, mask, _, _ = gaps
    y = masks(mask)[kind]
    model = DAIMC(4, random_state=0)
    other = baselines.Baseline("single", 4, random_state=0)
    calls = [model.fit, model.fit_predict, model.fit_transform, other.fit, other.fit_predict]
    calls.append(DAIMC(4, random_state=0).fit(views).score)
    for call in calls:
        with pytest.raises(TypeError, match="y looks like a mask of the views, but y is ignored: pass it by name, mask="):
            call(views, y)
    sliced = DAIMC(4, view_slices=[slice(0, 30), slice(30, None)])
    with pytest.raises(TypeError, match="pass it by name, mask="):
        sliced.fit(np.hstack(views), y)


def test_classes_as_y_are_ignored(easy):
    views, target = easy
    plain = DAIMC(4, random_state=0).fit(views)
    rng = np.random.default_rng(0)
    classes = {
        "numbers": target,
        "list": target.tolist(),
        "two": target == 0,
        "two, as a list": (target == 0).tolist(),
        "text": [f"class {kind}" for kind in target],
        "objects": np.array(["a", None] * 150, dtype=object),
        "series": pd.Series(target, index=[f"p{i}" for i in range(300)]),
        "polars": pl.Series(target),
        "column": target[:, None],
        "frame": pd.DataFrame({"class": target == 0}),
        "several targets": rng.normal(size=(300, 2)),
        "tuples": [("a", 1)] * 300,
        "of different lengths": [[1], [0, 1]] * 150,
    }
    for name, y in classes.items():
        model = DAIMC(4, random_state=0).fit(views, y)
        np.testing.assert_array_equal(model.embedding_, plain.embedding_, err_msg=name)
        assert model.score(views, y) == plain.score(views), name
    slices = [slice(0, 30), slice(30, None)]
    together = np.hstack(views)
    search = GridSearchCV(DAIMC(view_slices=slices, random_state=0), {"n_clusters": [1, 4]}, cv=2)
    assert search.fit(together, target == 0).best_params_ == {"n_clusters": 4}
    pipeline = make_pipeline(FunctionTransformer(), DAIMC(4, view_slices=slices, random_state=0))
    np.testing.assert_array_equal(pipeline.fit(together, target)[-1].embedding_, plain.embedding_)
    one = DAIMC(4, random_state=0).fit(together)
    np.testing.assert_array_equal(DAIMC(4, random_state=0).fit(together, (target == 0).astype(int)[:, None]).labels_, one.labels_)


def test_masks_are_matched_to_rows_by_id(gaps):
    views, mask, with_nan, _ = gaps
    plain = DAIMC(4, random_state=0).fit(with_nan)
    one, other = tables(views)
    turned = np.random.default_rng(0).permutation(300)
    series = {f"view{v}": pd.Series(mask[:, v], index=one.index).iloc[turned] for v in (0, 1)}
    frame = pd.DataFrame(series).iloc[turned]
    slices = [slice(0, 30), slice(30, None)]
    together = pd.DataFrame(np.hstack(views), index=one.index, columns=[f"f{i}" for i in range(80)])
    for X, by_id in [
        ([one, other], series),
        ([one, other], list(series.values())),
        ([one, other], {"view0": series["view0"].astype("boolean"), "view1": mask[:, 1]}),
        (together, frame),
        (together, frame.set_axis([0, 1], axis=1)),
        (together, pd.DataFrame(mask)),
        (views, pl.DataFrame(mask[:, ::-1], schema=["view1", "view0"])),
        (views, pd.DataFrame(mask[:, ::-1], columns=["view1", "view0"])),
    ]:
        model = DAIMC(4, random_state=0, view_slices=slices).fit(X, mask=by_id)
        np.testing.assert_array_equal(model.embedding_, plain.embedding_)
    for wrong, words in [
        ({"view0": series["view0"].drop("p004")}, "mask has no row for instance 'p004' of view 'view0'"),
        ({"view0": pd.concat([series["view0"]] * 2)}, "mask has two rows for instance"),
        ({"view0": series["view0"].astype("boolean").where(series["view0"].index != "p000")}, "row 0: <NA>; must be True or 1"),
        ({"view0": pd.Series(mask[:, 0])}, "mask has no row for instance 'p000'"),
    ]:
        with pytest.raises(ValueError, match=words):
            DAIMC(4).fit([one, other], mask=wrong)


def test_simulate_missing_refuses_one_matrix(easy):
    with pytest.raises(TypeError, match="X is one matrix"):
        simulate_missing(easy[0][0], 0.3)


def test_the_warning_of_missingness_points_to_the_fit():
    from daimc import MissingnessWarning
    from daimc._warnings import warn_of_fit

    class Found:
        converged = True
        missingness = (0.5, 0.01, "clusters follow missingness")
        significance = None

    class Model:
        def fit(self):
            self._fit()

        def _fit(self):
            warn_of_fit(Found(), stacklevel=4)

    with pytest.warns(MissingnessWarning, match="^clusters follow missingness$") as caught:
        Model().fit()
    assert caught[0].filename == __file__ and issubclass(MissingnessWarning, UserWarning)
