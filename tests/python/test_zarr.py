"""pyquern.zarr.QuernCodec in arrays of Zarr format 3: types, orders, shards, partial writes, and what is refused."""
import asyncio
import json
import os
import pickle
import sys
import tempfile
import threading
import unittest

import numpy as np

from support import import_or_skip

zarr = import_or_skip("zarr", (3, 0))
import pyquern as quern  # noqa: E402
from pyquern.zarr import QuernCodec  # noqa: E402

FIELD = np.cumsum(np.random.default_rng(9).normal(size=(12, 20, 30)), axis=0)


def made(values, codec=None, store=None, chunks=(5, 20, 17), **arguments):
    codec = QuernCodec(abs=0.25) if codec is None else codec
    return zarr.create_array({} if store is None else store, shape=values.shape, chunks=chunks, dtype=values.dtype, serializer=codec,
                             compressors=None, **arguments)


class Format3(unittest.TestCase):
    def test_types(self):
        for dtype in ("f2", "f4", "f8", ">f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
            for order in "CF":
                values = np.clip(FIELD * 5 + 40, 0, 120).astype(dtype)
                array = made(values, config={"order": order})
                array[...] = values
                self.assertLessEqual(np.abs(array[...].astype("f8") - values.astype("f8")).max(), 0.25, dtype)
                self.assertEqual(array[...].dtype, values.dtype)

    def test_writing_parts_changes_no_other_value(self):
        values = FIELD.astype("f4")
        array = made(values, QuernCodec(abs=1e-2))
        array[...] = values
        random = np.random.default_rng(10)
        expected = array[...]
        for _ in range(8):
            a, b = sorted(random.integers(0, 12, 2))
            new = random.normal(size=(b - a, 20, 30)).astype("f4")
            array[a:b] = new
            found = array[...]
            self.assertEqual(found[:a].tobytes() + found[b:].tobytes(), expected[:a].tobytes() + expected[b:].tobytes())
            if b > a:
                self.assertLessEqual(np.abs(found[a:b] - new).max(), 1e-2)
            expected = found

    def test_shards_and_ranks(self):
        values = FIELD.astype("f4")
        array = made(values, QuernCodec(abs=1e-2), chunks=(2, 10, 15), shards=(6, 20, 30))
        array[...] = values
        self.assertLessEqual(np.abs(array[...] - values).max(), 1e-2)
        self.assertLessEqual(np.abs(array[3:5, 7, 2:29] - values[3:5, 7, 2:29]).max(), 1e-2)
        for shape in ((), (1,), (2,) * 8):
            few = np.full(shape, 1.5, "f8")
            array = made(few, chunks=shape)
            array[...] = few
            self.assertTrue(np.all(np.abs(array[...] - few) <= 0.25))

    def test_fill_values_come_back_bit_for_bit(self):
        values = FIELD.astype("f4")
        values[0], values[1, 0], values[2], values[3, 0] = np.nan, -777, 9999, np.inf
        array = made(values, QuernCodec(abs=0.5, fill=9999), fill_value=-777)
        array[...] = values
        back = array[...]
        for place in (0, (1, 0), 2, (3, 0)):
            self.assertEqual(back[place].tobytes(), values[place].tobytes())
        self.assertEqual(array.resize((20, 20, 30)), None)
        self.assertTrue(np.all(array[15:] == -777))

    def test_stores_name_the_codec_and_are_read_without_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.zarr")
            values = FIELD.astype("f4")
            made(values, QuernCodec(abs=1e-2, fill=[float("nan"), -1]), path)[...] = values
            with open(os.path.join(path, "zarr.json"), encoding="utf-8") as file:
                codecs = json.load(file)["codecs"]
            self.assertEqual(codecs, [{"name": "quern", "configuration": {
                "bound": "abs", "value": 1e-2, "codec": "auto", "goal": "ratio", "fill": ["NaN", -1.0]}}])
            self.assertLessEqual(np.abs(zarr.open_array(path, mode="r")[...] - values).max(), 1e-2)
            chunk = os.path.join(path, "c", "0", "0", "0")
            self.assertEqual(quern.info(chunk).shape, (5, 20, 17))
            with open(chunk, "r+b") as file:
                file.seek(50)
                file.write(b"damage")
            with self.assertRaises(quern.CorruptStream):
                zarr.open_array(path, mode="r")[...]

    def test_arrays_of_another_kind_are_decoded_into(self):
        """As those on a device are: the codec fills the memory that zarr's prototype makes."""
        class Elsewhere(zarr.core.buffer.core.NDBuffer):
            made = []

            @classmethod
            def create(cls, *, shape, dtype, order="C", fill_value=None):
                cls.made.append(np.empty(shape, dtype))
                return cls(cls.made[-1])

        prototype = zarr.core.buffer.BufferPrototype(zarr.core.buffer.cpu.Buffer, Elsewhere)
        values = FIELD[:5, :, :17].astype("f4")
        array = made(values, QuernCodec(abs=1e-2), chunks=values.shape)
        array[...] = values
        spec = array._async_array.metadata.get_chunk_spec((0, 0, 0), array._async_array.config, prototype)
        stream = array.store._store_dict["c/0/0/0"]
        found = QuernCodec(abs=1e-2)._decode_sync(stream, spec)
        self.assertIs(found.as_ndarray_like(), Elsewhere.made[-1])
        self.assertEqual(Elsewhere.made[-1].tobytes(), array[...].tobytes())

    def test_a_chunk_of_another_array_is_an_error(self):
        values = FIELD.astype("f4")
        store, other = zarr.storage.MemoryStore(), zarr.storage.MemoryStore()
        made(values, store=store)[...] = values
        made(values.astype("f8"), store=other)[...] = values
        store._store_dict["c/0/0/0"] = other._store_dict["c/0/0/0"]
        with self.assertRaisesRegex(quern.CorruptStream, "another array"):
            zarr.open_array(store, mode="r")[...]

    def test_configurations(self):
        for codec in (QuernCodec(abs=1e-3), QuernCodec(pwrel=0.01, codec="lorenzo", goal="speed"), QuernCodec(lossless=True)):
            self.assertEqual(QuernCodec.from_dict(json.loads(json.dumps(codec.to_dict()))), codec)
            self.assertEqual(pickle.loads(pickle.dumps(codec)), codec)
            self.assertEqual(hash(codec), hash(pickle.loads(pickle.dumps(codec))))
        self.assertNotIn("value", QuernCodec(lossless=True).to_dict()["configuration"])

    def test_what_is_refused(self):
        for values, words in ((np.ones(5, bool), "float16"), (np.ones(5, "c8"), "last axis of 2"), (np.array(["2026"], "M8[D]"), "view")):
            with self.assertRaisesRegex(TypeError, words):
                made(values, chunks=(1,))
        for compressors in (QuernCodec(abs=1), [QuernCodec(abs=1).to_dict()]):
            with self.assertRaisesRegex(TypeError, "QuernCodec.*pass it as serializer=, with compressors=None"):
                zarr.create_array({}, shape=(5,), chunks=(5,), dtype="f4", compressors=compressors)
        with self.assertRaisesRegex(ValueError, "abs= for integers"):
            made(np.ones(5, "i4"), QuernCodec(pwrel=1e-3), chunks=(5,))
        with self.assertRaisesRegex(ValueError, "8 axes"):
            made(np.ones((1,) * 9, "f4"), chunks=(1,) * 9)
        for arguments, words in (({}, "exactly one"), ({"rel": 1e-3}, "bound_of")):
            with self.assertRaisesRegex(TypeError, words):
                QuernCodec(**arguments)
        with self.assertRaisesRegex(quern.Unsupported, "'curve'.*update"):
            QuernCodec.from_dict({"name": "quern", "configuration": {"bound": "abs", "value": 1, "curve": 2}})
        with self.assertRaises(NotImplementedError):
            QuernCodec(abs=1).compute_encoded_size(10, None)

    def test_threads_and_event_loops_share_a_codec(self):
        codec = QuernCodec(abs=1e-2)
        values = FIELD.astype("f4")
        results = []

        def work():
            array = made(values, codec)
            array[...] = values
            results.append(array[...].tobytes())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(results), len(set(results))), (4, 1))
        self.assertEqual(asyncio.run(asyncio.to_thread(quern.compress, values, abs=1e-2)), quern.compress(values, abs=1e-2))

    def test_dask_writes_and_reads(self):
        try:
            import dask.array
        except ImportError:
            self.skipTest("no dask here")
        with tempfile.TemporaryDirectory() as folder:
            values = FIELD.astype("f4")
            array = made(values, QuernCodec(abs=1e-2), os.path.join(folder, "d.zarr"), chunks=(6, 20, 30))
            dask.array.store(dask.array.from_array(values, chunks=(6, 20, 30)), array, lock=False)
            back = dask.array.from_zarr(os.path.join(folder, "d.zarr"))
            self.assertLessEqual(float(np.abs(back.compute() - values).max()), 1e-2)


if __name__ == "__main__":
    sys.exit(unittest.main())
