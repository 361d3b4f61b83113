# --digits and --information: which bound they find, that every value keeps to it, and what --explain says.
import array
import decimal
import math
import random

import harness
from harness import CliTest, read_array, run


def field(offset, count=24 * 40 * 50):
    source = random.Random(7)
    return array.array("f", [offset + 20 * math.sin(0.13 * (i % 50)) * math.cos(0.05 * (i // 50)) +
                             0.01 * source.random() for i in range(count)])


def half_unit(value, digits):
    """Half a unit in the last of so many significant digits of a value, by decimal arithmetic."""
    exact = decimal.Decimal(value)
    return decimal.Decimal(5).scaleb(exact.adjusted() - digits)


class Digits(CliTest):
    def compress(self, values, *options):
        raw = self.write("a_24x40x50.f32", values.tobytes())
        out = self.json(self.ok("compress", "-f", "--json", *options, raw, "-o", self.path("a.qn")))
        self.ok("decompress", "-f", self.path("a.qn"), "-o", self.path("back"))
        return out, read_array(self.path("back"), "f")

    def test_each_value_keeps_its_digits(self):
        for offset, kind in ((280.0, "abs"), (3.0, "pwrel")):
            values = field(offset)
            for digits in (2, 4):
                out, back = self.compress(values, "--digits", digits)
                self.assertEqual(out["enforced"]["kind"], kind)
                self.assertEqual(out["precision"], {"digits": digits, "mantissa_bits": None, "axis": None})
                for x, y in zip(values, back):
                    self.assertLessEqual(abs(decimal.Decimal(x) - decimal.Decimal(y)), half_unit(x, digits))

    def test_information_says_how_many_bits(self):
        values = field(280.0)
        bits = []
        for share in (0.9, 0.99, 0.999):
            out, back = self.compress(values, "--information", share)
            bits.append(out["precision"]["mantissa_bits"])
            for x, y in zip(values, back):
                self.assertLessEqual(abs(x - y), abs(x) * 2.0 ** (-bits[-1] - 1))
        self.assertEqual(bits, sorted(bits))
        self.assertLess(bits[-1], 23)
        text = self.ok("compress", "-f", "--information", "0.99", self.path("a_24x40x50.f32")).stderr.decode()
        self.assertIn("99 %% of the information: %d bits of the mantissa" % bits[1], text)

    def test_estimates_are_for_the_bound_found(self):
        raw = self.write("a_24x40x50.f32", field(280.0).tobytes())
        out = self.json(self.ok("compress", "--json", "--digits", 4, raw))
        told = self.json(self.ok("estimate", "--json", "--digits", 4, "--codec", "stencil", raw))
        self.assertEqual(told["estimates"][0]["bound"], out["enforced"])
        raw = self.write("b_24x40x50.f32", field(3.0).tobytes())
        self.refused(1, "--pwrel 0.0005", "estimate", "--digits", 3, raw)

    def test_refusals_name_the_remedy(self):
        raw = self.write("a_24x40x50.f32", field(280.0).tobytes())
        whole = self.write("a_24x1000.i32", array.array("i", range(24000)).tobytes())
        self.refused(1, "--abs", "compress", "--digits", 3, whole)
        self.refused(1, "1 to 17", "compress", "--digits", 0, raw)
        self.refused(1, "--digits 18", "compress", "--digits", 18, raw)
        self.refused(1, "0.99", "compress", "--information", 1, raw)
        self.refused(1, "exactly one", "compress", "--information", 0.5, "--rel", "1e-3", raw)
        self.refused(1, "exactly one", "compress", "--information", 0.5, "--digits", 3, raw)
        self.refused(1, "--pwrel", "h5", "args", "--digits", 3)
        self.assertEqual(self.files(), ["a_24x1000.i32", "a_24x40x50.f32"])

    def test_from_a_pipe_as_from_a_file(self):
        values = field(280.0)
        out, _ = self.compress(values, "--digits", 3)
        piped = run("compress", "--digits", 3, "-q", "-t", "f32", "-s", "24x40x50", "-", stdin=values.tobytes())
        self.assertEqual(len(piped.stdout), out["output_bytes"])


class Explained(CliTest):
    def test_expected_stands_beside_obtained(self):
        raw = self.write("a_24x40x50.f32", field(3.0).tobytes())
        for options in (("--psnr", 60), ("--ratio", 12), ("--rel", "1e-3"), ("--lossless",)):
            out = self.json(self.ok("compress", "-f", "--json", "--explain", *options, raw))
            self.assertGreaterEqual(out["encodings"], 1)
            mine = [e for e in out["expected"] if e["codec"] == out["codec"]]
            self.assertEqual(len(mine), 1, out)
            self.assertEqual(mine[0]["bound"]["kind"], out["enforced"]["kind"])
            self.assertLessEqual(mine[0]["ratio_low"], mine[0]["ratio_high"])
            text = self.ok("compress", "-f", "--explain", *options, raw).stderr.decode()
            self.assertRegex(text, r"%s, .*: expected [\d.]+x? .*obtained %.4g" % (out["codec"], out["ratio"]))
            self.assertIn("encoded %d time" % out["encodings"], text)
        text = self.ok("compress", "-f", "--explain", "--pwrel", "1e-3", raw).stderr.decode()
        self.assertIn("nothing was expected", text)

    def test_changes_no_byte(self):
        raw = self.write("a_24x40x50.f32", field(3.0).tobytes())
        self.ok("compress", "--psnr", 50, raw, "-o", self.path("a"))
        self.ok("compress", "--psnr", 50, "--explain", "-T", "2", raw, "-o", self.path("b"))
        self.assertEqual(harness.read_bytes(self.path("a")), harness.read_bytes(self.path("b")))


if __name__ == "__main__":
    harness.main()
