# Links of all Markdown lead somewhere, and the files and folders that a folder's README names are there.
import fnmatch
import os
import re
import subprocess
import unittest

ROOT = ""  # set by test_commands.py

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
# What looks like a path of the tree: folders and files, with * and ? as in a shell.
PATH = re.compile(r"^[\w.*?-]+(/[\w.*?-]*)*$")
FILE = re.compile(r"\.(h|hpp|c|cpp|cu|cuh|py|sh|cmake|md|json|in|f90|\*)$")
# Folders that a build or a run makes, or that only an installation has.
MADE = ("build", "demo-report", "plugins", "data", "tmp", "manifests", "share", "lib", "bin", "runs", "fields", "hf")


def markdown():
    """Markdown of the tree, without build folders."""
    listing = ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.md"]
    done = subprocess.run(listing, capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        return [name for name in done.stdout.split("\n") if name and os.path.exists(os.path.join(ROOT, name))]
    out = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name != "build" and not name.startswith(".")]
        out += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(".md")]
    return out


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def without_blocks(text):
    out, inside = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            inside = not inside
            line = ""
        out.append("" if inside else line)
    return "\n".join(out)


def anchors(name):
    """Of headings, as GitHub makes them."""
    found = set()
    for line in without_blocks(read(name)).split("\n"):
        heading = re.match(r"#+\s+(.*)", line)
        if heading:
            text = LINK.sub(lambda link: link.group(0)[1:link.group(0).index("]")], heading.group(1))
            found.add(re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-"))
    return found


def broken_links(name, text):
    out = []
    for match in LINK.finditer(without_blocks(text)):
        target = match.group(1)
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
        if not os.path.exists(os.path.join(ROOT, full)):
            out.append(f"{name}: no such file: {target}")
        elif anchor and full.endswith(".md") and anchor not in anchors(full):
            out.append(f"{name}: no such heading: {target}")
    return out


class Tree:
    """Every file and folder below the root but those of builds."""

    def __init__(self):
        self.paths = set()
        for folder, folders, names in os.walk(ROOT):
            folders[:] = [name for name in folders if name not in ("build", ".git")]
            here = os.path.relpath(folder, ROOT)
            self.paths.update(os.path.normpath(os.path.join(here, name)) for name in folders + names)
        self.names = {os.path.basename(path) for path in self.paths}

    def has(self, pattern, folder):
        """Whether the pattern names something: seen from the folder, one above it, or a folder that headers or kernels
        are named from; a file without a folder may be anywhere."""
        pattern = pattern.rstrip("/")
        starts = {"kernels", "libcompress/include"}
        while folder:
            starts.add(folder)
            folder = os.path.dirname(folder)
        wanted = [os.path.join(start, pattern) for start in starts] + [pattern]
        if "*" not in pattern and "?" not in pattern:
            wanted += [one + ".in" for one in wanted]
            return not self.paths.isdisjoint(wanted) or not self.names.isdisjoint({pattern, pattern + ".in"})
        expression = re.compile("|".join(map(fnmatch.translate, wanted)))
        return any(map(expression.match, self.paths if "/" in pattern else self.paths | self.names))


def missing_paths(name, text, tree):
    folder = os.path.dirname(name)
    out = []
    for match in CODE.finditer(without_blocks(text)):
        word = match.group(1)
        is_path = PATH.match(word) and (FILE.search(word) or word.endswith("/")) and word.split("/")[0] not in MADE
        if is_path and not word.startswith(("*.", ".")) and not tree.has(word, folder):
            out.append(f"{name}: no such path: {word}")
    return out


class Links(unittest.TestCase):
    def test_lead_somewhere(self):
        names = markdown()
        self.assertGreater(len(names), 50)
        broken = [line for name in names for line in broken_links(name, read(name))]
        self.assertEqual(broken, [], "\n".join(broken))

    def test_paths_in_readmes_are_there(self):
        tree = Tree()
        names = [name for name in markdown() if os.path.basename(name) == "README.md" and "/" in name]
        missing = [line for name in names for line in missing_paths(name, read(name), tree)]
        self.assertEqual(missing, [], "\n".join(missing))

    def test_a_wrong_link_and_a_wrong_path_are_noticed(self):
        text = "[a](nowhere.md) [b](../README.md#no-such-heading) [c](../README.md#status) `nowhere/a.h` `test_links.py`"
        name = "tests/README.md"
        self.assertEqual(len(broken_links(name, text)), 2)
        self.assertEqual(missing_paths(name, text, Tree()), [name + ": no such path: nowhere/a.h"])
