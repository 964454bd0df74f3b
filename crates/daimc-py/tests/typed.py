"""The types of the public API, checked by mypy and not run."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daimc import DAIMC, Selection, datasets, metrics, simulate_missing
from daimc.baselines import Baseline


def cluster(first: NDArray[np.float32], second: NDArray[np.float64]) -> NDArray[np.int64]:
    model: DAIMC = DAIMC(n_clusters=10, random_state=0).fit([first, second])
    relevance: list[NDArray[np.float64]] = model.feature_relevance_
    best: float = max(float(part.max()) for part in relevance)
    rows: NDArray[np.float64] = model.transform([first, None])
    stability: list[NDArray[np.float64]] | None = model.feature_stability_
    said: NDArray[np.float64] = model.contributions([first, None])
    assert best >= 0 and rows.shape[1] == 10 and stability is None and said.shape[1] == 2
    model.report("report.html", [first, second], title="Clusters")
    return model.labels_


def compare(views: dict[str, NDArray[Any]], truth: NDArray[np.int64]) -> dict[str, float]:
    mask: NDArray[np.bool_] = simulate_missing(views, 0.3, random_state=0)
    labels: NDArray[np.int64] = Baseline("opimc", 10).fit_predict(views, mask=mask)
    return metrics.scores(truth, labels)


def choose(views: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
    found: Selection = DAIMC(random_state=0).select(views, range(2, 13), n_resamples=5)
    best: float = found.candidates["score"].max()
    number: int = found.n_clusters
    assert best >= 0 and number > 1 and found.confidence <= 1
    return found.estimator.fit_predict(views)


def cells(adata: Any) -> DAIMC:
    return DAIMC(n_clusters=10, layer="log1p", use_rep={"protein": "X_pca"}, key_added=None).fit(adata)


def load() -> Any:
    return datasets.load_digit(["fac"]).views
