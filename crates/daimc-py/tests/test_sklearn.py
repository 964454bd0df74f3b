"""The estimator checks of scikit-learn, and its tools applied to the estimator."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from daimc import DAIMC, metrics

#: Checks that are known to fail, with the reason; none at present.
EXPECTED: dict[str, str] = {}

#: Alternating columns, so that two columns are enough.
TWO_VIEWS = [slice(0, None, 2), slice(1, None, 2)]


@parametrize_with_checks(
    [DAIMC(n_clusters=2, view_slices=TWO_VIEWS), DAIMC(n_clusters=2)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_pipeline_runs(gaps):
    _, _, views, target = gaps
    slices = [slice(0, 30), slice(30, None)]
    pipeline = make_pipeline(FunctionTransformer(), DAIMC(4, view_slices=slices, random_state=0))
    assert metrics.accuracy(target, pipeline.fit_predict(np.hstack(views))) > 0.98
    assert pipeline[-1].get_feature_names_out().tolist() == ["daimc0", "daimc1", "daimc2", "daimc3"]
    first = make_pipeline(DAIMC(4, view_slices=slices, random_state=0), StandardScaler())
    assert first.fit_transform(np.hstack(views)).shape == (300, 4)


def test_a_grid_search_finds_the_number_of_clusters_that_explains_more(easy):
    views, _ = easy
    search = GridSearchCV(
        DAIMC(view_slices=[slice(0, 30), slice(30, None)], random_state=0), {"n_clusters": [1, 4]}, cv=3
    )
    search.fit(np.hstack(views))
    assert search.best_params_ == {"n_clusters": 4}


def test_joblib_runs_fits_in_processes(gaps):
    from joblib import Parallel, delayed

    _, _, views, _ = gaps
    models = [DAIMC(4, random_state=seed, n_jobs=1) for seed in range(2)]
    there = Parallel(n_jobs=2)(delayed(model.fit)(views) for model in models)
    for model, other in zip(models, there):
        np.testing.assert_array_equal(model.fit(views).labels_, other.labels_)
