"""daimc compared with the package imml, on the same data with the same preset, in one run.

    pip install daimc 'imml==0.6.*'
    python imml.py [--masks N] [--threads N] [--data digit|made]

Each fit runs in its own process, alternating between daimc and imml, so that memory is measured separately and other load
affects both. Rows are scaled to length 1 beforehand, as the paper's preset does; both get alpha = 10, beta = 0.1, at most 30
iterations and a tolerance of 1e-4. Memory is the increase of the peak during the fit, after the data are loaded and everything
is imported. On a busy machine use one thread, with which CPU time is close to that of an idle machine. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from typing import Any

# The directory of this file is first on the path, and this file has the name of the package.
sys.path.pop(0)

import numpy as np  # noqa: E402

from daimc import DAIMC, datasets, metrics, simulate_missing  # noqa: E402

DATA = {
    "Digit, 50 % missing": ("digit", 0.5),
    "2000 × {1000, 1000}, 30 % missing": ("made", 0.3),
}


def load(name: str, missing: float, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Views in double precision with rows of length 1 or NaN, and the classes."""
    if name == "digit":
        data = datasets.load_digit()
    else:
        data = datasets.make_views(2000, 10, [1000, 1000], noise=6.0, random_state=1)
    mask = simulate_missing(data.views, missing, random_state=seed)
    views = []
    for number, view in enumerate(data.views.values()):
        view = view.astype(np.float64)
        view /= np.linalg.norm(view, axis=1, keepdims=True)
        view[~mask[:, number]] = np.nan
        views.append(view)
    return views, data.target


#: daimc also with one initialisation of each k-means, as in imml, instead of ten as in the preset.
PACKAGES = {"daimc": {}, "daimc, n_init=1": {"n_init": 1}, "imml": None}


def model(package: str, seed: int) -> Any:
    options = PACKAGES[package]
    if options is not None:
        threads = int(os.environ.get("OMP_NUM_THREADS", "-1"))
        own = {"preset": "paper", "scale": "none", "alpha": 10.0, "beta": 0.1, "random_state": seed, "n_jobs": threads}
        return DAIMC(10, **own, **options)
    from imml.cluster import DAIMC as Other

    return Other(n_clusters=10, alpha=10.0, beta=0.1, random_state=seed)


def one(package: str, name: str, missing: float, seed: int) -> dict[str, float]:
    """Fits once, in this process."""
    import warnings

    warnings.simplefilter("ignore")
    views, truth = load(name, missing, seed)
    # A small fit first, so that one-time costs count for neither.
    model(package, seed).fit([view[:60, :20] for view in views_without_gaps(views)])
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the peak
    before, begun, spent = peak(), time.perf_counter(), time.process_time()
    labels = model(package, seed).fit_predict(views)
    scores = metrics.scores(truth, labels)
    return {
        "wall": time.perf_counter() - begun,
        "cpu": time.process_time() - spent,
        "memory": peak() - before,
        "total": peak(),
        "ac": scores["ac"],
        "nmi": scores["nmi"],
    }


def peak() -> int:
    """The largest memory of this process so far, in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024


def views_without_gaps(views: list[np.ndarray]) -> list[np.ndarray]:
    return [np.nan_to_num(view, nan=0.1) for view in views]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--masks", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--data", choices=[name for name, _ in DATA.values()])
    given = parser.parse_args()
    # The libraries of numpy and k-means read these variables; daimc receives `n_jobs`.
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    limit = {} if given.threads is None else dict.fromkeys(names, str(given.threads))
    print(f"imml {version('imml')}, daimc {version('daimc')}, numpy {version('numpy')}, Python {platform.python_version()},")
    print(f"{given.threads or os.cpu_count()} threads; times of the fastest, all else the mean, of {given.masks} mask(s)\n")
    print("| data | package | wall, s | processor, s | memory added, MB | peak of process, MB | AC | NMI |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for title, (name, missing) in DATA.items():
        if given.data not in (None, name):
            continue
        found: dict[str, list[dict[str, float]]] = {package: [] for package in PACKAGES}
        for seed in range(given.masks):
            for package, results in found.items():
                command = [sys.executable, __file__, "--one", package, name, str(missing), str(seed)]
                done = subprocess.run(
                    command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **limit}
                )
                results.append(json.loads(done.stdout.splitlines()[-1]))
                print(package, name, seed, results[-1], file=sys.stderr, flush=True)
        row = {}
        for package, results in found.items():
            mean = {key: float(np.mean([result[key] for result in results])) for key in results[0]}
            fastest = {key: min(result[key] for result in results) for key in ("wall", "cpu")}
            row[package] = {**mean, **fastest}
            spread = {key: float(np.std([result[key] for result in results])) for key in ("ac", "nmi")}
            print(
                f"| {title} | {package} | {fastest['wall']:.3g} | {fastest['cpu']:.3g} | {mean['memory'] / 1e6:.0f} | "
                f"{mean['total'] / 1e6:.0f} | {mean['ac']:.3f} ± {spread['ac']:.3f} | {mean['nmi']:.3f} ± {spread['nmi']:.3f} |"
            )
        for package in list(PACKAGES)[:-1]:
            ratio = {key: row["imml"][key] / row[package][key] for key in ("wall", "cpu", "memory", "total")}
            print(
                f"| | **imml / {package}** | **{ratio['wall']:.0f} ×** | **{ratio['cpu']:.0f} ×** | "
                f"**{ratio['memory']:.1f} ×** | **{ratio['total']:.1f} ×** | | |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        package, name, missing, seed = sys.argv[2:]
        print(json.dumps(one(package, name, float(missing), int(seed))))
    else:
        main()
