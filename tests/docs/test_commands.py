# README and the manual to the letter: every command of every block runs, in order, in one folder, and ends well. Links
# and paths of all Markdown are there (test_links.py).
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import blocks
import inputs
import test_links
from test_links import Links  # noqa: F401: runs with the commands

ROOT, QUERN = "", ""

# Lines that cannot run here, and why. One that is gone from the text, or a block of another language that is not listed,
# fails the test.
NOT_RUN = {
    "scripts/demo.sh": "builds the tree anew",
    "scripts/test.sh": "runs this test",
    "cc program.c $(pkg-config --cflags --libs quern)": "needs an installation: tests/install does it",
}
OTHER_LANGUAGES = {
    "python": "needs PyTorch and a model; tests/python has such loops. Its syntax is checked",
    "cmake": "needs an installation: tests/install does it",
    "c": "compiled by docs_code",
    "cpp": "compiled by docs_code",
    "text": "a picture",
}
NEEDS = {  # a word of a line, and what it takes
    "weather.nc": "netcdf", "model.nc": "netcdf", "small.nc": "netcdf", "h5 check": "hdf5", "h5 unpack": "hdf5", "compressed/": "netcdf", "'*.nc'": "netcdf", "checkpoint": "checkpoint", "h5 pack": "hdf5",
}


def without_comment(line):
    return line.split("  #")[0].split(" #")[0].rstrip()


def commands(block):
    whole = block.text.replace("\\\n", "")  # lines that go on
    return [text for text in map(without_comment, whole.splitlines()) if text and not text.startswith("#")]


def facilities():
    """What this build and this machine have for the commands."""
    import json
    found = set()
    doctor = json.loads(subprocess.run([QUERN, "doctor", "--json"], stdout=subprocess.PIPE, text=True).stdout)
    try:
        import netCDF4  # noqa: F401: the inputs are made with it
        if "netcdf" in doctor["files"]:
            found.add("netcdf")
    except ImportError:
        pass
    if "hdf5" in doctor["files"] and shutil.which("h5repack"):
        found.add("hdf5")
    if b"no checkpoint store;" not in subprocess.run([QUERN, "checkpoint", "ls", "--store", "."], capture_output=True).stderr:
        found.add("checkpoint")
    return found


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="quern-docs-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.work = os.path.join(folder.name, "work")
        os.mkdir(self.work)
        programs = os.path.join(folder.name, "bin")
        os.mkdir(programs)
        os.symlink(QUERN, os.path.join(programs, "quern"))
        self.environment = dict(os.environ, PATH=os.pathsep.join([programs, self.work, os.environ["PATH"]]))
        self.environment.pop("HDF5_PLUGIN_PATH", None)
        self.here = facilities()

    def run_line(self, block, line):
        missing = {need for word, need in NEEDS.items() if word in line} - self.here
        if missing:
            print(f"not run: {block.path}: {line}: no {' '.join(sorted(missing))} here")
            return
        began = time.monotonic()
        done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=self.work, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=300)
        self.assertEqual(done.returncode, 0, f"{block.path}:{block.line}: {line}\n{done.stdout[-500:]}{done.stderr[-2000:]}")
        print(f"{time.monotonic() - began:6.2f} s  {block.path}: {line}", flush=True)

    def test_readme(self):
        inputs.make_readme(self.work, "netcdf" in self.here)
        inputs.make_scans(self.work)
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            found = blocks.fenced("README.md", file.read())
        skipped, languages = set(), set()
        for block in found:
            if block.language != "sh":
                self.assertIn(block.language, OTHER_LANGUAGES, f"README.md:{block.line}: say sh, or why it does not run")
                languages.add(block.language)
                if block.language == "python":
                    compile(block.text, f"README.md:{block.line}", "exec")
                continue
            for line in commands(block):
                if line in NOT_RUN:
                    skipped.add(line)
                else:
                    self.run_line(block, line)
        self.assertEqual(skipped, set(NOT_RUN), "lines that are gone from README")
        self.assertEqual(languages, set(OTHER_LANGUAGES))

    def test_lidar_guide(self):
        inputs.make_scans(self.work)
        with open(os.path.join(ROOT, "docs", "lidar.md"), encoding="utf-8") as file:
            found = blocks.fenced("docs/lidar.md", file.read())
        lines = [(block, line) for block in found for line in commands(block)]
        self.assertGreater(len(lines), 8)
        for block, line in lines:
            self.assertEqual(block.language, "sh")
            self.run_line(block, line)

    def test_manual(self):
        inputs.make_manual(self.work, "netcdf" in self.here)
        with open(os.path.join(ROOT, "docs", "man", "quern.1"), encoding="utf-8") as file:
            found = blocks.manual("quern.1", file.read())
        lines = [(block, line) for block in found for line in commands(block)]
        self.assertGreater(len(lines), 8)
        for block, line in lines:
            self.run_line(block, line)

    def test_estimates(self):
        inputs.make_estimates(self.work, "netcdf" in self.here)
        has_training = os.path.exists(os.path.join(os.path.dirname(os.path.realpath(QUERN)), "quern-train"))
        with open(os.path.join(ROOT, "docs", "estimate.md"), encoding="utf-8") as file:
            found = [block for block in blocks.fenced("estimate.md", file.read()) if block.language == "sh"]
        lines = [(block, line) for block in found for line in commands(block)]
        self.assertGreater(len(lines), 7)
        for block, line in lines:
            if has_training or ".qmodel" not in line:
                self.run_line(block, line)

    def test_examples_of_help_are_read(self):
        """Their files are not here: each must fail for that reason alone, and not because the line is wrong."""
        works = ["lidar " + work for work in ("compress", "decompress", "info", "verify", "compare", "bench")]
        works += ["lidar history " + work for work in ("init", "add", "ls", "stat", "gc", "verify", "bundle", "parity", "repair")]
        verbs = ["compress", "decompress", "info", "verify", "compare", "bench", "estimate", "model", "offload bench", "list", "doctor", "completion"]
        works += ["checkpoint place"] if "checkpoint" in self.here else []
        for verb in verbs + works:
            text = subprocess.run([QUERN, *verb.split(), "--help"], stdout=subprocess.PIPE, text=True).stdout
            examples = text[text.index("Example"):].splitlines()[1:]
            lines = [line.strip() for line in examples if line.startswith("  quern ")]
            self.assertTrue(lines, verb)
            for line in lines:
                words = line.split(" > ")[0].split(" | ")[0]
                done = subprocess.run(["bash", "-c", words], cwd=self.work, env=self.environment,
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
                self.assertIn(done.returncode, (0, 2), (line, done.stderr))

    def test_a_wrong_line_is_noticed(self):
        block = blocks.Block("x", 1, "sh", "")
        for line in ("quern compress --abs 1 nothing_3.f32", "false | cat", "quern nosuch"):
            with self.assertRaises(AssertionError):
                self.run_line(block, line)


if __name__ == "__main__":
    ROOT = os.path.abspath(sys.argv[1])
    QUERN = os.path.abspath(sys.argv[2])
    test_links.ROOT = ROOT
    unittest.main(argv=sys.argv[:1])
