"""The HDF5 libraries of this process: h5py's, netCDF4's and the system's may be there side by side."""
from __future__ import annotations

import ctypes
import os
import re

#: 443 is from the range HDF5 leaves to tests, until a number is assigned; both are read then.
FILTER_ID = 443
_NAME = re.compile(r"libhdf5(_serial|_openmpi|_mpich)?(-[0-9a-f]+)?\.so[.0-9]*$")


def loaded_libraries() -> list[str]:
    """Paths of every libhdf5 that is mapped, in order of their addresses."""
    found: dict[str, None] = {}
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if path and _NAME.search(os.path.basename(path)):
                found["/" + path] = None
    return list(found)


def opened(path: str) -> ctypes.PyDLL | None:
    """A library that is loaded already, whose functions keep the GIL; None when it is not any more."""
    try:
        return ctypes.PyDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def filter_state() -> dict[str, bool]:
    """Path of each loaded HDF5 -> whether the filter is registered in it or can be loaded by it."""
    state = {}
    for path in loaded_libraries():
        library = opened(path)
        if library is not None:
            available = library.H5Zfilter_avail
            available.argtypes, available.restype = [ctypes.c_int], ctypes.c_int
            state[path] = available(FILTER_ID) > 0
    return state


def plugin_file() -> str:
    """The filter plugin for every HDF5: in the package, or in the build that libquern comes from. FileNotFoundError names both."""
    from ._capi import library
    from ._loader import PACKAGE

    beside = os.path.join(os.path.dirname(os.path.abspath(library().path)), "..", "plugins", "any")
    places = [os.path.join(folder, "libh5quern.so") for folder in (os.path.join(PACKAGE, "plugins"), os.path.normpath(beside))]
    for place in places:
        if os.path.exists(place):
            return place
    raise FileNotFoundError(f"the HDF5 filter is not there: {' or '.join(places)}; install a wheel, or build the target h5quern_any")
