"""Warnings of the package."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning

from daimc import _daimc

__all__ = ["CountsWarning", "MissingnessWarning", "SignificanceWarning"]


class CountsWarning(UserWarning):
    """An AnnData or a MuData contains raw counts, and their scaling was chosen automatically.

    Cells with more sequenced molecules have larger values in every feature. For gene expression,
    `scanpy.pp.normalize_total` and `scanpy.pp.log1p` correct for that; setting `scale` yourself silences the warning.
    """


class MissingnessWarning(UserWarning):
    """Clusters are associated with which views an instance has, more than its values explain.

    In real data this may be a finding: a test may be ordered for ill patients only. If instances are missing at
    random, such clusters are an artefact. `daimc.plots.missingness` plots which instances are present in which views;
    `warnings.simplefilter("error", MissingnessWarning)` turns the warning into an error.
    """


class SignificanceWarning(UserWarning):
    """The clusters are no clearer than those of the same data with every feature permuted.

    There may be nothing to separate, or not this many clusters: try another `n_clusters`, or use `select`.
    """


def warn_of_fit(model: _daimc.Model, stacklevel: int) -> None:
    """Issues the warnings about the result of a fit."""
    if not model.converged:
        message = f"not converged after {len(model.history)} iterations, clusters may still change: raise max_iter"
        warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)
    *_, missingness = model.missingness
    if missingness is not None:
        warnings.warn(missingness, MissingnessWarning, stacklevel=stacklevel)
    *_, unclear = model.significance or (None,)
    if unclear is not None:
        warnings.warn(unclear, SignificanceWarning, stacklevel=stacklevel)
