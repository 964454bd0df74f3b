"""Writes two views of the same instances in every format, with the libraries that people write them with."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.io
import scipy.sparse

folder = Path(sys.argv[1])
random = np.random.default_rng(7)
group = np.arange(90) % 3
views = {}
for name, features in [("a", 12), ("b", 7)]:
    centres = random.uniform(0, 4, (3, features))
    values = centres[group] + random.normal(0, 0.4, (90, features))
    values[values < 0.5] = 0
    views[name] = values

for name, values in views.items():
    frame = pd.DataFrame(values, columns=[f"{name}{i}" for i in range(values.shape[1])])
    frame.to_csv(folder / f"{name}.csv")
    frame.to_csv(folder / f"{name}.tsv.gz", sep="\t")
    text = frame.to_csv().encode()
    (folder / f"{name}.csv.zst").write_bytes(pa.compress(text, codec="zstd", asbytes=True))
    np.save(folder / f"{name}.npy", values)
    scipy.io.mmwrite(folder / f"{name}.mtx", values, precision=17)
    frame.to_parquet(folder / f"{name}.parquet")
    scipy.sparse.save_npz(folder / f"{name}.sparse.npz", scipy.sparse.csr_matrix(values))
    scipy.io.mmwrite(folder / f"{name}.sparse.mtx", scipy.sparse.coo_matrix(values), precision=17)
np.savez_compressed(folder / "both.npz", **views)
cells = np.empty((1, 2), dtype=object)
cells[0, 0], cells[0, 1] = views["a"], views["b"]
scipy.io.savemat(folder / "both.mat", {"X": cells}, do_compression=True)
