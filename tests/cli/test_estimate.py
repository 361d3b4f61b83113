# quern estimate: arrays that nobody would estimate, and models that are none. Each gets an answer with wide intervals and
# a note, or one line that says what to do.
import hashlib
import math
import os
import struct

from harness import CliTest, main, read_bytes, wave

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
CODECS = "lorenzo,stencil,lossless"


class Arrays(CliTest):
    def estimates(self, name, data, *words):
        path = self.write(name, data)
        found = self.json(self.ok("estimate", "--json", "--codec", CODECS, *words, path))
        self.assertGreater(len(found["estimates"]), 2)
        for one in found["estimates"]:
            for key, ends in (("ratio", "ratio"), ("psnr_db", "psnr"), ("ssim", "ssim")):
                if one[key] is None:
                    continue
                interval = [one[ends + "_low"], one[key], one[ends + "_high"]]
                self.assertTrue(all(map(math.isfinite, interval)), (name, key, one))
                self.assertEqual(interval, sorted(interval), (name, key))
        return found

    def test_strange_arrays_have_wide_intervals_and_a_note(self):
        floats = lambda values: struct.pack(f"{len(values)}f", *values)
        cases = {
            "same_20x30.f32": (floats([3.5] * 600), "no two valid values differ"),
            "nothing_20x30.f32": (floats([math.nan] * 600), "no two valid values differ"),
            "one_1.f32": (floats([1.5]), "no two valid values differ"),
            "few_3x4.i16": (struct.pack("12h", *range(12)), "so few values say little"),
        }
        for name, (data, note) in cases.items():
            found = self.estimates(name, data, "--at", "1e-3")
            self.assertTrue(any(note in text for text in found["notes"]), (name, found["notes"]))
            self.assertTrue(all(one["wide"] for one in found["estimates"]), name)

    def test_axes_of_1_and_infinite_values_are_estimated(self):
        values = wave(6000)
        values[7] = math.inf
        found = self.estimates("a_1x60x1x100.f32", values.tobytes(), "--at", "1e-3")
        self.assertFalse(any(one["wide"] for one in found["estimates"]))
        self.assertLess(found["range"], 1e6)

    def test_bounds_far_from_the_training_are_wide(self):
        found = self.estimates("a_60x100.f32", wave(6000).tobytes(), "--at", "1e6,1e-30")
        lossy = [one for one in found["estimates"] if one["codec"] != "lossless"]
        self.assertTrue(all(one["wide"] for one in lossy))
        self.assertTrue(any("outside those of the training" in text for text in found["notes"]))

    def test_no_values_are_refused(self):
        self.refused(1, "there is nothing to estimate", "estimate", self.write("a_0x5.f32", b""))


class Models(CliTest):
    def setUp(self):
        super().setUp()
        self.field = self.write("a_60x100.f32", wave(6000).tobytes())
        self.model = read_bytes(os.path.join(ROOT, "surrogate", "models", "quality.qmodel"))

    def test_models_that_cannot_be_used_say_why(self):
        whole = self.model
        inputs = 12  # where the version of the inputs stands
        self.assertEqual(struct.unpack_from("<I", whole, inputs), (2,))
        cases = {
            "cut": (whole[:1000], 3, "restore it from a copy, or train it again"),
            "altered": (whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:], 3, "its SHA-256 does not match"),
            "newer": (whole[:8] + b"\x09" + whole[9:], 3, "a newer quern wrote it"),
            "none": (b"text", 3, "name a file that quern train wrote"),
            "empty": (b"", 3, "no model"),
        }
        for name, (data, code, message) in cases.items():
            path = self.write(name + ".qmodel", data)
            self.refused(code, message, "estimate", "--model", path, self.field)
            self.refused(code, path, "estimate", "--model", path, self.field)  # and not the array
            self.refused(code, message, "model", "verify", path)

    def test_models_for_other_inputs_are_refused(self):
        for version, message in ((1, "takes inputs of version 1, and"), (9, "takes inputs of version 9; this quern")):
            body = self.model[:12] + struct.pack("<I", version) + self.model[16:-32]
            path = self.write(f"v{version}.qmodel", body + hashlib.sha256(body).digest())
            self.refused(3, message, "estimate", "--model", path, self.field)


if __name__ == "__main__":
    main()
