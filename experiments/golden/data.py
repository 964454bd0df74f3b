"""Input files for the golden record: generated data and extracts of tables.

Values come from `random.Random.random` and the four operations alone, so the files are identical on every machine and with every
version of Python.
"""

import struct
from array import array
from pathlib import Path
from random import Random

NAN = float("nan")


def noise(rng):
    """A value with mean 0 and standard deviation 0.5, in the shape of a bell."""
    return rng.random() + rng.random() + rng.random() - 1.5


def flat(rng):
    """The same from one random number, in the shape of a box."""
    return 1.75 * (rng.random() - 0.5)


def blobs(rng, labels, features, spread, noise=noise):
    """Rows around one random centre per cluster."""
    centres = [[rng.random() for _ in range(features)] for _ in range(max(labels) + 1)]
    return [[centre + spread * noise(rng) for centre in centres[label]] for label in labels]


def write_npy(path, rows, kind):
    """A matrix in NumPy's format; `kind` is `f` (float32) or `d` (float64)."""
    descr = {"f": "<f4", "d": "<f8"}[kind]
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = array(kind, (value for row in rows for value in row))
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values.tobytes())


def write_tsv(path, header, rows):
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in [header, *rows]))


def write_table(path, name, rows, ids=None):
    """A table with IDs; NaN becomes `NA`, and a row of None is left out."""
    ids = range(len(rows)) if ids is None else ids
    fields = lambda row: ["NA" if value != value else f"{value:.6g}" for value in row]
    header = ["id"] + [f"{name}{f}" for f in range(len(next(row for row in rows if row)))]
    write_tsv(path, header, [[i, *fields(row)] for i, row in zip(ids, rows) if row])


def write_counts(path, rng, labels, features, words):
    """Sparse counts in Matrix Market format, with names of instances and features: documents of `words` words."""
    topics = [[rng.random() for _ in range(40)] for _ in range(max(labels) + 1)]
    entries = []
    for i, label in enumerate(labels):
        counts = {}
        for _ in range(words):
            # Two words of five are of the topic; small numbers are more frequent.
            topical = rng.random() < 0.4
            place = topics[label][int(rng.random() * 40)] if topical else rng.random() * rng.random()
            counts[int(place * features)] = counts.get(int(place * features), 0) + 1
        entries += [f"{i + 1} {word + 1} {count}\n" for word, count in sorted(counts.items())]
    head = "%%MatrixMarket matrix coordinate integer general\n"
    path.write_text(f"{head}{len(labels)} {features} {len(entries)}\n" + "".join(entries))
    path.with_suffix(".ids").write_text("".join(f"doc{i}\n" for i in range(len(labels))))
    path.with_suffix(".terms").write_text("".join(f"word{f}\n" for f in range(features)))


def write_mask(path, rng, views, instances, share):
    """A mask in which each view lacks about this share of the instances, and none lacks all views."""
    rows = []
    for i in range(instances):
        shown = [int(rng.random() >= share) for _ in views]
        if not any(shown):
            shown[i % len(views)] = 1
        rows.append([i, *shown])
    write_tsv(path, ["id", *views], rows)


def write_truth(path, labels, prefix=""):
    write_tsv(path, ["id", "class"], [[f"{prefix}{i}", label] for i, label in enumerate(labels)])


def labels(rng, instances, clusters):
    """A cluster for each instance. The first ones are the largest."""
    return [int(rng.random() * (0.6 + 0.4 * rng.random()) * clusters) for _ in range(instances)]


def generate(folder: Path):
    """Writes all generated data."""
    folder.mkdir(parents=True)

    # Each view has more than 20 000 instances: neighbours are found by descent, the map is made from landmarks, and there are two
    # leaves.
    rng = Random(1)
    own = labels(rng, 24_000, 100)
    write_npy(folder / "large-a.npy", blobs(rng, own, 16, 0.25), "f")
    write_npy(folder / "large-b.npy", blobs(rng, own, 12, 0.25), "d")
    write_mask(folder / "large-mask.tsv", rng, ["a", "b"], 24_000, 0.1)
    write_truth(folder / "large-truth.tsv", own)

    # More than one leaf of sparse rows.
    rng = Random(2)
    own = labels(rng, 17_500, 6)
    write_counts(folder / "long-a.mtx", rng, own, 300, 12)
    write_counts(folder / "long-b.mtx", rng, own, 200, 10)

    # Cells and rows are missing.
    rng = Random(3)
    own = labels(rng, 1200, 6)
    hollow = lambda rows, share: [[NAN if rng.random() < share else value for value in row] for row in rows]
    write_npy(folder / "holes-a.npy", hollow(blobs(rng, own, 30, 0.5), 0.06), "d")
    rows = [None if rng.random() < 0.15 else row for row in hollow(blobs(rng, own, 20, 0.4), 0.03)]
    write_table(folder / "holes-b.tsv", "b", rows)
    write_npy(folder / "holes-c.npy", hollow(blobs(rng, own, 10, 0.3), 0.1), "f")
    write_truth(folder / "holes-truth.tsv", own)

    # Heavy tails, and features in different units. No value is negative.
    rng = Random(4)
    own = labels(rng, 900, 5)
    tail = lambda value: max(value, 0.0) / (rng.random() + 0.02) / (rng.random() + 0.02)
    write_npy(folder / "heavy.npy", [[tail(value) for value in row] for row in blobs(rng, own, 40, 0.3)], "d")
    powers = [0.001, 1.0, 50.0, 2000.0]
    units = [[max(value, 0.0) * powers[f % 4] for f, value in enumerate(row)] for row in blobs(rng, own, 24, 0.4)]
    write_npy(folder / "units.npy", units, "f")
    write_npy(folder / "plain.npy", [[max(value, 0.0) for value in row] for row in blobs(rng, own, 18, 0.3)], "d")
    write_npy(folder / "noise.npy", [[rng.random() for _ in range(18)] for _ in own], "d")
    write_mask(folder / "mixed-mask.tsv", rng, ["heavy", "units", "plain"], 900, 0.3)
    write_truth(folder / "mixed-truth.tsv", own)

    # Sparse counts.
    rng = Random(5)
    own = labels(rng, 1000, 5)
    write_counts(folder / "counts-a.mtx", rng, own, 800, 60)
    write_counts(folder / "counts-b.mtx", rng, own, 500, 40)
    write_truth(folder / "counts-truth.tsv", own, "doc")

    # 20 MB, beyond a memory limit that leaves enough for the fit; and enough instances for several batches.
    rng = Random(6)
    own = labels(rng, 5000, 8)
    write_npy(folder / "wide-a.npy", blobs(rng, own, 400, 1.2, flat), "d")
    write_npy(folder / "wide-b.npy", blobs(rng, own, 200, 0.9, flat), "f")
    write_table(folder / "wide-text.tsv", "t", blobs(rng, own, 200, 0.9, flat))
    write_mask(folder / "wide-mask.tsv", rng, ["a", "b"], 5000, 0.25)
    write_truth(folder / "wide-truth.tsv", own)

    # Hardly any instances.
    rng = Random(7)
    own = [i % 3 for i in range(12)]
    names = [f"item {i}" for i in range(12)]
    write_table(folder / "tiny-a.tsv", "a", blobs(rng, own, 4, 0.2), names)
    write_table(folder / "tiny-b.tsv", "b", blobs(rng, own, 3, 0.2), names)


def split(source: Path, first: Path, second: Path):
    """The rows of a table in two parts; seven of ten go into the first."""
    header, *rows = source.read_text().splitlines(keepends=True)
    parts = [[row for i, row in enumerate(rows) if (i % 10 < 7) == wanted] for wanted in (True, False)]
    for path, part in zip((first, second), parts):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header + "".join(part))


def classes(source: Path, target: Path):
    """The classes of 3Sources, `class: ID,ID,…` in each line, as a table."""
    rows = []
    for line in source.read_text().splitlines():
        name, _, members = line.partition(":")
        rows += [[member.strip(), name] for member in members.split(",") if member.strip()]
    write_tsv(target, ["id", "class"], rows)
