# quern checkpoint: files in and out byte for byte, damage, refusals, several processes, and processes that are killed.
import json
import math
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


ROWS, COLUMNS = 80, 64


def matrix_state(step):
    """A matrix with moments large enough for presets, a vector that stays exact, and a copy in two bytes."""
    source, drift = random.Random(5), random.Random(step)
    count = ROWS * COLUMNS

    def floats(values):
        return struct.pack(f"<{count}f", *values)

    w = floats([source.gauss(0, 0.02) + 1e-4 * step * drift.gauss(0, 1) for _ in range(count)])
    scale = [math.exp(source.gauss(0, 1)) for _ in range(COLUMNS)]
    v = [1e-8 * scale[i % COLUMNS] * math.exp(0.2 * source.gauss(0, 1) + 0.01 * step * drift.random()) for i in range(count)]
    m = [math.sqrt(x) * source.gauss(0, 0.5) for x in v]
    v[7], v[9] = 0.0, 1e-45
    half = b"".join(struct.pack("<H", (b + 0x7FFF + (b >> 16 & 1)) >> 16) for (b,) in struct.iter_unpack("<I", w))
    shape = [ROWS, COLUMNS]
    return {"param.w": ("F32", shape, w), "exp_avg.w": ("F32", shape, floats(m)),
            "exp_avg_sq.w": ("F32", shape, floats(v)), "model.w": ("BF16", shape, half),
            "param.b": ("F32", [64], w[:256])}


def tensors_of(data):
    """name -> bytes of a safetensors file."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    return {name: data[8 + length + one["data_offsets"][0]:8 + length + one["data_offsets"][1]]
            for name, one in header.items() if name != "__metadata__"}


def as_floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


GPT_RUN = os.path.join(os.environ.get("QUERN_TEST_DATA", ""), "weights", "gpt-run")


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

    def test_folders_above_a_store_are_made(self):
        path = self.step_file(1)
        os.mkdir(self.path("there"))
        for store in (self.path("a/b/c"), self.path("there/d"), self.path("e//f/"), self.path("g/../h/./i")):
            self.ok("checkpoint", "save", path, "--store", store, "--step", 1, "-q")
            self.ok("checkpoint", "verify", "--store", store, "--full", "-q")
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.path("there"))
        self.ok("checkpoint", "save", path, "--store", "x/y", "--step", 1, "-q")
        self.ok("checkpoint", "verify", "--store", self.path("there/x/y"), "--full", "-q")
        # A file in the way is no folder; and reading makes nothing.
        self.write("file", b"")
        self.refused(2, "make the folder", "checkpoint", "save", path, "--store", self.path("file/b/c"), "--step", 1)
        self.refused(2, "no checkpoint store is here", "checkpoint", "ls", "--store", self.path("z/y"))
        self.assertFalse(os.path.exists(self.path("z")))

    def test_loading_says_which_step_and_goes_to_standard_output(self):
        first, _ = self.save(1)
        second, _ = self.save(2, "--base", 1)
        out = self.path("out.safetensors")
        told = self.ok("checkpoint", "load", "--store", self.store, "-o", out).stderr.decode()
        self.assertRegex(told, r"^quern: step 2: [\d.]+ KiB to .*out\.safetensors\n$")
        result = self.ok("checkpoint", "load", "--store", self.store, "--step", 1, "-o", "-")
        self.assertEqual(result.stdout, read_bytes(first))
        self.assertIn(b"step 1", result.stderr)
        result = self.ok("checkpoint", "load", "--store", self.store, "--json", "-o", "-")
        self.assertEqual(result.stdout, read_bytes(second))
        self.assertEqual(json.loads(result.stderr)["step"], 2)
        self.assertFalse(os.path.exists("-"))
        self.assertEqual(self.ok("checkpoint", "load", "--store", self.store, "-q", "-f", "-o", out).stderr, b"")

    def test_a_checkpoint_is_open_to_nobody_who_may_not_read_its_files(self):
        old = os.umask(0o022)
        self.addCleanup(os.umask, old)
        for mode in (0o600, 0o640, 0o644):
            path = self.step_file(1)
            os.chmod(path, mode)
            store, out = self.path(f"store{mode:o}"), self.path(f"out{mode:o}")
            self.ok("checkpoint", "save", path, "--store", store, "--step", 1, "-q")
            allowed = mode & ~0o022
            for folder, folders, names in os.walk(store):
                for name in names:
                    self.assertEqual(os.stat(os.path.join(folder, name)).st_mode & 0o777 & ~allowed, 0, (oct(mode), name))
                for name in folders + ["."]:
                    found = os.stat(os.path.join(folder, name)).st_mode & 0o777
                    self.assertEqual(found, allowed | 0o700 | (allowed & 0o044) >> 2, (oct(mode), name))
            self.ok("checkpoint", "load", "--store", store, "-o", out, "-q")
            self.assertEqual(os.stat(out).st_mode & 0o777, allowed)
            self.assertEqual(read_bytes(out), read_bytes(path))
        # A model in several files: the most closed one counts.
        os.chmod(path, 0o644)
        self.ok("checkpoint", "convert", path, "--shard-size", 13000, "-o", self.path("sharded"))
        shards = sorted(os.listdir(self.path("sharded")))
        os.chmod(os.path.join(self.path("sharded"), shards[-1]), 0o600)
        self.ok("checkpoint", "save", os.path.join(self.path("sharded"), "model.safetensors.index.json"), "--store",
                self.path("shut"), "--step", 1, "-q")
        self.assertEqual(os.stat(self.path("shut")).st_mode & 0o777, 0o700)

    def test_the_newest_step_as_base(self):
        # The first has no base, the next the one before it.
        for step in (1, 2, 5):
            self.ok("checkpoint", "save", self.step_file(step), "--store", self.store, "--step", step, "--base", "newest", "-q")
        differences = []
        for step in (1, 2, 5):
            info = self.json(self.ok("checkpoint", "info", "--store", self.store, "--step", step, "--json"))
            differences.append(sum(tensor["mode"] == "delta" for tensor in info["tensors"]))
        self.assertEqual(differences[0], 0)
        self.assertGreater(differences[1], 0)
        self.assertGreater(differences[2], 0)
        for step in (1, 2, 5):
            self.assertEqual(self.load("--step", step), read_bytes(self.step_file(step)))
        self.refused(1, "--base newer", "checkpoint", "save", self.step_file(6), "--store", self.store, "--step", 6, "--base",
                     "newer")

    def test_a_step_is_replaced_only_when_asked(self):
        self.save(1)
        other = self.write("other.safetensors", safetensors(state(9)))
        self.refused(1, "save with replace", "checkpoint", "save", other, "--store", self.store, "--step", 1)
        self.ok("checkpoint", "save", other, "--store", self.store, "--step", 1, "--replace", "-q")
        self.assertEqual(self.load(), read_bytes(other))
        self.assertEqual(len(os.listdir(os.path.join(self.store, "manifests"))), 1)

    def test_tags_and_what_stays(self):
        losses = {10: "3.5", 20: "1.25", 30: "2", 40: "nan", 50: "2.5", 60: "2.25"}
        for step, loss in losses.items():
            self.ok("checkpoint", "save", self.step_file(step), "--store", self.store, "--step", step, "--tag", f"loss={loss}",
                    "--tag", "run=a=b", "-q")
        listed = self.json(self.ok("checkpoint", "ls", "--store", self.store, "--json"))["checkpoints"]
        self.assertEqual([c["tags"] for c in listed], [{"loss": loss, "run": "a=b"} for loss in losses.values()])
        self.assertEqual([c["generation"] for c in listed], [1, 2, 3, 4, 5, 6])
        self.assertIn("loss=1.25", self.ok("checkpoint", "ls", "--store", self.store).stdout.decode())
        for bad, words in (("2", "N:TAG"), ("0:loss", "at least 1"), ("2:none", "'none'")):
            self.refused(1, words, "checkpoint", "gc", "--store", self.store, "--keep-best", bad)
        self.refused(1, "NAME=TEXT", "checkpoint", "save", self.step_file(70), "--store", self.store, "--step", 70, "--tag", "x")
        gc = ["checkpoint", "gc", "--store", self.store, "--keep", 1, "--keep-every", 30, "--keep-best", "1:loss"]
        planned = self.json(self.ok(*gc, "--dry-run", "--json"))
        done = self.json(self.ok(*gc, "--json"))
        self.assertEqual([c["step"] for c in planned["removed"]], [c["step"] for c in done["removed"]])
        left = [c["step"] for c in self.json(self.ok("checkpoint", "ls", "--store", self.store, "--json"))["checkpoints"]]
        self.assertEqual(left, [20, 30, 60])
        self.assertEqual(self.load("--step", 20), read_bytes(self.step_file(20)))

    def test_tensors_that_do_not_fit_the_base_are_stored_whole(self):
        self.save(1)
        two = self.write("other.safetensors", safetensors({"param.w": ("F32", [2], b"\0" * 8)}))
        told = self.ok("checkpoint", "save", two, "--store", self.store, "--step", 2, "--base", 1).stderr.decode()
        self.assertIn("tensor 'param.w' stored whole: dtype or shape is not that of the base, step 1", told)
        self.assertEqual(self.load(), read_bytes(two))

    def test_damaged_values_give_the_checkpoint_before_and_say_so(self):
        self.save(1)
        self.save(2)
        newest = self.json(self.ok("checkpoint", "ls", "--store", self.store, "--json"))["checkpoints"][-1]
        part = os.path.join(self.store, "data", newest["id"], "part-0000")
        content = bytearray(read_bytes(part))
        content[5000] ^= 1
        with open(part, "wb") as file:
            file.write(content)
        out = self.path("out.safetensors")
        told = self.ok("checkpoint", "load", "--store", self.store, "-o", out).stderr.decode()
        self.assertIn("step 2 was passed over", told)
        self.assertIn("repair", told)
        self.assertEqual(read_bytes(out), read_bytes(self.step_file(1)))
        self.refused(3, "damaged", "checkpoint", "load", "--store", self.store, "--step", 2, "-f", "-o", out)
        self.assertEqual(read_bytes(out), read_bytes(self.step_file(1)))

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

    def test_slices(self):
        rows = b"".join(struct.pack("<h", i) for i in range(6 * 5 * 4))
        path = self.write("m.safetensors", safetensors({"m": ("I16", [6, 5, 4], rows), "v": ("F32", [3], bytes(12))}))
        self.ok("checkpoint", "save", path, "--store", self.store, "--step", 1, "-q")
        for box, numbers in (("2:4,:,1:3", [(i * 5 + j) * 4 + k for i in (2, 3) for j in range(5) for k in (1, 2)]),
                             ("5:6,0:5,0:4", range(100, 120)), (":,:,:", range(120)), ("3,4,1", [77]), ("2:2,:,:", [])):
            part = tensors_of(self.load("--tensor", "m", "--slice", box))
            self.assertEqual([n for n, in struct.iter_unpack("<h", part["m"])], list(numbers), box)
        self.refused(1, "tensor 'm'", "checkpoint", "load", "--store", self.store, "--tensor", "m", "--slice", "0:7,:,:",
                     "-o", self.path("x"))
        self.refused(1, "tensor 'v'", "checkpoint", "load", "--store", self.store, "--slice", ":,:,:", "-o", self.path("x"))

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
            "type": raw_file(good.replace("F32", "F32\\u0000"), b"\0" * 4), "deep": raw_file("{\"a\":" + "[" * 100000, b""),
            "overflow": raw_file(good.replace("[1]", "[9223372036854775807,4]"), b"\0" * 4),
            "overlap": raw_file(good[:-1] + ',"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"\0" * 4),
        }
        for name, data in hostile.items():
            bad = self.write(name + ".safetensors", data)
            self.refused(3, name + ".safetensors", "checkpoint", "save", bad, "--store", self.store, "--step", 2)
        for words, code, part in (
                (["--step", 1], 1, "already"),
                (["--step", 2, "--base", 7], 1, "step 7"),
                (["--step", 2, "--policy", self.path("nowhere.json")], 2, "nowhere.json"),
                (["--step", 2, "--policy", self.write("p.json", b'{"rules":[{"mode":"zip"}]}')], 1, "p.json: rule 1"),
                (["--step", 2, "--base", 1, "--replay", self.write("r.json", b"{}")], 1, "r.json: 'betas'"),
                (["--step", 2, "--replay", self.path("r.json")], 1, "--base"),
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
        self.refused(1, "twice", "checkpoint", "save", path, two, "--store", self.store, "--step", 2)
        self.refused(2, "open", "checkpoint", "save", self.path("absent"), "--store", self.store, "--step", 2)
        self.refused(2, "no checkpoint store", "checkpoint", "ls", "--store", self.path("nowhere"))
        self.refused(1, "step 9", "checkpoint", "load", "--store", self.store, "--step", 9, "-o", self.path("x"))
        self.refused(2, "exists", "checkpoint", "load", "--store", self.store, "-o", path)
        self.assertEqual(self.everything(), before)
        self.ok("checkpoint", "save", path, "--store", self.store, "--step", 2, "--dry-run", "-q")
        self.assertEqual(self.everything(), before)

    def check_bounds(self, was, back, weights, first, second):
        w, rw = as_floats(was["param.w"]), as_floats(back["param.w"])
        mean = sum(w) / len(w)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in w) / len(w))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(w, rw)), weights * deviation * (1 + 1e-12))
        v, rv = as_floats(was["exp_avg_sq.w"]), as_floats(back["exp_avg_sq.w"])
        m, rm = as_floats(was["exp_avg.w"]), as_floats(back["exp_avg.w"])
        for i, (a, b) in enumerate(zip(v, rv)):
            if a == b:
                continue
            self.assertGreater(b, 0, i)
            self.assertLessEqual(abs(math.log(b / a)) / 2, second * (1 + 1e-12), i)
        for i, (a, b) in enumerate(zip(m, rm)):
            self.assertLessEqual(abs(a - b), first * math.sqrt(rv[i]) * (1 + 1e-12), i)
        self.assertEqual(back["param.b"], was["param.b"])

    def test_presets_keep_their_bounds_along_a_chain(self):
        for preset, bounds in (("moments", (0, .05, .05)), ("balanced", (1e-3, .05, .05)), ("archive", (1e-2, .2, .1))):
            self.store = self.path("store-" + preset)
            for step in range(1, 5):
                path = self.write("matrix.safetensors", safetensors(matrix_state(step)))
                words = ["--base", step - 1] if step > 1 else []
                saved = self.json(self.ok("checkpoint", "save", path, "--store", self.store, "--step", step, "--preset",
                                          preset, "--json", *words))
                modes = {one["name"]: one["mode"] for one in saved["each"]}
                self.assertEqual((modes["exp_avg.w"], modes["exp_avg_sq.w"]), ("updq", "logq"))
                self.assertEqual(modes["param.w"] == "ebq", preset != "moments")
                lossy = {(kind["role"], kind["bound"], kind["unit"]) for kind in saved["lossy"]}
                w_bound, m_bound, v_bound = bounds
                self.assertEqual(lossy - {("param", None, None)}, {("exp_avg", m_bound, "sqrt(v)"), ("exp_avg_sq", v_bound, "ln sqrt(v)")} |
                                 ({("param", w_bound, "std")} if w_bound else set()))
                self.assertEqual(sum(kind["tensors"] for kind in saved["lossy"]), saved["with_loss"])
                self.assertEqual(saved["with_loss"] + saved["exact"], saved["tensors"])
                self.assertEqual(modes["model.w"], "derived")
                self.check_bounds(tensors_of(read_bytes(path)), tensors_of(self.load("--step", step)), *bounds)
                for one in saved["each"]:
                    if one["bound"] is not None:
                        self.assertLessEqual(one["worst"], one["bound"])
            whole = tensors_of(self.load("--step", 4))
            part = tensors_of(self.load("--step", 4, "--tensor", "exp_avg.*"))
            self.assertEqual(list(part), ["exp_avg.w"])
            self.assertEqual(part["exp_avg.w"], whole["exp_avg.w"])
            found = self.json(self.ok("checkpoint", "diff", "--store", self.store, 3, 4, "--json"))["tensors"]
            a, b = as_floats(tensors_of(self.load("--step", 3))["param.w"]), as_floats(whole["param.w"])
            worst = {t["name"]: t["max_error"] for t in found}["param.w"]
            self.assertEqual(worst, max(abs(x - y) for x, y in zip(a, b)))
            info = self.json(self.ok("checkpoint", "info", "--store", self.store, "--step", 4, "--json"))
            one = {t["name"]: t for t in info["tensors"]}["exp_avg.w"]
            self.assertEqual((one["companion"], one["bound"]), ("exp_avg_sq.w", bounds[1]))
            self.ok("checkpoint", "compact", "--store", self.store, "--step", 4, "-q")
            self.assertEqual(tensors_of(self.load("--step", 4)), whole)
            self.ok("checkpoint", "gc", "--store", self.store, "--keep", 1, "-q")
            self.assertEqual(tensors_of(self.load()), whole)
            self.ok("checkpoint", "verify", "--store", self.store, "--full", "-q")

    def test_damage_to_what_lost_something_is_mended(self):
        path = self.write("matrix.safetensors", safetensors(matrix_state(1)))
        self.ok("checkpoint", "save", path, "--store", self.store, "--step", 1, "--preset", "balanced", "--parity", "2+1",
                "-q")
        whole, back = self.everything(), self.load()
        part = os.path.join(self.store, min(name for name in whole if "part-" in name))
        with open(part, "r+b") as f:
            f.seek(4096 + 200)
            f.write(b"\xff\x00\xff")
        self.assertEqual(harness.run("checkpoint", "verify", "--store", self.store, "--full").returncode, 3)
        self.ok("checkpoint", "repair", "--store", self.store, "-q")
        self.assertEqual(self.everything(), whole)
        self.assertEqual(self.load(), back)

    def test_policies_and_dry_runs(self):
        path = self.write("matrix.safetensors", safetensors(matrix_state(1), {"lr": "0.001"}))
        policy = self.write("policy.json", json.dumps({
            "preset": "moments",
            "rules": [{"name": "exp_avg.*", "mode": "exact"},
                      {"role": "param", "min_rank": 2, "dtype": "F32", "mode": "ebq", "bound": 0.5, "unit": "rate"}]}).encode())
        self.save(7)
        before = self.everything()
        words = ["checkpoint", "save", path, "--store", self.store, "--step", 1, "--policy", policy]
        told = self.ok(*words, "--dry-run")
        self.assertIn(b"of 0.0005 absolute", told.stderr)
        self.assertIn(b"ln sqrt(v)", told.stderr)
        self.assertIn(b"not saved", told.stderr)
        dry = self.json(self.ok(*words, "--dry-run", "--json"))
        self.assertEqual(self.everything(), before)
        wet = self.json(self.ok(*words, "--json"))
        for key in ("each", "with_loss"):
            self.assertEqual(dry[key], wet[key])
        parts = [told["output_bytes"] - told["manifest_bytes"] for told in (dry, wet)]  # names of stores pack differently
        self.assertEqual(parts[0], parts[1])
        back, was = tensors_of(self.load("--step", 1)), tensors_of(read_bytes(path))
        self.assertEqual(back["exp_avg.w"], was["exp_avg.w"])
        worst = max(abs(a - b) for a, b in zip(as_floats(was["param.w"]), as_floats(back["param.w"])))
        self.assertLessEqual(worst, 0.0005)
        one = {t["name"]: t for t in wet["each"]}["param.w"]
        self.assertEqual((one["worst_absolute"], one["worst"], one["unit"]), (worst, worst, "absolute"))
        other = {name: one for name, one in matrix_state(2).items() if name != "exp_avg_sq.w"}
        told = self.ok("checkpoint", "save", self.write("other.safetensors", safetensors(other)), "--store", self.store,
                       "--step", 2, "--preset", "archive")
        self.assertIn(b"'exp_avg.w' kept exactly: updq: no second moment", told.stderr)

    @unittest.skipUnless(os.path.isdir(GPT_RUN), "no checkpoints of a run: set QUERN_TEST_DATA")
    def test_a_real_run_reaches_its_ratios(self):
        def state(step):
            return os.path.join(GPT_RUN, f"step{step:05}.safetensors")

        raw = 12 * 328704
        for preset, direct, ten, hundred in (("moments", 2.85, 0, 0), ("balanced", 5.2, 7.5, 6.1), ("archive", 7.9, 14, 10)):
            self.store = self.path("store-" + preset)
            for step, floor in ((400, direct), (410, ten), (500, hundred)):
                words = ["--base", 400] if step > 400 else []
                saved = self.json(self.ok("checkpoint", "save", state(step), "--store", self.store, "--step", step,
                                          "--preset", preset, "--json", *words))
                self.assertGreaterEqual(raw / saved["output_bytes"], floor, (preset, step))
        self.store = self.path("store-replay")
        rule = self.write("adamw.json", json.dumps({
            "optimizer": "adamw", "order": "fused", "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1,
            "groups": [{"max_rank": 1, "weight_decay": 0}]}).encode())
        self.ok("checkpoint", "save", state(400), "--store", self.store, "--step", 400, "-q")
        gradients = os.path.join(GPT_RUN, "grad00401.safetensors")
        saved = self.json(self.ok("checkpoint", "save", state(401), gradients, "--store", self.store, "--step", 401,
                                  "--base", 400, "--replay", rule, "--json"))
        self.assertEqual(saved["replayed"], 21)
        self.assertGreaterEqual(raw / saved["output_bytes"], 9.8)
        self.ok("checkpoint", "load", "--store", self.store, "-o", self.path("back"))
        for path in (state(401), gradients):
            self.assertEqual(read_bytes(os.path.join(self.path("back"), os.path.basename(path))), read_bytes(path))
        # Another rule: differences, and it is said why.
        told = self.ok("checkpoint", "save", state(410), gradients, "--store", self.store, "--step", 410, "--base", 400,
                       "--replay", rule)
        self.assertIn(b"does not lead from the base", told.stderr)
        self.ok("checkpoint", "load", "--store", self.store, "--step", 410, "--tensor", "param*", "-o", self.path("w"))
        was = tensors_of(read_bytes(state(410)))
        for name, values in tensors_of(read_bytes(self.path("w"))).items():
            self.assertEqual(values, was[name])

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
