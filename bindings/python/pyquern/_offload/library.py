"""libquern-offload: its structs and functions. Mirrors <quern/offload.h>."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_double, c_int32, c_uint32, c_uint64, c_void_p
from typing import Any

from .._errors import error_of
from .._loader import load

BF16, F32 = 2, 3
CANCELLED = 63

Source = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint64, c_uint64, c_uint64, c_void_p, c_void_p, c_void_p)
BytesSource = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint64, c_uint64, c_uint64, c_void_p)


class _Sized(Structure):
    """A struct that begins with struct_size; members that are not named are 0."""

    def __init__(self, **members: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **members)


class Allocator(Structure):
    _fields_ = [("allocate", c_void_p), ("release", c_void_p), ("user", c_void_p)]


class Desc(_Sized):
    _fields_ = [("struct_size", c_uint32), ("threads", c_uint32), ("region_values", POINTER(c_uint64)),
                ("region_count", c_uint64), ("subgroup_values", c_uint64), ("bits", c_uint32), ("coarsest", c_uint32),
                ("seed", c_uint64), ("folders", POINTER(c_char_p)), ("folder_count", c_uint64), ("turn_file", c_char_p),
                ("memory_limit", c_uint64), ("durable", c_uint32), ("file_form", c_uint32), ("allocator", Allocator)]


class Info(_Sized):
    _fields_ = [("struct_size", c_uint32), ("loaded", c_uint32), ("step_count", c_uint64), ("state_bytes", c_uint64),
                ("memory_bytes", c_uint64), ("bytes_read", c_uint64), ("bytes_written", c_uint64),
                ("cached_reads", c_uint64), ("subgroups", c_uint64)]


class Region(_Sized):
    _fields_ = [("struct_size", c_uint32), ("gradient_dtype", c_int32), ("gradient", c_void_p), ("copy", c_void_p),
                ("weights", c_void_p), ("rate", c_double), ("beta1", c_double), ("beta2", c_double),
                ("epsilon", c_double), ("decay", c_double), ("coupled_decay", c_uint32), ("separate_order", c_uint32)]


class StepDesc(_Sized):
    _fields_ = [("struct_size", c_uint32), ("refuse_not_finite", c_uint32), ("loss_scale", c_double),
                ("max_norm", c_double)]


class Outcome(_Sized):
    _fields_ = [("struct_size", c_uint32), ("skipped", c_uint32), ("norm", c_double)]


_FUNCTIONS = {
    "open": [POINTER(Desc), POINTER(c_void_p)],
    "inspect": [c_void_p, POINTER(Info)],
    "load": [c_void_p, c_uint64, Source, c_void_p],
    "read": [c_void_p, c_uint64, c_uint64, c_uint64, c_void_p, c_void_p, c_void_p],
    "describe": [c_void_p, c_void_p, c_uint64, POINTER(c_uint64)],
    "subgroup_size": [c_void_p, c_uint64, POINTER(c_uint64), POINTER(c_uint64)],
    "read_at_rest": [c_void_p, c_uint64, c_uint64, c_uint64, c_void_p],
    "restore": [c_void_p, c_void_p, c_uint64, BytesSource, c_void_p],
    "step": [c_void_p, POINTER(Region), c_uint64, POINTER(StepDesc), POINTER(Outcome)],
}


class State:
    """A handle of the library; a call that fails raises the library's sentence."""

    def __init__(self, desc: Desc) -> None:
        self._library, _ = load("libquern-offload", "quern_offload_shared")
        self._library.quern_offload_last_error.restype = c_char_p
        for name, arguments in _FUNCTIONS.items():
            function = getattr(self._library, "quern_offload_" + name)
            function.argtypes, function.restype = arguments, c_int32
        self._library.quern_offload_destroy.argtypes, self._library.quern_offload_destroy.restype = [c_void_p], None
        self._handle: c_void_p | None = c_void_p()
        self._call("open", desc, ctypes.byref(self._handle), handle=False)

    def _call(self, name: str, *arguments: Any, handle: bool = True) -> None:
        if handle and not self._handle:
            raise ValueError("the optimizer was closed")
        status = getattr(self._library, "quern_offload_" + name)(*((self._handle,) if handle else ()), *arguments)
        if status != 0:
            raise error_of(status, self._library.quern_offload_last_error().decode(errors="replace"))

    def inspect(self) -> Info:
        info = Info()
        self._call("inspect", info)
        return info

    def load(self, step_count: int, source: Any) -> None:
        """source(region, begin, count, weights, first, second) fills memory at three addresses."""
        self._call_filling("load", step_count, kind=Source, source=source)

    def describe(self) -> bytes:
        """What the state is, for restore()."""
        size = c_uint64()
        self._call("describe", None, 0, size)
        room = ctypes.create_string_buffer(size.value)
        self._call("describe", room, size.value, size)
        return room.raw[: size.value]

    def subgroup_size(self, subgroup: int) -> tuple[int, int]:
        """Bytes as they lie, and values."""
        size, values = c_uint64(), c_uint64()
        self._call("subgroup_size", subgroup, size, values)
        return size.value, values.value

    def read_at_rest(self, subgroup: int, begin: int, count: int, address: int) -> None:
        self._call("read_at_rest", subgroup, begin, count, address)

    def restore(self, description: bytes, source: Any) -> None:
        """source(subgroup, begin, count, address) fills in bytes of a subgroup."""
        self._call_filling("restore", description, len(description), kind=BytesSource, source=source)

    def _call_filling(self, name: str, *arguments: Any, kind: Any, source: Any) -> None:
        raised = []

        def fill(_: int, *places: int) -> int:
            try:
                source(*places)
            except BaseException as problem:  # no exception may pass through the library
                raised.append(problem)
                return CANCELLED
            return 0

        try:
            self._call(name, *arguments, kind(fill), None)
        except Exception:
            if raised:
                raise raised[0] from None
            raise

    def read(self, region: int, begin: int, count: int, weights: int | None, first: int | None,
             second: int | None) -> None:
        self._call("read", region, begin, count, weights, first, second)

    def step(self, regions: Any, desc: StepDesc) -> Outcome:
        outcome = Outcome()
        self._call("step", regions, len(regions), desc, outcome)
        return outcome

    def close(self) -> None:
        if self._handle:
            self._library.quern_offload_destroy(self._handle)
        self._handle = None
