"""Warnings of the package's own kind."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning

from daimc import _daimc

__all__ = ["CountsWarning", "MissingnessWarning", "SignificanceWarning"]


class CountsWarning(UserWarning):
    """An AnnData or a MuData holds raw counts, and how they are scaled was left to the fit.

    Cells of which more molecules were read are larger in every feature. For gene expression `scanpy.pp.normalize_total` and
    `scanpy.pp.log1p` take that away; a `scale` of your own choice ends the warning.
    """


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


def warn_of_fit(model: _daimc.Model, stacklevel: int) -> None:
    """Warns of what a fit has to say against its own result."""
    if not model.converged:
        message = f"not converged after {len(model.history)} iterations, clusters may still change: raise max_iter"
        warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)
    *_, missingness = model.missingness
    if missingness is not None:
        warnings.warn(missingness, MissingnessWarning, stacklevel=stacklevel)
    *_, unclear = model.significance or (None,)
    if unclear is not None:
        warnings.warn(unclear, SignificanceWarning, stacklevel=stacklevel)
