# Killed in the middle: nothing half-written has a final name, and what was there before is whole.
import os
import signal
import subprocess
import time
import unittest

import harness
from harness import CliTest, read_bytes, wave


class CrashSafety(CliTest):
    def start(self, *words):
        """Starts a compression that waits for input it never gets."""
        process = subprocess.Popen([harness.QUERN, "compress", "--abs", "1", "-t", "f32", "-s", "1000000", "-q", *words,
                                    "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdin.close)
        process.stdin.write(wave(200000).tobytes())
        process.stdin.flush()
        return process

    def wait_for_temporary(self):
        for _ in range(1000):
            names = [name for name in self.files() if name.endswith(".part")]
            if names:
                return names[0]
            time.sleep(0.01)
        self.fail("no temporary file appeared")

    def test_sigkill_leaves_no_file_under_the_final_name(self):
        process = self.start("-o", self.path("x.qn"))
        self.wait_for_temporary()
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertNotIn("x.qn", self.files())

    def test_signals_remove_the_temporary(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start("-o", self.path("x.qn"))
            self.wait_for_temporary()
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=20), 130)
            self.assertEqual(self.files(), [])

    def test_the_old_file_survives(self):
        self.write("x.qn", b"precious")
        for number in (signal.SIGINT, signal.SIGKILL):
            process = self.start("-f", "-o", self.path("x.qn"))
            self.wait_for_temporary()
            process.send_signal(number)
            process.wait()
            self.assertEqual(read_bytes(self.path("x.qn")), b"precious")

    def test_append_keeps_the_old_steps(self):
        raw = self.write("a_1000000.f32", wave(1000000).tobytes())
        self.ok("compress", "--append", "--abs", "1", raw, "-o", self.path("run.qn"))
        before = read_bytes(self.path("run.qn"))
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = self.start("--append", "-o", self.path("run.qn"))
            self.wait_for_temporary()
            process.send_signal(number)
            process.wait()
            self.assertEqual(read_bytes(self.path("run.qn")), before)
        self.ok("decompress", self.path("run.qn"), "-o", self.path("back"))

    def test_two_writers_of_one_name(self):
        first = self.start("-o", self.path("x.qn"))
        self.wait_for_temporary()
        self.write("x.qn", b"somebody else was faster")
        _, text = first.communicate(wave(800000).tobytes(), timeout=60)
        self.assertEqual(first.returncode, 2, text)
        self.assertIn(b"exists already", text)
        self.assertEqual(read_bytes(self.path("x.qn")), b"somebody else was faster")
        self.assertEqual(self.files(), ["x.qn"])

    def test_input_that_shrinks_is_an_error_not_a_crash(self):
        raw = self.write("big_16000000.f32", bytes(64000000))
        process = subprocess.Popen([harness.QUERN, "compress", "--lossless", "-q", raw, "-o", self.path("x.qn")],
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.wait_for_temporary()
        os.truncate(raw, 4096)
        code = process.wait(timeout=60)
        # Either it was done with the file already, or it says what happened.
        self.assertIn(code, (0, 2))
        if code == 2:
            self.assertEqual(self.files(), ["big_16000000.f32"])


if __name__ == "__main__":
    harness.main()
