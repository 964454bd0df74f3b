"""Clusters associated with which views instances have."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from daimc import DAIMC, MissingnessWarning

INSTANCES = 300


def views(seed: int, by_class: bool) -> tuple[list[np.ndarray], np.ndarray]:
    """Three clear clusters in two views; the second lacks a third of the instances, at random or mostly of a class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=INSTANCES)
    made = [3 * rng.normal(size=(3, d))[truth] + rng.normal(size=(INSTANCES, d)) for d in (10, 15)]
    share = np.where(truth == 0, 0.8, 0.1) if by_class else np.full(INSTANCES, 0.33)
    made[1][rng.random(INSTANCES) < share] = np.nan
    return made, truth


def test_missing_by_class_warns_at_the_line_of_the_fit() -> None:
    made, _ = views(0, by_class=True)
    with pytest.warns(MissingnessWarning, match="lack view") as caught:
        model = DAIMC(n_clusters=3, random_state=0).fit(made)
    warned = [one for one in caught if one.category is MissingnessWarning]
    assert len(warned) == 1 and warned[0].filename == __file__
    assert model.missingness_["p_value"] < 0.01 and model.missingness_["information"] > 0.05


def test_missing_at_random_does_not() -> None:
    made, _ = views(1, by_class=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MissingnessWarning)
        model = DAIMC(n_clusters=3, random_state=0).fit(made)
    assert model.missingness_["information"] < 0.02
