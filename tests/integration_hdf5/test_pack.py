# quern h5 pack chooses fields, keeps each one's bound in physical units, and says what it did. Values, attributes and
# chunks are read with h5py and netCDF4.
# usage: test_pack.py PLUGIN_FOLDER QUERN
import json
import os
import stat
import struct
import sys
import unittest

from plugin_harness import FILTER, PluginTest, field, h5py, needs, np, words

try:
    import netCDF4
except ImportError:
    netCDF4 = None

if len(sys.argv) < 2:
    sys.exit("usage: test_pack.py PLUGIN_FOLDER QUERN [unittest options]")
QUERN = os.path.abspath(sys.argv.pop(1))
needs_netcdf = unittest.skipUnless(netCDF4, "SKIP: no netCDF4 for Python here")


class PackTest(PluginTest):
    def pack(self, *options, source="in.h5", target="out.h5"):
        return json.loads(self.ok(QUERN, "h5", "pack", "-f", "--json", *options, self.path(source), "-o",
                                  self.path(target)))

    def lines(self, *options, code=0):
        result = self.run_tool(QUERN, "h5", *options)
        text = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, code, text)
        return text

    def changed(self, *options, **files):
        return {c["dataset"]: c for c in self.pack(*options, **files)["changed"]}

    def three_fields(self):
        data = {n: field((40, 50), t) + i for i, (n, t) in enumerate((("a", "f4"), ("b", "f8"), ("c", "f4")))}
        with h5py.File(self.path("in.h5"), "w") as f:
            for name, values in data.items():
                f.create_dataset(name, data=values, chunks=(20, 50))
        return data

    def values(self, name):
        with h5py.File(self.path(name), "r") as f:
            return {n: f[n][...] for n in f if f[n].dtype.kind == "f"}


class TwiceTest(PackTest):
    """Several runs over one file: what a run does not name keeps its bytes (case A2)."""

    def test_PackOneAfterTheOther_EarlierChunksStay(self):
        data = self.three_fields()
        self.pack("--abs", "0.1", "--dataset", "a", target="1.h5")
        self.pack("--abs", "0.02", "--dataset", "b", source="1.h5", target="2.h5")
        self.pack("--rel", "1e-3", source="2.h5", target="3.h5")
        self.assertEqual(self.stored("1.h5", "a"), self.stored("3.h5", "a"))
        self.assertEqual(self.stored("2.h5", "b"), self.stored("3.h5", "b"))
        self.assertEqual(self.stored("in.h5", "c"), self.stored("2.h5", "c"))
        self.ok(QUERN, "h5", "unpack", "--dataset", "b", self.path("3.h5"), "-o", self.path("4.h5"))
        self.assertEqual(self.stored("1.h5", "a"), self.stored("4.h5", "a"))
        self.ok(QUERN, "h5", "unpack", self.path("4.h5"), "-o", self.path("5.h5"))
        back = self.values("5.h5")
        span = float(data["c"].max()) - float(data["c"].min())
        for name, bound in (("a", 0.1), ("b", 0.02), ("c", 1e-3 * span)):
            self.assert_within(back[name], data[name], bound)
            self.assertEqual(back[name].tobytes(), self.values("3.h5")[name].tobytes())

    def test_PackedDatasetNamedAgain_IsRefusedOrAddsUp(self):
        data = self.three_fields()
        self.pack("--abs", "0.1", "--dataset", "a", target="1.h5")
        text = self.lines("pack", "--abs", "0.2", "--dataset", "a", self.path("1.h5"), "-o", self.path("2.h5"), code=1)
        self.assertIn("/a is packed already, under |x - x'| <= 0.1", text)
        self.assertIn("--again", text)
        self.assertFalse(os.path.exists(self.path("2.h5")))
        self.pack("--abs", "0.2", "--dataset", "a", "--again", source="1.h5", target="2.h5")
        self.pack("--abs", "0.3", "--dataset", "a", "--again", source="2.h5", target="3.h5")
        with h5py.File(self.path("3.h5"), "r") as f:
            self.assertEqual(f["a"].attrs["lossy_compression_bound"][0], 0.3)
            total = f["a"].attrs["lossy_compression_bound_accumulated"][0]
        self.assertAlmostEqual(total, 0.6, places=12)
        self.assert_within(self.values("3.h5")["a"], data["a"], total)

    def test_SameBoundNamedAgain_NothingIsPackedTwice(self):
        self.three_fields()
        self.pack("--rel", "1e-3", "--dataset", "a", target="1.h5")
        told = self.pack("--rel", "1e-3", "--dataset", "a", "--dataset", "b", source="1.h5", target="2.h5")
        self.assertEqual([c["dataset"] for c in told["changed"]], ["/b"])
        self.assertIn("already", told["left"][0]["reason"])
        self.assertEqual(self.stored("1.h5", "a"), self.stored("2.h5", "a"))

    def test_UnpackedAndPackedAgain_AttributeAddsUp(self):
        data = self.three_fields()
        self.pack("--abs", "0.1", "--dataset", "a", target="1.h5")
        self.ok(QUERN, "h5", "unpack", self.path("1.h5"), "-o", self.path("2.h5"))
        self.pack("--abs", "0.05", "--dataset", "a", source="2.h5", target="3.h5")
        with h5py.File(self.path("3.h5"), "r") as f:
            total = f["a"].attrs["lossy_compression_bound_accumulated"][0]
        self.assertAlmostEqual(total, 0.15, places=12)
        self.assert_within(self.values("3.h5")["a"], data["a"], total)

    def test_PackedByAnotherProgram_BoundIsKnownFromItsSettings(self):
        data = field((40, 50))
        with h5py.File(self.path("in.h5"), "w") as f:
            f.create_dataset("a", data=data, chunks=(20, 50), compression=FILTER, compression_opts=words(1, 0.25))
        text = self.lines("pack", "--abs", "0.5", "--dataset", "a", self.path("in.h5"), "-o", self.path("o.h5"), code=1)
        self.assertIn("0.25", text)
        told = self.changed("--abs", "0.5", "--dataset", "a", "--again")
        self.assertAlmostEqual(told["/a"]["accumulated"], 0.75, places=12)


class RewritingTest(PackTest):
    def edit(self, name):
        with h5py.File(self.path(name), "r+", rdcc_nbytes=0) as f:
            before = f["a"][...]
            f["a"][3, 4] = before[3, 4]
            f["a"][5:7] = before[5:7]
        with h5py.File(self.path(name), "r") as f:
            self.assertEqual(before.tobytes(), f["a"][...].tobytes())

    def test_ChunksWrittenAgain_GrowAndCheckSaysSo_UnlessRewritable(self):
        data = self.three_fields()
        self.pack("--abs", "0.1", target="once.h5")
        self.pack("--abs", "0.1", "--rewritable", target="kept.h5")
        sizes = {n: sum(len(b[1][1]) for b in self.stored(n, "a")[1]) for n in ("once.h5", "kept.h5")}
        self.assertLess(sizes["once.h5"], sizes["kept.h5"])
        for name in ("once.h5", "kept.h5"):
            self.edit(name)
            self.assert_within(self.values(name)["a"], data["a"], 0.1)
        self.assertEqual(sum(len(b[1][1]) for b in self.stored("kept.h5", "a")[1]), sizes["kept.h5"])
        self.assertIn("/a: 1 chunks were written again", self.lines("check", self.path("once.h5")))
        self.assertNotIn("written again", self.lines("check", self.path("kept.h5")))


class BoundsTest(PackTest):
    def test_BoundsOfSingleDatasets_InOneRun(self):
        data = self.three_fields()
        with open(self.path("bounds.txt"), "w") as f:
            f.write("a abs 0.5   # coarse\n/b lossless\n")
        told = self.changed("--bounds", self.path("bounds.txt"), "--bound", "c=rel:1e-4")
        self.assertEqual([told[n]["bound"]["kind"] for n in ("/a", "/b", "/c")], ["abs", "lossless", "abs"])
        back = self.values("out.h5")
        self.assert_within(back["a"], data["a"], 0.5)
        self.assertEqual(back["b"].tobytes(), data["b"].tobytes())
        self.assert_within(back["c"], data["c"], 1e-4 * (float(data["c"].max()) - float(data["c"].min())))
        told = self.changed("--bound", "a=abs:0.5", "--abs", "0.001")
        self.assertEqual((told["/a"]["bound"]["value"], told["/b"]["bound"]["value"]), (0.5, 0.001))
        told = self.changed("--bound", "a=pwrel:0.01")
        self.assertEqual(set(told), {"/a"})

    def test_PsnrAndRatio_AreSearchedForEachDataset(self):
        data = {"a": np.cumsum(np.random.default_rng(3).standard_normal((60, 100)), 1).astype("f4"),
                "b": 1000 * field((60, 100), "f8")}
        with h5py.File(self.path("in.h5"), "w") as f:
            for name, values in data.items():
                f[name] = values
        told = self.changed("--psnr", "60")
        for name, values in data.items():
            back = self.values("out.h5")[name].astype("f8")
            psnr = 10 * np.log10((values.max() - values.min()) ** 2.0 / np.mean((back - values) ** 2))
            self.assertGreaterEqual(psnr, 60)
            self.assertLess(psnr, 66)
            self.assertAlmostEqual(told["/" + name]["psnr_db"], psnr, delta=0.01)
        told = self.changed("--ratio", "20", "--bound", "b=abs:1e-3")
        self.assertGreaterEqual(data["a"].nbytes / told["/a"]["output_bytes"], 20)
        self.assertLess(data["a"].nbytes / told["/a"]["output_bytes"], 30)
        self.assertEqual(told["/b"]["bound"]["value"], 1e-3)

    def test_WrongBounds_AreRefused(self):
        self.three_fields()
        source, target = self.path("in.h5"), ["-o", self.path("o.h5")]
        for options, part in ((["--bound", "a"], "NAME=KIND:VALUE"), (["--bound", "a=abs"], "no value"),
                              (["--bound", "a=lossless:1"], "has no value"), (["--bound", "a=much:1"], "no kind of bound"),
                              (["--bound", "a=abs:1", "--bound", "/a=abs:2"], "has a bound already"),
                              (["--dataset", "a"], "--dataset")):
            self.assertIn(part, self.lines("pack", *options, source, *target, code=1))
        self.assertIn("no dataset of that name", self.lines("pack", "--bound", "no=abs:1", source, *target, code=2))
        self.assertIn("only h5 pack", self.lines("check", "--bound", "a=abs:1", source, code=1))
        self.assertIn("h5 pack --psnr", self.lines("args", "--psnr", "60", code=1))

    def test_DatasetByASoftLink_IsItsTarget(self):
        self.three_fields()
        with h5py.File(self.path("in.h5"), "a") as f:
            f["g/soft"] = h5py.SoftLink("/b")
            f["g/out"] = h5py.ExternalLink("in.h5", "/a")
        self.assertEqual(set(self.changed("--abs", "0.1", "--dataset", "g/soft")), {"/b"})
        self.ok(QUERN, "h5", "check", "--dataset", "g/soft", self.path("out.h5"))
        self.ok(QUERN, "h5", "unpack", "--dataset", "g/soft", self.path("out.h5"), "-o", self.path("u.h5"))
        self.assertEqual(self.stored("u.h5", "b")[0], (20, 50))

    def test_ThreadsAndMemory_ChangeNoByte(self):
        with h5py.File(self.path("in.h5"), "w") as f:
            f.create_dataset("x", data=field((300, 200, 100)), chunks=(50, 64, 100))
            f.create_dataset("wide", data=field((3, 700, 900)), chunks=(3, 70, 90))
        self.pack("--abs", "0.01", "--goal", "speed", target="1.h5")
        self.pack("--abs", "0.01", "--goal", "speed", "-T", "4", target="2.h5")
        self.pack("--abs", "0.01", "--goal", "speed", "--memory", "24M", target="3.h5")
        for name in ("x", "wide"):
            for other in ("2.h5", "3.h5"):
                self.assertEqual(self.stored("1.h5", name), self.stored(other, name))
        self.ok(QUERN, "h5", "unpack", "-T", "2", self.path("2.h5"), "-o", self.path("u.h5"))
        self.assertEqual(self.read("u.h5").tobytes(), self.read("1.h5").tobytes())


@needs_netcdf
class UnitsTest(PackTest):
    """Bounds of packed variables are in physical units (case A3)."""

    def scaled(self, kind, scale, offset, **more):
        raw = np.clip(np.cumsum(np.random.default_rng(4).standard_normal((6, 40, 60)) * 300, 2), -32000, 32000)
        with netCDF4.Dataset(self.path("in.nc"), "w") as d:
            for name, extent in (("time", None), ("lat", 40), ("lon", 60)):
                d.createDimension(name, extent)
            v = d.createVariable("strd", kind, ("time", "lat", "lon"), chunksizes=(1, 40, 60), **more)
            v.scale_factor, v.add_offset = scale, offset
            v.set_auto_maskandscale(False)
            v[:] = raw.astype(kind)

    def physical(self, name):
        with netCDF4.Dataset(self.path(name)) as d:
            v = d["strd"]
            v.set_auto_maskandscale(False)
            return v[:].astype("f8") * float(v.scale_factor) + float(v.add_offset)

    def test_AbsoluteBound_HoldsForPhysicalValues(self):
        for kind, scale, offset in (("i2", 365.5, -1.2e7), ("f4", 365.5, -1.2e7), ("i4", -0.01, 273.15), ("f8", 1e-3, 0.0)):
            for options in ([], ["--dataset", "strd"]):
                with self.subTest(kind=kind, scale=scale, options=options):
                    self.scaled(kind, scale, offset)
                    bound = 2.5 * abs(scale)
                    told = self.changed("--abs", repr(bound), *options, source="in.nc", target="out.nc")
                    self.assertIn("/strd", told)
                    error = np.abs(self.physical("out.nc") - self.physical("in.nc")).max()
                    self.assertLessEqual(error, bound * (1 + 1e-9))
                    self.assertGreater(error, 0)
                    with netCDF4.Dataset(self.path("out.nc")) as d:
                        noted = d["strd"].lossy_compression_bound
                    # Of integers the bound is a whole number of steps.
                    expected = bound if kind[0] == "f" else 2 * abs(scale)
                    self.assertAlmostEqual(noted / expected, 1, places=6)

    def test_RelativeBound_IsOfTheRange(self):
        self.scaled("i2", 365.5, -1.2e7, fill_value=-32767)
        self.changed("--rel", "1e-3", source="in.nc", target="out.nc")
        a, b = self.physical("in.nc"), self.physical("out.nc")
        self.assertLessEqual(np.abs(a - b).max(), 1e-3 * np.ptp(a))

    def test_PointwiseBoundOfScaledValues_IsLeftAlone(self):
        self.scaled("f4", 2.0, 5.0)
        text = self.lines("pack", "--pwrel", "0.01", "--dataset", "strd", self.path("in.nc"), "-o", self.path("o.nc"),
                          code=1)
        self.assertIn("--pwrel cannot hold", text)


    def test_ValuesOutsideTheValidRange_DoNotWidenTheBound(self):
        self.scaled("f4", 1.0, 0.0)
        with netCDF4.Dataset(self.path("in.nc"), "a") as d:
            d["strd"].set_auto_maskandscale(False)
            d["strd"].valid_range = np.float32([-1e6, 1e6])
            d["strd"][2, 3:9] = 1e20
        told = self.changed("--rel", "1e-3", source="in.nc", target="out.nc")
        a = self.physical("in.nc")
        bound = 1e-3 * np.ptp(a[a < 1e19])
        self.assertLessEqual(told["/strd"]["bound"]["value"], bound)
        self.assertLessEqual(np.abs(self.physical("out.nc") - a).max(), bound)

    def test_UnsignedInSigned_IsLeftAlone(self):
        self.scaled("i2", 0.5, 10.0)
        with netCDF4.Dataset(self.path("in.nc"), "a") as d:
            d["strd"].setncattr("_Unsigned", "true")
        text = self.lines("pack", "--abs", "2", "--dataset", "strd", self.path("in.nc"), "-o", self.path("o.nc"), code=1)
        self.assertIn("_Unsigned", text)
        told = self.changed("--lossless", "--dataset", "strd", source="in.nc", target="out.nc")
        self.assertIn("/strd", told)
        self.assertTrue((self.physical("out.nc") == self.physical("in.nc")).all())


@needs_netcdf
class FieldsTest(PackTest):
    """Coordinates and what attributes name stay exact (case A6)."""

    def model(self):
        with netCDF4.Dataset(self.path("in.nc"), "w") as d:
            d.createDimension("time", None)
            for name, extent in (("y", 50), ("x", 60), ("nv", 4), ("two", 2), ("cell", 3000)):
                d.createDimension(name, extent)

            def add(name, dims, kind="f8", group=d, **attributes):
                v = group.createVariable(name, kind, dims)
                v.setncatts(attributes)
                shape = [d.dimensions[n].size or 2000 for n in dims]
                v[:] = (np.arange(np.prod(shape)).reshape(shape) * 0.731 % 97).astype(kind)
                return v

            add("time", ("time",), units="days since 1850-01-01", bounds="time_bnds")
            add("time_bnds", ("time", "two"))
            add("clim", ("time", "two"))
            add("lat", ("y", "x"), units="degrees_north")
            add("lon", ("y", "x"), units="degree_E", bounds="lon_bnds")
            add("lon_bnds", ("y", "x", "nv"))
            add("clat", ("cell",), units="radian")
            add("area", ("y", "x"), units="m2")
            add("ps", ("y", "x"), units="Pa")
            add("crs", ("cell",))
            add("quality", ("y", "x"), "f4", flag_values=np.float32([0, 1]), flag_meanings="bad good")
            add("error", ("y", "x"))
            add("when", ("cell",), units="seconds since 2000-01-01T00:00Z")
            add("tas", ("y", "x"), "f4", units="K", coordinates="lat lon", cell_measures="area: area",
                grid_mapping="crs: x y", ancillary_variables="error quality", formula_terms="p0: p0 ps: ps",
                climatology="clim")
            add("warm", ("y", "x"), "f4", units="degree_Celsius")
            add("count", ("y", "x"), "i4")
            group = d.createGroup("part")
            add("height", ("y", "x"), group=group, units="m")
            add("wind", ("cell",), group=group, coordinates="clat height")
            deeper = group.createGroup("deeper")
            add("far", ("y", "x"), group=deeper)
            add("gust", ("cell",), group=group, coordinates="/part/deeper/far ../clat")

    def exact(self, names):
        with h5py.File(self.path("in.nc"), "r") as a, h5py.File(self.path("out.nc"), "r") as b:
            return [n for n in names if a[n][...].tobytes() == b[n][...].tobytes()]

    NOT_FIELDS = ["time", "time_bnds", "clim", "lat", "lon", "lon_bnds", "clat", "area", "ps", "crs", "quality", "error",
                  "when", "count", "part/height", "part/deeper/far"]

    def test_OnlyFieldsArePacked_AndListed(self):
        self.model()
        told = self.pack("--rel", "1e-2", source="in.nc", target="out.nc")
        self.assertEqual({c["dataset"] for c in told["changed"]}, {"/tas", "/warm", "/part/wind", "/part/gust"})
        self.assertEqual(self.exact(self.NOT_FIELDS), self.NOT_FIELDS)
        reasons = {r["dataset"]: r["reason"] for r in told["left"]}
        self.assertIn("the attribute bounds of /time", reasons["/time_bnds"])
        self.assertIn("the attribute coordinates of /part/gust", reasons["/part/deeper/far"])
        self.assertIn("flags", reasons["/quality"] + "flags" if "names it" in reasons["/quality"] else reasons["/quality"])
        text = self.lines("pack", "-f", "--rel", "1e-2", self.path("in.nc"), "-o", self.path("out.nc"))
        for part in ("/tas  |x - x'| <=", "/part/wind  |x - x'| <=", "coordinates and what belongs to them",
                     "HDF5_PLUGIN_PATH=" + os.environ["HDF5_PLUGIN_PATH"]):
            self.assertIn(part, text)
        self.assertNotIn("time_bnds", text)
        text = self.lines("pack", "-f", "-v", "--rel", "1e-2", self.path("in.nc"), "-o", self.path("out.nc"))
        self.assertIn("/time_bnds stays as it is", text)

    def test_NamedCoordinate_IsPacked(self):
        self.model()
        self.assertEqual(set(self.changed("--bound", "lat=abs:0.5", source="in.nc", target="out.nc")), {"/lat"})
        self.assertEqual(self.exact(["lat"]), [])

    def test_NetcdfReadsThePackedFile_WithItsRecord(self):
        self.model()
        self.pack("--rel", "1e-2", source="in.nc", target="out.nc")
        with netCDF4.Dataset(self.path("in.nc")) as a, netCDF4.Dataset(self.path("out.nc"), "a") as b:
            self.assertEqual(list(a.variables), list(b.variables))
            self.assertEqual({n: len(x) for n, x in a.dimensions.items()}, {n: len(x) for n, x in b.dimensions.items()})
            for name in a.variables:
                self.assertEqual(a[name].dimensions, b[name].dimensions)
            tas = b["tas"]
            self.assertEqual(tas.lossy_compression, "quern")
            self.assertEqual(tas.lossy_compression_bound_kind, "absolute")
            self.assertEqual(tas.lossy_compression_requested, "rel=0.01")
            self.assertRegex(tas.lossy_compression_software, r"^quern \d")
            span = float(a["tas"][:].max()) - float(a["tas"][:].min())
            self.assertAlmostEqual(tas.lossy_compression_bound, 0.01 * span, places=6)
            self.assertNotIn("lossy_compression", b["lat"].ncattrs())
            b["tas"].note = "still writable"
        self.ok(QUERN, "h5", "unpack", self.path("out.nc"), "-o", self.path("u.nc"))
        with netCDF4.Dataset(self.path("u.nc")) as d:
            self.assertEqual(d["tas"].lossy_compression, "quern")


@needs_netcdf
class MissingTest(PackTest):
    """missing_value beside netCDF's default fill value, and both kinds together (case B11)."""

    def file(self, fill=None, missing=None, holes=-999, more_holes=None, kind="f4"):
        data = field((60, 80), kind)
        data[3:9, 5:50] = holes
        if more_holes is not None:
            data[20:24] = more_holes
        with netCDF4.Dataset(self.path("in.nc"), "w") as d:
            d.createDimension("y", 60)
            d.createDimension("x", 80)
            v = d.createVariable("u", kind, ("y", "x"), chunksizes=(35, 80), fill_value=fill)
            v.set_auto_mask(False)
            if missing is not None:
                v.missing_value = np.dtype(kind).type(missing)
            v[:] = data
        return data

    def packed(self, data, *options):
        self.assertIn("/u", self.changed("--rel", "1e-3", *options, source="in.nc", target="out.nc"))
        with netCDF4.Dataset(self.path("out.nc")) as d:
            d["u"].set_auto_mask(False)
            return d["u"][:]

    def test_MissingValueWithoutFillValue_IsPackedAndExact(self):
        for kind in ("f4", "f8"):
            for value in (-999, 1e20, 0):
                with self.subTest(kind=kind, value=value):
                    data = self.file(missing=value, holes=value, kind=kind)
                    back = self.packed(data)
                    holes = data == data.dtype.type(value)
                    self.assertTrue((back[holes] == data.dtype.type(value)).all())
                    span = float(data[~holes].max()) - float(data[~holes].min())
                    self.assert_within(back, data, 1e-3 * span)

    def test_FillAndOtherMissingValue_BothOccurAndAreExact(self):
        data = self.file(fill=-7777, missing=-999, more_holes=-7777)
        back = self.packed(data)
        for value in (-999, -7777):
            self.assertTrue((back[data == value] == value).all())
        held = (data != -999) & (data != -7777)
        self.assert_within(back[held], data[held], 1e-3 * (float(data[held].max()) - float(data[held].min())))

    def test_FillAndOtherMissingValue_OneOfThemOccurs(self):
        data = self.file(fill=-7777, missing=-999)
        self.assertTrue((self.packed(data)[data == -999] == -999).all())
        data = self.file(fill=-999, missing=-7777)
        self.assertTrue((self.packed(data)[data == -999] == -999).all())


class SizeTest(PackTest):
    """What would grow is left alone; small chunks are merged when asked (case B10)."""

    def tiny(self):
        rng = np.random.default_rng(5)
        data = np.cumsum(rng.standard_normal((2000, 60)), 0).astype("f4")
        with h5py.File(self.path("in.h5"), "w") as f:
            f.create_dataset("series", data=data[:, :2], chunks=(1, 2), maxshape=(None, 2))
            f.create_dataset("rows", data=data, chunks=(1, 60), maxshape=(None, 60), compression="gzip")
            f.create_dataset("noise", data=rng.random(3000, "f4"))
            f.create_dataset("good", data=field((80, 90)))
        return data

    def test_TinyChunks_AreLeftAloneWithALine(self):
        self.tiny()
        text = self.lines("pack", "--rel", "1e-3", self.path("in.h5"), "-o", self.path("out.h5"))
        self.assertIn("--rechunk", text)
        self.assertEqual(self.stored("in.h5", "series"), self.stored("out.h5", "series"))
        self.assertLess(os.path.getsize(self.path("out.h5")), os.path.getsize(self.path("in.h5")))

    def test_Rechunk_MergesThem(self):
        data = self.tiny()
        told = self.changed("--abs", "1e-3", "--rechunk")
        self.assertEqual(told["/rows"]["chunk"][1], 60)
        self.assertGreater(told["/rows"]["chunk"][0], 1000)
        with h5py.File(self.path("out.h5"), "r+") as f:
            self.assert_within(f["rows"][...], data, 1e-3)
            self.assertEqual(f["rows"].maxshape, (None, 60))
            f["rows"].resize(2001, 0)
            f["rows"][2000] = 1
            self.assert_within(f["rows"][:2000], data, 1e-3)
        self.assertLess(told["/rows"]["output_bytes"] * 2, told["/rows"]["input_bytes"])

    def test_Noise_Lossless_IsLeftAlone(self):
        self.tiny()
        told = self.pack("--lossless", "--dataset", "noise", "--dataset", "good")
        self.assertNotIn("/noise", [c["dataset"] for c in told["changed"]])
        self.assertIn("smaller", " ".join(r["reason"] for r in told["left"]))

    def test_UnwrittenChunks_StayUnwritten(self):
        with h5py.File(self.path("in.h5"), "w") as f:
            d = f.create_dataset("x", (100, 100), "f4", chunks=(25, 100), fillvalue=np.float32(-5))
            d[50:75] = field((25, 100))
        self.changed("--abs", "0.1")
        with h5py.File(self.path("out.h5"), "r") as f:
            self.assertEqual(f["x"].id.get_num_chunks(), 1)
            self.assertTrue((f["x"][:50] == -5).all())


class PrecisionTest(PackTest):
    def test_Digits_GiveEachDatasetItsBound(self):
        data = {"warm": field((40, 50)) + 280, "around_0": field((40, 50)), "whole": np.arange(2000).reshape(40, 50)}
        with h5py.File(self.path("in.h5"), "w") as f:
            for name, values in data.items():
                f.create_dataset(name, data=values.astype("i4" if name == "whole" else "f4"), chunks=(20, 50))
        told = self.pack("--digits", "3")
        bounds = {c["dataset"]: c["bound"] for c in told["changed"]}
        self.assertEqual(bounds["/warm"]["kind"], "abs")
        self.assertEqual(bounds["/around_0"]["kind"], "pwrel")
        self.assertEqual(set(bounds), {"/warm", "/around_0"})
        for name in ("warm", "around_0"):
            x = data[name].astype("f4").astype("f8")
            error = np.abs(x - self.values("out.h5")[name].astype("f8"))
            self.assertTrue(np.all(error <= 5e-4 * np.abs(x)), name)
        told = self.pack("--digits", "3", "--bound", "warm=abs:0.5")
        self.assertEqual([c["bound"]["value"] for c in told["changed"] if c["dataset"] == "/warm"], [0.5])

    def test_Information_IsThatOfTheLibrary(self):
        self.write("in.h5", field((40, 50)) + 280, "a", chunks=(20, 50))
        packed = self.changed("--information", "0.99")["/a"]["bound"]
        (field((40, 50)) + 280).astype("f4").tofile(self.path("a_40x50.f32"))
        stream = json.loads(self.ok(QUERN, "compress", "--json", "--information", "0.99", self.path("a_40x50.f32")))
        self.assertEqual(packed, stream["enforced"])


class TotalSizeTest(PackTest):
    """One PSNR for all fields, so that the file fits."""

    def fields(self):
        random = np.random.default_rng(3)
        data = {"smooth": field((30, 64, 80)), "rough": field((30, 64, 80)) + random.normal(0, 5, (30, 64, 80))}
        with h5py.File(self.path("in.h5"), "w") as f:
            for name, values in data.items():
                f.create_dataset(name, data=values.astype("f4"), chunks=(30, 64, 80))
        return {name: values.astype("f4") for name, values in data.items()}

    def psnr(self, x, y):
        return 20 * np.log10(x.max() - x.min()) - 10 * np.log10(np.mean((x.astype("f8") - y.astype("f8")) ** 2))

    def test_FileIsFilledAndNoMore(self):
        data = self.fields()
        size = 160000
        told = self.pack("--total-size", str(size), "--psnr-floor", "30")
        self.assertLessEqual(os.path.getsize(self.path("out.h5")), size)
        self.assertGreater(os.path.getsize(self.path("out.h5")), 0.95 * size)
        back = self.values("out.h5")
        self.assertGreater(told["psnr_target"], 30)
        for name, values in data.items():
            psnr = self.psnr(values, back[name])
            self.assertGreaterEqual(psnr, told["psnr_target"])
            self.assertLess(psnr, told["psnr_target"] + 1.5)

    def test_WhatDoesNotFit_IsSaid(self):
        self.fields()
        text = self.lines("pack", "-q", "--total-size", "20000", "--psnr-floor", "60", self.path("in.h5"), "-o",
                          self.path("out.h5"), code=4)
        self.assertIn("--total-size allows 20000", text)
        self.assertFalse(os.path.exists(self.path("out.h5")))

    def test_Roomy_KeepsAllThatItCan(self):
        data = self.fields()
        self.pack("--total-size", "5M")
        text = self.lines("pack", "--total-size", "5M", "--psnr-floor", "250", self.path("in.h5"), "-o", self.path("o.h5"), code=1)
        self.assertIn("at most 200 dB", text)
        for name, values in data.items():
            self.assert_within(self.values("out.h5")[name], values, 1e-5)

    def test_OtherBoundsBeside_AreRefusedOrKept(self):
        data = self.fields()
        text = self.lines("pack", "--total-size", "5M", "--abs", "1", self.path("in.h5"), "-o", self.path("o.h5"), code=1)
        self.assertIn("--total-size", text)
        told = self.changed("--total-size", "120000", "--bound", "smooth=abs:0.001")
        self.assertEqual(told["/smooth"]["bound"], {"kind": "abs", "value": 0.001})
        self.assert_within(self.values("out.h5")["smooth"], data["smooth"], 0.001)


class FileTest(PackTest):
    def test_Permissions_AreTheInputs(self):
        self.three_fields()
        for mode in (0o600, 0o640, 0o444):
            os.chmod(self.path("in.h5"), mode)
            self.pack("--abs", "0.1", target="m%o.h5" % mode)
            made = stat.S_IMODE(os.stat(self.path("m%o.h5" % mode)).st_mode)
            self.assertEqual(made & 0o077 & ~mode, 0, oct(made))
            self.assertTrue(made & 0o600)

    @needs_netcdf
    def test_ClassicNetcdf_IsAnsweredWithItsConversion(self):
        for kind in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"):
            with netCDF4.Dataset(self.path("c.nc"), "w", format=kind) as d:
                d.createDimension("x", 4)
                d.createVariable("v", "f4", ("x",))[:] = 1
            for work in (["pack", "--abs", "1", "-o", self.path("o.nc")], ["unpack", "-o", self.path("o.nc")], ["check"]):
                self.assertIn("nccopy -k nc4", self.lines(*work, self.path("c.nc"), code=2))

    def test_Check_TellsTheSettings(self):
        self.three_fields()
        self.pack("--bound", "a=abs:0.5", "--bound", "b=lossless", "--codec", "lorenzo")
        told = json.loads(self.ok(QUERN, "h5", "check", "--json", self.path("out.h5")))
        settings = {s["dataset"]: s for s in told["settings"]}
        self.assertEqual(settings["/a"]["bound"], {"kind": "abs", "value": 0.5})
        self.assertEqual(settings["/a"]["codec"], "lorenzo")
        self.assertEqual(settings["/b"]["bound"]["kind"], "lossless")
        self.assertTrue(settings["/a"]["write_once"])
        self.assertIn("/a under |x - x'| <= 0.5", self.lines("check", "-v", self.path("out.h5")))

    def test_OutputIsInput_IsRefused(self):
        self.three_fields()
        self.assertIn("same file", self.lines("pack", "-f", "--abs", "1", self.path("in.h5"), "-o", self.path("in.h5"),
                                              code=1))


if __name__ == "__main__":
    unittest.main()
