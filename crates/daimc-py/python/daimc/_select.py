"""Selection of the number of clusters without labels."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from daimc import _daimc
from daimc._input import warn_of_ids
from daimc._progress import Fits, logger
from daimc._settings import clusters_of, seed_of, threads_of

if TYPE_CHECKING:
    from daimc._estimator import DAIMC

#: The criteria for each number of clusters: each is a median over the resamples, with its standard error.
CRITERIA = ("stability", "explained", "score")


@dataclass(frozen=True, repr=False, eq=False)
class Selection:
    """The result of `DAIMC.select`: the recommended number of clusters, and the scores of all candidates.

    Attributes
    ----------
    n_clusters : int
        The recommended number of clusters; 1 if the clusters of the best candidate are no clearer than those of the same
        data with every feature permuted: there is nothing to separate.
    confidence : float
        The share of the bootstrap samples of the resamples with the same recommendation; NaN if one cluster is
        recommended.
    reason : str
        The reason, in a sentence.
    candidates : dict of ndarray
        Columns with an entry for each candidate: "n_clusters", in increasing order; "stability", the adjusted Rand index
        between the clusters of two resamples; "explained", the share of the variance of hidden rows that the clusters
        predict, NaN if no instance is present in two views; "score", by which the recommendation is made: the product of
        the two, or stability alone; "votes", the share of the bootstrap samples that recommend the number. Standard
        errors are in "stability_error", "explained_error" and "score_error".
    n_resamples : int
        The number of resamples.
    estimator : DAIMC
        The estimator with the recommended number of clusters and the seed of the selection, not fitted.
    """

    n_clusters: int
    confidence: float
    reason: str
    candidates: dict[str, NDArray[Any]]
    n_resamples: int
    estimator: DAIMC

    def to_frame(self) -> Any:
        """The candidates as a pandas DataFrame, with the numbers of clusters as its index."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'daimc[frames]'") from error
        return pandas.DataFrame(self.candidates).set_index("n_clusters")

    def plot(self, *, ax: Any = None) -> Any:
        """Plots the scores of each number of clusters; see `daimc.plots.selection`."""
        from daimc import plots

        return plots.selection(self, ax=ax)

    def __repr__(self) -> str:
        tried = self.candidates["n_clusters"].tolist()
        return f"Selection(n_clusters={self.n_clusters}, confidence={self.confidence:.2f}, tried={tried})"

    def __str__(self) -> str:
        lines = ["n_clusters       stability       explained           score   votes"]
        for row, number in enumerate(self.candidates["n_clusters"]):
            cells = [self._cell(name, row) for name in CRITERIA]
            mark = "  <" if number == self.n_clusters else ""
            lines.append(f"{number:>10}   {'   '.join(cells)}   {self.candidates['votes'][row]:>5.0%}{mark}")
        agree = f"by {self.confidence:.0%} of the bootstrap samples of {self.n_resamples} resamples"
        return "\n".join([*lines, f"Recommended: {self.n_clusters} clusters, {agree}: {self.reason}."])

    def _cell(self, name: str, row: int) -> str:
        value, error = self.candidates[name][row], self.candidates[f"{name}_error"][row]
        return f"{'-' if np.isnan(value) else f'{value:.3f} ± {error:.3f}':>13}"


def select(estimator: DAIMC, X: Any, n_clusters: Any, mask: Any, n_resamples: Any, hidden: Any) -> Selection:
    """Implements `DAIMC.select`, one call below it (see `stacklevel`). The estimator is not changed."""
    clusters, seed, threads = _numbers(n_clusters), seed_of(estimator.random_state), threads_of(estimator.n_jobs)
    options, start = estimator._options()
    if start is not None:
        raise ValueError("init is an array, which fits one number of clusters only: use 'aligned', 'paper' or None")
    data = copy.copy(estimator)._read(X, mask, reset=True)
    progress = Fits(bool(estimator.verbose))
    each = progress if progress.wanted else None
    try:
        found, alone = _daimc.select(
            data.views, data.joined, clusters, seed, options, n_resamples, hidden, threads, each
        )
    except BaseException as error:
        progress.close("stopped" if isinstance(error, KeyboardInterrupt) else "failed")
        raise
    selection = _selection(json.loads(found), clone(estimator).set_params(random_state=seed))
    progress.close(f"{selection.n_clusters} clusters")
    warn_of_ids(data, alone, stacklevel=4)
    logger.info("%d clusters: %s", selection.n_clusters, selection.reason)
    return selection


def _selection(found: dict[str, Any], estimator: DAIMC) -> Selection:
    rows = found["candidates"]
    candidates = {"n_clusters": np.array([row["clusters"] for row in rows], dtype=np.int64)}
    for name in CRITERIA:
        # Unknown values are None in JSON, and NaN here.
        estimates = [row[name] or {} for row in rows]
        candidates[name] = np.array([own.get("value") for own in estimates], dtype=np.float64)
        candidates[f"{name}_error"] = np.array([own.get("error") for own in estimates], dtype=np.float64)
    candidates["votes"] = np.array([row["votes"] for row in rows], dtype=np.float64)
    for column in candidates.values():
        column.flags.writeable = False
    return Selection(
        n_clusters=found["recommended"],
        confidence=float("nan") if found["confidence"] is None else found["confidence"],
        reason=found["reason"],
        candidates=candidates,
        n_resamples=found["resamples"],
        estimator=estimator.set_params(n_clusters=found["recommended"]),
    )


def _numbers(n_clusters: Any) -> list[int]:
    try:
        numbers = list(n_clusters)
    except TypeError:
        message = f"n_clusters = {n_clusters!r}: must be the numbers to choose among, such as range(2, 13)"
        raise TypeError(message) from None
    return [clusters_of(number) for number in numbers]
