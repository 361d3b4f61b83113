# Messages that cannot be written decide nothing; results that were asked for and cannot be written are an error of output.
import os
import subprocess
import unittest

import harness
from harness import CliTest, read_bytes, wave


def start(words, **descriptors):
    """Runs the command through a shell redirection such as '2>&-'."""
    how = descriptors.pop("how")
    return subprocess.run(["sh", "-c", 'exec "$@" ' + how, "sh", harness.QUERN] + [str(w) for w in words],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


def into_closed_pipe(words, descriptor):
    """Nobody reads what the command writes to the descriptor."""
    read, write = os.pipe()
    os.close(read)
    try:
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, descriptor: write}
        return subprocess.run([harness.QUERN] + [str(w) for w in words], stdin=subprocess.DEVNULL, timeout=120, **streams)
    finally:
        os.close(write)


class Messages(CliTest):
    def setUp(self):
        super().setUp()
        self.inputs = [self.write("%s_500.f32" % name, wave(500, seed).tobytes()) for seed, name in enumerate("abc")]
        os.mkdir(self.path("good"))
        self.ok("compress", "--abs", "0.01", *self.inputs, "-o", self.path("good"))
        self.streams = [os.path.join(self.path("good"), os.path.basename(name) + ".qn") for name in self.inputs]

    def check_all_written(self, name, result, code=0):
        self.assertEqual(result.returncode, code, name)
        out = self.path(name)
        self.assertEqual(sorted(os.listdir(out)), sorted(os.path.basename(s) for s in self.streams))
        for stream in self.streams:  # not a byte of a message in them either
            self.assertEqual(read_bytes(os.path.join(out, os.path.basename(stream))), read_bytes(stream))

    def compress(self, name, *more):
        os.mkdir(self.path(name))
        return ["compress", "--abs", "0.01", *self.inputs, "-o", self.path(name), *more]

    def test_stderr_closed_full_or_broken_loses_no_file(self):
        for name, how in (("closed", "2>&-"), ("full", "2>/dev/full"), ("all", "0<&- 1>&- 2>&-")):
            for number, more in enumerate(([], ["-v"], ["--progress", "always"], ["-v", "--verify", "-T", "2"])):
                folder = name + str(number)
                self.check_all_written(folder, start(self.compress(folder, *more), how=how))
        for number, more in enumerate(([], ["-v", "--progress", "always"])):
            folder = "pipe" + str(number)
            self.check_all_written(folder, into_closed_pipe(self.compress(folder, *more), "stderr"))

    def test_stderr_broken_keeps_the_reason(self):
        missing = self.path("missing_10.f32")
        cases = ((1, ["nosuch"]), (1, ["compress", self.inputs[0]]), (2, ["compress", "--abs", "1", missing]),
                 (3, ["decompress", self.inputs[0], "-o", self.path("x")]), (2, ["info", missing]))
        for code, words in cases:
            for how in ("2>&-", "2>/dev/full"):
                self.assertEqual(start(words, how=how).returncode, code, (words, how))
            self.assertEqual(into_closed_pipe(words, "stderr").returncode, code, words)

    def test_one_bad_input_among_good_ones(self):
        folder = self.path("out")
        os.mkdir(folder)
        words = ["compress", "--abs", "0.01", self.inputs[0], self.path("missing_9.f32"), *self.inputs[1:], "-o", folder]
        self.check_all_written("out", start(words, how="2>&-"), code=2)

    def test_decompress_and_checkpoint_need_no_stderr(self):
        for number, how in enumerate(("2>&-", "2>/dev/full")):
            folder = self.path("back%d" % number)
            os.mkdir(folder)
            self.assertEqual(start(["decompress", "-v", *self.streams, "-o", folder], how=how).returncode, 0)
            self.assertEqual(len(os.listdir(folder)), 3)

    def test_results_that_cannot_be_written_are_errors_of_output(self):
        stream, original = self.streams[0], self.inputs[0]
        for words in (["--help"], ["compress", "--help"], ["--version"], ["list", "codecs"], ["doctor"], ["info", stream],
                      ["info", "--json", stream], ["verify", original, stream], ["verify", "--json", original, stream],
                      ["compare", original, original], ["decompress", "-c", stream],
                      ["compress", "--abs", "0.1", original, "-o", "-"], ["completion", "bash"]):
            for how in (">&-", ">/dev/full"):
                result = start(words, how=how)
                self.assertEqual(result.returncode, 2, (words, how, result.stderr))
                self.assertIn(b"cannot write", result.stderr)
            self.assertEqual(into_closed_pipe(words, "stdout").returncode, 2, words)

    def test_json_that_cannot_be_written_loses_no_file(self):
        for number, how in enumerate((">&-", ">/dev/full")):
            folder = "json%d" % number
            self.check_all_written(folder, start(self.compress(folder, "--json"), how=how), code=2)
        # JSON goes to stderr where stdout has the stream.
        words = ["compress", "--abs", "0.01", "--json", self.inputs[0], "-o", "-"]
        result = start(words, how="2>/dev/full")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout, read_bytes(self.streams[0]))

    def test_missed_bound_is_told_without_any_output(self):
        other = self.inputs[1]
        for how in (">/dev/full", ">&- 2>&-", "2>&-"):
            self.assertEqual(start(["verify", other, self.streams[0]], how=how).returncode, 4, how)

    def test_closed_stdin_is_no_data(self):
        result = start(["compress", "--abs", "1", "-t", "f32", "-s", "500", "-", "-o", self.path("in.qn")], how="0<&-")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertFalse(os.path.exists(self.path("in.qn")))


if __name__ == "__main__":
    harness.main()
