# Collective writes through the plugin: the same chunks for any number of ranks, readable serially, bound kept.
# usage: test_collective.py MPIEXEC IO COLLECTIVE_WRITE PLUGINS   (IO: ompio or romio321; in PLUGINS: serial/, openmpi/)
import os
import shutil
import subprocess
import sys
import unittest

from mpi_harness import MPIEXEC, MpiTest, environment, mpirun, need_mpi, skip, start, stored_chunks

IO, PROGRAM, PLUGINS = sys.argv.pop(1), sys.argv.pop(1), os.path.abspath(sys.argv.pop(1))
os.environ["HDF5_PLUGIN_PATH"] = os.path.join(PLUGINS, "serial")
os.environ.pop("QUERN_HDF5_THREADS", None)
try:
    import h5py
    import numpy as np
except ImportError as error:
    skip("collective writes are checked with numpy and h5py: %s" % error)

BOUND = 0.01
DATASETS = {"even": 4, "edges": 24, "shared": 4, "empty_rank": 5, "one_rank": 5, "one_chunk": 1, "two_chunks": 2,
            "steps": 16, "steps_shared": 16, "rewritten": 8, "rewritten_shared": 8}


def expected(shape):
    """What collective_write computes, up to the rounding of its type and of sin and cos."""
    steps = shape[0] if len(shape) == 3 else 1
    t, r, c = np.meshgrid(np.arange(steps, dtype="f8"), np.arange(shape[-2]), np.arange(shape[-1]), indexing="ij")
    texture = (r.astype("u8") * np.uint64(2654435761) + c.astype("u8") * np.uint64(40503)) % np.uint64(97)
    values = 100.0 * np.sin(0.11 * r + 0.3 * t) * np.cos(0.07 * c) + texture.astype("f8") * 1e-3
    return values.reshape(shape)


class CollectiveTest(MpiTest):
    def env(self, **more):
        return environment(IO, HDF5_PLUGIN_PATH=os.path.join(PLUGINS, "openmpi"), **more)

    def write(self, ranks):
        path = self.path("ranks%d.h5" % ranks)
        self.assert_ran(mpirun(ranks, PROGRAM, path, env=self.env()))
        return path

    def test_AnyNumberOfRanks_StoresTheSameChunks(self):
        path = self.write(1)
        one = stored_chunks(h5py, path)
        self.assertEqual({name: len(chunks) for name, chunks in one.items()}, DATASETS)
        for ranks in (2, 4):
            many = stored_chunks(h5py, self.write(ranks))
            for name in DATASETS:
                self.assertEqual(sorted(many[name]), sorted(one[name]), name)
                for offset in one[name]:
                    self.assertTrue(many[name][offset] == one[name][offset], (ranks, name, offset))

    def test_SerialReader_FindsEveryValueWithinTheBound(self):
        path = self.write(3)
        with h5py.File(path, "r") as file:
            self.assertEqual(sorted(file), sorted([*DATASETS, "original"]))
            for name in DATASETS:
                original = file["original"][name][...].astype("f8")
                self.assertLess(np.abs(original - expected(original.shape)).max(), 1e-4, name)
                error = np.abs(file[name][...].astype("f8") - original).max()
                self.assertLessEqual(error, BOUND, name)
                self.assertGreater(error, 0.0, name)
        if shutil.which("h5dump"):
            done = subprocess.run(["h5dump", "-d", "/edges", path], capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn(b"unable", done.stderr)

    def test_FilterFailsOnOneRank_AllRanksEndWithTheReason(self):
        job = [PROGRAM, self.path("a.h5")]
        argv = [MPIEXEC, "-n", "1", *job, ":", "-n", "1", "env", "QUERN_HDF5_THREADS=many", *job]
        done = start(argv, self.env())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("QUERN_HDF5_THREADS=many", done.stderr)

    def test_WhatParallelHdf5DoesNotDo_IsAnErrorOnAllRanks(self):
        for mode, reason in (("independent", "independent I/O was requested"), ("convert", "datatype conversions")):
            done = mpirun(2, PROGRAM, self.path("c.h5"), mode, env=self.env())
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(reason, done.stderr)

    def test_NoPlugin_AllRanksEndWithTheReason(self):
        done = mpirun(2, PROGRAM, self.path("b.h5"), env=environment(IO, HDF5_PLUGIN_PATH=self.folder))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("required filter 443 is not registered", done.stderr)


if __name__ == "__main__":
    need_mpi()
    unittest.main()
