# Arrays go in, come back, and keep what was promised; names, pipes, JSON, reports.
import array
import json
import math
import os
import random
import re
import stat
import struct
import unittest

import harness
from harness import CliTest, read_array, read_bytes, run, wave

# Long forms of options that the manual lists by their short ones, and those it leaves to --help.
IN_HELP_ONLY = {"--help", "--type", "--shape", "--output", "--stdout", "--force", "--threads", "--quiet", "--verbose",
                "--level", "--repeats"}


class RoundTrips(CliTest):
    def setUp(self):
        super().setUp()
        self.values = wave(6000)
        self.raw = self.write("field_10x20x30.f32", self.values.tobytes())

    def back(self, name="out.raw"):
        return read_array(self.path(name), "f")

    def test_default_names_and_the_bound(self):
        self.ok("compress", "--abs", "0.01", self.raw)
        stream = self.raw + ".qn"
        self.assertLess(os.path.getsize(stream), len(self.values) * 4)
        os.remove(self.raw)
        self.ok("decompress", stream)
        self.assert_within(self.values, read_array(self.raw, "f"), 0.01)

    def test_every_bound_kind(self):
        spread = max(self.values) - min(self.values)
        for kind, value, bound in [("--abs", 1e-3, 1e-3), ("--rel", 1e-3, 1e-3 * spread), ("--psnr", 60, None),
                                   ("--ratio", 4, None), ("--pwrel", 1e-2, None), ("--lossless", None, 0.0)]:
            words = [kind] if value is None else [kind, value]
            result = self.ok("compress", *words, "--verify", "--json", "-f", "-o", self.path("x.qn"), self.raw)
            report = self.json(result)
            self.assertEqual(report["violations"], 0)
            self.assertEqual(report["bound"]["kind"], kind[2:])
            self.ok("decompress", "-f", self.path("x.qn"), "-o", self.path("out.raw"))
            back = self.back()
            if bound is not None:
                self.assert_within(self.values, back, bound)
            if kind == "--pwrel":
                self.assertTrue(all(abs(x - y) <= 1e-2 * abs(x) for x, y in zip(self.values, back)))
            if kind == "--ratio":
                self.assertGreaterEqual(len(self.values) * 4 / os.path.getsize(self.path("x.qn")), 4)
            if kind == "--psnr":
                self.assertGreaterEqual(report["psnr_db"], 60)

    def test_json_has_what_scripts_need(self):
        keys = ("input_bytes output_bytes ratio codec bound seconds mb_per_s max_error psnr_db violations device "
                "threads version").split()
        c = self.json(self.ok("compress", "--abs", "0.01", "--json", self.raw))
        d = self.json(self.ok("decompress", "--json", "-o", self.path("out.raw"), self.raw + ".qn"))
        v = self.json(self.ok("verify", "--json", self.raw, self.raw + ".qn"))
        for report in (c, d, v):
            for key in keys:
                self.assertIn(key, report)
            self.assertGreater(report["mb_per_s"], 0)
            self.assertGreater(report["seconds"], 0)
        self.assertEqual(c["input_bytes"], 24000)
        self.assertEqual(c["output_bytes"], os.path.getsize(self.raw + ".qn"))
        self.assertAlmostEqual(c["ratio"], 24000 / c["output_bytes"])
        self.assertIsNone(c["max_error"])
        self.assertEqual(d["output_bytes"], 24000)
        self.assertEqual(v["violations"], 0)
        self.assertLessEqual(v["max_error"], 0.01)

    def test_codec_auto_says_what_it_chose_and_why(self):
        ratio = self.json(self.ok("compress", "--rel", "1e-3", "--json", "-o", self.path("r.qn"), self.raw))
        self.assertEqual(ratio["codec_reason"], "the smallest of those tried")
        self.assertEqual([t["codec"] for t in ratio["tried"]], ["lorenzo", "lossless", "stencil"])
        self.assertEqual(min(t["bytes"] for t in ratio["tried"]), ratio["output_bytes"])
        speed = self.json(self.ok("compress", "--rel", "1e-3", "--goal", "speed", "--json", "-o", self.path("s.qn"),
                                  self.raw))
        self.assertEqual((speed["codec"], speed["codec_reason"], speed["tried"]), ("lorenzo", "the goal is speed", []))
        self.assertEqual(ratio["tried"][0]["bytes"], speed["output_bytes"])
        named = self.json(self.ok("compress", "--rel", "1e-3", "--codec", ratio["codec"], "--json", "-o",
                                  self.path("n.qn"), self.raw))
        self.assertEqual((named["codec_reason"], named["tried"]), ("asked for", []))
        self.assertEqual(read_bytes(self.path("n.qn")), read_bytes(self.path("r.qn")))
        text = self.ok("compress", "--rel", "1e-3", "-f", "-o", self.path("r.qn"), self.raw).stderr.decode()
        self.assertIn("(smallest; ", text)
        text = self.ok("compress", "--rel", "1e-3", "-v", "-f", "-o", self.path("r.qn"), self.raw).stderr.decode()
        self.assertIn("the smallest of those tried; ", text)
        # The decoder knows no goal.
        for name in ("r.qn", "s.qn"):
            self.ok("decompress", "-f", self.path(name), "-o", self.path("out.raw"))
            self.assert_within(self.values, self.back(), 1e-3 * (max(self.values) - min(self.values)))

    def test_targets_are_met_or_it_is_said_what_can_be(self):
        # On fewer values the PSNR of stencil jumps by a dB from bound to bound, without noise its sizes do.
        noise = random.Random(5)
        large = self.write("field_20x40x60.f32", array.array("f", [x + noise.random() for x in wave(48000)]).tobytes())
        for codec in ("auto", "stencil", "lorenzo"):
            report = self.json(self.ok("compress", "--psnr", "60", "--codec", codec, "--json", "--verify", "-f", "-o",
                                       self.path("p.qn"), large))
            self.assertGreaterEqual(report["psnr_db"], 60)
            self.assertLess(report["psnr_db"], 60.5)
            report = self.json(self.ok("compress", "--ratio", "6", "--codec", codec, "--json", "-f", "-o",
                                       self.path("q.qn"), self.raw))
            self.assertGreaterEqual(report["ratio"], 6)
            if report["ratio"] > 6 * 1.03:
                self.assertLess(report["ratio_below"], 6)
        steps = self.write("steps_4000.i16", array.array("h", [i // 7 % 5 for i in range(4000)]).tobytes())
        said = self.ok("compress", "--ratio", "1.5", steps).stderr.decode()
        self.assertIn("lossless already gives a ratio of", said)
        self.refused(4, "the ratio 1000000 cannot be reached", "compress", "--ratio", "1e6", "-f", self.raw)

    def test_infinite_psnr_is_null(self):
        self.ok("compress", "--lossless", self.raw)
        v = self.json(self.ok("verify", "--json", self.raw, self.raw + ".qn"))
        self.assertIsNone(v["psnr_db"])
        self.assertEqual(v["max_error"], 0)

    def test_pipes_give_the_same_bytes(self):
        self.ok("compress", "--abs", "0.01", self.raw)
        with open(self.raw + ".qn", "rb") as f:
            expected = f.read()
        piped = self.ok("compress", "--abs", "0.01", "-t", "f32", "-s", "10x20x30", "-", stdin=self.values.tobytes())
        self.assertEqual(piped.stdout, expected)
        back = self.ok("decompress", "-", stdin=expected)
        self.assert_within(self.values, array.array("f", back.stdout), 0.01)
        again = self.ok("decompress", "-c", self.raw + ".qn")
        self.assertEqual(back.stdout, again.stdout)

    def test_pipe_whose_bound_needs_everything(self):
        self.ok("compress", "--rel", "1e-3", self.raw)
        with open(self.raw + ".qn", "rb") as f:
            expected = f.read()
        piped = self.ok("compress", "--rel", "1e-3", "-t", "f32", "-s", "10x20x30", "-", stdin=self.values.tobytes())
        self.assertEqual(piped.stdout, expected)

    def test_pipe_larger_than_memory_is_spooled_and_says_so(self):
        values = wave(3 << 20)
        words = ["compress", "--rel", "1e-3", "-t", "f32", "-s", "3x1024x1024", "--memory", "24M", "-"]
        refused = run(*words, "-o", self.path("x.qn"), stdin=values.tobytes(), env={"TMPDIR": self.folder.name})
        self.assertEqual(refused.returncode, 5)
        self.assertIn(b"--goal speed", refused.stderr)  # the smallest stream takes more; which it is does not depend on memory
        words[1:1] = ["--goal", "speed"]
        piped = self.ok(*words, "-o", self.path("x.qn"), stdin=values.tobytes(), env={"TMPDIR": self.folder.name})
        self.assertIn(b"temporary file", piped.stderr)
        self.assertEqual([f for f in self.files() if "quern-" in f], [])
        low, high = min(values), max(values)
        given = run(*words, "--range", "%r:%r" % (low, high), "-o", self.path("y.qn"), stdin=values.tobytes())
        self.assertEqual(given.returncode, 0, given.stderr)
        self.assertNotIn(b"temporary file", given.stderr)
        self.ok("decompress", "--memory", "24M", self.path("y.qn"), "-o", self.path("y.raw"))
        self.assert_within(values, read_array(self.path("y.raw"), "f"), 1e-3 * (high - low))

    def test_threads_do_not_change_bytes(self):
        for threads in (1, 2, 3):
            self.ok("compress", "--rel", "1e-4", "-T", threads, self.raw, "-o", self.path("t%d" % threads))
        one = read_bytes(self.path("t1"))
        self.assertEqual(one, read_bytes(self.path("t2")))
        self.assertEqual(one, read_bytes(self.path("t3")))

    def test_fill_values_and_nan_come_back_bit_for_bit(self):
        bits = array.array("I", self.values.tobytes())
        bits[7] = 0x7FC00001  # NaN with a payload
        bits[8] = 0xFF800000  # -Inf
        bits[9] = struct.unpack("I", struct.pack("f", 1e20))[0]
        raw = self.write("gaps.raw", bits.tobytes())
        self.ok("compress", "--rel", "1e-3", "-t", "f32", "-s", "6000", "--fill", "1e20", "--verify", raw)
        self.ok("decompress", raw + ".qn", "-o", self.path("out.raw"))
        back = read_array(self.path("out.raw"), "I")
        for i in (7, 8, 9):
            self.assertEqual(back[i], bits[i])
        spread = max(self.values) - min(self.values)
        floats = self.back()
        self.assertTrue(all(abs(x - y) <= 1e-3 * spread for i, (x, y) in enumerate(zip(self.values, floats))
                            if i not in (7, 8, 9)))

    def test_big_endian_skip_and_column_major(self):
        swapped = array.array("f", self.values)
        swapped.byteswap()
        raw = self.write("be.dat", b"HEADER00" + swapped.tobytes())
        self.ok("compress", "--lossless", "-t", "f32", "-s", "10x20x30", "--big-endian", "--skip", "8", raw)
        self.ok("decompress", raw + ".qn", "-o", self.path("out.raw"))
        self.assertEqual(self.back(), self.values)
        self.ok("compress", "--lossless", "-f", "-t", "f32", "-s", "30x20x10", "--order", "F",
                self.write("f.dat", self.values.tobytes()), "-o", self.path("f.qn"))
        info = self.json(self.ok("info", "--json", self.path("f.qn")))
        self.assertEqual(info["streams"][0]["shape"], [10, 20, 30])
        self.ok("verify", "--order", "F", self.path("f.dat"), self.path("f.qn"))

    def test_region(self):
        self.ok("compress", "--lossless", self.raw)
        self.ok("decompress", "--region", "2:4,5,10:20", self.raw + ".qn", "-o", self.path("part.raw"))
        part = read_array(self.path("part.raw"), "f")
        expected = [self.values[(z * 20 + 5) * 30 + x] for z in (2, 3) for x in range(10, 20)]
        self.assertEqual(list(part), expected)
        piped = self.ok("decompress", "--region", "2:4,5,10:20", "-", stdin=read_bytes(self.raw + ".qn"))
        self.assertEqual(piped.stdout, part.tobytes())
        self.refused(1, "--region", "decompress", "--region", "0:11,:,:", self.raw + ".qn", "-o", self.path("p"))

    def test_npy_there_and_back(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (10, 20, 30), }"
        header += b" " * (118 - len(header) - 1) + b"\n"
        npy = self.write("a.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header +
                         self.values.tobytes())
        self.ok("compress", "--lossless", npy)
        self.ok("decompress", npy + ".qn", "-o", self.path("b.npy"))
        self.ok("compare", npy, self.path("b.npy"))
        data = read_bytes(self.path("b.npy"))
        self.assertEqual(data[:6], b"\x93NUMPY")
        self.assertTrue(data.endswith(self.values.tobytes()))

    def test_several_inputs_and_folders(self):
        other = self.write("other_6000.f32", self.values.tobytes())
        os.mkdir(self.path("out"))
        self.ok("compress", "--abs", "0.1", self.raw, other, "-o", self.path("out"))
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["field_10x20x30.f32.qn", "other_6000.f32.qn"])
        lines = self.ok("compress", "-f", "--json", "--abs", "0.1", self.raw, other).stdout.splitlines()
        self.assertEqual([json.loads(line)["input"] for line in lines], [self.raw, other])
        self.refused(1, "folder", "compress", "--abs", "0.1", self.raw, other, "-o", self.path("one.qn"))

    def test_one_bad_input_does_not_stop_the_others(self):
        result = run("compress", "-q", "--abs", "0.1", self.path("missing_5.f32"), self.raw)
        self.assertEqual(result.returncode, 2)
        self.assertTrue(os.path.exists(self.raw + ".qn"))
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_rm_removes_only_after_success(self):
        self.ok("compress", "--abs", "0.1", "--rm", self.raw)
        self.assertEqual(self.files(), ["field_10x20x30.f32.qn"])
        self.ok("decompress", "--rm", self.raw + ".qn")
        self.assertEqual(self.files(), ["field_10x20x30.f32"])
        self.refused(2, "exists already", "compress", "--abs", "1", "--rm", self.raw, "-o", self.write("there", b"old"))
        self.assertTrue(os.path.exists(self.raw))

    def test_quiet_and_verbose(self):
        self.assertEqual(self.ok("compress", "-q", "--abs", "0.1", self.raw).stderr, b"")
        human = self.ok("compress", "-f", "--abs", "0.1", self.raw)
        self.assertEqual(len(human.stderr.splitlines()), 1)
        self.assertIn(b"MB/s", human.stderr)
        self.assertEqual(human.stdout, b"")
        self.assertEqual(len(self.ok("compress", "-v", "-f", "--abs", "0.1", self.raw).stderr.splitlines()), 3)

    def test_progress_only_when_asked(self):
        shown = self.ok("compress", "--progress", "always", "--abs", "0.1", self.raw, "-o", self.path("p.qn"))
        self.assertIn(b"%", shown.stderr)
        hidden = self.ok("compress", "--abs", "0.1", self.raw)
        self.assertNotIn(b"%", hidden.stderr)

    def test_permissions_follow_umask_and_input(self):
        os.chmod(self.raw, 0o640)
        self.ok("compress", "--abs", "0.1", self.raw, preexec=lambda: os.umask(0o022))
        self.assertEqual(stat.S_IMODE(os.stat(self.raw + ".qn").st_mode), 0o640)
        os.chmod(self.raw, 0o666)
        self.ok("compress", "-f", "--abs", "0.1", self.raw, "-o", self.path("w.qn"), preexec=lambda: os.umask(0o027))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("w.qn")).st_mode), 0o640)

    def test_verify_finds_what_is_wrong(self):
        self.ok("compress", "--abs", "0.01", self.raw)
        changed = array.array("f", self.values)
        changed[45] += 1.0
        other = self.write("changed.raw", changed.tobytes())
        result = run("verify", other, self.raw + ".qn")
        self.assertEqual(result.returncode, 4)
        self.assertIn(b"[0,1,15]", result.stdout)
        self.assertIn(b"[0,1,15]", result.stderr)
        report = json.loads(run("verify", "--json", other, self.raw + ".qn").stdout)
        self.assertEqual(report["violations"], 1)
        self.assertEqual(report["first_violations"][0]["index"], "[0,1,15]")
        small = self.json(self.ok("verify", "--json", "--memory", "8M", self.raw, self.raw + ".qn"))
        self.assertEqual(small["violations"], 0)

    def test_compare(self):
        changed = array.array("f", self.values)
        changed[100] += 0.5
        other = self.write("b.raw", changed.tobytes())
        report = self.json(self.ok("compare", "-t", "f32", "-s", "10x20x30", "--json",
                                   self.write("a.raw", self.values.tobytes()), other))
        self.assertAlmostEqual(report["max_error"], 0.5, places=5)
        self.assertEqual(report["max_error_index"], "[0,3,10]")
        self.assertGreater(report["psnr_db"], 40)
        self.assertIsNotNone(report["ssim"])
        words = ["compare", "-t", "f32", "-s", "10x20x30", self.path("a.raw"), other, "--html", self.path("r.html")]
        page = run(*words)
        if b"no picture reports" in page.stderr:
            self.assertEqual(page.returncode, 1)
            return
        self.assertEqual(page.returncode, 0, page.stderr)
        text = read_bytes(self.path("r.html"))
        self.assertTrue(text.rstrip().endswith(b"</html>"))
        self.assertNotIn(b"src=\"http", text)
        self.refused(2, "exists already", *words)
        self.ok(*words, "-f")

    def test_bench_lists_every_codec(self):
        codecs = [json.loads(line)["name"] for line in self.ok("list", "codecs", "--json").stdout.splitlines()]
        self.assertIn("lossless", codecs)
        rows = [json.loads(line) for line in
                self.ok("bench", "--json", "--repeats", "1", "--rel", "1e-2,1e-3", self.raw).stdout.splitlines()]
        self.assertEqual(sorted(set(r["codec"] for r in rows)), sorted(codecs))
        for row in rows:
            self.assertEqual(row["violations"], 0)
            self.assertEqual(row["mask_bytes"], 0)
            self.assertGreater(row["compress_mb_per_s"], 0)
        holes = self.write("holes_6000.f32", array.array("f", [math.nan if i % 50 < 7 else x for i, x in
                                                               enumerate(self.values)]).tobytes())
        row = self.json(self.ok("bench", "--json", "--repeats", "1", "--rel", "1e-2", "--codec", "stencil", holes))
        told = self.json(self.ok("compress", "--json", "--rel", "1e-2", "--codec", "stencil", holes))
        self.assertEqual(row["output_bytes"], told["output_bytes"])
        self.assertEqual(row["mask_bytes"], self.json(self.ok("info", "--json", holes + ".qn"))["streams"][0]["mask"]["bytes"])
        self.assertIn(b"copy", self.ok("bench", "--repeats", "1", "--rel", "1e-2", self.raw).stdout)

    def test_list_doctor_help_version(self):
        self.assertIn(b"cpu", self.ok("list", "devices").stdout)
        doctor = self.json(self.ok("doctor", "--json"))
        self.assertTrue(doctor["healthy"])
        self.assertIn("lossless", doctor["codecs"])
        levels = ["baseline", "avx2", "avx512"]
        self.assertEqual(doctor["kernels"]["available"], levels[:len(doctor["kernels"]["available"])])
        self.assertEqual(doctor["kernels"]["chosen"], doctor["kernels"]["available"][-1])
        for library in ("zstd", "xxHash"):
            self.assertRegex(doctor["libraries"][library], r"^\d+\.\d+\.\d+$")
        self.assertEqual("hdf5" in doctor["files"], "HDF5" in doctor["libraries"])
        self.assertEqual(doctor["cuda"]["why_none"] is None, len(doctor["cuda"]["devices"]) > 0)
        text = self.ok("doctor").stdout.decode()
        self.assertIn(doctor["kernels"]["chosen"] + " is used", text)
        bad = run("doctor", env={"TMPDIR": self.path("nowhere")})
        self.assertEqual(bad.returncode, 2)
        self.assertIn(b"PROBLEM", bad.stdout)
        self.assertTrue(self.ok("--version").stdout.startswith(b"quern "))
        for shell in ("bash", "zsh", "fish"):
            self.assertIn(b"decompress", self.ok("completion", shell).stdout)

    def test_the_report_of_a_comparison_names_no_folder(self):
        self.ok("compress", "--abs", "0.01", self.raw)
        self.ok("decompress", self.raw + ".qn", "-o", self.path("back_10x20x30.f32"))
        self.ok("compare", self.raw, self.path("back_10x20x30.f32"), "--html", self.path("r.html"))
        page = read_bytes(self.path("r.html")).decode()
        self.assertIn("back_10x20x30.f32 against field_10x20x30.f32", page)
        self.assertNotIn(self.folder.name, page)
        self.assertLess(len(page), 2000000)
        for outside in ("http:", "https:", "<script", "url(", "<link"):
            self.assertNotIn(outside, page)

    def test_info_says_what_is_masked(self):
        values = wave(64 * 128 * 64)
        for i in range(0, 64 * 128 * 16):
            values[i] = float("nan")
        values[300000] = math.inf
        for i in range(400000, 410000):
            values[i] = -9999.0
        land = [i for i in range(410000, 64 * 128 * 64) if i // 64 * 7919 % 97 < 40]
        for i in land:
            values[i] = 1e30
        raw = self.write("gaps_64x128x64.f32", values.tobytes())
        self.ok("compress", "--abs", "1e-3", "--fill", "-9999", raw)
        mask = self.json(self.ok("info", "--json", raw + ".qn"))["streams"][0]["mask"]
        self.assertEqual((mask["nan"], mask["infinite"], mask["fill"]), (64 * 128 * 16, 1, 10000))
        self.assertEqual(mask["repeated"], len(land))
        self.assertEqual(mask["elems"], mask["nan"] + mask["infinite"] + mask["fill"] + mask["repeated"])
        self.assertAlmostEqual(mask["share"], mask["elems"] / len(values))
        self.assertAlmostEqual(mask["stream_share"], mask["bytes"] / os.path.getsize(raw + ".qn"))
        self.assertGreater(mask["bytes"], 0)
        text = self.ok("info", raw + ".qn").stdout.decode()
        self.assertRegex(text, r"masked +[\d.]+ % of the values \(131072 NaN, 1 infinite, 10000 fill, \d+ repeated\) in")
        self.assertIsNone(self.json(self.ok("info", "--json", "--headers-only", raw + ".qn"))["streams"][0]["mask"])
        self.refused(1, "give one of them", "info", "--check", "--headers-only", raw + ".qn")
        self.ok("compress", "--abs", "1e-3", "--no-mask-search", self.raw)
        self.assertRegex(self.ok("info", self.raw + ".qn").stdout.decode(), r"masked +no value")
        small = self.ok("info", "--memory", "1K", raw + ".qn").stdout.decode()
        self.assertIn("masked    not known: ", small)

    def test_info_finds_damage_in_masks(self):
        values = wave(6000)
        for i in range(0, 6000, 5):
            values[i] = float("nan")
        raw = self.write("gaps_6000.f32", values.tobytes())
        self.ok("compress", "--abs", "1e-3", raw)
        data = bytearray(read_bytes(raw + ".qn"))
        data[self.json(self.ok("info", "--json", raw + ".qn"))["streams"][0]["header_bytes"] + 20] ^= 1
        result = run("info", "--json", self.write("bad.qn", bytes(data)))
        self.assertEqual(result.returncode, 3)
        stream = json.loads(result.stdout)["streams"][0]
        self.assertIsNone(stream["mask"])
        self.assertIn("segment 0", stream["damage"][0])

    def test_the_manual_has_every_option(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "..", "..", "docs", "man", "quern.1")) as f:
            manual = f.read().replace("\\-", "-")
        works = ("save", "load", "ls", "info", "diff", "verify", "repair", "compact", "gc", "convert",
                 "bench", "tiers", "place", "keeper")
        verbs = ("compress", "decompress", "info", "verify", "compare", "bench", "estimate", "model", "train", "h5",
                 "list", "doctor", "completion")
        for work in works:
            text = self.ok("checkpoint", work, "--help").stdout.decode()
            for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)):
                self.assertTrue(option in manual or option in IN_HELP_ONLY, (work, option))
        for verb in verbs:
            self.assertIn("quern " + verb, manual)
            text = self.ok(verb, "--help").stdout.decode()
            for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)):
                self.assertTrue(option in manual or option in IN_HELP_ONLY, (verb, option))

    def test_tiny_arrays(self):
        for shape, count in (("1", 1), ("1x1x1", 1), ("0", 0), ("5x0x3", 0), ("1x1x1x1x1x1x1x2", 2)):
            raw = self.write("tiny.raw", wave(count).tobytes())
            for bound in (["--abs", "0.1"], ["--rel", "0.1"], ["--lossless"]):
                result = self.ok("compress", "-f", "--json", "--verify", *bound, "-t", "f32", "-s", shape, raw)
                self.assertLessEqual(self.json(result)["output_bytes"], count * 4 + 256 + 1)
                self.ok("decompress", "-f", raw + ".qn", "-o", self.path("back.raw"))
                self.assertEqual(os.path.getsize(self.path("back.raw")), count * 4)
                self.ok("verify", raw, raw + ".qn")

    def test_all_types(self):
        for name, code in (("i8", "b"), ("u8", "B"), ("i16", "h"), ("u16", "H"), ("i32", "i"), ("u32", "I"),
                           ("i64", "q"), ("u64", "Q"), ("f64", "d")):
            values = array.array(code, [code in "df" and i * 0.5 or i % 100 for i in range(1000)])
            raw = self.write("v_1000." + name, values.tobytes())
            self.ok("compress", "--abs", "2", "--verify", raw)
            self.ok("decompress", raw + ".qn", "-o", self.path("v.raw"), "-f")
            self.assert_within(values, read_array(self.path("v.raw"), code), 2)


if __name__ == "__main__":
    harness.main()
