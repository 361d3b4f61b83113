#!/usr/bin/env python3
# Holds the includes of every C, C++ and CUDA file against scripts/layers.txt, the table of what each layer may include.
# Needs Python alone, no build.
"""usage: check_layers.py [--root FOLDER] [--table FILE] [--explain LAYER]

Reads "..." and <quern/...> includes; other headers in angle brackets are not of this tree. Fails with a sentence for
every include that the table does not allow, that leads nowhere, or that is not written from the top of the tree; for
every file without a layer; for every cycle between layers; and for every word of the table that stands for nothing.

--explain LAYER prints what files of that layer may include.
"""
import argparse
import collections
import fnmatch
import functools
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh")
INCLUDE = re.compile(r'\s*#\s*include\s+(?:"([^"]+)"|<(quern/[^>]+)>)')
# Where <quern/...> is looked for.
PUBLIC = ("libcompress/include", "checkpoint/include", "lidar/include", "offload/include",
          "bindings/hdf5/include")
# Folders whose files include each other from there, too: a stand-in for a toolkit's own headers.
OWN_ROOTS = ("tests/simt/include",)
ANYTHING = "*"

Include = collections.namedtuple("Include", "file line text target")


def tree_files(root):
    """Sources below root, as paths with slashes: what git knows or would add, or everything where there is no git."""
    if (root / ".git").exists():
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, check=True).stdout.decode()
        names = {name for name in listed.split("\0") if (root / name).is_file()}
    else:
        names = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
        names = {name for name in names if not name.startswith(("build/", "."))}
    return sorted(name for name in names if name.endswith(SOURCES))


def resolve(text, public, file, files):
    """The file that an include means, or None."""
    places = [f"{folder}/{text}" for folder in PUBLIC] if public else [text]
    if file.startswith("tests/"):
        places += [f"{folder}/{text}" for folder in OWN_ROOTS]
    return next((place for place in places if place in files), None)


def read_includes(root, file, files):
    for number, line in enumerate((root / file).read_text(errors="replace").splitlines(), 1):
        if found := INCLUDE.match(line):
            text = found[1] or found[2]
            yield Include(file, number, text, resolve(text, found[1] is None, file, files))


class Table:
    """The layers: a pattern of files each, and patterns of what these files may include."""

    def __init__(self, text):
        self.allowed = {}
        self.complaints = []
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].rstrip()
            if not line:
                continue
            if not line[0].isspace():
                layer, colon, line = line.partition(":")
                if not colon or layer in self.allowed:
                    self.complaints.append(f"layers.txt:{number}: not 'LAYER: ...', or a second line for {layer}.")
                self.allowed[layer] = []
            self.allowed[layer] += line.split()
        self.by_length = sorted(self.allowed, key=lambda p: (p.count("/"), len(p.replace("*", ""))), reverse=True)

    @functools.lru_cache(maxsize=None)
    def entry(self, file):
        """The line of the table that a file belongs to: the longest whose pattern matches its beginning, or None."""
        parts = file.split("/")
        for pattern in self.by_length:
            wanted = pattern.split("/")
            if len(parts) >= len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted)):
                return pattern
        return None

    def layer(self, file):
        """The name of a file's layer: its folder, or the pattern where that is one of file names."""
        pattern = self.entry(file)
        if pattern is None:
            return None
        parts, wanted = file.split("/"), pattern.split("/")
        return "/".join(parts[:len(wanted)]) if len(parts) > len(wanted) else "/".join(parts[:-1] + wanted[-1:])

    @functools.lru_cache(maxsize=None)
    def means(self, item, target):
        """Whether a word on the right-hand side of the table stands for a file: by its layer or by its name."""
        if item == ANYTHING:
            return True
        layer = self.layer(target) or ""
        if item.endswith("/**"):
            return f"{layer}/".startswith(item[:-2])
        wanted = item.split("/")
        return any(len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))
                   for parts in (layer.split("/"), target.split("/")))

    def may(self, file, target):
        return self.layer(file) == self.layer(target) or any(
            self.means(item, target) for item in self.allowed[self.entry(file)])

    def unused(self, files):
        """Words that stand for no file."""
        used = {self.entry(file) for file in files}
        for layer, items in self.allowed.items():
            if layer not in used:
                yield f"layers.txt has the layer {layer}, but no file belongs to it."
            for item in items:
                if not any(self.means(item, file) for file in files):
                    yield f"layers.txt lets {layer} include {item}, which is neither a layer nor a file."


def wrong_include(table, include):
    """A sentence, or None."""
    where = f"{include.file}:{include.line}"
    if include.target is None:
        return f'{where} includes "{include.text}", which is no file of the tree by its path from the top.'
    if table.layer(include.target) is None or table.may(include.file, include.target):
        return None
    allowed = " ".join(table.allowed[table.entry(include.file)]) or "itself alone"
    return (f"{where} includes {include.target}. The file is of the layer {table.layer(include.file)}, the header of "
            f"{table.layer(include.target)}; allowed are: {allowed}.")


def layer_graph(table, includes):
    """Layer -> layer it includes -> the first include that does so. Layers that may include anything are left out."""
    graph = collections.defaultdict(dict)
    for include in includes:
        if include.target is None or table.entry(include.file) is None or table.layer(include.target) is None:
            continue
        layer, below = table.layer(include.file), table.layer(include.target)
        if layer != below and table.allowed[table.entry(include.file)] != [ANYTHING]:
            graph[layer].setdefault(below, include)
    return graph


def find_cycle(graph):
    """Layers that include each other in a circle, the first one once more at the end; None when there are none."""
    done, path = set(), []

    def visit(layer):
        if layer in path:
            return path[path.index(layer):] + [layer]
        if layer in done:
            return None
        path.append(layer)
        cycle = next(filter(None, map(visit, sorted(graph.get(layer, ())))), None)
        path.pop()
        done.add(layer)
        return cycle

    return next(filter(None, map(visit, sorted(graph))), None)


def cycle_complaint(graph):
    cycle = find_cycle(graph)
    if cycle is None:
        return []
    arrows = [graph[layer][below] for layer, below in zip(cycle, cycle[1:])]
    steps = "; ".join(f"{i.file}:{i.line} includes {i.target}" for i in arrows)
    return [f"Layers include each other in a circle, {' -> '.join(cycle)}: {steps}."]


def check(table, root):
    """Every complaint about the tree, as sentences."""
    names = tree_files(root)
    files = set(names)
    complaints = list(table.complaints) + list(table.unused(names))
    complaints += [f"{file} belongs to no layer: add its folder to layers.txt."
                   for file in names if not table.entry(file)]
    includes = [i for file in names if table.entry(file) for i in read_includes(root, file, files)]
    complaints += filter(None, (wrong_include(table, include) for include in includes))
    return complaints + cycle_complaint(layer_graph(table, includes)), len(names), len(includes)


def explain(table, root, layer):
    names = tree_files(root)
    layers = {table.layer(file): table.entry(file) for file in names if table.entry(file)}
    if layer not in layers:
        print(f"There is no layer {layer}. Layers: {' '.join(sorted(layers))}", file=sys.stderr)
        return 1
    print(f"{layer} may include itself and:")
    for item in table.allowed[layers[layer]]:
        meant = sorted({table.layer(f) for f in names if table.means(item, f)} - {layer})
        print(f"  {item}" if item == ANYTHING or item in meant or item in names else f"  {item}: {' '.join(meant)}")
    return 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "scripts" / "layers.txt")
    parser.add_argument("--explain", metavar="LAYER")
    arguments = parser.parse_args()
    table = Table(arguments.table.read_text())
    if arguments.explain:
        return explain(table, arguments.root, arguments.explain.rstrip("/"))
    complaints, files, includes = check(table, arguments.root)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{includes} includes of {files} files, {len(complaints)} wrong")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
