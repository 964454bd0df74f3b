"""AnnData and MuData: their matrices as views, and the results that a fit writes into them. Neither is imported here."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from daimc import __version__
from daimc._data import Data
from daimc._matrix import View
from daimc._tables import Table, in_order, is_annotated, is_pandas, read_pandas
from daimc._warnings import CountsWarning

if TYPE_CHECKING:
    from daimc._estimator import DAIMC

#: A name for every view, or names by view.
Choice = str | Mapping[str, str] | None

#: The number of rows inspected to recognise counts, and their minimum skewness: an exponential distribution has 2.
_INSPECTED, _SKEWED = 1000, 1.5


def is_mudata(X: Any) -> bool:
    module = sys.modules.get("mudata")
    return module is not None and isinstance(X, module.MuData)


@dataclass(frozen=True)
class Slots:
    """The location of a view's matrix in an AnnData: a layer, a key of `.obsm`, or `.X`."""

    layer: Choice = None
    use_rep: Choice = None

    def of(self, view: str) -> tuple[str | None, str | None]:
        """The layer or the key of `.obsm` of a view; both are `None` for `.X`."""
        layer, rep = _of(self.layer, view), _of(self.use_rep, view)
        if layer is not None and rep is not None:
            raise ValueError(f"view '{view}': layer='{layer}' and use_rep='{rep}' are both given, but only one can be used")
        return layer, rep

    def check(self, parts: Mapping[str, Any]) -> None:
        """Rejects names that match no view."""
        for option, choice in (("layer", self.layer), ("use_rep", self.use_rep)):
            if choice is None:
                continue
            if not isinstance(choice, (str, Mapping)):
                raise TypeError(f"{option} = {choice!r}: must be a name, or a dictionary of names by view")
            annotated = [name for name, part in parts.items() if is_annotated(part)]
            if not annotated:
                raise TypeError(f"{option} = {choice!r} applies to AnnData and MuData only, but X has neither")
            for view in choice if isinstance(choice, Mapping) else ():
                if view not in parts:
                    raise ValueError(f"{option} names the view '{view}', but X has: {', '.join(parts)}")


def _of(choice: Choice, view: str) -> str | None:
    return choice.get(view) if isinstance(choice, Mapping) else choice


def read_annotated(X: Any, name: str, slots: Slots, known: list[str] | None) -> Table:
    """Reads the view of an AnnData, restricted to the features of a model if these are `known`."""
    layer, rep = slots.of(name)
    ids = list(X.obs_names)
    if rep is not None:
        return _representation(_item(X.obsm, rep, name, "obsm", "use_rep"), rep, name, ids, X.obs_names, known)
    matrix = X.X if layer is None else _item(X.layers, layer, name, "layers", "layer")
    if matrix is None:
        raise ValueError(f"view '{name}' has no X: select a layer with layer=, or a key of obsm with use_rep=")
    features = [str(feature) for feature in X.var_names]
    if hasattr(matrix, "to_memory"):  # a backed AnnData has no scipy matrix
        matrix = matrix.to_memory()
    if known is not None and features != known:
        order = in_order(features, name, known, "feature", more=True)
        matrix = matrix[:, order] if sparse.issparse(matrix) else np.asarray(matrix)[:, order]
        features = known
    return Table(matrix, features, ids, X.obs_names)


def _item(items: Mapping[str, Any], key: str, view: str, where: str, option: str) -> Any:
    if key not in items:
        others = ", ".join(map(str, items)) or "nothing"
        raise ValueError(f"view '{view}' has no {where}['{key}'], which {option} names; it has: {others}")
    return items[key]


def _representation(found: Any, rep: str, name: str, ids: list[Any], index: Any, known: list[str] | None) -> Table:
    if is_pandas(found):
        return read_pandas(found, name, None, known)
    if getattr(found, "ndim", 0) != 2:
        raise ValueError(f"view '{name}': obsm['{rep}'] is no matrix")
    features = [f"{rep}-{number}" for number in range(found.shape[1])]
    if known is not None and features != known:
        raise ValueError(f"view '{name}': obsm['{rep}'] has {len(features)} columns, but the model has {len(known)}")
    return Table(found, features, ids, index)


# --- what a fit writes ------------------------------------------------------------------------------------------------


def annotate(X: Any, model: DAIMC, data: Data) -> None:
    """Writes the results of a fit into an AnnData or a MuData, under names that contain `model.key_added`."""
    import pandas

    key = model.key_added
    if is_mudata(X):
        row_of = {text: row for row, text in enumerate(data.names.texts or [])}
        rows = np.array([row_of.get(str(name), -1) for name in X.obs_names], dtype=np.intp)
    else:
        rows = np.arange(X.n_obs)
    here = rows >= 0

    def spread(found: Any) -> Any:
        out = np.full((len(rows), *found.shape[1:]), np.nan)
        out[here] = found[rows[here]]
        return out

    labels = np.where(here, model.labels_[rows], -1)
    clusters = np.unique(labels[labels >= 0])
    codes = np.where(labels >= 0, np.searchsorted(clusters, labels), -1)
    X.obs[key] = pandas.Categorical.from_codes(codes, [str(cluster) for cluster in clusters])
    X.obs[f"{key}_confidence"] = np.where(labels >= 0, spread(model.confidence_), np.nan)
    X.obsm[f"X_{key}"] = spread(model.embedding_)
    if model.map_ is not None:
        X.obsm[f"X_{key}_map"] = spread(model.map_)
    X.obsm[f"{key}_contributions"] = pandas.DataFrame(
        spread(model.contributions_), index=X.obs_names, columns=model.view_names_
    )
    X.uns[key] = _provenance(model)
    slots = Slots(model.layer, model.use_rep)
    for view, own in (X.mod if is_mudata(X) else {model.view_names_[0]: X}).items():
        if slots.of(view)[1] is None:
            own.varm[f"{key}_weights"] = model.feature_weights(view)


def _provenance(model: DAIMC) -> dict[str, Any]:
    """Options, scalings and version of a fit, in types that an h5ad file can store: it cannot store `None`."""
    scaling = {view: model.scaling(view) for view in model.view_names_}
    used, reason = model.neighbours_
    options = json.loads(model._model.options)
    return {
        "version": __version__,
        "options": {name: value for name, value in options.items() if value is not None and value != {}},
        "views": np.array(model.view_names_, dtype=object),
        "scaling": {view: {"scale": scale, "reason": reason} for view, (scale, reason) in scaling.items()},
        "neighbours": {"use": used, "reason": reason},
        "objective": model.objective_,
        "n_iter": model.n_iter_,
        "converged": model.converged_,
    }


# --- imputation -------------------------------------------------------------------------------------------------------


def filled_annotated(X: Any, whole: dict[str, Any], features: dict[str, list[str] | None], data: Data, slots: Slots) -> Any:
    """An AnnData like X that contains the completed matrix only."""
    (view, rows), *_ = whole.items()
    return _filled(type(X), X, rows, features[view], X.obs.copy(), slots.of(view))


def filled_mudata(X: Any, whole: dict[str, Any], features: dict[str, list[str] | None], data: Data, slots: Slots) -> Any:
    """A MuData like X in which every instance is present in every view."""
    import pandas

    annotated = type(next(iter(X.mod.values())))
    index = pandas.Index([str(name) for name in data.names.given])
    views = {}
    for name, rows in whole.items():
        own = X.mod.get(name)
        obs = pandas.DataFrame(index=index) if own is None else own.obs.reindex(index)
        views[name] = _filled(annotated, own, rows, features[name], obs, slots.of(name))
    return type(X)(views)


def _filled(
    annotated: Any, own: Any, rows: Any, features: list[str] | None, obs: Any, slot: tuple[str | None, str | None]
) -> Any:
    import pandas

    layer, rep = slot
    uns = {} if own is None else dict(own.uns)
    if rep is not None:
        return annotated(None, obs=obs, obsm={rep: rows}, uns=uns)
    names = features or [str(number) for number in range(rows.shape[1])]
    if own is None:
        var = pandas.DataFrame(index=names)
    else:
        var = own.var.copy() if list(own.var_names) == names else own.var.loc[names]
    if layer is not None:
        return annotated(None, obs=obs, var=var, layers={layer: rows}, uns=uns)
    return annotated(rows, obs=obs, var=var, uns=uns)


# --- counts -----------------------------------------------------------------------------------------------------------


def warn_of_counts(model: DAIMC, data: Data, stacklevel: int) -> None:
    """Warns of raw counts in an AnnData or a MuData if the scaling was chosen automatically."""
    for view in data.views:
        scale = model.scale.get(view.name, model.scale.get(None)) if isinstance(model.scale, Mapping) else model.scale
        if scale not in (None, "auto") or model.preset != "default" or not _is_counts(view):
            continue
        used = model.scaling(view.name)[0]
        done = "their logarithms were taken" if used.startswith("log") else f"they were scaled by '{used}'"
        warnings.warn(
            f"view '{view.name}' contains raw counts: {done}, but cells were not normalised to the same total. For gene "
            "expression use sc.pp.normalize_total and sc.pp.log1p first; setting scale silences this warning",
            CountsWarning,
            stacklevel=stacklevel,
        )


def _is_counts(view: View) -> bool:
    """Whether values are non-negative integers with a skewed distribution, as molecule counts are, and not only 0 and 1."""
    rows = np.unique(np.linspace(0, view.shape[0] - 1, min(view.shape[0], _INSPECTED)).astype(np.intp))
    sample = view.matrix[rows]
    x = np.asarray(sample.data if sparse.issparse(sample) else sample, dtype=np.float64).ravel()
    zeros = sample.shape[0] * sample.shape[1] - x.size
    x = x[~np.isnan(x)]
    if not x.size or x.min() < 0 or x.max() <= 1 or not np.array_equal(x, np.trunc(x)):
        return False
    total = x.size + zeros
    mean = x.sum() / total
    square = (((x - mean) ** 2).sum() + zeros * mean**2) / total
    cube = (((x - mean) ** 3).sum() - zeros * mean**3) / total
    return bool(square > 0 and cube > _SKEWED * square**1.5)
