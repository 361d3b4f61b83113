# The first minutes: habits of other programs are met or answered by what to type; messages say what happened.
import array
import os
import re
import stat
import subprocess
import unittest

import harness
from harness import CliTest, read_array, read_bytes, run, wave


class Help(CliTest):
    def test_no_words_print_help_and_fail(self):
        result = run()
        self.assertEqual((result.returncode, result.stdout), (1, b""))
        self.assertIn(b"Usage: quern", result.stderr)
        self.assertIn(b"compress", result.stderr)

    def test_other_ways_to_ask(self):
        whole = self.ok("--help").stdout
        self.assertEqual(self.ok("help").stdout, whole)
        self.assertEqual(self.ok("-h").stdout, whole)
        self.assertEqual(self.ok("help", "compress").stdout, self.ok("compress", "--help").stdout)
        self.assertEqual(self.ok("help", "checkpoint", "save").stdout, self.ok("checkpoint", "save", "--help").stdout)
        version = self.ok("--version").stdout
        self.assertEqual(self.ok("version").stdout, version)
        self.assertEqual(self.ok("-V").stdout, version)
        self.refused(1, "nosuch is no verb", "help", "nosuch")

    def test_bound_comes_first_and_no_line_is_wide(self):
        verbs = ["compress", "decompress", "info", "verify", "compare", "bench", "h5", "list", "doctor", "completion",
                 "checkpoint"]
        texts = [self.ok(verb, "--help").stdout.decode() for verb in verbs] + [self.ok("--help").stdout.decode()]
        texts += [self.ok("checkpoint", work, "--help").stdout.decode() for work in ("save", "load", "gc", "convert")]
        for text in texts:
            self.assertNotIn("Option Group", text)
            for line in text.splitlines():
                self.assertLessEqual(len(line), 100, line)
        text = self.ok("compress", "--help").stdout.decode()
        self.assertIn("Usage: quern compress BOUND [OPTIONS] [IN...]", text)
        self.assertLess(text.index("--abs"), text.index("--type"))
        for option in ("--abs", "--rel", "--pwrel", "--psnr", "--ratio", "--lossless"):
            self.assertEqual(len(re.findall(r"^  " + option + r"\b", text, re.M)), 1, option)


class Habits(CliTest):
    def setUp(self):
        super().setUp()
        self.raw = self.write("x_20x30.f32", wave(600).tobytes())

    def test_verbs_of_others_are_answered(self):
        for word, part in (("-d", "type quern decompress x.qn"), ("-z", "type quern compress --rel 1e-3 x.qn"),
                           ("-t", "type quern info --check x.qn"), ("extract", "type quern decompress x.qn"),
                           ("-l", "type quern info x.qn"), ("codecs", "type quern list codecs")):
            self.refused(1, part, word, "x.qn")
        self.refused(1, "type quern compress --rel 1e-3 " + self.raw, self.raw)
        self.refused(1, "type quern decompress a.qn", "a.qn")

    def test_missing_words_are_named(self):
        for words, part in ((["compress"], "type quern compress --rel 1e-3 FILE, with - for standard input"),
                            (["compress", "--abs", "1"], "with - for standard input"), (["info"], "type quern info FILE.qn"),
                            (["decompress"], "type quern decompress FILE.qn"), (["list"], "list codecs or quern list devices"),
                            (["h5"], "args, pack, unpack or check"), (["completion"], "bash, zsh or fish"),
                            (["verify"], "verify ORIGINAL FILE.qn"), (["compare"], "compare A B"),
                            (["checkpoint"], "save, load, ls"), (["checkpoint", "ls"], "--store runs/a"),
                            (["checkpoint", "save", "--store", "a"], "after checkpoint save")):
            self.refused(1, part, *words)

    def test_levels_and_keep(self):
        for level in ("-1", "-9", "-19"):
            self.refused(1, level + ": there are no levels", "compress", level, "--abs", "1", self.raw)
        self.ok("compress", "-k", "--abs", "0.1", self.raw)
        self.ok("decompress", "-k", self.raw + ".qn", "-o", self.path("back.f32"))
        self.assertTrue(os.path.exists(self.raw) and os.path.exists(self.raw + ".qn"))
        self.refused(1, "-k and --rm", "compress", "-f", "-k", "--rm", "--abs", "0.1", self.raw)
        self.assertTrue(os.path.exists(self.raw))
        # A negative number where a value belongs is no level.
        self.ok("compress", "-f", "--abs", "0.1", "--fill", "-9", self.raw)

    def test_types_and_shapes_as_others_write_them(self):
        data = self.write("plain", wave(600).tobytes())
        streams = []
        for shape in ("20x30", "20,30"):
            for name in ("f32", "float32", "float", "single"):
                out = self.path("%s-%s.qn" % (name, shape))
                self.ok("compress", "--abs", "0.01", "-t", name, "-s", shape, data, "-o", out)
                streams.append(read_bytes(out))
        self.assertEqual(len(set(streams)), 1)
        for name, code, short in (("double", "d", "f64"), ("float64", "d", "f64"), ("int16", "h", "i16"), ("short", "h", "i16"),
                                  ("uint8", "B", "u8"), ("int8", "b", "i8"), ("int", "i", "i32"), ("uint32", "I", "u32"),
                                  ("int64", "q", "i64"), ("ushort", "H", "u16"), ("float16", "H", "f16"),
                                  ("bfloat16", "H", "bf16")):
            source = self.write("n", array.array(code, [1] * 40).tobytes())
            result = self.ok("compress", "--json", "-f", "--lossless", "-t", name, "-s", "40", source)
            self.assertEqual(self.json(result)["dtype"], short)
        self.refused(1, "-s 20x30", "compress", "--abs", "1", "-t", "f32", "-s", "20", "30", data)
        self.refused(1, "-s 20x30x4", "compress", "--abs", "1", "-t", "f32", "-s", "20", "30", "4", data)
        # numpy's short codes count bytes and would be read wrongly.
        for code in ("f4", "<f4", "i4", "<i8"):
            self.refused(1, "unknown type", "compress", "--abs", "1", "-t", code, "-s", "20x30", data)

    def test_wrong_order_of_files(self):
        self.ok("compress", "--abs", "0.01", self.raw)
        stream = self.raw + ".qn"
        self.refused(1, f"type quern verify {self.raw} {stream}", "verify", stream, self.raw)
        self.refused(1, f"type quern verify {self.raw} {stream}", "compare", self.raw, stream)
        self.refused(1, f"type quern verify {self.raw} {stream}", "compare", stream, self.raw)
        self.ok("verify", self.raw, stream)

    def test_raw_elements_under_names_of_other_kinds_are_told(self):
        self.ok("compress", "--abs", "0.01", self.raw)
        for name, told in (("a.txt", True), ("a.tif", True), ("a.raw", False), ("a.f32", False), ("a", False)):
            result = self.ok("decompress", self.raw + ".qn", "-o", self.path(name))
            self.assertEqual(b"raw elements" in result.stderr, told, name)
        quiet = self.ok("decompress", "-q", "-f", self.raw + ".qn", "-o", self.path("a.txt"))
        self.assertEqual(quiet.stderr, b"")

    def test_negative_places_of_regions_count_from_the_end(self):
        self.ok("compress", "--lossless", self.raw)
        values = read_array(self.raw, "f")
        rows = [values[i * 30:(i + 1) * 30] for i in range(20)]
        for region, rows_of, columns in (("-1,:", slice(-1, None), slice(None)), ("-3:-1,:", slice(-3, -1), slice(None)),
                                         (":-5,-4:", slice(None, -5), slice(-4, None)), ("0:3,-30:", slice(0, 3), slice(-30, None)),
                                         ("-20,2:-2", slice(0, 1), slice(2, -2))):
            self.ok("decompress", "-f", "--region", region, self.raw + ".qn", "-o", self.path("part"))
            expected = [value for row in rows[rows_of] for value in row[columns]]
            self.assertEqual(list(read_array(self.path("part"), "f")), expected, region)
        for region, part in (("-21,:", "leaves the array at axis 0"), (":,:-31", "leaves the array at axis 1"),
                             ("-1:-2,:", "leaves the array"), ("--1,:", "cannot be read"), ("-,:", "cannot be read")):
            self.refused(1, part, "decompress", "-f", "--region", region, self.raw + ".qn", "-o", self.path("part"))

    def test_completion_knows_the_works_of_checkpoint(self):
        script = self.ok("completion", "bash").stdout.decode()
        done = subprocess.run(["bash", "-c", script + """
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _quern; echo "${COMPREPLY[*]}"; }
ask quern checkpoint sa; ask quern checkpoint save --ba; ask quern checkpoint gc --ke; ask quern compress --ps
"""], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.stdout.split("\n")[:4], ["save", "--base", "--keep --keep-every --keep-best", "--psnr"])
        for shell, part in (("zsh", "save) shift words"), ("fish", "checkpoint; and __fish_seen_subcommand_from save' -l base")):
            self.assertIn(part, self.ok("completion", shell).stdout.decode())


class Reports(CliTest):
    def line(self, *words):
        lines = self.ok(*words).stderr.decode().splitlines()
        return lines

    def test_small_inputs_have_a_speed_and_empty_ones_no_ratio(self):
        raw = self.write("x_2000.f32", wave(2000).tobytes())
        lines = self.line("compress", "--abs", "0.01", raw)
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], r"  [0-9.]+ MB/s$")
        self.assertNotRegex(lines[0], r" 0 MB/s")
        empty = self.write("x_0.f32", b"")
        lines = self.line("compress", "--abs", "0.01", empty)
        self.assertIn(": empty  0 -> ", lines[0])
        self.assertNotIn("MB/s", lines[0])

    def test_lossless_is_said_once(self):
        raw = self.write("x_2000.f32", wave(2000).tobytes())
        self.assertEqual(self.line("compress", "--lossless", raw)[0].count("lossless"), 1)
        lines = self.line("compress", "-f", "--psnr", "500", raw)
        self.assertEqual(len(lines), 2)
        self.assertIn("every bit is kept; no smaller stream of 500 dB was found", lines[0])
        self.assertRegex(self.line("compress", "-f", "--psnr", "50", raw)[-1], r"PSNR 5\d\.\d\d dB")

    def test_ratios_out_of_reach_are_told_in_plain_numbers(self):
        raw = self.write("x_2000.f32", wave(2000).tobytes())
        self.refused(4, "the ratio 1000000000 cannot be reached; the best is ", "compress", "--ratio", "1e9", raw)
        self.refused(4, "the ratio 999.500 cannot be reached", "compress", "--ratio", "999.5", raw)


class Files(CliTest):
    def test_permissions_and_times_of_inputs_are_kept(self):
        old = os.umask(0o022)
        self.addCleanup(os.umask, old)
        for number, mode in enumerate((0o600, 0o640, 0o644, 0o660, 0o444, 0o700)):
            raw = self.write("x%d_500.f32" % number, wave(500).tobytes())
            os.chmod(raw, mode)
            os.utime(raw, ns=(10**18 + number, 1234567890123456789 + number))
            back = self.path("back%d.npy" % number)
            self.ok("compress", "--abs", "0.01", raw)
            self.ok("decompress", raw + ".qn", "-o", back)
            for made in (raw + ".qn", back):
                info = os.stat(made)
                got = stat.S_IMODE(info.st_mode)
                self.assertEqual(got, (mode & 0o666 | 0o600) & ~0o022, (oct(mode), oct(got)))
                self.assertEqual(info.st_mtime_ns, 1234567890123456789 + number)

    def test_output_is_never_open_to_more_people(self):
        """While it is written, too: every file that appears is looked at."""
        raw = self.write("x_40x300x300.f32", wave(3600000).tobytes())
        os.chmod(raw, 0o600)
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        process = subprocess.Popen([harness.QUERN, "compress", "-q", "--abs", "1e-3", "--goal", "speed", raw])
        seen = set()
        while process.poll() is None:
            for name in self.files():
                try:
                    seen.add(stat.S_IMODE(os.stat(self.path(name)).st_mode))
                except FileNotFoundError:
                    pass
        self.assertEqual(process.returncode, 0)
        self.assertEqual(seen | {stat.S_IMODE(os.stat(raw + ".qn").st_mode)}, {0o600})


class ProgressLine(CliTest):
    def shares(self, *words):
        text = self.ok(*words, "--progress", "always").stderr.decode()
        self.assertNotRegex(text, r"\d %, \d+ s(?! left)")
        return [int(share) for share in re.findall(r"(\d+) %", text)], text

    def test_every_codec_and_goal_moves(self):
        raw = self.write("field_60x160x160.f32", wave(60 * 160 * 160).tobytes())
        stream = self.path("out.qn")
        for bound in (["--abs", "1e-3"], ["--abs", "1e-3", "--goal", "psnr"], ["--psnr", "70"], ["--ratio", "8"],
                      ["--abs", "1e-3", "--codec", "stencil"]):
            shares, text = self.shares("compress", "-f", *bound, raw, "-o", stream)
            self.assertEqual(shares, sorted(shares), bound)
            self.assertEqual(shares[-1], 100, bound)
            # Ten a second at most are shown: a machine that needs a second shows several.
            if len(shares) > 5:
                self.assertGreaterEqual(len(set(shares)), 4, (bound, shares))
            self.assertIn(" MB/s", text)


if __name__ == "__main__":
    harness.main()
