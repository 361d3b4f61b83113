# Four ranks save through engines; one is killed in the middle of a step, and the run goes on from the newest whole step.
# usage: test_engine_ranks.py MPIEXEC ENGINE_RANKS QUERN
import json
import os
import shutil
import subprocess
import sys
import unittest

from mpi_harness import MpiTest, environment, mpirun, need_mpi

PROGRAM, QUERN = sys.argv.pop(1), sys.argv.pop(1)
RANKS = 4


class EngineRanks(MpiTest):
    def steps(self, store):
        done = subprocess.run([QUERN, "checkpoint", "ls", "--store", store, "--json"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {c["step"]: c for c in json.loads(done.stdout)["checkpoints"]}

    def test_RankKilledInAStep_RunGoesOnFromTheStepBefore(self):
        store, tier = self.path("store"), self.path("tier")
        for kill_step, victim in ((3, 2), (5, 0)):
            first = mpirun(RANKS, PROGRAM, store, tier, 8, victim, kill_step, env=environment())
            self.assertNotEqual(first.returncode, 0)
            self.assertNotIn(first.returncode, (1, 2, 3, 4, 5), first.stderr)
            # The victim's share may have been written in the moment before: then its step is whole.
            newest = max(self.steps(store))
            self.assertIn(newest, (kill_step - 1, kill_step))
        shutil.rmtree(store)  # and the node with the store is lost: the tier has the newest or the one before
        held = max(self.steps(tier))
        self.assertGreaterEqual(held, newest - 1)
        last = mpirun(RANKS, PROGRAM, store, tier, 8, env=environment())
        self.assert_ran(last)
        self.assertEqual(last.stdout.split(), [str(held + 1)])
        for folder in (store, tier):
            self.assertEqual(max(self.steps(folder)), 8)
            done = subprocess.run([QUERN, "checkpoint", "verify", "--store", folder, "--full"], capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            for inside in os.listdir(os.path.join(folder, "data")):  # one part of each rank
                parts = sorted(os.listdir(os.path.join(folder, "data", inside)))
                self.assertEqual(parts, [f"part-{i:04}" for i in range(RANKS)])


if __name__ == "__main__":
    need_mpi()
    unittest.main()
