# What the scripts of this folder share: the plugin's path, the filter's words, fields, files, tools. Bounds are checked
# in binary64 with numpy. The first argument of each script is the folder of the plugin.
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

if len(sys.argv) < 2:
    sys.exit("usage: %s PLUGIN_FOLDER ..." % sys.argv[0])
os.environ["HDF5_PLUGIN_PATH"] = os.path.abspath(sys.argv.pop(1))
os.environ.pop("QUERN_HDF5_THREADS", None)
try:
    import h5py
    import numpy as np
except ImportError as error:
    print("SKIP: the tests of the HDF5 plugin need numpy and h5py:", error)
    sys.exit(77)

FILTER = 443
LOSSLESS, ABS, PWREL = 0, 1, 3
AUTO, LORENZO = 0, 1


def words(kind, value=0.0, codec=AUTO, options=0):
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return (1, codec, kind, bits >> 32, bits & 0xFFFFFFFF, options)


def repack_filter(kind, value=0.0, codec=AUTO, flag=0):
    w = words(kind, value, codec)
    return "UD=%d,%d,%d,%s" % (FILTER, flag, len(w), ",".join(map(str, w)))


def field(shape, dtype="f4"):
    """A smooth field, the same in every run."""
    axes = np.meshgrid(*[np.linspace(0, 3 + i, n) for i, n in enumerate(shape)], indexing="ij")
    return (100 * np.sin(sum(axes)) * np.cos(axes[0] * 1.7)).astype(dtype)


def needs(tool):
    return unittest.skipUnless(shutil.which(tool), "SKIP: no %s here" % tool)


class PluginTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="quern-hdf5-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *argv, env=None):
        result = subprocess.run([str(a) for a in argv], capture_output=True, timeout=120,
                                env={**os.environ, **(env or {})})
        self.assertGreaterEqual(result.returncode, 0, "%s ended by a signal: %s" % (argv[0], result.stderr))
        return result

    def ok(self, *argv, env=None):
        result = self.run_tool(*argv, env=env)
        self.assertEqual(result.returncode, 0, (argv, result.stderr.decode(errors="replace")))
        return result.stdout.decode(errors="replace")

    def assert_within(self, a, b, bound):
        error = np.max(np.abs(np.asarray(a, "f8") - np.asarray(b, "f8")), initial=0)
        self.assertLessEqual(error, bound)

    def write(self, name, data, dataset="x", **options):
        with h5py.File(self.path(name), "w") as f:
            f.create_dataset(dataset, data=data, **options)
        return self.path(name)

    def read(self, name, dataset="x"):
        with h5py.File(self.path(name), "r") as f:
            return f[dataset][...]

    def stored(self, name, dataset="x"):
        """Chunk shape and the bytes of every chunk."""
        with h5py.File(self.path(name), "r") as f:
            d = f[dataset]
            return d.chunks, [(info.chunk_offset, d.id.read_direct_chunk(info.chunk_offset))
                              for info in (d.id.get_chunk_info(i) for i in range(d.id.get_num_chunks()))]

    def settings(self, name, dataset="x"):
        """The filter's words as h5dump prints them; h5py reads no more than 16."""
        text = self.ok("h5dump", "-pH", "-d", "/" + dataset, self.path(name))
        found = re.search(r"FILTER_ID %d\s+COMMENT quern\s+PARAMS \{ ([-\d ]+) \}" % FILTER, text)
        self.assertIsNotNone(found, text)
        return [int(w) & 0xFFFFFFFF for w in found.group(1).split()]
