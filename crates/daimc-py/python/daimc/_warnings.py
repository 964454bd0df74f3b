"""Warnings of the package's own kind."""

from __future__ import annotations

import warnings

__all__ = ["MissingnessWarning", "SignificanceWarning"]


class MissingnessWarning(UserWarning):
    """Clusters go together with which views show an instance, more than its values explain.

    In real data they may: where a test is ordered for the ill alone, who lacks it is a finding. Where values are missing
    at random, such clusters are an artefact. `daimc.plots.missingness` shows which views show which instances;
    `warnings.simplefilter("error", MissingnessWarning)` makes an error of it.
    """


class SignificanceWarning(UserWarning):
    """The clusters are no clearer than those of the same data with every feature permuted.

    There may be nothing to separate, or not into so many clusters: compare with another `n_clusters`, or with `select`.
    """


def _warn_missingness(message: str, stacklevel: int = 4) -> None:
    """Warns that clusters follow missingness, at the line that called `fit`, which is two calls above by default."""
    warnings.warn(message, MissingnessWarning, stacklevel=stacklevel)
