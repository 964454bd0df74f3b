"""Clusters instances described by several views, where each view lacks some of the instances.

>>> from daimc import DAIMC
>>> labels = DAIMC(n_clusters=10, random_state=0).fit_predict([X1, X2, X3])  # doctest: +SKIP
"""

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daimc import baselines as baselines
    from daimc import datasets as datasets
    from daimc import metrics as metrics
    from daimc import plots as plots
    from daimc import shards as shards
    from daimc._estimator import DAIMC as DAIMC
    from daimc._online import Update as Update
    from daimc._select import Selection as Selection
    from daimc._simulate import simulate_missing as simulate_missing
    from daimc._warnings import CountsWarning as CountsWarning
    from daimc._warnings import MissingnessWarning as MissingnessWarning
    from daimc._warnings import SignificanceWarning as SignificanceWarning

__all__ = [
    "CountsWarning",
    "DAIMC",
    "MissingnessWarning",
    "Selection",
    "SignificanceWarning",
    "Update",
    "baselines",
    "datasets",
    "metrics",
    "plots",
    "shards",
    "simulate_missing",
]
__version__ = _version("daimc")

# Modules with slow imports, above all scikit-learn, are imported on first use.
_MODULES = {"baselines", "datasets", "metrics", "plots", "shards"}
_MODULE_OF = {
    "DAIMC": "daimc._estimator",
    "CountsWarning": "daimc._warnings",
    "MissingnessWarning": "daimc._warnings",
    "SignificanceWarning": "daimc._warnings",
    "Selection": "daimc._select",
    "Update": "daimc._online",
    "simulate_missing": "daimc._simulate",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"daimc.{name}")
    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'daimc' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
