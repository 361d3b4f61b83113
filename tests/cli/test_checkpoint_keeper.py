# quern checkpoint keeper: what stays in memory and what reaches the disk, killed savers and keepers, folders it refuses.
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness
from harness import CliTest, read_bytes
from test_checkpoint_tiers import safetensors

SHARED = "/dev/shm"


def lies_in_memory():
    if not os.access(SHARED, os.W_OK):
        return False
    with open("/proc/mounts", encoding="utf-8") as file:
        return any(line.split()[1:3] == [SHARED, "tmpfs"] for line in file)


@unittest.skipUnless(lies_in_memory(), "needs /dev/shm on tmpfs")
class Keeper(CliTest):
    def setUp(self):
        super().setUp()
        self.store = self.path("disk")
        self.memory = tempfile.mkdtemp(prefix="quern-test-", dir=SHARED)
        self.addCleanup(shutil.rmtree, self.memory, ignore_errors=True)

    def words(self, *more):
        return ["checkpoint", "keeper", "--store", self.store, "--dir", self.memory, *more]

    def once(self, *more):
        return self.json(self.ok(*self.words("--once", "--json", *more)))

    def save(self, step):
        path = self.write(f"step{step}.safetensors", safetensors(step))
        self.ok("checkpoint", "save", path, "--store", self.memory, "--step", step, "-q")
        return read_bytes(path)

    def newest(self):
        out = self.path("out.safetensors")
        told = self.json(self.ok("checkpoint", "load", "--store", self.memory, "--tier", self.store, "-o", out, "-f",
                                 "--json"))
        return told["step"], read_bytes(out)

    def steps(self, store):
        return [c["step"] for c in self.json(self.ok("checkpoint", "ls", "--store", store, "--json"))["checkpoints"]]

    def fails(self, code, part, *words):
        result = harness.run(*words)
        text = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, code, text)
        self.assertIn(part, text)

    def test_rounds(self):
        states = {}
        for step in range(1, 5):
            states[step] = self.save(step)
            told = self.once("--memory", "1G")
            self.assertEqual(told["copied"], 1)
        one = told["held_bytes"] // 4
        told = self.once("--memory", str(3 * one + one // 2))
        self.assertEqual((told["steps"], told["dropped"]), ([3, 4], 2))
        self.assertEqual(self.steps(self.store), [1, 2, 3, 4])
        self.assertEqual(self.newest(), (4, states[4]))
        # The machine restarts: memory is empty, and gets the newest of the disk.
        for name in os.listdir(self.memory):
            path = os.path.join(self.memory, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        self.assertEqual(self.once("--memory", "1G")["steps"], [4])
        states[5] = self.save(5)
        self.assertEqual(self.newest(), (5, states[5]))
        self.assertEqual(self.once("--memory", "1G")["copied"], 1)
        # And the disk is lost: memory has the newest.
        shutil.rmtree(self.store)
        self.assertEqual(self.newest(), (5, states[5]))

    def test_killed_savers(self):
        last = (1, self.save(1))
        self.once("--memory", "1G")
        path = self.write("big.safetensors", safetensors(2, 400000))
        big = read_bytes(path)
        begin = time.monotonic()
        self.ok("checkpoint", "save", path, "--store", self.path("measured"), "--step", 2, "-q")
        took = time.monotonic() - begin
        shown = set()
        for attempt in range(8):
            step = 2 + attempt
            child = subprocess.Popen([harness.QUERN, "checkpoint", "save", path, "--store", self.memory, "--step",
                                      str(step), "-q"], stderr=subprocess.DEVNULL)
            try:
                child.wait(timeout=took * (attempt + 1) / 8)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
            child.wait(timeout=60)
            found = self.newest()
            self.assertIn(found, (last, (step, big)))
            shown.add(found == last)
            last = found
            self.once("--memory", "1G")
            self.assertEqual(self.steps(self.store)[-1], last[0])

    def test_runs_and_is_killed(self):
        keeper = subprocess.Popen([harness.QUERN, *self.words("--memory", "1G")], stderr=subprocess.PIPE)
        self.addCleanup(lambda: (keeper.kill(), keeper.wait(), keeper.stderr.close()))
        self.assertIn(self.memory.encode(), keeper.stderr.readline())
        self.fails(2, "another keeper looks", *self.words("--memory", "1G", "--once"))
        other = tempfile.mkdtemp(prefix="quern-test-", dir=SHARED)
        self.addCleanup(shutil.rmtree, other, ignore_errors=True)
        self.fails(2, "another keeper copies", "checkpoint", "keeper", "--store", self.store, "--memory", "1G", "--once",
                   "--dir", other)
        state = self.save(1)
        deadline = time.monotonic() + 60
        while not os.path.isdir(self.store) or self.steps(self.store) != [1]:
            self.assertLess(time.monotonic(), deadline, "the keeper copies nothing")
        keeper.send_signal(signal.SIGKILL)
        keeper.wait(timeout=60)
        state = self.save(2)
        self.assertEqual(self.newest(), (2, state))
        self.assertEqual(self.once("--memory", "1G")["copied"], 1)

    def test_backlog(self):
        # The keeper was away while the trainer saved; the folder is as the trainer made it.
        os.chmod(self.memory, 0o755)
        for step in range(1, 6):
            self.save(step)
        told = self.once("--memory", "1")
        self.assertEqual((told["copied"], told["dropped"], told["lost"], told["steps"]), (5, 4, [], [5]))
        self.assertEqual(self.steps(self.store), [1, 2, 3, 4, 5])
        self.assertEqual(os.stat(self.memory).st_mode & 0o777, 0o700)

    def test_store_of_another_run(self):
        path = self.write("other.safetensors", safetensors(9))
        self.ok("checkpoint", "save", path, "--store", self.store, "--step", 9, "-q")
        self.save(1)
        self.save(2)
        result = harness.run(*self.words("--memory", "1", "--once", "-q"))
        told = result.stderr.decode()
        self.assertEqual(result.returncode, 1, told)
        self.assertIn("different runs", told)
        self.assertIn("step 1 had to leave memory", told)

    def test_interrupted(self):
        keeper = subprocess.Popen([harness.QUERN, *self.words("--memory", "1G")], stderr=subprocess.PIPE)
        self.addCleanup(lambda: (keeper.kill(), keeper.wait(), keeper.stderr.close()))
        self.assertIn(self.memory.encode(), keeper.stderr.readline())
        keeper.send_signal(signal.SIGTERM)
        told = keeper.communicate(timeout=60)[1].decode()
        self.assertEqual(keeper.returncode, 130)
        self.assertIn("stays in " + self.memory, told)
        self.once("--memory", "1G")

    def told(self, child, part):
        """What it prints up to a line with that part, its end, or two minutes."""
        out, end = "", time.monotonic() + 120
        while part not in out and select.select([child.stderr], [], [], max(end - time.monotonic(), 0))[0]:
            new = os.read(child.stderr.fileno(), 4096)
            if not new:
                break
            out += new.decode(errors="replace")
        return out

    def test_peers_give_back_what_a_lost_member_had(self):
        folder = tempfile.mkdtemp(prefix="quern-test-", dir="/tmp")  # paths of sockets are short
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        sockets = [word for i in range(3) for word in ("--peer", os.path.join(folder, str(i)))]
        memories = [tempfile.mkdtemp(prefix="quern-test-", dir=SHARED) for _ in range(3)]
        for memory in memories:
            self.addCleanup(shutil.rmtree, memory, ignore_errors=True)

        def keeper(i):
            words = ["checkpoint", "keeper", "--store", self.path(f"disk{i}"), "--dir", memories[i], "--memory", "1G"]
            child = subprocess.Popen([harness.QUERN, *words, *sockets, "--member", str(i)], stderr=subprocess.PIPE)
            self.addCleanup(lambda: (child.kill(), child.wait(), child.stderr.close()))
            return child

        states = []
        for i, memory in enumerate(memories):
            path = self.write(f"member{i}.safetensors", safetensors(7 + i, 3000 * (i + 1)))
            self.ok("checkpoint", "save", path, "--store", memory, "--step", 5, "-q")
            states.append(read_bytes(path))
        children = [keeper(i) for i in range(3)]
        for child in children:
            told = self.told(child, "step 5 is safe")
            if "needs a build with ISA-L" in told:
                self.skipTest("this build has no ISA-L")
            self.assertIn("step 5 is safe", told)
        children[1].kill()
        children[1].wait(timeout=60)
        for folder in (memories[1], self.path("disk1")):
            shutil.rmtree(folder)
        again = keeper(1)
        self.assertIn("save to", self.told(again, "save to"))
        out = self.path("out.safetensors")
        self.ok("checkpoint", "load", "--store", memories[1], "-o", out, "-f", "-q")
        self.assertEqual(read_bytes(out), states[1])
        for part, *words in (("--member", *sockets), ("2 to 64", "--peer", "a", "--member", "0"),
                             ("twice", "--peer", "a", "--peer", "a", "--member", "0"), ("with --peer", "--member", "1"),
                             ("--once", *sockets, "--member", "0", "--once")):
            self.fails(1, part, *self.words("--memory", "1G", *words))

    def test_refusals(self):
        self.fails(1, "--memory", "checkpoint", "keeper", "--store", self.store)
        self.fails(1, "--json", *self.words("--memory", "1G", "--json"))
        self.fails(1, "--every", *self.words("--memory", "1G", "--every", "0"))
        os.chmod(self.memory, 0o755)
        self.fails(2, "nobody else", *self.words("--memory", "1G", "--once"))
        os.chmod(self.memory, 0o700)
        link = self.memory + ".link"
        os.symlink(self.memory, link)
        self.addCleanup(os.remove, link)
        self.fails(2, "no link", "checkpoint", "keeper", "--store", self.store, "--memory", "1G", "--once", "--dir", link)
        self.save(1)
        self.fails(1, "same folder", "checkpoint", "keeper", "--store", self.memory, "--memory", "1G", "--once", "--dir",
                   self.memory)
        with open("/proc/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1:3] for line in file]
        here = max((m for m in mounts if self.folder.name.startswith(m[0])), key=lambda m: len(m[0]))
        if here[1] != "tmpfs":
            self.fails(1, "tmpfs", "checkpoint", "keeper", "--store", self.store, "--memory", "1G", "--once", "--dir",
                       self.path("on_disk"))


if __name__ == "__main__":
    harness.main()
