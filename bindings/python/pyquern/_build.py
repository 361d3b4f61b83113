"""What this package runs with."""
from __future__ import annotations

import ctypes
from ctypes import byref
from typing import Any

from . import _capi
from ._calls import use_context
from ._capi import library
from ._errors import Error
from ._hdf5_libraries import filter_state


def _codecs() -> list[dict[str, Any]]:
    lib, codecs = library(), []
    for index in range(lib.codec_count()):
        found = _capi.CodecInfo(struct_size=ctypes.sizeof(_capi.CodecInfo))
        lib.check(lib.codec_get(index, byref(found)))
        codecs.append({"name": found.name.decode(), "id": found.id, "version": found.version,
                       "summary": found.summary.decode(), "idempotent": bool(found.idempotent)})
    return codecs


def _cuda() -> dict[str, Any]:
    try:
        with use_context(1, None, device=(_capi.CUDA, 0)):
            return {"available": True, "why": ""}
    except Error as problem:
        return {"available": False, "why": problem.sentence}


def build_info() -> dict[str, Any]:
    """Version and path of the library, how it was built, its codecs, whether a CUDA device can be used and why not, and every
    HDF5 library of this process with whether it knows the filter."""
    from . import __version__

    lib = library()
    return {"pyquern": __version__, "library": lib.version_string().decode(), "library_path": lib.path,
            "abi": lib.abi_version(), "build": lib.build_info().decode(), "codecs": _codecs(), "cuda": _cuda(),
            "hdf5": filter_state()}
