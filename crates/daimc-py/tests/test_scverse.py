"""AnnData and MuData, as in scanpy and muon."""

import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import clusters
from scipy import sparse

import daimc
from daimc import DAIMC, CountsWarning

anndata = pytest.importorskip("anndata")
mudata = pytest.importorskip("mudata")
pytestmark = pytest.mark.filterwarnings("ignore:::mudata", "ignore:::anndata")

IDS = np.array([f"cell{i:03}" for i in range(300)])


def annotated(x, ids=IDS, prefix="gene"):
    var = pd.DataFrame(index=[f"{prefix}{i}" for i in range(x.shape[1])])
    return anndata.AnnData(x, obs=pd.DataFrame(index=ids), var=var)


@pytest.fixture
def adata(easy):
    adata = annotated(easy[0][0])
    adata.layers["raw"] = adata.X + 1.0
    adata.obsm["X_pca"] = adata.X[:, :7]
    return adata


@pytest.fixture
def mdata(gaps):
    views, mask, _, _ = gaps
    parts = {}
    for v, name in enumerate(("rna", "protein")):
        parts[name] = annotated(views[v][mask[:, v]], IDS[mask[:, v]], name)
        parts[name].layers["raw"] = parts[name].X + 1.0
        parts[name].obsm["X_pca"] = parts[name].X[:, :7]
    return mudata.MuData(parts)


def fit(X, **options):
    return DAIMC(4, random_state=0, **options).fit(X)


def test_an_anndata_is_one_view_and_gets_the_results(adata, easy):
    model = fit(adata)
    plain = fit([easy[0][0]])
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(adata.obs["daimc"].astype(int), model.labels_)
    assert adata.obs["daimc"].cat.categories.tolist() == ["0", "1", "2", "3"]
    np.testing.assert_array_equal(adata.obs["daimc_confidence"], model.confidence_)
    np.testing.assert_array_equal(adata.obsm["X_daimc"], model.embedding_)
    np.testing.assert_array_equal(adata.obsm["X_daimc_map"], model.map_)
    assert adata.obsm["daimc_contributions"].columns.tolist() == model.view_names_
    np.testing.assert_array_equal(adata.varm["daimc_weights"], model.feature_weights("view0"))
    account = adata.uns["daimc"]
    assert account["version"] == daimc.__version__
    assert account["options"]["clusters"] == 4 and account["options"]["seed"] == 0
    assert account["scaling"]["view0"] == dict(zip(("scale", "reason"), model.scaling("view0")))
    assert account["neighbours"] == dict(zip(("use", "reason"), model.neighbours_))
    assert model.ids_.tolist() == IDS.tolist()


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
def test_key_added_names_what_is_written(adata, method):
    getattr(DAIMC(4, random_state=0, key_added="kinds"), method)(adata)
    assert {"kinds", "kinds_confidence"} == set(adata.obs)
    assert {"X_kinds", "kinds_contributions"} <= set(adata.obsm)
    assert list(adata.varm) == ["kinds_weights"] and list(adata.uns) == ["kinds"]


def test_without_a_key_nothing_is_written(adata, mdata):
    for X in (adata, mdata):
        before = repr(X)
        fit(X, key_added=None)
        assert repr(X) == before


def test_the_categories_are_in_the_order_of_their_numbers():
    views, _ = clusters(k=12, noise=0.1)
    adata = annotated(views[0])
    DAIMC(12, random_state=0).fit(adata)
    categories = adata.obs["daimc"].cat.categories
    assert categories.tolist() == sorted(categories, key=int) and len(categories) > 10


def test_a_layer_or_a_representation_is_the_view(adata):
    np.testing.assert_array_equal(fit(adata, layer="raw").embedding_, fit([adata.layers["raw"]]).embedding_)
    assert adata.varm["daimc_weights"].shape == (30, 4)
    del adata.varm["daimc_weights"]
    model = fit(adata, use_rep="X_pca")
    np.testing.assert_array_equal(model.embedding_, fit([adata.obsm["X_pca"]]).embedding_)
    assert model.feature_names("view0")[1] == "X_pca-1"
    assert "daimc_weights" not in adata.varm  # these are no genes
    np.testing.assert_array_equal(model.predict(adata[:20]), DAIMC.predict(fit([adata.obsm["X_pca"]]), [adata.obsm["X_pca"][:20]]))
    adata.obsm["scores"] = pd.DataFrame(adata.X[:, :7], index=IDS, columns=list("abcdefg"))
    named = fit(adata, use_rep="scores")
    np.testing.assert_array_equal(named.embedding_, model.embedding_)
    assert named.feature_names("view0") == list("abcdefg")


def test_a_mudata_is_a_view_for_each_modality(mdata):
    model = fit(mdata)
    row_of = {name: row for row, name in enumerate(model.ids_)}
    rows = [row_of[name] for name in mdata.obs_names]
    np.testing.assert_array_equal(mdata.obs["daimc"].astype(int), model.labels_[rows])
    np.testing.assert_array_equal(mdata.obsm["X_daimc"], model.embedding_[rows])
    np.testing.assert_array_equal(mdata.obsm["daimc_contributions"], model.contributions_[rows])
    assert mdata.obsm["daimc_contributions"].columns.tolist() == ["rna", "protein"]
    for name in ("rna", "protein"):
        np.testing.assert_array_equal(mdata.mod[name].varm["daimc_weights"], model.feature_weights(name))
    assert set(mdata.uns["daimc"]["scaling"]) == {"rna", "protein"}


def test_a_layer_and_a_representation_by_modality(mdata):
    chosen = fit(mdata, layer={"rna": "raw"}, use_rep={"protein": "X_pca"})
    parts = {"rna": mdata.mod["rna"].layers["raw"], "protein": mdata.mod["protein"].obsm["X_pca"]}
    tables = {name: pd.DataFrame(x, index=mdata.mod[name].obs_names) for name, x in parts.items()}
    np.testing.assert_array_equal(chosen.embedding_, fit(tables).embedding_)
    assert "daimc_weights" in mdata.mod["rna"].varm and "daimc_weights" not in mdata.mod["protein"].varm
    both = fit({name: mdata.mod[name] for name in parts}, layer={"rna": "raw"}, use_rep={"protein": "X_pca"})
    np.testing.assert_array_equal(both.embedding_, chosen.embedding_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layer": "counts"}, r"view 'rna' has no layers\['counts'\], which layer names; it has: raw"),
        ({"use_rep": "X_umap"}, r"view 'rna' has no obsm\['X_umap'\], which use_rep names; it has: X_pca"),
        ({"layer": {"atac": "raw"}}, "layer names the view 'atac', but X has: rna, protein"),
        ({"layer": "raw", "use_rep": "X_pca"}, "view 'rna': layer='raw' and use_rep='X_pca' are both given"),
    ],
)
def test_missing_layers_and_keys_are_named(mdata, options, words):
    with pytest.raises(ValueError, match=words):
        fit(mdata, **options)


def test_layers_are_of_annotated_data_only(easy):
    for X in (easy[0], easy[0][0]):
        with pytest.raises(TypeError, match="layer = 'raw' applies to AnnData and MuData only, but X has neither"):
            fit(X, layer="raw")


def test_genes_are_found_by_name(adata):
    model = fit(adata)
    order = np.random.default_rng(0).permutation(adata.n_vars)
    more = anndata.concat([adata[:, order], annotated(np.ones((300, 3)), prefix="other")], axis=1)
    np.testing.assert_array_equal(model.predict(more), model.predict(adata))
    np.testing.assert_array_equal(model.transform(more), model.transform(adata))
    with pytest.raises(ValueError, match=r"view 'view0' lacks feature 'gene0' of the model \(2 in all\)"):
        model.predict(adata[:, 2:])


def test_genes_of_modalities_are_found_by_name(mdata):
    model = fit(mdata)
    turned = mudata.MuData({name: part[:, ::-1].copy() for name, part in mdata.mod.items()})
    np.testing.assert_array_equal(model.predict(turned), model.predict(mdata))
    fewer = mudata.MuData({"rna": mdata.mod["rna"][:, :-3].copy(), "protein": mdata.mod["protein"].copy()})
    with pytest.raises(ValueError, match=r"view 'rna' lacks feature 'rna27' of the model \(3 in all\)"):
        model.impute(fewer)


def test_imputed_views_are_anndata(adata, mdata):
    adata.X[3, 4] = np.nan
    model = fit(adata)
    order = np.r_[5:30, 0:5]
    more = anndata.concat([adata[:, order], annotated(np.ones((300, 1)), prefix="other")], axis=1, merge="same")
    for X in (adata, more):
        filled = model.impute(X)
        assert isinstance(filled, anndata.AnnData) and filled.var_names.tolist() == adata.var_names.tolist()
        assert not np.isnan(filled.X).any() and filled.obs_names.tolist() == IDS.tolist()
    filled = fit(mdata, layer="raw").impute(mdata)
    assert filled.mod["rna"].layers["raw"].shape == (300, 30) and filled.mod["rna"].X is None
    filled = fit(mdata, use_rep="X_pca").impute(mdata)
    assert filled.mod["protein"].obsm["X_pca"].shape == (300, 7)


def test_names_of_cells_may_be_duplicates(adata):
    plain = fit(adata, key_added=None)
    adata.obs_names = ["same"] * adata.n_obs
    np.testing.assert_array_equal(fit(adata).labels_, plain.labels_)
    assert "daimc" in adata.obs


def test_the_results_can_be_written_and_read(adata, mdata, tmp_path):
    fit(adata)
    fit(mdata)
    adata.write_h5ad(tmp_path / "a.h5ad")
    mdata.write_h5mu(tmp_path / "a.h5mu")
    again = anndata.read_h5ad(tmp_path / "a.h5ad")
    np.testing.assert_array_equal(again.obs["daimc"], adata.obs["daimc"])
    np.testing.assert_array_equal(again.obsm["daimc_contributions"], adata.obsm["daimc_contributions"])
    assert again.uns["daimc"]["scaling"]["view0"]["scale"] == adata.uns["daimc"]["scaling"]["view0"]["scale"]
    assert mudata.read_h5mu(tmp_path / "a.h5mu").obs["daimc"].tolist() == mdata.obs["daimc"].tolist()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_a_backed_file_is_read(easy, tmp_path, kind):
    adata = annotated(kind(np.maximum(easy[0][0], 0)))
    adata.write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    model = fit(backed, scale="unit")
    np.testing.assert_array_equal(model.labels_, fit(adata, scale="unit").labels_)
    np.testing.assert_array_equal(backed.obs["daimc"].astype(int), model.labels_)
    adata[:, ::-1].copy().write_h5ad(tmp_path / "turned.h5ad")
    turned = anndata.read_h5ad(tmp_path / "turned.h5ad", backed="r")
    np.testing.assert_array_equal(model.predict(turned), model.predict(adata))


def counts(seed=0):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 4, 300)
    means = rng.gamma(0.3, 10.0, (4, 60))
    return rng.poisson(means[kinds] * rng.gamma(4.0, 0.25, (300, 1))).astype(np.float32)


def test_raw_counts_are_recognised():
    x = counts()
    with pytest.warns(CountsWarning, match="contains raw counts: their logarithms .*sc.pp.normalize_total and sc.pp.log1p") as said:
        fit(annotated(x))
    assert said[0].filename == __file__
    with pytest.warns(CountsWarning, match="contains raw counts: they were scaled by '"):
        fit(annotated(sparse.csr_matrix(x)))
    normalised = np.log1p(x / np.maximum(x.sum(axis=1, keepdims=True), 1) * 1e4)
    quiet = [(annotated(normalised), {}), (annotated((x > 0).astype(float)), {}), (annotated(x), {"scale": "log"}), ([x], {})]
    with warnings.catch_warnings():
        warnings.simplefilter("error", CountsWarning)
        for X, options in quiet:
            fit(X, **options)


def test_a_selection_and_a_copy_know_the_layer(adata):
    from sklearn.base import clone

    chosen = DAIMC(random_state=0, layer="raw").select(adata, [3, 4], n_resamples=4)
    plain = DAIMC(random_state=0).select([adata.layers["raw"]], [3, 4], n_resamples=4)
    assert chosen.n_clusters == plain.n_clusters and "daimc" not in adata.obs
    assert clone(chosen.estimator).layer == "raw"


def test_a_loaded_model_assigns_cells(adata, tmp_path):
    model = fit(adata, layer="raw")
    model.save(tmp_path / "model.safetensors")
    again = DAIMC.load(tmp_path / "model.safetensors", layer="raw")
    np.testing.assert_array_equal(again.predict(adata[:, ::-1]), model.labels_)
