"""A wheel of dist/ in a new virtual environment: no compiler, no PATH, no variable; the command; nothing is left when it goes.

usage: test_wheel.py FOLDER     the folder that scripts/wheel.sh makes"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

FOLDER = sys.argv.pop(1) if len(sys.argv) > 1 else "dist"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

PROGRAM = """
import importlib.metadata as metadata, os, subprocess, sys
import numpy as np, pyquern as q
x = np.random.rand(64, 64, 64).astype('f4')
s = q.compress(x, abs=1e-3)
assert abs(q.decompress(s) - x).max() <= 1e-3
print(q.info(s))
assert q.verify(x, s).ok
info = q.build_info()
assert info['library_path'].startswith(os.path.dirname(q.__file__)), info
assert info['cuda']['available'] or info['cuda']['why'], info
for group in ('numcodecs.codecs', 'zarr.codecs'):
    assert [e.value.split(':')[0] for e in metadata.entry_points(group=group) if e.name == 'quern'], group
plugins = subprocess.run([sys.executable, '-m', 'pyquern', 'plugin-path'], check=True, text=True, capture_output=True).stdout.strip()
assert os.path.exists(os.path.join(plugins, 'libh5quern.so')), plugins
import pyquern.checkpoint
"""


class Wheel(unittest.TestCase):
    wheel = ""

    def test_install_use_and_uninstall(self):
        with tempfile.TemporaryDirectory() as folder:
            python = os.path.join(folder, "v", "bin", "python")
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", os.path.join(folder, "v")], check=True)

            def pip(*words):
                return subprocess.run([sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *words], text=True,
                                      capture_output=True)

            needs = pip("install", "-q", "--no-compile", "numpy")
            if needs.returncode != 0:
                self.skipTest("NumPy cannot be had from PyPI here: " + needs.stderr.strip().splitlines()[-1])
            before = self.files(folder)
            done = pip("install", "-q", "--no-index", "--no-compile", self.wheel)
            self.assertEqual(done.returncode, 0, done.stderr)
            clean = {"PYTHONDONTWRITEBYTECODE": "1"}
            done = subprocess.run([python, "-c", PROGRAM], cwd="/", env=clean, text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.command(os.path.join(folder, "v", "bin", "quern"), folder, clean)
            self.assertEqual(pip("uninstall", "-q", "-y", "pyquern").returncode, 0)
            self.assertEqual(self.files(folder), before)

    def command(self, quern, folder, environment):
        """Of a wheel that has one: streams go there and back."""
        raw = os.path.join(folder, "x_64x64.f32")
        with open(raw, "wb") as file:
            file.write(bytes(64 * 64 * 4))
        done = subprocess.run([quern, "compress", "--abs", "1e-3", raw], env=environment, text=True, capture_output=True)
        if "has no quern command" in done.stderr:
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        subprocess.run([quern, "verify", raw, raw + ".qn"], env=environment, check=True, capture_output=True)
        done = subprocess.run([quern, "h5", "pack", "--abs", "1", "a.h5", "-o", "b.h5"], env=environment, text=True, capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("pyquern.hdf5", done.stderr)
        for path in (raw, raw + ".qn"):
            os.remove(path)

    def files(self, folder):
        return sorted(os.path.relpath(os.path.join(where, name), folder) for where, folders, names in os.walk(folder)
                      for name in names + folders if name != "__pycache__" and not name.endswith(".pyc"))


def version():
    with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
        return re.search(r'^version = "(.*)"$', file.read(), re.M).group(1)


if __name__ == "__main__":
    found = glob.glob(os.path.join(FOLDER, f"pyquern-{version()}-py3-none-*.whl"))
    if not found:
        print(f"SKIP: no wheel of version {version()} in {FOLDER}: scripts/wheel.sh makes one")
        sys.exit(77)
    Wheel.wheel = found[0]
    unittest.main()
