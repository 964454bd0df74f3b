"""Online learning compared with a single fit: quality, time per instance, memory.

    pip install daimc psutil
    python online.py digit                    # complete, 10 and 20 batches, five orders
    python online.py planted [INSTANCES]      # two views of 128 features in single precision, 20 clusters, batches of a tenth

AC is that of `predict` on all instances; neighbourhoods are off. Each batch of planted data is generated when it is needed, so the
reported memory is that of one batch and the model.
"""

import sys
import time

import numpy as np
import psutil

from daimc import DAIMC, datasets, metrics


def model(clusters):
    return DAIMC(clusters, random_state=0, neighbours="off", assess=False)


def taken(views, rows):
    return {name: view[rows] for name, view in views.items()}


def digit():
    data = datasets.load_digit()
    print("| batches | at once | first half | in batches |\n|---|---|---|---|")
    for batches in (10, 20):
        scores = []
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(data.target))
            streamed = model(10)
            for rows in np.array_split(order, batches):
                streamed.partial_fit(taken(data.views, rows))
            fits = [model(10).fit(taken(data.views, order)), model(10).fit(taken(data.views, order[:1000])), streamed]
            scores.append([metrics.accuracy(data.target, fit.predict(data.views)) for fit in fits])
        cells = " | ".join(f"{mean:.3f} ± {spread:.3f}" for mean, spread in zip(np.mean(scores, 0), np.std(scores, 0)))
        print(f"| {batches} | {cells} |", flush=True)


class Planted:
    """Overlapping clusters; each batch has its own seed."""

    def __init__(self, clusters=20, features=(128, 128)):
        random = np.random.default_rng(0)
        self.centres = {f"view{v}": random.normal(size=(clusters, d)).astype("f4") * 0.35 for v, d in enumerate(features)}
        self.clusters = clusters

    def batch(self, size, seed):
        random = np.random.default_rng([1, seed])
        target = random.integers(self.clusters, size=size)
        noise = {name: random.standard_normal((size, own.shape[1]), dtype="f4") for name, own in self.centres.items()}
        return {name: own[target] + noise[name] for name, own in self.centres.items()}, target


def planted(instances):
    data, size, process = Planted(), instances // 10, psutil.Process()
    streamed = model(data.clusters)
    print("| batch | seconds | µs an instance | RSS, MB |\n|---|---|---|---|")
    for number in range(10):
        views, _ = data.batch(size, number)
        begun = time.perf_counter()
        streamed.partial_fit(views)
        seconds = time.perf_counter() - begun
        print(f"| {number + 1} | {seconds:.2f} | {1e6 * seconds / size:.1f} | {process.memory_info().rss / 1e6:.0f} |", flush=True)
    bytes_of_batch = sum(view.nbytes for view in views.values())
    batches = [data.batch(size, number) for number in range(10)]
    target = np.concatenate([own for _, own in batches])
    placed = np.concatenate([streamed.predict(views) for views, _ in batches])
    whole = {name: np.concatenate([views[name] for views, _ in batches]) for name in data.centres}
    del batches
    begun = time.perf_counter()
    once = model(data.clusters).fit(whole)
    seconds = time.perf_counter() - begun
    half = model(data.clusters).fit({name: view[: instances // 2] for name, view in whole.items()})
    scores = [metrics.accuracy(target, labels) for labels in (placed, once.predict(whole), half.predict(whole))]
    print(f"\nA batch has {bytes_of_batch / 1e6:.0f} MB. At once: {seconds:.2f} s, {1e6 * seconds / instances:.1f} µs an instance.")
    print("AC: in batches {:.4f}, at once {:.4f}, first half {:.4f}".format(*scores))


if __name__ == "__main__":
    if sys.argv[1:2] == ["digit"]:
        digit()
    else:
        planted(int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
