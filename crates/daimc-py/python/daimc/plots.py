"""Pictures of data and models, with matplotlib. Each function draws on `ax`, or on a new one, and returns it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daimc._input import is_views, read

__all__ = ["contributions", "convergence", "embedding", "features", "missingness", "selection"]


def _axes(ax: Any, **size: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'daimc[plots]'") from error
    return pyplot.subplots(**size)[1]


def missingness(X: Any, mask: Any = None, *, id_column: str | None = None, ax: Any = None) -> Any:
    """Which views show which instances: a bar for each combination of views, the most frequent first."""
    if not is_views(X):
        raise TypeError("X is one matrix: give a list or a dictionary of views")
    data = read(X, mask, id_column)
    shown = np.column_stack([data.rows(view) >= 0 for view in data.views])
    patterns, counts = np.unique(shown, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    names = [view.name for view in data.views]
    ax = _axes(ax, figsize=(6, 0.6 + 0.3 * len(order)))
    labels = ["  ".join(name if there else "·" * len(name) for name, there in zip(names, patterns[i])) for i in order]
    bars = ax.barh(np.arange(len(order)), counts[order], color="#3b6ea5")
    ax.bar_label(bars, padding=3)
    ax.set_yticks(np.arange(len(order)), labels, family="monospace")
    ax.invert_yaxis()
    ax.set_xlabel("instances")
    ax.set_title("Which views show which instances")
    return ax


def convergence(model: Any, *, ax: Any = None) -> Any:
    """The objective after each iteration."""
    ax = _axes(ax)
    history = model.objective_history_
    ax.plot(np.arange(1, len(history) + 1), history, marker=".", color="#3b6ea5")
    ax.set_xlabel("iteration")
    ax.set_ylabel("objective")
    return ax


def embedding(model: Any, labels: Any = None, *, ax: Any = None) -> Any:
    """The rows of V, scaled to length 1, along their first two principal axes; coloured by cluster or by `labels`."""
    ax = _axes(ax)
    seen = ~np.isnan(model.embedding_).any(axis=1)
    given = np.asarray(model.labels_ if labels is None else labels)
    if len(given) != len(seen):
        raise ValueError(f"labels has {len(given)} entries for {len(seen)} instances")
    rows = model.embedding_[seen]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(lengths > 0, lengths, 1.0)
    plane = _plane(rows - rows.mean(axis=0))
    names, codes = np.unique(given[seen], return_inverse=True)
    for code, name in enumerate(names):
        own = plane[codes == code]
        ax.scatter(own[:, 0], own[:, 1], s=6, label=str(name), color=_colour(code))
    if len(names) <= 20:
        ax.legend(markerscale=2, fontsize="small", title="cluster" if labels is None else None)
    ax.set_xlabel("first axis")
    ax.set_ylabel("second axis")
    return ax


def features(model: Any, view: str | None = None, n: int = 20, *, ax: Any = None) -> Any:
    """The features of a view that matter most."""
    view = model.view_names_[0] if view is None else view
    if view not in model.view_names_:
        raise ValueError(f"view '{view}' is not part of the model, which has: {', '.join(model.view_names_)}")
    relevance = model.feature_relevance_[model.view_names_.index(view)]
    best = np.argsort(-relevance, kind="stable")[:n]
    names = model.feature_names(view)
    ax = _axes(ax, figsize=(6, 0.8 + 0.22 * len(best)))
    ax.barh(np.arange(len(best)), relevance[best], color="#3b6ea5")
    ax.set_yticks(np.arange(len(best)), [names[feature] for feature in best])
    ax.invert_yaxis()
    ax.set_xlabel("relevance (length of the row of B)")
    ax.set_title(f"Features of '{view}'")
    return ax


def contributions(model: Any, *, ax: Any = None) -> Any:
    """What each view contributes to each cluster, on average over the instances that it shows; red speaks against it."""
    if not hasattr(model, "contributions_"):
        raise ValueError("the model was loaded from a file, which has no contributions: fit it")
    clusters = np.unique(model.labels_[model.labels_ >= 0])
    means = np.full((len(clusters), len(model.view_names_)), np.nan)
    for row, cluster in enumerate(clusters):
        own = model.contributions_[model.labels_ == cluster]
        shown = ~np.isnan(own)
        counts = shown.sum(axis=0)
        means[row, counts > 0] = np.where(shown, own, 0.0).sum(axis=0)[counts > 0] / counts[counts > 0]
    ax = _axes(ax, figsize=(1.5 + 0.8 * means.shape[1], 1 + 0.3 * len(clusters)))
    image = ax.imshow(means, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="mean contribution")
    ax.set_xticks(np.arange(means.shape[1]), model.view_names_)
    ax.set_yticks(np.arange(len(clusters)), [str(cluster) for cluster in clusters])
    ax.set_ylabel("cluster")
    ax.set_title("What each view says for the clusters")
    return ax


def selection(found: Any, *, ax: Any = None) -> Any:
    """What `DAIMC.select` judged each number of clusters by, with standard errors; a line marks the recommended one."""
    ax = _axes(ax)
    columns = found.candidates
    styles = {"stability": ("#009e73", "s", 0.5), "explained": ("#d55e00", "^", 0.5), "score": ("#3b6ea5", "o", 1.0)}
    for name, (colour, marker, alpha) in styles.items():
        if np.isnan(columns[name]).all():
            continue  # no instance is seen in two views
        errors = columns[f"{name}_error"]
        ax.errorbar(
            columns["n_clusters"], columns[name], errors, color=colour, marker=marker, alpha=alpha, capsize=3, label=name
        )
    if found.n_clusters > 1:
        ax.axvline(found.n_clusters, color="0.6", linestyle=":", zorder=0)
    ax.set_xticks(columns["n_clusters"])
    ax.set_xlabel("number of clusters")
    several = f"{found.n_clusters} clusters, by {found.confidence:.0%} of the bootstrap samples"
    ax.set_title(several if found.n_clusters > 1 else "one cluster: nothing to separate")
    ax.legend(fontsize="small")
    return ax


def _plane(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows along their first two principal axes, each turned so that its largest entry is positive."""
    _, axes = np.linalg.eigh(rows.T @ rows)
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    plane = rows @ axes
    return plane if plane.shape[1] == 2 else np.column_stack([plane, np.zeros(len(plane))])


def _colour(code: int) -> Any:
    from matplotlib import colormaps

    return colormaps["tab20" if code < 20 else "hsv"](code % 20 if code < 20 else (code * 0.618) % 1.0)
