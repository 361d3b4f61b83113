# Models of codec autoencoder: training, streams with the model inside and outside, models that are missing or wrong.
import array
import hashlib
import os
import random

import harness
from harness import CliTest, run


def fronts(shape, step, seed=1):
    """Sharp fronts that move, and a little noise: a linear basis needs many numbers for them."""
    noise = random.Random(seed * 1000 + step)
    depth, rows, columns = shape
    values = array.array("f")
    for z in range(depth):
        for y in range(rows):
            for x in range(columns):
                d = (x + 0.6 * y - 0.8 * z - 1.7 * step) % 23 - 11.5
                values.append((1 if d > 0 else -1) * min(1, abs(d)) + 0.02 * noise.uniform(-1, 1))
    return values.tobytes()


class Models(CliTest):
    SHAPE = (24, 24, 24)

    def setUp(self):
        super().setUp()
        trainer = os.path.join(os.path.dirname(os.path.realpath(harness.QUERN)), "quern-train")
        if not os.path.exists(trainer):
            self.skipTest("this build has no quern-train")
        self.steps = [self.write(f"u_t{step}_24x24x24.f32", fronts(self.SHAPE, step)) for step in range(4)]
        self.model = self.path("u.qmodel")

    def train(self, *words):
        return self.ok("train", "autoencoder", "--data", *self.steps, "-o", self.model, *words)

    def test_a_model_serves_streams_inside_and_outside(self):
        table = self.train("--profile", "linear", "--components", 16)
        self.assertIn(b"outside", table.stdout)
        last, stream = self.steps[-1], self.path("u.qn")
        info = self.json(self.ok("model", "info", self.model, "--json"))
        self.assertEqual(info["block"], [8, 8, 8])
        with open(self.steps[0], "rb") as f:
            self.assertIn(hashlib.sha256(f.read()).hexdigest(), info["record"]["sha256"])
        common = ["--rel", "5e-2", "--codec", "autoencoder", "--model", self.model, last, "-o", stream, "-f"]
        done = self.ok("compress", *common, "--set", "embed=yes", "--json")
        self.assertGreater(self.json(done)["stencil_bytes"], 0)
        self.ok("verify", last, stream)
        inside = os.path.getsize(stream)
        self.ok("compress", *common, "--model-store", self.folder.name)
        self.assertLess(os.path.getsize(stream), inside)
        back = self.path("back.raw")
        missing = run("decompress", stream, "-o", back)
        self.assertEqual(missing.returncode, 6)
        self.assertIn(b"--model FILE", missing.stderr)
        self.assertFalse(os.path.exists(back))
        self.assertIn(b"autoencoder", self.ok("info", stream).stdout)
        self.ok("verify", last, stream, "--model", self.model)
        self.ok("decompress", stream, "-o", back, "--model-store", self.folder.name)
        # The half that decodes does as well, under the same id.
        half = self.path("half.qmodel")
        self.ok("model", "strip", self.model, "-o", half)
        self.assertEqual(self.json(self.ok("model", "info", half, "--json"))["id"], info["id"])
        self.assertLess(os.path.getsize(half), os.path.getsize(self.model))
        self.ok("decompress", stream, "-o", back, "-f", "--model", half)
        self.assertEqual(self.ok("model", "list", self.folder.name).stdout.decode().count(info["id"]), 2)
        self.refused(1, "can only decode", "compress", "--rel", "1e-2", "--codec", "autoencoder", "--model", half, last)

    def test_models_that_are_wrong_are_refused(self):
        self.train("--profile", "linear", "--components", 8)
        with open(self.model, "rb") as f:
            whole = f.read()
        changed = self.write("changed.qmodel", whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
        cut = self.write("cut.qmodel", whole[:-1])
        for model in (changed, cut):
            self.refused(3, "SHA-256", "model", "verify", model)
            self.refused(3, "SHA-256", "compress", "--rel", "1e-2", "--codec", "autoencoder", "--model", model, self.steps[0])
        self.refused(1, "goes with --codec autoencoder", "compress", "--rel", "1e-2", "--model", self.model, self.steps[0])
        self.refused(2, "no", "decompress", "--model-store", self.path("no"), self.steps[0])
        # Another model is no model: the stream's is missing.
        stream = self.path("u.qn")
        self.ok("compress", "--rel", "5e-2", "--codec", "autoencoder", "--model", self.model, "--set", "embed=no",
                self.steps[-1], "-o", stream)
        other = self.model
        self.model = self.path("other.qmodel")
        self.train("--profile", "linear", "--components", 9)
        self.assertEqual(run("decompress", stream, "-o", self.path("b.raw"), "--model", self.model).returncode, 6)
        self.ok("decompress", stream, "-o", self.path("b.raw"), "--model", other)

    def test_training_beats_principal_components(self):
        table = self.train("--latents", 4, "--components", 8, "--steps", 120, "--keep").stdout.decode()
        line = next(l for l in table.splitlines() if "principal components" in l and "dB" in l)
        linear, deep = (float(w.split()[-1]) for w in line.split(" dB")[:2])
        self.assertGreater(deep, linear + 0.3, table)
        info = self.json(self.ok("model", "info", self.model, "--json"))
        self.assertEqual([p["kind"] for p in info["predictors"]], ["principal components", "autoencoder"])
        stream = self.path("u.qn")
        self.ok("compress", "--rel", "5e-2", "--codec", "autoencoder", "--model", self.model, "--set", "embed=yes",
                self.steps[-1], "-o", stream, "--verify")

    def test_training_data_that_do_not_do(self):
        constant = self.write("c_24x24x24.f32", bytes(4 * 24**3))
        nan = self.write("n_24x24x24.f32", b"\x00\x00\xc0\x7f" * 24**3)
        small = self.write("s_3x4x5.f32", array.array("f", range(60)).tobytes())
        for file, why in ((constant, "no two different finite values"), (nan, "no two different finite values"),
                          (small, "too few steps")):
            done = run("train", "autoencoder", "--data", file, "-o", self.model)
            self.assertEqual((done.returncode, why in done.stderr.decode()), (1, True), done.stderr)
        self.refused(1, "is what --data reads", "train", "autoencoder", "--data", small, "-f", "-o", small)
        self.refused(1, "--data FILE", "train", "autoencoder", "-o", self.model)
        self.refused(1, "use tiny, slim, paper or linear", "train", "autoencoder", "--data", small, "-o", self.model,
                     "--profile", "huge")
        self.assertFalse(os.path.exists(self.model))


if __name__ == "__main__":
    harness.main()
