#!/usr/bin/env python3
"""The command on files of netCDF and HDF5: units, valid ranges, flags, all variables, files that others can read.

Values are checked with netCDF4, h5py and exact fractions, never with quern itself."""
import fractions
import os
import shutil
import struct
import subprocess
import sys

import harness
from harness import CliTest, read_bytes, wave

try:
    import numpy
except ImportError:
    print("SKIP: numpy is not installed")
    sys.exit(77)
try:
    import netCDF4
except ImportError:
    netCDF4 = None
try:
    import h5py
except ImportError:
    h5py = None

needs_netcdf = harness.unittest.skipUnless(netCDF4, "netCDF4 is not installed")


def field(shape, seed=1, low=0.0, high=100.0):
    random = numpy.random.default_rng(seed)
    a = numpy.cumsum(random.standard_normal(shape), axis=-1)
    return low + (a - a.min()) / (a.max() - a.min()) * (high - low)


class FileTest(CliTest):
    def netcdf(self, name, variables, dims, file_format="NETCDF4", coordinates=True):
        """variables: name -> (type, dimensions, values, fill value, attributes); values are stored as they are."""
        path = self.path(name)
        with netCDF4.Dataset(path, "w", format=file_format) as f:
            for dim, size in dims.items():
                f.createDimension(dim, None if dim == "time" else size)
            if coordinates:
                for dim, size in dims.items():
                    c = f.createVariable(dim, "f8", (dim,))
                    c[:] = numpy.arange(size) * 1.5
                    c.units = "days since 1990-01-01" if dim == "time" else "1"
            for variable, (kind, axes, values, fill, attributes) in variables.items():
                v = f.createVariable(variable, kind, axes, fill_value=fill)
                v.set_auto_maskandscale(False)
                for key, value in attributes.items():
                    v.setncattr(key, value)
                v[:] = values
        return path

    def stored(self, path, name):
        with netCDF4.Dataset(path) as f:
            v = f[name]
            v.set_auto_maskandscale(False)
            return numpy.array(v[:])

    def back(self, *streams, name="back.nc"):
        self.ok("decompress", "-f", *streams, "-o", self.path(name))
        return self.path(name)


@needs_netcdf
class Units(FileTest):
    def worst(self, a, b, scale):
        """The largest physical difference, exactly."""
        exact = [abs(fractions.Fraction(float(x)) - fractions.Fraction(float(y))) if a.dtype.kind == "f"
                 else fractions.Fraction(abs(int(x) - int(y))) for x, y in zip(a.ravel(), b.ravel())]
        return max(exact) * abs(fractions.Fraction(float(scale)))

    def test_PackedVariables_UnderAbs_KeepThePhysicalBoundExactly(self):
        for kind, scale, bound in (("i2", 365.5, 1000), ("f4", 365.5, 1000), ("i2", -0.01, 0.03), ("i2", 0.01, 0.004),
                                   ("u1", 0.1, 0.3), ("i4", 1e-3, 0.0105), ("f8", 3.3e-7, 1e-9)):
            with self.subTest(kind=kind, scale=scale, bound=bound):
                values = field((6, 20, 30), low=0, high=250).astype(kind)
                path = self.netcdf("in.nc", {"v": (kind, ("time", "y", "x"), values, None, {
                    "scale_factor": scale, "add_offset": -1.2e7})}, {"time": 6, "y": 20, "x": 30})
                for as_file in ("in.nc", "in.h5"):
                    source = self.path(as_file)
                    if as_file != "in.nc":
                        shutil.copy(path, source)
                    self.ok("compress", "-f", "--verify", "--abs", bound, "--dataset", "v", source, "-o", self.path("v.qn"))
                    out = self.stored(self.back(self.path("v.qn")), "v")
                    worst = self.worst(values, out, scale)
                    self.assertLessEqual(worst, fractions.Fraction(bound))
                    if kind[0] in "iu" and bound / abs(scale) < 1:
                        self.assertEqual(worst, 0)
                    elif kind != "f8":
                        self.assertGreater(worst, 0, "the bound was not used at all")

    def test_PackedVariable_UnderAbs_ReportsPhysicalUnits(self):
        path = self.netcdf("in.nc", {"v": ("i2", ("y", "x"), field((20, 30), high=3000).astype("i2"), None, {
            "scale_factor": 365.5})}, {"y": 20, "x": 30})
        text = self.ok("compress", "-f", "--abs", 1000, path, "-o", self.path("v.qn")).stderr.decode()
        self.assertIn("<= 731 (2 stored)", text)
        line = self.json(self.ok("compress", "-f", "--json", "--abs", 1000, path, "-o", self.path("v.qn")))
        self.assertEqual(line["enforced"]["value"], 2)
        self.assertEqual(line["scale_factor"], 365.5)

    def test_RangeInPhysicalUnits_OfPackedVariable_GivesThePhysicalBound(self):
        values = field((20, 30), high=3000).astype("f4")
        path = self.netcdf("in.nc", {"v": ("f4", ("y", "x"), values, None, {"scale_factor": -2.0, "add_offset": 10.0})},
                           {"y": 20, "x": 30})
        line = self.json(self.ok("compress", "--json", "-f", "--rel", 1e-3, "--range", "-100:100", path, "-o",
                                 self.path("v.qn")))
        self.assertLessEqual(line["enforced"]["value"] * 2, 0.2)
        self.assertGreater(line["enforced"]["value"] * 2, 0.1999)

    def test_PwrelOfPackedVariableWithOffset_IsRefused(self):
        path = self.netcdf("in.nc", {"v": ("f4", ("y", "x"), field((20, 30)), None, {"add_offset": 10.0})},
                           {"y": 20, "x": 30})
        self.refused(1, "--abs", "compress", "--pwrel", 0.1, path, "-o", self.path("v.qn"))


@needs_netcdf
class MissingData(FileTest):
    def relative(self, attributes, fill, holes, kind="f4"):
        """Compresses a field from 0 to 100 with holes; returns the enforced bound and the worst error outside them."""
        values = field((60, 80)).astype(kind)
        values[3:9, 10:40] = holes
        path = self.netcdf("in.nc", {"t": (kind, ("y", "x"), values, fill, attributes)}, {"y": 60, "x": 80})
        line = self.json(self.ok("compress", "-f", "-q", "--json", "--rel", 1e-3, path, "-o", self.path("t.qn")))
        out = self.stored(self.back(self.path("t.qn")), "t")
        hole = values == numpy.array(holes, kind)
        return line, values, out, hole

    def test_EveryDeclaration_LeavesTheRangeAndComesBack(self):
        f4 = numpy.float32
        for attributes, fill in (({}, f4(1e20)), ({"missing_value": f4(1e20)}, None), ({"missing_value": 1e20}, None),
                                 ({"missing_value": f4(1e20)}, f4(1e20)), ({"missing_value": numpy.array([1e20, -999])}, None),
                                 ({"missing_value": f4(1e20)}, f4(9.96921e36)), ({"missing_value": f4(1e20)}, False)):
            with self.subTest(attributes=attributes, fill=fill):
                line, values, out, hole = self.relative(attributes, fill, 1e20)
                self.assertLessEqual(line["enforced"]["value"], 0.1)
                self.assertGreater(line["enforced"]["value"], 0.09)
                self.assertEqual(values[hole].tobytes(), out[hole].tobytes())
                self.assertLessEqual(numpy.abs(values[~hole].astype("f8") - out[~hole]).max(), 0.1)
                self.assertEqual(line["suspicions"], [])

    def test_ValidLimits_LeaveTheRangeAndKeepTheBound(self):
        for attributes in ({"valid_range": numpy.array([-10, 200], "f4")}, {"valid_max": numpy.float32(200)},
                           {"valid_min": -10.0, "valid_max": numpy.int16(200)}):
            with self.subTest(attributes=attributes):
                line, values, out, hole = self.relative(attributes, None, 1e20)
                self.assertLessEqual(line["enforced"]["value"], 0.1)
                self.assertGreater(line["enforced"]["value"], 0.09)
                self.assertLessEqual(line["range"][1], 100)
                self.assertFalse(line["range_stretched"])
                # Outside, values are ordinary elements under the bound.
                self.assertLessEqual(numpy.abs(values.astype("f8") - out).max(), 0.1)

    def test_ValidMin_OfPackedIntegers_IsInStoredUnits(self):
        line, values, out, _ = self.relative({"scale_factor": 0.5, "valid_min": numpy.int16(0)}, None, -30000, "i2")
        self.assertEqual(line["range"][0], 0)
        self.assertEqual(line["enforced"]["value"], numpy.floor(0.1) or line["enforced"]["value"])
        self.assertEqual((values != out).sum(), 0)

    def test_UndeclaredFill_InH5Pack_IsSaid(self):
        for attributes, said in (({}, True), ({"missing_value": numpy.float32(1e20)}, False)):
            with self.subTest(attributes=attributes):
                values = field((60, 80)).astype("f4")
                values[3:9, 10:40] = 1e20
                path = self.netcdf("in.nc", {"t": ("f4", ("y", "x"), values, None, attributes)}, {"y": 60, "x": 80})
                result = self.ok("h5", "pack", "-f", "--rel", 1e-3, path, "-o", self.path("out.nc"))
                self.assertEqual(b"name that value in the attribute missing_value" in result.stderr, said)

    def test_NetcdfDefaultFill_WithoutDeclaration_LeavesTheRange(self):
        for kind, fill in (("f4", 9.969209968386869e36), ("f8", 9.969209968386869e36), ("i2", -32767), ("i4", -2147483647)):
            for file_format in ("NETCDF4", "NETCDF3_CLASSIC"):
                with self.subTest(kind=kind, file_format=file_format):
                    values = field((60, 80), high=10000).astype(kind)
                    values[3:9] = fill
                    path = self.netcdf("in.nc", {"t": (kind, ("y", "x"), values, None, {})}, {"y": 60, "x": 80}, file_format)
                    line = self.json(self.ok("compress", "-f", "-q", "--json", "--rel", 1e-3, path, "-o", self.path("t.qn")))
                    self.assertLessEqual(line["enforced"]["value"], 10)
                    out = self.stored(self.back(self.path("t.qn")), "t")
                    self.assertEqual(values[3:9].tobytes(), out[3:9].tobytes())


@needs_netcdf
class Variables(FileTest):
    def model(self):
        y, x = 40, 50
        return self.netcdf("model.nc", {
            "tas": ("f4", ("time", "y", "x"), field((3, y, x), 1), None, {"coordinates": "lat lon", "units": "K",
                                                                       "ancillary_variables": "tas_error"}),
            "pr": ("f4", ("time", "y", "x"), field((3, y, x), 2), None, {}),
            "lat": ("f8", ("y", "x"), field((y, x), 3), None, {"units": "degrees_north"}),
            "lon": ("f8", ("y", "x"), field((y, x), 4), None, {}),
            "tas_error": ("f4", ("time", "y", "x"), field((3, y, x), 5), None, {}),
            "qc": ("i1", ("time", "y", "x"), field((3, y, x), 6, 0, 5), None,
                   {"flag_values": numpy.arange(6, dtype="i1"), "flag_meanings": "a b c d e f"}),
        }, {"time": 3, "y": y, "x": x})

    def test_AllVariables_UnderOneBound_MoveFieldsAlone(self):
        path = self.model()
        os.mkdir(self.path("out"))
        text = self.ok("compress", "--rel", 1e-2, "--dataset", "*", path, "-o", self.path("out")).stderr.decode()
        streams = sorted(os.listdir(self.path("out")))
        self.assertEqual(len(streams), 9)
        out = self.back(*(self.path("out/" + s) for s in streams))
        moved = [name for name in ("tas", "pr", "lat", "lon", "tas_error", "qc", "time", "y", "x")
                 if self.stored(path, name).tobytes() != self.stored(out, name).tobytes()]
        self.assertEqual(moved, ["tas", "pr"])
        for name in ("lat", "lon", "tas_error", "qc", "time"):
            self.assertIn(f"{name}: every bit is kept", text)

    def test_NamedCoordinateAndFlags_GetTheBound(self):
        path = self.model()
        self.assertEqual(self.json(self.ok("compress", "-f", "--json", "--abs", 1e-3, "--dataset", "lat", path, "-o",
                                           self.path("a.qn")))["enforced"]["kind"], "abs")
        result = self.ok("compress", "-f", "--abs", 1, "--dataset", "qc", path, "-o", self.path("a.qn"))
        self.assertIn("flag", result.stderr.decode())

    def test_OnlyVariableWithFlags_IsKeptExactly(self):
        path = self.netcdf("qc.nc", {"qc": ("i2", ("y", "x"), field((40, 50), 6, 0, 5), None,
                                            {"flag_masks": numpy.array([1, 2, 4], "i2")})}, {"y": 40, "x": 50})
        result = self.ok("compress", "--abs", 1, path, "-o", self.path("a.qn"))
        self.assertIn("every bit is kept", result.stderr.decode())
        self.assertEqual(self.stored(path, "qc").tobytes(), self.stored(self.back(self.path("a.qn")), "qc").tobytes())

    def test_SeveralVariables_WithoutAName_TellsTheOptions(self):
        path = self.model()
        text = self.refused(1, "--dataset", "compress", "--rel", 1e-3, path).stderr.decode()
        self.assertIn("--bounds", text)
        self.assertIn("'*'", text)
        self.refused(1, "no other name", "compress", "--rel", 1e-3, "--dataset", "*", "--dataset", "tas", path)


class Recognised(CliTest):
    def test_FilesWithoutAnArray_AreRefusedWithWhatToDo(self):
        numpy.savez(self.path("a.npz"), a=numpy.zeros(5))
        self.refused(1, "unzip", "compress", "--abs", 1, self.path("a.npz"))
        self.refused(1, "unzip", "compress", "--abs", 1, "-t", "f32", "-s", "5", self.path("a.npz"))
        header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
        path = self.write("a.safetensors", struct.pack("<Q", len(header)) + header + bytes(8))
        self.refused(1, "checkpoint", "compress", "--abs", 1, path)
        path = self.write("w_100.f32", wave(100).tobytes())
        self.ok("compress", "--abs", 1e-3, path, "-o", self.path("w.qn"))
        self.refused(1, "quern verify", "compare", path, self.path("w.qn"))
        self.refused(1, "quern decompress", "compress", "--abs", 1, self.path("w.qn"))

    def test_NpyWithoutExtension_IsOpened(self):
        numpy.save(self.path("a.npy"), numpy.arange(12.0).reshape(3, 4))
        os.rename(self.path("a.npy"), self.path("a.dat"))
        line = self.json(self.ok("compress", "--json", "--abs", 1e-3, self.path("a.dat")))
        self.assertEqual(line["shape"], [3, 4])

    @harness.unittest.skipUnless(h5py, "h5py is not installed")
    def test_Hdf5UnderOtherNames_IsOpened(self):
        for name, block in (("scan.nxs", 0), ("flash_plt_cnt_0000", 0), ("block.dat", 512), ("late.dat", 2048)):
            with self.subTest(name=name):
                with h5py.File(self.path(name), "w", userblock_size=block) as f:
                    f["entry/data"] = numpy.arange(60.0).reshape(6, 10)
                line = self.json(self.ok("compress", "--json", "--abs", 1e-3, self.path(name), "-o", self.path(name + ".qn")))
                self.assertEqual(line["shape"], [6, 10])

    @needs_netcdf
    def test_ClassicNetcdfUnderOtherNames_IsOpened(self):
        for name, kind in (("a.dat", "NETCDF3_CLASSIC"), ("b", "NETCDF3_64BIT_OFFSET"), ("c.h5", "NETCDF3_64BIT_DATA")):
            with self.subTest(name=name):
                with netCDF4.Dataset(self.path(name), "w", format=kind) as f:
                    f.createDimension("x", 40)
                    f.createVariable("v", "f4", ("x",))[:] = numpy.arange(40)
                line = self.json(self.ok("compress", "--json", "--abs", 1e-3, self.path(name), "-o", self.path(name + ".qn")))
                self.assertEqual(line["shape"], [40])

    def test_RawBytesOfOrdinaryNumbers_StayRaw(self):
        path = self.write("w.dat", wave(100).tobytes())
        self.assertEqual(self.json(self.ok("compress", "--json", "--abs", 1e-3, "-t", "f32", "-s", "100", path))["shape"], [100])
        numpy.savez(self.path("a.npz"), a=numpy.zeros(5))
        size = os.path.getsize(self.path("a.npz")) - 2
        self.ok("compress", "--lossless", "-t", "u8", "-s", size, "--skip", 2, self.path("a.npz"))


if __name__ == "__main__":
    harness.main()
