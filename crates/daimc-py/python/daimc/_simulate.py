"""Simulated missingness."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daimc import _daimc
from daimc._input import is_views
from daimc._settings import seed_of


def simulate_missing(X: Any, missing: Any, random_state: Any = None) -> NDArray[np.bool_]:
    """A mask that removes a share of the instances from each view at random. Each instance keeps at least one view.

    With half of each of two views removed, no instance keeps both, and nothing relates the clusters of one view to those of the other.

    Parameters
    ----------
    X : list or dict of matrices
        The views, of which only the shapes matter.
    missing : float or list of float
        The share of instances that each view loses; a list has one for each view.
    random_state : int, Generator, RandomState or None
        An integer gives the mask of `daimc simulate --seed`.

    Returns
    -------
    mask : ndarray of shape (n_samples, n_views)
        `True` where an instance is present; for `fit(X, mask=mask)`.
    """
    if not is_views(X):
        raise TypeError("X is one matrix: pass a list or a dictionary of views")
    views = list(X.values()) if isinstance(X, dict) else list(X)
    lengths = {int(np.shape(view)[0]) for view in views}
    if len(lengths) != 1:
        raise ValueError(f"the views have {sorted(lengths)} rows: rows must be the same instances in every view")
    rates = [float(missing)] * len(views) if isinstance(missing, Real) else [float(rate) for rate in missing]
    if len(rates) != len(views):
        raise ValueError(f"missing has {len(rates)} shares for {len(views)} views: pass one for each view")
    return _daimc.missing(lengths.pop(), rates, seed_of(random_state))
