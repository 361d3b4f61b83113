# quern checkpoint with every element type of safetensors, and with types that nobody knows yet: bytes come back.
import ctypes
import json
import os
import random
import struct

import harness
from harness import CliTest, read_bytes

# Bits of an element, as safetensors 0.8 has them; the last ones are no type of it.
BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
        "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4, "C64": 64, "I64": 64, "I32": 32, "I16": 16, "I8": 8,
        "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8, "C128": 128}
UNKNOWN = {"I4": 4, "U4": 4, "NF4": 4, "TF32": 32, "E8M23": 7, "\u03b2 type \"x\"": 12}


def tensors_of_every_type(step=0):
    """name -> (dtype, shape, bytes): a matrix, nothing, and a part that does not change with the step."""
    source = random.Random(31)
    out = {}
    for dtype, bits in {**BITS, **UNKNOWN}.items():
        values = bytearray(source.randbytes(24 * 40 * bits // 8))
        if dtype == "BOOL":
            values = bytearray(b & 1 for b in values)
        if step:
            values[step] ^= 1
        out["model." + dtype] = (dtype, [24, 40], bytes(values))
        out["empty." + dtype] = (dtype, [0, 3], b"")
        out["same." + dtype] = (dtype, [8], source.randbytes(bits))
    out["deep"] = ("F32", [2, 1, 3, 1, 1, 2, 1, 1, 1, 4], source.randbytes(2 * 3 * 2 * 4 * 4))
    out["deep.packed"] = ("F4", [2] * 11, source.randbytes(2 ** 10))
    out["scalar"] = ("C64", [], source.randbytes(8))
    return out


def file_of(tensors, metadata=None, separators=(",", ":"), padding=0):
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header, separators=separators).encode() + b" " * padding
    return struct.pack("<Q", len(text)) + text + data


class ElementTypes(CliTest):
    def setUp(self):
        super().setUp()
        self.store = self.path("store")

    def save(self, path, step, *words):
        self.ok("checkpoint", "save", path, "--store", self.store, "--step", step, "-q", *words)

    def load(self, *words):
        out = self.path("out.safetensors")
        self.ok("checkpoint", "load", "--store", self.store, "-o", out, "-f", "-q", *words)
        return read_bytes(out)

    def test_every_type_comes_back_byte_for_byte(self):
        for step, options in enumerate(({"metadata": {"format": "pt"}}, {"separators": (", ", ": "), "padding": 3},
                                        {"separators": (" ,", ":\t")}), 1):
            path = self.write(f"{step}.safetensors", file_of(tensors_of_every_type(step), **options))
            self.save(path, step, *(["--base", step - 1] if step > 1 else []), "--preset", "archive")
            self.assertEqual(self.load(), read_bytes(path))
        self.ok("checkpoint", "verify", "--store", self.store, "--full", "-q")
        self.ok("checkpoint", "compact", "--store", self.store, "--step", 3, "-q")
        self.assertEqual(self.load("--step", 3), read_bytes(path))
        info = self.json(self.ok("checkpoint", "info", "--store", self.store, "--step", 1, "--json"))
        for tensor in info["tensors"]:
            dtype, shape, _ = tensors_of_every_type()[tensor["name"]]
            self.assertEqual((tensor["dtype"], tensor["shape"]), (dtype, shape))
            self.assertTrue(tensor["exact"])
            self.assertIn(tensor["mode"], ("raw", "constant", "planes", "delta", "alias"))
        shown = self.ok("checkpoint", "info", "--store", self.store, "--step", 1).stdout.decode()
        self.assertIn("2x1x3x1x1x2x1x1x1x4", shown)

    def test_exponents_of_scales_and_parts_of_complex_numbers_are_coded_by_their_width(self):
        source = random.Random(5)
        scales = bytes(118 + source.getrandbits(1) + source.getrandbits(1) for _ in range(1 << 16))
        waves = struct.pack(f"<{1 << 14}f", *(source.gauss(0, 1) for _ in range(1 << 14)))
        path = self.write("a.safetensors", file_of({"scales": ("F8_E8M0", [256, 256], scales),
                                                    "waves": ("C64", [1 << 13], waves),
                                                    "codes": ("F4", [1 << 17], scales)}))
        self.save(path, 1)
        found = self.json(self.ok("checkpoint", "info", "--store", self.store, "--json"))["tensors"]
        stored = {t["name"]: t["stored_bytes"] / t["raw_bytes"] for t in found if t["mode"] != "alias"}
        self.assertLess(stored["scales"], 0.25)  # 1.5 bits a scale
        self.assertLess(stored["waves"], 0.93)  # as f32
        self.assertEqual(self.load(), read_bytes(path))

    def test_parts_of_a_checkpoint_keep_their_types(self):
        tensors = tensors_of_every_type()
        self.save(self.write("a.safetensors", file_of(tensors)), 1)
        for name in ("model.F4", "model.C64", "model.NF4", "deep", "model.F8_E8M0"):
            self.assertEqual(self.only_tensor(self.load("--tensor", name)), (name, tensors[name]))
        rows = self.only_tensor(self.load("--tensor", "model.C64", "--slice", "2:4,:"))
        self.assertEqual(rows, ("model.C64", ("C64", [2, 40], tensors["model.C64"][2][2 * 320:4 * 320])))
        self.refused(1, "leave --slice out", "checkpoint", "load", "--store", self.store, "--tensor", "model.F4",
                     "--slice", "0:2,:", "-o", self.path("x"))

    def only_tensor(self, data):
        size = struct.unpack("<Q", data[:8])[0]
        (name, entry), = json.loads(data[8:8 + size]).items()
        return name, (entry["dtype"], entry["shape"], data[8 + size:])

    def test_differences_are_told_in_values_or_in_bytes(self):
        one = {"c": ("C64", [2], struct.pack("<4f", 1, 2, 3, 4)), "e": ("F8_E8M0", [3], bytes([127, 130, 255])),
               "n": ("F8_E4M3FNUZ", [2], bytes([0x40, 0x80])), "u": ("NF4", [4], b"ab"), "t": ("F4", [4], b"xy")}
        two = {"c": ("C64", [2], struct.pack("<4f", 1, 2, 6, 8)), "e": ("F8_E8M0", [3], bytes([128, 130, 254])),
               "n": ("F8_E4M3FNUZ", [2], bytes([0x48, 0x80])), "u": ("NF4", [4], b"ac"), "t": ("F5", [4], b"xy")}
        self.save(self.write("a.safetensors", file_of(one)), 1)
        self.save(self.write("b.safetensors", file_of(two)), 2)
        found = self.json(self.ok("checkpoint", "diff", "--store", self.store, 1, 2, "--json"))["tensors"]
        seen = {t["name"]: (t["verdict"], t["differing"], t["not_comparable"], t["max_error"]) for t in found}
        self.assertEqual(seen, {"c": ("changed", 1, 0, 5.0), "e": ("changed", 2, 1, 1.0), "n": ("changed", 1, 0, 1.0),
                                "u": ("changed", 1, 1, 0), "t": ("reshaped", 0, 0, 0)})

    def test_sharded_files_and_back(self):
        path = self.write("a.safetensors", file_of(tensors_of_every_type(), metadata={"format": "pt"}))
        self.ok("checkpoint", "convert", path, "--shard-size", 8000, "-o", self.path("sharded"))
        index = self.path("sharded/model.safetensors.index.json")
        self.ok("checkpoint", "convert", index, "-o", self.path("whole.safetensors"))
        self.assertEqual(self.parts(read_bytes(self.path("whole.safetensors"))), self.parts(read_bytes(path)))
        self.save(index, 1)
        self.ok("checkpoint", "load", "--store", self.store, "-o", self.path("back"), "-q")
        for name in os.listdir(self.path("sharded")):
            self.assertEqual(read_bytes(self.path("back/" + name)), read_bytes(self.path("sharded/" + name)))

    def parts(self, data):
        size = struct.unpack("<Q", data[:8])[0]
        return {name: (e["dtype"], e["shape"], data[8 + size:][e["data_offsets"][0]:e["data_offsets"][1]])
                for name, e in json.loads(data[8:8 + size]).items() if name != "__metadata__"}

    def test_sizes_that_do_not_fit_are_refused(self):
        cases = [("F4", [3], b"ab"), ("F4", [4], b"abc"), ("F6_E2M3", [2], b"a"), ("F6_E3M2", [4], b"abcd"),
                 ("C64", [2], b"x" * 15), ("C128", [1], b"x" * 8), ("F8_E8M0", [3], b"ab"), ("", [1], b"a"),
                 ("a\0b", [1], b"a"), ("NF4", [2 ** 40, 2 ** 40], b"a"), ("F4", [2 ** 62, 0, 2 ** 62], b""), ("F32", [1] * 12, b"a")]
        for number, (dtype, shape, values) in enumerate(cases):
            bad = self.write(f"bad{number}.safetensors", file_of({"t": (dtype, shape, values)}))
            self.refused(3, "tensor 't'", "checkpoint", "save", bad, "--store", self.store, "--step", 1)
        self.refused(2, "no checkpoint store", "checkpoint", "ls", "--store", self.store)

    def test_files_of_the_safetensors_package(self):
        try:
            import safetensors
        except ImportError:
            self.skipTest("no safetensors package here")
        kinds = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
                 "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ",
                 "float8_e5m2fnuz": "F8_E5M2FNUZ", "float4_e2m1fn_x2": "F4", "complex64": "C64", "int64": "I64",
                 "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16",
                 "uint8": "U8", "bool": "BOOL"}
        source = random.Random(2)
        values = {name: source.randbytes(24 * 40 * BITS[kinds[name]] // 8) for name in kinds}
        held = {name: ctypes.create_string_buffer(data, len(data)) for name, data in values.items()}
        try:
            made = {name: safetensors.TensorSpec(dtype=name, shape=[24, 20 if "x2" in name else 40],
                                                 data_ptr=ctypes.addressof(held[name]), data_len=len(values[name]))
                    for name in kinds}
            data = safetensors.serialize(made, metadata={"format": "pt"})
        except Exception as problem:
            self.skipTest(f"this safetensors package does not write all types ({problem})")
        self.assertEqual({name: one["dtype"] for name, one in safetensors.deserialize(bytes(data))}, kinds)
        path = self.write("real.safetensors", bytes(data))
        self.save(path, 1)
        self.assertEqual(self.load(), read_bytes(path))
        self.ok("checkpoint", "convert", path, "-o", self.path("again.safetensors"))
        self.assertEqual(dict(safetensors.deserialize(read_bytes(self.path("again.safetensors")))),
                         dict(safetensors.deserialize(bytes(data))))


if __name__ == "__main__":
    harness.main()
