"""pyquern.estimate(): near to what compressing gives, and from little of the array."""
import math
import sys
import unittest

import numpy as np
import pyquern as quern


def field(*shape, seed=1):
    """Smooth, with noise."""
    random = np.random.default_rng(seed)
    axes = np.meshgrid(*(np.linspace(0, 6, extent) for extent in shape), indexing="ij")
    return (sum(np.sin((k + 1) * axis) for k, axis in enumerate(axes)) + 0.01 * random.normal(size=shape)).astype("f4")


class Estimates(unittest.TestCase):
    def test_near_to_the_truth(self):
        values = field(64, 128, 256)
        for found in quern.estimate(values, (1e-2, 1e-3), codecs=("lorenzo",), sample=16):
            stream = quern.compress(values, rel=found.bound.value, codec="lorenzo")
            ratio = values.nbytes / len(stream)
            self.assertLess(abs(found.ratio - ratio), 0.15 * ratio, found)
            self.assertLess(abs(found.psnr_db - quern.compare(values, quern.decompress(stream)).psnr_db), 1.0)
            self.assertTrue(found.estimated and found.mb_per_s > 0)
            self.assertLess(found.sampled, 0.3)

    def test_small_arrays_are_taken_whole(self):
        values = field(20, 30)
        found, = quern.estimate(values, [quern.Bound("abs", 0.01)], codecs=["stencil"])
        self.assertEqual(found.ratio, values.nbytes / len(quern.compress(values, abs=0.01, codec="stencil")))
        self.assertEqual(found.sampled, 1)
        self.assertEqual({each.codec for each in quern.estimate(values, [1e-2])}, {"lorenzo", "interp", "stencil"})

    def test_only_the_blocks_are_read(self):
        class Lazy:
            shape, read = (512, 512, 512), 0

            def __getitem__(self, box):
                part = field(*(each.stop - each.start for each in box))
                self.read += part.size
                return part

        lazy = Lazy()
        found, = quern.estimate(lazy, [1e-3], codecs=["lorenzo"], sample=8)
        self.assertLessEqual(lazy.read, 8 * 40000)
        self.assertAlmostEqual(found.sampled, lazy.read / 512**3)

    def test_constants_missing_values_and_wrong_arguments(self):
        values = np.full((10, 10), 3, "f4")
        found, = quern.estimate(values, [1e-3], codecs=["lorenzo"])
        self.assertEqual(found.psnr_db, math.inf)
        values[:5] = -999
        values[5:] = field(5, 10)
        found, = quern.estimate(values, [1e-2], codecs=["lorenzo"], fill=-999)
        self.assertTrue(30 < found.psnr_db < 80, found)
        with self.assertRaises(ValueError):
            quern.estimate(values, sample=0)
        with self.assertRaisesRegex(TypeError, r"filled\(value\)"):
            quern.estimate(np.ma.masked_array([1.0, 2.0], [0, 1]), (1e-2,))
        with self.assertRaises(quern.Unsupported):
            quern.estimate(values, codecs=["zip"])


if __name__ == "__main__":
    sys.exit(unittest.main())
