# Models of learned codecs: training of codec autoencoder, streams with the model inside and outside, models that are
# missing or wrong.
import array
import hashlib
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import block_models  # noqa: E402
import harness  # noqa: E402
from harness import CliTest, run  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "..")


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
    def setUp(self):
        super().setUp()
        self.model = self.write("u.qmodel", block_models.model(12))
        self.data = self.write("u_24x24x24.f32", block_models.values(3, 12))
        self.stream, self.back = self.path("u.qn"), self.path("back.raw")

    def compress(self, *words):
        return self.ok("compress", "--rel", "5e-2", "--codec", "autoencoder", "--model", self.model, self.data,
                       "-o", self.stream, "-f", *words)

    def test_a_model_serves_streams_inside_and_outside(self):
        info = self.json(self.ok("model", "info", self.model, "--json"))
        self.assertEqual(info["block"], [8, 8, 8])
        done = self.compress("--set", "embed=yes", "--json")
        self.assertGreater(self.json(done)["stencil_bytes"], 0)
        self.ok("verify", self.data, self.stream)
        inside = os.path.getsize(self.stream)
        self.compress("--model-store", self.folder.name)
        self.assertLess(os.path.getsize(self.stream), inside)
        missing = run("decompress", self.stream, "-o", self.back)
        self.assertEqual(missing.returncode, 6)
        self.assertIn(b"--model FILE", missing.stderr)
        self.assertFalse(os.path.exists(self.back))
        self.assertIn(b"autoencoder", self.ok("info", self.stream).stdout)
        self.ok("verify", self.data, self.stream, "--model", self.model)
        self.ok("decompress", self.stream, "-o", self.back, "--model-store", self.folder.name)
        # The half that decodes does as well, under the same id.
        half = self.path("half.qmodel")
        self.ok("model", "strip", self.model, "-o", half)
        self.assertEqual(self.json(self.ok("model", "info", half, "--json"))["id"], info["id"])
        self.assertLess(os.path.getsize(half), os.path.getsize(self.model))
        self.ok("decompress", self.stream, "-o", self.back, "-f", "--model", half)
        self.assertEqual(self.ok("model", "list", self.folder.name).stdout.decode().count(info["id"]), 2)
        self.refused(1, "can only decode", "compress", "--rel", "1e-2", "--codec", "autoencoder", "--model", half,
                     self.data)

    def test_a_stream_gets_its_model_and_gives_it_away(self):
        self.compress("--set", "embed=no")
        with open(self.stream, "ab") as steps, open(self.stream, "rb") as once:
            steps.write(once.read())
        whole, small, store = self.path("whole.qn"), self.path("small.qn"), self.path("kept")
        other = self.write("other.qmodel", block_models.model(11))
        self.refused(6, "--model FILE", "model", "embed", self.stream, "--model", other, "-o", whole)
        self.refused(3, "", "model", "embed", self.stream, "--model", self.data, "-o", whole)
        self.ok("model", "embed", self.stream, "--model", self.model, "-o", whole)
        os.rename(self.model, self.path("away"))
        self.ok("decompress", whole, "-o", self.back)
        self.refused(1, "--model-store DIR", "model", "strip", whole, "-o", small)
        os.mkdir(store)
        self.ok("model", "strip", whole, "--model-store", store, "-o", small)
        self.assertEqual(len(os.listdir(store)), 1)
        with open(small, "rb") as a, open(self.stream, "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.refused(6, "--model FILE", "decompress", small, "-o", self.back, "-f")
        self.ok("decompress", small, "-o", self.path("same"), "--model-store", store)
        with open(self.back, "rb") as a, open(self.path("same"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        # Again: what is there already stays, and a stream without its model cannot give it.
        self.ok("model", "embed", whole, "--model-store", store, "-o", self.path("twice.qn"))
        with open(whole, "rb") as a, open(self.path("twice.qn"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.refused(6, "does not hold", "model", "strip", small, "--model-store", store, "-o", self.path("no.qn"))
        with open(whole, "rb") as file:
            damaged = bytearray(file.read())
        damaged[-3000] ^= 1
        self.refused(3, "damaged", "model", "strip", self.write("bad.qn", bytes(damaged)), "--model-store", store, "-o",
                     self.path("no.qn"))
        self.assertFalse(os.path.exists(self.path("no.qn")))
        plain = self.path("plain.qn")
        self.ok("compress", "--rel", "1e-2", self.data, "-o", plain)
        self.refused(3, "uses no model", "model", "embed", plain, "--model-store", store, "-o", self.path("no.qn"))

    def test_models_that_are_wrong_are_refused(self):
        with open(self.model, "rb") as f:
            whole = f.read()
        changed = self.write("changed.qmodel", whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
        cut = self.write("cut.qmodel", whole[:-1])
        for model in (changed, cut):
            self.refused(3, "SHA-256", "model", "verify", model)
            self.refused(3, "SHA-256", "compress", "--rel", "1e-2", "--codec", "autoencoder", "--model", model,
                         self.data)
        self.refused(1, "goes with --codec autoencoder", "compress", "--rel", "1e-2", "--model", self.model, self.data)
        self.refused(1, "codec stencil takes kind 3", "compress", "--rel", "1e-2", "--codec", "stencil", "--model",
                     self.model, self.data, "-o", self.path("no.qn"))
        quality = os.path.join(ROOT, "surrogate", "models", "quality.qmodel")
        for words in (("compress", "--rel", "1e-2", "--codec", "stencil", "--model", quality, self.data),
                      ("model", "strip", quality)):
            self.refused(3, "use it with quern estimate --model", *words, "-o", self.path("no.qn"))
        self.refused(2, "no", "decompress", "--model-store", self.path("no"), self.data)
        # Another model is no model: the stream's is missing.
        self.compress("--set", "embed=no")
        other = self.write("other.qmodel", block_models.model(11))
        self.assertEqual(run("decompress", self.stream, "-o", self.back, "--model", other).returncode, 6)
        self.ok("decompress", self.stream, "-o", self.back, "--model", self.model)

    def test_records_that_are_made_to_do_harm_are_left_out(self):
        deep = b'{"a": ' + b"[" * 200000 + b"]" * 200000 + b"}"
        for record in (deep, b'{"a": "' + b"x" * 2**20 + b'"}', b"{"):
            model = self.write("odd.qmodel", block_models.model(2, record))
            self.assertIsNone(self.json(self.ok("model", "info", model, "--json"))["record"])
            self.assertNotIn(b'"a"', self.ok("model", "info", model).stdout)
        model = self.write("odd.qmodel", block_models.model(2, rb'{"\u001b[2J": [1, {"b": 2}]}'))
        self.assertEqual(self.json(self.ok("model", "info", model, "--json"))["record"], {"\x1b[2J": [1, {"b": 2}]})
        self.assertIn(rb'"\u001b[2J": [1,{"b":2}]', self.ok("model", "info", model).stdout)

    def test_a_store_is_looked_through_past_what_is_no_model(self):
        self.compress("--set", "embed=no")
        store = self.path("store")
        os.mkdir(store)
        for name, data in (("a.qmodel", b""), ("b.qmodel", b"no model")):
            self.write(os.path.join("store", name), data)
        self.write(os.path.join("store", "unreadable.qmodel"), b"x")
        os.chmod(os.path.join(store, "unreadable.qmodel"), 0)
        missing = run("decompress", self.stream, "-o", self.back, "--model-store", store)
        self.assertEqual(missing.returncode, 6)
        if os.geteuid() != 0:
            self.assertIn(b"unreadable.qmodel", missing.stderr)
        os.rename(self.model, os.path.join(store, "z.qmodel"))
        done = self.ok("decompress", self.stream, "-o", self.back, "--model-store", store)
        self.assertNotIn(b".qmodel", done.stderr)


class Training(CliTest):
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

    def test_a_trained_model_says_what_it_is_from_and_serves(self):
        table = self.train("--profile", "linear", "--components", 16)
        self.assertIn(b"outside", table.stdout)
        info = self.json(self.ok("model", "info", self.model, "--json"))
        with open(self.steps[0], "rb") as f:
            self.assertIn(hashlib.sha256(f.read()).hexdigest(), info["record"]["sha256"])
        stream = self.path("u.qn")
        self.ok("compress", "--rel", "5e-2", "--codec", "autoencoder", "--model", self.model, "--set", "embed=yes",
                self.steps[-1], "-o", stream)
        self.ok("verify", self.steps[-1], stream)

    def test_training_is_no_worse_than_principal_components(self):
        table = self.train("--latents", 4, "--components", 8, "--steps", 120, "--keep").stdout.decode()
        line = next(l for l in table.splitlines() if "principal components" in l and "dB" in l)
        linear, deep = (float(w.split()[-1]) for w in line.split(" dB")[:2])
        # So few steps are for the way, not for the gain.
        self.assertGreaterEqual(deep, linear - 0.05, table)
        info = self.json(self.ok("model", "info", self.model, "--json"))
        self.assertEqual([p["kind"] for p in info["predictors"]], ["principal components", "autoencoder"])
        stream = self.path("u.qn")
        self.ok("compress", "--rel", "5e-2", "--codec", "autoencoder", "--model", self.model, "--set", "embed=yes",
                self.steps[-1], "-o", stream, "--verify")

    def test_training_data_that_do_not_do(self):
        constant = self.write("c_24x24x24.f32", bytes(4 * 24**3))
        nan = self.write("n_24x24x24.f32", b"\x00\x00\xc0\x7f" * 24**3)
        small = self.write("s_3x4x5.f32", array.array("f", range(60)).tobytes())
        # The last quarter of its first axis is thinner than a block.
        flat = self.write("f_16x24x24.f32", fronts((16, 24, 24), 1))
        for file, why in ((constant, "no two different finite values"), (nan, "no two different finite values"),
                          (small, "too few steps"), (flat, "no whole block")):
            done = run("train", "autoencoder", "--data", file, "-o", self.model)
            self.assertEqual((done.returncode, why in done.stderr.decode()), (1, True), done.stderr)
        self.refused(1, "is what --data reads", "train", "autoencoder", "--data", small, "-f", "-o", small)
        self.refused(1, "--data FILE", "train", "autoencoder", "-o", self.model)
        self.refused(1, "use tiny, slim, paper or linear", "train", "autoencoder", "--data", small, "-o", self.model,
                     "--profile", "huge")
        self.assertFalse(os.path.exists(self.model))


if __name__ == "__main__":
    harness.main()
