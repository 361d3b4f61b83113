# Models of codec stencil: training of networks for the finest level, streams with them inside and outside.
import array
import math
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import harness  # noqa: E402
from harness import CliTest, run  # noqa: E402


def folds(side, step):
    """A plane of waves whose crests are cut off, with edges that move: no linear prediction knows where they are."""
    noise = random.Random(step)
    values = array.array("f")
    for y in range(side):
        for x in range(side):
            d = math.sin(0.11 * x + 1.2 * math.sin(0.07 * y + 0.4 * step))
            d += 0.5 * math.sin(0.13 * y - 0.05 * x + 0.9 * step)
            slow = 0.2 * math.sin(0.03 * x + 0.02 * y + step)
            values.append(max(-1, min(1, 4 * d)) + slow + 0.002 * noise.uniform(-1, 1))
    return values.tobytes()


class Superres(CliTest):
    def setUp(self):
        super().setUp()
        trainer = os.path.join(os.path.dirname(os.path.realpath(harness.QUERN)), "quern-train")
        if not os.path.exists(trainer):
            self.skipTest("this build has no quern-train")
        self.model = self.path("fine.qmodel")

    def test_networks_beat_the_fitted_sum_on_later_steps(self):
        steps = [self.write(f"c_t{step}_192x192.f32", folds(192, step)) for step in range(4)]
        model = self.model
        table = self.ok("train", "superres", "--data", *steps, "-o", model, "--steps", 500, "--bound", "1e-2")
        first = next(line for line in table.stdout.decode().splitlines() if line.split()[:1] == ["0.01"])
        without, with_model = (int(word) for word in first.split()[1:3])
        ratio = with_model / without
        print(f"bytes with networks over those without, on later steps: {ratio:.3f}")
        # 0.958 here, beside groups that follow the fronts by themselves.
        self.assertLess(ratio, 0.985, table.stdout)
        self.assertNotIn(b"no gain", table.stdout)
        info = self.json(self.ok("model", "info", model, "--json"))
        self.assertEqual((info["axes"], len(info["networks"])), (2, 3))
        self.assertIn(info["id"], self.ok("model", "list", self.folder.name).stdout.decode())
        stream, back = self.path("c.qn"), self.path("back.raw")
        self.ok("compress", "--rel", "1e-2", "--codec", "stencil", "--model", model, "--set", "embed=no", steps[-1],
                "-o", stream, "--verify")
        outside = self.json(self.ok("info", stream, "--json"))["streams"][0]["model"]
        self.assertEqual((outside["id"], outside["embedded"]), (info["id"], False))
        self.assertEqual(run("decompress", stream, "-o", back).returncode, 6)
        self.ok("decompress", stream, "--level", 1, "-o", self.path("small.npy"))  # needs no networks
        self.ok("decompress", stream, "-o", back, "--model", model)
        whole = self.path("whole.qn")
        self.ok("model", "embed", stream, "--model", model, "-o", whole)
        self.ok("verify", steps[-1], whole)
        self.assertEqual(self.json(self.ok("info", whole, "--json"))["streams"][0]["model"]["bytes"],
                         info["decoding_bytes"])
        self.refused(1, "codec autoencoder takes kind 2", "compress", "--rel", "1e-2", "--codec", "autoencoder",
                     "--model", model, steps[0], "-o", self.path("no.qn"))
        self.refused(1, "--bound is of train superres", "train", "autoencoder", "--data", steps[0], "-o",
                     self.path("no.qmodel"), "--bound", "1e-2")
        self.refused(1, "are of train autoencoder", "train", "superres", "--data", steps[0], "-o",
                     self.path("no.qmodel"), "--keep")

    def test_training_data_that_do_not_do(self):
        slices = self.write("s_4x4x12x12.f32", folds(48, 1))
        row = self.write("r_2304.f32", folds(48, 1))
        for file, why in ((slices, "has 4 axes longer than 1"), (row, "has 1 axes longer than 1"),
                          (self.write("t_2x2x24x24.f32", folds(48, 1)), "has 4 axes longer than 1")):
            done = run("train", "superres", "--data", file, file, "-o", self.model)
            self.assertEqual((done.returncode, why in done.stderr.decode()), (1, True), done.stderr)
        done = run("train", "superres", "--data", slices, "-o", self.model)
        self.assertEqual((done.returncode, b"has 4 axes" in done.stderr), (1, True), done.stderr)
        self.assertFalse(os.path.exists(self.model))

    def test_numbers_out_of_range_are_said(self):
        file = self.write("f_48x48.f32", folds(48, 1))
        for option, value, why in (("--bound", "0.7", "1e-09 to 0.5"), ("--bound", "x", "1e-09 to 0.5"),
                                   ("--steps", "0", "1 to 1000000000"), ("--steps", "1.5", "1 to 1000000000"),
                                   ("--time-budget", "0", "1 to 1000000")):
            self.refused(1, f"{option} {value}: use {why}", "train", "superres", "--data", file, "-o", self.model,
                         option, value)
        self.refused(1, "--latents 65: use 1 to 64", "train", "autoencoder", "--data", file, "-o", self.model,
                     "--latents", "65")
        self.assertFalse(os.path.exists(self.model))


if __name__ == "__main__":
    harness.main()
