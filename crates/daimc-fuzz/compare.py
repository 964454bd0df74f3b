"""Compares the values that daimc read from mutated files with those that reference libraries read.

    daimc-fuzz --cases 200000 --dump FOLDER
    python compare.py FOLDER

If both read a file, shape and values must be the same. Prints counts for each reader; exits with 1 if anything differs.
"""

import gzip
import io
import json
import os
import resource
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse as sp

warnings.simplefilter("ignore")
MISSING = ["", "NA", "NaN", "N/A", "#N/A", "<NA>", "null", "none", "-", ".", "?"]


class Other(Exception):
    """The library reads such files differently or not at all, so there is nothing to compare."""


def matrix(values):
    if values.dtype.kind not in "biuf":
        raise Other
    return values.reshape(-1, 1) if values.ndim == 1 else values


def dense(values):
    return values.toarray() if sp.issparse(values) else values


def read_npy(path, case):
    return matrix(np.load(path))


def read_npz(path, case):
    with np.load(path) as archive:
        if case["variable"] is None:
            return sp.load_npz(path).toarray()
        return matrix(archive[case["variable"]])


def read_mat(path, case):
    name, *cells = case["variable"].replace("}", "").split("{")
    values = scipy.io.loadmat(path, variable_names=[name])[name]
    for cell in cells:
        at = [int(part) - 1 for part in cell.split(",")]
        values = values.flatten(order="F")[at[0]] if len(at) == 1 else values[tuple(at)]
    return matrix(dense(values))


def read_mtx(path, case):
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    # In a matrix of integers, scipy reads 1e308 as 1.
    if b"integer" in data.split(b"\n")[0] and set(data.split(b"\n", 1)[1]) - set(b"0123456789 \t\r\n%-"):
        raise Other
    return dense(scipy.io.mmread(io.BytesIO(data)))


def read_parquet(path, case):
    # The raw file, ignoring the index metadata of pandas.
    table = pq.ParquetFile(path).read()
    if case["features"] is None or len(set(table.column_names)) < len(table.column_names):
        raise Other
    columns = []
    for name in case["features"]:
        column = table[name]
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
                or pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
            raise Other
        # Integers of 8 and 16 bits are stored in 32 bits, of which Arrow ignores the upper ones.
        if pa.types.is_integer(column.type) and column.type.bit_width < 32:
            raise Other
        columns.append([np.nan if value is None else float(value) for value in column.to_pylist()])
    return np.array(columns).T


def read_text(path, case):
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        data = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
    # The layout is that found by daimc; pandas reads the values of these columns.
    text = data.decode().removeprefix("\ufeff")
    separators = [separator for separator in "\t,;|" if separator in text.split("\n")[-2 if text.endswith("\n") else -1]]
    if len(separators) != 1 or "#" in text or case["features"] is None:
        raise Other
    frame = pd.read_csv(io.StringIO(text), sep=separators[0], index_col=None if case["no_ids"] else 0,
                        na_values=MISSING, keep_default_na=False, float_precision="round_trip", skip_blank_lines=False)
    if frame.shape[1] != case["columns"] or not all(kind.kind in "iuf" for kind in frame.dtypes):
        raise Other
    return frame.to_numpy(dtype="f8")


READERS = dict(npy=read_npy, npz=read_npz, mat=read_mat, mtx=read_mtx, parquet=read_parquet, csv=read_text,
               gz=read_text, zst=read_text)


def same(ours, theirs):
    if ours.shape != theirs.shape:
        return False
    # Sums of duplicate entries depend on their order.
    close = np.isclose(ours, theirs, rtol=1e-12, atol=0, equal_nan=True)
    return bool(np.all(close | (ours == theirs)))


def check(folder, case):
    """Whether the values are the same; None if there is nothing to compare."""
    try:
        # A mutant may need terabytes, or never finish.
        signal.alarm(5)
        theirs = np.asarray(READERS[case["reader"]](folder / case["file"], case), dtype="f8")
    except (Exception, RecursionError):
        return None
    finally:
        signal.alarm(0)
    ours = np.frombuffer(bytes.fromhex(case["bits"]), dtype=">f8").reshape(case["rows"], case["columns"])
    if same(ours, theirs):
        return True
    print(f"\n{folder / case['file']}: daimc {ours.shape}\n{ours}\nthe other library {theirs.shape}\n{theirs}")
    return False


def checked(cases):
    """Checks cases in a separate process, because the libraries may crash. Stops at the first crash."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        with os.fdopen(writer, "w") as out:
            for folder, case in cases:
                print({None: "none", True: "same", False: "differs"}[check(folder, case)], file=out, flush=True)
        sys.stdout.flush()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        results = lines.read().split()
    os.waitpid(child, 0)
    return results + ["crashed"] * (len(results) < len(cases))


def main(folder):
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    cases = [(path.parent, json.loads(line)) for path in sorted(folder.rglob("list.jsonl")) for line in path.open()]
    results = []
    while len(results) < len(cases):
        results += checked(cases[len(results):])
    counts = Counter((case["reader"], result) for (_, case), result in zip(cases, results, strict=True))
    print("reader    read by daimc   by both   differing   (the other library crashed)")
    for name in sorted(READERS):
        none, same, differs, crashed = (counts[name, result] for result in ("none", "same", "differs", "crashed"))
        print(f"{name:<8} {none + same + differs + crashed:>14} {same + differs:>9} {differs:>11} {crashed:>29}")
    return 1 if "differs" in results else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
