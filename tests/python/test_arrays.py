"""pyquern.compress() and decompress(): types, ranks, layouts, special values, bounds, previews, and arrays that are none."""
import array
import itertools
import sys
import unittest

import numpy as np
import pyquern as quern

FLOATS = ("f2", "f4", "f8")
INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
SHAPES = ((), (0,), (1,), (7,), (5, 6), (3, 0, 4), (4, 5, 6), (2, 3, 4, 5), (2,) * 8)


def values_of(dtype, shape, seed=0):
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return np.asarray(random.normal(size=shape)).astype(dtype)
    limits = np.iinfo(dtype)
    return np.asarray(random.integers(max(limits.min, -1000), min(limits.max, 1000), size=shape, dtype=dtype, endpoint=True))


def layouts(values):
    """The same values as arrays that lie otherwise in memory."""
    yield "C", values
    yield "F", values.copy(order="F")
    if values.ndim:
        yield "negative", values[::-1][::-1]
        wide = np.repeat(values, 2, axis=-1)
        yield "strided", wide[..., ::2]
        yield "reversed", np.flip(np.flip(values).copy())
    yield "big-endian", values.astype(values.dtype.newbyteorder(">"))
    packed = np.zeros(values.size * values.itemsize + 1, np.uint8)[1:].view(values.dtype).reshape(values.shape)
    packed[...] = values
    yield "unaligned", packed
    record = np.zeros(values.shape, [("tag", "u1"), ("value", values.dtype)])
    record["value"] = values
    yield "a field", record["value"]


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


class Arrays(unittest.TestCase):
    def test_every_type_and_shape_keeps_its_bound(self):
        for dtype, shape in itertools.product(FLOATS + INTEGERS, SHAPES):
            with self.subTest(dtype=dtype, shape=shape):
                values = values_of(dtype, shape)
                back = quern.decompress(quern.compress(values, lossless=True))
                self.assertTrue(same_bits(back, values))
                bound = 2.0 if values.dtype.kind in "iu" else 0.25
                back = quern.decompress(quern.compress(values, abs=bound))
                self.assertEqual((back.dtype, back.shape), (values.dtype, values.shape))
                self.assertTrue(np.all(np.abs(back.astype("f8") - values.astype("f8")) <= bound))

    def test_layouts_give_the_bytes_of_the_contiguous_array(self):
        for dtype, shape in itertools.product(("f4", "f8", "i2"), ((), (9,), (4, 5), (3, 4, 5))):
            values = values_of(dtype, shape)
            expected = quern.compress(values, abs=0.5)
            for name, other in layouts(values):
                with self.subTest(dtype=dtype, shape=shape, layout=name):
                    self.assertTrue(np.array_equal(other, values))
                    self.assertEqual(quern.compress(other, abs=0.5), expected)

    def test_a_broadcast_array_is_compressed_as_what_it_shows(self):
        values = np.broadcast_to(np.float32(3), (4, 5))
        self.assertTrue(np.array_equal(quern.decompress(quern.compress(values, lossless=True)), values))

    def test_special_values_come_back_bit_for_bit(self):
        for dtype in FLOATS:
            values = values_of(dtype, (400,))
            values[::7] = np.array(-0.0, dtype)
            values[1::7], values[2::7], values[3::7] = np.nan, np.inf, -np.inf
            values[4::7] = -999
            for bound in ({"abs": 0.1}, {"rel": 1e-2}, {"pwrel": 1e-2}, {"psnr": 40}, {"lossless": True}):
                with self.subTest(dtype=dtype, bound=bound):
                    back = quern.decompress(quern.compress(values, fill=-999, **bound))
                    for first in range(5):
                        self.assertEqual(back[first::7].tobytes(), values[first::7].tobytes())

    def test_bounds_hold_and_are_recorded(self):
        values = np.cumsum(values_of("f4", (40, 50)), axis=1)
        range_of = float(values.max()) - float(values.min())
        for kind, value in (("abs", 1e-2), ("rel", 1e-3), ("pwrel", 1e-3), ("psnr", 60.0), ("ratio", 4.0)):
            with self.subTest(kind=kind):
                stream = quern.compress(values, **{kind: value})
                back, info = quern.decompress(stream), quern.info(stream)
                self.assertEqual(info.requested, quern.Bound(kind, value))
                error = np.abs(back.astype("f8") - values)
                if kind == "abs":
                    self.assertLessEqual(error.max(), value)
                elif kind == "rel":
                    self.assertLessEqual(error.max(), value * range_of)
                elif kind == "pwrel":
                    self.assertTrue(np.all(error <= value * np.abs(values.astype("f8"))))
                elif kind == "psnr":
                    self.assertGreaterEqual(quern.compare(values, back).psnr_db, value)
                else:
                    self.assertGreaterEqual(values.nbytes / len(stream), value)
                self.assertTrue(quern.verify(values, stream).ok)

    def test_complex_numbers_have_an_extra_axis_of_two(self):
        for dtype in ("c8", "c16", ">c8"):
            for values in (np.arange(12).reshape(3, 4) * (1 + 2j), np.asfortranarray(np.ones((3, 4)) * 3j), np.array(1j)):
                values = values.astype(dtype)
                back = quern.decompress(quern.compress(values, lossless=True))
                self.assertEqual(back.shape, values.shape + (2,))
                self.assertTrue(np.array_equal(back[..., 0] + 1j * back[..., 1], values))

    def test_bfloat16_as_bits(self):
        bits = np.array([0x3f80, 0x4000, 0x7fc0, 0xc2c8, 0x8000] * 20, np.uint16)
        stream = quern.compress(quern.TypedArray(bits, "bf16"), abs=0.5, fill=-100)
        self.assertEqual(str(quern.info(stream).dtype), "bfloat16")
        back = quern.decompress(stream)
        words = back.array if isinstance(back, quern.TypedArray) else back.view(np.uint16)
        values = (words.astype(np.uint32) << 16).view(np.float32)
        expected = (bits.astype(np.uint32) << 16).view(np.float32)
        self.assertTrue(np.all((np.abs(values - expected) <= 0.5) | np.isnan(expected)))
        self.assertEqual(words[2::5].tolist(), bits[2::5].tolist())
        self.assertEqual(words[3::5].tolist(), bits[3::5].tolist())

    def test_bfloat16_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("no ml_dtypes here")
        values = values_of("f4", (30, 40)).astype(ml_dtypes.bfloat16)
        back = quern.decompress(quern.compress(values, abs=0.25))
        self.assertEqual(back.dtype, values.dtype)
        self.assertLessEqual(np.abs(back.astype("f8") - values.astype("f8")).max(), 0.25)

    def test_arrays_of_others(self):
        values = values_of("f4", (20,))

        class Interface:
            __array_interface__ = values.__array_interface__

        class Converts:
            def __array__(self, dtype=None, copy=None):
                return values

        for other in (Interface(), Converts(), array.array("f", values.tolist()), memoryview(values), _Dlpack(values),
                      np.float32(2.5)):
            with self.subTest(type=type(other).__name__):
                self.assertEqual(quern.compress(other, lossless=True), quern.compress(np.asarray(other) if not isinstance(
                    other, _Dlpack) else values, lossless=True))
        strided = values_of("f4", (6, 8))[:, ::2]
        self.assertEqual(quern.compress(_Dlpack(strided), abs=0.1), quern.compress(strided.copy(), abs=0.1))

    def test_what_is_no_array_of_numbers_is_a_type_error_that_says_what_to_do(self):
        for value, words in (
                (np.array([1, "a"], object), "astype"), (np.array(["a"]), "texts"), (np.array([b"a"]), "texts"),
                (np.array([True]), r"view\('u1'\)"), (np.array(["2026-01-01"], "M8[D]"), r"view\('i8'\)"),
                (np.array([1], "m8[s]"), r"view\('i8'\)"), (np.zeros(2, [("x", "f4")]), r"array\['x'\]"),
                (np.zeros(2, np.longdouble), "astype"), (np.ma.masked_array([1.0, 2.0], [0, 1]), r"filled\(value\)"),
                ([1.0, 2.0], "numpy.asarray"), (3.0, "numpy.asarray"), ("text", "numpy.asarray"), (None, "numpy.asarray")):
            with self.subTest(value=repr(value)), self.assertRaisesRegex(TypeError, words):
                quern.compress(value, lossless=True)
        with self.assertRaisesRegex(quern.InvalidArgument, r"9 axes.*reshape\(\)"):
            quern.compress(np.zeros((1,) * 9, "f4"), lossless=True)

    def test_out_is_filled(self):
        values = values_of("f4", (20, 30))
        stream = quern.compress(values, abs=0.1)
        out = np.empty_like(values)
        self.assertIs(quern.decompress(stream, out=out), out)
        self.assertTrue(same_bits(out, quern.decompress(stream)))
        box = np.empty((5, 30), "f4")
        quern.decompress(stream, region=(slice(3, 8),), out=box)
        self.assertTrue(same_bits(box, out[3:8]))
        dlpack = np.empty_like(values)
        quern.decompress(stream, out=_Dlpack(dlpack))
        self.assertTrue(same_bits(dlpack, out))

    def test_an_out_that_does_not_fit_is_refused_before_any_work(self):
        stream = quern.compress(values_of("f4", (20, 30)), abs=0.1)
        read_only = np.empty((20, 30), "f4")
        read_only.flags.writeable = False
        for out, words in ((read_only, "read-only"), (np.empty((30, 20), "f4").T, "C-contiguous"), (np.empty((20, 30), ">f4"), "order"),
                           (np.empty((20, 31), "f4"), r"\(20, 31\)"), (np.empty((20, 30)), "float64")):
            before = out.tobytes()
            with self.assertRaisesRegex(ValueError, words):
                quern.decompress(stream, out=out)
            self.assertEqual(out.tobytes(), before)
        with self.assertRaises(TypeError):
            quern.decompress(stream, out=[0.0])

    def test_compress_into_a_buffer(self):
        values = values_of("f4", (20, 30))
        expected = quern.compress(values, abs=0.1)
        room = bytearray(quern.compress_bound(values))
        self.assertGreaterEqual(len(room), values.nbytes + 256)
        part = quern.compress(values, abs=0.1, out=room)
        self.assertIsInstance(part, memoryview)
        self.assertEqual(bytes(part), expected)
        self.assertEqual(bytes(room[:len(expected)]), expected)
        with self.assertRaises(quern.InvalidArgument):
            quern.compress(values, abs=0.1, out=bytearray(10))
        with self.assertRaisesRegex(ValueError, "read-only"):
            quern.compress(values, abs=0.1, out=bytes(room))

    def test_regions_are_parts_of_the_whole(self):
        values = np.cumsum(values_of("f8", (30, 40, 20)), axis=0)
        stream = quern.compress(values, abs=1e-3)
        whole = quern.decompress(stream)
        for region in ((slice(0, 5),), (slice(None), slice(3, 4), slice(-5, None)), (slice(7, 7),), slice(28, 99)):
            self.assertTrue(same_bits(quern.decompress(stream, region=region), np.ascontiguousarray(whole[region])))
        for region, kind in (((slice(0, 5, 2),), ValueError), ((3,), TypeError), ((slice(None),) * 4, ValueError)):
            with self.assertRaises(kind):
                quern.decompress(stream, region=region)
        with self.assertRaises(TypeError):
            quern.decompress(stream, region=(slice(0, 1),), level=1)

    def test_levels_are_previews(self):
        values = np.cumsum(values_of("f4", (33, 40)), axis=1)
        stream = quern.compress(values, abs=1e-2, codec="stencil", settings={"layout": "levels"})
        info, whole = quern.info(stream), quern.decompress(stream)
        self.assertGreater(len(info.levels), 0)
        for number, shape in enumerate(info.levels, 1):
            level = quern.decompress(stream, level=number)
            self.assertEqual(level.shape, shape)
            self.assertEqual(level.flat[0], whole.flat[0])
        self.assertTrue(same_bits(quern.decompress(stream, level=0), whole))
        with self.assertRaisesRegex(quern.Unsupported, "level 99"):
            quern.decompress(stream, level=99)

    def test_info_has_fills_and_metadata(self):
        values = values_of("f4", (50,))
        stream = quern.compress(values, rel=1e-2, fill=[-999, 1e20], metadata=b'{"a":1}' * 300, codec="lorenzo")
        info = quern.info(stream)
        self.assertEqual(info.fills, (-999.0, float(np.float32(1e20))))
        self.assertEqual(info.metadata, b'{"a":1}' * 300)
        self.assertEqual((info.dtype, info.shape, info.codec, info.nbytes), (np.float32, (50,), "lorenzo", 200))
        self.assertEqual(info.requested, quern.Bound("rel", 1e-2))
        self.assertEqual(info.enforced.kind, "abs")
        self.assertEqual(quern.info(memoryview(stream)[:len(stream) - 10]), info)

    def test_fill_values_that_the_type_cannot_hold_are_refused(self):
        for fill in (300, 1.5, -1, float("nan")):
            with self.assertRaises(ValueError):
                quern.compress(np.zeros(3, "u1"), lossless=True, fill=fill)
        with self.assertRaises(ValueError):
            quern.compress(np.zeros(3, "f4"), lossless=True, fill=list(range(256)))
        with self.assertRaises(TypeError):
            quern.compress(np.zeros(3, "f4"), lossless=True, fill="x")

    def test_decoded_values_come_back_bit_for_bit_from_idempotent_streams(self):
        values = np.cumsum(values_of("f4", (50, 60)), axis=0)
        once = quern.decompress(quern.compress(values, abs=1e-2, settings={"idempotent": True}))
        self.assertTrue(same_bits(quern.decompress(quern.compress(once, abs=1e-2, settings={"idempotent": 1})), once))
        self.assertLessEqual(np.abs(once - values).max(), 1e-2)

    def test_verify_raises_where_the_bound_does_not_hold(self):
        values = values_of("f4", (100,))
        stream = quern.compress(values, abs=1e-2)
        self.assertTrue(quern.verify(values, stream).ok)
        other = values.copy()
        other[17] += 1
        with self.assertRaises(quern.BoundNotMet):
            quern.verify(other, stream)
        verdict = quern.verify(other, stream, raise_=False)
        self.assertEqual((verdict.ok, verdict.violations, verdict.first_index), (False, 1, 17))
        with self.assertRaises(ValueError):
            quern.compare(values, values.astype("f8"))


class _OnDevice:
    """What claims to lie on a device."""

    def __init__(self, **changed):
        self.__cuda_array_interface__ = {"shape": (4, 6), "typestr": "<f4", "data": (1 << 40, False), "version": 3, **changed}


@unittest.skipIf(quern.build_info()["cuda"]["available"], "there is a device, and the address is none of it")
class DeviceArrays(unittest.TestCase):
    def test_they_are_described_to_the_library(self):
        from pyquern import _capi
        from pyquern._array import given

        found = given(_OnDevice(strides=(48, 8)))
        self.assertEqual((found.c.memory, found.c.data, found.shape, tuple(found.c.strides[:2])), (_capi.CUDA, 1 << 40, (4, 6), (12, 2)))
        self.assertFalse(any(given(_OnDevice()).c.strides[:2]))

    def test_without_a_device_they_are_errors_that_say_so(self):
        for array in (_OnDevice(), _OnDevice(stream=1)):
            with self.assertRaisesRegex(quern.Error, "CUDA|cuda|device"):
                quern.compress(array, abs=1e-3)

    def test_what_is_refused(self):
        for changed in ({"typestr": ">f4"}, {"typestr": "|b1"}, {"mask": object()}, {"strides": (25, 4)}):
            with self.assertRaises(TypeError):
                quern.compress(_OnDevice(**changed), abs=1e-3)


class _Dlpack:
    """What speaks DLPack and nothing else."""

    def __init__(self, values):
        self._values = values

    def __dlpack__(self, *, stream=None, **versioned):
        return self._values.__dlpack__(**versioned)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


if __name__ == "__main__":
    sys.exit(unittest.main())
