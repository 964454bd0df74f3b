"""Checks that imports point one way: no cycle among the modules of a crate, or among those of a folder.

    packaging/layers.py [--edges] [CRATE/src ...]      by default every crate of the workspace

For each folder with modules the graph of its modules is computed from `use` declarations and paths in the code: an import of
`crate::a::b` by module `c::d` is an edge from `c` to `a` in the crate, one of `super::e` an edge from `d` to `e` in folder `c`. Names
that `lib.rs` exports again count as the modules that define them. Tests are not part of the graph. Exits with 1 if there is a cycle.
"""

import argparse
import re
import sys
from pathlib import Path


def code_of(path):
    """The code of a file without comments, strings and tests."""
    text = re.sub(r"//[^\n]*", "", path.read_text())
    text = re.sub(r'"(?:[^"\\]|\\[\s\S])*"', '""', text)
    return re.split(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{", text)[0]


def modules_of(source):
    """The files of a crate by module path: `('a', 'b')` is `a/b.rs` or `a/b/mod.rs`."""
    modules, tests = {}, set()
    for path in sorted(source.rglob("*.rs")):
        parts = list(path.relative_to(source).with_suffix("").parts)
        if parts[-1] == "mod":
            parts.pop()
        if parts[0] in ("lib", "main", "bin") and len(parts) <= 2:
            parts = []
        modules.setdefault(tuple(parts), "")
        text = code_of(path)
        modules[tuple(parts)] += text
        tests.update((*parts, name) for name in re.findall(r"#\[cfg\(test\)\]\s*mod (\w+);", path.read_text()))
    return {name: text for name, text in modules.items() if not any(name[: len(test)] == test for test in tests)}


def paths_in(text):
    """All paths that begin with `crate`, `super` or `self`, with groups in braces written out."""
    for match in re.finditer(r"\b(crate|super|self)::", text):
        yield from expand(text, match.start())


def expand(text, at):
    segments = []
    while True:
        word = re.compile(r"\s*(\w+|\*)").match(text, at)
        if word:
            segments.append(word[1])
            at = word.end()
            joint = re.compile(r"\s*::\s*(?=[\w{*])").match(text, at)
            if not joint:
                yield tuple(segments)
                return
            at = joint.end()
        elif text[at] == "{":
            depth, start = 0, at + 1
            for end in range(at, len(text)):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                if depth == 1 and text[end] == "," or depth == 0:
                    if text[start:end].strip():
                        for tail in expand(text[start:end], 0):
                            yield (*segments, *tail)
                    start = end + 1
                if depth == 0:
                    return
            return
        else:
            yield tuple(segments)
            return


def resolve(module, path, exported):
    """The absolute module path that a path in a module means."""
    base, rest = list(module), list(path)
    if rest[0] == "crate":
        base, rest = [], rest[1:]
        if rest and rest[0] in exported:
            return (exported[rest[0]], *rest)
    while rest and rest[0] in ("self", "super"):
        if rest.pop(0) == "super" and base:
            base.pop()
    return (*base, *rest)


def graphs_of(source):
    """For each folder the edges among its modules, each with a file that has the import."""
    modules = modules_of(source)
    exported = {}
    for match in re.finditer(r"pub(?:\([^)]*\))? use (\w+)::([^;]+);", modules.get((), "")):
        for name in re.findall(r"\w+", match[2]):
            exported.setdefault(name, match[1])
    graphs = {}
    for module, text in modules.items():
        if not module:
            continue
        for path in paths_in(text):
            target = resolve(module, path, exported)
            shared = 0
            while shared < min(len(module), len(target)) and module[shared] == target[shared]:
                shared += 1
            if shared == len(module) or shared == len(target):
                continue
            folder, one, other = module[:shared], module[shared], target[shared]
            if (*folder, other) in modules:
                graphs.setdefault(folder, {}).setdefault(one, {}).setdefault(other, "::".join(module))
    return graphs


def cycle_of(edges):
    """The modules of the largest strongly connected component with more than one module."""
    index, low, stack, found = {}, {}, [], []

    def visit(module):
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in edges.get(module, ()):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            at = stack.index(module)
            found.append(stack[at:])
            del stack[at:]

    for module in list(edges):
        if module not in index:
            visit(module)
    largest = max(found, key=len, default=[])
    return sorted(largest) if len(largest) > 1 else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", action="store_true", help="print all edges")
    parser.add_argument("sources", nargs="*", type=Path)
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    sources = options.sources or sorted(root.glob("crates/*/src"))
    sys.setrecursionlimit(10_000)
    cycles = 0
    for source in sources:
        for folder, edges in sorted(graphs_of(source).items()):
            name = f"{source.parent.name}: {'::'.join(folder) or 'the crate'}"
            if options.edges:
                for one, others in sorted(edges.items()):
                    print(f"{name}: {one} -> {', '.join(sorted(others))}")
            cycle = cycle_of(edges)
            if cycle:
                cycles += 1
                print(f"{name}: a cycle of {len(cycle)} modules")
                for one in cycle:
                    for other in sorted(set(edges.get(one, {})) & set(cycle)):
                        print(f"  {one} -> {other} (in {edges[one][other]})")
    if not cycles:
        print(f"{len(sources)} crates, no import cycle")
    sys.exit(bool(cycles))


if __name__ == "__main__":
    main()
