"""pyquern.xarray: bounds per variable in physical units, what stays exact, attributes, files that are saved again."""
import os
import sys
import tempfile
import unittest
import warnings

import numpy as np

from support import import_or_skip

xr = import_or_skip("xarray", (2023, 1))
h5netcdf = import_or_skip("h5netcdf")
import pyquern as quern  # noqa: E402
import pyquern.xarray as qx  # noqa: E402

try:
    import zarr
except ImportError:
    zarr = None
try:
    import netCDF4
except ImportError:
    netCDF4 = None
try:
    import dask.array
except ImportError:
    dask = None


def dataset():
    """Like a reanalysis: floats, a packed variable, a mask, times, bounds of latitudes."""
    random = np.random.default_rng(11)
    shape = (8, 30, 40)
    temperature = (280 + np.cumsum(random.normal(size=shape), axis=2)).astype("f4")
    temperature[0, :3] = np.nan
    latitudes = np.linspace(-40, 40, 30)
    ds = xr.Dataset(
        {"t2m": (("time", "lat", "lon"), temperature, {"units": "K"}),
         "pr": (("time", "lat", "lon"), np.abs(random.normal(size=shape)).astype("f4"), {"units": "kg m-2"}),
         "packed": (("time", "lat", "lon"), np.round(random.normal(size=shape), 2)),
         "lsm": (("lat", "lon"), random.integers(0, 2, (30, 40)).astype("i4"), {"flag_values": [0, 1]}),
         "lat_bnds": (("lat", "bnds"), np.stack([latitudes - 1, latitudes + 1], 1)),
         "counts": (("time", "lat", "lon"), random.integers(0, 1000, shape).astype("i2"))},
        {"time": ("time", np.datetime64("2026-01-01", "ns") + np.arange(8) * np.timedelta64(6, "h")),
         "lat": ("lat", latitudes, {"units": "degrees_north", "bounds": "lat_bnds"}),
         "lon": ("lon", np.linspace(0, 78, 40), {"units": "degrees_east"})})
    ds["packed"].encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 0.0, "_FillValue": -32768}
    ds["t2m"].encoding = {"_FillValue": np.float32(-9999)}
    return ds


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        warnings.simplefilter("ignore")

    def targets(self):
        yield "nc", lambda ds, name, **bounds: qx.to_netcdf(ds, self.path(name + ".nc"), **bounds), lambda name: xr.load_dataset(
            self.path(name + ".nc"), engine="h5netcdf")
        if zarr is not None:
            for number in (2, 3) if hasattr(zarr, "create_array") else (2,):
                yield f"zarr{number}", lambda ds, name, n=number, **bounds: qx.to_zarr(
                    ds, self.path(f"{name}{n}.zarr"), zarr_format=n, mode="w", consolidated=False, **bounds), lambda name, n=number: xr.open_zarr(
                    self.path(f"{name}{n}.zarr"), consolidated=False, chunks=None).load()

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_each_variable_has_its_bound_and_the_rest_is_exact(self):
        ds = dataset()
        for target, write, read in self.targets():
            with self.subTest(target=target):
                write(ds, "a", rel=1e-3, per={"t2m": {"abs": 0.05}, "pr": {"pwrel": 1e-2}})
                back = read("a")
                self.assertLessEqual(float(np.abs(back.t2m - ds.t2m).max()), 0.05)
                self.assertEqual(np.isnan(back.t2m.values).tobytes(), np.isnan(ds.t2m.values).tobytes())
                self.assertTrue(bool((np.abs(back.pr - ds.pr) <= 1e-2 * np.abs(ds.pr)).all()))
                limit = 1e-3 * float(ds.packed.max() - ds.packed.min())
                self.assertLessEqual(float(np.abs(back.packed - ds.packed).max()), limit + 1e-12)
                for exact in ("lsm", "lat_bnds", "counts", "time", "lat", "lon"):
                    self.assertTrue(back[exact].equals(ds[exact]), exact)
                self.assertGreater(float(np.abs(back.t2m - ds.t2m).max()), 0)
                self.assertEqual(back.t2m.attrs["lossy_compression"], "quern")
                self.assertEqual(back.t2m.attrs["lossy_compression_bound"], 0.05)
                self.assertEqual(back.pr.attrs["lossy_compression_bound_kind"], "pointwise relative")
                self.assertEqual(back.packed.attrs["lossy_compression_requested"], "rel=0.001")
                self.assertNotIn("lossy_compression", back.lsm.attrs)
                self.assertNotIn("lossy_compression", ds.t2m.attrs)

    def test_saving_again_under_the_same_bound_changes_nothing(self):
        ds = dataset()
        for target, write, read in self.targets():
            with self.subTest(target=target):
                write(ds, "a", abs=0.05)
                first = read("a")
                write(first, "b", abs=0.05)
                second = read("b")
                for name in ds.variables:
                    self.assertEqual(second[name].values.tobytes(), first[name].values.tobytes(), name)
                self.assertEqual(second.t2m.attrs["lossy_compression_bound"], 0.05)
                self.assertNotIn("lossy_compression_bound_accumulated", second.t2m.attrs)
                write(second, "c", abs=0.2)
                third = read("c")
                self.assertEqual(third.t2m.attrs["lossy_compression_bound"], 0.2)
                self.assertAlmostEqual(third.t2m.attrs["lossy_compression_bound_accumulated"], 0.25)
                self.assertLessEqual(float(np.abs(third.t2m - ds.t2m).max()), third.t2m.attrs["lossy_compression_bound_accumulated"])
                write(third, "d", pwrel=1e-3, per={"packed": {"abs": 0.2}})
                self.assertEqual(read("d").t2m.attrs["lossy_compression_history"], "absolute 0.25; pointwise relative 0.001")

    def test_other_engines_read_it(self):
        if netCDF4 is None:
            self.skipTest("no netCDF4 here")
        ds = dataset()
        qx.to_netcdf(ds, self.path("a.nc"), abs=0.05)
        one, two = (xr.load_dataset(self.path("a.nc"), engine=engine) for engine in ("h5netcdf", "netcdf4"))
        for name in ds.variables:
            self.assertEqual(one[name].values.tobytes(), two[name].values.tobytes())

    def test_netcdf4_writes_the_same_values(self):
        if netCDF4 is None:
            self.skipTest("no netCDF4 here")
        ds = dataset()
        qx.to_netcdf(ds, self.path("a.nc"), abs=0.05)
        for given in (ds, ds.chunk({"time": 8})) if dask is not None else (ds,):
            qx.to_netcdf(given, self.path("b.nc"), engine="netcdf4", abs=0.05, unlimited_dims=["time"])
            one, two = xr.load_dataset(self.path("a.nc"), engine="h5netcdf"), xr.load_dataset(self.path("b.nc"), engine="netcdf4")
            for name in ds.variables:
                self.assertEqual(one[name].values.tobytes(), two[name].values.tobytes(), name)
                self.assertEqual(one[name].attrs.keys(), two[name].attrs.keys())
            with h5netcdf.File(self.path("b.nc")) as file:
                self.assertIn("443", file["t2m"]._h5ds._filters)
                self.assertTrue(file.dimensions["time"].isunlimited())

    def test_cleaned_datasets_can_be_saved_plainly(self):
        qx.to_netcdf(dataset(), self.path("a.nc"), abs=0.05)
        opened = xr.load_dataset(self.path("a.nc"), engine="h5netcdf")
        qx.clean(opened).to_netcdf(self.path("plain.nc"), engine="h5netcdf")
        back = xr.load_dataset(self.path("plain.nc"), engine="h5netcdf")
        self.assertEqual(back.t2m.values.tobytes(), opened.t2m.values.tobytes())
        with h5netcdf.File(self.path("plain.nc")) as file:
            self.assertNotIn("443", file["t2m"]._h5ds._filters)

    def test_sizes(self):
        ds = dataset()
        qx.to_netcdf(ds, self.path("a.nc"), abs=0.5, only=["t2m"])
        ds.to_netcdf(self.path("plain.nc"), engine="h5netcdf")
        with h5netcdf.File(self.path("a.nc")) as file:
            self.assertLess(file["t2m"]._h5ds.id.get_storage_size(), ds.t2m.nbytes / 3)
        back = xr.load_dataset(self.path("a.nc"), engine="h5netcdf")
        self.assertTrue(back.pr.equals(ds.pr))
        self.assertEqual(back.packed.values.tobytes(), xr.load_dataset(self.path("plain.nc"), engine="h5netcdf").packed.values.tobytes())

    def test_dask_arrays_are_written_in_their_chunks(self):
        if dask is None:
            self.skipTest("no dask here")
        ds = dataset()
        for target, write, read in self.targets():
            write(ds.chunk({"time": 4, "lat": 30, "lon": 20}), "a", rel=1e-3)
            back = read("a")
            limit = 1e-3 * float(ds.pr.max() - ds.pr.min())
            self.assertLessEqual(float(np.abs(back.pr - ds.pr).max()), limit, target)
            self.assertAlmostEqual(back.pr.attrs["lossy_compression_bound"], limit)

    def test_what_is_refused(self):
        ds = dataset()
        with self.assertRaisesRegex(TypeError, "exactly one of abs=, rel=, pwrel=, lossless=True"):
            qx.to_netcdf(ds, self.path("a.nc"))
        with self.assertRaisesRegex(KeyError, "'t3m'.*'t2m'"):
            qx.encoding(ds, abs=1, per={"t3m": {"abs": 1}})
        with self.assertRaisesRegex(quern.Unsupported, "h5netcdf"):
            qx.to_netcdf(ds, self.path("a.nc"), engine="scipy", abs=1)
        with self.assertRaisesRegex(ValueError, "target"):
            qx.encoding(ds, abs=1, target="zarr4")
        with self.assertRaisesRegex(ValueError, "'packed'.*pointwise relative"):
            qx.encoding(ds, pwrel=1e-3)
        with self.assertRaisesRegex(TypeError, "takes no bound"):
            qx.encoding(ds, lossless=True, per={"time": {"abs": 1}})
        self.assertEqual(os.listdir(self.folder), [])

    def test_attributes_on_their_own(self):
        ds = dataset()
        enc = qx.encoding(ds, abs=0.05, only=["t2m"])
        self.assertEqual(set(enc.bounds), {"t2m"})
        self.assertEqual(qx.mark(ds, enc).t2m.attrs["lossy_compression_requested"], "abs=0.05")
        self.assertEqual(qx.encoding(ds, abs=0.05).bounds["packed"][0], quern.Bound("abs", 0.05))


if __name__ == "__main__":
    sys.exit(unittest.main())
