"""Files of HDF5 as anndata, mudata, Cell Ranger and MATLAB write them; called by `make_formats.py`."""

import gzip
import warnings

import anndata as ad
import h5py
import mudata as md
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp


def write(folder, random, table, error):
    warnings.filterwarnings("ignore")
    annotated(folder, random, table, error)
    cell_ranger(folder, random, table, error)
    matlab(folder, random, table, error)
    plain(folder, random, table, error)


def counts(random, rows, columns):
    return random.poisson(0.7, (rows, columns)).astype("f4")


def annotated(folder, random, table, error):
    n, d = 61, 17
    cells, genes = [f"cell {i}" for i in range(n)], [f"gene-{j}" for j in range(d)]
    kinds = ["T", "B", None]
    obs = pd.DataFrame(dict(
        cell_type=pd.Categorical([kinds[i % 3] for i in range(n)]), batch=[f"b{i % 2}" for i in range(n)],
        number=np.arange(n) % 4, flag=np.arange(n) % 2 == 0, share=np.arange(n) / 4,
        maybe=pd.array([[1, 2, None][i % 3] for i in range(n)], dtype="Int64"),
    ), index=cells)
    var = pd.DataFrame(index=genes)
    dense = counts(random, n, d)
    for name, make in dict(dense=np.asarray, csr=sp.csr_matrix, csc=sp.csc_matrix).items():
        data = ad.AnnData(make(dense), obs=obs, var=var)
        data.raw = data
        data = data[:, :9].copy()
        data.layers["counts"] = make(2 * dense[:, :9].astype("f8"))
        data.obsm["X_pca"] = random.normal(size=(n, 3))
        for compression in [None, "gzip", "lzf"]:
            file = f"{name}_{compression}.h5ad"
            data.write_h5ad(folder / file, compression=compression)
            common = dict(ids=cells, features=genes[:9])
            sparse = name != "dense"
            table(file, dense[:, :9], precision="f32", sparse=sparse, **common)
            table(file, 2 * dense[:, :9], variable="layers/counts", sparse=sparse, **common)
            table(file, dense, variable="raw", precision="f32", sparse=sparse, ids=cells, features=genes)
            table(file, data.obsm["X_pca"], variable="obsm/X_pca", ids=cells)
    error("csr_gzip.h5ad", "no matrix 'layers/none'", "X, raw, layers/counts, obsm/X_pca", variable="layers/none")
    error("csr_gzip.h5ad", "no matrix 'uns'", variable="uns")
    # Indices of 64 bits, big-endian values, small chunks, sums.
    with h5py.File(folder / "csr_None.h5ad") as old, h5py.File(folder / "wide.h5ad", "w") as new:
        for name in ["obs", "var"]:
            old.copy(name, new)
        group = new.create_group("X")
        group.attrs.update(old["X"].attrs)
        options = dict(chunks=(7,), compression="gzip", shuffle=True, fletcher32=True)
        group.create_dataset("data", data=old["X/data"][:].astype(">f8"), **options)
        group.create_dataset("indices", data=old["X/indices"][:].astype("i8"), **options)
        group.create_dataset("indptr", data=old["X/indptr"][:].astype(">i8"), **options)
    table("wide.h5ad", dense[:, :9], sparse=True, ids=cells, features=genes[:9])

    proteins = [f"p{j}" for j in range(4)]
    mu = md.MuData(dict(
        rna=ad.AnnData(sp.csr_matrix(dense), obs=obs[["cell_type"]], var=var, layers=dict(twice=2 * dense)),
        prot=ad.AnnData(dense[5:40, :4], obs=obs.iloc[5:40][["batch"]], var=pd.DataFrame(index=proteins)),
    ))
    mu.write(folder / "two.h5mu")
    table("two.h5mu", dense, variable="rna", precision="f32", sparse=True, ids=cells, features=genes)
    table("two.h5mu", 2 * dense, variable="rna/layers/twice", precision="f32", ids=cells, features=genes)
    table("two.h5mu", dense[5:40, :4], variable="prot", precision="f32", ids=cells[5:40], features=proteins)
    error("two.h5mu", "the modalities rna, prot", "::NAME")
    error("two.h5mu", "no modality 'atac'", "rna, prot", variable="atac")


def cell_ranger(folder, random, table, error):
    cells, features = 23, 11
    values = counts(random, cells, features).astype("i4")
    matrix = sp.csc_matrix(values.T)
    barcodes = [f"ACGT{i}-1" for i in range(cells)]
    ids = [f"ENSG{j}" for j in range(features)]
    # Two genes have one name.
    names = [f"G{max(j, 1)}" for j in range(8)] + ["CD3", "CD4", "CD8"]
    shown = ["ENSG0", "ENSG1"] + names[2:]
    kinds = ["Gene Expression"] * 8 + ["Antibody Capture"] * 3

    def put(group, **more):
        for name, data in dict(data=matrix.data, indices=matrix.indices.astype("i8"), indptr=matrix.indptr.astype("i8"),
                               shape=np.array(matrix.shape, "i4"), barcodes=np.array(barcodes, "S"), **more).items():
            group.create_dataset(name, data=data, chunks=(min(len(data), 5),), compression="gzip", shuffle=True)

    with h5py.File(folder / "three.h5", "w") as file:
        group = file.create_group("matrix")
        put(group)
        for name, data in dict(id=ids, name=names, feature_type=kinds).items():
            group.create_dataset(f"features/{name}", data=np.array(data, "S"), compression="gzip")
    with h5py.File(folder / "two.h5", "w") as file:
        put(file.create_group("GRCh38"), genes=np.array(ids, "S"), gene_names=np.array(names, "S"))
    table("two.h5", values, sparse=True, ids=barcodes, features=shown)
    where = folder / "bundle"
    where.mkdir()
    with gzip.open(where / "matrix.mtx.gz", "wb") as file:
        scipy.io.mmwrite(file, matrix)
    (where / "barcodes.tsv.gz").write_bytes(gzip.compress("".join(f"{code}\n" for code in barcodes).encode()))
    lines = "".join(f"{id}\t{name}\t{kind}\n" for id, name, kind in zip(ids, names, kinds))
    (where / "features.tsv").write_text(lines)
    for file in ["three.h5", "bundle"]:
        for start, end, kind in [(0, 8, "Gene Expression"), (8, 11, "Antibody Capture")]:
            table(file, values[:, start:end], variable=kind, sparse=True, ids=barcodes, features=shown[start:end])
        error(file, "Gene Expression", "Antibody Capture", "::NAME")
        error(file, "'CRISPR'", "Antibody Capture", variable="CRISPR")


def matlab(folder, random, table, error):
    """The layout of `save -v7.3`: transposed, with attributes, and cells that refer to what is in `#refs#`."""
    matrix, other = random.normal(size=(9, 5)), random.normal(size=(4, 3)).astype("f4")
    sparse = sp.random(12, 7, 0.3, "csc", random_state=3)

    def file(name):
        return h5py.File(folder / name, "w", userblock_size=512)

    def finish(name):
        header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Nov 16 2026 HDF5 schema 1.00 ."
        with open(folder / name, "r+b") as out:
            out.write(header.ljust(116) + b" " * 8 + b"\0\x02IM")

    def dense(group, name, values, kind="double", **options):
        data = group.create_dataset(name, data=np.ascontiguousarray(values.T), **options)
        data.attrs["MATLAB_class"] = np.bytes_(kind)
        return data

    def compressed(group, name, values, kind="double"):
        inner = group.create_group(name)
        inner.attrs["MATLAB_class"] = np.bytes_(kind)
        inner.attrs["MATLAB_sparse"] = np.uint64(values.shape[0])
        inner["data"] = values.data.astype("u1") if kind == "logical" else values.data
        inner["ir"], inner["jc"] = values.indices.astype("u8"), values.indptr.astype("u8")
        return inner

    with file("late.mat") as out:
        dense(out, "X", matrix, chunks=(2, 3), compression="gzip")
        dense(out, "note", np.array([[72, 105]], "u2"), "char")
    finish("late.mat")
    table("late.mat", matrix)
    with file("cells.mat") as out:
        refs = out.create_group("#refs#")
        cells = [dense(refs, "a", matrix), compressed(refs, "b", sparse), dense(refs, "c", other, "single")]
        data = out.create_dataset("views", data=np.array([[cell.ref] for cell in cells], dtype=h5py.ref_dtype))
        data.attrs["MATLAB_class"] = np.bytes_("cell")
        dense(out, "y", np.arange(9.0)[:, None])
        compressed(out, "L", sparse != 0, "logical")
        dense(out, "none", np.array([[0], [0]], "u8")).attrs["MATLAB_empty"] = np.uint8(1)
    finish("cells.mat")
    table("cells.mat", matrix, variable="views{1}")
    table("cells.mat", sparse.toarray(), variable="views{1,2}", sparse=True)
    table("cells.mat", other, variable="views{3}", precision="f32")
    table("cells.mat", (sparse != 0).toarray(), variable="L", sparse=True)
    error("cells.mat", "L (sparse logical of 12 rows)", "views (cell 1 × 3)", "::NAME{2}")
    error("cells.mat", "outside of the cell array", variable="views{4}")
    error("cells.mat", "is double 2 × 1, not a matrix", variable="none")
    error("cells.mat", "goes into cells", variable="y{1}")


def plain(folder, random, table, error):
    matrix = random.normal(size=(20, 6))
    with h5py.File(folder / "plain.h5", "w", track_order=True) as out:
        for at in range(20):
            out.attrs[f"attribute {at}"] = at
        out.create_dataset("deep/down/m", data=matrix.astype(">f4"), chunks=(3, 4), maxshape=(None, 6))
        out.create_group("empty")
        out["words"] = ["a", "b"]
    table("plain.h5", matrix.astype("f4"), precision="f32")
    error("plain.h5", "no dataset 'x'", "deep/down/m", variable="x")
    with h5py.File(folder / "holes.hdf5", "w") as out:
        out.create_dataset("a", shape=(20, 6), chunks=(5, 4), dtype="f8", fillvalue=2.5)
        out["a"][3:6, 1:3] = 7
        out.create_dataset("b", data=matrix > 0)
    holes = np.full((20, 6), 2.5)
    holes[3:6, 1:3] = 7
    table("holes.hdf5", holes, variable="a")
    table("holes.hdf5", matrix > 0, variable="/b")
    error("holes.hdf5", "holds a, b; pick a matrix with ::PATH")
    (folder / "cut.h5ad").write_bytes((folder / "csr_gzip.h5ad").read_bytes()[:5000])
    error("cut.h5ad", "copy it again")
    (folder / "words.h5ad").write_bytes(b"a,b\n1,2\n")
    error("words.h5ad", "is not HDF5")
