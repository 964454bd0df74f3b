"""Compares what daimc read from mutated files with what the libraries that write such files read from them.

    daimc-fuzz --cases 200000 --dump FOLDER
    python compare.py FOLDER

Where both read a file, shape and values must be the same. Prints counts for each reader; exits with 1 if anything differs.
"""

import gzip
import io
import json
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
    """The library reads such files in another way, or not at all: there is nothing to compare."""


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
    return dense(scipy.io.mmread(io.BytesIO(data)))


def read_parquet(path, case):
    # The file as it is, without what pandas says about its index.
    table = pq.ParquetFile(path).read()
    if case["features"] is None or len(set(table.column_names)) < len(table.column_names):
        raise Other
    columns = []
    for name in case["features"]:
        column = table[name]
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
                or pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
            raise Other
        columns.append([np.nan if value is None else float(value) for value in column.to_pylist()])
    return np.array(columns).T


def read_text(path, case):
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        data = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
    # What stands where is for daimc to tell; pandas is asked for the values of those columns.
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
    # Sums of entries for the same place depend on their order.
    close = np.isclose(ours, theirs, rtol=1e-12, atol=0, equal_nan=True)
    return bool(np.all(close | (ours == theirs)))


def main(folder):
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    counts, differing = Counter(), []
    for listing in sorted(folder.rglob("list.jsonl")):
        for line in listing.open():
            case = json.loads(line)
            reader, path = case["reader"], listing.parent / case["file"]
            bits = np.frombuffer(bytes.fromhex(case["bits"]), dtype=">f8")
            ours = bits.reshape(case["rows"], case["columns"])
            counts[reader, "read by daimc"] += 1
            try:
                # A mutant may ask for terabytes or for ever.
                signal.alarm(5)
                theirs = np.asarray(READERS[reader](path, case), dtype="f8")
                signal.alarm(0)
            except (Exception, RecursionError):
                signal.alarm(0)
                continue
            counts[reader, "by both"] += 1
            if not same(ours, theirs):
                counts[reader, "differing"] += 1
                differing.append((reader, path, ours, theirs))
    columns = ["read by daimc", "by both", "differing"]
    print("reader  " + "".join(f"{column:>15}" for column in columns))
    for reader in sorted({reader for reader, _ in counts}):
        print(f"{reader:<8}" + "".join(f"{counts[reader, column]:>15}" for column in columns))
    for reader, path, ours, theirs in differing[:20]:
        print(f"\n{path}: daimc {ours.shape}\n{ours}\n{reader}'s library {theirs.shape}\n{theirs}")
    return 1 if differing else 0


if __name__ == "__main__":
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    sys.exit(main(Path(sys.argv[1])))
