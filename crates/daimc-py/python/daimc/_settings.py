"""Parameters of every fit other than its options: seed, threads, device, number of clusters."""

import os
from numbers import Integral
from typing import Any

import numpy as np

#: Seeds are unsigned 64-bit integers.
_SEEDS = 2**64


def seed_of(random_state: Any) -> int:
    """The seed of a `random_state`: an integer is the seed itself; otherwise the seed is drawn from the generator."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_SEEDS, dtype=np.uint64))
    if random_state is None or random_state is np.random:
        # The global generator of numpy.random.seed, as in scikit-learn.
        random_state = np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_SEEDS, dtype=np.uint64))
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        seed = int(random_state)
        if not 0 <= seed < _SEEDS:
            raise ValueError(f"random_state = {seed}: must be at least 0 and below 2**64")
        return seed
    raise TypeError(
        f"random_state = {random_state!r}: must be a whole number, a numpy Generator or RandomState, or None"
    )


def threads_of(n_jobs: Any) -> int:
    """The number of threads: all for `None` and -1, all but one for -2, and so on."""
    if hasattr(os, "sched_getaffinity"):
        processors = len(os.sched_getaffinity(0))
    else:
        processors = os.cpu_count() or 1
    if n_jobs is None:
        return processors
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool):
        raise TypeError(f"n_jobs = {n_jobs!r}: must be a whole number or None")
    jobs = int(n_jobs)
    if jobs == 0:
        raise ValueError("n_jobs = 0: must be at least 1, or -1 for all processors")
    return jobs if jobs > 0 else max(1, processors + 1 + jobs)


def device_of(device: Any, precision: Any) -> tuple[str, str]:
    """Checks that the device and the precision of a fit are strings."""
    for name, value in (("device", device), ("precision", precision)):
        if not isinstance(value, str):
            raise TypeError(f"{name} = {value!r}: must be a str")
    return str(device), str(precision)


def clusters_of(n_clusters: Any) -> int:
    """Checks the number of clusters."""
    if not isinstance(n_clusters, Integral) or isinstance(n_clusters, bool):
        raise TypeError(f"n_clusters = {n_clusters!r}: must be a whole number")
    clusters = int(n_clusters)
    if clusters < 1:
        raise ValueError(f"n_clusters = {clusters}: must be at least 1")
    return clusters


def unseen_of(handle_unseen: Any) -> str:
    """Checks `handle_unseen`."""
    if handle_unseen not in ("error", "keep"):
        raise ValueError(f"handle_unseen = {handle_unseen!r}: must be 'error' or 'keep'")
    return str(handle_unseen)
