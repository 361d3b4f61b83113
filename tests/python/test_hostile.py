"""Damaged chunks of numcodecs, Zarr and HDF5: errors that name what is wrong, never a crash, never more memory than is there."""
import os
import resource
import sys
import tempfile
import unittest
import warnings

import numpy as np

from support import import_or_skip

h5py = import_or_skip("h5py", (3, 8))
zarr = import_or_skip("zarr", (3, 0))
import pyquern as quern  # noqa: E402
import pyquern.hdf5 as qh  # noqa: E402
from pyquern.numcodecs import Quern  # noqa: E402
from pyquern.zarr import QuernCodec  # noqa: E402

FIELD = np.cumsum(np.random.default_rng(14).normal(size=(16, 24, 32)), axis=0).astype("f4")


def damaged(stream, random):
    """Some bits turned, more often in the header; ends cut off or added."""
    found = bytearray(stream)
    for _ in range(random.integers(1, 4)):
        found[random.integers(len(found)) if random.integers(2) else random.integers(min(120, len(found)))] ^= 1 << random.integers(8)
    if random.integers(5) == 0:
        del found[random.integers(len(found)):]
    elif random.integers(8) == 0:
        found += bytes(random.integers(0, 256, random.integers(1, 200), dtype="u1"))
    return bytes(found)


class Damaged(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.random = np.random.default_rng(15)

    def tearDown(self):
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 2 << 20)  # 2 GiB

    def test_chunks_of_numcodecs(self):
        for codec in (Quern(abs=1e-3), Quern(abs=1e-3, codec="lorenzo"), Quern(lossless=True)):
            stream = codec.encode(FIELD)
            for _ in range(300):
                for call in (lambda s: codec.decode(s), lambda s: codec.decode(s, out=np.empty_like(FIELD))):
                    with self.assertRaises((quern.Error, ValueError)):
                        call(damaged(stream, self.random))

    def test_stores_of_zarr(self):
        for keywords in ({"chunks": (8, 24, 32)}, {"chunks": (8, 8, 8), "shards": (16, 24, 32)}):
            store = {}
            array = zarr.create_array(store, shape=FIELD.shape, dtype="f4", serializer=QuernCodec(abs=1e-3), compressors=None, **keywords)
            array[...] = FIELD
            expected = array[...]
            keys = [key for key in store if key != "zarr.json"]
            whole = {key: store[key].to_bytes() for key in keys}
            prototype = zarr.core.buffer.cpu.Buffer
            for _ in range(150):
                key = keys[self.random.integers(len(keys))]
                store[key] = prototype.from_bytes(damaged(whole[key], self.random))
                try:
                    found = array[...]
                    # A shard's index may have lost a chunk, which is then the fill value; no chunk has other values.
                    different = found != expected
                    self.assertTrue("shards" in keywords and np.all(found[different] == 0), key)
                except (quern.Error, ValueError):
                    pass
                store[key] = prototype.from_bytes(whole[key])

    def test_chunks_of_hdf5(self):
        with tempfile.TemporaryDirectory() as folder, h5py.File(os.path.join(folder, "x.h5"), "w") as file:
            dataset = file.create_dataset("x", data=FIELD, chunks=(16, 24, 32), compression=qh.filter(abs=1e-3))
            stream = dataset.id.read_direct_chunk((0, 0, 0))[1]
            for _ in range(300):
                dataset.id.write_direct_chunk((0, 0, 0), damaged(stream, self.random))
                dataset.id.refresh()
                with self.assertRaises((OSError, quern.Error)):
                    dataset[...]
                with self.assertRaises((OSError, quern.Error, ValueError)):
                    qh.read(dataset, threads=1)


if __name__ == "__main__":
    sys.exit(unittest.main())
