# quern checkpoint: files in and out byte for byte, damage, refusals, several processes, and processes that are killed.
import json
import os
import random
import resource
import signal
import struct
import subprocess
import time
import unittest

import harness
from harness import CliTest, read_bytes

SIZES = {"F32": 4, "BF16": 2, "I64": 8, "U8": 1}


def safetensors(tensors, metadata=None, separators=(",", ":"), padding=0):
    """tensors: name -> (dtype, shape, bytes)."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header, separators=separators).encode() + b" " * padding
    return struct.pack("<Q", len(text)) + text + data


def raw_file(header, data=b""):
    text = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(text)) + text + data


def state(step, count=3000):
    """A parameter with its moments; neighbouring steps differ a little."""
    source = random.Random(11)
    base = [source.gauss(0, 1) for _ in range(count)]
    drift = random.Random(step)

    def values(scale, change):
        return struct.pack(f"<{count}f", *(scale * (x + change * step * drift.random()) for x in base))

    w = values(1.0, 1e-6)
    half = b"".join(struct.pack("<H", (b + 0x7FFF + (b >> 16 & 1)) >> 16) for (b,) in struct.iter_unpack("<I", w))
    return {"param.w": ("F32", [count], w), "exp_avg.w": ("F32", [count], values(0.01, 1e-3)),
            "exp_avg_sq.w": ("F32", [count], values(1e-4, 1e-3).replace(b"\x80", b"\x00")),
            "model.w": ("BF16", [count], half), "empty": ("F32", [0, 3], b""), "step": ("I64", [], struct.pack("<q", step))}


class Checkpoint(CliTest):
    def setUp(self):
        super().setUp()
        self.store = self.path("store")

    def step_file(self, step, **options):
        return self.write(f"step{step}.safetensors", safetensors(state(step), {"step": str(step)}, **options))

    def save(self, step, *words, **options):
        path = self.step_file(step)
        result = self.ok("checkpoint", "save", path, "--store", self.store, "--step", step, "--json", *words, **options)
        return path, self.json(result)

    def load(self, *words):
        out = self.path("out.safetensors")
        self.ok("checkpoint", "load", "--store", self.store, "-o", out, "-f", *words)
        return read_bytes(out)

    def everything(self):
        found = {}
        for folder, _, names in os.walk(self.store):
            for name in names:
                path = os.path.join(folder, name)
                found[os.path.relpath(path, self.store)] = read_bytes(path)
        return found

    def test_files_come_back_byte_for_byte(self):
        for step, options in enumerate(({}, {"separators": (", ", ": ")}, {"padding": 5}, {"separators": (" ,", ":\t")}), 1):
            path = self.step_file(step, **options)
            words = ["--base", step - 1] if step > 1 else []
            self.ok("checkpoint", "save", path, "--store", self.store, "--step", step, "-q", *words)
            self.assertEqual(self.load(), read_bytes(path))
            self.assertEqual(self.load("--step", step), read_bytes(path))
        self.ok("checkpoint", "verify", "--store", self.store, "--full", "-q")
        found = self.json(self.ok("checkpoint", "ls", "--store", self.store, "--json"))["checkpoints"]
        self.assertEqual([c["step"] for c in found], [1, 2, 3, 4])
        info = self.json(self.ok("checkpoint", "info", "--store", self.store, "--step", 1, "--json"))
        by_name = {t["name"]: t for t in info["tensors"]}
        self.assertEqual(by_name["model.w"]["mode"], "derived")
        self.assertEqual(by_name["model.w"]["companion"], "param.w")
        self.assertEqual(by_name["exp_avg_sq.w"]["role"], "exp_avg_sq")

    def test_parts_of_a_checkpoint(self):
        self.save(1)
        part = self.load("--tensor", "exp_avg*", "--tensor", "step")
        (length,) = struct.unpack("<Q", part[:8])
        header = json.loads(part[8:8 + length])
        self.assertEqual(list(header), ["exp_avg.w", "exp_avg_sq.w", "step"])
        begin, end = header["exp_avg.w"]["data_offsets"]
        self.assertEqual(part[8 + length + begin:8 + length + end], state(1)["exp_avg.w"][2])
        self.refused(1, "no such tensor", "checkpoint", "load", "--store", self.store, "--tensor", "nothing*", "-o",
                     self.path("x"))

    def test_sharded_models(self):
        one = self.write("model.safetensors", safetensors(state(3), {"format": "pt"}))
        folder = self.path("sharded")
        self.ok("checkpoint", "convert", one, "--shard-size", 13000, "-o", folder)
        index = os.path.join(folder, "model.safetensors.index.json")
        self.assertGreater(len(os.listdir(folder)), 3)
        again = self.path("again.safetensors")
        self.ok("checkpoint", "convert", index, "-o", again)
        a, b = read_bytes(one), read_bytes(again)
        self.assertEqual(a[8 + struct.unpack("<Q", a[:8])[0]:], b[8 + struct.unpack("<Q", b[:8])[0]:])
        self.ok("checkpoint", "save", index, "--store", self.store, "--step", 3, "-q")
        self.ok("checkpoint", "load", "--store", self.store, "-o", self.path("back"))
        for name in os.listdir(folder):
            self.assertEqual(read_bytes(os.path.join(self.path("back"), name)), read_bytes(os.path.join(folder, name)))
        os.remove(os.path.join(folder, sorted(os.listdir(folder))[0]))
        self.refused(2, "open", "checkpoint", "convert", index, "-o", self.path("no"))

    def test_differences(self):
        self.save(1)
        self.save(2, "--base", 1)
        found = self.json(self.ok("checkpoint", "diff", "--store", self.store, 1, 2, "--json"))["tensors"]
        by_name = {t["name"]: t for t in found}
        self.assertEqual(by_name["empty"]["verdict"], "equal")
        a = struct.unpack("<3000f", state(1)["param.w"][2])
        b = struct.unpack("<3000f", state(2)["param.w"][2])
        self.assertEqual(by_name["param.w"]["max_error"], max(abs(x - y) for x, y in zip(a, b)))
        self.assertEqual(by_name["param.w"]["differing"], sum(x != y for x, y in zip(a, b)))
        self.assertEqual(by_name["step"]["max_error"], 1.0)

    def test_refusals_leave_the_store_alone(self):
        path, _ = self.save(1)
        before = self.everything()
        good = '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        hostile = {
            "short": b"abc", "long": struct.pack("<Q", 1 << 60) + b"{}", "limit": struct.pack("<Q", 100_000_001) + b"{}",
            "twice": raw_file(good[:-1] + "," + good[1:], b"\0" * 8), "gap": raw_file(good, b"\0" * 5),
            "type": raw_file(good.replace("F32", "F33"), b"\0" * 4), "deep": raw_file("{\"a\":" + "[" * 100000, b""),
            "overflow": raw_file(good.replace("[1]", "[9223372036854775807,4]"), b"\0" * 4),
            "overlap": raw_file(good[:-1] + ',"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"\0" * 4),
        }
        for name, data in hostile.items():
            bad = self.write(name + ".safetensors", data)
            self.refused(3, name + ".safetensors", "checkpoint", "save", bad, "--store", self.store, "--step", 2)
        for words, code, part in (
                (["--step", 1], 1, "already"),
                (["--step", 2, "--base", 7], 1, "step 7"),
                (["--step", 2, "--preset", "balanced"], 1, "lossless"),
                (["--step", 2, "--preset", "x"], 1, "unknown"),
                (["--step", 2, "--parity", "0+2"], 1, "--parity"),
                (["--step", 2, "--parity", "60+20"], 1, "64"),
                (["--step", "x"], 1, "--step"),
                ([], 1, "--step"),
                (["--step", 2, "--writer", "0/2"], 1, "--group")):
            self.refused(code, part, "checkpoint", "save", path, "--store", self.store, *words)
        self.refused(1, "a.bin", "checkpoint", "save", path, "--store", self.store, "--step", 2,
                     "--role", "a.bin")
        two = self.write("other.safetensors", safetensors({"param.w": ("F32", [2], b"\0" * 8)}))
        self.refused(1, "shape", "checkpoint", "save", two, "--store", self.store, "--step", 2, "--base", 1)
        self.refused(1, "twice", "checkpoint", "save", path, two, "--store", self.store, "--step", 2)
        self.refused(2, "open", "checkpoint", "save", self.path("absent"), "--store", self.store, "--step", 2)
        self.refused(2, "no checkpoint store", "checkpoint", "ls", "--store", self.path("nowhere"))
        self.refused(1, "step 9", "checkpoint", "load", "--store", self.store, "--step", 9, "-o", self.path("x"))
        self.refused(2, "exists", "checkpoint", "load", "--store", self.store, "-o", path)
        self.assertEqual(self.everything(), before)
        self.ok("checkpoint", "save", path, "--store", self.store, "--step", 2, "--dry-run", "-q")
        self.assertEqual(self.everything(), before)

    def test_a_full_disk_is_an_error_and_no_more(self):
        self.save(1)
        before = self.everything()

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

        path = self.step_file(2)
        result = harness.run("checkpoint", "save", path, "--store", self.store, "--step", 2, preexec=limit)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(b"part-0000", result.stderr)
        self.assertEqual(self.everything(), before)

    def test_damage_is_told_and_mended_where_there_is_parity(self):
        self.save(1)
        path, _ = self.save(2, "--parity", "4+2")
        whole = self.everything()
        parts = sorted(name for name in whole if "part-" in name or "parity-" in name)
        (mine,) = {os.path.dirname(name) for name in parts if "parity-" in name}
        os.remove(os.path.join(self.store, mine, "part-0002"))
        with open(os.path.join(self.store, mine, "part-0000"), "r+b") as f:
            f.seek(5000)
            f.write(b"\xff\x00\xff")
        result = harness.run("checkpoint", "verify", "--store", self.store, "--full", "--json")
        self.assertEqual(result.returncode, 3)
        found = json.loads(result.stdout)["checkpoints"]
        self.assertEqual([c["good"] for c in found], [True, False])
        # The newest that is whole is used, and what was passed over is said.
        result = self.ok("checkpoint", "load", "--store", self.store, "-o", self.path("old"))
        self.assertIn(b"step 2 was passed over", result.stderr)
        self.assertEqual(read_bytes(self.path("old")), read_bytes(self.path("step1.safetensors")))
        self.ok("checkpoint", "repair", "--store", self.store, "-q")
        self.assertEqual(self.everything(), whole)
        self.assertEqual(self.load(), read_bytes(path))
        for name in ("part-0000", "part-0001", "parity-0000"):
            os.remove(os.path.join(self.store, mine, name))
        result = harness.run("checkpoint", "repair", "--store", self.store)
        self.assertEqual(result.returncode, 3)

    def test_collection_and_compaction(self):
        for step in (1, 2, 3):
            self.save(step, *(["--base", step - 1] if step > 1 else []))
        done = self.json(self.ok("checkpoint", "gc", "--store", self.store, "--keep", 1, "--json"))
        self.assertEqual(done["removed"], [])
        self.ok("checkpoint", "compact", "--store", self.store, "--step", 3)
        done = self.json(self.ok("checkpoint", "gc", "--store", self.store, "--keep", 1, "--json"))
        self.assertEqual([c["step"] for c in done["removed"]], [2, 1])
        self.assertEqual(self.load(), read_bytes(self.path("step3.safetensors")))
        self.assertEqual(len(os.listdir(os.path.join(self.store, "data"))), 1)
        self.assertEqual(os.listdir(os.path.join(self.store, "tmp")), [])

    def test_several_processes_make_one_checkpoint(self):
        processes = []
        for i in range(3):
            path = self.write(f"rank{i}.safetensors", safetensors({f"w{i}": ("F32", [500], os.urandom(2000))}))
            processes.append(subprocess.Popen([harness.QUERN, "checkpoint", "save", path, "--store", self.store, "--step",
                                               "8", "--group", "run8", "--writer", f"{i}/3", "-q"], stderr=subprocess.PIPE))
        for process in processes:
            _, text = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, text)
        self.ok("checkpoint", "verify", "--store", self.store, "--full", "-q")
        self.ok("checkpoint", "load", "--store", self.store, "-o", self.path("ranks"))
        for i in range(3):
            name = f"rank{i}.safetensors"
            self.assertEqual(read_bytes(os.path.join(self.path("ranks"), name)), read_bytes(self.path(name)))

    def test_processes_killed_at_any_moment(self):
        self.save(1)
        source = random.Random(harness.SEED)
        start = time.monotonic()
        self.save(2, "--base", 1)
        span = max(0.02, time.monotonic() - start)
        killed, published = 0, [1, 2]
        for step in range(3, 43):
            path = self.step_file(step)
            words = ["--base", str(published[-1])] if step % 2 else ["--parity", "2+1"]
            process = subprocess.Popen([harness.QUERN, "checkpoint", "save", path, "--store", self.store, "--step",
                                        str(step), "-q", *words], stderr=subprocess.DEVNULL)
            time.sleep(source.random() * span * 1.1)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            result = self.json(self.ok("checkpoint", "verify", "--store", self.store, "--full", "--json"))
            self.assertTrue(result["good"], result)
            there = [c["step"] for c in result["checkpoints"]]
            self.assertEqual(there[:len(published)], published)
            self.assertIn(there[len(published):], ([], [step]))
            published = there
            self.assertEqual(self.load(), read_bytes(self.path(f"step{published[-1]}.safetensors")))
        print(f"{killed} of 40 saves were killed, {len(published) - 2} were published")
        self.assertGreater(killed, 10)
        self.save(99)
        self.ok("checkpoint", "gc", "--store", self.store, "-q")
        self.assertEqual(os.listdir(os.path.join(self.store, "tmp")), [])
        self.assertEqual(len(os.listdir(os.path.join(self.store, "data"))), len(published) + 1)


if __name__ == "__main__":
    harness.main()
