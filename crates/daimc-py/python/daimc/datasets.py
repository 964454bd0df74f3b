"""Example data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daimc import _daimc
from daimc._settings import seed_of

__all__ = ["load_digit", "make_views"]


def _bunch(**parts: Any) -> Any:
    from sklearn.utils import Bunch

    return Bunch(**parts)


def load_digit(views: Sequence[str] = ("fac", "fou", "kar", "pix", "zer")) -> Any:
    """Digit: 2000 handwritten digits, described by up to six sets of features. It is part of the package.

    Parameters
    ----------
    views : sequence of str
        Any of "fac", "fou", "kar", "mor", "pix" and "zer"; the paper uses all but "mor".

    Returns
    -------
    data : Bunch
        `views`, a dictionary of arrays in single precision; `target`, the digits; `DESCR`.
    """
    known, target = _daimc.digit()
    strange = [view for view in views if view not in known]
    if strange:
        raise ValueError(f"Digit has no view '{strange[0]}'; it has {', '.join(known)}")
    return _bunch(
        views={view: known[view] for view in views},
        target=target,
        DESCR="R. P. W. Duin, Multiple Features, UCI Machine Learning Repository, CC BY 4.0.",
    )


def make_views(
    n_samples: int, n_clusters: int, n_features: Sequence[int], *, noise: float = 1.0, random_state: Any = None
) -> Any:
    """Gaussian clusters, with independent centres in each view.

    Parameters
    ----------
    n_samples, n_clusters : int
        The numbers of instances and of clusters.
    n_features : sequence of int
        The number of features of each view.
    noise : float
        The standard deviation of values about the centre of their cluster; that of the centres is 1.
    random_state : int, Generator, RandomState or None
        The source of randomness.

    Returns
    -------
    data : Bunch
        `views`, a dictionary of arrays in single precision; `target`, the clusters.
    """
    features = [int(number) for number in n_features]
    views, target = _daimc.synthetic(n_samples, n_clusters, features, noise, seed_of(random_state))
    return _bunch(views=views, target=target)
