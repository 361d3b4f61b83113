# quern checkpoint place: what is chosen, against arithmetic of its own; and a store on nodes that are lost.
import itertools
import json
import math
import os
import shutil

import harness
from harness import CliTest, read_bytes
from test_checkpoint_tiers import safetensors


def loss(chances, most):
    """Chance of more than `most`, by all subsets."""
    total = 0.0
    for lost in itertools.product((0, 1), repeat=len(chances)):
        if sum(lost) > most:
            total += math.prod(p if gone else 1 - p for p, gone in zip(chances, lost))
    return total


class Place(CliTest):
    def setUp(self):
        super().setUp()
        self.store = self.path("run")

    def nodes(self, count=6, name="nodes.json", folders=True, **changes):
        rows = []
        for i in range(count):
            row = {"name": f"n{i}", "capacity": 10**9 * (i + 1), "write": 1e8, "read": 2e8,
                   "yearly_failure_rate": 0.01 * (i + 1)}
            if folders:
                row["folder"] = self.path(f"nodes/n{i}")
                os.makedirs(row["folder"], exist_ok=True)
            row.update(changes.get(f"n{i}", {}))
            rows.append(row)
        return self.write(name, json.dumps({"nodes": rows}).encode()), rows

    def fails(self, code, *words):
        result = harness.run(*words)
        text = result.stderr.decode(errors="replace") + result.stdout.decode(errors="replace")
        self.assertEqual(result.returncode, code, (words, text))
        return text

    def place(self, *words):
        return self.json(self.ok("checkpoint", "place", *words, "--json"))

    def save(self, step):
        path = self.write(f"step{step}.safetensors", safetensors(step))
        self.ok("checkpoint", "save", path, "--store", self.store, "--step", step, "-q")
        return read_bytes(path)

    def load(self, step):
        out = self.path("out.safetensors")
        self.ok("checkpoint", "load", "--store", self.store, "--step", step, "-o", out, "-f", "-q")
        return read_bytes(out)

    def test_plan_meets_target(self):
        path, rows = self.nodes(8, folders=False)
        for target, days in ((0.99, 365.25), (0.99999, 365.25), (0.9999999, 30)):
            for scheduler in ("min-storage", "least-used", "balanced", "saturation"):
                plan = self.place(path, "--size", "100M", "--target", target, "--days", days, "--scheduler", scheduler)
                chosen = [next(r for r in rows if r["name"] == one["name"]) for one in plan["nodes"]]
                self.assertEqual(len({r["name"] for r in chosen}), plan["data"] + plan["parity"])
                self.assertGreaterEqual(plan["piece_bytes"] * plan["data"], 100 * 1024**2)
                chances = [1 - math.exp(-r["yearly_failure_rate"] * days / 365.25) for r in chosen]
                self.assertAlmostEqual(plan["loss"] / loss(chances, plan["parity"]), 1, delta=1e-6)
                self.assertLessEqual(plan["loss"], 1 - target)
        told = self.ok("checkpoint", "place", path, "--size", "100M").stdout.decode()
        self.assertIn("may be lost", told)

    def test_store_survives_nodes(self):
        path, _ = self.nodes(6)
        plan = self.place(path, "--size", "64K", "--target", "0.999", "--store", self.store)
        names = [one["name"] for one in plan["nodes"]]
        m = plan["parity"]
        self.assertGreaterEqual(plan["data"], 2)
        states = {step: self.save(step) for step in (1, 2)}
        for name in names:
            held = [f for _, _, files in os.walk(self.path(f"nodes/{name}")) for f in files if f.startswith("pa")]
            self.assertEqual(len(held), 2, name)
        for name in names[:m]:
            shutil.rmtree(self.path(f"nodes/{name}"))
        self.fails(3, "checkpoint", "verify", "--store", self.store)
        told = self.ok("checkpoint", "repair", "--store", self.store).stderr.decode()
        self.assertIn(f"node '{names[0]}' is not there", told)
        for step, state in states.items():
            self.assertEqual(self.load(step), state)
        self.ok("checkpoint", "verify", "--store", self.store, "--full", "-q")
        # No new checkpoint goes where a node is away; another choice makes room for it.
        step3 = self.write("step3.safetensors", safetensors(3))
        self.assertIn(f"node '{names[0]}'",
                      self.fails(2, "checkpoint", "save", step3, "--store", self.store, "--step", 3))
        left, _ = self.nodes(6, "left.json")
        self.place(left, "--size", "64K", "--target", "0.9", "--store", self.store)
        states[3] = self.save(3)
        for step, state in states.items():
            self.assertEqual(self.load(step), state)

    def test_too_many_lost(self):
        path, _ = self.nodes(5)
        plan = self.place(path, "--size", "64K", "--target", "0.99", "--store", self.store)
        self.save(1)
        for one in plan["nodes"][:plan["parity"] + 1]:
            shutil.rmtree(one["folder"])
        self.assertIn("part-000", self.fails(3, "checkpoint", "repair", "--store", self.store))
        self.assertNotEqual(0, harness.run("checkpoint", "load", "--store", self.store, "-o",
                                           self.path("out.safetensors")).returncode)
        self.assertFalse(os.path.exists(self.path("out.safetensors")))

    def test_own_folder_lost(self):
        path, _ = self.nodes(5)
        plan = self.place(path, "--size", "64K", "--target", "0.99", "--store", self.store)
        state = self.save(1)
        shutil.rmtree(self.store)
        os.mkdir(self.store)
        node = plan["nodes"][0]["folder"]
        inside = os.path.join(node, os.listdir(node)[0], "placement.json")
        shutil.copy(inside, self.store)
        self.assertIn("--adopt", self.fails(1, "checkpoint", "repair", "--store", self.store, "-q"))
        self.ok("checkpoint", "place", "--adopt", "--store", self.store)
        self.ok("checkpoint", "repair", "--store", self.store, "-q")
        self.assertEqual(self.load(1), state)

    def test_copied_folder_only_reads(self):
        path, _ = self.nodes(5)
        self.place(path, "--size", "64K", "--target", "0.99", "--store", self.store)
        state = self.save(1)
        first = self.store
        self.store = self.path("copy")
        shutil.copytree(first, self.store)
        self.assertEqual(self.load(1), state)
        step2 = self.write("step2.safetensors", safetensors(2))
        for words in (("save", step2, "--step", 2), ("gc", "--remove", 1), ("repair",)):
            self.assertIn("--adopt", self.fails(1, "checkpoint", *words, "--store", self.store))
        self.fails(1, "checkpoint", "place", path, "--size", "64K", "--target", "0.99", "--store", self.store)
        self.assertTrue(self.place("--adopt", "--store", self.store)["adopted"])
        self.save(3)
        self.store = first
        self.assertIn("--adopt", self.fails(1, "checkpoint", "gc", "--remove", 1, "--store", self.store))
        self.assertEqual(self.load(1), state)
        self.assertIn("--store", self.fails(1, "checkpoint", "place", "--adopt"))
        self.assertIn("NODES", self.fails(1, "checkpoint", "place", path, "--adopt", "--store", self.store))

    def test_refusals(self):
        path, _ = self.nodes(4)
        for words, part in ((("--size", "1M", "--target", "1"), "--target"),
                            (("--size", "1M", "--target", "nan"), "--target"),
                            (("--size", "1M", "--days", "0"), "--days"),
                            (("--size", "1M", "--scheduler", "best"), "saturation"),
                            (("--size", "1M", "--seed", "1"), "--simulate"),
                            (("--simulate", "0"), "--simulate"),
                            (("--simulate", "5", "--size", "1M"), "--simulate"),
                            ((), "--size")):
            self.assertIn(part, self.fails(1, "checkpoint", "place", path, *words))
        self.assertIn("no choice of nodes", self.fails(4, "checkpoint", "place", path, "--size", "100G"))
        self.assertIn("nowhere.json", self.fails(2, "checkpoint", "place", self.path("nowhere.json"), "--size", "1M"))
        bad = self.write("bad.json", b'{"nodes": [{"name": "a"}]}')
        self.assertIn("node 'a'", self.fails(1, "checkpoint", "place", bad, "--size", "1M"))
        bare, _ = self.nodes(4, "bare.json", folders=False)
        self.assertIn("folder", self.fails(1, "checkpoint", "place", bare, "--size", "1M", "--store", self.store))
        # One folder under two names.
        os.symlink(self.path("nodes/n0"), self.path("nodes/again"))
        twice, _ = self.nodes(2, "twice.json", n1={"folder": self.path("nodes/again")})
        self.assertIn("node 'n", self.fails(1, "checkpoint", "place", twice, "--size", "1K", "--target", "0.9", "--store",
                                            self.store))
        gone, _ = self.nodes(2, "gone.json", n1={"folder": self.path("nodes/gone")})
        self.assertIn("gone", self.fails(2, "checkpoint", "place", gone, "--size", "1K", "--target", "0.9", "--store",
                                         self.store))

    def test_simulation(self):
        path, _ = self.nodes(14, folders=False)
        first = self.place(path, "--simulate", "40", "--seed", "3")
        self.assertEqual(first, self.place(path, "--simulate", "40", "--seed", "3"))
        self.assertEqual([one["scheduler"] for one in first["schedulers"]],
                         ["min-storage", "least-used", "balanced", "saturation", "RS(4,2)", "RS(10,4)"])
        for one in first["schedulers"]:
            self.assertLessEqual(one["items"], 40)
            self.assertLessEqual(one["stored_bytes"], sum(10**9 * (i + 1) for i in range(14)))
        self.assertIn("RS(10,4)", self.ok("checkpoint", "place", path, "--simulate", "10").stdout.decode())


if __name__ == "__main__":
    harness.main()
