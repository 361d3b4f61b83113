"""pyquern.hdf5: the filter in every HDF5 of the process, direct chunks, netCDF4 variables, and what is refused."""
import itertools
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

from support import import_or_skip

h5py = import_or_skip("h5py")
import pyquern as quern  # noqa: E402
import pyquern.hdf5 as qh  # noqa: E402

try:
    import netCDF4
except ImportError:
    netCDF4 = None

FIELD = np.cumsum(np.random.default_rng(6).normal(size=(30, 50, 70)), axis=0).astype("f4")
DIRECT = tuple(h5py.version.version_tuple[:2]) >= (3, 8)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "file.h5")

    def reopened(self, name="x"):
        with h5py.File(self.path, "r") as file:
            return file[name][...]


class Filter(InFolder):
    def test_an_effort_is_a_part_of_the_settings(self):
        found, data = [], FIELD[:16]
        for effort, known in ((None, 6), (1, 1), (6, 6), (9, 9)):
            with h5py.File(self.path, "w") as file:
                kept = file.create_dataset("x", data=data, compression=qh.filter(abs=1e-2, codec="stencil", effort=effort))
                self.assertEqual((qh.settings_of(kept)["effort"], qh.settings_of(kept)["goal"]), (known, "ratio"))
                found.append(kept.id.get_storage_size())
            self.assertLessEqual(np.abs(self.reopened() - data).max(), 1e-2)
        self.assertEqual(found[0], found[2])
        self.assertNotEqual(found[0], found[1])
        with h5py.File(self.path, "w") as file:
            kept = qh.create_dataset(file, "x", data, abs=1e-2, goal="speed")
            self.assertEqual(qh.settings_of(kept)["effort"], 1)
        for wrong in ({"effort": 0}, {"effort": 2, "goal": "speed"}):
            with self.assertRaisesRegex(ValueError, "effort"):
                qh.filter(abs=1, **wrong)

    def test_values_keep_their_bound(self):
        for arguments in ({"abs": 1e-2}, {"pwrel": 1e-3}, {"lossless": True}, {"abs": 1e-2, "codec": "lorenzo", "goal": "speed"}):
            for dtype in ("f4", ">f4", "f8", "i2", "u1", "f2"):
                if dtype in ("i2", "u1") and "pwrel" in arguments:
                    continue
                data = (FIELD[:10, :20, :40] * 3).astype(dtype)
                with h5py.File(self.path, "w") as file:
                    kept = file.create_dataset("x", data=data, chunks=(7, 20, 33), compression=qh.filter(**arguments))
                    self.assertEqual(qh.settings_of(kept)["bound"].kind, next(iter(arguments)))
                    self.assertEqual(qh.settings_of(kept)["big_endian"], dtype == ">f4")
                    other = file.create_dataset("y", data=data, chunks=True, **qh.filter(**arguments))
                    self.assertIsNotNone(qh.settings_of(other))
                back = self.reopened()
                self.assertEqual(back.dtype, np.dtype(dtype))
                error = np.abs(back.astype("f8") - data.astype("f8"))
                bound = arguments.get("abs", 0) if "pwrel" not in arguments else 1e-3 * np.abs(data.astype("f8"))
                self.assertTrue(np.all(error <= bound), (arguments, dtype))

    def test_fill_values_and_specials_come_back_bit_for_bit(self):
        data = FIELD.copy()
        data[::3, 0], data[1::3, 1], data[:, 2] = np.nan, -777, 12345.5
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=data, chunks=(10, 50, 70), fillvalue=-777, compression=qh.filter(
                abs=0.5, fill=np.float32(12345.5)))
        back = self.reopened()
        for place in ((slice(None, None, 3), 0), (slice(1, None, 3), 1), (slice(None), 2)):
            self.assertEqual(back[place].tobytes(), data[place].tobytes())
        with self.assertRaisesRegex(TypeError, "numpy.float32"):
            qh.filter(abs=1, fill=-777.0)
        with self.assertRaises(ValueError):
            qh.filter(abs=1, fill=np.arange(9, dtype="f4"))

    def test_what_a_filter_cannot_promise_is_a_type_error(self):
        for arguments in ({"rel": 1e-3}, {"psnr": 60}, {"ratio": 10}):
            with self.assertRaisesRegex(TypeError, r"bound_of\(array, rel=...\)"):
                qh.filter(**arguments)
        with self.assertRaisesRegex(TypeError, "exactly one of abs=, pwrel=, lossless=True"):
            qh.filter()
        with self.assertRaisesRegex(quern.Unsupported, "no codec 'zip'"):
            qh.filter(abs=1, codec="zip")
        with self.assertRaises(ValueError):
            qh.filter(abs=1, goal="best")

    def test_datasets_that_cannot_be_served_are_refused_with_the_reason(self):
        for data, words in ((np.ones(100, bool), "enumerations"), (np.zeros(100, "S4"), "strings"), (np.zeros(100, [("a", "f4")]), "compounds")):
            with h5py.File(self.path, "w") as file:
                with self.assertRaisesRegex(ValueError, words):
                    file.create_dataset("x", data=data, chunks=(10,), compression=qh.filter(abs=1))
                self.assertNotIn("x", file)
                file.create_dataset("y", data=data, chunks=(10,), compression=qh.filter(abs=1, optional=True))
                self.assertEqual(file["y"][...].tobytes(), data.tobytes())

    def test_rewriting_changes_no_value(self):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=FIELD, chunks=(7, 20, 30), maxshape=(None, 50, 70), compression=qh.filter(abs=1e-2))
        once = self.reopened()
        random = np.random.default_rng(7)
        expected = once.copy()
        for _ in range(4):
            with h5py.File(self.path, "r+") as file:
                first = int(random.integers(0, 25))
                new = random.normal(size=(3, 50, 70)).astype("f4")
                file["x"][first:first + 3] = new
                expected[first:first + 3] = new
                file["x"].resize((file["x"].shape[0] + 1, 50, 70))
                file["x"][-1] = 5
            expected = np.concatenate([expected, np.full((1, 50, 70), 5, "f4")])
            back = self.reopened()
            self.assertLessEqual(np.abs(back - expected).max(), 1e-2)
            untouched = np.ones(len(back), bool)
            untouched[first:first + 3] = untouched[-1] = False
            self.assertEqual(back[untouched].tobytes(), expected[untouched].tobytes())
            expected = back

    def test_damaged_chunks_are_errors(self):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=FIELD, chunks=(10, 50, 70), compression=qh.filter(abs=1e-2))
            info = file["x"].id.get_chunk_info(1)
        with open(self.path, "r+b") as file:
            file.seek(info.byte_offset + info.size // 2)
            file.write(b"\xff\x00\xff\x00damage")
        with h5py.File(self.path, "r") as file:
            self.assertEqual(file["x"][:10].shape, (10, 50, 70))
            with self.assertRaises(OSError):
                file["x"][10:20]
            if DIRECT:
                with self.assertRaises(quern.CorruptStream):
                    qh.read(file["x"], threads=2)

    def test_programs_without_the_filter_write_nothing_raw(self):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=FIELD, chunks=(10, 50, 70), compression=qh.filter(abs=1e-2))
            file.create_dataset("y", data=FIELD, chunks=(10, 50, 70), compression=qh.filter(abs=1e-2, optional=True))
            self.assertEqual([file[name].id.get_create_plist().get_filter(0)[1] for name in "xy"], [0, 1])
        code = ("import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as file:\n"
                "    file['x'][:10] = 1\n    file['x'].flush()\n")
        environment = {**os.environ, "HDF5_PLUGIN_PATH": os.path.dirname(self.path)}
        done = subprocess.run([sys.executable, "-c", code, self.path], env=environment, text=True, capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertLessEqual(np.abs(self.reopened() - FIELD).max(), 1e-2)

    def test_filters_are_values(self):
        self.assertEqual(qh.filter(abs=1), qh.filter(abs=1.0))
        self.assertNotEqual(qh.filter(abs=1), qh.filter(abs=2))
        self.assertEqual(len({qh.filter(abs=1), qh.filter(abs=1)}), 1)
        self.assertEqual(dict(qh.filter(lossless=True))["compression"], 443)


class Direct(InFolder):
    def test_bytes_are_those_of_the_filter(self):
        for dtype, fill in (("f4", None), (">f8", -5), ("i2", 7)):
            data = (FIELD[:26, :42, 30:] * 2).astype(dtype)
            with h5py.File(self.path, "w") as file:
                for name in ("filter", "direct"):
                    file.create_dataset(name, shape=data.shape, dtype=dtype, chunks=(12, 20, 30), fillvalue=fill,
                                        compression=qh.filter(abs=1))
                file["filter"][...] = data
                seen = []
                qh.write(file["direct"], data, threads=3, progress=lambda done, total: seen.append((done, total)))
                if DIRECT:
                    self.assertEqual(seen[-1], (data.size, data.size))
                for number in range(file["filter"].id.get_num_chunks()):
                    one, two = (file[name].id.get_chunk_info(number) for name in ("filter", "direct"))
                    self.assertEqual(file["filter"].id.read_direct_chunk(one.chunk_offset),
                                     file["direct"].id.read_direct_chunk(two.chunk_offset))
                whole = file["filter"][...]
                for selection in ((), ..., slice(3, 20), (slice(5, 25), slice(19, 41), slice(0, 1)), (..., slice(30, 40)), 3,
                                  (slice(0, 0),), slice(0, 30, 2)):
                    found = qh.read(file["direct"], selection, threads=2)
                    self.assertTrue(np.array_equal(found, whole[selection]), selection)
                out = np.empty(data.shape, data.dtype.newbyteorder("="))
                self.assertIs(qh.read(file["direct"], out=out), out)
                self.assertTrue(np.array_equal(out, whole))

    def test_chunks_that_were_never_written_are_the_fill_value(self):
        with h5py.File(self.path, "w") as file:
            dataset = file.create_dataset("x", shape=(40, 40), dtype="f4", chunks=(10, 10), fillvalue=3, compression=qh.filter(abs=1e-2))
            dataset[5:12, 5:12] = 1
            self.assertTrue(np.array_equal(qh.read(dataset, threads=2), dataset[...]))

    def test_what_does_not_fit(self):
        with h5py.File(self.path, "w") as file:
            plain = file.create_dataset("plain", data=FIELD)
            own = file.create_dataset("own", shape=FIELD.shape, dtype="f4", chunks=True, compression=qh.filter(abs=1))
            with self.assertRaisesRegex(ValueError, r"compression=pyquern.hdf5.filter"):
                qh.write(plain, FIELD)
            with self.assertRaisesRegex(ValueError, "shape"):
                qh.write(own, FIELD[1:])
            with self.assertRaisesRegex(TypeError, r"filled\(value\)"):
                qh.write(own, np.ma.masked_array(FIELD, FIELD > 3))
            self.assertIsNone(qh.settings_of(plain))
            self.assertTrue(np.array_equal(qh.read(plain, slice(3, 5)), FIELD[3:5]))
            qh.write(own, FIELD)
            with self.assertRaises(ValueError):
                qh.read(own, out=np.empty((1, 2), "f4"))
            if DIRECT:
                with self.assertRaises(quern.Cancelled):
                    qh.write(own, FIELD, progress=lambda done, total: False)

    def test_a_file_that_is_open_for_reading(self):
        with h5py.File(self.path, "w") as file:
            qh.create_dataset(file, "x", FIELD, abs=1)
        with h5py.File(self.path, "r") as file, self.assertRaisesRegex(OSError, r"mode 'r\+'"):
            qh.write(file["x"], FIELD)

    def test_with_a_checksum_besides(self):
        with h5py.File(self.path, "w") as file:
            dataset = file.create_dataset("x", shape=FIELD.shape, dtype="f4", chunks=(10, 50, 70), fletcher32=True,
                                          compression=qh.filter(abs=1e-2))
            try:
                qh.write(dataset, FIELD, threads=2)
            except OSError:
                self.skipTest("h5py puts the checksum before the compressor")
            self.assertLessEqual(np.abs(qh.read(dataset) - FIELD).max(), 1e-2)

    def test_create_dataset_does_all_of_it(self):
        with h5py.File(self.path, "w") as file:
            dataset = qh.create_dataset(file, "x", FIELD, rel=1e-3, threads=2)
            expected = qh.bound_of(FIELD, rel=1e-3)
            self.assertLessEqual(np.abs(dataset[...].astype("f8") - FIELD).max(), expected)
            attributes = dict(dataset.attrs)
            self.assertEqual(attributes["lossy_compression"], "quern")
            self.assertEqual(attributes["lossy_compression_bound_kind"], "absolute")
            self.assertEqual(attributes["lossy_compression_bound"], expected)
            self.assertEqual(attributes["lossy_compression_requested"], "rel=0.001")
            again = qh.create_dataset(file, "same", dataset, abs=expected)
            self.assertEqual(again[...].tobytes(), dataset[...].tobytes())
            self.assertEqual(again.attrs["lossy_compression_bound"], expected)
            self.assertNotIn("lossy_compression_bound_accumulated", again.attrs)
            wider = qh.create_dataset(file, "wider", again, abs=0.5)
            self.assertAlmostEqual(wider.attrs["lossy_compression_bound_accumulated"], expected + 0.5)
            self.assertLessEqual(np.abs(wider[...] - FIELD).max(), wider.attrs["lossy_compression_bound_accumulated"])
            exact = qh.create_dataset(file, "exact", FIELD, lossless=True, attrs=True)
            self.assertEqual(exact[...].tobytes(), FIELD.tobytes())
            self.assertNotIn("lossy_compression", exact.attrs)
            filled = np.where(FIELD > 3, np.float32(-1), FIELD)
            kept = qh.create_dataset(file, "filled", filled, abs=0.25, fill=-1)
            self.assertTrue(np.all(kept[...][filled == -1] == -1))
            with self.assertRaises(TypeError):
                qh.create_dataset(file, "none", FIELD)
            with self.assertRaises(ValueError):
                qh.create_dataset(file, "bad", np.ones(10, bool), abs=1)
            for wrong, words in ((np.ma.masked_array([1.0, 2.0], [0, 1]), r"filled\(value\)"), (np.array(["2026"], "M8[D]"), "view"),
                                 (np.array(["a"]), "texts"), (np.array([{}], object), "astype")):
                with self.assertRaisesRegex(TypeError, words):
                    qh.create_dataset(file, "bad", wrong, abs=1)
            for shape in ((0,), (3, 0, 4)):
                self.assertEqual(qh.create_dataset(file, f"none{len(shape)}", np.zeros(shape, "f4"), rel=1e-3)[...].shape, shape)
                grown = qh.create_dataset(file, f"grown{len(shape)}", np.zeros(shape, "f4"), abs=1, maxshape=(None,) * len(shape))
                self.assertIsNotNone(qh.settings_of(grown))
            self.assertNotIn("bad", file)

    @unittest.skipUnless(os.environ.get("QUERN_COMMAND"), "no quern command here")
    def test_chunks_are_those_of_h5_pack(self):
        packed = self.path + ".packed"
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=FIELD, chunks=(10, 50, 70))
        done = subprocess.run([os.environ["QUERN_COMMAND"], "h5", "pack", "--rewritable", "--abs", "0.01", self.path, "-o", packed], text=True,
                              capture_output=True)
        if "does not read HDF5" in done.stderr or "was built without" in done.stderr:
            self.skipTest("this build reads no HDF5")
        self.assertEqual(done.returncode, 0, done.stderr)
        with h5py.File(self.path, "w") as file, h5py.File(packed, "r") as other:
            made = qh.create_dataset(file, "x", FIELD, abs=0.01, chunks=(10, 50, 70))
            file.flush()
            for corner in (0, 10, 20):
                self.assertEqual(made.id.read_direct_chunk((corner, 0, 0)), other["x"].id.read_direct_chunk((corner, 0, 0)))

    def test_bound_of(self):
        values = np.array([np.nan, np.inf, 1.0, 5.0, -999.0])
        self.assertAlmostEqual(qh.bound_of(values, rel=0.1, fill=-999), 0.4)
        self.assertLessEqual(qh.bound_of(values, rel=0.1, fill=-999), 0.4)
        self.assertEqual(qh.bound_of(np.full(5, 3.0), rel=0.1), 0.0)
        self.assertEqual(qh.bound_of(np.full(5, np.nan), rel=0.1), 0.0)
        self.assertAlmostEqual(qh.bound_of(np.array([-2**62, 2**62]), rel=1e-3), 2**63 * 1e-3, delta=1e3)
        with h5py.File(self.path, "w") as file:
            dataset = file.create_dataset("x", data=FIELD, chunks=(4, 50, 70))
            dataset[0, 0, 0] = 1e20
            dataset.attrs["_FillValue"] = np.float32(1e20)
            rest = FIELD.astype("f8").reshape(-1)[1:]
            self.assertAlmostEqual(qh.bound_of(dataset, rel=1e-2), 1e-2 * (rest.max() - rest.min()))
        for rel in (-1, float("nan"), "1", True):
            with self.assertRaises(ValueError):
                qh.bound_of(FIELD, rel=rel)
        try:
            import dask.array
        except ImportError:
            return
        self.assertAlmostEqual(qh.bound_of(dask.array.from_array(FIELD, chunks=(10, 20, 30)), rel=1e-2), qh.bound_of(FIELD, rel=1e-2))

    def test_threads_of_python_share_a_filter(self):
        settings = qh.filter(abs=1e-2)
        with h5py.File(self.path, "w") as file:
            def work(name):
                file.create_dataset(name, data=FIELD, chunks=(10, 50, 70), compression=settings)

            threads = [threading.Thread(target=work, args=(f"t{k}",)) for k in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(len({file[name][...].tobytes() for name in file}), 1)


class Libraries(InFolder):
    def test_every_library_has_the_filter(self):
        self.assertEqual(set(qh.register()), set(qh.register()))
        state = quern.build_info()["hdf5"]
        self.assertTrue(state and all(state.values()), state)
        self.assertTrue(os.environ["HDF5_PLUGIN_PATH"].startswith(qh.plugin_path()))

    def test_each_reads_what_the_others_wrote(self):
        if netCDF4 is None:
            self.skipTest("no netCDF4 here")
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=FIELD, chunks=(10, 50, 70), compression=qh.filter(abs=1e-2))
            expected = file["x"][...]
        with netCDF4.Dataset(self.path) as file:
            self.assertTrue(np.array_equal(file["x"][...].filled(), expected))

    def test_orders_of_import(self):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=FIELD, chunks=(10, 50, 70), compression=qh.filter(abs=1e-2))
        read = {"h5py": "h5py.File(path, 'r')['x'][...].sum()", "netCDF4": "netCDF4.Dataset(path)['x'][...].sum()"}
        clients = [name for name, module in (("h5py", h5py), ("netCDF4", netCDF4)) if module is not None]
        environment = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}
        running = []
        for order in itertools.permutations([*clients, "pyquern.hdf5"]):
            code = f"import sys\npath = sys.argv[1]\n" + "".join(f"import {name}\n" for name in order) + "".join(
                f"{read[name]}\n" for name in clients)
            running.append((order, subprocess.Popen([sys.executable, "-c", code, self.path], env=environment, text=True,
                                                    stderr=subprocess.PIPE)))
        for order, process in running:
            with process:
                problem = process.communicate()[1]
                self.assertEqual(process.returncode, 0, f"{order}: {problem}")

    def test_children(self):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=FIELD, chunks=(10, 50, 70), compression=qh.filter(abs=1e-2))
        done = subprocess.run([sys.executable, "-c", "import h5py, sys; print(h5py.File(sys.argv[1], 'r')['x'][...].shape)", self.path],
                              text=True, capture_output=True)
        self.assertEqual(done.stdout, "(30, 50, 70)\n", done.stderr)
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                self.assertLessEqual(pool.apply(_error, (self.path,)), 1e-2)

    def test_programs_by_the_folder_that_the_package_names(self):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=FIELD, chunks=(10, 50, 70), compression=qh.filter(abs=1e-2))
        expected = self.reopened()[29, 49, 66:].tolist()
        folder = subprocess.run([sys.executable, "-m", "pyquern", "plugin-path"], text=True, capture_output=True, check=True).stdout.strip()
        self.assertEqual(folder, qh.plugin_path())
        programs = [words for words in (["h5dump", "-d", "/x", "-s", "29,49,66", "-c", "1,1,4"], ["ncdump", "-p", "9,17", "-v", "x"])
                    if shutil.which(words[0])]
        if not programs:
            self.skipTest("neither h5dump nor ncdump here")
        for words in programs:
            done = subprocess.run([*words, self.path], env={**os.environ, "HDF5_PLUGIN_PATH": folder}, text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            numbers = [float(word) for word in re.findall(r"-?\d+\.\d+(?:e[-+]?\d+)?", done.stdout)][-4:]
            for number, value in zip(numbers, expected):
                self.assertAlmostEqual(number, value, delta=2e-5 * abs(value) + 1e-6, msg=words[0])

    def test_without_h5py(self):
        code = ("import sys\nsys.modules['h5py'] = None\nimport pyquern.hdf5 as qh\n"
                "try:\n    qh.filter(abs=1)\nexcept ImportError as problem:\n    print(problem)\n")
        done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
        self.assertIn("pip install h5py", done.stdout, done.stderr)

    def test_nothing_is_leaked_by_opening_and_closing(self):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=FIELD[:4, :10, :10], chunks=(4, 10, 10), compression=qh.filter(abs=1e-2))
            with self.assertRaises(ValueError):
                file.create_dataset("y", data=np.ones(10, bool), compression=qh.filter(abs=1))

        def rounds(times):
            for _ in range(times):
                with h5py.File(self.path, "r+") as file:
                    file["x"][0] = file["x"][1]

        rounds(50)
        before = _resident()
        rounds(250)
        self.assertLess(_resident() - before, 4 << 20)


@unittest.skipIf(netCDF4 is None, "no netCDF4 here")
class NetCDF(InFolder):
    def variable(self, file, **arguments):
        for name, size in zip("zyx", FIELD.shape):
            file.createDimension(name, size)
        return file.createVariable("t", "f4", ("z", "y", "x"), **arguments)

    def test_define(self):
        data = FIELD.copy()
        data[0, :3] = -8888
        with netCDF4.Dataset(self.path, "w") as file:
            variable = self.variable(file, fill_value=-8888)
            qh.define(variable, abs=1e-2)
            self.assertEqual(qh.settings_of(variable)["bound"], quern.Bound("abs", 1e-2))
            variable[:] = data
        with netCDF4.Dataset(self.path) as file:
            file["t"].set_auto_mask(False)
            back = file["t"][:]
            self.assertIsNotNone(qh.settings_of(file["t"]))
        self.assertEqual(back[0, :3].tobytes(), data[0, :3].tobytes())
        self.assertLessEqual(np.abs(back - data).max(), 1e-2)
        with h5py.File(self.path, "r") as file:
            self.assertTrue(np.array_equal(file["t"][...], back))
            self.assertLess(file["t"].id.get_storage_size(), FIELD.nbytes / 2)

    def test_after_data_and_without_dimensions(self):
        with netCDF4.Dataset(self.path, "w") as file:
            variable = self.variable(file, chunksizes=(10, 50, 70))
            variable[:] = FIELD
            with self.assertRaisesRegex(quern.Unsupported, "before|between createVariable"):
                qh.define(variable, abs=1e-2)
            with self.assertRaises(ValueError):
                qh.define(file.createVariable("s", "f4"), abs=1e-2)
            with self.assertRaisesRegex(TypeError, "bound_of"):
                qh.define(variable, rel=1e-2)
            self.assertIsNone(qh.settings_of(variable))


def _error(path):
    with h5py.File(path, "r") as file:
        return float(np.abs(file["x"][...] - FIELD).max())


def _resident():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * 4096


if __name__ == "__main__":
    sys.exit(unittest.main())
