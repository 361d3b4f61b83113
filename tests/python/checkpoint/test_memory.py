#!/usr/bin/env python3
"""Tensors that are written to while they are saved, parts of tensors, and memory beside large ones."""
import os
import sys
import tempfile
import threading
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)

from pyquern import checkpoint


class Memory(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.store = os.path.join(self.folder.name, "store")

    def tearDown(self):
        self.folder.cleanup()

    def test_a_tensor_that_is_written_to_fails_the_save_or_comes_back(self):
        values = np.zeros(5_000_000, np.float32)
        stop = threading.Event()

        def write():
            while not stop.is_set():
                np.add(values, 1, out=values)

        writer = threading.Thread(target=write)
        writer.start()
        failures = 0
        try:
            for step in range(40):
                try:
                    checkpoint.save(self.store, {"x": values}, step)
                except checkpoint.Error as error:
                    failures += 1
                    self.assertIn("tensor 'x' changed while it was saved", str(error))
                else:
                    checkpoint.load(self.store, step)
                if failures == 3:
                    break
        finally:
            stop.set()
            writer.join()
        self.assertEqual(failures, 3)

    def test_parts_are_those_of_the_whole(self):
        generator = np.random.default_rng(1)
        first = generator.standard_normal((900, 40, 33), np.float32)  # 4.5 chunks
        second = first * np.float32(1.001)
        checkpoint.save(self.store, {"x": first}, 1)
        checkpoint.save(self.store, {"x": second}, 2, base=1)
        with checkpoint.open(self.store, 2) as saved:
            lazy = saved["x"]
            for key in (np.s_[10:20], np.s_[899], np.s_[:, 3:5, 1:2], np.s_[..., 32], np.s_[200:800, 7], np.s_[5:5]):
                np.testing.assert_array_equal(np.asarray(lazy[key]), second[key])

    def test_one_large_tensor_is_saved_and_loaded_beside_little(self):
        if not sys.platform.startswith("linux") or not os.access("/proc/self/clear_refs", os.W_OK):
            self.skipTest("peaks are told by /proc on Linux")
        block = np.random.default_rng(2).standard_normal(1 << 20, np.float32)
        values = np.tile(block, 64)  # 256 MiB
        values.reshape(64, -1)[:] += np.arange(64, dtype=np.float32)[:, None] * np.float32(1e-3)
        self.assertLess(self.peak(lambda: checkpoint.save(self.store, {"x": values}, 1, threads=2)), 128 << 20)
        out = np.zeros_like(values)
        with checkpoint.open(self.store, 1, threads=2) as saved:
            self.assertLess(self.peak(lambda: saved.read_into("x", out)), 64 << 20)
            np.testing.assert_array_equal(out, values)
        with checkpoint.open(self.store, 1, threads=2) as saved:
            self.assertLess(self.peak(lambda: saved["x"][1000:2000]), 48 << 20)

    @staticmethod
    def peak(call):
        def status(key):
            with open("/proc/self/status") as lines:
                return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = status("VmRSS")
        call()
        return status("VmHWM") - before


if __name__ == "__main__":
    unittest.main()
