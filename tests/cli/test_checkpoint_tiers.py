# quern checkpoint tiers: copies in further folders, what survives the loss of each, and processes that are killed.
import os
import random
import shutil
import signal
import struct
import subprocess
import time

import harness
from harness import CliTest, read_bytes


def safetensors(step, count=3000):
    source = random.Random(step)
    values = struct.pack(f"<{count}f", *(source.gauss(0, 1) for _ in range(count)))
    header = f'{{"w":{{"dtype":"F32","shape":[{count}],"data_offsets":[0,{len(values)}]}}}}'.encode()
    return struct.pack("<Q", len(header)) + header + values


class Tiers(CliTest):
    def setUp(self):
        super().setUp()
        self.store, self.tier = self.path("local"), self.path("shared/run")
        self.states = {}

    def save(self, step, *words, count=3000, store=None):
        path = self.write(f"step{step}.safetensors", safetensors(step, count))
        self.states[step] = read_bytes(path)
        self.ok("checkpoint", "save", path, "--store", store or self.store, "--step", step, "-q", *words)

    def tiers(self, work, *words, tiers=None):
        folders = [word for tier in tiers or [self.tier] for word in ("--tier", tier)]
        return self.ok("checkpoint", "tiers", work, "--store", self.store, *folders, *words)

    def steps(self, store):
        return [c["step"] for c in self.json(self.ok("checkpoint", "ls", "--store", store, "--json"))["checkpoints"]]

    def load(self, store, *words):
        out = self.path("out.safetensors")
        result = self.ok("checkpoint", "load", "--store", store, "-o", out, "-f", "--json", *words)
        return self.json(result), read_bytes(out)

    def test_drain_list_evict_promote(self):
        self.save(1)
        self.save(2, "--base", 1)
        self.save(3)
        self.save(4, "--parity", "2+1")
        told = self.json(self.tiers("drain", "--every", 2, "--json"))["tiers"][0]
        # Step 1 is no multiple; it is there for step 2 alone, if that needs it.
        self.assertGreaterEqual(told["copied"], 2)
        self.assertIsNone(told["problem"])
        self.assertEqual([step for step in self.steps(self.tier) if step != 1], [2, 4])
        self.ok("checkpoint", "verify", "--store", self.tier, "--full", "-q")
        self.assertEqual(self.json(self.tiers("drain", "--every", 2, "--json"))["tiers"][0]["copied"], 0)
        for step in (2, 4):
            self.assertEqual(self.load(self.tier, "--step", step)[1], self.states[step])
        listed = self.json(self.tiers("list", "--json"))["checkpoints"]
        self.assertEqual([c["states"][0] for c in listed], ["whole"] * 4)
        self.assertEqual([c["states"][1] for c in listed if c["step"] in (2, 3, 4)], ["whole", "-", "whole"])
        self.assertIn("tier 1", self.tiers("list").stdout.decode())

        before = self.steps(self.store)
        would = self.json(self.tiers("evict", "--every", 2, "--keep", 1, "--dry-run", "--json"))
        self.assertEqual(self.steps(self.store), before)
        done = self.json(self.tiers("evict", "--every", 2, "--keep", 1, "--json"))
        self.assertEqual(sorted(done["removed"]), sorted(would["removed"]))
        # No tier has step 3; step 1 may have come there with step 2.
        self.assertEqual([step for step in self.steps(self.store) if step != 1], [3, 4])
        self.tiers("promote", "--step", 2, "-q")
        self.assertEqual(self.load(self.store, "--step", 2)[1], self.states[2])
        self.assertEqual(self.load(self.store)[0]["step"], 4)  # it keeps its place in the order

    def test_what_the_tier_lacks_is_never_removed(self):
        for step in (1, 2, 3):
            self.save(step)
        result = self.tiers("evict", "--keep", 1)
        self.assertEqual(self.steps(self.store), [1, 2, 3])
        self.assertIn("does not have it", result.stderr.decode())
        self.tiers("drain", "-q")
        name = next(n for n in os.listdir(self.tier + "/manifests") if n.startswith("000000000001"))
        part = f"{self.tier}/data/{name.split('-')[1]}/part-0000"
        with open(part, "r+b") as file:
            file.truncate(os.path.getsize(part) - 1)
        self.tiers("evict", "--keep", 1, "-q")
        self.assertEqual(self.steps(self.store), [1, 3])
        # What is damaged there is replaced.
        self.tiers("drain", "-q")
        self.ok("checkpoint", "verify", "--store", self.tier, "--full", "-q")

    def test_the_newest_that_any_folder_has(self):
        self.save(1)
        self.save(2)
        self.tiers("drain", "-q")
        self.save(3)
        told, data = self.load(self.store, "--tier", self.tier)
        self.assertEqual((told["step"], told["store"], data), (3, self.store, self.states[3]))
        name = next(n for n in os.listdir(self.store + "/manifests") if n.startswith("000000000003"))
        part = f"{self.store}/data/{name.split('-')[1]}/part-0000"
        with open(part, "r+b") as file:
            file.seek(6000)
            byte = file.read(1)
            file.seek(6000)
            file.write(bytes([byte[0] ^ 1]))
        self.assertEqual(self.load(self.store, "--tier", self.tier)[0]["step"], 2)
        shutil.rmtree(self.store)
        told, data = self.load(self.store, "--tier", self.tier)
        self.assertEqual((told["step"], told["store"], data), (2, self.tier, self.states[2]))
        # A store that begins anew would be found behind the tier.
        self.save(9)
        self.refused(1, "promote", "checkpoint", "tiers", "drain", "--store", self.store, "--tier", self.tier)
        shutil.rmtree(self.store)
        self.tiers("promote", "-q")
        self.save(9)
        self.tiers("drain", "-q")
        self.assertEqual(self.load(self.tier)[0]["step"], 9)

    def test_one_tier_that_fails_does_not_stop_the_others(self):
        self.save(1)
        blocked = self.write("file", b"x") + "/tier"
        result = harness.run("checkpoint", "tiers", "drain", "--store", self.store, "--tier", blocked, "--tier", self.tier,
                             "--json")
        self.assertEqual(result.returncode, 2)
        told = self.json(result)["tiers"]
        self.assertIn(blocked, told[0]["problem"])
        self.assertEqual((told[1]["copied"], told[1]["problem"]), (1, None))

    def test_killed_in_the_middle_whole_or_absent(self):
        for step in (1, 2, 3):
            self.save(step, count=100_000)
        for delay in (0.0, 0.05, 0.15, 0.3):
            process = subprocess.Popen([harness.QUERN, "checkpoint", "tiers", "drain", "--store", self.store, "--tier",
                                        self.tier, "--throttle", "2M", "-q"])
            time.sleep(delay)
            process.kill()
            process.wait()
            if os.path.isdir(self.tier + "/manifests"):
                self.ok("checkpoint", "verify", "--store", self.tier, "--full", "-q")
        self.tiers("drain", "-q")
        self.assertEqual(self.steps(self.tier), [1, 2, 3])
        self.ok("checkpoint", "verify", "--store", self.tier, "--full", "-q")
        self.ok("checkpoint", "gc", "--store", self.tier, "-q")
        self.assertEqual(os.listdir(self.tier + "/tmp"), [])

    def test_interrupted(self):
        self.save(1, count=200_000)
        process = subprocess.Popen([harness.QUERN, "checkpoint", "tiers", "drain", "--store", self.store, "--tier", self.tier,
                                    "--throttle", "1K", "-q"], stderr=subprocess.PIPE)
        end = time.monotonic() + 30
        while not os.path.isdir(self.tier + "/tmp") and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(self.steps(self.tier), [])

    def test_refusals(self):
        self.save(1)
        base = ["checkpoint", "tiers"]
        folders = ["--store", self.store, "--tier", self.tier]
        self.refused(1, "list, drain, promote or evict", *base, "burn", *folders)
        self.refused(1, "--tier", *base, "drain", "--store", self.store)
        self.refused(1, "--tier", *base, "drain", "--store", self.store, "--tier", self.store)
        link, relative = self.path("link"), os.path.relpath(self.store)
        os.symlink(self.store, link)
        for same in (link, relative, self.store + "/../local"):
            for work in ("list", "drain", "promote", "evict"):
                words = ["--keep", 1] if work == "evict" else []
                self.refused(1, "same folder", *base, work, "--store", self.store, "--tier", same, *words)
        self.assertEqual(self.steps(self.store), [1])
        self.refused(1, "--keep", *base, "evict", *folders)
        self.refused(1, "--keep", *base, "drain", *folders, "--keep", 3)
        self.refused(1, "--every", *base, "drain", *folders, "--every", 0)
        self.refused(2, "no whole checkpoint", *base, "promote", *folders, "-q")
        self.refused(2, "no checkpoint store", *base, "drain", "--store", self.path("none"), "--tier", self.tier)


if __name__ == "__main__":
    harness.main()
