#!/usr/bin/env python3
"""What looks wrong about an input is said in one line with the option to give; --strict-input makes it an error."""
import array
import struct

import harness
from harness import CliTest, wave

FILL = struct.unpack("<f", struct.pack("<f", 9.969209968386869e36))[0]


def holed(count=6400, fill=FILL, every=3):
    values = wave(count)
    for i in range(0, count, every):
        values[i] = fill
    return values


class Suspicions(CliTest):
    def setUp(self):
        super().setUp()
        self.holed = self.write("t_80x80.f32", holed().tobytes())

    def lines(self, result):
        return [line for line in result.stderr.decode().splitlines() if line.startswith("quern: ")]

    def test_UndeclaredFill_IsSaidWithItsOption(self):
        result = self.ok("compress", "--rel", "1e-3", self.holed)
        lines = self.lines(result)
        self.assertEqual(len(lines), 1)
        self.assertIn("33 % of the values are 9.96921e+36", lines[0])
        self.assertIn("give --fill 9.96921e+36", lines[0])
        self.assertIn("range stretched by 9.96921e+36", result.stderr.decode())

    def test_OptionThatIsNamed_CuresIt(self):
        result = self.ok("compress", "--json", "--strict-input", "--fill", "9.96921e+36", "--rel", "1e-3", self.holed)
        line = self.json(result)
        self.assertEqual(line["suspicions"], [])
        self.assertFalse(line["range_stretched"])
        self.assertLess(line["enforced"]["value"], 0.03)

    def test_Json_ListsSuspicions(self):
        line = self.json(self.ok("compress", "--json", "-q", "--rel", "1e-3", self.holed))
        self.assertEqual([s["kind"] for s in line["suspicions"]], ["fill_value"])
        self.assertEqual(line["suspicions"][0]["option"], "--fill 9.96921e+36")
        self.assertAlmostEqual(line["suspicions"][0]["share"], 1 / 3, delta=0.001)
        self.assertTrue(line["range_stretched"])
        self.assertEqual(line["range"][1], FILL)

    def test_Quiet_SaysNothing(self):
        self.assertEqual(self.ok("compress", "-q", "--rel", "1e-3", self.holed).stderr, b"")

    def test_StrictInput_WritesNothing(self):
        before = self.files()
        for words in (("compress", "--rel", "1e-3"), ("compress", "--abs", "1"), ("compress", "--lossless"),
                      ("bench", "--repeats", "1")):
            self.refused(1, "--strict-input", *words, "--strict-input", self.holed)
        result = self.refused(1, "--strict-input", "compress", "--strict-input", "--abs", "1", "-t", "f32", "-s", "80x80",
                              "--codec", "lorenzo", "-", stdin=holed().tobytes())
        self.assertEqual(result.stdout, b"")
        self.assertEqual(self.files(), before)

    def test_Pipe_IsLookedAt(self):
        result = self.ok("compress", "--abs", "1", "-t", "f32", "-s", "80x80", "--codec", "lorenzo", "-",
                         stdin=holed().tobytes())
        self.assertIn("--fill 9.96921e+36", result.stderr.decode())

    def test_BytesOfOtherOrder_AreSaid(self):
        values = wave(6400)
        values.byteswap()
        path = self.write("b_80x80.f32", values.tobytes())
        self.assertIn("give --big-endian", self.lines(self.ok("compress", "--rel", "1e-3", path))[0])
        self.assertEqual(self.lines(self.ok("compress", "-f", "--rel", "1e-3", "--big-endian", path)), [])
        right = self.write("r_80x80.f32", wave(6400).tobytes())
        self.assertIn("leave --big-endian out", self.lines(self.ok("compress", "--rel", "1e-3", "--big-endian", right))[0])

    def test_OtherType_IsSaid(self):
        path = self.write("w.raw", wave(6400).tobytes())
        self.assertIn("give -t f32", self.lines(self.ok("compress", "--rel", "1e-3", "-t", "f64", "-s", "3200", path))[0])
        path = self.write("d.raw", array.array("d", wave(6400)).tobytes())
        lines = self.lines(self.ok("compress", "--rel", "1e-3", "-t", "f64", "-s", "6400", path))
        self.assertEqual(lines, [])

    def test_Compare_LeavesSuspectedFillOutOfItsFigures(self):
        self.ok("compress", "-q", "--rel", "1e-3", self.holed)
        self.ok("decompress", "-q", self.holed + ".qn", "-o", self.path("back_80x80.f32"))
        line = self.json(self.ok("compare", "--json", self.holed, self.path("back_80x80.f32")))
        self.assertEqual(len(line["suspicions"]), 1)
        self.assertLess(line["psnr_db"] or 0, 40)
        self.assertLess(line["max"], 100)
        self.ok("compare", self.holed, self.path("back_80x80.f32"), "--html", self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as f:
            self.assertIn("--fill 9.96921e+36", f.read())

    def test_VerifyAndBench_LeaveSuspectedFillOutOfTheirFigures(self):
        self.ok("compress", "-q", "--rel", "1e-3", self.holed)
        line = self.json(self.ok("verify", "--json", self.holed, self.holed + ".qn"))
        self.assertEqual(line["violations"], 0)
        self.assertLess(line["psnr_db"] or 0, 40)
        line = self.json(self.ok("bench", "--json", "--repeats", "1", "--codec", "lorenzo", "--rel", "1e-3", self.holed))
        self.assertEqual(len(line["suspicions"]), 1)
        self.assertLess(line["psnr_db"] or 0, 40)

    def test_OrdinaryField_GivesNone(self):
        path = self.write("w_80x80.f32", wave(6400).tobytes())
        result = self.ok("compress", "--strict-input", "--rel", "1e-3", path)
        self.assertEqual(self.lines(result), [])


if __name__ == "__main__":
    harness.main()
