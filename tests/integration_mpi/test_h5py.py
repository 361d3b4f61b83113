# h5py over MPI: ranks write one dataset through pyquern's filter; the chunks are those of a serial file, the bound holds.
# usage: test_h5py.py MPIEXEC PACKAGES   (PACKAGES: the folder that holds pyquern; QUERN_LIBRARY names the library)
# Started by mpirun as: test_h5py.py MPIEXEC PACKAGES write FILE
import os
import sys
import unittest

from mpi_harness import MpiTest, environment, mpirun, need_mpi, skip, start, stored_chunks

PACKAGES = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, PACKAGES)
try:
    import numpy as np
except ImportError as error:
    skip("no NumPy here: %s" % error)

SHAPE, CHUNKS, BOUND, CHANGED = (24, 64, 96), (5, 64, 48), 0.01, 6


def field():
    return np.cumsum(np.random.default_rng(16).normal(size=SHAPE), axis=2).astype("f4")


def write(path):
    """Each rank writes its planes, which end inside of chunks; then all change some of the first ones. No part is empty: h5py
    does not call HDF5 for an empty one, and the other ranks would wait for it."""
    from mpi4py import MPI
    import h5py
    import pyquern.hdf5 as qh

    assert h5py.get_config().mpi, "this h5py is not built with MPI"
    comm, values = MPI.COMM_WORLD, field()

    def mine(count):
        return slice(count * comm.rank // comm.size, count * (comm.rank + 1) // comm.size)

    with h5py.File(path, "w", driver="mpio", comm=comm) as file:
        made = file.create_dataset("x", SHAPE, "f4", chunks=CHUNKS, compression=qh.filter(abs=BOUND))
        with made.collective:
            made[mine(SHAPE[0])] = values[mine(SHAPE[0])]
        with made.collective:
            made[mine(CHANGED), :8] = 5
        assert qh.settings_of(made)["bound"].value == BOUND
        for call in (lambda: qh.write(made, values), lambda: qh.create_dataset(file, "y", values, abs=BOUND)):
            try:
                call()
            except NotImplementedError as problem:
                assert "dataset.collective" in str(problem)
            else:
                raise AssertionError("chunks were written past MPI")
        assert "y" not in file


def check_serial(path):
    """What a serial h5py reads of the file; it has not the parallel one's HDF5, so it is a process of its own."""
    import h5py
    import pyquern.hdf5  # noqa: F401

    expected = field()
    expected[:CHANGED, :8] = 5
    with h5py.File(path, "r") as file:
        found = file["x"][...]
    assert np.abs(found.astype("f8") - expected).max() <= BOUND
    print("%d chunks" % len(stored_chunks(h5py, path)["x"]))


class H5py(MpiTest):
    def run_here(self, *words):
        return start([sys.executable, os.path.abspath(__file__), "mpiexec", PACKAGES, *words], dict(os.environ))

    def test_RanksWriteOneDataset(self):
        import h5py

        paths = [self.path("ranks%d.h5" % ranks) for ranks in (1, 2, 3)]
        for ranks, path in zip((1, 2, 3), paths):
            self.assert_ran(mpirun(ranks, sys.executable, os.path.abspath(__file__), "mpiexec", PACKAGES, "write", path, env=environment()))
            done = self.run_here("check", path)
            self.assert_ran(done)
            self.assertEqual(done.stdout, "10 chunks\n")
        for path in paths[1:]:
            self.assertEqual(stored_chunks(h5py, path), stored_chunks(h5py, paths[0]))


def need_parallel_h5py():
    done = mpirun(1, sys.executable, "-c", "import mpi4py, h5py; print(h5py.get_config().mpi)", env=environment())
    if done.returncode or "True" not in done.stdout:
        skip("no h5py with MPI here (Debian: python3-h5py-mpi): " + (done.stderr.strip().splitlines() or [done.stdout.strip()])[-1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(sys.argv[2])
    elif sys.argv[1:2] == ["check"]:
        check_serial(sys.argv[2])
    else:
        need_mpi()
        need_parallel_h5py()
        unittest.main()
