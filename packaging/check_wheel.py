"""Checks a wheel for Linux: which glibc it needs, and that a new virtual environment can install and use it."""

import platform
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

NEWEST_GLIBC = 28
"""The minor version of the glibc of RHEL 8."""

USED = """
import numpy as np
from daimc import DAIMC, datasets, metrics

data = datasets.make_views(200, 3, [10, 20], noise=0.1, random_state=0)
views = [np.array(view) for view in data.views.values()]
views[0][:50] = np.nan
labels = DAIMC(3, random_state=0).fit_predict(views)
assert metrics.accuracy(data.target, labels) == 1.0, labels
"""


def main() -> None:
    wheel = Path(sys.argv[1])
    needed = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel], check=True, capture_output=True, text=True
    ).stdout
    consistent = re.search(r'platform tag:\s*"manylinux_2_(\d+)_(\w+)"', needed)
    if consistent is None or int(consistent[1]) > NEWEST_GLIBC:
        sys.exit(f"{wheel.name} needs a newer glibc than 2.{NEWEST_GLIBC}:\n{needed}")
    print(f"{wheel.name} runs with glibc 2.{consistent[1]} and later on {consistent[2]}")
    if consistent[2] != platform.machine():
        print("it is for another machine than this one, so it was not used")
        return
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)
        subprocess.run([python, "-c", USED], check=True, cwd=folder)
    print("it was installed and used in a new virtual environment")


if __name__ == "__main__":
    main()
