"""Python and the command line give identical results."""

import csv
import json
import os
import subprocess

import numpy as np
import pytest

from daimc import DAIMC, simulate_missing

PROGRAM = os.environ.get("DAIMC_CLI")

pytestmark = pytest.mark.skipif(not PROGRAM, reason="DAIMC_CLI does not name the program `daimc`")


def run(*arguments, cwd):
    return subprocess.run([os.path.abspath(PROGRAM), *arguments], cwd=cwd, check=True, capture_output=True, text=True)


def column(path, name):
    with open(path, newline="") as file:
        return [row[name] for row in csv.DictReader(file, delimiter="\t")]


@pytest.fixture(scope="module")
def folder(digit, tmp_path_factory):
    """Digit as files, with half of every view missing."""
    folder = tmp_path_factory.mktemp("digit")
    mask = simulate_missing(digit.views, 0.5, random_state=3)
    for v, (name, view) in enumerate(digit.views.items()):
        np.save(folder / f"{name}.npy", np.where(mask[:, [v]], view, np.float32(np.nan)))
    return folder


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({}, []),
        ({"preset": "paper"}, ["--preset", "paper"]),
        ({"alpha": 3.0, "beta": 0.5, "scale": "min-max", "runs": 3}, ["--alpha=3", "--beta=.5", "--scale=min-max", "--runs=3"]),
        (
            {"init": "paper", "solver": "multiplicative", "max_iter": 12, "tol": 1e-3, "scale": {"pix": "z-score"}},
            ["--init=paper", "--solver=multiplicative", "--max-iter=12", "--tol=1e-3", "--scale", "pix=z-score"],
        ),
    ],
    ids=["default", "paper", "weights", "steps"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_labels_are_those_of_the_command_line(digit, folder, tmp_path, options, flags):
    views = {name: np.load(folder / f"{name}.npy") for name in digit.views}
    model = DAIMC(10, random_state=7, **options).fit(views)
    arguments = [f"--view={name}={folder / name}.npy" for name in views]
    run("fit", *arguments, "-k", "10", "--seed", "7", *flags, "-o", "out", cwd=tmp_path)
    assert [int(label) for label in column(tmp_path / "out/labels.tsv", "cluster")] == model.labels_.tolist()

    # Each reads the file of the other, with bit-identical contents.
    theirs = DAIMC.load(tmp_path / "out/model.safetensors")
    np.testing.assert_array_equal(theirs.embedding_, model.embedding_)
    np.testing.assert_array_equal(theirs.predict(views), model.predict(views))
    np.testing.assert_array_equal(theirs.set_params(n_jobs=1).fit(views).labels_, model.labels_)
    model.save(tmp_path / "ours.safetensors")
    run("predict", "ours.safetensors", *arguments, "-o", "new.tsv", cwd=tmp_path)
    assert [int(label) for label in column(tmp_path / "new.tsv", "cluster")] == model.predict(views).tolist()


def test_tables_are_joined_by_id_as_by_the_command_line(tmp_path, gaps):
    pandas = pytest.importorskip("pandas")
    views, mask, _, _ = gaps
    rng = np.random.default_rng(2)
    tables = {}
    for v, name in enumerate(("rna", "protein")):
        rows = rng.permutation(np.flatnonzero(mask[:, v]))
        ids = [f"p{i}" for i in rows]
        tables[name] = pandas.DataFrame(views[v][rows], index=ids, columns=[f"{name}{i}" for i in range(views[v].shape[1])])
        tables[name].to_csv(tmp_path / f"{name}.csv", index_label="id")
    model = DAIMC(4, random_state=1).fit(tables)
    run("fit", "--view=rna=rna.csv", "--view=protein=protein.csv", "-k4", "--seed=1", "-o", "out", cwd=tmp_path)
    assert column(tmp_path / "out/labels.tsv", "id") == model.ids_.tolist()
    assert [int(label) for label in column(tmp_path / "out/labels.tsv", "cluster")] == model.labels_.tolist()


@pytest.mark.parametrize(
    ("params", "options", "flags"),
    [
        ({}, {"n_resamples": 2}, ["--resamples=2"]),
        (
            {"scale": {"pix": "min-max", None: "unit"}, "runs": 2},
            {"n_resamples": 2, "hidden": 0.2},
            ["--resamples=2", "--hidden=0.2", "--scale=unit", "--scale=pix=min-max", "--runs=2"],
        ),
    ],
    ids=["default", "options"],
)
def test_selections_are_those_of_the_command_line(digit, folder, tmp_path, params, options, flags):
    views = {name: np.load(folder / f"{name}.npy") for name in digit.views}
    ours = DAIMC(random_state=5, **params).select(views, range(9, 11), **options)
    arguments = [f"--view={name}={folder / name}.npy" for name in views]
    theirs = json.loads(run("select", *arguments, "-k9..10", "--seed=5", *flags, "--json", cwd=tmp_path).stdout)
    said = {"recommended": ours.n_clusters, "confidence": ours.confidence, "reason": ours.reason}
    assert {name: theirs[name] for name in said} == said
    for row, candidate in enumerate(theirs["candidates"]):
        columns = {name: column[row] for name, column in ours.candidates.items()}
        assert (candidate["clusters"], candidate["votes"]) == (columns["n_clusters"], columns["votes"])
        for name in ("stability", "explained", "score"):
            assert candidate[name] == {"value": columns[name], "error": columns[f"{name}_error"]}


def test_simulated_missingness_is_that_of_the_command_line(digit, tmp_path):
    for name, view in digit.views.items():
        np.save(tmp_path / f"{name}.npy", view)
    arguments = [f"--view={name}={name}.npy" for name in digit.views]
    run("simulate", *arguments, "--missing", "0.3", "--seed", "5", "-o", "masked", cwd=tmp_path)
    mask = simulate_missing(digit.views, 0.3, random_state=5)
    for v, name in enumerate(digit.views):
        assert [int(bit) for bit in column(tmp_path / "masked/mask.tsv", name)] == mask[:, v].astype(int).tolist()


def test_metrics_are_those_of_the_command_line(digit, tmp_path):
    from daimc import metrics

    labels = DAIMC(10, random_state=0).fit_predict(digit.views)
    for name, values in (("labels", labels), ("truth", digit.target)):
        lines = [f"{i}\t{value}" for i, value in enumerate(values)]
        (tmp_path / f"{name}.tsv").write_text("\n".join([f"id\t{'cluster' if name == 'labels' else 'class'}", *lines, ""]))
    said = json.loads(run("evaluate", "labels.tsv", "--truth", "truth.tsv", "--json", cwd=tmp_path).stdout)
    ours = metrics.scores(digit.target, labels)
    assert {key: said[key] for key in ours} == pytest.approx(ours, rel=1e-12)
