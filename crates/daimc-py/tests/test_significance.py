"""Whether clusters are clearer than chance."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from daimc import DAIMC, SignificanceWarning


def views(seed, separation):
    rng = np.random.default_rng(seed)
    labels = np.arange(150) % 3
    return [rng.normal(size=(3, d))[labels] * separation + rng.normal(size=(150, d)) for d in (20, 40)]


def test_noise_issues_a_warning_and_clusters_do_not(tmp_path):
    with pytest.warns(SignificanceWarning, match="no clearer than chance") as caught:
        model = DAIMC(3, random_state=0).fit(views(0, 0))
    assert [one.filename for one in caught if one.category is SignificanceWarning] == [__file__]
    found = model.significance_
    assert found["agreement"] < found["by_chance"] + 3.5 * found["deviation"]

    with warnings.catch_warnings():
        warnings.simplefilter("error", SignificanceWarning)
        model = DAIMC(3, random_state=0).fit(views(0, 1))
    found = model.significance_
    assert found["agreement"] > 0.5 > found["by_chance"] + 3.5 * found["deviation"]
    model.save(tmp_path / "model.daimc")
    assert DAIMC.load(tmp_path / "model.daimc").significance_ == found


def test_the_published_algorithm_is_assessed_on_request():
    given = views(0, 1)
    model = DAIMC(3, preset="paper", random_state=0).fit(given)
    assert (model.significance_, model.reproducibility_) == (None, None)
    assessed = DAIMC(3, preset="paper", assess=True, random_state=0).fit(given)
    assert assessed.significance_ is not None and 0 < assessed.reproducibility_ <= 1
    np.testing.assert_array_equal(assessed.labels_, model.labels_)
    np.testing.assert_array_equal(assessed.embedding_, model.embedding_)


def test_too_few_samples_have_no_significance():
    model = DAIMC(3, random_state=0).fit([view[:14] for view in views(0, 1)])
    assert model.significance_ is None
