# The in-situ example, both ways: the simulation is quern-flow's, the bound holds, and a rank that fails ends all.
# usage: test_insitu.py MPIEXEC IO INSITU FLOW QUERN PLUGINS
import os
import subprocess
import sys
import unittest

from mpi_harness import MPIEXEC, MpiTest, environment, mpirun, need_mpi, skip, start, stored_chunks

IO, INSITU, FLOW, QUERN = (sys.argv.pop(1) for _ in range(4))
os.environ["HDF5_PLUGIN_PATH"] = os.path.join(os.path.abspath(sys.argv.pop(1)), "serial")
os.environ["QUERN"] = os.path.abspath(QUERN)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/insitu"))
try:
    import h5py
    import numpy as np
    from read_streams import read_field
except ImportError as error:
    skip("the in-situ example is checked with numpy and h5py: %s" % error)

NAMES = ("density", "velocity_x", "velocity_y", "velocity_z", "pressure", "energy")
SIZE = (11, 14, 17)  # four planes a chunk: the last is cut, and no slab ends where a chunk does
TEXT = "x".join(map(str, SIZE))
BOUND = 1e-3


class InsituTest(MpiTest):
    def simulate(self, setup):
        """Steps 5, 10 and 12 of the serial program, bit for bit."""
        subprocess.run([FLOW, "--setup", setup, "--size", TEXT, "--steps", "12", "--every", "5", "--type", "f64", "-q",
                        "-o", self.folder, "-T", "1"], check=True, timeout=60)
        return {step: {name: np.fromfile(self.path("%s_t%04d_%s.f64" % (name, step, TEXT)), "<f8").reshape(SIZE)
                       for name in NAMES} for step in (5, 10, 12)}

    def insitu(self, ranks, way, out, *bound, setup="kelvin-helmholtz"):
        done = mpirun(ranks, INSITU, "--way", way, "--out", out, "--setup", setup, "--size", TEXT, "--steps", 12,
                      "--every", 5, "--chunk-planes", 4, *bound, env=environment(IO))
        self.assert_ran(done)
        self.assertIn("ratio", done.stdout)

    def series(self, path):
        with h5py.File(path, "r") as file:
            steps = [int(s) for s in file["step"]]
            self.assertEqual(len(file["time"]), len(steps))
            return {step: {name: file[name][i] for name in NAMES} for i, step in enumerate(steps)}

    def streams(self, out):
        return {step: {name: read_field("%s_%06d.qns" % (out, step), name) for name in NAMES} for step in (5, 10, 12)}

    def assert_fields(self, got, expected, bound):
        self.assertEqual(sorted(got), sorted(expected))
        for step, fields in expected.items():
            for name, field in fields.items():
                if bound == 0:
                    self.assertEqual(got[step][name].tobytes(), field.tobytes(), (step, name))
                else:
                    self.assertLessEqual(np.abs(got[step][name] - field).max(), bound, (step, name))

    def test_Lossless_GivesTheBitsOfTheSerialProgram(self):
        for setup in ("kelvin-helmholtz", "sedov"):
            expected = self.simulate(setup)
            for ranks, way in ((3, "hdf5"), (4, "streams")):
                out = self.path("%s_%s" % (setup, way))
                self.insitu(ranks, way, out, "--lossless", setup=setup)
                self.assert_fields(self.series(out) if way == "hdf5" else self.streams(out), expected, 0)

    def test_Bound_HoldsBothWays(self):
        expected = self.simulate("kelvin-helmholtz")
        self.insitu(2, "hdf5", self.path("a.h5"), "--abs", BOUND)
        self.assert_fields(self.series(self.path("a.h5")), expected, BOUND)
        self.insitu(2, "streams", self.path("a"), "--abs", BOUND)
        self.assert_fields(self.streams(self.path("a")), expected, BOUND)
        self.assertFalse([name for name in os.listdir(self.folder) if name.endswith(".part")])

    def test_RanksWithoutCells_ChangeNoChunk(self):
        """Eleven planes make five slabs: the last two of seven ranks have nothing."""
        chunks = []
        for ranks in (1, 2, 7):
            self.insitu(ranks, "hdf5", self.path("r%d" % ranks), "--abs", BOUND)
            chunks.append(stored_chunks(h5py, self.path("r%d" % ranks)))
        self.assertEqual({name: len(c) for name, c in chunks[0].items()}, {name: 9 for name in NAMES})
        self.assertTrue(chunks[0] == chunks[1] and chunks[0] == chunks[2])
        self.insitu(7, "streams", self.path("s"), "--abs", BOUND)
        self.assert_fields(self.streams(self.path("s")), self.simulate("kelvin-helmholtz"), BOUND)

    def test_BadBound_AllRanksEndWithTheReason(self):
        for way in ("hdf5", "streams"):
            done = mpirun(2, INSITU, "--way", way, "--out", self.path("bad"), "--abs", "-1", env=environment(IO))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("cannot use this bound", done.stderr)

    def test_BadBoundOnOneRank_AllRanksEnd(self):
        for way in ("hdf5", "streams"):
            both = [INSITU, "--way", way, "--out", self.path("bad"), "--size", TEXT, "--abs"]
            done = start([MPIEXEC, "-n", "1", *both, "1e-3", ":", "-n", "1", *both, "-1"], environment(IO))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("rank 1: cannot use this bound", done.stderr)

    def test_WrongArguments_AreNamed(self):
        for words, part in ((("--size", "4x4"), "--size 4x4"), (("--steps", "-3"), "--steps -3"),
                            (("--abs", "x"), "--abs x"), (("--way", "both"), "--way both"),
                            (("--out",), "--out needs a value"), ((), "are needed")):
            done = mpirun(1, INSITU, *words, env=environment(IO))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(part, done.stderr)

    def test_FolderThatIsNotThere_IsNamed(self):
        for way in ("hdf5", "streams"):
            out = self.path("nowhere/out")
            done = mpirun(2, INSITU, "--way", way, "--out", out, "--abs", "1", "--size", TEXT, "--steps", 1,
                          env=environment(IO))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("cannot create " + out, done.stderr)


if __name__ == "__main__":
    need_mpi()
    unittest.main()
