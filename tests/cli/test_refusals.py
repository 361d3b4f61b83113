# What must be refused: one clear line, the right exit code, nothing damaged and nothing left behind.
import os
import pty
import resource
import unittest

import harness
from harness import CliTest, read_bytes, run, wave


class Refusals(CliTest):
    def setUp(self):
        super().setUp()
        self.data = wave(1000).tobytes()
        self.raw = self.write("x_1000.f32", self.data)

    def unchanged(self, *names):
        self.assertEqual(self.files(), sorted(("x_1000.f32",) + names))
        self.assertEqual(read_bytes(self.raw), self.data)

    def test_usage(self):
        r = self.refused
        r(1, "quern --help")
        r(1, "squash", "squash")
        r(1, "--frob", "compress", "--abs", "1", "--frob", self.raw)
        r(1, "exactly one", "compress", self.raw)
        r(1, "exactly one", "compress", "--abs", "1", "--rel", "1", self.raw)
        r(1, "not a number", "compress", "--abs", "nan", self.raw)
        r(1, "negative", "compress", "--abs", "-3", self.raw)
        r(1, "--codec nosuch", "compress", "--abs", "1", "--codec", "nosuch", self.raw)
        r(1, "9 axes", "compress", "--abs", "1", "-t", "f32", "-s", "1x1x1x1x1x1x1x1x1", self.raw)
        r(1, "--level", "decompress", "--level", "1", self.raw)
        r(5, "CUDA", "compress", "--abs", "1", "--device", "cuda", self.raw)
        self.unchanged()

    def test_unknown_setting(self):
        self.refused(1, "", "compress", "--abs", "1", "--codec", "lossless", "--set", "no_such_key=1", self.raw)
        self.unchanged()

    def test_shape_and_type(self):
        plain = self.write("plain", self.data)
        self.refused(1, "type", "compress", "--abs", "1", plain)
        self.refused(1, "shape", "compress", "--abs", "1", "-t", "f32", plain)
        self.refused(1, "plain", "compress", "--abs", "1", "-t", "f32", "-s", "999", plain)
        self.refused(1, "name says f32", "compress", "--abs", "1", "-t", "i32", self.raw)
        self.refused(1, "name says 1000", "compress", "--abs", "1", "-s", "10x100", self.raw)
        self.refused(1, "empty", "compress", "--abs", "1", "-t", "f32", "-s", "10", self.write("empty", b""))
        self.unchanged("plain", "empty")

    def test_pwrel_of_integers(self):
        raw = self.write("v_500.i16", self.data[:1000])
        self.refused(1, "v_500.i16", "compress", "--pwrel", "0.1", raw)

    def test_pipe_of_the_wrong_length(self):
        for count in ("999", "1001"):
            result = run("compress", "--abs", "1", "-t", "f32", "-s", count, "-", "-o", self.path("p.qn"),
                         stdin=self.data)
            self.assertIn(result.returncode, (1, 2))
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.unchanged()

    def test_input_files(self):
        os.mkdir(self.path("dir"))
        self.refused(2, "missing", "compress", "--abs", "1", self.path("missing_10.f32"))
        self.refused(2, "directory", "compress", "--abs", "1", "-t", "f32", "-s", "10", self.path("dir"))
        self.refused(2, "directory", "decompress", "-o", self.path("o"), self.path("dir"))
        self.refused(2, "missing", "decompress", self.path("missing.qn"))
        self.refused(2, "missing", "info", self.path("missing.qn"))
        self.unchanged("dir")

    @unittest.skipIf(os.geteuid() == 0, "the superuser may read and write everything")
    def test_permissions(self):
        os.chmod(self.raw, 0)
        self.refused(2, "x_1000.f32", "compress", "--abs", "1", self.raw)
        os.chmod(self.raw, 0o644)
        os.mkdir(self.path("closed"), 0o500)
        self.refused(2, "closed", "compress", "--abs", "1", self.raw, "-o", self.path("closed/x.qn"))
        self.unchanged("closed")

    def test_permissions_as_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs the superuser to become somebody else")

        def nobody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

        os.chmod(self.folder.name, 0o755)
        os.chmod(self.raw, 0)
        self.refused(2, "x_1000.f32", "compress", "--abs", "1", self.raw, "-o", "/dev/null", preexec=nobody)
        os.chmod(self.raw, 0o644)
        self.refused(2, "x.qn", "compress", "--abs", "1", self.raw, "-o", self.path("x.qn"), preexec=nobody)
        self.unchanged()

    def test_output_exists(self):
        self.write("y.qn", b"precious")
        self.refused(2, "exists already", "compress", "--abs", "1", self.raw, "-o", self.path("y.qn"))
        self.assertEqual(read_bytes(self.path("y.qn")), b"precious")
        self.ok("compress", "-f", "--abs", "1", self.raw, "-o", self.path("y.qn"))

    def test_output_is_the_input(self):
        os.link(self.raw, self.path("same"))
        os.symlink(self.raw, self.path("link"))
        for name in ("x_1000.f32", "same", "link"):
            self.refused(1, "same file", "compress", "-f", "--abs", "1", self.raw, "-o", self.path(name))
        self.refused(1, "same file", "compress", "--append", "--abs", "1", self.raw, "-o", self.path("same"))
        self.unchanged("same", "link")

    def test_output_folder_is_missing(self):
        self.refused(2, "nowhere", "compress", "--abs", "1", self.raw, "-o", self.path("nowhere/x.qn"))
        self.unchanged()

    def test_names_without_qn(self):
        self.ok("compress", "--abs", "1", self.raw, "-o", self.path("stream"))
        self.refused(1, "-o OUT", "decompress", self.path("stream"))
        self.unchanged("stream")

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            self.refused(2, "standard output", "compress", "--lossless", "-c", self.raw, stdout=full)
            self.refused(2, "standard output", "list", "codecs", stdout=full)
        self.refused(2, "/dev/full", "compress", "--lossless", self.raw, "-o", "/dev/full")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        noise = self.write("noise_50000.u8", os.urandom(50000))
        self.refused(2, "n.qn", "compress", "--lossless", noise, "-o", self.path("n.qn"), preexec=limit)
        self.ok("compress", "--lossless", noise, "-o", self.path("noise.qn"))
        self.refused(2, "back", "decompress", self.path("noise.qn"), "-o", self.path("back"), preexec=limit)
        self.refused(2, "back.npy", "decompress", self.path("noise.qn"), "-o", self.path("back.npy"), preexec=limit)
        before = read_bytes(self.path("noise.qn"))
        self.refused(2, "noise.qn", "compress", "--append", "--lossless", noise, "-o", self.path("noise.qn"),
                     preexec=limit)
        self.assertEqual(read_bytes(self.path("noise.qn")), before)
        self.unchanged("noise_50000.u8", "noise.qn")

    def test_closed_pipe(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            self.refused(2, "standard output", "compress", "--lossless", "-c", self.raw, stdout=pipe)
            self.refused(2, "standard output", "doctor", stdout=pipe)

    def test_terminal(self):
        master, slave = pty.openpty()
        try:
            self.refused(1, "terminal", "compress", "--abs", "1", "-c", self.raw, stdout=slave)
            self.ok("compress", "--abs", "1", "-c", "-f", "-q", self.raw, stdout=slave)
        finally:
            os.close(slave)
            os.close(master)

    def test_memory_limit(self):
        big = self.write("big_4000000.f32", bytes(16000000))
        self.ok("compress", "--lossless", big)
        self.refused(5, "memory", "decompress", "--memory", "1K", big + ".qn", "-o", self.path("o"))
        self.refused(5, "region", "decompress", "--memory", "8M", "--region", ":", big + ".qn", "-o", self.path("o"))

    def test_damaged_streams(self):
        self.ok("compress", "--abs", "1e-3", self.raw)
        good = read_bytes(self.raw + ".qn")
        self.refused(3, "not a quern stream", "decompress", self.raw, "-o", self.path("o"))
        self.refused(3, "empty", "decompress", self.write("e.qn", b""))
        self.refused(3, "empty", "info", self.path("e.qn"))
        for cut in (1, 7, len(good) // 2, len(good) - 1):
            self.write("cut.qn", good[:cut])
            self.refused(3, "cut.qn", "decompress", self.path("cut.qn"))
            self.assertEqual(run("info", self.path("cut.qn")).returncode, 3)
        for at in range(0, len(good), max(1, len(good) // 60)):
            flipped = bytearray(good)
            flipped[at] ^= 0x10
            self.write("cut.qn", bytes(flipped))
            self.refused(3, "cut.qn", "decompress", self.path("cut.qn"))
            self.assertEqual(run("info", "--check", self.path("cut.qn")).returncode, 3, at)
            result = run("decompress", "-", stdin=bytes(flipped))
            self.assertEqual(result.returncode, 3, at)
        self.refused(3, "cut.qn", "compress", "--append", "--abs", "1", self.raw, "-o",
                     self.write("cut.qn", good[:-3]))
        self.assertEqual(read_bytes(self.path("cut.qn")), good[:-3])
        self.unchanged("x_1000.f32.qn", "cut.qn", "e.qn")


if __name__ == "__main__":
    harness.main()
