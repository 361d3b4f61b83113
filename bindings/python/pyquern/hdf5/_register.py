"""The filter in every HDF5 of the process, whenever that is loaded, and in those of child processes."""
from __future__ import annotations

import ctypes
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .._errors import Error
from .._hdf5_libraries import loaded_libraries, opened, plugin_file

#: Packages that load an HDF5 of their own.
_CLIENTS = ("h5py", "netCDF4", "tables")
#: Where HDF5 looks by itself, which it no more does once HDF5_PLUGIN_PATH is set.
_DEFAULTS = ("/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins", "/usr/local/lib/plugin", "/usr/local/hdf5/lib/plugin")
_VARIABLE = "HDF5_PLUGIN_PATH"

#: Paths of libraries that have the filter. A library is never unloaded (the plugin holds it).
_done: dict[str, None] = {}
_plugin: ctypes.CDLL | None = None


def plugin() -> ctypes.CDLL:
    """The plugin, loaded on first use."""
    global _plugin
    if _plugin is None:
        loaded = ctypes.CDLL(plugin_file())
        loaded.H5PLget_plugin_info.restype = ctypes.c_void_p
        loaded.quern_hdf5_any_encode.restype = ctypes.c_int
        loaded.quern_hdf5_any_encode.argtypes = [
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64,
            ctypes.POINTER(ctypes.c_uint64), ctypes.c_char_p, ctypes.c_size_t]
        _plugin = loaded
    return _plugin


def register(*, strict: bool = True) -> list[str]:
    """Makes the filter known to every HDF5 library that is loaded now, and to those that h5py, netCDF4 and PyTables load
    later; puts its folder first into HDF5_PLUGIN_PATH, for other programs that load an HDF5 and for child processes. Importing
    pyquern.hdf5 does this; doing it again looks for libraries that came since. Returns the paths of the libraries that have it,
    [] where no HDF5 is loaded yet. strict: Error where a library refuses it."""
    _set_path()
    description = plugin().H5PLget_plugin_info()
    for path in loaded_libraries():
        if path in _done:
            continue
        library = opened(path)
        if library is None or not hasattr(library, "H5Zregister"):
            continue
        library.H5Zregister.argtypes, library.H5Zregister.restype = [ctypes.c_void_p], ctypes.c_int
        if library.H5Zregister(description) >= 0:
            _done[path] = None
        elif strict:
            raise Error(100, f"{path} does not take the filter; set {_VARIABLE}={os.path.dirname(plugin_file())} before Python "
                             "starts")
    return list(_done)


def _set_path() -> None:
    folder = os.path.dirname(plugin_file())
    present = os.environ.get(_VARIABLE)
    if present is None:
        others = [place for place in (*_netcdf_plugins(), *_DEFAULTS) if os.path.isdir(place)]
        os.environ[_VARIABLE] = os.pathsep.join([folder, *others])
    elif folder not in present.split(os.pathsep):
        os.environ[_VARIABLE] = os.pathsep.join([folder, present]) if present else folder


def _netcdf_plugins() -> list[str]:
    """The folder that netCDF4 would set the variable to, were it not set."""
    try:
        spec = importlib.util.find_spec("netCDF4")
    except (ImportError, ValueError):
        return []
    return [os.path.join(place, "plugins") for place in (spec.submodule_search_locations or [] if spec else [])]


class _Loader(importlib.abc.Loader):
    """Another's loader, and a call after it."""

    def __init__(self, loader: Any, after: Callable[[], object]) -> None:
        self._loader, self._after = loader, after

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        # The module is to see its own loader.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._after()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Watch(importlib.abc.MetaPathFinder):
    """Registers the filter once one of the clients was imported."""

    def __init__(self) -> None:
        self._looking = False

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _CLIENTS or self._looking:
            return None
        self._looking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, lambda: register(strict=False))
        return spec


def watch_imports() -> None:
    if not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())
