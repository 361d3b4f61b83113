"""libquern: its structs and functions. Mirrors <quern/quern.h>."""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32
from ctypes import c_uint64, c_void_p
from typing import Any

from ._errors import LibraryNotFound, error_of
from ._loader import load

#: QUERN_ABI_VERSION of the header this file mirrors.
ABI_VERSION = 7
MAX_RANK = 8
MAX_FILLS = 255
MODEL_ID_SIZE = 33
HOST, CUDA = 0, 1
CANCELLED, BOUND_NOT_MET, TRUNCATED, MISSING_MODEL = 63, 5, 21, 43

Progress = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)
SourceRead = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_uint64)
Extents = c_uint64 * MAX_RANK
Strides = c_int64 * MAX_RANK


class ContextDesc(Structure):
    _fields_ = [("struct_size", c_uint32), ("threads", c_uint32), ("run", c_void_p), ("width", c_size_t),
                ("run_user", c_void_p), ("memory_limit", c_uint64), ("progress", Progress), ("progress_user", c_void_p),
                ("allocate", c_void_p), ("release", c_void_p), ("allocator_user", c_void_p), ("runs_on", c_int32),
                ("device", c_int32)]


class Array(Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("memory", c_int32), ("device", c_int32),
                ("rank", c_uint32), ("reserved", c_uint32), ("extents", Extents), ("strides", Strides),
                ("data", c_void_p)]


class CodecInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("id", c_uint16), ("version", c_uint16), ("name", c_char_p),
                ("summary", c_char_p), ("idempotent", c_uint32)]


class Report(Structure):
    _fields_ = [("struct_size", c_uint32), ("enforced_kind", c_int32), ("enforced_value", c_double),
                ("input_bytes", c_uint64), ("output_bytes", c_uint64), ("masked_elements", c_uint64),
                ("chunks", c_uint64), ("raw_chunks", c_uint64), ("psnr_db", c_double), ("ran_on", c_int32),
                ("codec_id", c_uint16), ("codec_reason", c_uint16)]


class StreamInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("rank", c_uint32), ("codec_id", c_uint16),
                ("codec_version", c_uint16), ("extents", Extents), ("requested_kind", c_int32),
                ("enforced_kind", c_int32), ("requested_value", c_double), ("enforced_value", c_double),
                ("header_bytes", c_uint64), ("chunks", c_uint64), ("metadata_bytes", c_uint64), ("fills", c_uint32),
                ("format_major", c_uint8), ("format_minor", c_uint8), ("reserved", c_uint16)]


class Verdict(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("violations", c_uint64),
                ("specials_lost", c_uint64), ("first_index", c_uint64), ("first_error", c_double)]


class Quality(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("elements", c_uint64), ("valid", c_uint64),
                ("specials_lost", c_uint64), ("min", c_double), ("max", c_double), ("max_error", c_double),
                ("max_pointwise_rel", c_double), ("mse", c_double), ("psnr_db", c_double), ("nrmse", c_double),
                ("ssim", c_double), ("max_ulp", c_uint64)]


class Source(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("size", c_uint64), ("read", SourceRead),
                ("user", c_void_p)]


class Precision(Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_int32), ("value", c_double), ("mantissa_bits", c_int32),
                ("axis", c_uint32)]


#: The name each struct has in quern.h.
STRUCTS: dict[str, type[Structure]] = {
    "quern_context_desc": ContextDesc, "quern_array": Array, "quern_codec_info": CodecInfo, "quern_report": Report,
    "quern_stream_info": StreamInfo, "quern_verdict": Verdict, "quern_quality": Quality, "quern_source": Source,
    "quern_precision": Precision}

_FUNCTIONS: dict[str, list[Any]] = {
    "context_create": [POINTER(ContextDesc), POINTER(c_void_p)],
    "context_add_model": [c_void_p, c_void_p, c_uint64, c_char_p],
    "codec_get": [c_size_t, POINTER(CodecInfo)],
    "params_create": [POINTER(c_void_p)],
    "params_set_bound": [c_void_p, c_int32, c_double],
    "params_set": [c_void_p, c_char_p, c_char_p],
    "params_add_fill": [c_void_p, c_int32, c_void_p],
    "params_set_metadata": [c_void_p, c_char_p, c_size_t],
    "compress_bound": [POINTER(Array), c_void_p, POINTER(c_uint64)],
    "compress": [c_void_p, c_void_p, POINTER(Array), c_void_p, c_uint64, POINTER(c_uint64), POINTER(Report)],
    "decompress": [c_void_p, c_void_p, c_uint64, POINTER(Array)],
    "decompress_checked": [c_void_p, c_void_p, c_uint64, POINTER(Array)],
    "decompress_region": [c_void_p, c_void_p, c_uint64, POINTER(c_uint64), POINTER(c_uint64), POINTER(Array)],
    "level_extents": [c_void_p, c_void_p, c_uint64, c_uint32, POINTER(c_uint32), POINTER(c_uint64)],
    "decompress_level": [c_void_p, c_void_p, c_uint64, c_uint32, POINTER(Array)],
    "inspect": [c_void_p, c_uint64, POINTER(StreamInfo)],
    "stream_metadata": [c_void_p, c_uint64, c_void_p, c_uint64, POINTER(c_uint64)],
    "stream_fill": [c_void_p, c_uint64, c_uint32, c_void_p],
    "source_region": [c_void_p, POINTER(Source), POINTER(c_uint64), POINTER(c_uint64), POINTER(Array)],
    "source_level": [c_void_p, POINTER(Source), c_uint32, POINTER(Array)],
    "source_streams": [POINTER(Source), POINTER(c_uint64), POINTER(c_uint64), c_uint64, POINTER(c_uint64)],
    "chain_region": [c_void_p, POINTER(POINTER(Source)), c_size_t, POINTER(c_uint64), POINTER(c_uint64), POINTER(Array)],
    "session_create": [c_void_p, c_uint32, POINTER(c_void_p)],
    "session_compress": [c_void_p, c_void_p, c_void_p, POINTER(Array), c_void_p, c_uint64, POINTER(c_uint64), POINTER(Report)],
    "session_decompress": [c_void_p, c_void_p, c_void_p, c_uint64, POINTER(Array)],
    "session_resume": [c_void_p, c_void_p, c_void_p, c_uint64, POINTER(Array)],
    "hash_values": [POINTER(Array), POINTER(c_uint64)],
    "stream_reference": [c_void_p, c_uint64, POINTER(c_uint64), POINTER(c_uint32)],
    "decompress_beside": [c_void_p, c_void_p, c_uint64, POINTER(Array), POINTER(Array)],
    "verify": [c_void_p, POINTER(Array), c_void_p, c_uint64, POINTER(Verdict)],
    "compare": [c_void_p, c_void_p, POINTER(Array), POINTER(Array), POINTER(Quality)],
    "precision_of_digits": [c_void_p, c_void_p, POINTER(Array), c_uint32, POINTER(Precision)],
    "precision_of_information": [c_void_p, c_void_p, POINTER(Array), c_double, POINTER(Precision)],
}
#: Functions that return something else than a status.
_OTHERS: dict[str, tuple[list[Any], Any]] = {
    "version_string": ([], c_char_p), "build_info": ([], c_char_p), "abi_version": ([], c_uint32),
    "codec_count": ([], c_size_t), "last_error": ([c_void_p], c_char_p), "context_destroy": ([c_void_p], None),
    "params_destroy": ([c_void_p], None), "session_destroy": ([c_void_p], None)}


class Library:
    """The functions of libquern by their names without quern_. Those that can fail return their status."""

    def __init__(self) -> None:
        self._library, self.path = load("libquern", "quern_shared")
        try:
            abi = self._library.quern_abi_version
        except AttributeError:
            raise LibraryNotFound(-1, f"{self.path} is no libquern: set QUERN_LIBRARY to the one pyquern came with") from None
        if abi() < ABI_VERSION:
            raise LibraryNotFound(-1, f"{self.path} is a libquern of interface {abi()}; this pyquern needs {ABI_VERSION}: update "
                                      "it, or unset QUERN_LIBRARY")
        for name, arguments in _FUNCTIONS.items():
            self._bind(name, arguments, c_int32)
        for name, (arguments, result) in _OTHERS.items():
            self._bind(name, arguments, result)

    def _bind(self, name: str, arguments: list[Any], result: Any) -> None:
        function = getattr(self._library, "quern_" + name)
        function.argtypes, function.restype = arguments, result
        setattr(self, name, function)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"libquern has no function quern_{name} here")

    def check(self, status: int, context: c_void_p | None = None) -> None:
        """Raises the Error of a status that is not 0: of the last call on `context`, or of this thread's without one."""
        if status != 0:
            raise error_of(status, self.last_error(context).decode("utf-8", "replace"))


_loaded: Library | None = None


def library() -> Library:
    """The library, loaded on first use."""
    global _loaded
    if _loaded is None:
        _loaded = Library()
    return _loaded
