"""VTK, which ParaView is made of, reads files with the filter through the HDF5 inside it, whose functions have other names."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from support import import_or_skip

h5py = import_or_skip("h5py")
vtk = import_or_skip("vtkmodules")
import pyquern.hdf5 as qh  # noqa: E402

FIELD = np.cumsum(np.random.default_rng(17).normal(size=(12, 20, 30)), axis=2).astype("f4")

#: In a process without pyquern: the folder of the plugin is all that VTK is told.
READ = """
import sys
import numpy as np
from vtkmodules.util.numpy_support import vtk_to_numpy
if sys.argv[1] == "vtkhdf":
    from vtkmodules.vtkIOHDF import vtkHDFReader as Reader
else:
    from vtkmodules.vtkIONetCDF import vtkNetCDFCFReader as Reader
reader = Reader()
reader.SetFileName(sys.argv[2])
reader.Update()
data = reader.GetOutput()
points = data.GetPointData() if data.GetPointData().GetArray("t") else data.GetCellData()
assert points.GetArray("t") is not None, "no array t"
np.save(sys.argv[3], vtk_to_numpy(points.GetArray("t")).reshape(-1))
"""


class Vtk(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, kind, name):
        done = subprocess.run([sys.executable, "-c", READ, kind, self.path(name), self.path("found.npy")], text=True, capture_output=True,
                              env={**os.environ, "HDF5_PLUGIN_PATH": qh.plugin_path()})
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(self.path("found.npy")).reshape(FIELD.shape)

    def test_vtkhdf(self):
        with h5py.File(self.path("t.vtkhdf"), "w") as file:
            root = file.create_group("VTKHDF")
            root.attrs["Version"] = (1, 0)
            root.attrs.create("Type", b"ImageData", dtype=h5py.string_dtype("ascii", len(b"ImageData")))
            z, y, x = FIELD.shape
            root.attrs["WholeExtent"] = np.array([0, x - 1, 0, y - 1, 0, z - 1], "i4")
            root.attrs["Origin"], root.attrs["Spacing"] = np.zeros(3), np.ones(3)
            root.attrs["Direction"] = np.eye(3).reshape(-1)
            root.create_dataset("PointData/t", data=FIELD, chunks=(5, 20, 30), compression=qh.filter(abs=1e-2))
        with h5py.File(self.path("t.vtkhdf")) as file:
            expected = file["VTKHDF/PointData/t"][...]
        self.assertTrue(np.array_equal(self.read("vtkhdf", "t.vtkhdf"), expected))
        self.assertLessEqual(np.abs(expected - FIELD).max(), 1e-2)

    def test_netcdf(self):
        try:
            import h5netcdf
        except ImportError:
            self.skipTest("no h5netcdf here")
        with h5netcdf.File(self.path("t.nc"), "w") as file:
            file.dimensions = dict(zip(("z", "y", "x"), FIELD.shape))
            for name, size in zip(("z", "y", "x"), FIELD.shape):
                file.create_variable(name, (name,), "f8", data=np.arange(size, dtype="f8"))
            made = file.create_variable("t", ("z", "y", "x"), "f4", chunks=(5, 20, 30), **qh.filter(abs=1e-2))
            made[...] = FIELD
        with h5py.File(self.path("t.nc")) as file:
            expected = file["t"][...]
        self.assertTrue(np.array_equal(self.read("netcdf", "t.nc"), expected))


if __name__ == "__main__":
    sys.exit(unittest.main())
