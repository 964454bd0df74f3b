"""Time and memory to read a large CSV, compared with pandas and polars on the same file.

    python3 crates/daimc-io/benches/csv.py [--megabytes 1000] [--columns 1000] [--gzip] [--transpose] [--quote]

Makes the file below `target` and deletes it at the end. pandas and polars come from a virtual environment there,
which is made the first time. Every reader runs in a process of its own, three times; the best time counts.
"""

import argparse
import gzip
import os
import pathlib
import random
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[3]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))

PEAK = """
import sys, time
start = time.perf_counter()
{read}
seconds = time.perf_counter() - start
status = open("/proc/self/status").read()
peak = int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6
print(f"{{table.shape[0]}} rows, {{table.shape[1]}} columns, {{seconds:.2f}} s, peak memory {{peak:.0f}} MB")
"""

READERS = {
    "pandas": 'import pandas\nstart = time.perf_counter()\ntable = pandas.read_csv(sys.argv[1], index_col=0)',
    "polars": 'import polars\nstart = time.perf_counter()\ntable = polars.read_csv(sys.argv[1])',
}


def python():
    """The interpreter of the environment that has pandas and polars."""
    folder = TARGET / "venv"
    interpreter = folder / "bin" / "python"
    if not interpreter.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "pandas", "polars"], check=True)
    return interpreter


def write(path, megabytes, columns, compressed, quote):
    """Rows of uniform numbers, 17 digits each; a few hundred rows are made and written in turn."""
    generator = random.Random(7)
    rows = [",".join(repr(generator.random()) for _ in range(columns)) for _ in range(200)]
    mark = '"' if quote else ""
    length = len(rows[0]) + 10
    with gzip.open(path, "wt", 3) if compressed else open(path, "w") as file:
        file.write(",".join(["id", *(f"f{j}" for j in range(columns))]) + "\n")
        for i in range(int(megabytes * 1e6) // length):
            file.write(f"{mark}i{i}{mark},{rows[i % len(rows)]}\n")


def best(command):
    """The line of the fastest of three runs."""
    lines = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() for _ in range(3)]
    return min(lines, key=lambda line: float(line.split(" s,")[0].split()[-1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--transpose", action="store_true", help="daimc transposes; the others read as before")
    parser.add_argument("--quote", action="store_true", help="IDs in quotes")
    options = parser.parse_args()

    build = ["cargo", "build", "--release", "-p", "daimc-io", "--example", "read"]
    subprocess.run(build, check=True, cwd=ROOT)
    interpreter = python()
    path = TARGET / ("bench.csv.gz" if options.gzip else "bench.csv")
    if shutil.disk_usage(TARGET).free < 2e6 * options.megabytes:
        sys.exit("not enough space on the disk")
    try:
        write(path, options.megabytes, options.columns, options.gzip, options.quote)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {os.cpu_count()} threads")
        ours = [TARGET / "release" / "examples" / "read", path] + ["--transpose"] * options.transpose
        line = best(ours)
        rows, columns = int(line.split()[0]), int(line.split()[2])
        print(f"daimc   {line}; the matrix is {rows * columns * 8 / 1e6:.0f} MB")
        for name, read in READERS.items():
            print(f"{name:7} {best([interpreter, '-c', PEAK.format(read=read), path])}")
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
