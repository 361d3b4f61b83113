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
            cpu = self.compress("cpu.qn", "-f", *bound)
            cuda = self.compress("cuda.qn", "-f", "--device", "cuda", "--verify", *bound)
            self.assertEqual((cpu["device"], cuda["device"]), ("cpu", "cuda:0"))
            self.assertEqual(cuda["violations"], 0)
            self.assertEqual(read_bytes(self.path("cpu.qn")), read_bytes(self.path("cuda.qn")))
            self.ok("decompress", self.path("cuda.qn"), "-f", "-o", self.path("cpu.f32"))
            report = json.loads(self.ok("decompress", self.path("cuda.qn"), "-f", "-o", self.path("cuda.f32"), "--json",
                                        "--device", "cuda:1").stdout)
            self.assertEqual(report["device"], "cuda:1")
            self.assertEqual(read_bytes(self.path("cpu.f32")), read_bytes(self.path("cuda.f32")))

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

    def test_bench_and_unknown_device(self):
        lines = self.ok("bench", self.raw, "--codec", "lorenzo", "--rel", "1e-3", "--json", "--device", "cuda").stdout
        self.assertEqual({json.loads(line)["device"] for line in lines.splitlines()}, {"cuda:0"})
        self.refused(5, "cuda:7", "compress", "--abs", "1", "--device", "cuda:7", self.raw)


if __name__ == "__main__":
    harness.main()
