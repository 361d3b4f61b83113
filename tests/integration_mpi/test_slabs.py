# The flow solver in slabs gives the whole domain's bits on any number of ranks. usage: test_slabs.py MPIEXEC SLAB_TEST
import sys
import unittest

from mpi_harness import MpiTest, environment, mpirun, need_mpi

PROGRAM = sys.argv.pop(1)


class SlabTest(MpiTest):
    def test_AnyNumberOfRanks_GivesTheSameBits(self):
        for ranks in (1, 2, 3, 5):
            self.assert_ran(mpirun(ranks, PROGRAM, env=environment()))


if __name__ == "__main__":
    need_mpi()
    unittest.main()
