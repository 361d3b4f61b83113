#!/usr/bin/env python3
# Tests of scripts/check_layers.py: what it says of wrong includes, in small trees and in a copy of this one.
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_layers as layers  # noqa: E402

TABLE = """low:
low/deep: low   # above its own folder
high: low low/deep
one: low/a.h
part/*: low
part/*/*_top.*: part/* high
free: *
"""
FILES = {
    "low/a.h": "",
    "low/deep/b.h": '#include "low/a.h"\n',
    "high/c.cpp": '#include <vector>\n#include "low/deep/b.h"\n',
    "one/d.h": '#include "low/a.h"\n',
    "part/x/e.h": '#include "low/a.h"\n',
    "part/y/f.h": "",
    "part/x/all_top.h": '#include "part/x/e.h"\n',
    "free/g.cpp": '#include "high/c.cpp"\n',
}


class Tree:
    """A folder of sources and a table."""

    def __init__(self, folder, files, table=TABLE):
        self.root, self.table = pathlib.Path(folder), layers.Table(table)
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def complaints(self):
        return layers.check(self.table, self.root)[0]


class SmallTrees(unittest.TestCase):
    def complaints(self, changes=None, table=TABLE):
        with tempfile.TemporaryDirectory() as folder:
            return Tree(folder, {**FILES, **(changes or {})}, table).complaints()

    def only(self, changes=None, table=TABLE):
        found = self.complaints(changes, table)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_allowed_includes_nothing(self):
        self.assertEqual(self.complaints(), [])

    def test_wrong_include_named_with_layers_and_line(self):
        found = self.only({"one/d.h": '\n#  include "high/c.cpp"\n#include "low/a.h"\n'})
        for part in ("one/d.h:2 includes high/c.cpp", "layer one", "of high", "allowed are: low/a.h"):
            self.assertIn(part, found)

    def test_layer_below_does_not_allow_its_subfolders(self):
        self.assertIn("low/deep", self.only({"part/x/e.h": '#include "low/a.h"\n#include "low/deep/b.h"\n'}))

    def test_one_of_a_kind_never_another(self):
        self.assertIn("part/y/f.h", self.only({"part/x/e.h": '#include "part/y/f.h"\n'}))

    def test_longest_pattern_counts(self):
        table = layers.Table(TABLE)
        self.assertEqual(table.layer("part/x/all_top.h"), "part/x/*_top.*")
        self.assertEqual(table.layer("part/x/deep/all_top.h"), "part/x")
        self.assertEqual(table.layer("low/deep/under/b.h"), "low/deep")
        self.assertIsNone(table.layer("other/h.h"))

    def test_file_without_layer(self):
        self.assertIn("new/h.h belongs to no layer", self.only({"new/h.h": ""}))

    def test_include_that_leads_nowhere(self):
        self.assertIn("no file of the tree", self.only({"high/c.cpp": '#include "low/deep/b.h"\n#include "c.h"\n'}))

    def test_include_by_a_relative_path(self):
        self.assertIn("no file of the tree", self.only({"high/c.cpp": '#include "../low/deep/b.h"\n'}))

    def test_public_header_in_angle_brackets(self):
        files = {"libcompress/include/quern/p.h": "", "high/c.cpp": "#include <quern/p.h>\n"}
        with_public = TABLE + "libcompress/include/quern:\n"
        self.assertIn("libcompress/include/quern/p.h", self.only(files, with_public))
        self.assertEqual(self.complaints(files, with_public.replace("low/deep\n", "low/deep libcompress/**\n")), [])

    def test_layer_that_is_empty_and_word_that_means_nothing(self):
        self.assertIn("no file belongs to it", self.only(table=TABLE + "gone: low\n"))
        self.assertIn("neither a layer nor a file", self.only(table=TABLE.replace("one: ", "one: low/z.h ")))

    def test_second_line_for_a_layer(self):
        self.assertIn("second line for one", self.only(table=TABLE + "one: low/a.h\n"))

    def test_cycle_that_the_table_allows(self):
        table = TABLE.replace("low:", "low: one")
        self.assertIn("one -> low -> one", self.only({"low/a.h": '#include "one/d.h"\n'}, table).replace(
            "low -> one -> low", "one -> low -> one"))


class ThisTree(unittest.TestCase):
    """Copies of this tree's sources, each with one wrong include."""

    PLANTED = (
        ("libcompress/format/frame/checksum.h", "libcompress/pipeline/boxes.h"),
        ("kernels/common/bits.h", "kernels/mask/find.h"),
        ("kernels/mask/cost.h", "kernels/mask/warp/scan.h"),
        ("kernels/stencil/cpu/rows.h", "kernels/stencil/warp/level_steps.h"),
        ("kernels/lorenzo/warp/planes.h", "kernels/common/cuda/launch.cuh"),
        ("codecs/stencil/chunk.h", "codecs/lossless/chunk.h"),
        ("codecs/lorenzo/plan.cpp", "libcompress/pipeline/segment_coder.h"),
        ("libcompress/cuda/cuda_device.cpp", "codecs/lorenzo/lorenzo.h"),
        # The verifier and what encodes, both ways.
        ("kernels/metrics/element.h", "kernels/common/bits.h"),
        ("kernels/metrics/cuda/quality.cu", "kernels/common/cuda/warp_lanes.cuh"),
        ("libcompress/metrics/quality.cpp", "libcompress/format/bytes.h"),
        ("codecs/lorenzo/rules.cpp", "kernels/metrics/element.h"),
        ("libcompress/pipeline/encode/setup.cpp", "libcompress/metrics/arguments.h"),
        ("kernels/lorenzo/predict.h", "kernels/metrics/validity.h"),
    )

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        for name in layers.tree_files(ROOT):
            (cls.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, cls.root / name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_script(self):
        return subprocess.run([sys.executable, ROOT / "scripts" / "check_layers.py", "--root", self.root],
                              capture_output=True, text=True)

    def test_as_it_is_green(self):
        done = self.run_script()
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_each_planted_include_red(self):
        kept = {file: (self.root / file).read_text() for file, _ in self.PLANTED}
        try:
            for file, included in self.PLANTED:
                self.assertTrue((self.root / included).is_file(), included)
                (self.root / file).write_text(f'#include "{included}"\n{kept[file]}')
            done = self.run_script()
        finally:
            for file, text in kept.items():
                (self.root / file).write_text(text)
        self.assertEqual(done.returncode, 1)
        for file, included in self.PLANTED:
            self.assertIn(f"{file}:1 includes {included}. ", done.stderr)


if __name__ == "__main__":
    unittest.main()
