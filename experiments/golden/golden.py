#!/usr/bin/env python3
"""Records what a `daimc` program computes, as hashes, and compares two programs: see README.md."""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import runs as all_runs
from runs import RUNS

ROOT = Path(__file__).resolve().parents[2]

# Parts of JSON that are no results: times, memory, paths, and what the user asked for.
IGNORED = {"version", "options", "directory", "path", "timings", "peak_memory_bytes", "seconds", "model", "device"}
# Parts whose change is reported and not counted: wording, and the options in force.
NOTED = {"reason", "resolved", "warning"}
# The longest value that is recorded as it is.
SHORT = 80


def digest(content):
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()


class Print:
    """The fingerprint of one run: results, which must not change, and notes, which are reported only."""

    def __init__(self):
        self.results, self.notes = {}, {}

    def json(self, name, value):
        """Each part of a JSON value on the first level."""
        for part, own in value.items() if isinstance(value, dict) else [("", value)]:
            if part in IGNORED:
                continue
            key = f"{name}:{part}" if part else name
            if part in NOTED:
                self.notes[key] = canonical(own)
                continue
            self.results[key] = canonical(without(own, IGNORED | NOTED))
            words = only(own, NOTED)
            if words:
                self.notes[f"{key}:wording"] = canonical(words)

    def safetensors(self, name, content):
        """Each tensor, and what the header says of the model."""
        length = int.from_bytes(content[:8], "little")
        header, values = json.loads(content[8 : 8 + length]), content[8 + length :]
        about = header.pop("__metadata__", {})
        for tensor, entry in header.items():
            start, end = entry["data_offsets"]
            kind = f"{entry['dtype']} {entry['shape']} "
            self.results[f"{name}:{tensor}"] = digest(kind.encode() + values[start:end])
        for key, text in about.items():
            value = json.loads(text) if text[:1] in "{[" else text
            if isinstance(value, dict) and "options" in value:
                self.notes[f"{name}:{key}:options"] = canonical(value["options"])
            self.json(f"{name}:{key}", value)

    def page(self, name, text):
        """The charts of a report without their texts, and the page as a note."""
        charts = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
        charts = [re.sub(r"<(text|title|desc)\b.*?</\1>", "", chart, flags=re.DOTALL) for chart in charts]
        charts = [re.sub(r'\s(aria-[a-z]+|class|id|style)="[^"]*"', "", chart) for chart in charts]
        self.results[f"{name}:charts"] = f"{len(charts)} {digest(''.join(charts))}"

    def table(self, name, text):
        """A table without its column of times; rows of results.tsv are in the order in which they were finished."""
        lines = [line.split("\t") for line in text.splitlines()]
        if "seconds" in lines[0]:
            at = lines[0].index("seconds")
            lines = [lines[0][:at] + lines[0][at + 1 :]] + sorted(line[:at] + line[at + 1 :] for line in lines[1:])
            text = "\n".join("\t".join(line) for line in lines)
        self.results[name] = f"{len(lines)} lines {digest(text)}"

    def printed(self, text):
        """Standard output: JSON, a table of tab-separated values, or the numbers in it."""
        if text[:1] in ("{", "["):
            self.json("stdout", json.loads(text))
        elif "\t" in text.partition("\n")[0]:
            self.table("stdout", text)
        elif text:
            # Times are rough, and paths have numbers, too.
            lines = [line for line in text.splitlines() if not re.search(r"\d (ms|s|min|h)\b", line)]
            words = [word for line in lines for word in line.split() if "/" not in word]
            numbers = [word.strip(".,:;()") for word in words if re.search(r"\d", word)]
            self.results["stdout:numbers"] = f"{len(numbers)} numbers {digest(' '.join(numbers))}"
            self.notes["stdout:wording"] = digest(" ".join(words))

    def file(self, name, path):
        content = path.read_bytes()
        match path.suffix:
            case ".safetensors":
                self.safetensors(name, content)
            case ".json":
                self.json(name, json.loads(content))
            case ".html":
                self.page(name, content.decode())
            case ".tsv":
                self.table(name, content.decode())
            case ".md" | ".svg":
                # They show times as well; results.tsv has the numbers.
                pass
            case _:
                self.results[name] = f"{len(content)} bytes {digest(content)}"


def without(value, keys):
    """A JSON value without some keys, at any depth."""
    if isinstance(value, dict):
        return {key: without(own, keys) for key, own in value.items() if key not in keys and not key.endswith("seconds")}
    return [without(own, keys) for own in value] if isinstance(value, list) else value


def only(value, keys):
    """What `without` leaves out for these keys, in order."""
    if isinstance(value, dict):
        return [own for key, own in value.items() if key in keys] + [
            found for key, own in value.items() if key not in keys for found in only(own, keys)
        ]
    return [found for own in value for found in only(own, keys)] if isinstance(value, list) else []


def canonical(value):
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= SHORT else digest(text)


def command_line(run, program, threads, seed):
    words = run.command.replace("OUT", run.name).split()
    if run.seeded:
        words += ["--seed", str(seed)]
    if run.threads != "no":
        words += ["--threads", str(2 if run.threads == "fixed" else threads)]
    return [str(program), *words]


def fingerprint(run, program, work, threads, seed):
    """Makes a run and returns its fingerprint."""
    command = command_line(run, program, threads, seed)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("DAIMC", "RAYON"))}
    output = work / run.name
    if "OUT/" in run.command:
        output.mkdir()
    start = time.monotonic()
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900)
    seconds = time.monotonic() - start
    found = Print()
    found.results["exit"] = str(done.returncode)
    if done.returncode != run.exit:
        print(f"{run.name}: exit code {done.returncode}, expected {run.exit}\n{done.stderr}", file=sys.stderr)
    found.printed(done.stdout)
    found.notes["stderr:wording"] = digest(re.sub(r"[\d.]+ (ms|s|min|[kMG]B)\b", "", done.stderr))
    for path in sorted(output.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            found.file(str(path.relative_to(output)), path)
    if run.name == "digit-files":
        all_runs.after_demo(work)
    return {"command": " ".join(command[1:]), "seconds": round(seconds, 2), "results": found.results, "notes": found.notes}


def chosen(names):
    """The runs of these names and those whose output they need, in their order."""
    wanted = set(names or (run.name for run in RUNS))
    unknown = wanted - {run.name for run in RUNS}
    if unknown:
        sys.exit(f"no run is called {', '.join(sorted(unknown))}")
    for run in reversed(RUNS):
        if run.name in wanted:
            wanted.update(run.needs)
    return [run for run in RUNS if run.name in wanted]


def processor():
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")), "")


def record(arguments):
    """Makes the runs, one at a time."""
    program = arguments.program.resolve()
    if not os.access(program, os.X_OK):
        sys.exit(f"{program}: not a program")
    if not (arguments.data / "3sources").is_dir():
        sys.exit(f"{arguments.data}: the data sets are not there; name their folder with --data")
    keep = arguments.work is not None
    work = arguments.work.resolve() if keep else Path(tempfile.mkdtemp(prefix="daimc-golden-"))
    try:
        work.mkdir(parents=True, exist_ok=True)
        if any(work.iterdir()):
            sys.exit(f"{work}: not empty")
        (work / "shared").symlink_to(arguments.data.resolve())
        all_runs.prepare(work)
        found = {}
        for run in chosen(arguments.only):
            found[run.name] = fingerprint(run, program, work, arguments.threads, arguments.seed)
            print(f"{found[run.name]['seconds']:7.1f} s  {run.name}", file=sys.stderr, flush=True)
        return {"processor": processor(), "runs": found}
    finally:
        if not keep:
            shutil.rmtree(work, ignore_errors=True)


def differences(before, after):
    """Prints what differs and returns the number of runs whose results do."""
    if before["processor"] != after["processor"]:
        print(f"note: processors differ: {before['processor']} and {after['processor']}")
    names = list(dict.fromkeys([*before["runs"], *after["runs"]]))
    differ = 0
    for name in names:
        if name not in before["runs"] or name not in after["runs"]:
            print(f"{name}: only in the {'second' if name not in before['runs'] else 'first'} record")
            differ += 1
            continue
        own, other = before["runs"][name], after["runs"][name]
        for key, mark in (("results", ""), ("notes", "note: ")):
            for part in sorted({*own[key], *other[key]}):
                pair = [side[key].get(part, "absent") for side in (own, other)]
                if pair[0] != pair[1]:
                    print(f"{mark}{name}: {part}: {shown(pair[0])} -> {shown(pair[1])}")
        differ += own["results"] != other["results"]
    print(f"{len(names)} runs, {differ} differ")
    return differ


def shown(value):
    """A value, hashes shortened."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", value)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="action", required=True)
    for name, about in (("record", "write a record"), ("compare", "compare a program with a record")):
        command = commands.add_parser(name, help=about)
        command.add_argument("program", type=Path)
        if name == "record":
            command.add_argument("-o", "--output", type=Path, required=True, help="file for the record")
        else:
            command.add_argument("file", type=Path)
        command.add_argument("--data", type=Path, default=ROOT / "../shared/data", help="folder of the data sets [%(default)s]")
        command.add_argument("--work", type=Path, help="empty folder for the results, which is kept [default: a temporary one]")
        command.add_argument("--threads", type=int, default=2, help="threads of each run [%(default)s]")
        command.add_argument("--seed", type=int, default=0, help="seed of each run [%(default)s]")
        command.add_argument("--only", type=lambda text: text.split(","), help="these runs, separated by commas, and those they need")
    command = commands.add_parser("diff", help="compare two records")
    command.add_argument("file", type=Path)
    command.add_argument("other", type=Path)
    arguments = parser.parse_args()

    if arguments.action == "record":
        found = record(arguments)
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        wrong = [run.name for run in chosen(arguments.only) if found["runs"][run.name]["results"]["exit"] != str(run.exit)]
        total = sum(run["seconds"] for run in found["runs"].values())
        print(f"{len(found['runs'])} runs, {len(wrong)} failed, {total:.0f} s")
        sys.exit(bool(wrong))
    before = json.loads(arguments.file.read_text())
    if arguments.action == "diff":
        after = json.loads(arguments.other.read_text())
    else:
        after = record(arguments)
        if arguments.only:
            before["runs"] = {name: run for name, run in before["runs"].items() if name in after["runs"]}
    sys.exit(bool(differences(before, after)))


if __name__ == "__main__":
    main()
