"""Ranks that hold rows of their own: the bits of one process, and a rank that fails ends all."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from held import LEAF, TOTAL, alone, same

pytest.importorskip("mpi4py")
MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
pytestmark = pytest.mark.skipif(MPIRUN is None, reason="there is no mpirun")

PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI
from held import estimator, planted

comm, edges, fails = MPI.COMM_WORLD, [int(edge) for edge in sys.argv[2].split(",")], sys.argv[3:] == ["fails"]
rank = comm.Get_rank()
views, masks, _ = planted("sparse")
rows = slice(edges[rank], edges[rank + 1])
own = {name: view[rows] for name, view in views.items()}
if fails and rank == 2:
    own["first"] = own["first"].copy()
    own["first"][7, 1] = np.inf
model = estimator(n_jobs=1).fit(own, mask={name: mask[rows] for name, mask in masks.items()}, comm=comm)
np.savez(
    f"{sys.argv[1]}/{rank}.npz",
    labels=model.labels_,
    latent=model.embedding_,
    confidence=model.confidence_,
    contributions=model.contributions_,
)
model.save(f"{sys.argv[1]}/{rank}.safetensors")
"""


def run(folder, edges, *more):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "OMPI_MCA_btl": "self,sm"}
    command = [MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(len(edges) - 1)]
    command += [sys.executable, str(program), str(folder), ",".join(map(str, edges)), *more]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("edges", [[0, LEAF, 2 * LEAF, 3 * LEAF, TOTAL], [0, 10, 30_000, 30_001, TOTAL]])
def test_four_ranks_give_the_bits_of_one_process(tmp_path, edges):
    done = run(tmp_path, edges)
    assert done.returncode == 0, done.stderr
    one = alone("sparse")
    found = [np.load(tmp_path / f"{rank}.npz") for rank in range(4)]
    assert [len(own["labels"]) for own in found] == np.diff(edges).tolist()
    many = type(one).load(tmp_path / "3.safetensors")
    many.labels_, many.embedding_, many.confidence_, many.contributions_ = (
        np.concatenate([own[name] for own in found]) for name in ("labels", "latent", "confidence", "contributions")
    )
    same(one, many)


def test_a_rank_that_fails_ends_all_with_its_message(tmp_path):
    done = run(tmp_path, [0, LEAF, 2 * LEAF, 3 * LEAF, TOTAL], "fails")
    assert done.returncode != 0
    assert "rank 2: ValueError: view 'first'" in done.stderr and "inf" in done.stderr
    assert not list(tmp_path.glob("*.npz"))
