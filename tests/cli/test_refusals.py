# What must be refused: one clear line, the right exit code, nothing damaged and nothing left behind.
import os
import pty
import resource
import shutil
import subprocess
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
        r(1, "squash", "squash")
        r(1, "--frob", "compress", "--abs", "1", "--frob", self.raw)
        r(1, "exactly one", "compress", self.raw)
        r(1, "exactly one", "compress", "--abs", "1", "--rel", "1", self.raw)
        for kind in ("--abs", "--rel", "--pwrel", "--psnr", "--ratio"):
            r(1, kind + " nan: not a number", "compress", kind, "nan", self.raw)
            r(1, kind + " inf", "compress", kind, "inf", self.raw)
            r(1, kind + " -3", "compress", kind, "-3", self.raw)
            r(1, kind + " 1x", "compress", kind, "1x", self.raw)
        r(1, "below 1", "compress", "--pwrel", "1.5", self.raw)
        r(1, "--ratio 0.5", "compress", "--ratio", "0.5", self.raw)
        r(1, "elements than", "compress", "--abs", "1", "-t", "f32", "-s", "4294967296x4294967296x4294967296", self.raw)
        for option, value, advice in (("--codec", "nosuch", "quern list codecs"), ("--goal", "nice", "ratio, psnr or speed"),
                                      ("-t", "f31", "use f16"), ("-s", "10x", "as in 50x100x100"), ("-T", "x", "an integer"),
                                      ("--memory", "3Q", "such as"), ("--device", "tpu", "use auto"),
                                      ("--progress", "so", "use auto"), ("--fill", "abc", "such as"),
                                      ("--range", "3:1", "MIN is larger"), ("--skip", "-1", "an integer"),
                                      ("--set", "layout", "key=value"), ("--order", "Q", "use C")):
            text = r(1, option + " " + value, "compress", "--abs", "1", option, value, self.raw).stderr.decode()
            self.assertIn(advice, text)
        r(1, "9 axes", "compress", "--abs", "1", "-t", "f32", "-s", "1x1x1x1x1x1x1x1x1", self.raw)
        r(1, "--level", "decompress", "--level", "1.5", self.raw)
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

    def test_arrays_of_none_and_one_element(self):
        for name, count in (("none_0.f32", 0), ("one_1.f32", 1)):
            raw = self.write(name, self.data[:4 * count])
            self.ok("compress", "--rel", "1e-3", "--verify", raw)
            self.ok("decompress", raw + ".qn", "-o", self.path("back"), "-f")
            self.assertEqual(read_bytes(self.path("back")), self.data[:4 * count])
            self.ok("info", "--check", raw + ".qn")
            self.ok("compare", "-t", "f32", "-s", count, raw, self.path("back"), "--html", self.path("r.html"), "-f")
        self.refused(1, "holds no data", "compress", "-f", "--abs", "1", "-t", "f32", "-s", "1", self.path("none_0.f32"))
        self.refused(1, "one_1.f32", "compress", "-f", "--abs", "1", "-t", "f32", "-s", "0", self.path("one_1.f32"))

    def test_input_files(self):
        os.mkdir(self.path("dir"))
        folder = self.path("dir")
        self.ok("compress", "--abs", "1", self.raw)
        for words in (["info", folder], ["verify", self.raw, folder], ["verify", "-t", "f32", "-s", "10", folder,
                      self.raw + ".qn"], ["compare", "-t", "f32", "-s", "10", folder, folder],
                      ["bench", "-t", "f32", "-s", "10", folder], ["compress", "--bounds", folder, self.raw]):
            self.refused(2, "is a directory", *words)
        os.remove(self.raw + ".qn")
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
        self.refused(2, "No permission to read", "compress", "--abs", "1", self.raw, "-o", "/dev/null", preexec=nobody)
        os.chmod(self.raw, 0o644)
        self.refused(2, "check the permissions", "compress", "--abs", "1", self.raw, "-o", self.path("x.qn"),
                     preexec=nobody)
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
        self.ok("compress", "--abs", "1", self.raw, "-o", self.path("y.qn"))
        stream = read_bytes(self.path("y.qn"))
        self.refused(1, "same file", "decompress", "-f", self.path("y.qn"), "-o", self.path("y.qn"))
        self.refused(1, "same file", "compare", "-f", self.raw, self.raw, "--html", self.raw)
        self.assertEqual(read_bytes(self.path("y.qn")), stream)
        self.unchanged("same", "link", "y.qn")

    def test_output_folder_is_missing(self):
        text = self.refused(2, "nowhere", "compress", "--abs", "1", self.raw, "-o", self.path("nowhere/x.qn"))
        self.assertIn(b"check the path and its folder", text.stderr)
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
        back = self.path("twin_50000.u8")
        self.ok("decompress", self.path("noise.qn"), "-o", back)
        self.refused(2, "make room", "compare", noise, back, "--html", self.path("r.html"), preexec=limit)
        os.remove(back)
        before = read_bytes(self.path("noise.qn"))
        self.refused(2, "noise.qn", "compress", "--append", "--lossless", noise, "-o", self.path("noise.qn"),
                     preexec=limit)
        self.assertEqual(read_bytes(self.path("noise.qn")), before)
        self.unchanged("noise_50000.u8", "noise.qn")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "only the superuser may mount a small disk")
    def test_full_small_disk(self):
        disk = self.path("disk")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True).returncode != 0:
            self.skipTest("this machine does not let the superuser mount a tmpfs")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        noise = self.write("noise_500000.u8", os.urandom(500000))
        text = self.refused(2, "No space left", "compress", "--lossless", noise, "-o", disk + "/n.qn").stderr.decode()
        self.assertIn("make room", text)
        self.assertEqual(os.listdir(disk), [])
        self.ok("compress", "--lossless", noise)
        for name in ("back", "back.npy"):
            self.refused(2, "make room", "decompress", noise + ".qn", "-o", os.path.join(disk, name))
            self.assertEqual(os.listdir(disk), [])

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
