import numpy as np
import pytest

from daimc import datasets, simulate_missing


def clusters(n=300, k=4, features=(30, 50), noise=0.5, seed=0):
    """Easy views in double precision, and their clusters."""
    data = datasets.make_views(n, k, features, noise=noise, random_state=seed)
    return [view.astype(np.float64) for view in data.views.values()], data.target


@pytest.fixture
def easy():
    return clusters()


@pytest.fixture
def gaps(easy):
    """Easy views with missing rows: complete views, mask, views with rows of NaN, clusters."""
    views, target = easy
    mask = simulate_missing(views, 0.3, random_state=1)
    with_nan = [np.where(mask[:, [v]], view, np.nan) for v, view in enumerate(views)]
    return views, mask, with_nan, target


@pytest.fixture(scope="session")
def digit():
    return datasets.load_digit()
