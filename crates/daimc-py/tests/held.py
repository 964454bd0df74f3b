"""Data for distributed fits, and the fit of one process."""

from functools import cache

import numpy as np
from scipy import sparse

from daimc import DAIMC, datasets, metrics

#: Four leaves, the last of them short.
LEAF = 16_384
TOTAL = 3 * LEAF + 2_000


def estimator(**params):
    return DAIMC(3, **{"random_state": 0, "neighbours": "off", "assess": False, **params})


@cache
def planted(kind):
    """Views with three clusters, masks of those whose rows are not told by NaN, and the clusters."""
    data = datasets.make_views(TOTAL, 3, [6, 5], noise=0.5, random_state=1)
    first, second = (view.astype(np.float64) for view in data.views.values())
    rng = np.random.default_rng(2)
    masks = None
    if kind == "single precision":
        first, second = first.astype(np.float32), second.astype(np.float32)
    if kind == "sparse":
        second = sparse.csr_matrix(np.where(second > 0.5, np.round(4 * second), 0.0))
        masks = {"second": rng.random(TOTAL) < 0.7}
    if kind == "gaps":
        first[rng.random(TOTAL) < 0.3] = np.nan
        gone = np.isnan(first[:, 0])
        second[~gone & (rng.random(TOTAL) < 0.3)] = np.nan
        # Cells, in the rows of some holders alone.
        cells = rng.random((1000, 5)) < 0.1
        second[:1000][cells] = np.nan
        second[np.isnan(second).all(axis=1) & gone] = 0.5
    return {"first": first, "second": second}, masks, data.target


@cache
def alone(kind):
    """The fit of one process."""
    views, masks, _ = planted(kind)
    return estimator().fit(views, mask=masks)


KINDS = ["dense", "single precision", "sparse", "gaps"]


def same(one, other):
    """Whether two fits are the same to the last bit."""
    for name in ("labels_", "embedding_", "confidence_", "contributions_"):
        np.testing.assert_array_equal(np.asarray(getattr(other, name)), getattr(one, name), err_msg=name)
    for own, theirs in zip(one.basis_ + one.alignment_, other.basis_ + other.alignment_):
        np.testing.assert_array_equal(theirs, own)
    np.testing.assert_array_equal(other.objective_history_, one.objective_history_)
    assert other.objective_ == one.objective_ and other.missingness_ == one.missingness_
    assert [other.scaling(view) for view in other.view_names_] == [one.scaling(view) for view in one.view_names_]


def accuracy(target, labels):
    return metrics.accuracy(target, np.asarray(labels))
