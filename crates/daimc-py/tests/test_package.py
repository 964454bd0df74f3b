"""The installed package: location, requirements, import time, memory."""

import importlib.metadata
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import daimc


def python(code, *flags):
    code = textwrap.dedent(code)
    done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_is_tested_and_not_the_source():
    assert "site-packages" in daimc.__file__
    files = {str(file) for file in importlib.metadata.files("daimc")}
    assert {"daimc/__init__.py", "daimc/py.typed", "daimc/_daimc.pyi"} <= files
    assert any(file.startswith("daimc/_daimc.abi3") for file in files)
    assert daimc.__version__ == importlib.metadata.version("daimc")


def test_only_numpy_and_scikit_learn_are_required():
    required = [line for line in importlib.metadata.requires("daimc") if "extra ==" not in line]
    assert sorted(line.split(">")[0] for line in required) == ["numpy", "scikit-learn"]


def test_the_extras_in_error_messages_exist():
    here = Path(__file__).parents[1]
    texts = [here / "README.md", *here.glob("docs/*.md"), *here.glob("python/daimc/*.py")]
    lists = [names for text in texts for names in re.findall(r"daimc\[([\w,]+)\]", text.read_text())]
    named = {name for names in lists for name in names.split(",")}
    assert named >= {"plots", "frames", "anndata", "mudata"}
    assert named <= set(importlib.metadata.metadata("daimc").get_all("Provides-Extra"))


def test_it_works_without_optional_dependencies():
    optional = ["pandas", "polars", "matplotlib", "anndata", "mudata", "tqdm", "pyarrow"]
    code = f"""
        import sys
        for name in {optional}:
            sys.modules[name] = None
        import numpy as np
        import daimc
        from daimc import DAIMC, baselines, datasets, metrics, plots, simulate_missing
        data = datasets.make_views(100, 3, [10, 20], noise=0.1, random_state=0)
        mask = simulate_missing(data.views, 0.2, random_state=0)
        labels = DAIMC(3, random_state=0).fit_predict(list(data.views.values()), mask=mask)
        assert metrics.accuracy(data.target, labels) == 1.0
        try:
            plots.missingness(data.views)
        except ImportError as error:
            print(error)
    """
    assert python(code) == "plots need matplotlib: pip install 'daimc[plots]'\n"


def test_importing_costs_less_than_three_tenths_of_a_second():
    code = """
        import time
        import numpy
        begun = time.perf_counter()
        import daimc
        print(time.perf_counter() - begun)
    """
    assert min(float(python(code)) for _ in range(3)) < 0.3


def test_nothing_public_is_missing_from_the_module():
    for name in daimc.__all__:
        assert getattr(daimc, name) is not None
    assert set(daimc.__all__) <= set(dir(daimc))
    with pytest.raises(AttributeError, match="module 'daimc' has no attribute 'DIAMC'"):
        daimc.DIAMC  # noqa: B018


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_fit_does_not_copy_its_array(order):
    code = f"""
        import numpy as np
        from daimc import DAIMC
        def peak():
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
        DAIMC(2, random_state=0).fit([np.random.default_rng(0).normal(size=(50, 4))])
        rng = np.random.default_rng(0)
        x = np.empty((131072, 512), dtype=np.float32, order={order!r})
        for start in range(0, len(x), 4096):
            x[start : start + 4096] = rng.random((4096, 512), dtype=np.float32)
            x[start : start + 4096, : 128] += start // 4096 % 4
        x[: 32768] = np.nan
        known = np.ones((len(x), 1), dtype=np.float32)
        before = peak()
        DAIMC(4, neighbours="off", random_state=0, max_iter=3, n_jobs=2).fit([x, known])
        print((peak() - before) / x.nbytes)
    """
    assert float(python(code, "-W", "ignore")) < 0.25
