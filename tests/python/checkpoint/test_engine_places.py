"""Stores that a keeper holds in memory and stores on nodes, from Python: what a trainer saves there outlives it, and a restart
takes memory, the local disk and the shared one in that order, proven by hash."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
import pyquern as quern  # noqa: E402
from pyquern.checkpoint import Engine, Tier, newest_of, restore_newest  # noqa: E402

COMMAND = os.environ.get("QUERN_COMMAND")
if not COMMAND:
    print("SKIP: no quern command here (QUERN_COMMAND)")
    sys.exit(77)
SHARED = "/dev/shm"
_SECONDS = 60

TRAINER = textwrap.dedent("""
    import sys
    import numpy as np, pyquern as quern
    memory, local, shared = sys.argv[1:]
    engine = quern.checkpoint.Engine(memory, ring=4 << 20, base="newest", tiers=[quern.checkpoint.Tier(shared, every=4)])
    restored = quern.checkpoint.restore_newest(memory, tiers=[local, shared]) if quern.checkpoint.ls(memory) else None
    step = restored.step if restored else 0
    while True:
        engine.fence()
        step += 1
        save = engine.save({"w": np.random.default_rng(step).standard_normal(50_000), "step": step}, step=step)
        save.wait("local")
        print(step, flush=True)
    """)


def state(step):
    return {"w": np.random.default_rng(step).standard_normal(50_000), "step": step}


def lies_in_memory():
    if not os.access(SHARED, os.W_OK):
        return False
    with open("/proc/mounts", encoding="utf-8") as file:
        return any(line.split()[1:3] == [SHARED, "tmpfs"] for line in file)


def damage(store, step):
    """One bit of the values."""
    with quern.checkpoint.open(store, step) as saved:
        part = os.path.join(store, "data", saved.info.id, "part-0000")
    with open(part, "r+b") as file:
        file.seek(100_000)
        byte = file.read(1)
        file.seek(100_000)
        file.write(bytes([byte[0] ^ 4]))


@unittest.skipUnless(lies_in_memory(), "needs /dev/shm on tmpfs")
class Keeper(StoreTest):
    def setUp(self):
        super().setUp()
        self.memory = tempfile.mkdtemp(prefix="quern-test-", dir=SHARED)
        self.addCleanup(shutil.rmtree, self.memory, ignore_errors=True)
        self.local, self.shared = self.store + ".local", self.store + ".shared"

    def keeper(self, *more):
        words = [COMMAND, "checkpoint", "keeper", "--store", self.local, "--dir", self.memory, "--memory", "1G", *more]
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def until(self, is_so):
        end = time.monotonic() + _SECONDS
        while not is_so():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def train(self, lines):
        """Kills a trainer once it has said that so many of its steps are in memory. The last of them."""
        child = subprocess.Popen([sys.executable, "-c", TRAINER, self.memory, self.local, self.shared], stdout=subprocess.PIPE,
                                 text=True)
        said = [int(child.stdout.readline()) for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        child.wait(_SECONDS)
        child.stdout.close()
        return said[-1]

    def restored(self):
        found = restore_newest(self.memory, tiers=[self.local, self.shared])
        self.assertEqual(found.state["step"], found.step)
        np.testing.assert_array_equal(found.state["w"], state(found.step)["w"])
        return found.step

    def test_memory_outlives_a_killed_trainer_and_comes_first(self):
        keeper = self.keeper("-q")
        self.addCleanup(keeper.stderr.close)
        try:
            self.until(lambda: os.path.isdir(os.path.join(self.memory, "manifests")))
            last = 0
            for lines in (5, 4):
                said = self.train(lines)
                self.assertGreaterEqual(said, last + lines)  # it went on from what memory had
                self.assertGreaterEqual(self.restored(), said)  # and memory has all that it said, or what came after it
                last = said
            newest = self.restored()
            self.until(lambda: newest in quern.checkpoint.ls(self.local))
        finally:
            keeper.send_signal(signal.SIGINT)
            keeper.wait(_SECONDS)
        with Engine(self.memory, ring=2 << 20, tiers=[Tier(self.shared, every=4)]) as engine:  # what the shared tier lacks
            engine.save(state(newest + 1), step=newest + 1).wait("local", _SECONDS)
            engine.wait(_SECONDS)
        places = [self.memory, self.local, self.shared]
        self.assertEqual(newest_of(places), (self.memory, newest + 1))
        # Damage in memory shows by its hashes, and the local disk is next.
        damage(self.memory, newest + 1)
        damage(self.memory, newest)
        self.assertEqual(newest_of(places), (self.local, newest))
        self.assertEqual(self.restored(), newest)
        # The machine is lost: only what was shared is there.
        shutil.rmtree(self.local)
        shutil.rmtree(self.memory)
        self.assertEqual(newest_of(places), (self.shared, max(quern.checkpoint.ls(self.shared))))
        self.assertEqual(self.restored() % 4, 0)

    def test_level_host_and_local_of_a_store_in_memory(self):
        with Engine(self.memory, ring=4 << 20, tiers=[self.local]) as engine:
            save = engine.save(state(1), step=1)
            self.assertTrue(save.wait("host", _SECONDS))
            self.assertTrue(save.wait("local", _SECONDS))
            self.assertEqual(quern.checkpoint.ls(self.memory), [1])
            self.assertTrue(save.wait("durable", _SECONDS))
        self.assertEqual(quern.checkpoint.ls(self.local), [1])
        quern.checkpoint.verify(self.memory)


class Placed(StoreTest):
    def setUp(self):
        super().setUp()
        self.folder = os.path.dirname(self.store)
        rows = [{"name": f"n{i}", "capacity": 10**9, "write": 1e8, "read": 1e8, "yearly_failure_rate": 0.05,
                 "folder": os.path.join(self.folder, f"n{i}")} for i in range(5)]
        for row in rows:
            os.makedirs(row["folder"])
        nodes = os.path.join(self.folder, "nodes.json")
        with open(nodes, "w", encoding="utf-8") as file:
            json.dump({"nodes": rows}, file)
        made = subprocess.run([COMMAND, "checkpoint", "place", nodes, "--store", self.store, "--size", "4M", "--target", "0.999",
                               "--json"], capture_output=True, text=True, timeout=_SECONDS)
        self.assertEqual(made.returncode, 0, made.stderr)
        plan = json.loads(made.stdout)
        self.parity, self.nodes = (plan["data"], plan["parity"]), [one["folder"] for one in plan["nodes"]]

    def test_saves_loads_and_mends_after_a_node_is_lost(self):
        tensors = {f"w{i}": np.random.default_rng(i).standard_normal(200_000).astype(np.float32) for i in range(6)}
        quern.checkpoint.save(self.store, tensors, step=1)
        with Engine(self.store, ring=8 << 20, base="newest") as engine:
            for step in (2, 3):
                tensors["w0"] += 1
                engine.save(tensors, step=step).result(_SECONDS)
                engine.fence()
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 2, 3])
        for node in self.nodes[: self.parity[1]]:
            shutil.rmtree(node)
        with self.assertRaises(quern.checkpoint.Error):
            for step in (1, 2, 3):
                quern.checkpoint.load(self.store, step=step)
        for step in (1, 2, 3):
            with quern.checkpoint.Store(self.store, write=True) as store:
                self.assertTrue(store.repair(step))
            quern.checkpoint.verify(self.store, step)
        found = restore_newest(self.store)
        self.assertEqual(found.step, 3)
        for name, values in tensors.items():
            np.testing.assert_array_equal(found.state[name], values)


if __name__ == "__main__":
    unittest.main()
