"""quern from Python: error-bounded lossy compression of arrays, over the C interface, without compiled code.

    import pyquern as quern

    stream = quern.compress(array, abs=1e-3)          # every value within 1e-3, or an error
    back = quern.decompress(stream)

Files: save(), open(). Time steps: append(), open_steps(), Session. HDF5, netCDF, xarray, Zarr and Dask: pyquern.hdf5,
pyquern.zarr, pyquern.numcodecs, pyquern.xarray. Training checkpoints: pyquern.checkpoint."""
from __future__ import annotations

import importlib
from typing import Any

from ._bounds import Bound
from ._build import build_info
from ._chunks import advise_chunks
from ._errors import (
    BoundNotMet,
    Cancelled,
    CorruptStream,
    DeviceError,
    Error,
    InvalidArgument,
    LibraryNotFound,
    MissingReference,
    OutOfMemory,
    Unsupported,
)
from ._estimates import Estimate, estimate
from ._file import File, save
from ._file import open_file as open
from ._models import add_model
from ._steps import Session, Steps, append, open_steps
from ._tensors import TypedArray
from .core import (
    Precision,
    Quality,
    Report,
    StreamInfo,
    Verdict,
    compare,
    compress,
    compress_bound,
    decompress,
    hash_values,
    info,
    precision,
    verify,
)

__all__ = ["Bound", "BoundNotMet", "Cancelled", "CorruptStream", "DeviceError", "Error", "Estimate", "File", "InvalidArgument",
           "LibraryNotFound", "MissingReference", "OutOfMemory", "Precision", "Quality", "Report", "Session", "Steps", "StreamInfo",
           "TypedArray", "Unsupported", "Verdict", "add_model", "advise_chunks", "append", "build_info", "compare", "compress",
           "compress_bound", "decompress", "estimate", "hash_values", "info", "open", "open_steps", "precision", "save", "verify"]
__version__ = "0.1.0"

_MODULES = ("checkpoint", "dcp_convert", "torch_dcp")


def __getattr__(name: str) -> Any:
    # On first use, so that the package can be imported where their libraries are not there.
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    if name == "explore":
        from ._explore import explore

        return explore
    raise AttributeError(f"module 'pyquern' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__) | set(_MODULES) | {"explore"})
