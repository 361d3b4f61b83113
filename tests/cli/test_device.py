# The command on a device, which is simulated here: the same files as on the CPU, and what it says of it.
import json
import unittest

import harness
from harness import CliTest, read_bytes, wave


class Device(CliTest):
    def setUp(self):
        super().setUp()
        self.raw = self.write("x_20x50x70.f32", wave(20 * 50 * 70).tobytes())

    def compress(self, name, *options):
        out = self.path(name)
        line = self.ok("compress", self.raw, "-t", "f32", "-s", "20x50x70", "-o", out, "--json", *options).stdout
        return json.loads(line)

    def test_same_files_both_ways(self):
        for bound in (("--abs", "1e-3"), ("--rel", "1e-4"), ("--pwrel", "1e-2"), ("--psnr", "60"), ("--ratio", "5")):
            cpu = self.compress("cpu.qn", "-f", "--goal", "speed", *bound)
            cuda = self.compress("cuda.qn", "-f", "--goal", "speed", "--device", "cuda", "--verify", *bound)
            self.assertEqual((cpu["device"], cuda["device"]), ("cpu", "cuda:0"))
            self.assertEqual(cuda["violations"], 0)
            self.assertEqual(read_bytes(self.path("cpu.qn")), read_bytes(self.path("cuda.qn")))
            self.ok("decompress", self.path("cuda.qn"), "-f", "-o", self.path("cpu.f32"))
            report = json.loads(self.ok("decompress", self.path("cuda.qn"), "-f", "-o", self.path("cuda.f32"), "--json",
                                        "--device", "cuda:1").stdout)
            self.assertEqual(report["device"], "cuda:1")
            self.assertEqual(read_bytes(self.path("cpu.f32")), read_bytes(self.path("cuda.f32")))

    def test_choice_is_that_of_the_cpu_and_says_what_ran_where(self):
        # Whatever layout stencil takes the device encodes it.
        for bound in (("--abs", "1e-3"), ("--psnr", "40"), ("--ratio", "5")):
            cpu = self.compress("cpu.qn", "-f", *bound)
            out = self.path("cuda.qn")
            made = self.ok("compress", self.raw, "-t", "f32", "-s", "20x50x70", "-o", out, "-f", "--json", "--verify",
                           "--device", "cuda", *bound)
            cuda = json.loads(made.stdout)
            self.assertEqual(read_bytes(self.path("cpu.qn")), read_bytes(out))
            ran = {trial["codec"]: trial["on_device"] for trial in cuda["tried"]}
            if bound[0] == "--abs":  # searches leave out what is expected to do worse
                self.assertEqual({"lorenzo", "stencil"} - set(ran), set())
            self.assertTrue(ran.get("lorenzo", True))
            self.assertTrue(ran.get("stencil", True))
            self.assertFalse(ran.get("lossless", False))
            self.assertEqual([t["codec"] for t in cuda["tried"]], [t["codec"] for t in cpu["tried"]])
            self.assertEqual(cuda["codec"], "stencil")
            self.assertEqual(cuda["device"], "cuda:0")
            self.assertNotIn("--goal speed", made.stderr.decode())
            self.assertEqual(cuda["violations"], 0)

    def test_pipes_and_steps(self):
        data = read_bytes(self.raw)
        for device in ("cpu", "cuda"):
            self.ok("compress", "-", "-t", "f32", "-s", "20x50x70", "--abs", "1e-3", "-o", self.path(device + ".qn"),
                    "--device", device, stdin=data)
            self.ok("compress", self.raw, "-t", "f32", "-s", "20x50x70", "--abs", "1e-3", "--append", "-o",
                    self.path(device + ".qn"), "--device", device)
        self.assertEqual(read_bytes(self.path("cpu.qn")), read_bytes(self.path("cuda.qn")))

    def test_codec_without_kernels_said(self):
        said = self.ok("compress", self.raw, "--lossless", "-o", self.path("l.qn"), "--device", "cuda").stderr.decode()
        self.assertIn("no CUDA kernels", said)
        quiet = self.ok("compress", self.raw, "--lossless", "-f", "-o", self.path("l.qn"), "--device", "auto").stderr
        self.assertNotIn(b"no CUDA kernels", quiet)

    def test_stencil_is_decoded_on_the_device(self):
        for layout in ("levels", "raster", "wavelet"):
            out = self.path(layout + ".qn")
            self.compress(layout + ".qn", "--rel", "1e-2", "--codec", "stencil", "--set", "layout=" + layout)
            self.ok("decompress", out, "-f", "-o", self.path("cpu.f32"))
            report = json.loads(self.ok("decompress", out, "-f", "-o", self.path("cuda.f32"), "--json", "--device",
                                        "cuda").stdout)
            self.assertEqual(report["device"], "cuda:0")
            self.assertEqual(read_bytes(self.path("cpu.f32")), read_bytes(self.path("cuda.f32")))

    def test_interp_is_encoded_and_decoded_on_the_device(self):
        self.compress("i.qn", "--rel", "1e-3", "--codec", "interp")
        report = self.compress("cuda.qn", "--rel", "1e-3", "--codec", "interp", "--device", "cuda", "--verify")
        self.assertEqual((report["device"], report["violations"]), ("cuda:0", 0))
        self.assertEqual(read_bytes(self.path("i.qn")), read_bytes(self.path("cuda.qn")))
        self.ok("decompress", self.path("i.qn"), "-f", "-o", self.path("cpu.f32"))
        report = json.loads(self.ok("decompress", self.path("i.qn"), "-f", "-o", self.path("cuda.f32"), "--json",
                                    "--device", "cuda").stdout)
        self.assertEqual(report["device"], "cuda:0")
        self.assertEqual(read_bytes(self.path("cpu.f32")), read_bytes(self.path("cuda.f32")))

    def test_stencil_is_encoded_on_the_device(self):
        settings = ("--rel", "1e-3", "--codec", "stencil", "-f", "--set")
        for layout in ("layout=raster", "layout=levels", "layout=planes", "layout=wavelet"):
            cpu = self.compress("cpu.qn", *settings, layout)
            cuda = self.compress("cuda.qn", *settings, layout, "--device", "cuda", "--verify")
            self.assertEqual((cpu["device"], cuda["device"]), ("cpu", "cuda:0"))
            self.assertEqual(cuda["violations"], 0)
            self.assertEqual(read_bytes(self.path("cpu.qn")), read_bytes(self.path("cuda.qn")))

    def test_bench_and_unknown_device(self):
        lines = self.ok("bench", self.raw, "--codec", "lorenzo", "--rel", "1e-3", "--json", "--device", "cuda").stdout
        self.assertEqual({json.loads(line)["device"] for line in lines.splitlines()}, {"cuda:0"})
        self.refused(5, "cuda:7", "compress", "--abs", "1", "--device", "cuda:7", self.raw)


if __name__ == "__main__":
    harness.main()
