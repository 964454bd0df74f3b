#!/usr/bin/env python3
"""Compiles the kernels to PTX for compute capability 8.0, into the folder `ptx` beside this script.

Needs NVRTC 11.8 (pip install -r requirements.txt), whose PTX every driver since 520 takes.
With --check nothing is written, and a file that differs is an error. What NVRTC makes of a source may differ in the numbers of
registers from one time to the next, even in the same process, so a file differs if none of several attempts gives it.
"""

import argparse
import ctypes
import pathlib
import sys

ATTEMPTS = 20
FOLDER = pathlib.Path(__file__).resolve().parent
PRODUCTS = {"f32": 3, "tf32": 1, "f64": 0}
TILES = [1, 2, 3, 4, 5, 6, 7]
# Tiles of 8 columns of V, groups of 16 rows, and units of 32 columns of each warp.
FUSED = [(tiles, *shape) for tiles in [2, 3] for shape in [(8, 4), (2, 1), (4, 4), (2, 4), (1, 4)]]
LATENT = [(1, 4), (1, 8), (1, 12), (1, 16), (1, 20), (1, 24), (2, 16), (4, 12), (4, 16), (8, 16), (16, 16)]
# Threads for a row and tiles of 8 columns of V.
UPDATE = [(4, 1), (4, 2), (4, 3), (4, 4), (2, 5), (2, 6), (2, 7), (2, 8), (8, 12), (8, 16), (8, 24), (8, 32)]


def kernels():
    """Name of the PTX file, source and macros of each module."""
    for name, split in PRODUCTS.items():
        for tiles in TILES:
            yield f"products_{name}_{tiles}", "products.cu", {"SPLIT": split, "TILES": tiles}
    for name in ["f32", "tf32"]:
        for tiles, groups, units in FUSED:
            macros = {"SPLIT": PRODUCTS[name], "TILES": tiles, "GROUPS": groups, "UNITS": units}
            yield f"fused_{name}_{tiles}_{groups}_{units}", "fused.cu", macros
    for lanes, entries in LATENT:
        yield f"latent_{lanes}_{entries}", "latent.cu", {"LANES": lanes, "ENTRIES": entries}
    for lanes, tiles in UPDATE:
        yield f"update_{lanes}_{tiles}", "update.cu", {"LANES": lanes, "TILES": tiles}
    yield "sums", "sums.cu", {}
    yield "nearest", "nearest.cu", {}
    yield "holes", "holes.cu", {}
    yield "links", "links.cu", {}
    yield "given", "given.cu", {}


def library():
    """NVRTC of the package from PyPI."""
    import nvidia.cuda_nvrtc

    folder = pathlib.Path(nvidia.cuda_nvrtc.__path__[0]) / "lib"
    ctypes.CDLL(str(folder / "libnvrtc-builtins.so.11.8"), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(folder / "libnvrtc.so.11.2"))


def compiled(nvrtc, source, macros, arch="compute_80"):
    """The PTX of a source."""
    program = ctypes.c_void_p()
    headers = [path.name.encode() for path in sorted(FOLDER.glob("*.cuh"))]
    texts = [(FOLDER / name.decode()).read_bytes() for name in headers]
    array = ctypes.c_char_p * len(headers)
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), (FOLDER / source).read_bytes(), source.encode(), len(headers), array(*texts), array(*headers)
    )
    options = [f"--gpu-architecture={arch}", "--std=c++17"] + [f"-D{name}={value}" for name, value in macros.items()]
    options = [option.encode() for option in options]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    if failed:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f"{source} {macros}:\n{log.value.decode()}")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the files that are there")
    arguments = parser.parse_args()
    nvrtc = library()
    (FOLDER / "ptx").mkdir(exist_ok=True)
    for name, source, macros in kernels():
        path = FOLDER / "ptx" / f"{name}.ptx"
        if not arguments.check:
            path.write_text(compiled(nvrtc, source, macros))
        elif path.read_text() not in (compiled(nvrtc, source, macros) for _ in range(ATTEMPTS)):
            sys.exit(f"{path.name} is not what {source} compiles to: run {__file__}")


if __name__ == "__main__":
    main()
