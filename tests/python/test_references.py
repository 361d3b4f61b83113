"""pyquern.hdf5.references(): xarray reads the chunks of an HDF5 file by Zarr, without HDF5."""
import json
import os
import sys
import tempfile
import unittest
import warnings

import numpy as np

from support import import_or_skip

h5py = import_or_skip("h5py", (3, 8))
xr = import_or_skip("xarray", (2023, 1))
import_or_skip("h5netcdf")
import_or_skip("fsspec")
import_or_skip("zarr", (3, 0))
import pyquern as quern  # noqa: E402
import pyquern.hdf5 as qh  # noqa: E402
import pyquern.numcodecs  # noqa: E402, F401: an installed pyquern is found without it
import pyquern.xarray as qx  # noqa: E402


def opened(references, **arguments):
    return xr.open_dataset("reference://", engine="zarr", backend_kwargs={
        "consolidated": False, "storage_options": {"fo": references}}, **arguments).load()


class References(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "t.nc")
        warnings.simplefilter("ignore")

    def test_values_are_those_of_the_file(self):
        random = np.random.default_rng(3)
        field = (280 + np.cumsum(random.normal(size=(9, 20, 30)), axis=2)).astype("f4")
        field[2, :3] = np.nan
        ds = xr.Dataset({"t": (("time", "y", "x"), field, {"units": "K"}), "packed": (("y", "x"), np.round(random.normal(size=(40, 30))[:20], 2)),
                         "n": (("y",), np.arange(20, dtype="i2"))}, {"time": ("time", np.arange(9.0)), "y": ("y", np.linspace(0, 1, 20))})
        ds["t"].encoding = {"_FillValue": np.float32(-9999)}
        ds["packed"].encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 0.0, "_FillValue": -32768}
        qx.to_netcdf(ds, self.path, per={"t": {"abs": 0.01}}, chunks={"t": (4, 20, 16)})
        expected = xr.load_dataset(self.path, engine="h5netcdf")
        found = opened(json.loads(json.dumps(qh.references(self.path))))
        self.assertEqual(set(found.variables), set(expected.variables))
        for name in expected.variables:
            self.assertEqual(found[name].dims, expected[name].dims)
            self.assertTrue(np.array_equal(found[name].values, expected[name].values, equal_nan=True), name)
            self.assertEqual(found[name].dtype, expected[name].dtype)
        self.assertEqual(found.t.attrs["lossy_compression_bound"], 0.01)
        self.assertLessEqual(float(np.abs(found.t - ds.t).max()), 0.01)

    def test_byte_orders_other_filters_and_missing_chunks(self):
        values = np.arange(600, dtype="f8").reshape(20, 30)
        with h5py.File(self.path, "w") as file:
            file.create_dataset("big", data=values.astype(">f4"), chunks=(8, 30), compression=qh.filter(abs=1e-3))
            file.create_dataset("zip", data=values.astype(">i4"), chunks=(8, 7), compression="gzip", shuffle=True)
            file.create_dataset("plain", data=values)
            part = file.create_dataset("part", shape=(20, 30), dtype="f4", chunks=(10, 30), compression=qh.filter(abs=1e-3), fillvalue=-1)
            part[:10] = 5
        found = opened(qh.references(self.path), mask_and_scale=False)
        with h5py.File(self.path) as file:
            for name in file:
                self.assertTrue(np.array_equal(found[name].values, file[name][...]), name)

    def test_the_url_of_a_copy(self):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=np.zeros(10), chunks=(5,))
        refs = qh.references(self.path, url="s3://bucket/t.nc")["refs"]
        self.assertEqual([refs[key][0] for key in ("x/0", "x/1")], ["s3://bucket/t.nc"] * 2)

    def test_what_is_refused(self):
        for create, words in ((lambda file: file.create_dataset("x", data=np.zeros(3, "S4")), "numbers"),
                              (lambda file: file.create_dataset("x", data=np.zeros(9), chunks=(3,), compression="lzf"), "filters")):
            with h5py.File(self.path, "w") as file:
                create(file)
            with self.assertRaisesRegex(quern.Unsupported, words):
                qh.references(self.path)


if __name__ == "__main__":
    sys.exit(unittest.main())
