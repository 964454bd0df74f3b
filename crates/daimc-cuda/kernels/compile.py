#!/usr/bin/env python3
"""Compiles the kernels to PTX for compute capability 8.0 and stores them in the folder `ptx` next to this script.

Each source has one archive, `ptx/SOURCE.zst`: its modules, compressed together because they are alike. Uncompressed, a module is
its name, a newline, its PTX and a NUL.

Needs NVRTC 11.8, whose PTX every driver since 520 accepts, and zstandard (pip install -r requirements.txt).
With --check the script writes nothing and fails if an archive differs from what its source compiles to. Register numbers in the
output of NVRTC may vary between runs, even within one process, so a module differs if none of several attempts reproduces it.
"""

import argparse
import ctypes
import pathlib
import sys

import zstandard

ATTEMPTS = 20
LEVEL = 19
FOLDER = pathlib.Path(__file__).resolve().parent
PRODUCTS = {"f32": 3, "tf32": 1, "f64": 0}
TILES = [1, 2, 3, 4, 5, 6, 7]
# Tiles of 8 columns of V, groups of 16 rows, and units of 32 columns of each warp.
FUSED = [(tiles, *shape) for tiles in [2, 3] for shape in [(8, 4), (2, 1), (4, 4), (2, 4), (1, 4)]]
LATENT = [(1, 4), (1, 8), (1, 12), (1, 16), (1, 20), (1, 24), (2, 16), (4, 12), (4, 16), (8, 16), (16, 16)]
# Threads per row and tiles of 8 columns of V.
UPDATE = [(4, 1), (4, 2), (4, 3), (4, 4), (2, 5), (2, 6), (2, 7), (2, 8), (8, 12), (8, 16), (8, 24), (8, 32)]


def kernels():
    """The modules of each source: name to macros. A module's name begins with that of its source."""
    sources = {
        "products": {
            f"products_{name}_{tiles}": {"SPLIT": split, "TILES": tiles}
            for name, split in PRODUCTS.items()
            for tiles in TILES
        },
        "fused": {
            f"fused_{name}_{tiles}_{groups}_{units}": {
                "SPLIT": PRODUCTS[name],
                "TILES": tiles,
                "GROUPS": groups,
                "UNITS": units,
            }
            for name in ["f32", "tf32"]
            for tiles, groups, units in FUSED
        },
        "latent": {f"latent_{lanes}_{entries}": {"LANES": lanes, "ENTRIES": entries} for lanes, entries in LATENT},
        "update": {f"update_{lanes}_{tiles}": {"LANES": lanes, "TILES": tiles} for lanes, tiles in UPDATE},
    }
    return sources | {source: {source: {}} for source in ["sums", "nearest", "holes", "links", "stored"]}


def packed(modules):
    """The archive of some modules: name to PTX."""
    text = "".join(f"{name}\n{ptx}\0" for name, ptx in modules.items())
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(text.encode())


def unpacked(archive):
    """The modules of an archive: name to PTX."""
    text = zstandard.ZstdDecompressor().decompress(archive).decode()
    return dict(module.split("\n", 1) for module in text.split("\0")[:-1])


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
    parser.add_argument("--check", action="store_true", help="compare with the stored archives")
    arguments = parser.parse_args()
    nvrtc = library()
    (FOLDER / "ptx").mkdir(exist_ok=True)
    for source, modules in kernels().items():
        path = FOLDER / "ptx" / f"{source}.zst"
        if not arguments.check:
            path.write_bytes(packed({name: compiled(nvrtc, f"{source}.cu", macros) for name, macros in modules.items()}))
            continue
        stored = unpacked(path.read_bytes())
        if list(stored) != list(modules):
            sys.exit(f"{path.name} does not hold the modules of {source}.cu: run {__file__}")
        for name, macros in modules.items():
            if stored[name] not in (compiled(nvrtc, f"{source}.cu", macros) for _ in range(ATTEMPTS)):
                sys.exit(f"{name} in {path.name} is not what {source}.cu compiles to: run {__file__}")


if __name__ == "__main__":
    main()
