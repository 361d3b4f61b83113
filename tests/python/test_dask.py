"""Dask's LocalCluster of two processes: datasets go to Zarr and HDF5 and back lazily, codecs and files travel by pickle."""
import os
import pickle
import sys
import tempfile
import unittest
import warnings

import numpy as np

from support import import_or_skip

distributed = import_or_skip("distributed")
da = import_or_skip("dask.array")
cloudpickle = import_or_skip("cloudpickle")
xr = import_or_skip("xarray", (2023, 1))
import_or_skip("h5netcdf")
import_or_skip("zarr", (3, 0))
import pyquern as quern  # noqa: E402
import pyquern.xarray as qx  # noqa: E402
from pyquern.numcodecs import Quern  # noqa: E402
from pyquern.zarr import QuernCodec  # noqa: E402

# 8 MiB, or 2 GiB in chunks of 32 MiB: much more than what a worker may hold.
SHAPE, CHUNK = ((2048, 512, 512), (32, 512, 512)) if os.environ.get("QUERN_TEST_THOROUGH") else ((64, 128, 256), (8, 128, 256))


def block(block_info=None):
    """Reproducible values of one chunk, made where they are needed."""
    place = block_info[None]["array-location"]
    values = np.random.default_rng(place[0][0]).normal(size=[last - first for first, last in place])
    return (280 + np.cumsum(values, axis=2)).astype("f4")


def process():
    return os.getpid()


def peak_megabytes():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        cls.client = distributed.Client(cls.cluster)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.close()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        values = da.map_blocks(block, chunks=tuple((c,) * (n // c) for n, c in zip(SHAPE, CHUNK)), dtype="f4")
        self.ds = xr.Dataset({"t": (("time", "y", "x"), values, {"units": "K"})})

    def test_zarr_and_netcdf_there_and_back(self):
        pids = set(self.client.run(process).values())
        self.assertEqual(len(pids), 2)
        self.assertNotIn(os.getpid(), pids)
        before = max(self.client.run(peak_megabytes).values())
        zarr, netcdf = os.path.join(self.folder, "t.zarr"), os.path.join(self.folder, "t.nc")
        qx.to_zarr(self.ds, zarr, abs=0.01, codec="lorenzo", consolidated=False)
        qx.to_netcdf(self.ds, netcdf, abs=0.01, codec="lorenzo")
        for back in (xr.open_zarr(zarr, consolidated=False), xr.open_dataset(netcdf, engine="h5netcdf", chunks={})):
            error = abs(back.t - self.ds.t).max().compute()
            self.assertGreater(float(error), 0)
            self.assertLessEqual(float(error), 0.01)
        # No worker holds the array: some chunks, and what the packages take.
        chunk = np.prod(CHUNK) * 4 / 2**20
        self.assertLess(max(self.client.run(peak_megabytes).values()) - before, 4 * chunk + 300)

    def test_what_travels(self):
        path = os.path.join(self.folder, "t.qn")
        field = block({None: {"array-location": [(0, 8), (0, 128), (0, 256)]}})
        quern.save(path, field, abs=0.01, codec="lorenzo")
        file = quern.open(path)
        for thing in (file, QuernCodec(abs=0.01), Quern(pwrel=1e-3), quern.CorruptStream(22, "why")):
            again = cloudpickle.loads(cloudpickle.dumps(thing))
            self.assertEqual((type(again), str(again)), (type(thing), str(thing)))
        lazy = da.from_array(file, chunks=(2, 128, 256))
        self.assertLessEqual(float(abs(lazy - field).max().compute()), 0.01)
        for codec in (QuernCodec(abs=0.01), Quern(pwrel=1e-3)):
            self.assertEqual(self.client.submit(lambda c: c, codec, pure=False).result(), codec)
        with self.assertRaises(quern.CorruptStream) as seen:
            self.client.submit(quern.decompress, b"no stream", pure=False).result()
        self.assertEqual(pickle.loads(pickle.dumps(seen.exception)).status, seen.exception.status)


if __name__ == "__main__":
    sys.exit(unittest.main())
