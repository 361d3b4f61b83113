# The plugin as people meet it: h5repack, h5dump, h5py, nccopy, netCDF4 and xarray find it through HDF5_PLUGIN_PATH and
# nothing else. usage: test_tools.py PLUGIN_FOLDER
import os
import struct
import unittest

from plugin_harness import (ABS, FILTER, LORENZO, LOSSLESS, PWREL, PluginTest, field, h5py, needs, np, repack_filter,
                            words)


class H5pyTest(PluginTest):
    def test_Create_EveryType_BoundHolds(self):
        for dtype in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 >f2 >f4 >f8 >i2 >i4 >i8 >u2 >u4 >u8".split():
            data = np.abs(field((30, 50), "f8")).astype(dtype)
            bound = 1.0
            self.write("t.h5", data, chunks=(16, 16), compression=FILTER, compression_opts=words(ABS, bound))
            back = self.read("t.h5")
            self.assertEqual(back.dtype, data.dtype)
            self.assert_within(back, data, bound)

    def test_PartialReadsAndResize_KeepValues(self):
        data = field((40, 33))
        with h5py.File(self.path("g.h5"), "w") as f:
            d = f.create_dataset("x", (20, 33), "f4", maxshape=(None, 33), chunks=(16, 10), compression=FILTER,
                                 compression_opts=words(ABS, 0.01), fillvalue=np.float32(-7.5))
            d[0:20] = data[:20]
            d.resize(45, axis=0)
            d[20:40] = data[20:]
        with h5py.File(self.path("g.h5"), "r") as f:
            self.assert_within(f["x"][13:37, 5:31], data[13:37, 5:31], 0.01)
            self.assertTrue((f["x"][40:] == -7.5).all())

    def test_RecordsThroughH5py_AreStoredAsTheyAre(self):
        # h5py asks for filters as optional ones.
        records = np.array([(i, -i) for i in range(40)], np.dtype([("a", "f4"), ("b", "i4")]))
        self.write("r.h5", records, chunks=(10,), compression=FILTER, compression_opts=words(ABS, 1))
        self.assertEqual(self.read("r.h5").tobytes(), records.tobytes())

    def test_ReasonOfARefusal_ReachesThePythonUser(self):
        with h5py.File(self.path("r.h5"), "w") as f:
            with self.assertRaises(Exception) as caught:
                f.create_dataset("y", (10,), "f4", chunks=(10,), compression=FILTER, compression_opts=words(2, 1e-3))
            self.assertIn("max - min", str(caught.exception))
            with self.assertRaises(Exception) as caught:
                f.create_dataset("z", (10,), "f4", chunks=(10,), compression=FILTER, shuffle=True,
                                 compression_opts=words(ABS, 1))
            self.assertIn("before quern", str(caught.exception))


@needs("h5repack")
@needs("h5dump")
class RepackTest(PluginTest):
    def test_Repack_H5dumpAndH5pyReadWithinBound(self):
        data = field((20, 30, 40))
        source = self.write("a.h5", data, chunks=(7, 16, 40))
        self.ok("h5repack", "-f", repack_filter(ABS, 1e-3), source, self.path("b.h5"))
        self.assertLess(os.path.getsize(self.path("b.h5")), data.nbytes / 2)
        self.assert_within(self.read("b.h5"), data, 1e-3)
        self.ok("h5dump", "-d", "/x", "-b", "LE", "-o", self.path("x.bin"), self.path("b.h5"))
        self.assert_within(np.fromfile(self.path("x.bin"), "<f4").reshape(data.shape), data, 1e-3)

    def test_Repack_ReplacesFormerFilters(self):
        data = field((50, 60))
        source = self.write("a.h5", data, chunks=(25, 30), compression="gzip", shuffle=True)
        self.ok("h5repack", "-f", "x:" + repack_filter(PWREL, 1e-3), source, self.path("b.h5"))
        back = self.read("b.h5").astype("f8")
        self.assertTrue((np.abs(back - data.astype("f8")) <= 1e-3 * np.abs(data.astype("f8"))).all())

    def test_RepackTwiceWithLorenzo_SameChunksValuesAndBound(self):
        data = field((64, 48), "f8")
        source = self.write("a.h5", data, chunks=(20, 20))
        ask = repack_filter(ABS, 1e-4, LORENZO)
        self.ok("h5repack", "-f", ask, source, self.path("b.h5"))
        self.ok("h5repack", self.path("b.h5"), self.path("c.h5"))              # a copy, settings from the file
        self.ok("h5repack", "-f", ask, self.path("c.h5"), self.path("d.h5"))   # and once more by name
        first = self.read("b.h5")
        for name in ("c.h5", "d.h5"):
            self.assertEqual(self.stored(name)[0], (20, 20))
            self.assertEqual(self.settings(name), self.settings("b.h5"))
            self.assertEqual(self.read(name).tobytes(), first.tobytes())
        self.assert_within(first, data, 1e-4)

    def test_RepackAgainWithAnyCodec_ErrorStaysBelowTwiceTheBound(self):
        data = field((64, 48))
        source = self.write("a.h5", data, chunks=(32, 48))
        self.ok("h5repack", "-f", repack_filter(ABS, 0.01), source, self.path("b.h5"))
        self.ok("h5repack", self.path("b.h5"), self.path("c.h5"))
        self.assert_within(self.read("c.h5"), self.read("b.h5"), 0.01)
        self.assert_within(self.read("c.h5"), data, 0.02)

    def test_RepackOtherChunks_SettingsFollow(self):
        data = field((30, 30))
        source = self.write("a.h5", data, chunks=(10, 10), compression=FILTER, compression_opts=words(ABS, 0.01))
        self.ok("h5repack", "-l", "x:CHUNK=15x30", source, self.path("b.h5"))
        self.assertEqual(self.settings("b.h5")[7:10], [2, 15, 30])
        self.assert_within(self.read("b.h5"), data, 0.02)

    def test_RemoveTheFilter_ValuesStay(self):
        data = field((30, 30))
        source = self.write("a.h5", data, chunks=(10, 10), compression=FILTER, compression_opts=words(LOSSLESS))
        self.ok("h5repack", "-f", "NONE", source, self.path("b.h5"), env=None)
        without = {"HDF5_PLUGIN_PATH": self.folder}
        self.ok("h5dump", "-d", "/x", self.path("b.h5"), env=without)
        self.assertEqual(self.read("b.h5").tobytes(), data.tobytes())

    def test_OptionalFlag_MixedFileKeepsWhatQuernCannotTake(self):
        record = np.array([(1.5, 2), (3.5, 4)] * 600, np.dtype([("a", "f4"), ("b", "i4")]))
        data = field((50, 50))
        with h5py.File(self.path("a.h5"), "w") as f:
            f["field"] = data
            f["records"] = record
            f["flags"] = np.array([True, False] * 600)
            f["names"] = np.array([b"north", b"south"] * 600)
            f["scalar"] = 3.0
            f["empty"] = h5py.Empty("f4")
            f["group/part"] = np.arange(2000)
            f["group"].attrs["unit"] = "K"
        self.ok("h5repack", "-f", repack_filter(ABS, 0.5, flag=1), self.path("a.h5"), self.path("b.h5"))
        with h5py.File(self.path("a.h5"), "r") as a, h5py.File(self.path("b.h5"), "r") as b:
            self.assert_within(b["field"][...], data, 0.5)
            self.assert_within(b["group/part"][...], a["group/part"][...], 0.5)
            for name in ("records", "flags", "names"):
                self.assertEqual(b[name][...].tobytes(), a[name][...].tobytes(), name)
            self.assertEqual(b["group"].attrs["unit"], "K")
            self.assertLess(b["field"].id.get_storage_size(), data.nbytes / 2)


@needs("h5dump")
class DamageTest(PluginTest):
    def damage(self, changes):
        """A valid file whose second chunk's bytes went through `changes`."""
        path = self.write("d.h5", field((32, 32)), chunks=(16, 32), compression=FILTER,
                          compression_opts=words(ABS, 0.01))
        with h5py.File(path, "r+") as f:
            d = f["x"].id
            mask, good = d.read_direct_chunk((16, 0))
            d.write_direct_chunk((16, 0), bytes(changes(bytearray(good))), mask)
        return path

    def expect_clean_failure(self, path):
        with self.assertRaises(OSError):
            self.read("d.h5")
        result = self.run_tool("h5dump", "--enable-error-stack", "-d", "/x", path)
        self.assertNotEqual(result.returncode, 0)
        text = (result.stderr + result.stdout).decode(errors="replace")
        self.assertIn("quern", text)
        with h5py.File(path, "r") as f:
            self.assertTrue(np.isfinite(f["x"][:16]).all(), "the other chunk is still read")

    def test_FlippedBits_AreErrorsNotCrashes(self):
        size = len(self.stored_of_one())
        for at in sorted({0, 3, 8, 12, 16, 20, 24, 32, 40, 48, 64, size // 2, size - 9, size - 1}):
            def flip(data, at=at):
                data[at] ^= 0x10
                return data
            self.expect_clean_failure(self.damage(flip))

    def stored_of_one(self):
        self.write("d.h5", field((32, 32)), chunks=(16, 32), compression=FILTER, compression_opts=words(ABS, 0.01))
        return self.stored("d.h5")[1][1][1][1]

    def test_CutPaddedAndForeignBytes_AreErrorsNotCrashes(self):
        for change in (lambda d: d[:1], lambda d: d[:len(d) // 2], lambda d: d[:-1], lambda d: d + b"\0",
                       lambda d: b"\0" * len(d), lambda d: b"\xff" * len(d), lambda d: d[::-1]):
            self.expect_clean_failure(self.damage(change))

    def test_ChunkOfAnotherShape_IsAnError(self):
        self.write("o.h5", field((8, 8)), chunks=(8, 8), compression=FILTER, compression_opts=words(ABS, 0.01))
        other = self.stored("o.h5")[1][0][1][1]
        self.expect_clean_failure(self.damage(lambda d: other))


class NetcdfTest(PluginTest):
    def setUp(self):
        super().setUp()
        try:
            import netCDF4
        except ImportError:
            self.skipTest("SKIP: no netCDF4 module here")
        data = field((12, 20, 30))
        data[data < -60] = -999
        with netCDF4.Dataset(self.path("n.nc"), "w") as f:
            for name, size in (("t", None), ("y", 20), ("x", 30)):
                f.createDimension(name, size)
            f.createVariable("T", "f4", ("t", "y", "x"), fill_value=-999.0)[:] = data
            f.createVariable("t", "f8", ("t",))[:] = np.arange(12)
            f["T"].units = "K"
        self.data = data
        self.netcdf = netCDF4

    def compressed(self):
        # netCDF takes the number and the words, without HDF5's flag and count.
        # HDF5 is not told of the fill value either: it is declared in the last two words.
        fill = struct.unpack("<I", struct.pack("<f", -999))[0]
        declared = [1 + 0x400, *words(ABS, 0.01)[1:], *[0] * 10, 0, fill]
        spec = ",".join(["T", str(FILTER)] + [str(w) for w in declared])
        self.ok("nccopy", "-F", spec, self.path("n.nc"), self.path("m.nc"))
        return self.path("m.nc")

    def check(self, back):
        missing = self.data == -999
        self.assertTrue((back[missing] == -999).all())
        self.assert_within(back[~missing], self.data[~missing], 0.01)

    @needs("nccopy")
    def test_Nccopy_RoundTripKeepsGapsAndBound(self):
        path = self.compressed()
        with self.netcdf.Dataset(path) as f:
            f.set_auto_mask(False)
            self.check(f["T"][...])
            self.assertEqual(f["T"].units, "K")
        self.assertIn(str(FILTER), h5py.File(path, "r")["T"]._filters)
        self.ok("nccopy", "-F", "*,none", path, self.path("back.nc"))
        with self.netcdf.Dataset(self.path("back.nc")) as f:
            f.set_auto_mask(False)
            self.check(f["T"][...])

    @needs("nccopy")
    def test_Xarray_ReadsTheFile(self):
        try:
            import xarray
        except ImportError:
            self.skipTest("SKIP: no xarray module here")
        with xarray.open_dataset(self.compressed()) as ds:
            back = ds["T"].values
            self.assertEqual(ds["T"].attrs["units"], "K")
        missing = self.data == -999
        self.assertTrue(np.isnan(back[missing]).all())
        self.assert_within(back[~missing], self.data[~missing], 0.01)

    @needs("nccopy")
    def test_NccopyWithARelativeBound_Fails(self):
        spec = ",".join(["T", str(FILTER)] + [str(w) for w in words(2, 0.01)])
        self.assertNotEqual(self.run_tool("nccopy", "-F", spec, self.path("n.nc"), self.path("bad.nc")).returncode, 0)


if __name__ == "__main__":
    unittest.main()
