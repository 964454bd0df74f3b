"""Files and streams of Arrow, as pyarrow, pandas, polars and R's arrow write them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather


def stream(path, table, *, compression=None, rows=None, dictionaries=False):
    options = pa.ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=dictionaries)
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)


def write(folder, random, table, error):
    values = random.normal(size=(200, 4)) * 50
    names = ["a", "b", "c", "d"]
    ids = [f"an id that is long {i}" if i % 3 else f"i{i}" for i in range(200)]
    frame = pd.DataFrame(values, columns=names)
    named = frame.set_axis(pd.Index(ids, name="sample"))
    for codec in ("uncompressed", "lz4", "zstd"):
        named.reset_index().to_feather(folder / f"pandas_{codec}.feather", compression=codec)
        table(f"pandas_{codec}.feather", values, ids=ids, features=names)
        feather.write_feather(pa.table(named), folder / f"index_{codec}.arrow", compression=codec, chunksize=77)
        table(f"index_{codec}.arrow", values, ids=ids, features=names)
        columns = pl.DataFrame({"id": ids, **{name: values[:, j] for j, name in enumerate(names)}})
        columns.write_ipc(folder / f"polars_{codec}.arrow", compression=codec)
        table(f"polars_{codec}.arrow", values, ids=ids, features=names)
        columns.write_ipc_stream(folder / f"polars_{codec}.arrows", compression=codec)
        table(f"polars_{codec}.arrows", values, ids=ids, features=names)
    stream(folder / "range_from.arrows", pa.Table.from_pandas(frame.iloc[150:]))
    table("range_from.arrows", values[150:], ids=[str(i) for i in range(150, 200)], features=names)
    frame.astype("f4").to_feather(folder / "single.feather")
    table("single.feather", values.astype("f4"), precision="f32", features=names)

    holes = values.copy()
    holes[random.random(holes.shape) < 0.3] = np.nan
    holes[17] = np.nan
    columns = dict(
        id=pa.array(range(200), pa.uint16()),
        a=pa.array(holes[:, 0], from_pandas=True),
        b=pa.array([None if np.isnan(v) else int(v) for v in holes[:, 1]], pa.int16()),
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
    whole = [str(i) for i in range(200)]
    # R adds attributes of its data frames, which other programs do not read.
    of_r = pa.table(columns).replace_schema_metadata({"r": "A\n3\n263168\n197888\n5\nUTF-8\n531\n1\n"})
    for codec in (None, "lz4", "zstd"):
        feather.write_feather(of_r, folder / f"r_{codec}.feather", compression=codec or "uncompressed", chunksize=33)
        table(f"r_{codec}.feather", expected, ids=whole, features=list("abcdefg"))
        stream(folder / f"types_{codec}.arrows", pa.table(columns), compression=codec, rows=33)
        table(f"types_{codec}.arrows", expected, ids=whole, features=list("abcdefg"))
    # What is left of a longer table starts in the middle of its buffers.
    stream(folder / "slice.arrows", pa.table(columns).slice(21, 50), rows=13)
    table("slice.arrows", expected[21:71], ids=whole[21:71], features=list("abcdefg"))
    words = pa.array(ids).dictionary_encode()
    for ending in ("arrow", "arrows"):
        path = folder / f"categories.{ending}"
        categories = pa.table(dict(id=words, a=values[:, 0]))
        if ending == "arrow":
            feather.write_feather(categories, path, chunksize=77)
        else:
            chunks = [pa.table(dict(id=pa.array(ids[i:i + 60]).dictionary_encode(), a=values[i:i + 60, 0]))
                      for i in range(0, 200, 60)]
            stream(path, pa.concat_tables(chunks))
        table(path.name, values[:, :1], ids=ids, features=["a"])
    for kind in (pa.large_string(), pa.string_view()):
        stream(folder / f"{kind}.arrows", pa.table(dict(id=pa.array(ids, kind), a=values[:, 0])), rows=99)
        table(f"{kind}.arrows", values[:, :1], ids=ids, features=["a"])

    feather.write_feather(frame.assign(word="x", day=pd.Timestamp("2020-01-01")), folder / "word.feather")
    error("word.feather", "'word' of type string", "'day' of type timestamp", "--drop word,day")
    stream(folder / "list.arrows", pa.table(dict(a=values[:, 0], list=[[1, 2]] * 200)))
    error("list.arrows", "'list'", "lists")
    stream(folder / "no_id.arrows", pa.table(dict(id=["a", None], b=[1.0, 2.0])))
    error("no_id.arrows", "row 2", "'id'")
    stream(folder / "no_rows.arrows", pa.table(dict(a=pa.array([], pa.float64()))))
    error("no_rows.arrows", "no rows")
    stream(folder / "nulls.arrows", pa.table(dict(a=pa.array([None] * 9, pa.null()))))
    error("nulls.arrows", "no column of values")
    stream(folder / "price.arrows", pa.table(dict(price=pa.array([1], pa.decimal128(5, 2)), a=[1.0])))
    error("price.arrows", "'price' of type decimal")

    tiny = dict(id=["a", "b", "c"], x=values[:3, 0], y=[1, None, 3])
    for codec in ("uncompressed", "lz4", "zstd"):
        feather.write_feather(pa.table(tiny), folder / f"tiny_{codec}.feather", compression=codec)
    stream(folder / "tiny.arrows", pa.table(dict(tiny, id=pa.array(tiny["id"], pa.string_view()))))
    labels = pa.table(dict(sample=["x", "y", "z"], age=[1.5, None, 3.0], kind=["p", None, "q"]))
    feather.write_feather(labels, folder / "labels.feather")
    labels.to_pandas().to_parquet(folder / "labels.parquet")
