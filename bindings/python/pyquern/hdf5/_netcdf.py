"""The filter on variables of netCDF4-python, which has no call for foreign filters: by the netCDF library it brings."""
from __future__ import annotations

import ctypes
import os
import re
from typing import Any

from .._chunks import advise_chunks
from .._errors import Unsupported
from .._hdf5_libraries import FILTER_ID

_NAME = re.compile(r"libnetcdf(-[0-9a-f]+)?\.so[.0-9]*$")
_CHUNKED = 0


def _library() -> ctypes.PyDLL:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = "/" + line.rstrip("\n").partition("/")[2]
            if _NAME.search(os.path.basename(path)):
                library = ctypes.PyDLL(path)
                if hasattr(library, "nc_def_var_filter"):
                    library.nc_strerror.restype = ctypes.c_char_p
                    return library
    raise Unsupported(40, "no libnetcdf with filters (netCDF 4.7.4 and later) is loaded here: write with h5py or "
                          "pyquern.xarray.to_netcdf(), or pack the finished file with 'quern h5 pack'")


def _checked(library: ctypes.PyDLL, status: int, name: str) -> None:
    if status != 0:
        text = library.nc_strerror(status).decode("utf-8", "replace")
        raise Unsupported(40, f"netCDF does not take the filter for {name!r}: {text} ({status}). It is set between createVariable() "
                              "and the first values")


def define_filter(variable: Any, words: tuple[int, ...]) -> None:
    """Sets the filter on a netCDF4.Variable that has no values yet; a contiguous one gets chunks."""
    library, group, number = _library(), variable._grpid, variable._varid
    if not variable.dimensions:
        raise ValueError(f"{variable.name!r} has no dimensions: single values are not chunked, and cannot be compressed")
    if variable.chunking() == "contiguous":
        chunks = advise_chunks(variable.shape, variable.dtype)
        sizes = (ctypes.c_size_t * len(chunks))(*chunks)
        _checked(library, library.nc_def_var_chunking(group, number, _CHUNKED, sizes), variable.name)
    given = (ctypes.c_uint * len(words))(*words)
    _checked(library, library.nc_def_var_filter(group, number, ctypes.c_uint(FILTER_ID), ctypes.c_size_t(len(words)), given),
             variable.name)


def words_of_variable(variable: Any) -> tuple[int, ...] | None:
    """cd_values of the filter of a netCDF4.Variable; None without it."""
    library, count = _library(), ctypes.c_size_t()
    inquire = library.nc_inq_var_filter_info
    where = variable._grpid, variable._varid, ctypes.c_uint(FILTER_ID)
    if inquire(*where, ctypes.byref(count), None) != 0:
        return None
    words = (ctypes.c_uint * max(count.value, 1))()
    _checked(library, inquire(*where, ctypes.byref(count), words), variable.name)
    return tuple(words[:count.value])
