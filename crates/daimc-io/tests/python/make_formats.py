"""Writes files of every format with common libraries, and their expected contents.

    python make_formats.py FOLDER

`expected.json` has two lists. `tables`: file, variable and options; shape, precision and sparsity of the table,
its IDs and features, and the name of a file with its values (float64, little-endian, by row). `errors`: file,
variable, and what the message must contain.
"""

import bz2
import gzip
import io
import json
import lzma
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse as sp

import arrow_formats
import hdf5_formats
import sheet_formats

folder = Path(sys.argv[1])
random = np.random.default_rng(7)
tables, errors = [], []


def table(file, values, *, variable=None, precision="f64", sparse=False, ids=None, features=None, text=False):
    """Expects `values` of a file."""
    values = np.asarray(values, dtype="<f8")
    bin_file = f"{len(tables)}.bin"
    values.tofile(folder / bin_file)
    expected = dict(
        file=file, variable=variable, rows=values.shape[0], columns=values.shape[1], precision=precision,
        sparse=sparse, ids=ids, features=features, values=bin_file, text=text, no_ids=False,
    )
    tables.append(expected)


def error(file, *parts, variable=None):
    errors.append(dict(file=file, variable=variable, parts=parts))


def dense(rows=23, columns=37, dtype="f8"):
    values = random.normal(size=(rows, columns)) * 50
    return values.astype(dtype)


def counts(rows=29, columns=41, dtype="f8"):
    values = random.integers(1, 100, size=(rows, columns)) * (random.random((rows, columns)) < 0.15)
    return values.astype(dtype)


def npy():
    for dtype in ["<f8", ">f8", "<f4", ">f4", "<f2", "<i1", "<u1", ">i2", "<u2", "<i4", ">u4", "<i8", "<u8", "?"]:
        for order in "CF":
            values = np.array(np.abs(dense(dtype="<f8")) if "u" in dtype else dense(dtype="<f8"))
            values = np.asarray(values.astype(dtype), order=order)
            name = dtype.replace("<", "little_").replace(">", "big_").replace("?", "bool")
            file = f"{name}_{order}.npy"
            np.save(folder / file, values)
            precision = "f32" if dtype[1:] in ("f4", "f2") else "f64"
            table(file, values, precision=precision)
    line = dense()[0]
    np.save(folder / "line.npy", line)
    tables_before = len(tables)
    table("line.npy", line[:, None])
    tables[tables_before]["directionless"] = True
    one = dense(1, 5)
    np.save(folder / "one_row.npy", one)
    table("one_row.npy", one)
    with open(folder / "version_2.npy", "wb") as out:
        np.lib.format.write_array(out, one, version=(2, 0))
    table("version_2.npy", one)
    np.save(folder / "complex.npy", np.ones((2, 2), dtype=complex))
    error("complex.npy", "complex128", "astype")
    np.save(folder / "structured.npy", np.zeros(3, dtype=[("a", "f8"), ("shape", "i4")]))
    error("structured.npy", "structured")
    np.save(folder / "object.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
    error("object.npy", "object")
    np.save(folder / "text.npy", np.array([["a", "bc"]]))
    error("text.npy", "str")
    np.save(folder / "deep.npy", np.zeros((2, 3, 4)))
    error("deep.npy", "2 × 3 × 4", "reshape")
    np.save(folder / "scalar.npy", np.float64(3))
    error("scalar.npy", "matrix")
    np.save(folder / "empty.npy", np.zeros((0, 4)))
    error("empty.npy", "empty")


def npz():
    a, b = dense(dtype="f4"), counts(dtype="i4")
    for save in (np.savez, np.savez_compressed):
        name = save.__name__
        save(folder / f"{name}.npz", a=a, b=np.asfortranarray(b), y=np.arange(5))
        table(f"{name}.npz", a, variable="a", precision="f32")
        table(f"{name}.npz", b, variable="b")
        error(f"{name}.npz", "'a' (float32 23 × 37)", "'b' (int32 29 × 41)", "'y' (int64 5)", "::NAME")
        error(f"{name}.npz", "'c'", "'a' (float32 23 × 37)", variable="c")
        save(folder / f"{name}_single.npz", X=a, y=np.arange(23))
        table(f"{name}_single.npz", a, precision="f32")
    np.savez(folder / "objects.npz", X=np.array([a, b], dtype=object), y=np.ones((23, 1)))
    error("objects.npz", "::X", "object", variable="X")
    error("objects.npz", "'X' (object 2)", "'y' (float64 23 × 1)")
    for dtype in ["f8", "f4", "i4", "bool"]:
        values = counts(dtype=dtype)
        for kind in ["csr", "csc", "coo"]:
            for compressed in (True, False):
                file = f"sparse_{kind}_{dtype}_{compressed}.npz"
                sp.save_npz(folder / file, sp.coo_matrix(values).asformat(kind), compressed=compressed)
                table(file, values, precision="f32" if dtype == "f4" else "f64", sparse=True)
    array = sp.csr_array(counts())
    sp.save_npz(folder / "sparse_array.npz", array)
    table("sparse_array.npz", array.toarray(), sparse=True)
    # Unsorted, with repeated entries, which stand for their sum.
    entries = 300
    rows, columns = random.integers(0, 12, entries), random.integers(0, 9, entries)
    repeated = sp.coo_matrix((random.normal(size=entries).round(2), (rows, columns)), shape=(12, 9))
    sp.save_npz(folder / "repeated_coo.npz", repeated)
    table("repeated_coo.npz", repeated.toarray(), sparse=True)
    order = np.argsort(rows, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=12))])
    raw = sp.csr_matrix((repeated.data[order], columns[order], offsets), shape=(12, 9))
    sp.save_npz(folder / "repeated_csr.npz", raw)
    table("repeated_csr.npz", repeated.toarray(), sparse=True)
    sp.save_npz(folder / "bsr.npz", sp.bsr_matrix(counts(6, 4), blocksize=(2, 2)))
    error("bsr.npz", "'bsr'", "tocsr")


def mat():
    a, b, s = dense(), dense(11, 5, "f4"), counts()
    cells = np.empty((1, 3), dtype=object)
    inner = np.empty((2, 2), dtype=object)
    for i in range(2):
        for j in range(2):
            inner[i, j] = dense(3, 2 + 2 * i + j)
    cells[0, 0], cells[0, 1], cells[0, 2] = a, sp.csc_matrix(s), inner
    ints = {t: random.integers(0, 100, (6, 4)).astype(t) for t in
            ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]}
    for compressed in (True, False):
        def save(name, variables):
            file = f"{name}_{'compressed' if compressed else 'plain'}.mat"
            scipy.io.savemat(folder / file, variables, do_compression=compressed)
            return file

        several = save("several", dict(
            X=cells, a=a, b=b, s=sp.csc_matrix(s), f32=sp.csc_matrix(s.astype("f4")), text="words",
            truth=s > 0, z=np.ones((2, 2), dtype=complex), deep=np.zeros((2, 3, 4)), st={"q": a},
            sparse_truth=sp.csc_matrix(s > 0), **ints,
        ))
        table(several, a, variable="a")
        table(several, b, variable="b", precision="f32")
        table(several, s, variable="s", sparse=True)
        table(several, s, variable="f32", sparse=True)
        table(several, s > 0, variable="truth")
        table(several, s > 0, variable="sparse_truth", sparse=True)
        for name, values in ints.items():
            table(several, values, variable=name)
        table(several, a, variable="X{1}")
        table(several, s, variable="X{2}", sparse=True)
        table(several, inner[1, 0], variable="X{3}{2}")
        table(several, inner[0, 1], variable="X{1,3}{1,2}")
        error(several, "X (cell 1 × 3: {1} double 23 × 37, {2} sparse 29 × 41, {3} cell 2 × 2)",
              "b (single 11 × 5)", "text (char", "truth (logical 29 × 41)", "complex", "::NAME")
        error(several, "'nothing'", "b (single 11 × 5)", variable="nothing")
        error(several, "X{4}", "1 × 3", variable="X{4}")
        error(several, "a{1}", "double 23 × 37", variable="a{1}")
        error(several, "cell array", "X{1}", variable="X")
        error(several, "char", variable="text")
        error(several, "complex", variable="z")
        error(several, "struct", variable="st")
        error(several, "2 × 3 × 4", "reshape", variable="deep")
        error(several, "X{0", "NAME{2}", variable="X{0}")
        single = save("single", dict(a=a, text="words"))
        table(single, a)
        next_to_cell = save("cell", dict(X=cells, y=np.ones((23, 1))))
        error(next_to_cell, "X (cell", "y (double 23 × 1)", "NAME{2}")
    scipy.io.savemat(folder / "level4.mat", dict(a=a), format="4")
    table("level4.mat", a)
    own_files()
    (folder / "level73.mat").write_bytes(
        b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM" + bytes(384) + b"\x89HDF\r\n\x1a\n")
    error("level73.mat", "ends before its data do")
    (folder / "octave.mat").write_text("# Created by Octave 8\n# name: a\n")
    error("octave.mat", "Octave", "-v7")
    (folder / "big_endian.mat").write_bytes(big_endian_mat("a", a))
    table("big_endian.mat", a)


def big_endian_mat(name, values):
    """No current library writes big-endian files; old machines did."""
    def element(kind, data):
        return np.array([kind, len(data)], ">u4").tobytes() + data + bytes(-len(data) % 8)

    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    body = (element(6, np.array([6, 0], ">u4").tobytes()) + element(5, np.array(values.shape, ">i4").tobytes())
            + element(1, name.encode()) + element(9, values.astype(">f8").tobytes(order="F")))
    return header + element(14, body)


def parquet():
    values = dense(200, 4)
    names = ["a", "b", "c", "d"]
    ids = [f"id {i}" for i in range(200)]
    frame = pd.DataFrame(values, columns=names)
    for codec in ["snappy", "zstd", "gzip", "lz4", "brotli", "none"]:
        named = frame.set_axis(pd.Index(ids, name="sample"))
        named.to_parquet(folder / f"named_{codec}.parquet", compression=None if codec == "none" else codec)
        table(f"named_{codec}.parquet", values, ids=ids, features=names)
    frame.set_axis(pd.Index(ids)).to_parquet(folder / "unnamed_index.parquet")
    table("unnamed_index.parquet", values, ids=ids, features=names)
    frame.set_axis(pd.Index(range(0, 400, 2)[::-1]).astype("int64") + 5).iloc[random.permutation(200)].to_parquet(
        folder / "whole_index.parquet")
    shuffled = pd.read_parquet(folder / "whole_index.parquet")
    table("whole_index.parquet", shuffled, ids=[str(i) for i in shuffled.index], features=names)
    frame.to_parquet(folder / "range.parquet")
    table("range.parquet", values, features=names)
    frame.iloc[150:].to_parquet(folder / "range_from.parquet")
    table("range_from.parquet", values[150:], ids=[str(i) for i in range(150, 200)], features=names)
    frame.iloc[::-3].to_parquet(folder / "range_down.parquet")
    table("range_down.parquet", values[::-3], ids=[str(i) for i in range(199, -1, -3)], features=names)
    frame.assign(sample=ids)[["sample", *names]].to_parquet(folder / "range_with_ids.parquet")
    table("range_with_ids.parquet", values, ids=ids, features=names)
    frame.astype("f4").to_parquet(folder / "single.parquet", row_group_size=64)
    table("single.parquet", values.astype("f4"), precision="f32", features=names)
    mixed = frame.assign(b=frame["b"].astype("f4"))
    mixed.to_parquet(folder / "mixed.parquet")
    table("mixed.parquet", mixed, features=names)

    holes = values.copy()
    holes[random.random(holes.shape) < 0.3] = np.nan
    holes[17] = np.nan
    columns = dict(
        id=pa.array(range(200), pa.uint16()),
        a=pa.array(holes[:, 0], from_pandas=True),
        b=pa.array([None if np.isnan(v) else int(v) for v in holes[:, 1]], pa.int8()),
        c=pa.array([None if np.isnan(v) else v > 0 for v in holes[:, 2]]),
        d=pa.array([None] * 200, pa.null()),
        e=pa.array((np.abs(values[:, 3]) * 1e6 + 3e9).astype("u4")),
        f=pa.array(np.arange(200).astype("u8") + np.uint64(2**63)),
        g=pa.array(values[:, 0].astype("f2")),
    )
    expected = np.column_stack([
        holes[:, 0], np.trunc(holes[:, 1]), np.where(np.isnan(holes[:, 2]), np.nan, holes[:, 2] > 0),
        np.full(200, np.nan), (np.abs(values[:, 3]) * 1e6 + 3e9).astype("u4"), np.full(200, 2.0**63) + np.arange(200),
        values[:, 0].astype("f2"),
    ])
    for name, options in dict(
        v1=dict(row_group_size=33), v2=dict(data_page_version="2.0", row_group_size=70),
        plain=dict(use_dictionary=False, data_page_size=100), old=dict(version="1.0"),
        split=dict(use_dictionary=False, use_byte_stream_split=["a"], compression="zstd"),
    ).items():
        pq.write_table(pa.table(columns), folder / f"arrow_{name}.parquet", **options)
        table(f"arrow_{name}.parquet", expected, ids=[str(i) for i in range(200)], features=list("abcdefg"))
    pq.write_table(pa.table(dict(a=values[:, 0], b=np.arange(200), c=values[:, 1])), folder / "float_first.parquet")
    table("float_first.parquet", np.column_stack([values[:, 0], np.arange(200), values[:, 1]]), features=list("abc"))
    pq.write_table(pa.table(dict(a=np.arange(200), b=values[:, 1])), folder / "whole.parquet")
    table("whole.parquet", np.column_stack([np.arange(200), values[:, 1]]), features=list("ab"))
    tables[-1]["no_ids"] = True

    # Nothing compresses better.
    for codec in ["snappy", "lz4", "zstd", "gzip", "brotli"]:
        zeros = np.zeros(100_000)
        pq.write_table(pa.table(dict(a=zeros)), folder / f"zeros_{codec}.parquet", compression=codec,
                       use_dictionary=False)
        table(f"zeros_{codec}.parquet", zeros[:, None], features=["a"])

    # The second row group says that its first column is of another type, or has another name.
    pq.write_table(pa.table(dict(first=values[:, 0], b=values[:, 1])), folder / "groups.parquet", row_group_size=100,
                   use_dictionary=False, write_statistics=False, compression="none", store_schema=False)
    table("groups.parquet", values[:, :2], features=["first", "b"])
    groups = (folder / "groups.parquet").read_bytes()
    double, whole = bytes([0x15, 10, 0x19]), bytes([0x15, 4, 0x19])
    name = bytes([0x18, 5]) + b"first"
    footer = groups.index(name, len(groups) - 8 - int.from_bytes(groups[-8:-4], "little"))
    for file, own, other in [("group_type", double, whole), ("group_name", name, bytes([0x18, 5]) + b"other")]:
        starts = [at for at in range(footer, len(groups)) if groups.startswith(own, at)]
        second = starts[2]
        (folder / f"{file}.parquet").write_bytes(groups[:second] + other + groups[second + len(own):])
        error(f"{file}.parquet", "row group", "save it anew")

    frame.assign(word="x").to_parquet(folder / "word.parquet")
    error("word.parquet", "'word'", "string")
    frame.assign(day=pd.Timestamp("2020-01-01")).to_parquet(folder / "day.parquet")
    error("day.parquet", "'day'", "timestamp")
    date = pa.array([18000] * 200, pa.int32()).cast(pa.date32())
    pq.write_table(pa.table(dict(a=values[:, 0], date=date)), folder / "date.parquet")
    error("date.parquet", "'date'", "type date")
    price = pa.array([1] * 200).cast(pa.decimal128(30, 2))
    pq.write_table(pa.table(dict(a=values[:, 0], price=price)), folder / "decimal.parquet")
    error("decimal.parquet", "'price'", "decimal")
    pq.write_table(pa.table(dict(a=values[:, 0], list=[[1, 2]] * 200)), folder / "list.parquet")
    error("list.parquet", "'list'", "lists")
    pq.write_table(pa.table(dict(id=["a", None], b=[1.0, 2.0])), folder / "no_id.parquet")
    error("no_id.parquet", "row 2", "'id'")
    pq.write_table(pa.table(dict(id=["a", "b"])), folder / "only_ids.parquet")
    error("only_ids.parquet", "no column of values")
    pq.write_table(pa.table(dict(a=pa.array([], pa.float64()))), folder / "no_rows.parquet")
    error("no_rows.parquet", "no rows")
    frame.set_axis(pd.MultiIndex.from_arrays([ids, ids], names=["p", "q"])).to_parquet(folder / "levels.parquet")
    error("levels.parquet", "2 levels")


def text():
    values = dense()
    ids, names = [f"s{i}" for i in range(23)], [f"g {j}, x" for j in range(37)]
    frame = pd.DataFrame(values, index=ids, columns=names)
    frame.to_csv(folder / "table.csv")
    table("table.csv", values, ids=ids, features=names, text=True)
    frame.to_csv(folder / "table.tsv.gz", sep="\t")
    table("table.tsv.gz", values, ids=ids, features=names, text=True)
    sparse = counts()
    scipy.io.mmwrite(folder / "counts.mtx", sp.coo_matrix(sparse))
    table("counts.mtx", sparse, sparse=True, text=True)
    out = io.BytesIO()
    scipy.io.mmwrite(out, sp.coo_matrix(sparse))
    (folder / "counts.mtx.gz").write_bytes(gzip.compress(out.getvalue()))
    table("counts.mtx.gz", sparse, sparse=True, text=True)
    scipy.io.mmwrite(folder / "dense.mtx", values)
    table("dense.mtx", values, text=True)
    for ending, compress in (("bz2", bz2.compress), ("xz", lzma.compress)):
        (folder / f"counts.mtx.{ending}").write_bytes(compress(out.getvalue()))
        table(f"counts.mtx.{ending}", sparse, sparse=True, text=True)
    packed(frame, dict(ids=ids, features=names, text=True), out.getvalue(), sparse)


def packed(frame, about, matrix, sparse):
    for ending in ("csv.bz2", "csv.xz", "csv.zip"):
        frame.to_csv(folder / f"packed.{ending}")
        table(f"packed.{ending}", frame, **about)
    # Several streams, one after another, are one file: pbzip2 and pixz write them.
    plain = frame.to_csv().encode()
    half = len(plain) // 2
    for ending, compress in (("bz2", bz2.compress), ("xz", lzma.compress)):
        (folder / f"streams.csv.{ending}").write_bytes(compress(plain[:half]) + compress(plain[half:]))
        table(f"streams.csv.{ending}", frame, **about)
    (folder / "sha256.csv.xz").write_bytes(lzma.compress(plain, check=lzma.CHECK_SHA256, preset=9))
    table("sha256.csv.xz", frame, **about)
    with zipfile.ZipFile(folder / "members.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("deep/a.csv", plain)
        archive.writestr("deep/b.tsv.gz", gzip.compress(frame.to_csv(sep="\t").encode()))
        archive.writestr("counts.mtx", matrix, zipfile.ZIP_STORED)
        archive.writestr("__MACOSX/deep/._a.csv", b"\0")
    table("members.zip", frame, variable="deep/a.csv", **about)
    table("members.zip", frame, variable="b.tsv.gz", **about)
    table("members.zip", sparse, variable="counts.mtx", sparse=True, text=True)
    error("members.zip", "'deep/a.csv', 'deep/b.tsv.gz', 'counts.mtx'", "::NAME")
    error("members.zip", "has no file 'c.csv'", "'counts.mtx'", variable="c.csv")
    with zipfile.ZipFile(folder / "lzma.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.csv", plain)
    error("lzma.zip", "unpack it and name the file")
    with zipfile.ZipFile(folder / "wrong.zip", "w") as archive:
        archive.writestr("a.csv", "id,x,y\na,1,2\nb,1,oops\n")
    error("wrong.zip", "wrong.zip::a.csv, line 3, column 3", "'oops'")


def lying_page(codec):
    """A page that is said to be 2 GiB long before it was compressed."""
    path = folder / f"lying_{codec}.parquet"
    pq.write_table(pa.table(dict(x=random.random(1000))), path, compression=codec, use_dictionary=False)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    end = chunk.data_page_offset + chunk.total_compressed_size
    data = path.read_bytes()

    def number(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value >> 1, at

    def varint(value):
        value, out = value << 1, []
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes([*out, value])

    start = chunk.data_page_offset + 3
    _, after = number(start)
    stored, values = number(after + 1)
    claim = varint(2**31 - 2)
    # What the claim takes is cut from the end of the page, so that everything else stays where it is.
    extra = len(claim) - (after - start)
    page = data[:start] + claim + data[after:after + 1] + varint(stored - extra) + data[values:end - extra]
    assert len(page) == end
    path.write_bytes(page + data[end:])
    error(path.name, "claims more")


def own_files():
    """scipy's own files, where they are installed: every real matrix, by its name."""
    for path in sorted((Path(scipy.io.__file__).parent / "matlab/tests/data").glob("*.mat")):
        try:
            found = scipy.io.loadmat(path)
        except Exception:  # Damaged on purpose, or a level that scipy does not read.
            continue
        for name, value in found.items():
            numbers = sp.issparse(value) or isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
            if name.startswith("__") or not numbers or value.ndim != 2 or value.dtype.kind == "c" or 0 in value.shape:
                continue
            (folder / f"own_{path.name}").write_bytes(path.read_bytes())
            single = value.dtype.kind == "f" and value.dtype.itemsize < 8
            values = value.toarray() if sp.issparse(value) else value
            table(f"own_{path.name}", values, variable=name, sparse=sp.issparse(value),
                  precision="f32" if single else "f64")


def tiny():
    """Files in which every byte can be changed."""
    values = dense(3, 2)
    np.save(folder / "tiny.npy", values)
    np.savez_compressed(folder / "tiny.npz", values)
    sp.save_npz(folder / "tiny_sparse.npz", sp.csc_matrix(values), compressed=False)
    scipy.io.savemat(folder / "tiny.mat", dict(X=values), do_compression=True)
    scipy.io.savemat(folder / "tiny_sparse.mat", dict(X=sp.csc_matrix(values)))
    columns = dict(id=["a", "b", "c"], x=values[:, 0], y=[1, None, 3])
    pq.write_table(pa.table(columns), folder / "tiny.parquet", compression="none")
    for ending in ("bz2", "xz", "zip"):
        pd.DataFrame(values).to_csv(folder / f"tiny.csv.{ending}")
    for codec in ("snappy", "lz4"):
        lying_page(codec)
    pq.write_table(pa.table(columns), folder / "tiny_zstd.parquet", compression="zstd", data_page_version="2.0")


for make in (npy, npz, mat, parquet, text, tiny):
    make()
hdf5_formats.write(folder, random, table, error)
arrow_formats.write(folder, random, table, error)
sheet_formats.write(folder, random, table, error)
(folder / "expected.json").write_text(json.dumps(dict(tables=tables, errors=errors)))
