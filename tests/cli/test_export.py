# quern checkpoint export: names, types, shards, what is refused, and a folder that is whole or as it was.
import json
import math
import os
import resource
import struct

import harness
from harness import CliTest, read_bytes
from test_element_types import file_of


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def bf16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


STATE = {"model.a": ("F32", [2, 2], floats(0.1, -3.3, 1e-3, 7)), "model.b": ("F64", [2], struct.pack("<2d", 0.7, -1e300)),
         "model.n": ("I64", [], struct.pack("<q", 5)), "model.h": ("F16", [3], struct.pack("<3e", 1, 0.5, 65504)),
         "model.m": ("F8_E8M0", [2], b"ab"), "model.q": ("F4", [4], b"xy"), "opt.exp_avg.a": ("F32", [2, 2], floats(1, 2, 3, 4))}


class Export(CliTest):
    def setUp(self):
        super().setUp()
        self.store = self.path("store")
        self.save(STATE, 5)

    def save(self, tensors, step):
        path = self.write(f"{step}.safetensors", file_of(tensors))
        self.ok("checkpoint", "save", path, "--store", self.store, "--step", step, "-q")

    def export(self, name, *words):
        return self.json(self.ok("checkpoint", "export", self.store, "--hf", self.path(name), "--json", *words))

    def model(self, folder):
        """name -> (dtype, shape, bytes), and the metadata of the files."""
        out, metadata = {}, {}
        for name in sorted(os.listdir(self.path(folder))):
            if not name.endswith(".safetensors"):
                continue
            data = read_bytes(self.path(os.path.join(folder, name)))
            size = struct.unpack("<Q", data[:8])[0]
            header = json.loads(data[8:8 + size])
            metadata[name] = header.pop("__metadata__")
            for tensor, e in header.items():
                self.assertNotIn(tensor, out)
                out[tensor] = (e["dtype"], e["shape"], data[8 + size:][e["data_offsets"][0]:e["data_offsets"][1]])
        return out, metadata

    def test_everything_as_it_is(self):
        done = self.export("out")
        self.assertEqual((done["step"], done["tensors"], done["cast"], done["inexact"]), (5, 7, 0, 0))
        self.assertEqual(self.model("out"), (STATE, {"model.safetensors": {"format": "pt"}}))
        self.assertEqual(os.listdir(self.path("out")), ["model.safetensors"])

    def test_weights_alone_under_the_model_s_names_in_another_type(self):
        done = self.export("a/b/out", "--only", "model.*", "--strip-prefix", "model.", "--dtype", "bf16")
        self.assertEqual((done["tensors"], done["cast"]), (6, 3))
        model, _ = self.model("a/b/out")
        self.assertEqual(model["a"], ("BF16", [2, 2], b"".join(map(bf16, (0.1, -3.3, 1e-3, 7)))))
        self.assertEqual(model["b"], ("BF16", [2], bf16(0.7) + bytes([0x80, 0xFF])))
        self.assertEqual(model["h"], ("BF16", [3], bf16(1) + bf16(0.5) + bf16(65504)))
        for name in "nmq":
            self.assertEqual(model[name], STATE["model." + name])
        said = self.ok("checkpoint", "export", "--store", self.store, "--hf", self.path("c"), "--dtype", "bf16")
        self.assertIn("tensor 'model.b': 1 values are too large for BF16", said.stderr.decode())
        f32, f16 = self.path("f32"), self.path("f16")
        self.ok("checkpoint", "export", self.store, "--hf", f32, "--tensor", "model.h", "-q", "--dtype", "f32")
        self.assertEqual(self.model("f32")[0], {"model.h": ("F32", [3], floats(1, 0.5, 65504))})
        self.ok("checkpoint", "export", self.store, "--hf", f16, "--only", "model.a", "-q", "--dtype", "f16")
        self.assertEqual(self.model("f16")[0]["model.a"][2], struct.pack("<4e", 0.1, -3.3, 1e-3, 7))

    def test_shards_and_their_index(self):
        tensors = {f"t{i}": ("F32", [10], floats(*range(i, i + 10))) for i in range(7)}
        self.save(tensors, 6)
        done = self.export("out", "--shard-size", 100)
        names = [f"model-{i:05}-of-00004.safetensors" for i in range(1, 5)]
        self.assertEqual(done["files"], names + ["model.safetensors.index.json"])
        self.assertEqual(sorted(os.listdir(self.path("out"))), sorted(done["files"]))
        index = json.loads(read_bytes(self.path("out/model.safetensors.index.json")))
        self.assertEqual(index["metadata"]["total_size"], 280)
        self.assertEqual(index["weight_map"], {f"t{i}": names[i // 2] for i in range(7)})
        model, metadata = self.model("out")
        self.assertEqual(model, tensors)
        self.assertEqual(metadata, {name: {"format": "pt"} for name in names})
        self.ok("checkpoint", "convert", self.path("out/model.safetensors.index.json"), "-o", self.path("one"))

    def test_a_model_that_is_there_is_replaced_only_when_asked(self):
        self.export("out", "--shard-size", 10)
        self.write("out/config.json", b"{}")
        before = sorted(os.listdir(self.path("out")))
        self.refused(1, "--force", "checkpoint", "export", self.store, "--hf", self.path("out"))
        self.assertEqual(sorted(os.listdir(self.path("out"))), before)
        self.export("out", "--force")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["config.json", "model.safetensors"])
        self.export("out", "-f", "--shard-size", 10)
        self.assertEqual(sorted(os.listdir(self.path("out"))), before)
        self.assertEqual(self.model("out")[0], STATE)

    def test_refusals_say_what_to_type(self):
        cases = [(["--only", "none*"], "quern checkpoint info"), (["--dtype", "int8"], "bf16, f16 or f32"),
                 (["--strip-prefix", "model.a"], "no name is left"), (["--shard-size", "0"], "write a size"),
                 (["--step", 9], "step 9")]
        for words, part in cases:
            self.refused(1, part, "checkpoint", "export", self.store, "--hf", self.path("no"), *words)
        self.save({"a.x": STATE["model.a"], "b.x": STATE["model.a"]}, 7)
        self.refused(1, "'x'", "checkpoint", "export", self.store, "--hf", self.path("no"), "--strip-prefix", "a.",
                     "--strip-prefix", "b.")
        self.assertFalse(os.path.exists(self.path("no")))
        self.refused(2, "no checkpoint store", "checkpoint", "export", self.path("nowhere"), "--hf", self.path("no"))
        self.write("file", b"")
        self.refused(2, "file", "checkpoint", "export", self.store, "--hf", self.path("file"))
        self.refused(1, "--hf", "checkpoint", "export", self.store)

    def test_equal_tensors_that_are_not_one_are_both_written(self):
        same = {"norm1.weight": ("F32", [4], floats(1, 1, 1, 1)), "norm2.weight": ("F32", [4], floats(1, 1, 1, 1))}
        self.save(same, 8)
        self.export("out")
        self.assertEqual(self.model("out")[0], same)

    def test_wrappers_are_mentioned(self):
        self.save({"module." + name: tensor for name, tensor in STATE.items()}, 8)
        said = self.ok("checkpoint", "export", self.store, "--hf", self.path("out")).stderr.decode()
        self.assertIn("every name begins with 'module.'", said)

    def test_a_failure_leaves_the_folder_as_it_was(self):
        self.save({"w": ("F32", [100000], os.urandom(400000))}, 9)
        self.export("out", "--step", 5)
        before = read_bytes(self.path("out/model.safetensors"))

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

        result = harness.run("checkpoint", "export", self.store, "--hf", self.path("out"), "-f", preexec=limit)
        self.assertNotEqual(result.returncode, 0)
        if result.returncode > 0:
            self.assertEqual(os.listdir(self.path("out")), ["model.safetensors"])
        self.assertEqual(read_bytes(self.path("out/model.safetensors")), before)

    def test_values_with_loss_are_told(self):
        tensors = {"model.w": ("F32", [80, 80], floats(*(math.sin(i * i) for i in range(6400))))}
        path = self.write("w.safetensors", file_of(tensors))
        self.ok("checkpoint", "save", path, "--store", self.store, "--step", 10, "-q", "--preset", "balanced")
        said = self.ok("checkpoint", "export", self.store, "--hf", self.path("out")).stderr.decode()
        self.assertIn("1 of the tensors were saved with loss", said)


if __name__ == "__main__":
    harness.main()
