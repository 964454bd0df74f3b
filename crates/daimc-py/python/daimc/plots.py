"""Plots of data and models, with matplotlib. Each function draws on `ax`, or on new axes, and returns them.

Long names are shortened in the middle, and legends are placed to the right of the axes. A figure without a layout gets
matplotlib's "constrained" layout, so that nothing is cut off when it is saved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daimc._input import is_views, read

__all__ = ["contributions", "convergence", "embedding", "features", "missingness", "selection"]

#: The maximum numbers of characters of a name, combinations of views, and entries of a legend.
_LONGEST, _COMBINATIONS, _ENTRIES = 30, 30, 100

#: The number of entries in a column of a legend.
_COLUMN = 20

_BLUE = "#3b6ea5"

#: With ten colours, enough to distinguish a hundred clusters.
_MARKERS = "os^Dv<>pPX"


def _axes(ax: Any, width: float = 6.4, height: float = 4.8) -> Any:
    """The axes to draw on: `ax`, or new ones of this size in inches."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("plots need matplotlib: pip install 'daimc[plots]'") from error
        return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    figure = ax.figure.canvas.figure  # the whole figure, even if the axes are in a subfigure
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    return ax


def _short(name: Any) -> str:
    """A name on one line, shortened in the middle. Dollars are escaped (mathtext), as is a leading underscore, which would
    hide a legend entry.
    """
    text = " ".join(str(name).split())
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2 - 1]}…{text[-_LONGEST // 2 :]}"
    return (" " + text if text.startswith("_") else text).replace("$", r"\$")


def _legend_size(names: list[str]) -> tuple[float, float]:
    """The width and height of a legend in inches."""
    columns = -(-len(names) // _COLUMN)
    longest = max(map(len, names), default=0)
    return columns * (0.5 + 0.09 * longest), 0.5 + 0.2 * min(len(names), _COLUMN)


def _legend(ax: Any, handles: list[Any], names: list[str], **options: Any) -> None:
    """A legend to the right of the axes."""
    columns = -(-len(names) // _COLUMN)
    position = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0}
    ax.legend(handles, names, ncols=columns, fontsize="small", **position, **options)


def missingness(X: Any, mask: Any = None, *, id_column: str | None = None, ax: Any = None) -> Any:
    """Which instances are present in which views: a bar for each combination of views, the most frequent first."""
    if not is_views(X):
        raise TypeError("X is one matrix: pass a list or a dictionary of views")
    data = read(X, mask, id_column)
    present = np.column_stack([data.rows(view) >= 0 for view in data.views])
    patterns, counts = np.unique(present, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    names = [_short(view.name) for view in data.views]
    most, rest = order[:_COMBINATIONS], order[_COMBINATIONS:]
    wide = sum(len(name) + 2 for name in names) > 2 * _LONGEST
    labels = [(_dots if wide else _words)(names, patterns[i]) for i in most]
    sizes = counts[most].tolist()
    if len(rest):
        labels.append(f"{len(rest)} others")
        sizes.append(int(counts[rest].sum()))
    legend_width, legend_height = _legend_size(names) if wide else (0.0, 0.0)
    left = 0.1 * max(map(len, labels))
    ax = _axes(ax, max(6.0, 3.5 + left) + legend_width, max(1.2 + 0.3 * len(labels), legend_height + 1.0))
    bars = ax.barh(np.arange(len(labels)), sizes, color=_BLUE)
    ax.bar_label(bars, padding=3)
    ax.margins(x=0.12)  # for the bar labels
    ax.set_yticks(np.arange(len(labels)), labels, family="monospace")
    ax.invert_yaxis()
    ax.set_xlabel("instances")
    ax.set_title("Which views show which instances")
    if wide:
        from matplotlib.lines import Line2D

        numbered = [f"{number}. {name}" for number, name in enumerate(names, 1)]
        _legend(ax, [Line2D([], [], linestyle="") for _ in names], numbered, title="from left to right", handlelength=0)
    return ax


def _words(names: list[str], pattern: NDArray[np.bool_]) -> str:
    return "  ".join(name if present else "·" * len(name) for name, present in zip(names, pattern))


def _dots(names: list[str], pattern: NDArray[np.bool_]) -> str:
    """A dot for each view, in groups of five."""
    dots = "".join("●" if present else "○" for present in pattern)
    return " ".join(dots[start : start + 5] for start in range(0, len(names), 5))


def convergence(model: Any, *, ax: Any = None) -> Any:
    """The objective after each iteration."""
    ax = _axes(ax)
    history = model.objective_history_
    ax.plot(np.arange(1, len(history) + 1), history, marker=".", color=_BLUE)
    ax.set_xlabel("iteration")
    ax.set_ylabel("objective")
    return ax


def embedding(model: Any, labels: Any = None, *, kind: str | None = None, ax: Any = None) -> Any:
    """The instances in two dimensions, coloured by cluster or by `labels`.

    `kind="map"` shows `map_`, the layout of the graph that the clusters were cut from. Points that are close together
    belong together, but distances between separate clusters mean little. `kind="pca"` shows the rows of V, scaled to
    length 1, along their first two principal axes. By default the map, if the model has one.
    """
    if kind is None:
        kind = "pca" if model.map_ is None else "map"
    if kind not in ("map", "pca"):
        raise ValueError(f"kind = {kind!r}: must be 'map' or 'pca'")
    if kind == "map" and model.map_ is None:
        raise ValueError("the model has no map: fit it with map=True, or use kind='pca'")
    seen = ~np.isnan(model.embedding_).any(axis=1)
    given = np.asarray(model.labels_ if labels is None else labels)
    if len(given) != len(seen):
        raise ValueError(f"labels has {len(given)} entries for {len(seen)} instances")
    plane = model.map_[seen] if kind == "map" else _principal(model.embedding_[seen])
    kinds, codes = np.unique(given[seen], return_inverse=True)
    names = [_short(kind) for kind in kinds]
    named = len(names) <= _ENTRIES
    legend_width, legend_height = _legend_size(names) if named else (0.0, 0.0)
    ax = _axes(ax, 5.6 + legend_width, max(4.8, legend_height + 0.6))
    dots = []
    for code in range(len(names)):
        own = plane[codes == code]
        marker = _MARKERS[code // 10 % len(_MARKERS)]
        dots.append(ax.scatter(own[:, 0], own[:, 1], s=10, marker=marker, color=f"C{code % 10}", linewidths=0))
    if named:
        _legend(ax, dots, names, markerscale=2, title="cluster" if labels is None else None)
    if kind == "map":
        ax.set_aspect("equal", adjustable="datalim")  # distances are the same in both directions
        ax.set_xticks([])
        ax.set_yticks([])
    else:
        ax.set_xlabel("first axis")
        ax.set_ylabel("second axis")
    return ax


def features(model: Any, view: str | None = None, n: int = 20, *, ax: Any = None) -> Any:
    """The most relevant features of a view."""
    view = model.view_names_[0] if view is None else view
    if view not in model.view_names_:
        raise ValueError(f"view '{view}' is not part of the model, which has: {', '.join(model.view_names_)}")
    relevance = model.feature_relevance_[model.view_names_.index(view)]
    best = np.argsort(-relevance, kind="stable")[:n]
    names = model.feature_names(view)
    ax = _axes(ax, 7.0, 1.2 + 0.22 * len(best))
    ax.barh(np.arange(len(best)), relevance[best], color=_BLUE)
    ax.set_yticks(np.arange(len(best)), [_short(names[feature]) for feature in best])
    ax.invert_yaxis()
    ax.set_xlabel("relevance (length of the row of B)")
    ax.set_title(f"Features of '{_short(view)}'")
    return ax


def contributions(model: Any, *, ax: Any = None) -> Any:
    """The mean contribution of each view to each cluster, over the instances present in it; red is evidence against it."""
    if not hasattr(model, "contributions_"):
        raise ValueError("the model was loaded from a file, which has no contributions: fit it")
    clusters = np.unique(model.labels_[model.labels_ >= 0])
    means = np.full((len(clusters), len(model.view_names_)), np.nan)
    for row, cluster in enumerate(clusters):
        own = model.contributions_[model.labels_ == cluster]
        shown = ~np.isnan(own)
        counts = shown.sum(axis=0)
        means[row, counts > 0] = np.where(shown, own, 0.0).sum(axis=0)[counts > 0] / counts[counts > 0]
    names = [_short(name) for name in model.view_names_]
    longest = max(map(len, names))
    slanted = longest > 8
    below = 0.07 * longest if slanted else 0.2
    ax = _axes(ax, max(5.0, 2.5 + 0.6 * len(names) + below), max(2.5, 1.2 + 0.25 * len(clusters) + below))
    image = ax.imshow(means, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="mean contribution")
    slant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    ax.set_xticks(np.arange(len(names)), names, **slant)
    ax.set_yticks(np.arange(len(clusters)), [str(cluster) for cluster in clusters])
    ax.set_ylabel("cluster")
    ax.set_title("Contribution of each view")
    return ax


def selection(found: Any, *, ax: Any = None) -> Any:
    """The scores of each number of clusters in `DAIMC.select`, with standard errors; a line marks the recommended one."""
    ax = _axes(ax, 7.6)
    columns = found.candidates
    bars = {}
    styles = {"stability": ("#009e73", "s", 0.5), "explained": ("#d55e00", "^", 0.5), "score": ("#3b6ea5", "o", 1.0)}
    for name, (colour, marker, alpha) in styles.items():
        if np.isnan(columns[name]).all():
            continue  # no instance is present in two views
        errors = columns[f"{name}_error"]
        style = {"color": colour, "marker": marker, "alpha": alpha, "capsize": 3, "label": name}
        bars[name] = ax.errorbar(columns["n_clusters"], columns[name], errors, **style)
    if found.n_clusters > 1:
        ax.axvline(found.n_clusters, color="0.6", linestyle=":", zorder=0)
    ax.set_xticks(columns["n_clusters"][:: -(-len(columns["n_clusters"]) // 20)])
    ax.set_xlabel("number of clusters")
    several = f"{found.n_clusters} clusters, by {found.confidence:.0%} of the bootstrap samples"
    ax.set_title(several if found.n_clusters > 1 else "one cluster: nothing to separate")
    _legend(ax, list(bars.values()), list(bars))
    return ax


def _principal(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows, scaled to length 1, along their first two principal axes, each turned so that its largest entry is positive."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(lengths > 0, lengths, 1.0)
    rows = rows - rows.mean(axis=0)
    _, axes = np.linalg.eigh(rows.T @ rows)
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    plane = rows @ axes
    return plane if plane.shape[1] == 2 else np.column_stack([plane, np.zeros(len(plane))])
