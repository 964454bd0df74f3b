"""Input formats and memory layouts, which do not change the result."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from daimc import DAIMC, simulate_missing


def fit(views, **more):
    mask = more.pop("mask", None)
    return DAIMC(**{"n_clusters": 4, "random_state": 0, **more}).fit(views, mask=mask)


def same(one, other):
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.embedding_, other.embedding_)


def layouts(x):
    """The same matrix in other memory layouts."""
    wide = np.full((x.shape[0], x.shape[1] + 3), np.nan, dtype=x.dtype)
    wide[:, 1:-2] = x
    tall = np.full((2 * x.shape[0], x.shape[1]), np.nan, dtype=x.dtype)
    tall[::2] = x
    both = np.full((3 * x.shape[0], 2 * x.shape[1]), np.nan, dtype=x.dtype, order="F")
    both[1::3, ::2] = x
    reverse = np.ascontiguousarray(x[::-1, ::-1])
    frozen = x.copy()
    frozen.flags.writeable = False
    bytes_ = np.zeros(x.nbytes + 1, dtype=np.uint8)
    crooked = bytes_[1:].view(x.dtype).reshape(x.shape)
    crooked[...] = x
    assert not crooked.flags.aligned
    return {
        "fortran": np.asfortranarray(x),
        "columns of a wider one": wide[:, 1:-2],
        "every second row": tall[::2],
        "strided both ways": both[1::3, ::2],
        "backwards": reverse[::-1, ::-1],
        "read-only": frozen,
        "misaligned": crooked,
        "other order of bytes": x.astype(x.dtype.newbyteorder()),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_memory_layout_does_not_matter(gaps, dtype):
    views = [view.astype(dtype) for view in gaps[2]]
    plain = fit(views)
    for name, other in layouts(views[0]).items():
        model = fit([other, views[1]])
        np.testing.assert_array_equal(model.embedding_, plain.embedding_, err_msg=name)
        np.testing.assert_array_equal(model.predict([other, views[1]]), plain.predict(views), err_msg=name)
        assert model.score([other, views[1]]) == plain.score(views), name


def test_arrays_that_can_be_borrowed_are_not_copied(easy):
    from daimc._matrix import from_matrix

    for name, x in layouts(easy[0][0]).items():
        view = from_matrix(x, "a")
        borrowed = name not in ("backwards", "misaligned", "other order of bytes")
        assert np.shares_memory(view.values, x) == borrowed, name
    csr = sparse.random(20, 30, 0.2, format="csr", random_state=0)
    view = from_matrix(csr, "a")
    assert np.shares_memory(view.values, csr.data) and np.shares_memory(view.columns, csr.indices)


def test_files_and_memmaps_are_the_same_data(gaps, tmp_path):
    views, files, maps = gaps[2], {}, {}
    for number, view in enumerate(views):
        path = tmp_path / f"{number}.npy"
        np.save(path, view if number else np.asfortranarray(view))
        files[f"view{number}"] = str(path) if number else path
        maps[f"view{number}"] = np.load(path, mmap_mode="r")
    expected = fit(views)
    same(fit(files), expected)
    same(fit(maps), expected)
    np.testing.assert_array_equal(expected.predict(list(maps.values())), fit(files).predict(files))


def test_files_that_are_no_arrays_are_refused(tmp_path):
    text = tmp_path / "a.csv"
    text.write_text("id,x\n1,2\n")
    with pytest.raises(TypeError, match=r"view 'a' is the file .*a\.csv, which is no \.npy: pass its data"):
        fit({"a": text})
    broken = tmp_path / "a.npy"
    broken.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"view 'a': .*a\.npy cannot be read as an array"):
        fit({"a": broken})
    with pytest.raises(FileNotFoundError):
        fit({"a": str(tmp_path / "gone.npy")})


def test_sparse_formats_are_the_same_data():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 60)
    dense = rng.poisson(0.3, (240, 80)) * 1.0
    for k in range(4):
        dense[truth == k, 20 * k : 20 * k + 20] += rng.poisson(1.0, (60, 20))
    other = rng.normal(size=(240, 5)) + 3 * truth[:, None]
    plain = fit([sparse.csr_matrix(dense), other])
    rows, columns = np.nonzero(dense)
    shuffled = rng.permutation(len(rows))
    twice = sparse.coo_matrix(
        (np.tile(dense[rows, columns] / 2, 2), (np.tile(rows, 2), np.tile(columns, 2))), shape=dense.shape
    )
    unsorted = sparse.csr_matrix(dense)
    for row in range(240):
        own = slice(unsorted.indptr[row], unsorted.indptr[row + 1])
        unsorted.indices[own], unsorted.data[own] = unsorted.indices[own][::-1], unsorted.data[own][::-1].copy()
    unsorted.has_sorted_indices = False
    unsorted.has_canonical_format = False
    before = unsorted.indices.copy()
    long = sparse.csr_matrix(dense)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    forms = {
        "dok": sparse.dok_matrix(dense),
        "csc": sparse.csc_matrix(dense),
        "csr_array": sparse.csr_array(dense),
        "coo, shuffled": sparse.coo_matrix((dense[rows, columns][shuffled], (rows[shuffled], columns[shuffled])), dense.shape),
        "summed duplicates": twice,
        "unsorted": unsorted,
        "long indices": long,
        "integers": sparse.csr_matrix(dense.astype(int)),
    }
    for name, form in forms.items():
        model = fit([form, other])
        np.testing.assert_array_equal(model.embedding_, plain.embedding_, err_msg=name)
    np.testing.assert_array_equal(unsorted.indices, before)  # the input is not changed
    single = fit([sparse.csr_matrix(dense, dtype=np.float32), other])
    assert (single.labels_ == plain.labels_).mean() > 0.99


def test_a_mask_a_row_of_nan_and_an_absent_id_are_equivalent(gaps):
    views, mask, with_nan, _ = gaps
    by_nan = fit(with_nan)
    vectors = [mask[:, 0], mask[:, 1]]
    for other in (mask, mask.astype(int), mask.tolist(), vectors, {"view0": vectors[0], "view1": vectors[1]}):
        same(fit(views, mask=other), by_nan)
    same(fit(views, mask=pd.DataFrame(mask, columns=["view0", "view1"])), by_nan)
    ids = np.array([f"p{i:03}" for i in range(300)])
    complete = [pd.DataFrame(view, index=ids) for view in views]
    listed = [frame[mask[:, v]] for v, frame in enumerate(complete)]
    joined = fit(listed)
    assert sorted(joined.ids_) == sorted(ids)
    # If the first table lists every instance, the order is the same, and the result is bit-identical.
    first_whole = mask.copy()
    first_whole[:, 0] = True
    same(fit([complete[0], listed[1]]), fit(views, mask=first_whole))
    by_id = pd.DataFrame(first_whole, index=ids, columns=["view0", "view1"]).sample(frac=1, random_state=0)
    same(fit(complete, mask=by_id), fit(views, mask=first_whole))


@pytest.mark.parametrize("kind", ["pandas", "polars", "id column of pandas"])
def test_tables_in_another_order_give_the_same_result(gaps, kind):
    views, mask, _, _ = gaps
    rng = np.random.default_rng(5)
    ids = np.array([f"p{i:03}" for i in range(300)])

    def table(v, rows):
        x = pd.DataFrame(views[v][rows], index=ids[rows], columns=[f"f{i}" for i in range(views[v].shape[1])])
        if kind == "pandas":
            return x
        if kind == "polars":
            return pl.DataFrame({"who": ids[rows], **{name: x[name].to_numpy() for name in x.columns}})
        return x.rename_axis("who").reset_index()

    all_rows, some = np.arange(300), np.flatnonzero(mask[:, 1])
    options = {} if kind == "pandas" else {"id_column": "who"}
    in_order = fit({"a": table(0, all_rows), "b": table(1, some)}, **options)
    shuffled = fit({"a": table(0, all_rows), "b": table(1, rng.permutation(some))}, **options)
    same(in_order, shuffled)
    assert in_order.ids_.tolist() == ids.tolist() and in_order.view_names_ == ["a", "b"]
    assert in_order.feature_names("b")[:2] == ["f0", "f1"]
    both = rng.permutation(300)
    turned = fit({"a": table(0, both), "b": table(1, rng.permutation(some))}, **options)
    assert turned.ids_.tolist() == ids[both].tolist()

    # New tables may have another order of rows and of columns.
    new = {"a": table(0, both), "b": None}
    np.testing.assert_array_equal(in_order.instance_ids(new), ids[both])
    np.testing.assert_array_equal(in_order.predict(new), in_order.predict({"a": table(0, all_rows)})[both])
    columns = list(table(0, both).columns)
    backwards = {"a": table(0, both)[columns[::-1]]}
    np.testing.assert_array_equal(in_order.predict(backwards), in_order.predict(new))
    completed = in_order.impute({"a": table(0, all_rows), "b": table(1, some)})
    assert type(completed["b"]) is type(table(1, some))
    assert completed["b"].shape[0] == 300


def test_ids_of_different_types_are_joined(easy):
    views, _ = easy
    numbers = [pd.DataFrame(view, index=np.arange(300)) for view in views]
    texts = pd.DataFrame(views[1], index=[str(i) for i in range(300)])
    floats = pd.DataFrame(views[1], index=np.arange(300.0))
    plain = fit(numbers)
    same(fit([numbers[0], texts]), plain)
    same(fit([numbers[0], floats]), plain)
    assert plain.ids_.dtype.kind == "i"


def test_tables_without_a_common_id_are_warned_of(easy):
    views, _ = easy
    a = pd.DataFrame(views[0], index=[f"a{i}" for i in range(300)])
    b = pd.DataFrame(views[1], index=[f"b{i}" for i in range(300)])
    with pytest.warns(UserWarning, match="shares no ID with another view") as caught:
        fit([a, b])
    assert [str(warning.message).split("'")[1] for warning in caught] == ["view0", "view1"]


def test_polars_without_ids_is_read_row_by_row(easy):
    views, _ = easy
    same(fit([pl.DataFrame(view) for view in views]), fit(views))


def test_frames_of_other_dtypes_are_numbers_too(easy):
    views, _ = easy
    whole = np.round(views[0] * 10)
    plain = fit([whole, views[1]])
    same(fit([pd.DataFrame(whole.astype(int)), pd.DataFrame(views[1])]), plain)
    same(fit([pd.DataFrame(whole).astype("Int64"), pd.DataFrame(views[1])]), plain)
    same(fit([pd.DataFrame(whole).astype(object), pd.DataFrame(views[1])]), plain)
    gap = pd.DataFrame(whole).astype("Float64")
    gap.iloc[7] = pd.NA
    with_nan = whole.copy()
    with_nan[7] = np.nan
    same(fit([pd.DataFrame(views[1]), gap]), fit([views[1], with_nan]))


def test_mudata_gets_labels_and_embedding(gaps):
    anndata = pytest.importorskip("anndata")
    mudata = pytest.importorskip("mudata")
    views, mask, _, _ = gaps
    ids = np.array([f"p{i:03}" for i in range(300)])
    parts = {}
    for v, name in enumerate(("rna", "protein")):
        rows = np.flatnonzero(mask[:, v])
        x = sparse.csr_matrix(views[v][rows]) if v else views[v][rows]
        obs = pd.DataFrame(index=ids[rows])
        var = pd.DataFrame(index=[f"{name}{i}" for i in range(views[v].shape[1])])
        parts[name] = anndata.AnnData(x, obs=obs, var=var)
    data = mudata.MuData(parts)
    model = fit(data, scale="unit")
    tables = {
        name: pd.DataFrame(views[v][mask[:, v]], index=ids[mask[:, v]]) for v, name in enumerate(("rna", "protein"))
    }
    by_id = dict(zip(fit(tables, scale="unit").ids_, fit(tables, scale="unit").labels_.astype(str)))
    written = dict(zip(data.obs_names, data.obs["daimc"]))
    agreeing = np.mean([written[name] == by_id[name] for name in ids])
    assert agreeing > 0.98  # one view is sparse here, so the last bits differ
    assert data.obsm["X_daimc"].shape == (300, 4)
    assert np.isfinite(data.obs["daimc_confidence"]).all()
    np.testing.assert_array_equal(model.predict(data).shape, (300,))
    assert model.feature_names("protein")[0] == "protein0"


def test_one_matrix_is_cut_into_views(gaps):
    views, _, with_nan, _ = gaps
    x = np.hstack(with_nan)
    apart = fit(with_nan)
    for slices in ([slice(0, 30), slice(30, None)], [list(range(30)), np.arange(30, 80)]):
        model = DAIMC(n_clusters=4, random_state=0, view_slices=slices).fit(x)
        same(model, apart)
        np.testing.assert_array_equal(model.predict(x), apart.predict(with_nan))
        np.testing.assert_array_equal(np.hstack(apart.impute(with_nan)), model.impute(x))
        assert model.n_features_in_ == 80
    frame = pd.DataFrame(x, columns=[f"f{i}" for i in range(80)])
    named = DAIMC(4, random_state=0, view_slices={"a": [f"f{i}" for i in range(30)], "b": slice(30, None)}).fit(frame)
    same(named, apart)
    assert named.view_names_ == ["a", "b"] and named.feature_names("b")[0] == "f30"
    assert named.feature_names_in_[0] == "f0"
    completed = named.impute(frame)
    assert list(completed.columns) == list(frame.columns)
    np.testing.assert_array_equal(completed.to_numpy(), np.hstack(apart.impute(with_nan)))
    csr = DAIMC(4, random_state=0, view_slices=[slice(0, 30), slice(30, None)]).fit(sparse.csr_matrix(np.hstack(views)))
    assert (csr.labels_ == fit(views).labels_).mean() > 0.99


def test_simulated_missingness_has_the_requested_share(easy):
    views, _ = easy
    mask = simulate_missing(views, [0.1, 0.5], random_state=3)
    assert (~mask).sum(axis=0).tolist() == [30, 150] and mask.any(axis=1).all()
    np.testing.assert_array_equal(mask, simulate_missing(views, [0.1, 0.5], random_state=3))
    assert (mask != simulate_missing(views, [0.1, 0.5], random_state=4)).any()
