"""digits= and information=: the bound that is found, and that every value keeps to it."""
import os
import tempfile
import unittest

import numpy as np
import pyquern as quern


def field(offset):
    rng = np.random.default_rng(3)
    z, y, x = np.indices((12, 40, 50))
    return (offset + 20 * np.sin(0.13 * x) * np.cos(0.05 * (40 * z + y)) + 0.01 * rng.random((12, 40, 50))).astype("f4")


class Precision(unittest.TestCase):
    def test_values_keep_their_digits(self):
        for offset, kind in ((280.0, "abs"), (3.0, "pwrel")):
            values = field(offset)
            for digits in (2, 4):
                found = quern.precision(values, digits=digits)
                self.assertEqual((found.bound.kind, found.mantissa_bits, found.axis), (kind, None, None))
                stream = quern.compress(values, digits=digits)
                self.assertEqual(quern.info(stream).requested, found.bound)
                wide = values.astype("f8")
                error = np.abs(wide - quern.decompress(stream).astype("f8"))
                self.assertTrue((error <= 5 * 10.0 ** -(digits + 1) * np.abs(wide)).all())

    def test_information_grows_with_the_share(self):
        values = field(280.0)
        found = [quern.precision(values, information=share) for share in (0.9, 0.99, 0.999)]
        bits = [each.mantissa_bits for each in found]
        self.assertEqual(bits, sorted(bits))
        self.assertIn(found[0].axis, (0, 1, 2))
        back = quern.decompress(quern.compress(values, information=0.99))
        self.assertTrue((np.abs(values - back) <= np.abs(values) * 2.0 ** -(bits[1] + 1)).all())

    def test_fill_values_do_not_count(self):
        values = field(280.0)
        values[0] = -9.0e33
        found = quern.precision(values, digits=4, fill=np.float32(-9.0e33))
        self.assertEqual(found.bound, quern.precision(values[1:], digits=4).bound)
        back = quern.decompress(quern.compress(values, digits=4, fill=np.float32(-9.0e33)))
        self.assertTrue(np.array_equal(back[0], values[0]))

    def test_strides_and_files(self):
        values = field(280.0)
        self.assertEqual(quern.precision(values.T, digits=3).bound, quern.precision(values.T.copy(), digits=3).bound)
        out = np.empty(values.nbytes + 1000, np.uint8)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.qn")
            report = quern.save(path, values, digits=3)
            self.assertEqual(report.enforced, quern.precision(values, digits=3).bound)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), quern.compress(values, digits=3))
        self.assertEqual(bytes(quern.compress(values, digits=3, out=out)), quern.compress(values, digits=3))

    def test_what_cannot_be_meant(self):
        values = field(3.0)
        for arguments, kind in (({"digits": 0}, ValueError), ({"digits": 18}, ValueError), ({"digits": 2.5}, ValueError),
                                ({"information": 0}, ValueError), ({"information": 1.0}, ValueError), ({}, TypeError),
                                ({"digits": 2, "information": 0.9}, TypeError), ({"digits": float("nan")}, ValueError)):
            with self.subTest(arguments=arguments), self.assertRaises(kind):
                quern.precision(values, **arguments)
        with self.assertRaises(TypeError):
            quern.compress(values, abs=1, digits=3)
        for call in (quern.precision, quern.compress):
            with self.assertRaises(quern.Unsupported):
                call(np.arange(100), digits=3)


if __name__ == "__main__":
    unittest.main()
