"""The memory that a fit needs in addition to its array.

    python memory.py [gigabytes]

Fits an array in single precision, by default of 2 GB, in C order and in Fortran order, each in its own process, and prints the
increase of the peak memory relative to the array. Needs Linux, which records the peak.
"""

import subprocess
import sys
import time
import warnings

import numpy as np

from daimc import DAIMC

FEATURES = 1000


def peak() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024


def one(order: str, gigabytes: float) -> None:
    warnings.simplefilter("ignore")
    rows = int(gigabytes * 1e9 / 4 / FEATURES)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, FEATURES)).astype(np.float32)
    x = np.empty((rows, FEATURES), dtype=np.float32, order=order)
    for start in range(0, rows, 4096):
        part = x[start : start + 4096]
        part[...] = rng.standard_normal(part.shape, dtype=np.float32) + centres[rng.integers(0, 10, len(part))]
    DAIMC(2, random_state=0).fit([x[:100]])
    before, begun = peak(), time.perf_counter()
    model = DAIMC(10, random_state=0, max_iter=10).fit([x])
    print(
        f"| {order} | {x.nbytes / 1e9:.2f} GB | {before / 1e9:.2f} GB | {peak() / 1e9:.2f} GB | "
        f"{(peak() - before) / x.nbytes:.1%} | {model.n_iter_} | {time.perf_counter() - begun:.1f} s |"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], float(sys.argv[3]))
    else:
        print("| order | array | peak before | peak after | added, of the array | iterations | time |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for order in ("C", "F"):
            subprocess.run([sys.executable, __file__, "--one", order, *(sys.argv[1:2] or ["2"])], check=True)
