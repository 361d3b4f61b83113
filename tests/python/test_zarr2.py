"""zarr 2 and zarr 3 read what the other wrote as format 2, and find the same values.

usage: test_zarr2.py OTHER_PYTHON     a Python with the other zarr than this one has: build/clients-zarr2/bin/python
       test_zarr2.py write|read FOLDER   what it starts with each of the two"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from support import import_or_skip

zarr = import_or_skip("zarr")
from pyquern.numcodecs import Quern  # noqa: E402

THREE = int(zarr.__version__.split(".")[0]) >= 3
CASES = [(dtype, order) for dtype in ("<f4", ">f4", "<f8", "<i4", "<u1") for order in "CF"]


def values_of(dtype):
    values = np.cumsum(np.random.default_rng(12).normal(size=(12, 20, 30)), axis=0) * 3 + 60
    values[0, :3] = -7  # the fill value of the floats
    if np.dtype(dtype).kind == "f":
        values[1, 5:9], values[2, 0, 0] = np.nan, np.inf
    return np.where(np.isfinite(values), np.clip(values, -7 if np.dtype(dtype).kind == "f" else 0, 200), values).astype(dtype)


def write(folder):
    for number, (dtype, order) in enumerate(CASES):
        values, codec = values_of(dtype), Quern(abs=0.25, fill=None if dtype == "<u1" else -7)
        path = os.path.join(folder, f"{number}.zarr")
        common = {"shape": values.shape, "chunks": (5, 20, 17), "dtype": dtype, "order": order, "fill_value": 0 if dtype == "<u1" else -7}
        if THREE:
            made = zarr.create_array(path, zarr_format=2, compressors=codec, filters=None, **common)
        else:
            made = zarr.open(path, mode="w", compressor=codec, **common)
        made[...] = values
        made[2:4, 3:9] = values[2:4, 3:9]  # parts are written again


def read(folder):
    """A digest of each array's values, which keep the bound."""
    found = []
    for number, (dtype, order) in enumerate(CASES):
        values, back = values_of(dtype), zarr.open(os.path.join(folder, f"{number}.zarr"), mode="r")[...]
        assert back.dtype == values.dtype and back.shape == values.shape, (dtype, order)
        finite = np.isfinite(values) if values.dtype.kind == "f" else np.ones(values.shape, bool)
        assert np.all(np.abs(back[finite].astype("f8") - values[finite].astype("f8")) <= 0.25), (dtype, order)
        assert np.array_equal(back[~finite], values[~finite], equal_nan=True), (dtype, order)
        assert np.all(back[0, :3] == values[0, :3]), (dtype, order)
        found.append(hashlib.sha256(np.ascontiguousarray(back).tobytes()).hexdigest())
    return found


def run(python, *arguments):
    done = subprocess.run([python, os.path.abspath(__file__), *arguments], text=True, capture_output=True)
    if done.returncode != 0:
        raise AssertionError(f"{python} {arguments}: {done.stderr}")
    return done.stdout


class Both(unittest.TestCase):
    other = ""

    def test_each_reads_what_the_other_wrote(self):
        majors = {run(python, "version") for python in (sys.executable, self.other)}
        self.assertEqual(majors, {"2\n", "3\n"})
        digests = []
        for writer in (sys.executable, self.other):
            with tempfile.TemporaryDirectory() as folder:
                run(writer, "write", folder)
                for reader in (sys.executable, self.other):
                    digests.append(json.loads(run(reader, "read", folder)))
        for digest in digests[1:]:
            self.assertEqual(digest, digests[0])


if __name__ == "__main__":
    if sys.argv[1:2] == ["version"]:
        print(zarr.__version__.split(".")[0])
    elif sys.argv[1:2] == ["write"]:
        write(sys.argv[2])
    elif sys.argv[1:2] == ["read"]:
        print(json.dumps(read(sys.argv[2])))
    elif len(sys.argv) < 2 or not os.path.exists(sys.argv[1]):
        print("SKIP: no Python with zarr 2 here: scripts/setup_clients.sh makes one")
        sys.exit(77)
    else:
        Both.other = sys.argv.pop(1)
        unittest.main()
