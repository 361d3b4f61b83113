# quern h5 and quern doctor: what they print is what other tools take, and packed files keep all but the values' last
# digits.
# usage: test_command.py PLUGIN_FOLDER QUERN
import json
import os
import subprocess
import sys
import unittest

from plugin_harness import FILTER, PluginTest, field, h5py, needs, np

if len(sys.argv) < 2:
    sys.exit("usage: test_command.py PLUGIN_FOLDER QUERN [unittest options]")
QUERN = os.path.abspath(sys.argv.pop(1))


class CommandTest(PluginTest):
    def quern(self, *words, env=None):
        return self.run_tool(QUERN, *words, env=env)

    def json(self, *words):
        return json.loads(self.ok(QUERN, *words, "--json"))

    def refused(self, code, part, *words):
        result = self.quern(*words)
        text = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, code, text)
        self.assertIn(part, text)

    def fields_file(self):
        """A file with everything that pack must tell apart."""
        data = field((20, 30, 40))
        with h5py.File(self.path("in.h5"), "w", track_order=True) as f:
            f.create_dataset("group/field", data=data, chunks=(5, 30, 40), compression="gzip", shuffle=True)
            f["group"].attrs["title"] = "a group"
            f["group/field"].attrs["units"] = "K"
            f["plain"] = data.astype("f8") * 1000
            f["counts"] = np.arange(5000)
            f["small"] = np.arange(20, dtype="f4")
            f["names"] = np.array([b"north", b"south"])
            f["soft"] = h5py.SoftLink("/group/field")
            f["hard"] = f["plain"]
            gaps = data.copy()
            gaps[gaps > 60] = 30.125
            f["gaps"] = gaps
            f["gaps"].attrs["missing_value"] = np.float32(30.125)
            f["constant"] = np.full(3000, 7.5)
            f["x"] = np.linspace(0, 1, 5000)
            f["x"].make_scale("x")
            f["wave"] = field((5000,))
            f["wave"].dims[0].attach_scale(f["x"])
        return data, gaps


class ArgsTest(CommandTest):
    def test_Args_AreWhatToolsTake(self):
        self.assertEqual(self.ok(QUERN, "h5", "args", "--abs", "1e-3"), "UD=443,0,6,1,0,1,1062232653,3539053052,0\n")
        told = self.json("h5", "args", "--pwrel", "0.5", "--codec", "lorenzo", "--goal", "speed", "--optional")
        self.assertEqual(told["filter"], FILTER)
        self.assertEqual(told["cd_values"], [1, 1, 3, 0x3FE00000, 0, 2])
        self.assertEqual(told["h5repack"], "UD=443,1,6,1,1,3,1071644672,0,2")
        self.assertEqual(told["nccopy"], "443,1,1,3,1071644672,0,2")

    @needs("h5repack")
    def test_ArgsThroughH5repack_BoundHolds(self):
        data = field((40, 50))
        source = self.write("a.h5", data)
        self.ok("h5repack", "-f", self.ok(QUERN, "h5", "args", "--abs", "0.02").strip(), source, self.path("b.h5"))
        self.assert_within(self.read("b.h5"), data, 0.02)

    def test_WrongArgs_AreRefused(self):
        self.refused(1, "quern h5 pack --rel", "h5", "args", "--rel", "1e-3")
        self.refused(1, "no error bound", "h5", "args")
        self.refused(1, "give exactly one", "h5", "args", "--abs", "1", "--lossless")
        self.refused(1, "needs no file", "h5", "args", "--abs", "1", "a.h5")
        self.refused(1, "no such codec", "h5", "args", "--abs", "1", "--codec", "nonesuch")
        self.refused(1, "use args, pack, unpack or check", "h5", "frobnicate")
        self.refused(1, "-o OUT", "h5", "pack", "--abs", "1", "a.h5")
        self.refused(1, "takes no bound", "h5", "check", "--abs", "1", "a.h5")


class PackTest(CommandTest):
    def test_PackRelative_BoundIsOfEachDatasetAndTheRestStays(self):
        data, gaps = self.fields_file()
        told = self.json("h5", "pack", "--rel", "1e-3", self.path("in.h5"), "-o", self.path("out.h5"))
        changed = {c["dataset"]: c["bound"] for c in told["changed"]}
        # /hard is the same object as /plain.
        self.assertEqual(set(changed), {"/group/field", "/plain", "/gaps", "/constant", "/wave"})
        span = float(data.max()) - float(data.min())
        self.assertAlmostEqual(changed["/group/field"]["value"], 1e-3 * span, delta=1e-9)
        self.assertEqual(changed["/constant"]["kind"], "lossless")
        valid = gaps[gaps != 30.125].astype("f8")
        self.assertAlmostEqual(changed["/gaps"]["value"], 1e-3 * (valid.max() - valid.min()), delta=1e-9)
        with h5py.File(self.path("in.h5"), "r") as a, h5py.File(self.path("out.h5"), "r") as b:
            self.assert_within(b["group/field"][...], data, 1e-3 * span)
            self.assertEqual(b["group/field"].chunks, (5, 30, 40))
            self.assert_within(b["plain"][...], a["plain"][...], 1e3 * 1e-3 * span * (1 + 1e-6))
            back = b["gaps"][...]
            self.assertTrue((back[gaps == 30.125] == np.float32(30.125)).all())
            self.assert_within(back, gaps, changed["/gaps"]["value"])
            for name in ("counts", "small", "names", "x", "constant"):
                self.assertEqual(b[name][...].tobytes(), a[name][...].tobytes(), name)
            self.assertNotIn(str(FILTER), b["counts"]._filters)
            self.assertEqual(b["group"].attrs["title"], "a group")
            self.assertEqual(b["group/field"].attrs["units"], "K")
            self.assertEqual(b.get("soft", getlink=True).path, "/group/field")
            self.assertEqual(b["hard"], b["plain"])
            self.assertEqual(b["wave"].dims[0][0], b["x"])
            self.assertEqual(list(b), list(a))
            self.assertLess(b["plain"].id.get_storage_size(), a["plain"].id.get_storage_size() / 4)

    def test_PackCheckUnpack_WithoutAnyPath(self):
        self.fields_file()
        nowhere = {"HDF5_PLUGIN_PATH": ""}
        result = self.quern("h5", "pack", "--lossless", self.path("in.h5"), "-o", self.path("p.h5"), env=nowhere)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.quern("h5", "check", self.path("p.h5"), env=nowhere).returncode, 0)
        result = self.quern("h5", "unpack", self.path("p.h5"), "-o", self.path("u.h5"), env=nowhere)
        self.assertEqual(result.returncode, 0, result.stderr)
        with h5py.File(self.path("in.h5"), "r") as a, h5py.File(self.path("u.h5"), "r") as u:
            for name in ("group/field", "plain", "gaps", "wave"):
                self.assertEqual(u[name][...].tobytes(), a[name][...].tobytes(), name)
                self.assertEqual(u[name]._filters, {}, name)

    def test_OtherVerbs_ReadPackedFilesWithoutAnyPath(self):
        data, _ = self.fields_file()
        nowhere = {"HDF5_PLUGIN_PATH": ""}
        self.ok(QUERN, "h5", "pack", "--abs", "0.01", self.path("in.h5"), "-o", self.path("p.h5"))
        name = ["--dataset", "/group/field"]
        told = self.quern("compare", self.path("in.h5"), self.path("p.h5"), *name, "--json", env=nowhere)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertLessEqual(json.loads(told.stdout)["max_error"], 0.01)
        self.ok(QUERN, "compress", "--lossless", *name, self.path("p.h5"), "-o", self.path("p.qn"), env=nowhere)
        self.ok(QUERN, "decompress", self.path("p.qn"), "-o", self.path("p.npy"), env=nowhere)
        self.assert_within(np.load(self.path("p.npy")), data, 0.01)

    def test_NamedDatasets_OnlyThose(self):
        self.fields_file()
        told = self.json("h5", "pack", "--abs", "2", "--dataset", "/counts", self.path("in.h5"), "-o",
                         self.path("out.h5"))
        self.assertEqual([c["dataset"] for c in told["changed"]], ["/counts"])
        self.assert_within(self.read("out.h5", "counts"), np.arange(5000), 2)

    def test_NothingToPack_OldOutputs_AndOtherFiles_AreRefused(self):
        self.write("s.h5", np.arange(10.0))
        self.refused(1, "no dataset to pack", "h5", "pack", "--abs", "1", self.path("s.h5"), "-o", self.path("o.h5"))
        self.refused(1, "no dataset uses quern", "h5", "unpack", self.path("s.h5"), "-o", self.path("o.h5"))
        with open(self.path("t.h5"), "w") as f:
            f.write("text")
        self.refused(2, "is no HDF5", "h5", "check", self.path("t.h5"))
        self.refused(2, "s.nonesuch", "h5", "check", self.path("s.nonesuch"))
        self.fields_file()
        self.ok(QUERN, "h5", "pack", "--abs", "1", self.path("in.h5"), "-o", self.path("o.h5"))
        self.assertNotEqual(self.quern("h5", "pack", "--abs", "1", self.path("in.h5"), "-o", self.path("o.h5"))
                            .returncode, 0)
        self.ok(QUERN, "h5", "pack", "-f", "--abs", "1", self.path("in.h5"), "-o", self.path("o.h5"))
        left = [n for n in os.listdir(self.folder) if n not in ("s.h5", "t.h5", "in.h5", "o.h5")]
        self.assertEqual(left, [], "no temporary file stays")

    def test_DamagedChunk_CheckSaysWhichOfWhichDataset(self):
        self.fields_file()
        self.ok(QUERN, "h5", "pack", "--abs", "0.1", self.path("in.h5"), "-o", self.path("p.h5"))
        with h5py.File(self.path("p.h5"), "r+") as f:
            d = f["group/field"].id
            mask, data = d.read_direct_chunk((10, 0, 0))
            data = bytearray(data)
            data[len(data) // 2] ^= 4
            d.write_direct_chunk((10, 0, 0), bytes(data), mask)
        result = self.quern("h5", "check", "--json", self.path("p.h5"))
        self.assertEqual(result.returncode, 3)
        told = json.loads(result.stdout)
        self.assertEqual(told["damaged"], 1)
        self.assertEqual((told["damage"][0]["dataset"], told["damage"][0]["chunk"]), ("/group/field", "(10, 0, 0)"))
        self.assertIn("damaged", told["damage"][0]["reason"])


    def test_ForgedType_CheckRefusesBeforeHdf5ReadsBeyondTheChunk(self):
        path = self.write("x.h5", field((64, 64)), chunks=(32, 32), compression=FILTER,
                          compression_opts=(1, 0, 1, 0x3FF00000, 0, 0))
        with open(path, "rb") as f:
            data = bytearray(f.read())
        at = data.find(bytes([0x11, 0x20, 0x1F, 0, 4, 0, 0, 0]))  # binary32, little-endian, of 4 bytes
        self.assertGreater(at, 0)
        data[at + 5] = 0x20                                       # now of 8196
        with open(path, "wb") as f:
            f.write(data)
        result = self.quern("h5", "check", path)
        self.assertIn(result.returncode, (2, 3))


class DoctorTest(CommandTest):
    def finding(self, path):
        result = self.quern("doctor", "--json", env={"HDF5_PLUGIN_PATH": path})
        told = json.loads(result.stdout)
        return told["hdf5_plugin"], told["healthy"]

    def test_Doctor_SaysWhetherAndWhyNot(self):
        plugin, healthy = self.finding(os.environ["HDF5_PLUGIN_PATH"])
        self.assertTrue(plugin["available"] and healthy)
        self.assertIn("loaded from " + os.environ["HDF5_PLUGIN_PATH"], plugin["text"])
        plugin, healthy = self.finding(self.folder)
        self.assertFalse(plugin["available"] or healthy)
        self.assertIn(self.folder + ": no libh5quern.so", plugin["text"])
        self.assertIn("type export HDF5_PLUGIN_PATH=", plugin["text"])
        with open(self.path("libh5quern.so"), "w") as f:
            f.write("no library")
        plugin, healthy = self.finding(self.folder)
        self.assertFalse(plugin["available"] or healthy)
        self.assertIn("does not load", plugin["text"])


if __name__ == "__main__":
    unittest.main()
