"""pyquern.explore() and `explore FILE`: what the page holds, and with Chromium what a reader sees (QUERN_CHROMIUM names it)."""
import base64
import html
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy as np
import pyquern as quern

FIELD = np.cumsum(np.random.default_rng(4).normal(size=(6, 40, 60)), axis=2).astype("f4")
CHROMIUM = os.environ.get("QUERN_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))


def picture(url):
    """Places in the palette, and the palette, by a reader of its own."""
    data, found, place = base64.b64decode(url.partition(",")[2]), {}, 8
    while place < len(data):
        size, kind = struct.unpack(">I4s", data[place:place + 8])
        body = data[place + 8:place + 8 + size]
        assert struct.unpack(">I", data[place + 8 + size:place + 12 + size])[0] == zlib.crc32(kind + body)
        found[kind], place = body, place + 12 + size
    width, height = struct.unpack(">II", found[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any() and len(found[b"PLTE"]) == 768
    return rows[:, 1:]


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_numbers_are_those_of_compressing(self):
        data = data_of(quern.explore(FIELD, (1e-1, 1e-2, 1e-3)).html)
        self.assertEqual((data["shape"], data["whole"]), ([6, 40, 60], True))
        self.assertEqual(set(data["curves"]), {"lorenzo", "interp", "stencil"})
        for seen, rel in zip(data["bounds"], (1e-1, 1e-2, 1e-3)):
            stream = quern.compress(FIELD, rel=rel)
            back = quern.decompress(stream)
            self.assertEqual(seen["ratio"], FIELD.nbytes / len(stream))
            self.assertEqual(seen["bytes"], len(stream))
            self.assertEqual(seen["max_error"], float(np.abs(back.astype("f8") - FIELD).max()))
            self.assertEqual(sum(seen["histogram"]), FIELD.size)
            self.assertTrue(0.5 < np.median(seen["spectrum"][1:10]) < 2)

    def test_pictures_show_values_and_errors(self):
        field = FIELD.copy()
        field[:, :3] = np.nan
        data = data_of(quern.explore(field, (1e-1, 1e-2)).html)
        first = next(s for s in data["slices"] if s["axis"] == 0)
        original = picture(first["original"])
        self.assertEqual(original.shape, (40, 60))
        self.assertTrue((original[:3] == 255).all() and (original[3:] < 255).all())
        plane = field[first["place"]].astype("f8")
        low, high = np.nanmin(field), np.nanmax(field)
        self.assertLessEqual(np.abs(original[3:] - (plane[3:] - low) / (high - low) * 254).max(), 0.51)
        decoded = quern.decompress(quern.compress(field, rel=1e-1))[first["place"]]
        limit = data["bounds"][0]["limit"]
        expected = (decoded[3:] - plane[3:] + limit) / (2 * limit) * 254
        self.assertLessEqual(np.abs(picture(first["bounds"][0]["error"])[3:] - expected).max(), 0.51)

    def test_nothing_outside_of_the_page_and_names_are_texts(self):
        text = quern.explore(FIELD, (1e-1, 1e-2), name="</script><b>&").html
        self.assertEqual(re.findall(r'(?:src|href)\s*=\s*"(?!data:)[^"]+"|https?://(?!www\.w3\.org/2000/svg)', text), [])
        self.assertEqual(text.count("</script>"), 2)
        self.assertIn("&lt;/script&gt;", text)
        self.assertIn("<iframe srcdoc=", quern.explore(FIELD[0], (1e-1, 1e-2))._repr_html_())

    def test_large_arrays_are_shown_by_their_middle(self):
        large = np.tile(FIELD, (1, 5, 5))
        page = quern.explore(large, (1e-1, 1e-2), most=10000, codec="lorenzo")
        data = data_of(page.html)
        self.assertFalse(data["whole"])
        self.assertLessEqual(np.prod([last - first for first, last in data["box"]]), 10000)
        self.assertLess(len(page.html), 5 << 20)
        for values in (FIELD[0, 0], np.zeros((2, 3, 4, 5, 6), "i2")):
            self.assertTrue(data_of(quern.explore(values, (1e-1, 1e-2)).html)["slices"])

    def test_what_is_refused(self):
        for array, bounds, kind in ((FIELD, (1e-1,), ValueError), (FIELD, (1e-1,) * 10, ValueError), (FIELD.astype(bool), (1e-1, 1e-2), TypeError),
                                    (np.zeros(0, "f4"), (1e-1, 1e-2), TypeError), (np.full(9, np.nan), (1e-1, 1e-2), ValueError)):
            with self.assertRaises(kind):
                quern.explore(array, bounds)

    def run_command(self, *words):
        return subprocess.run([sys.executable, "-m", "pyquern", "explore", *words], text=True, capture_output=True)

    def test_the_command(self):
        npy, raw, page = (os.path.join(self.folder, name) for name in ("a b.npy", "a.f32", "page.html"))
        np.save(npy, FIELD)
        FIELD.tofile(raw)
        for words in ((npy,), (raw, "-t", "f32", "-s", "6x40x60")):
            done = self.run_command(*words, "--bounds", "1e-1,1e-2", "--codec", "lorenzo", "-o", page)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(page, encoding="utf-8") as file:
                command = data_of(file.read())["bounds"][1]["command"]
            self.assertTrue(command.startswith("quern compress ") and command.endswith(" --rel 0.01 --codec lorenzo"), command)
        self.assertEqual(self.run_command(raw).returncode, 2)
        done = self.run_command(os.path.join(self.folder, "none.npy"))
        self.assertEqual((done.returncode, done.stderr), (1, f"quern explore: {self.folder}/none.npy: No such file or directory\n"))

    def test_the_only_dataset_needs_no_name(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py here")
        path, page = os.path.join(self.folder, "a.h5"), os.path.join(self.folder, "page.html")
        with h5py.File(path, "w") as file:
            file["t"], file["x"] = FIELD, np.arange(60.0)
        words = (path, "--bounds", "1e-1,1e-2", "--codec", "lorenzo", "-o", page)
        done = self.run_command(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(page, encoding="utf-8") as file:
            self.assertIn(" --dataset t --rel 0.01", data_of(file.read())["bounds"][1]["command"])
        with h5py.File(path, "a") as file:
            file["u"] = FIELD
        done = self.run_command(*words)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--dataset is needed", done.stderr)
        self.assertIn("has t, u", done.stderr)

    @unittest.skipIf(CHROMIUM is None, "no Chromium here")
    def test_what_a_reader_sees(self):
        path = os.path.join(self.folder, "page.html")
        quern.explore(FIELD, (1e-1, 1e-2, 1e-3)).save(path)
        for place, rel in enumerate((1e-1, 1e-2, 1e-3)):
            done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/profile",
                                   "--dump-dom", f"file://{path}#{place}"], text=True, capture_output=True, timeout=120)
            ratio = FIELD.nbytes / len(quern.compress(FIELD, rel=rel))
            seen = re.search(r'<dd data-name="Ratio">([^<]*)</dd>', done.stdout)
            self.assertIsNotNone(seen, done.stderr)
            self.assertAlmostEqual(float(seen.group(1)), ratio, delta=1e-4 * ratio)
            self.assertIn(f"pyquern.compress(array, rel={rel:g})", html.unescape(done.stdout))
            self.assertRegex(done.stdout, r'<img id="error" alt="error under rel=[^"]*" src="data:image/png')
            for picture_name in ("curves", "histogram", "spectrum"):
                self.assertRegex(done.stdout, rf'<svg id="{picture_name}"[^>]*><path')


if __name__ == "__main__":
    sys.exit(unittest.main())
