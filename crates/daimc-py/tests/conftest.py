import os

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


#: What may be missing where everything else has to be there.
OPTIONAL = ("no GPU", "test_gpu.py", "SCIPY_ARRAY_API is not set")


def strictly(report):
    """With `DAIMC_STRICT=1`, makes a skipped test a failure, except for the lack of a GPU."""
    reason = str(report.longrepr)
    if os.environ.get("DAIMC_STRICT") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        if not any(words in reason for words in OPTIONAL):
            report.outcome, report.longrepr = "failed", f"skipped, with DAIMC_STRICT=1: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return strictly((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return strictly((yield))
