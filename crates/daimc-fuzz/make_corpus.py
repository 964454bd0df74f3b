"""Writes the corpus: small files of every format, written by the common libraries.

    python make_corpus.py crates/daimc-fuzz/corpus

A folder for each reader that is fuzzed; the name of a file does not matter.
"""

import bz2
import gzip
import io
import json
import lzma
import shutil
import sys
import zipfile
from pathlib import Path

import anndata as ad
import h5py
import mudata as md
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse as sp

root = Path(sys.argv[1])
random = np.random.default_rng(11)


def put(path, data):
    path = root / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def file(path):
    path = root / path
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def dense(rows=6, columns=4, dtype="f8"):
    return (random.normal(size=(rows, columns)) * 50).round(3).astype(dtype)


def counts(rows=7, columns=5):
    return (random.integers(1, 100, size=(rows, columns)) * (random.random((rows, columns)) < 0.4)).astype("f8")


def frame(rows=6, columns=4):
    return pd.DataFrame(dense(rows, columns), index=[f"s{i}" for i in range(rows)],
                        columns=[f"g {j}" for j in range(columns)])


def text():
    table = frame()
    holes = table.mask(random.random(table.shape) < 0.3)
    put("csv/comma.csv", table.to_csv())
    put("csv/tab.tsv", holes.to_csv(sep="\t", na_rep="NA"))
    put("csv/semicolon.csv", table.to_csv(sep=";", lineterminator="\r\n"))
    put("csv/quoted.csv", table.rename(columns={"g 1": 'g "1", x', "g 2": "two\nlines"}).to_csv(quoting=1))
    put("csv/blanks.txt", "\n".join(" ".join(map(str, row)) for row in dense()) + "\n")
    put("csv/r.tsv", "a\tb\nx\t1\t2\ny\t3\t-4e-3\nz\tNA\tInf\n")
    put("csv/comments.tsv", "\ufeff# made by\n#OTU ID\ta\tb\no1\t1\t0\no2\t2\t5\n\n")
    put("csv/bars.txt", "id|a|b\n1|2.5|3\n2|.5|4.\n")
    put("gz/table.csv.gz", gzip.compress(table.to_csv().encode(), mtime=0))
    put("gz/members.csv.gz", b"".join(gzip.compress(part.encode(), mtime=0) for part in
                                      table.to_csv().splitlines(keepends=True)))
    codec = pa.Codec("zstd")
    put("zst/table.csv.zst", codec.compress(table.to_csv().encode(), asbytes=True))
    put("zst/long.tsv.zst", codec.compress(frame(200, 3).round(0).to_csv(sep="\t").encode(), asbytes=True))
    put("labels/named.tsv", "id\tcluster\tconfidence\na\t1\t.5\nb\t0\t.7\nc\t1\t.25\n")
    put("labels/plain.csv", "x,red\ny,green\nz,\n\"a,b\",NA\n")
    put("labels/column.txt", "class\n1\n2\n2\n1\n")
    put("labels/clinical.csv", "id,age,sex,class\np1,71,f,A\np2,65,m,B\n")
    put("mask/plain.csv", "id,v\ns0,1\ns1,0\ns2,1\n")
    put("mask/r.tsv", "v\ns0\tTRUE\ns1\tTRUE\ns2\tFALSE\n")
    put("names/lines.ids", "a\nb\nc\n")
    put("names/fields.ids", "\ufeffa\tx\r\nb\ty\r\nc\tz")


def mtx():
    sparse, square = sp.coo_matrix(counts()), counts(4, 4)
    for name, matrix, options in [
        ("general", sparse, {}), ("integer", sp.coo_matrix(counts().astype("i8")), {}), ("dense", dense(), {}),
        ("pattern", sparse, dict(field="pattern")),
        ("symmetric", sp.coo_matrix(square + square.T), dict(symmetry="symmetric")),
        ("skew", sp.coo_matrix(square - square.T), dict(symmetry="skew-symmetric")),
        ("dense_symmetric", square + square.T, dict(symmetry="symmetric")),
        ("dense_skew", square - square.T, dict(symmetry="skew-symmetric")),
    ]:
        out = io.BytesIO()
        scipy.io.mmwrite(out, matrix, **options)
        put(f"mtx/{name}.mtx", out.getvalue())
    out = io.BytesIO()
    scipy.io.mmwrite(out, sparse)
    put("mtx/general.mtx.gz", gzip.compress(out.getvalue(), mtime=0))


def npy():
    for dtype in ["<f8", ">f4", "<f2", "<i4", ">u2", "?", "|i1"]:
        np.save(file(f"npy/{dtype[1:] or 'b'}.npy"), dense(dtype="<f8").astype(dtype))
    np.save(file("npy/fortran.npy"), np.asfortranarray(dense()))
    np.save(file("npy/line.npy"), dense()[0])
    with open(file("npy/version_2.npy"), "wb") as out:
        np.lib.format.write_array(out, dense(2, 2), version=(2, 0))
    np.savez(file("npz/one.npz"), dense())
    np.savez_compressed(file("npz/two.npz"), a=dense(), b=dense(3, 2, "f4"), words=np.array(["x", "yz"]))
    for kind in ["csr", "csc", "coo"]:
        sp.save_npz(file(f"npz/{kind}.npz"), sp.coo_matrix(counts()).asformat(kind), compressed=kind != "csr")


def mat():
    cells = np.empty((1, 3), dtype=object)
    inner = np.empty((2, 2), dtype=object)
    for i in range(2):
        for j in range(2):
            inner[i, j] = dense(2, 2)
    cells[0, 0], cells[0, 1], cells[0, 2] = dense(), sp.csc_matrix(counts()), inner
    for compressed in (True, False):
        suffix = "compressed" if compressed else "plain"

        def save(name, variables):
            scipy.io.savemat(file(f"mat/{name}_{suffix}.mat"), variables, do_compression=compressed)

        save("one", dict(a=dense()))
        save("single", dict(a=dense(dtype="f4"), text="words"))
        save("sparse", dict(s=sp.csc_matrix(counts())))
        save("cells", dict(X=cells, a=dense(3, 1), t=counts() > 0))
        save("int", dict(a=random.integers(0, 100, (6, 4)).astype("int16")))
    scipy.io.savemat(file("mat/level4.mat"), dict(a=dense(), s=sp.csc_matrix(counts())), format="4")


def parquet():
    values = dense(12, 3)
    named = pd.DataFrame(values, columns=["a", "b", "c"], index=pd.Index([f"id {i}" for i in range(12)], name="s"))
    for codec in ["snappy", "zstd", "gzip", "lz4", "brotli"]:
        named.to_parquet(file(f"parquet/{codec}.parquet"), compression=codec)
    named.reset_index(drop=True).iloc[::-3].to_parquet(file("parquet/range.parquet"), compression=None)
    columns = dict(
        id=pa.array([f"i{i}" for i in range(12)]),
        a=pa.array([None, *values[1:, 0]]), b=pa.array([*range(11), None], pa.int8()),
        c=pa.array([True, False, None] * 4), e=pa.array(range(12), pa.uint32()),
        f=pa.array(np.arange(12).astype("u8") + np.uint64(2**63)), g=pa.array(values[:, 0].astype("f2")),
        h=pa.array(values[:, 1].astype("f4")),
    )
    bare = dict(store_schema=False, compression="none")
    for name, options in dict(
        v1=dict(row_group_size=5), v2=dict(data_page_version="2.0"),
        plain=dict(use_dictionary=False, data_page_size=20, write_statistics=False),
        split=dict(use_dictionary=False, use_byte_stream_split=["a"]),
        delta=dict(use_dictionary=False, column_encoding=dict(id="DELTA_BYTE_ARRAY", b="DELTA_BINARY_PACKED",
                                                              e="DELTA_BINARY_PACKED")),
        length=dict(use_dictionary=False, column_encoding=dict(id="DELTA_LENGTH_BYTE_ARRAY")),
    ).items():
        pq.write_table(pa.table(columns), file(f"parquet/{name}.parquet"), **bare, **options)
    pq.write_table(pa.table(dict(a=values[:, 0], b=values[:, 1])), file("parquet/small.parquet"), **bare)
    pq.write_table(pa.table(dict(a=[1.0, 2.0], list=[[1, 2]] * 2)), file("parquet/list.parquet"), **bare)


def hdf5():
    sparse, names = sp.csr_matrix(counts(6, 4).astype("f4")), [f"g{j}" for j in range(4)]
    obs = pd.DataFrame(dict(kind=pd.Categorical(["a", "b", None] * 2), word=list("uvwxyz")), index=list("ABCDEF"))
    for name, matrix, compression in [("dense", sparse.toarray(), "gzip"), ("csr", sparse, "lzf"), ("csc", sparse.tocsc(), None)]:
        data = ad.AnnData(matrix, obs=obs, var=pd.DataFrame(index=names), layers=dict(counts=matrix),
                          obsm=dict(X_pca=dense(6, 2)))
        data.raw = data
        data.write_h5ad(file(f"hdf5/{name}.h5ad"), compression=compression)
    (root / "obs").mkdir(exist_ok=True)
    shutil.copy(root / "hdf5/dense.h5ad", root / "obs/gzip.h5ad")
    plain = obs.assign(kind=range(6))
    ad.AnnData(sparse, obs=plain).write_h5ad(file("obs/numbers.h5ad"))
    prot = ad.AnnData(dense(4, 2), obs=obs.iloc[:4], layers=dict(counts=dense(4, 2)))
    md.MuData(dict(rna=ad.AnnData(sparse, obs=obs), prot=prot)).write(file("hdf5/two.h5mu"))
    with h5py.File(file("hdf5/cells.h5"), "w") as out:
        for name, values in dict(data=sparse.data, indices=sparse.indices.astype("i8"), indptr=sparse.indptr,
                                 shape=np.array([4, 6]), barcodes=np.array(list("ABCDEF"), "S")).items():
            out.create_dataset(f"matrix/{name}", data=values, chunks=True, compression="gzip", shuffle=True)
        kinds = ["Gene Expression"] * 3 + ["Antibody Capture"]
        for name, values in dict(id=names, name=names, feature_type=kinds).items():
            out[f"matrix/features/{name}"] = np.array(values, "S")
    with h5py.File(file("hdf5/plain.h5"), "w", track_order=True) as out:
        out.create_dataset("a", data=dense(6, 4, ">f4"), chunks=(2, 3), fletcher32=True, maxshape=(None, 4))
    with h5py.File(file("hdf5/latest.h5"), "w", libver=("v108", "v110")) as out:
        out.create_dataset("a", data=dense(6, 4), chunks=(2, 3), maxshape=(None, 4))
    with h5py.File(file("mat73/cells.mat"), "w", userblock_size=512) as out:
        def put(name, values, kind="double"):
            out[name] = values.T
            out[name].attrs["MATLAB_class"] = np.bytes_(kind)
            return out[name].ref
        put("a", dense())
        cells = out.create_dataset("X", data=np.array([[put("#refs#/b", dense())], [put("#refs#/c", dense(2, 2, "f4"))]],
                                                      dtype=h5py.ref_dtype))
        cells.attrs["MATLAB_class"] = np.bytes_("cell")
        group = out.create_group("s")
        group.attrs["MATLAB_class"], group.attrs["MATLAB_sparse"] = np.bytes_("double"), np.uint64(4)
        column = sparse.T.tocsc()
        group["data"], group["ir"], group["jc"] = column.data, column.indices.astype("u8"), column.indptr.astype("u8")


def config():
    put("toml/fit.toml", 'view = ["a=a.tsv", "b=b.mat::X{2}"]\nk = 3\nmask = "mask.tsv"\ntranspose = ["a"]\n'
        'no-ids = true\nnan = "mean"\nprecision = "f32"\nscale = ["z-score", "b=none"]\nalpha = 1e-2\nbeta = 0.5\n'
        'seed = 7\nthreads = 2\npenalty = "relative"\nmax-iter = 30\ntol = 1e-6\ntruth = "truth.csv"\n')
    put("toml/small.toml", 'view = "a=a.tsv"\nclusters = 2\n')
    options = dict(view=["a=a.tsv"], clusters=2, nan="mean", scale=["auto"], seed=3, transpose=True)
    put("json/summary.json", json.dumps(dict(version="0.1.0", options=options, directory="/data", inputs=[
        dict(name="a", path="a.tsv", shape=[3, 2], values="dense f64", entries=6, bytes=48, sha256="00")]), indent=1))


def tables():
    """Arrow, spreadsheets, GCT, and compressed text."""
    frame = pd.DataFrame([[1.5, 2.0], [-3.0, None]], index=["s0", "s1"], columns=["x", "y"])
    named = pa.table(dict(id=["s0", "s1"], x=[1.5, 2.0], y=[1, None]))
    for codec in ("uncompressed", "lz4", "zstd"):
        feather.write_feather(named, file(f"arrow/{codec}.feather"), compression=codec)
    words = named.set_column(0, "id", pa.array(["s0", "s1"]).dictionary_encode())
    with pa.ipc.new_stream(str(file("arrow/words.arrows")), words.schema) as writer:
        writer.write_table(words)
    for ending in ("xlsx", "ods"):
        with pd.ExcelWriter(file(f"{ending}/two.{ending}")) as out:
            frame.to_excel(out, sheet_name="a")
            frame.to_excel(out, sheet_name="b")
        frame.to_excel(file(f"{ending}/one.{ending}"))
    put("gct/old.gct", "#1.2\n2\t2\nName\tDescription\ts0\ts1\ng1\tna\t1\t2\ng2\tna\t3\t\n")
    put("gct/new.gct", "#1.3\n1\t2\t1\t1\nid\tsymbol\ts0\ts1\nkind\tna\ta\tb\ng1\tA\t1\t2\n")
    put("bz2/table.csv.bz2", bz2.compress(frame.to_csv().encode()))
    put("xz/table.csv.xz", lzma.compress(frame.to_csv().encode()))
    with zipfile.ZipFile(file("zip/two.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", frame.to_csv())
        archive.writestr("b.tsv", frame.to_csv(sep="\t"))
    frame.to_csv(file("zip/one.csv.zip"))


for make in (text, mtx, npy, mat, parquet, hdf5, config, tables):
    make()
