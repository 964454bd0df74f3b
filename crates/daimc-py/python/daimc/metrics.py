"""Agreement between a clustering and the true classes. Labels may be numbers, strings or anything that can be sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daimc import _daimc

__all__ = ["accuracy", "ari", "matching", "nmi", "pairwise_f", "purity", "scores"]


def _codes(truth: ArrayLike, labels: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any], NDArray[np.int64]]:
    coded: list[NDArray[Any]] = []
    for name, given in (("truth", truth), ("labels", labels)):
        values = np.asarray(given)
        if values.ndim != 1:
            raise ValueError(f"{name}: expected a vector, found an array with {values.ndim} dimensions")
        names, codes = np.unique(values, return_inverse=True)
        coded += [names, codes.astype(np.int64)]
    return coded[0], coded[1], coded[2], coded[3]


def scores(truth: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """All metrics: `ac`, `nmi`, `nmi_max`, `nmi_sqrt`, `ari`, `purity` and `f`, each 1 for a perfect clustering."""
    _, truth_codes, _, label_codes = _codes(truth, labels)
    return _daimc.scores(truth_codes, label_codes)


def accuracy(truth: ArrayLike, labels: ArrayLike) -> float:
    """The share of instances in the right cluster, under the best one-to-one matching of clusters and classes."""
    return scores(truth, labels)["ac"]


def nmi(truth: ArrayLike, labels: ArrayLike, average: str = "arithmetic") -> float:
    """The mutual information of clusters and classes, divided by the mean of their entropies.

    `average` is "arithmetic", "geometric" or "max".
    """
    keys = {"arithmetic": "nmi", "geometric": "nmi_sqrt", "max": "nmi_max"}
    if average not in keys:
        raise ValueError(f"average = {average!r}: must be one of {', '.join(keys)}")
    return scores(truth, labels)[keys[average]]


def ari(truth: ArrayLike, labels: ArrayLike) -> float:
    """The adjusted Rand index: pairs judged alike, corrected for chance."""
    return scores(truth, labels)["ari"]


def purity(truth: ArrayLike, labels: ArrayLike) -> float:
    """The share of instances that belong to the most frequent class of their cluster."""
    return scores(truth, labels)["purity"]


def pairwise_f(truth: ArrayLike, labels: ArrayLike) -> float:
    """The F1 score over pairs of instances in the same cluster."""
    return scores(truth, labels)["f"]


def matching(truth: ArrayLike, labels: ArrayLike) -> dict[Any, Any]:
    """The class to which the accuracy matches each cluster."""
    classes, truth_codes, clusters, label_codes = _codes(truth, labels)
    return {clusters[cluster]: classes[own] for own, cluster in _daimc.matching(truth_codes, label_codes)}
