#!/usr/bin/env python3
"""Files that decompress writes, opened by others: netCDF4, xarray (both engines), h5py, ncdump, cdo, ncks.

Readers that are not installed are named and left out."""
import os
import shutil
import subprocess
import sys

import harness
from harness import CliTest

try:
    import netCDF4
    import numpy
except ImportError:
    print("SKIP: netCDF4 and numpy are not installed")
    sys.exit(77)
try:
    import h5py
except ImportError:
    h5py = None
try:
    import xarray
except ImportError:
    xarray = None
try:
    import h5netcdf
except ImportError:
    h5netcdf = None

TOOLS = {"ncdump": ["ncdump", "-h"], "cdo": ["cdo", "-s", "info"], "ncks": ["ncks", "-m"]}
for tool in TOOLS:
    if not shutil.which(tool):
        print(f"SKIP: {tool} is not installed; files are not opened with it")
for module, name in ((h5py, "h5py"), (xarray, "xarray"), (h5netcdf, "h5netcdf")):
    if module is None:
        print(f"SKIP: {name} is not installed; files are not opened with it")


def values(shape, seed):
    return numpy.cumsum(numpy.random.default_rng(seed).standard_normal(shape), axis=-1).astype("f4")


class Readers(CliTest):
    def expect_readable(self, path, variables, tools=True):
        """Every reader must open the file and find these values."""
        with netCDF4.Dataset(path) as f:
            for name, expected in variables.items():
                f[name].set_auto_maskandscale(False)
                numpy.testing.assert_array_equal(f[name][:], expected, name)
        if h5py:
            with h5py.File(path, "r") as f:
                for name, expected in variables.items():
                    numpy.testing.assert_array_equal(f[name][()], expected, name)
                    len(f[name].attrs.items())
        if xarray:
            for engine in ["netcdf4"] + (["h5netcdf"] if h5netcdf else []):
                plain = [name for name in variables if "/" not in name]
                with xarray.open_dataset(path, engine=engine, decode_cf=False) as f:
                    for name in plain:
                        numpy.testing.assert_array_equal(f[name].values, variables[name], engine + " " + name)
        if tools:
            self.expect_tools(path)

    def expect_tools(self, path):
        for tool, words in TOOLS.items():
            if not shutil.which(tool):
                continue
            run = subprocess.run(words + [path], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, (tool, run.stderr))
            self.assertNotIn("HDF error", run.stdout + run.stderr, tool)

    def source(self, name, attributes, grows=True, extra=None):
        path = self.path(name)
        with netCDF4.Dataset(path, "w") as f:
            f.title = "a model"
            f.createDimension("time", None if grows else 4)
            f.createDimension("lat", 5)
            f.createDimension("lon", 6)
            for axis, size in (("time", 4), ("lat", 5), ("lon", 6)):
                c = f.createVariable(axis, "f8", (axis,))
                c[:] = numpy.arange(size)
                c.units = {"time": "days since 2000-01-01", "lat": "degrees_north", "lon": "degrees_east"}[axis]
                for i in range(attributes):
                    c.setncattr(f"more{i}", f"text {i}")
            for variable in ("tas", "pr"):
                v = f.createVariable(variable, "f4", ("time", "lat", "lon"), fill_value=False)
                for i in range(attributes):
                    v.setncattr(f"note{i}", f"text {i}" if i % 2 else numpy.arange(i + 1, dtype="f4"))
                v[:] = values((4, 5, 6), len(variable))
            if extra:
                extra(f)
        return path

    def streams(self, path, names, bound="--lossless"):
        out = []
        for name in names:
            out.append(self.path(name.replace("/", "_") + ".qn"))
            self.ok("compress", "-q", "-f", bound, "--dataset", name, path, "-o", out[-1])
        return out

    def expected(self, path, names):
        with netCDF4.Dataset(path) as f:
            f.set_auto_maskandscale(False)
            return {name: numpy.array(f[name][:]) for name in names}

    def test_AnyNumberOfAttributes_InEveryOrder_IsReadable(self):
        for count in (0, 3, 5, 6, 7, 8, 40):
            for order in (("tas", "time", "lat", "pr", "lon"), ("pr", "tas", "lon", "lat", "time")):
                with self.subTest(count=count, order=order):
                    path = self.source("in.nc", count)
                    streams = self.streams(path, order) if order[0] == "tas" else [self.path(n + ".qn") for n in order]
                    self.ok("decompress", "-q", "-f", *streams, "-o", self.path("back.nc"))
                    self.expect_readable(self.path("back.nc"), self.expected(path, order), count == 6)
                    with netCDF4.Dataset(self.path("back.nc")) as f:
                        self.assertEqual(f.title, "a model")
                        self.assertTrue(f.dimensions["time"].isunlimited())
                        self.assertEqual(sum(a.startswith("note") for a in f["tas"].ncattrs()), count)
                        self.assertEqual(f["tas"].dimensions, ("time", "lat", "lon"))

    def test_WithoutCoordinates_FixedAxes_OneVariable_IsReadable(self):
        for grows in (True, False):
            path = self.source("in.nc", 6, grows)
            for names in (("tas",), ("tas", "pr"), ("time",)):
                with self.subTest(grows=grows, names=names):
                    self.ok("decompress", "-q", "-f", *self.streams(path, names), "-o", self.path("back.nc"))
                    # cdo wants data, not a coordinate alone.
                    self.expect_readable(self.path("back.nc"), self.expected(path, names), names != ("time",))

    def test_Groups_AreReadable(self):
        def add(f):
            g = f.createGroup("ocean").createGroup("deep")
            g.createDimension("depth", 3)
            g.createVariable("depth", "f4", ("depth",))[:] = [1, 2, 3]
            v = g.createVariable("salt", "f4", ("time", "depth"))
            for i in range(6):
                v.setncattr(f"note{i}", i)
            v[:] = values((4, 3), 9)
        path = self.source("in.nc", 6, True, add)
        names = ("/ocean/deep/salt", "tas", "/ocean/deep/depth", "time")
        self.ok("decompress", "-q", "-f", *self.streams(path, names), "-o", self.path("back.nc"))
        expected = {k.lstrip("/") if k.count("/") == 1 else k: v for k, v in self.expected(path, names).items()}
        self.expect_readable(self.path("back.nc"), expected, False)

    def test_Hdf5Output_WithManyAttributes_IsReadable(self):
        if not h5py:
            self.skipTest("h5py is not installed")
        for count in (0, 6, 8, 40):
            path = self.source("in.nc", count)
            names = ("tas", "time", "pr")
            self.ok("decompress", "-q", "-f", *self.streams(path, names), "-o", self.path("back.h5"))
            with h5py.File(self.path("back.h5"), "r") as f:
                for name, expected in self.expected(path, names).items():
                    numpy.testing.assert_array_equal(f[name][()], expected)
                self.assertEqual(sum(a.startswith("note") for a in f["tas"].attrs), count)

    def test_TimeSteps_OfFilesWithoutTime_ComeBackWithAnUnlimitedAxis(self):
        steps = []
        for i in range(5):
            steps.append(self.path(f"step{i}.nc"))
            with netCDF4.Dataset(steps[-1], "w") as f:
                f.createDimension("lat", 5)
                f.createDimension("lon", 6)
                v = f.createVariable("tas", "f4", ("lat", "lon"))
                v.units = "K"
                v[:] = values((5, 6), i)
        self.ok("compress", "-q", "--append", "--lossless", *steps, "-o", self.path("run.qn"))
        whole = numpy.stack([values((5, 6), i) for i in range(5)])
        self.ok("decompress", "-q", self.path("run.qn"), "-o", self.path("run.nc"))
        self.expect_readable(self.path("run.nc"), {"tas": whole})
        with netCDF4.Dataset(self.path("run.nc")) as f:
            self.assertEqual(f["tas"].dimensions, ("time", "lat", "lon"))
            self.assertTrue(f.dimensions["time"].isunlimited())
            self.assertEqual(f["tas"].units, "K")
        if h5py:
            self.ok("decompress", "-q", self.path("run.qn"), "-o", self.path("run.h5"))
            with h5py.File(self.path("run.h5"), "r") as f:
                numpy.testing.assert_array_equal(f["tas"][()], whole)
                self.assertEqual(f["tas"].maxshape, (None, 5, 6))

    def test_TimeSteps_OfFilesWithATimeAxisOfOne_AreJoinedAlongIt(self):
        steps = []
        for i in range(4):
            steps.append(self.path(f"step{i}.nc"))
            with netCDF4.Dataset(steps[-1], "w") as f:
                f.createDimension("time", None)
                f.createDimension("x", 30)
                f.createVariable("u", "f4", ("time", "x"))[:] = values((1, 30), i)
        self.ok("compress", "-q", "--append", "--lossless", *steps, "-o", self.path("run.qn"))
        self.ok("decompress", "-q", self.path("run.qn"), "-o", self.path("run.nc"))
        self.expect_readable(self.path("run.nc"), {"u": numpy.concatenate([values((1, 30), i) for i in range(4)])})
        with netCDF4.Dataset(self.path("run.nc")) as f:
            self.assertEqual(f["u"].dimensions, ("time", "x"))

    def test_SeriesOfDifferentLength_GetDimensionsOfTheirOwn(self):
        for name, steps in (("a", 3), ("b", 5)):
            with netCDF4.Dataset(self.path(name + ".nc"), "w") as f:
                f.createDimension("time", None)
                f.createVariable(name, "f4", ("time",))[:] = values((steps,), steps)
            self.ok("compress", "-q", "--lossless", self.path(name + ".nc"))
        self.ok("decompress", "-q", self.path("a.nc.qn"), self.path("b.nc.qn"), "-o", self.path("back.nc"))
        self.expect_readable(self.path("back.nc"), {"a": values((3,), 3), "b": values((5,), 5)})

    def test_RawAndNpyInputs_AsNetcdfAndHdf5_AreReadable(self):
        numpy.save(self.path("a.npy"), values((3, 4, 5), 1))
        self.ok("compress", "-q", "--lossless", self.path("a.npy"))
        self.ok("decompress", "-q", self.path("a.npy.qn"), "-o", self.path("a.nc"))
        self.expect_readable(self.path("a.nc"), {"a": values((3, 4, 5), 1)})
        self.assertEqual([f for f in self.files() if f.endswith(".part")], [])


if __name__ == "__main__":
    harness.main()
