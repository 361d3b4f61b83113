"""pyquern.numcodecs.Quern: numcodecs' own checks, memory orders, raw buffers, and arrays of Zarr format 2."""
import array
import json
import os
import pickle
import sys
import tempfile
import unittest

import numpy as np

from support import import_or_skip

numcodecs = import_or_skip("numcodecs")
import pyquern as quern  # noqa: E402
from pyquern.numcodecs import Quern  # noqa: E402

try:
    import zarr
except ImportError:
    zarr = None

FIELD = np.cumsum(np.random.default_rng(8).normal(size=(12, 20, 30)), axis=0)


def fixture():
    """Arrays, codecs, and decimals that each codec keeps. More may be added at the ends."""
    wave = np.cumsum(np.random.default_rng(20).integers(-9, 10, (6, 7, 8)), axis=2) / 8
    gaps = wave.astype("f4")
    gaps[0, :3], gaps[1, 2], gaps[2, 0, 0] = np.nan, -9999, np.inf
    arrays = [gaps, np.asfortranarray(wave), (wave * 8).astype("i2"), wave.astype(">f4"), (wave * 8 + 128).astype("u1")]
    codecs = [Quern(abs=0.004), Quern(abs=0.004, codec="lorenzo", goal="speed", fill=-9999), Quern(lossless=True)]
    return arrays, codecs, [2, 2, None]


def flat(values):
    """Elements in the order they lie in memory."""
    return (values.T if values.flags.f_contiguous and not values.flags.c_contiguous else values).reshape(-1)


class Codec(unittest.TestCase):
    def test_arrays_of_all_types_and_orders(self):
        codec = Quern(abs=0.25)
        for dtype in ("f4", ">f4", "f8", "f2", "i2", ">i4", "u8", "c8"):
            for order in "CF":
                values = (FIELD * 10).astype(dtype).copy(order=order)
                decoded = codec.decode(codec.encode(values))
                self.assertEqual(decoded.view(dtype).shape, (values.size,))
                error = np.abs(decoded.view(dtype) - flat(values))
                self.assertLessEqual(error.max(), 0.25 * (2 if dtype == "c8" else 1), (dtype, order))
                out = np.empty_like(values)
                self.assertIs(codec.decode(codec.encode(values), out=out), out)
                self.assertEqual(flat(out).tobytes(), decoded.tobytes())
        self.assertEqual(len({codec.encode(FIELD.copy(order="F")), codec.encode(FIELD.T.copy())}), 1)

    def test_raw_buffers_and_what_is_no_number_are_lossless(self):
        codec = Quern(abs=100)
        values = FIELD.astype("f4")
        for raw in (values.tobytes(), bytearray(values.tobytes()), array.array("b", values.tobytes()), memoryview(values.tobytes()), b""):
            self.assertEqual(codec.decode(codec.encode(raw)).tobytes(), bytes(raw))
        for exact in (np.arange(100, dtype="u1"), np.arange(-50, 50, dtype="i1"), np.array([True, False]), np.array(["a", "bc"]),
                      np.array(["2026-01-01"], "M8[D]"), np.zeros(3, [("a", "f4"), ("b", "i8")])):
            self.assertEqual(codec.decode(codec.encode(exact)).tobytes(), exact.tobytes())
        small = np.arange(100, dtype="u1")
        self.assertFalse(np.array_equal(Quern(abs=10, dtype="u1").decode(Quern(abs=10, dtype="u1").encode(small)), small))
        self.assertEqual(Quern(abs=10, dtype="f4").decode(Quern(abs=10, dtype="f4").encode(FIELD)).tobytes(), FIELD.tobytes())
        with self.assertRaisesRegex(TypeError, "objects"):
            codec.encode(np.array([{}], object))

    def test_a_shuffle_before_it_loses_nothing(self):
        values, shuffle, codec = FIELD.astype("f4"), numcodecs.Shuffle(4), Quern(abs=100)
        back = shuffle.decode(codec.decode(codec.encode(shuffle.encode(values))))
        self.assertEqual(bytes(back), values.tobytes())

    def test_encoding_again_changes_nothing(self):
        codec = Quern(abs=1e-2)
        once = codec.decode(codec.encode(FIELD)).reshape(FIELD.shape)
        mixed = once.copy()
        mixed[3:5] = 7.123
        again = codec.decode(codec.encode(mixed)).reshape(FIELD.shape)
        self.assertEqual(np.delete(again, [3, 4], 0).tobytes(), np.delete(once, [3, 4], 0).tobytes())
        self.assertLessEqual(np.abs(again - mixed).max(), 1e-2)
        self.assertLessEqual(np.abs(once - FIELD).max(), 1e-2)

    def test_specials_and_fills(self):
        values = FIELD.astype("f4")
        values[0], values[1], values[2, 0] = -999, np.nan, np.inf
        back = Quern(abs=0.5, fill=-999).decode(Quern(abs=0.5, fill=-999).encode(values)).reshape(values.shape)
        self.assertEqual(back[:2].tobytes() + back[2, 0].tobytes(), values[:2].tobytes() + values[2, 0].tobytes())

    def test_configurations(self):
        for codec in (Quern(abs=1e-3), Quern(pwrel=0.01, codec="lorenzo", goal="speed"), Quern(lossless=True),
                      Quern(abs=1e-3, effort=3), Quern(abs=1, fill=[-999, float("nan")], dtype="<f4")):
            config = json.loads(json.dumps(codec.get_config()))
            self.assertEqual(numcodecs.get_codec(config), codec)
            self.assertEqual(eval(repr(codec), {"Quern": Quern, "nan": float("nan")}), codec)
            self.assertEqual(pickle.loads(pickle.dumps(codec)), codec)
            self.assertEqual(hash(pickle.loads(pickle.dumps(codec))), hash(codec))
        self.assertEqual(Quern(abs=1e-3).get_config(),
                         {"id": "quern", "bound": "abs", "value": 1e-3, "codec": "auto", "goal": "ratio"})
        self.assertEqual(Quern(abs=1e-3, effort=9).get_config()["effort"], 9)
        self.assertNotEqual(Quern(abs=1), Quern(abs=2))
        with self.assertRaisesRegex(ValueError, "effort"):
            Quern(abs=1, effort=10)
        with self.assertRaises(AttributeError):
            Quern(abs=1).codec_id = "other"

    def test_what_is_refused(self):
        for arguments, kind, words in (({}, TypeError, "exactly one"), ({"rel": 1e-3}, TypeError, "bound_of"), ({"abs": "1"}, TypeError, "number"),
                                       ({"abs": 1, "codec": "zip"}, quern.Unsupported, "zip"), ({"abs": 1, "goal": "zip"}, ValueError, "zip")):
            with self.assertRaisesRegex(kind, words):
                Quern(**arguments)
        for config, words in (({"id": "quern", "bound": "abs", "value": 1, "curve": 3}, "'curve'.*update"),
                              ({"id": "quern", "bound": "norm", "value": 1}, "'norm'"), ({"id": "quern", "bound": "abs"}, "without a value")):
            with self.assertRaisesRegex((quern.Unsupported, ValueError), words):
                numcodecs.get_codec(config)
        stream = Quern(abs=1).encode(FIELD)
        for out, words in ((np.empty(3), "out has"), (bytearray(5), "out has"), (bytes(FIELD.nbytes), "writable")):
            with self.assertRaisesRegex(ValueError, words):
                Quern(abs=1).decode(stream, out=out)
        with self.assertRaises(quern.CorruptStream):
            Quern(abs=1).decode(stream[:-5])
        with self.assertRaises(quern.CorruptStream):
            Quern(abs=1).decode(b"")

    def test_the_checks_of_numcodecs(self):
        try:
            from numcodecs.tests import common
        except ImportError as problem:
            self.skipTest(f"no numcodecs.tests here ({problem})")
        for values in (np.arange(1000, dtype="f4"), np.linspace(0, 1, 1000).reshape(100, 10), np.linspace(0, 1, 1000).reshape((100, 10), order="F"),
                       np.arange(1000, dtype="i4"), np.arange(500, dtype="u1"), np.array([True] * 9)):
            common.check_encode_decode(values, Quern(abs=1e-3), precision=2)
            common.check_encode_decode(values, Quern(lossless=True))
        common.check_config(Quern(abs=1e-3))
        common.check_err_encode_object_buffer(Quern(abs=1e-3))
        common.Quern = Quern  # where check_repr() looks for names
        common.check_repr("Quern(abs=0.001, codec='auto', goal='ratio')")
        common.check_repr("Quern(lossless=True, codec='auto', goal='ratio', dtype='<f4')")

    def test_chunks_of_earlier_releases(self):
        """Those of the folder fixture/quern stay as they are: what numcodecs asks of a codec's tests."""
        try:
            from numcodecs.tests import common
        except ImportError as problem:
            self.skipTest(f"no numcodecs.tests here ({problem})")
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(os.path.dirname(os.path.abspath(__file__)))
        arrays, codecs, precision = fixture()
        self.assertEqual(len(os.listdir("fixture/quern")), len(arrays) + len(codecs))  # the check would make what is missing
        common.check_backwards_compatibility("quern", arrays, codecs, precision=precision)


@unittest.skipIf(zarr is None, "no zarr here")
class Format2(unittest.TestCase):
    def made(self, values, codec, order="C", **arguments):
        if hasattr(zarr, "create_array"):
            return zarr.create_array({}, shape=values.shape, chunks=(5, 20, 17), dtype=values.dtype, zarr_format=2, order=order,
                                     compressors=codec, filters=None, **arguments)
        return zarr.create(shape=values.shape, chunks=(5, 20, 17), dtype=values.dtype, order=order, compressor=codec, **arguments)

    def test_arrays(self):
        for dtype in ("f4", "f8", ">f4", "i4"):
            for order in "CF":
                values = (FIELD * 10).astype(dtype)
                made = self.made(values, Quern(abs=0.25), order, fill_value=3)
                made[...] = values
                self.assertLessEqual(np.abs(made[...].astype("f8") - values.astype("f8")).max(), 0.25, (dtype, order))
                once = made[...]
                made[2:7, 3:9] = 5
                again = made[...]
                keep = np.ones(values.shape, bool)
                keep[2:7, 3:9] = False
                self.assertEqual(again[keep].tobytes(), once[keep].tobytes())

    def test_found_by_its_name_in_a_store(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.zarr")
            values = FIELD.astype("f4")
            made = zarr.open(path, mode="w", shape=values.shape, chunks=(6, 20, 30), dtype="f4", zarr_format=2, compressor=Quern(abs=0.1)) \
                if not hasattr(zarr, "create_array") else zarr.create_array(
                    path, shape=values.shape, chunks=(6, 20, 30), dtype="f4", zarr_format=2, compressors=Quern(abs=0.1), filters=None)
            made[...] = values
            with open(os.path.join(path, ".zarray"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["compressor"], Quern(abs=0.1).get_config())
            self.assertLessEqual(np.abs(zarr.open(path, mode="r")[...] - values).max(), 0.1)
            with open(os.path.join(path, "0.0.0"), "r+b") as file:
                file.seek(60)
                file.write(b"damage")
            with self.assertRaises(quern.CorruptStream):
                zarr.open(path, mode="r")[...]


if __name__ == "__main__":
    sys.exit(unittest.main())
