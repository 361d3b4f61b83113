"""From install to result: an array, a file, HDF5, and netCDF by xarray; each part where its package is installed.

    pip install pyquern h5py xarray h5netcdf
    python five_minutes.py"""
import os
import tempfile

import numpy as np
import pyquern as quern


def field():
    """Temperatures (time, latitude, longitude) in kelvin, with missing places."""
    random = np.random.default_rng(0)
    latitudes = np.linspace(-80, 80, 64)[None, :, None]
    values = 300 - 40 * np.sin(np.radians(latitudes)) ** 2 + np.cumsum(random.normal(size=(24, 64, 128)), axis=2) / 4
    values[:, 10:14, 20:30] = np.nan
    return values.astype("f4")


def arrays(t):
    stream = quern.compress(t, abs=0.01)
    back = quern.decompress(stream)
    assert np.nanmax(np.abs(back - t)) <= 0.01 and np.array_equal(np.isnan(back), np.isnan(t))
    print(f"array   {t.nbytes} -> {len(stream)} bytes, {t.nbytes / len(stream):.1f}x, verified: {quern.verify(t, stream).ok}")
    quern.save("t.qn", t, rel=1e-3)
    print(f"file    {quern.open('t.qn')[3:5, 20, :4].tolist()}")


def hdf5(t):
    import h5py
    import pyquern.hdf5 as qh

    with h5py.File("t.h5", "w") as file:
        file.create_dataset("t", data=t, chunks=(6, 64, 128), compression=qh.filter(abs=0.01))
        print(f"HDF5    {file['t'].id.get_storage_size()} bytes, {qh.settings_of(file['t'])['bound']}")


def netcdf(t):
    import xarray as xr
    import pyquern.xarray as qx

    ds = xr.Dataset({"t": (("time", "lat", "lon"), t, {"units": "K"})}, {"lat": np.linspace(-80, 80, 64)})
    qx.to_netcdf(ds, "t.nc", rel=1e-4, per={"t": {"abs": 0.01}})
    back = xr.load_dataset("t.nc", engine="h5netcdf")
    print(f"netCDF  {os.path.getsize('t.nc')} bytes, largest error {float(abs(back.t - ds.t).max()):.4f} K")


def main():
    t = field()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for part in (arrays, hdf5, netcdf):
            try:
                part(t)
            except ImportError as problem:
                print(f"{part.__name__}: left out, {problem}")
        os.chdir("/")


if __name__ == "__main__":
    main()
