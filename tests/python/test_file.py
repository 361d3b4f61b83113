"""pyquern.save() and open(): whole files or none, parts of them alone, other processes, files that are damaged or go away."""
import io
import os
import pickle
import sys
import tempfile
import threading
import unittest

import numpy as np
import pyquern as quern

FIELD = np.cumsum(np.random.default_rng(5).normal(size=(60, 128, 128)), axis=0).astype("f4")


class Counting(io.BytesIO):
    """A file of somebody's, which counts what is read of it."""

    got = 0

    def read(self, size=-1):
        data = super().read(size)
        self.got += len(data)
        return data


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "field.qn")

    def test_a_file_is_the_stream_and_knows_itself(self):
        report = quern.save(self.path, FIELD, abs=1e-2, codec="lorenzo", metadata=b"note")
        with open(self.path, "rb") as file:
            stream = file.read()
        self.assertEqual(stream, quern.compress(FIELD, abs=1e-2, codec="lorenzo", metadata=b"note"))
        self.assertEqual((report.output_bytes, report.input_bytes, report.codec), (len(stream), FIELD.nbytes, "lorenzo"))
        self.assertEqual(os.listdir(self.folder), ["field.qn"])
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o666 & ~_umask())
        self.assertEqual(quern.info(self.path), quern.info(stream))
        file = quern.open(self.path)
        self.assertEqual((file.shape, file.dtype, file.ndim, file.size, file.nbytes, len(file)),
                         (FIELD.shape, FIELD.dtype, 3, FIELD.size, FIELD.nbytes, 60))
        self.assertEqual(file.info.metadata, b"note")

    def test_indexing_is_that_of_numpy(self):
        quern.save(self.path, FIELD, abs=1e-2)
        file, whole = quern.open(self.path), quern.decompress(quern.compress(FIELD, abs=1e-2))
        for key in (..., 3, -1, slice(10, 20), (slice(10, 20), slice(None), 5), (..., 5), (slice(None, None, -7), 3, slice(100, 3, -2)),
                    (None, 3, None, ..., 4), (np.int64(3), slice(5, 5)), (slice(50, 1000),)):
            with self.subTest(key=key):
                self.assertTrue(np.array_equal(file[key], whole[key]))
                self.assertEqual(file[key].shape, whole[key].shape)
        self.assertTrue(np.array_equal(np.asarray(file), whole))
        self.assertEqual(np.asarray(file, dtype="f8").dtype, np.float64)
        for key, kind in ((60, IndexError), ((0, 0, 0, 0), IndexError), ((..., ...), IndexError), (1.5, TypeError), ([1, 2], TypeError),
                          (np.ones(60, bool), TypeError)):
            with self.assertRaises(kind):
                file[key]

    def test_only_what_is_asked_for_is_read(self):
        source = Counting(quern.compress(np.tile(FIELD, (5, 1, 1)), abs=1e-4, codec="lorenzo"))
        size = len(source.getvalue())
        file = quern.open(source)
        self.assertLess(source.got, 1 << 17)
        source.got = 0
        self.assertTrue(np.array_equal(file[30, 5:9], quern.decompress(source.getvalue())[30, 5:9]))
        self.assertLess(source.got, size / 4)
        with self.assertRaises(TypeError):
            pickle.dumps(file)

    def test_levels(self):
        quern.save(self.path, FIELD, abs=1e-2, codec="stencil", settings={"layout": "levels"})
        file = quern.open(self.path)
        with open(self.path, "rb") as stream:
            expected = quern.decompress(stream.read(), level=1)
        self.assertTrue(np.array_equal(file.level(1), expected))
        with self.assertRaises(quern.Unsupported):
            file.level(50)

    def test_other_threads_and_processes(self):
        quern.save(self.path, FIELD, abs=1e-2, codec="lorenzo")
        file = quern.open(self.path)
        whole = np.asarray(file)
        self.assertTrue(np.array_equal(pickle.loads(pickle.dumps(file))[3:5], whole[3:5]))
        found = []
        threads = [threading.Thread(target=lambda k=k: found.append(np.array_equal(file[k::7], whole[k::7]))) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [True] * 6)

    def test_dask_reads_blocks(self):
        try:
            import dask.array
        except ImportError:
            self.skipTest("no dask here")
        quern.save(self.path, FIELD, abs=1e-2, codec="lorenzo")
        file = quern.open(self.path)
        lazy = dask.array.from_array(file, chunks=(16, 128, 128))
        self.assertAlmostEqual(float(lazy[3:40].mean().compute()), float(np.asarray(file)[3:40].mean()), places=4)
        self.assertTrue(np.array_equal(dask.array.from_array(file, chunks=file.chunks).compute(scheduler="threads"), np.asarray(file)))

    def test_a_failed_save_leaves_what_was_there(self):
        quern.save(self.path, FIELD, abs=1e-2, codec="lorenzo")
        with open(self.path, "rb") as file:
            before = file.read()
        for arguments, kind in (({"abs": -1}, ValueError), ({}, TypeError), ({"abs": 1, "progress": lambda done, total: False}, quern.Cancelled)):
            with self.assertRaises(kind):
                quern.save(self.path, FIELD, codec="lorenzo", **arguments)
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(os.listdir(self.folder), ["field.qn"])
        nowhere = os.path.join(self.folder, "nowhere", "x.qn")
        for path, kind in ((nowhere, FileNotFoundError), (self.folder, IsADirectoryError)):
            with self.assertRaises(kind) as seen:
                quern.save(path, FIELD, abs=1)
            self.assertEqual(seen.exception.filename, path)
        self.assertEqual(os.listdir(self.folder), ["field.qn"])

    def test_damaged_shortened_and_closed_files(self):
        quern.save(self.path, FIELD, abs=1e-4, codec="lorenzo")
        file = quern.open(self.path)
        size = os.path.getsize(self.path)
        os.truncate(self.path, size // 2)
        with self.assertRaisesRegex(OSError, "changed while it was read"):
            file[-1]
        with self.assertRaises(quern.CorruptStream):
            quern.open(self.path)[-1]
        with open(self.path, "r+b") as raw:
            raw.seek(20)
            raw.write(b"damage")
        with self.assertRaises(quern.CorruptStream):
            quern.open(self.path)
        with self.assertRaises(FileNotFoundError):
            quern.open(os.path.join(self.folder, "nowhere.qn"))
        with self.assertRaises(ValueError):
            quern.open(self.path, "w")
        with self.assertRaises(TypeError):
            quern.open(3.5)
        with file:
            pass
        with self.assertRaisesRegex(ValueError, "closed"):
            file[0]

    def test_chunks_that_are_advised(self):
        for shape in ((1000, 721, 1440), (10, 10), (365, 100, 100), (5,), (), (1 << 30,), (3, 0, 7)):
            for access in ("all", "time-series", "maps"):
                chunks = quern.advise_chunks(shape, "f4", access)
                self.assertEqual(len(chunks), len(shape))
                stored = used = 1
                for extent, chunk in zip(shape, chunks):
                    self.assertTrue(1 <= chunk <= max(extent, 1))
                    stored, used = stored * -(-extent // chunk) * chunk, used * extent
                self.assertLessEqual(4 * int(np.prod(chunks, dtype="f8")), 16 << 20)
                if 4 * used > 1 << 20:
                    self.assertGreaterEqual(4 * int(np.prod(chunks)), 1 << 20)
                self.assertLessEqual(stored, 1.1 * used)
        with self.assertRaises(ValueError):
            quern.advise_chunks((5,), "f4", "rows")


def _umask():
    former = os.umask(0)
    os.umask(former)
    return former


if __name__ == "__main__":
    sys.exit(unittest.main())
