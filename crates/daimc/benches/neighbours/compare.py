"""Recall and time of the neighbour search compared with pynndescent, on the same rows and with the same number of threads.

    pip install numpy pynndescent
    cargo bench -p daimc --features digit --bench neighbours --no-run      # prints the path of PROGRAM
    python compare.py PROGRAM [--threads 2] [--sets fashion,clustered,rank,noise] [--fashion DIR]

Fashion-MNIST is in Debian's package dataset-fashion-mnist. Recall@10 is that of 1000 instances, whose true neighbours are found by
comparing them with all others in double precision. pynndescent runs with its defaults, and then with longer lists until it finds as
many.
"""

import argparse
import gzip
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

ARGUMENTS = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ARGUMENTS.add_argument("program")
ARGUMENTS.add_argument("--threads", type=int, default=2)
ARGUMENTS.add_argument("--sets", default="fashion,clustered,rank,noise")
ARGUMENTS.add_argument("--fashion", default="/usr/share/datasets/fashion-mnist")
ARGUMENTS.add_argument("--alone", action="store_true", help="without pynndescent")


def images(folder):
    read = lambda part: gzip.open(Path(folder) / f"{part}-images-idx3-ubyte.gz").read()[16:]
    pixels = np.frombuffer(read("train") + read("t10k"), np.uint8)
    return pixels.reshape(-1, 28, 28).astype(np.float32) / 255


def gradients(images):
    """Histograms of 8 directions in 4 × 4 cells of 7 × 7 pixels."""
    across = np.gradient(images, axis=2)
    down = np.gradient(images, axis=1)
    length = np.hypot(across, down)
    place = np.arctan2(down, across) % np.pi / np.pi * 8
    first, share = place.astype(int), place % 1
    cells = np.zeros((len(images), 4, 4, 8), np.float32)
    for direction in range(8):
        weight = np.where(first % 8 == direction, (1 - share) * length, 0)
        weight += np.where((first + 1) % 8 == direction, share * length, 0)
        cells[..., direction] = weight.reshape(-1, 4, 7, 4, 7).sum((2, 4))
    rows = cells.reshape(len(images), -1)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def frequencies(images):
    """Magnitudes of low Fourier coefficients."""
    found = np.abs(np.fft.fft2(images))
    return np.concatenate([found[:, :8, :8], found[:, -7:, :8]], axis=1).reshape(len(images), -1)


def sets(names, fashion):
    random = np.random.default_rng(0)
    if "fashion" in names:
        pixels = images(fashion)
        yield "Fashion, pixels", pixels.reshape(len(pixels), -1)
        yield "Fashion, gradients", gradients(pixels)
        yield "Fashion, frequencies", frequencies(pixels)
    if "clustered" in names:
        centres = random.normal(size=(100, 50)) * 3
        yield "200 000 × 50, 100 clusters", centres[random.integers(100, size=200_000)] + random.normal(size=(200_000, 50))
    if "noise" in names:
        yield "100 000 × 200, noise", random.normal(size=(100_000, 200))
    if "rank" in names:
        yield "1 000 000 × 128, rank 20", random.normal(size=(1_000_000, 20)) @ random.normal(size=(20, 128))


def truth(rows, some):
    rows = rows.astype(np.float64) - rows.mean(0)
    squares = (rows**2).sum(1)
    nearest = []
    for part in np.array_split(some, 20):
        distances = squares - 2 * rows[part] @ rows.T
        distances[np.arange(len(part)), part] = np.inf
        nearest.append(np.argpartition(distances, 10, axis=1)[:, :10])
    return np.concatenate(nearest)


def recall(found, some, nearest):
    return np.mean([len(set(found[i]) & set(own)) / 10 for i, own in zip(some, nearest)])


def ours(program, rows, threads):
    with tempfile.TemporaryDirectory() as folder:
        rows.tofile(f"{folder}/rows")
        command = [program, "search", f"{folder}/rows", str(rows.shape[1]), str(threads), f"{folder}/found"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return found["seconds"], np.fromfile(f"{folder}/found", np.uint32).reshape(-1, 10)


def theirs(rows, threads, neighbors):
    from pynndescent import NNDescent

    begun = time.perf_counter()
    found = NNDescent(rows, n_neighbors=neighbors, n_jobs=threads, random_state=0).neighbor_graph[0]
    return time.perf_counter() - begun, found[:, 1:11]


if __name__ == "__main__":
    arguments = ARGUMENTS.parse_args()
    os.environ["NUMBA_NUM_THREADS"] = str(arguments.threads)
    import numpy as np

    if not arguments.alone:
        # Compiled once, outside the clock.
        theirs(np.random.default_rng(1).normal(size=(5000, 20)).astype(np.float32), arguments.threads, 15)
    print("| rows | recall@10 | seconds | pynndescent | seconds | lists |\n|---|---|---|---|---|---|")
    for name, rows in sets(arguments.sets.split(","), arguments.fashion):
        rows = np.ascontiguousarray(rows, np.float32)
        some = np.random.default_rng(2).choice(len(rows), 1000, replace=False)
        nearest = truth(rows, some)
        seconds, found = ours(arguments.program, rows, arguments.threads)
        share = recall(found, some, nearest)
        line = f"| {name} | {share:.3f} | {seconds:.1f} |"
        for neighbors in [] if arguments.alone else [15, 30, 60]:
            other_seconds, other = theirs(rows, arguments.threads, neighbors)
            other_share = recall(other, some, nearest)
            if other_share >= share - 0.005 or neighbors == 60 or other_seconds > 20 * seconds:
                line += f" {other_share:.3f} | {other_seconds:.1f} | {neighbors} |"
                break
        print(line, flush=True)
