"""Time and memory to read a large .h5ad, compared with anndata on the same file.

    make target/venv/ready && cargo build --release
    target/venv/bin/python -P crates/daimc-io/benches/h5ad.py [--megabytes 1000] [--program target/release/daimc]

Writes dense values, and compressed rows with and without gzip, below `target`, and deletes them at the end. `daimc inspect` and
`anndata.read_h5ad` read each file in turn, three times, in processes of their own; medians are printed, with processor time next to
wall time, which means little on a busy machine. The times of anndata are those of reading alone, those of the program are of all that
it does. (-P, because there is a csv.py in this folder.)
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import anndata
import numpy as np
import scipy.sparse

ROOT = pathlib.Path(__file__).resolve().parents[3]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))

READ = """
import sys, time
import anndata
wall, processor = time.perf_counter(), time.process_time()
anndata.read_h5ad(sys.argv[1])
print(time.perf_counter() - wall, time.process_time() - processor)
"""


def named(values):
    data = anndata.AnnData(values)
    data.obs_names = [f"cell{i}" for i in range(values.shape[0])]
    data.var_names = [f"gene{j}" for j in range(values.shape[1])]
    return data


def write(folder, megabytes):
    """Files, each with the megabytes of its matrix in memory."""
    generator = np.random.default_rng(0)
    rows = int(megabytes * 1e6) // (4 * 10_000)
    dense = np.tile(generator.gamma(1.0, 1.0, (rows, 1000)).astype(np.float32), 10)
    named(dense).write_h5ad(folder / "dense.h5ad")
    yield folder / "dense.h5ad", dense.nbytes
    del dense
    width, entries = 20_000, 2000
    rows = int(megabytes * 1e6) // (8 * entries)
    step = generator.integers(1, width // entries, rows)
    columns = generator.integers(0, width, (rows, 1)) + step[:, None] * np.arange(entries)
    columns = np.sort(columns % width, axis=1).astype(np.int32)
    counts = 1 + np.tile(generator.poisson(2.0, (rows, entries // 8)), 8).astype(np.float32)
    offsets = entries * np.arange(rows + 1)
    sparse = scipy.sparse.csr_matrix((counts.ravel(), columns.ravel(), offsets), (rows, width))
    size = sparse.data.nbytes + sparse.indices.nbytes + 8 * rows
    data = named(sparse)
    for name, compression in [("csr.h5ad", None), ("csr-gzip.h5ad", "gzip")]:
        data.write_h5ad(folder / name, compression=compression)
        yield folder / name, size


def run(command):
    """Seconds, seconds of processors, the peak of the memory in bytes, and what was printed."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak, ended = 0, 0
    while not ended:
        # The peak that wait4 returns includes the memory of the process that forked.
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        if "VmHWM:" in status:
            peak = 1024 * int(status.split("VmHWM:")[1].split()[0])
        time.sleep(0.002)
        ended, failed, used = os.wait4(process.pid, os.WNOHANG)
    if failed:
        sys.exit(f"{command} failed")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, peak, process.stdout.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--program", default=str(TARGET / "release" / "daimc"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        for path, size in list(write(pathlib.Path(folder), arguments.megabytes)):
            own, other = [], []
            for _ in range(3):
                own.append(run([arguments.program, "inspect", "--view", f"x={path}"])[:3])
                *_, peak, printed = run([sys.executable, "-c", READ, path])
                other.append((*map(float, printed.split()), peak))
            for name, runs in [("daimc inspect", own), ("anndata.read_h5ad", other)]:
                wall, processor, peak = (statistics.median(column) for column in zip(*runs))
                of_size = peak / size
                print(f"{path.name}, {name}: {wall:.2f} s, {processor:.2f} s of processors, {of_size:.2f} × the matrix")


if __name__ == "__main__":
    main()
