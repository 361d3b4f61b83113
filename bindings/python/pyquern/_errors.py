"""What a call that failed raises: the library's sentence as an exception of the natural class."""
from __future__ import annotations

from typing import Any

_NAMES = {
    -1: "library_not_found", 1: "invalid_argument", 2: "invalid_shape", 3: "invalid_bound", 4: "unknown_setting",
    5: "bound_not_met", 20: "bad_magic", 21: "truncated", 22: "corrupt", 23: "checksum_mismatch",
    24: "unsupported_version", 25: "trailing_data", 26: "reference_missing", 40: "unsupported", 41: "unknown_codec",
    43: "missing_model", 60: "out_of_memory", 61: "memory_limit", 62: "io_error", 63: "cancelled",
    64: "destination_too_small", 65: "hardware_fault",
    80: "device_unavailable", 81: "device_error", 100: "internal"}


class Error(RuntimeError):
    """A call that failed: the library's sentence, and `status`, the number and `name` it has in <quern/quern.h>."""

    status: int
    name: str
    sentence: str

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.name = _NAMES.get(status, "unknown")

    def __reduce__(self) -> tuple[Any, ...]:
        # By pickle and copy, which would call the class with the sentence alone: torch.distributed hands errors to all ranks.
        return type(self), (self.status, self.sentence)


class InvalidArgument(Error, ValueError):
    """An argument that the library refuses: a bound, a shape, a setting, a buffer that is too small."""


class BoundNotMet(Error):
    """Decoded values that miss the bound their stream states."""


class CorruptStream(Error, ValueError):
    """Bytes that are no stream, are damaged or cut short, or have a newer version than this library reads."""


class MissingReference(Error, LookupError):
    """An array that a stream was predicted from is not there, or is another; the sentence has the hash of its values."""


class Unsupported(Error, NotImplementedError):
    """A right request that this build, or the codec, does not serve."""


class OutOfMemory(Error, MemoryError):
    """There is no memory, or a call would have passed `memory_limit`."""


class Cancelled(Error):
    """`progress` returned False."""


class DeviceError(Error):
    """There is no CUDA device for this build, or it failed."""


class LibraryNotFound(Error, ImportError):  # type: ignore[misc]  # both have a name
    """libquern or libquern-checkpoint was not found, or is too old; the sentence lists what was tried."""


def error_of(status: int, sentence: str) -> Error:
    """The exception of a status that is not 0."""
    if status in (1, 2, 3, 4, 64):
        return InvalidArgument(status, sentence)
    if status == 5:
        return BoundNotMet(status, sentence)
    if 20 <= status <= 25:
        return CorruptStream(status, sentence)
    if status == 26:
        return MissingReference(status, sentence)
    if status in (40, 41):
        return Unsupported(status, sentence)
    if status in (60, 61):
        return OutOfMemory(status, sentence)
    if status == 63:
        return Cancelled(status, sentence)
    if status in (80, 81):
        return DeviceError(status, sentence)
    return Error(status, sentence)


for _public in (Error, InvalidArgument, BoundNotMet, CorruptStream, MissingReference, Unsupported, OutOfMemory, Cancelled,
                DeviceError, LibraryNotFound):
    _public.__module__ = "pyquern"  # as tracebacks, pickles and users name them
