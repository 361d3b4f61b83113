"""libquern-checkpoint: its structs and functions. Mirrors <quern/checkpoint.h>."""
import ctypes
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

from .._errors import Error, error_of
from .._loader import load

__all__ = ["Error", "library"]

NEWEST = NO_BASE = KEEP_ALL = 2**64 - 1
BASE_NEWEST = 2**64 - 2
READ, WRITE = 0, 1
HOST, CUDA = 0, 1
MAX_RANK = 8

Progress = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)
Note = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
Extents = c_uint64 * MAX_RANK


class _Sized(Structure):
    """A struct that begins with struct_size; members that are not named are 0."""

    def __init__(self, **members):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **members)


class Runner(Structure):
    _fields_ = [("run", c_void_p), ("width", c_size_t), ("user", c_void_p)]


class Allocator(Structure):
    _fields_ = [("allocate", c_void_p), ("release", c_void_p), ("user", c_void_p)]


class StoreDesc(_Sized):
    _fields_ = [("struct_size", c_uint32), ("mode", c_int32), ("threads", c_uint32), ("reserved", c_uint32),
                ("runner", Runner), ("allocator", Allocator), ("note", Note), ("note_user", c_void_p)]


class SaveDesc(_Sized):
    _fields_ = [("struct_size", c_uint32), ("parity_data", c_uint32), ("parity_files", c_uint32),
                ("zstd_level", c_int32), ("step", c_uint64), ("base", c_uint64), ("preset", c_char_p),
                ("group", c_char_p), ("writer", c_uint32), ("writers", c_uint32), ("replace", c_uint32),
                ("reserved", c_uint32), ("progress", Progress), ("progress_user", c_void_p), ("policy", c_char_p),
                ("replay", c_char_p), ("tag_names", POINTER(c_char_p)), ("tag_texts", POINTER(c_char_p)),
                ("tag_count", c_uint64)]


class Tensor(_Sized):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("name", c_char_p), ("role", c_char_p),
                ("data", c_void_p), ("memory", c_int32), ("device", c_int32), ("rank", c_uint32),
                ("is_piece", c_uint32), ("extents", Extents), ("whole", Extents), ("offset", Extents)]


class Result(_Sized):
    _fields_ = [("struct_size", c_uint32), ("published", c_uint32), ("step", c_uint64), ("raw_bytes", c_uint64),
                ("stored_bytes", c_uint64), ("manifest_bytes", c_uint64), ("tensors", c_uint64),
                ("stored_already", c_uint64), ("differences", c_uint64), ("id", c_char * 72),
                ("lossy", c_uint64)]


class Info(_Sized):
    _fields_ = [("struct_size", c_uint32), ("parity_data", c_uint32), ("parity_files", c_uint32),
                ("reserved", c_uint32), ("step", c_uint64), ("base", c_uint64), ("tensors", c_uint64),
                ("blobs", c_uint64), ("raw_bytes", c_uint64), ("stored_bytes", c_uint64), ("id", c_char_p),
                ("library", c_char_p)]


class TensorInfo(_Sized):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("rank", c_uint32), ("pieces", c_uint32),
                ("extents", Extents), ("raw_bytes", c_uint64), ("stored_bytes", c_uint64), ("depth", c_uint64),
                ("stored_already", c_uint64), ("bound", c_double), ("lossless", c_uint32), ("reserved", c_uint32),
                ("name", c_char_p), ("role", c_char_p), ("mode", c_char_p)]


class Target(_Sized):
    _fields_ = [("struct_size", c_uint32), ("memory", c_int32), ("device", c_int32), ("reserved", c_uint32),
                ("data", c_void_p), ("bytes", c_uint64)]


class Collected(_Sized):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("removed", c_uint64),
                ("kept_for_others", c_uint64), ("freed_bytes", c_uint64)]


class Retention(_Sized):
    _fields_ = [("struct_size", c_uint32), ("best_is_largest", c_uint32), ("keep", c_uint64), ("keep_every", c_uint64),
                ("best", c_uint64), ("metric", c_char_p), ("dry_run", c_uint32), ("reserved", c_uint32)]


class Tier(_Sized):
    _fields_ = [("struct_size", c_uint32), ("most_waiting", c_uint32), ("path", c_char_p), ("every", c_uint64),
                ("write_rate", c_double), ("share", c_double)]


class TierStats(_Sized):
    _fields_ = [("struct_size", c_uint32), ("depth", c_uint32)] + [
        (name, c_uint64) for name in ("checkpoints", "bytes", "waiting", "failed", "passed_over")] + [
        ("rate", c_double), ("problem", c_char * 512)]


class EngineDesc(_Sized):
    _fields_ = [("struct_size", c_uint32), ("threads", c_uint32), ("ring_bytes", c_uint64), ("coding_bytes", c_uint64),
                ("when_full", c_int32), ("at_exit", c_int32), ("exit_seconds", c_double), ("check_changes", c_uint32),
                ("reserved", c_uint32), ("note", Note), ("note_user", c_void_p), ("write_rate", c_double),
                ("tiers", POINTER(POINTER(Tier))), ("tier_count", c_uint64), ("keep_local", c_uint64)]


class EngineProgress(_Sized):
    _fields_ = [("struct_size", c_uint32), ("level", c_int32), ("finished", c_uint32), ("error", c_int32),
                ("raw_bytes", c_uint64), ("captured_bytes", c_uint64), ("copied_tensors", c_uint64),
                ("coded_first", c_uint64), ("submit_seconds", c_double), ("captured_seconds", c_double),
                ("durable_seconds", c_double), ("result", Result), ("local_seconds", c_double)]


class EngineStats(_Sized):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32)] + [
        (name, c_uint64) for name in ("submitted", "durable", "failed", "skipped", "cancelled", "under_way",
                                      "copied_tensors", "copied_bytes", "first_by_rate", "first_for_room",
                                      "first_for_size", "first_bytes")] + [
        (name, c_double) for name in ("copy_rate", "code_rate", "fence_seconds", "longest_fence", "submit_inside")] + [
        (name, c_uint64) for name in ("fences", "ring_bytes", "ring_peak", "coding_peak", "written_bytes")]


_FUNCTIONS = {
    "store_open": [c_char_p, POINTER(StoreDesc), POINTER(c_void_p)],
    "steps": [c_void_p, POINTER(c_uint64), c_uint64, POINTER(c_uint64)],
    "history": [c_void_p, POINTER(c_uint64), c_uint64, POINTER(c_uint64)],
    "newest_base": [c_void_p, POINTER(c_uint64)],
    "begin": [c_void_p, POINTER(SaveDesc), POINTER(c_void_p)],
    "add": [c_void_p, POINTER(Tensor)],
    "add_blob": [c_void_p, c_char_p, c_void_p, c_uint64],
    "publish": [c_void_p, POINTER(Result)],
    "abort": [c_void_p],
    "open": [c_void_p, c_uint64, POINTER(c_void_p)],
    "inspect": [c_void_p, POINTER(Info)],
    "tensor_at": [c_void_p, c_uint64, POINTER(TensorInfo)],
    "find": [c_void_p, c_char_p, POINTER(c_uint64)],
    "read": [c_void_p, c_uint64, POINTER(c_uint64), POINTER(c_uint64), POINTER(Target)],
    "tag_at": [c_void_p, c_uint64, POINTER(c_char_p), POINTER(c_char_p), POINTER(c_uint64)],
    "blob_at": [c_void_p, c_uint64, POINTER(c_char_p), POINTER(c_uint64)],
    "read_blob": [c_void_p, c_uint64, c_void_p, c_uint64],
    "verify": [c_void_p, c_uint64, c_int],
    "repair": [c_void_p, c_uint64, POINTER(c_int)],
    "compact": [c_void_p, c_uint64, POINTER(SaveDesc)],
    "collect": [c_void_p, c_uint64, POINTER(c_uint64), c_uint64, POINTER(Collected)],
    "retain": [c_void_p, POINTER(Retention), POINTER(Collected)],
    "engine_open": [c_char_p, POINTER(EngineDesc), POINTER(c_void_p)],
    "engine_close": [c_void_p, c_int32, c_double],
    "engine_begin": [c_void_p, POINTER(SaveDesc), POINTER(c_void_p)],
    "engine_add": [c_void_p, POINTER(Tensor)],
    "engine_add_blob": [c_void_p, c_char_p, c_void_p, c_uint64],
    "engine_submit": [c_void_p],
    "engine_fence": [c_void_p, c_char_p, c_double, POINTER(c_uint32)],
    "engine_wait": [c_void_p, c_uint64, c_int32, c_double, POINTER(c_uint32)],
    "engine_wait_all": [c_void_p, c_double, POINTER(c_uint32)],
    "engine_poll": [c_void_p, c_uint64, POINTER(EngineProgress)],
    "engine_cancel": [c_void_p, c_uint64],
    "engine_measure": [c_void_p, POINTER(EngineStats)],
    "engine_measure_tier": [c_void_p, c_uint64, POINTER(TierStats)],
    "newest_of": [POINTER(c_char_p), c_uint64, POINTER(c_uint64), POINTER(c_uint64)],
}
_DESTROYERS = ("store_close", "writer_destroy", "reader_destroy", "engine_forget")


class Library:
    """The functions of libquern-checkpoint by their names without quern_checkpoint_; a failure is an Error."""

    def __init__(self):
        self._library, self.path = load("libquern-checkpoint", "quern_checkpoint_shared")
        last_error = self._library.quern_checkpoint_last_error
        last_error.restype = c_char_p
        for name, arguments in _FUNCTIONS.items():
            function = getattr(self._library, "quern_checkpoint_" + name)
            function.argtypes, function.restype = arguments, c_int32
            setattr(self, name, self._checked(function, last_error))
        for name in _DESTROYERS:
            function = getattr(self._library, "quern_checkpoint_" + name)
            function.argtypes, function.restype = [c_void_p], None
            setattr(self, name, function)

    @staticmethod
    def _checked(function, last_error):
        def call(*arguments):
            status = function(*arguments)
            if status != 0:
                raise error_of(status, last_error().decode("utf-8", "replace"))

        return call


_loaded = None


def library():
    """The library, loaded on first use."""
    global _loaded
    if _loaded is None:
        _loaded = Library()
    return _loaded
