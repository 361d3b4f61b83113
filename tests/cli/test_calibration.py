# quern compress --calibration and quern estimate --calibration: what is recorded, and what it corrects.
import csv
import math
import os

from harness import CliTest, main, read_bytes, run, wave

HEADER = "codec,codec_version,model,bound,ratio_estimated,ratio_measured"


class Calibration(CliTest):
    def setUp(self):
        super().setUp()
        self.field = self.write("a_40x50x30.f32", wave(60000).tobytes())
        self.file = self.path("calibration.csv")

    def compress(self, bound, *words):
        return self.json(self.ok("compress", "-f", "--json", "--codec", "lorenzo", "--rel", bound, *words, self.field,
                                 "-o", self.path("a.qn")))

    def estimate(self, *words):
        found = self.json(self.ok("estimate", "--json", "--codec", "lorenzo", "--at", "1e-3", *words, self.field))
        return found["estimates"][0], found["notes"]

    def rows(self):
        with open(self.file, newline="") as f:
            return list(csv.DictReader(f))

    def test_streams_do_not_change(self):
        self.compress("1e-3")
        plain = read_bytes(self.path("a.qn"))
        out = self.compress("1e-3", "--calibration", self.file)
        self.assertEqual(read_bytes(self.path("a.qn")), plain)
        row, = self.rows()
        self.assertEqual(row["codec"], "lorenzo")
        self.assertAlmostEqual(float(row["ratio_measured"]), out["ratio"], places=3)
        estimate, _ = self.estimate()
        self.assertAlmostEqual(float(row["ratio_estimated"]) / estimate["ratio"], 1, delta=0.02)
        self.assertNotIn("expected", out)

    def test_three_compressions_correct_estimates(self):
        before, _ = self.estimate()
        self.assertEqual(self.estimate("--calibration", self.file)[0]["ratio"], before["ratio"])  # not there yet
        for bound in ("1e-2", "1e-3"):
            self.compress(bound, "--calibration", self.file)
        self.assertEqual(self.estimate("--calibration", self.file)[0]["ratio"], before["ratio"])  # too few
        self.compress("1e-4", "--calibration", self.file)
        logs = sorted(math.log2(float(r["ratio_measured"]) / float(r["ratio_estimated"])) for r in self.rows())
        after, notes = self.estimate("--calibration", self.file)
        for key in ("ratio", "ratio_low", "ratio_high"):
            self.assertAlmostEqual(after[key] / before[key], 2 ** logs[1], places=5)
        self.assertTrue(any("the median of 3 compressions" in note for note in notes), notes)

    def test_other_models_versions_and_cut_lines_count_nothing(self):
        before, _ = self.estimate()
        self.compress("1e-3", "--calibration", self.file)
        line = read_bytes(self.file).decode().splitlines()[1].split(",")
        other_model, other_version = list(line), list(line)
        other_model[2], other_version[1] = "0" * 16, "99"
        lines = [",".join(other_model), ",".join(other_version), ",".join(line)[:-9][:20], "x,y", ",".join(line[:5] + ["nan"])]
        with open(self.file, "a") as f:
            f.write("\n".join(lines * 4) + "\n")
        self.assertEqual(self.estimate("--calibration", self.file)[0]["ratio"], before["ratio"])

    def test_what_estimates_do_not_speak_of_is_not_recorded(self):
        for words in (["--goal", "speed"], ["--effort", "4"], ["--set", "mask=2"], ["--no-mask-search"]):
            result = run("compress", "-f", "--codec", "lorenzo", "--rel", "1e-3", *words, "--calibration", self.file,
                         self.field, "-o", self.path("a.qn"))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(b"nothing is recorded", result.stderr)
            self.assertFalse(os.path.exists(self.file), words)
        self.compress("1e-3", "--effort", "6", "--calibration", self.file)
        self.assertEqual(len(self.rows()), 1)

    def test_codecs_that_auto_never_takes_are_recorded(self):
        self.ok("compress", "--codec", "interp", "--rel", "1e-3", "--calibration", self.file, self.field, "-o",
                self.path("a.qn"))
        self.assertEqual([r["codec"] for r in self.rows()], ["interp"])

    def test_lines_begin_where_a_line_was_cut(self):
        self.compress("1e-3", "--calibration", self.file)
        whole = read_bytes(self.file)
        line = whole.splitlines()[1]
        for cut in (0, 10, len(HEADER), len(HEADER) + 1, len(whole) - 20, len(whole) - 1):
            self.write("calibration.csv", whole[:cut])
            self.estimate("--calibration", self.file)
            self.compress("1e-3", "--calibration", self.file)
            lines = read_bytes(self.file).split(b"\n")
            self.assertEqual((lines[0], lines[-2], lines[-1]), (HEADER.encode(), line, b""), cut)
            self.assertLessEqual(len(lines), 4)

    def test_a_file_of_another_kind_is_left_alone(self):
        self.write("notes.txt", b"my notes\n")
        self.refused(1, "is no calibration file", "estimate", "--calibration", self.path("notes.txt"), self.field)
        result = run("compress", "-q", "-f", "--rel", "1e-3", "--codec", "lorenzo", "--calibration", self.path("notes.txt"), self.field)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(read_bytes(self.path("notes.txt")), b"my notes\n")
        self.assertFalse(os.path.exists(self.field + ".qn"))  # said before anything is written
        result = run("compress", "-q", "--rel", "1e-3", "--codec", "lorenzo", "--calibration", self.path("no/c.csv"), self.field)
        self.assertEqual(result.returncode, 2)
        self.assertFalse(os.path.exists(self.field + ".qn"))
        self.refused(1, "leave --model out", "estimate", "--model", "m", "--calibration", self.file, self.field)
        self.refused(1, "leave --features deep", "estimate", "--features", "deep", "--calibration", self.file, self.field)


if __name__ == "__main__":
    main()
