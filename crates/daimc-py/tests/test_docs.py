"""The tutorial and the examples run as printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import daimc

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_the_tutorial_says_what_happens():
    """Runs every block; a comment after an expression is its expected value."""
    names: dict = {}
    shown = 0
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs/tutorial.md").read_text(), flags=re.S):
        pieces = re.split(r"^# (.*)$", block, flags=re.M)
        for code, value in zip(pieces[::2], [*pieces[1::2], None]):
            if value is None:
                exec(compile(code, "tutorial.md", "exec"), names)
                continue
            *before, last = code.strip().split("\n")
            # The last expression may span several lines: it starts at a line that is not indented and closes no bracket.
            while last.startswith((" ", ")", "]", "}")):
                last = before.pop() + "\n" + last
            exec(compile("\n".join(before), "tutorial.md", "exec"), names)
            assert repr(eval(compile(last, "tutorial.md", "eval"), names)) == value, last
            shown += 1
    assert shown >= 14


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_the_gallery_runs(example, tmp_path):
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    said = done.stdout
    accuracy = [float(number) for number in re.findall(r"(?:accuracy|DAIMC) (0\.\d+|1\.0+)", said)]
    assert accuracy and min(accuracy) > 0.75, said
    assert done.stderr == "", done.stderr


def test_every_public_name_is_documented():
    import inspect

    for module in (daimc, daimc.metrics, daimc.datasets, daimc.plots, daimc.baselines, daimc.shards):
        assert module.__doc__
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                assert thing.__doc__, name
                for method, value in vars(thing).items() if inspect.isclass(thing) else ():
                    assert method.startswith("_") or not callable(value) or value.__doc__, f"{name}.{method}"


def test_every_parameter_is_documented():
    for estimator in (daimc.DAIMC, daimc.baselines.Baseline):
        for name in estimator().get_params():
            assert re.search(rf"^    {name} : ", estimator.__doc__, flags=re.M), name


def test_the_examples_in_docstrings_are_true():
    import doctest

    from daimc import _estimator, shards

    for module in (_estimator, shards):
        found = doctest.testmod(module)
        assert found.attempted > 0 and found.failed == 0
