"""The estimator, with the conventions of scikit-learn."""

import copy
import json
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from daimc import DAIMC, metrics


def fitted(views, **params):
    return DAIMC(**{"n_clusters": 4, "random_state": 0, **params}).fit(views)


def test_clusters_are_found_despite_missing_rows(gaps):
    _, _, views, target = gaps
    labels = DAIMC(n_clusters=4, random_state=0).fit_predict(views)
    assert labels.dtype == np.int64
    assert metrics.accuracy(target, labels) > 0.98


def test_fitted_attributes_have_the_shapes_that_are_documented(gaps):
    _, _, views, _ = gaps
    model = fitted(views)
    assert model.labels_.shape == model.confidence_.shape == (300,)
    assert model.embedding_.shape == (300, 4) and (model.embedding_ >= 0).all()
    assert ((model.confidence_ >= 0) & (model.confidence_ <= 1)).all()
    assert [basis.shape for basis in model.basis_] == [(30, 4), (50, 4)]
    assert [b.shape for b in model.alignment_] == [(30, 4), (50, 4)]
    for relevance, alignment in zip(model.feature_relevance_, model.alignment_):
        np.testing.assert_allclose(relevance, np.linalg.norm(alignment, axis=1), rtol=1e-3, atol=1e-4)
    assert model.objective_history_.shape == (model.n_iter_,)
    assert model.converged_ is True and model.objective_ > 0
    assert model.n_features_in_ == 80
    assert model.view_names_ == ["view0", "view1"]
    assert model.ids_.tolist() == list(range(300))
    assert model.feature_weights("view1").shape == (50, 4)
    assert model.scaling("view0")[0] == "unit"
    assert model.contributions_.shape == (300, 2)
    assert model.feature_stability_ is None


def test_new_instances_are_assigned_from_whichever_views_they_have(gaps):
    views, _, with_nan, _ = gaps
    model = fitted(with_nan)
    assert (model.predict(views) == model.labels_).mean() > 0.98
    assert (model.predict([views[0], None]) == model.labels_).mean() > 0.95
    assert (model.predict([None, views[1]]) == model.labels_).mean() > 0.95
    assert (model.predict({"view1": views[1]}) == model.predict([None, views[1]])).all()
    np.testing.assert_allclose(model.transform(with_nan), model.embedding_, rtol=1e-4, atol=1e-8)
    np.testing.assert_array_equal(model.fit_transform(with_nan), model.embedding_)


def test_contributions_measure_the_evidence_of_each_view(gaps):
    views, mask, with_nan, _ = gaps
    model = fitted(with_nan)
    shares = model.contributions_
    np.testing.assert_array_equal(np.isnan(shares), ~mask)
    np.testing.assert_allclose(np.nansum(np.abs(shares), axis=1), 1.0)
    # These clusters are clear in both views.
    assert (shares[mask] > 0).mean() > 0.95
    np.testing.assert_array_equal(fitted(with_nan, n_jobs=1).contributions_, shares)
    # The instances of the fit, passed as new ones, have the same contributions.
    here = model.predict(with_nan) == model.labels_
    assert here.mean() > 0.98
    np.testing.assert_allclose(model.contributions(with_nan)[here], shares[here])
    one = model.contributions([None, views[1]])
    assert np.isnan(one[:, 0]).all() and (np.abs(one[:, 1]) == 1.0).all()


def test_a_view_of_noise_contributes_nothing_and_a_view_that_contradicts_less(easy):
    views, target = easy
    noise = np.random.default_rng(0).normal(size=(300, 30))
    other = views[1].copy()
    turned = np.arange(300) % 10 == 0
    # A tenth of the instances show another cluster in the last view.
    other[turned] = [views[1][target == (kind + 1) % 4][0] for kind in target[turned]]
    model = fitted([views[0], views[1], noise, other])
    assert metrics.accuracy(target, model.labels_) > 0.98
    shares = model.contributions_
    assert abs(shares[:, 2].mean()) < 0.1 * shares[:, 0].mean()
    assert shares[turned, 3].mean() < 0.5 * shares[~turned, 3].mean()


def test_stability_shows_which_features_lead_in_every_run(gaps):
    _, _, views, _ = gaps
    rng = np.random.default_rng(0)
    wide = [np.hstack([view, np.where(np.isnan(view[:, :1]), np.nan, 0.5 * rng.normal(size=(300, 170)))]) for view in views]
    model = fitted(wide, runs=4)
    for stability, view in zip(model.feature_stability_, views):
        known = view.shape[1]
        assert stability.shape == (known + 170, 4)
        assert ((stability >= 0) & (stability <= 1)).all()
        assert stability[:known].mean() > 10 * stability[known:].mean()
    assert model.run_agreement_.shape == (4,)
    assert (model.run_agreement_ > 0.8).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.run_agreement_, model.run_agreement_)
    np.testing.assert_array_equal(again.feature_stability_[1], model.feature_stability_[1])
    np.testing.assert_array_equal(again.contributions_, model.contributions_)


def test_missing_rows_are_imputed_and_others_kept(gaps):
    views, mask, with_nan, _ = gaps
    model = fitted(with_nan)
    whole = model.impute(with_nan)
    for v, view in enumerate(views):
        here = mask[:, v]
        np.testing.assert_array_equal(whole[v][here], view[here])
        made, true = whole[v][~here], view[~here]
        mean = view[here].mean(axis=0)
        assert ((made - true) ** 2).sum() < 0.5 * ((mean - true) ** 2).sum()
    absent = model.impute([views[0], None])
    assert absent[1].shape == views[1].shape and np.isfinite(absent[1]).all()


def test_score_is_the_explained_share(easy):
    views, _ = easy
    model = fitted(views, scale="none", equal_weight=False)
    v = model.transform(views)
    error = sum(((x - v @ u.T) ** 2).sum() for x, u in zip(views, model.basis_))
    assert model.score(views) == pytest.approx(1 - error / sum((x**2).sum() for x in views), rel=1e-9)
    assert fitted(views, n_clusters=1).score(views) < model.score(views) <= 1


def test_the_whole_estimator_survives_clone_pickle_joblib_and_copy(gaps, tmp_path):
    _, _, views, _ = gaps
    model = fitted(views, alpha=3.0)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params() and not hasattr(fresh, "labels_")
    joblib.dump(model, tmp_path / "model.joblib")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib"), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.labels_, model.labels_)
        np.testing.assert_array_equal(again.transform(views), model.transform(views))
    model.set_params(n_clusters=3, beta=1.0)
    assert len(set(model.fit_predict(views))) == 3


def test_a_saved_model_comes_back_whole(gaps, tmp_path):
    _, _, views, _ = gaps
    path = tmp_path / "model.safetensors"
    model = fitted(views, scale={"view1": "min-max", None: "unit"}, alpha=2.0, runs=3)
    model.save(path)
    again = DAIMC.load(path, n_jobs=1)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    np.testing.assert_array_equal(again.predict(views), model.predict(views))
    np.testing.assert_array_equal(again.feature_stability_[0], model.feature_stability_[0])
    # The file has no data, so contributions need the method.
    assert not hasattr(again, "contributions_")
    np.testing.assert_array_equal(again.contributions(views), model.contributions(views))
    assert again.n_features_in_ == 80 and again.n_jobs == 1 and again.seed_ == 0
    # A fit with the options of the file gives the same model.
    np.testing.assert_array_equal(clone(again).fit(views).embedding_, model.embedding_)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"not a model at all")
    with pytest.raises(ValueError, match="not a model that this version can read"):
        DAIMC.load(tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        DAIMC.load(tmp_path / "nowhere")


def test_an_unfitted_estimator_raises_not_fitted_error(easy):
    for call in ("predict", "transform", "contributions", "impute", "score", "instance_ids"):
        with pytest.raises(NotFittedError):
            getattr(DAIMC(), call)(easy[0])
    with pytest.raises(NotFittedError):
        DAIMC().save("nowhere")


def test_too_few_iterations_are_warned_of(easy):
    with pytest.warns(ConvergenceWarning, match="clusters may still change: raise max_iter"):
        model = fitted(easy[0], max_iter=1)
    assert not model.converged_ and model.n_iter_ == 1


def test_set_output_returns_data_frames(easy):
    model = fitted(easy[0]).set_output(transform="pandas")
    frame = model.transform(easy[0])
    assert list(frame.columns) == ["daimc0", "daimc1", "daimc2", "daimc3"]
    assert frame.shape == (300, 4)


def test_the_html_picture_names_the_parameters():
    assert "n_clusters" in DAIMC(n_clusters=3)._repr_html_()


def test_every_option_of_the_library_is_a_parameter():
    from daimc import _daimc

    stored = set(json.loads(_daimc.resolve(3, 0, {})))
    names = dict(_daimc.options())
    assert set(names) <= set(DAIMC().get_params())
    # Parameters of a fit that are not options, and options that only presets set.
    others = {"clusters", "seed", "view_scales", "latent_scale", "settle", "consolidate"}
    assert set(names.values()) | others == stored


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters = 0"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters = 2.5: must be a whole number"),
        ({"n_clusters": 301}, ValueError, "n_samples=300 should be >= n_clusters=301"),
        ({"n_components": 0}, ValueError, "n_components = 0"),
        ({"preset": "nature"}, ValueError, "preset = 'nature': must be 'default' or 'paper'"),
        ({"alpha": -1}, ValueError, "alpha = -1"),
        ({"alpha": "much"}, TypeError, "alpha = 'much': must be a number"),
        ({"beta": float("nan")}, ValueError, "beta = NaN"),
        ({"scale": "big"}, ValueError, "scale = big: one of auto, none, unit"),
        ({"scale": {"view7": "unit"}}, ValueError, "view 'view7' is not part"),
        ({"scale": 3}, TypeError, "scale = 3"),
        ({"equal_weight": "yes"}, TypeError, "equal_weight = 'yes'"),
        ({"init": "random"}, ValueError, "init = 'random': must be 'aligned' or 'paper'"),
        ({"init": np.ones((3, 4))}, ValueError, "init = a 3 × 4 matrix: must be 300 × 4"),
        ({"solver": 1}, TypeError, "solver = 1: must be 'coordinate' or 'multiplicative'"),
        ({"passes": 0}, ValueError, "passes = 0: must be at least 1"),
        ({"max_iter": -1}, ValueError, "max_iter = -1"),
        ({"max_iter": 0}, ValueError, "max_iter = 0: must be at least 1"),
        ({"tol": -1.0}, ValueError, "tol = -1"),
        ({"n_init": 0}, ValueError, "n_init = 0"),
        ({"runs": 0}, ValueError, "runs = 0"),
        ({"n_jobs": 0}, ValueError, "n_jobs = 0"),
        ({"n_jobs": "all"}, TypeError, "n_jobs = 'all'"),
        ({"random_state": -1}, ValueError, "random_state = -1"),
        ({"random_state": "seed"}, TypeError, "random_state = 'seed'"),
    ],
)
def test_wrong_parameters_are_refused_in_fit_by_name(easy, params, error, words):
    model = DAIMC(**{"n_clusters": 4, **params})
    with pytest.raises(error) as caught:
        model.fit(easy[0])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "params",
    [
        {"alpha": 100.0},
        {"beta": 5.0},
        {"scale": "z-score"},
        {"scale": {"view0": "min-max"}},
        {"scale": "none", "equal_weight": False},
        {"init": "paper"},
        {"solver": "multiplicative"},
        {"passes": 7},
        {"max_iter": 3},
        {"tol": 0.1},
        {"init": "paper", "n_init": 1},
        {"runs": 2},
        {"n_components": 6},
        {"preset": "paper"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_option_reaches_the_fit(params):
    from conftest import clusters

    views, _ = clusters(noise=3.0, k=6)
    # One option is changed, the others keep their values.
    *others, option = params
    base = {other: params[other] for other in others}
    assert fitted(views, **params).objective_ != fitted(views, **base).objective_, option


def test_a_fit_starts_from_the_array_init(easy):
    views, target = easy
    start = np.full((300, 4), 0.1)
    start[np.arange(300), target] = 1.1
    again = fitted(views, init=start)
    assert metrics.accuracy(target, again.labels_) == 1.0
    # No k-means runs before the first iteration, so the seed does not matter until then.
    one, two = (fitted(views, init=start, random_state=seed).objective_history_ for seed in (1, 2))
    np.testing.assert_array_equal(one, two)
