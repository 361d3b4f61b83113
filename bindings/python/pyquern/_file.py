"""Streams in files: written whole or not at all, and read in parts at any place. Time steps: _steps.py."""
from __future__ import annotations

import contextlib
import ctypes
import errno
import operator
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import byref
from typing import Any, BinaryIO

import numpy as np

from . import _capi
from ._array import ArrayLike, Bytes, Decoded, Given, empty, finished, limit_beside
from ._bounds import KINDS, PRECISION_KINDS, chosen_bound
from ._calls import ProgressFunction, use_context
from ._capi import library
from ._chunks import advise_chunks
from .core import Report, StreamInfo, compress_reported, describe, level_shape, read_header

_EXTENTS = _capi.Extents


class _Descriptor:
    """Bytes of a file by its descriptor; any number of threads read at once."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.close = weakref.finalize(self, os.close, self._descriptor)
        self.size = os.fstat(self._descriptor).st_size

    def read(self, offset: int, size: int) -> bytes:
        if not self.close.alive:
            raise ValueError("the file is closed")
        return os.pread(self._descriptor, size, offset)


class _FileObject:
    """Bytes of an object with seek() and read(), such as those of fsspec: one thread at a time."""

    def __init__(self, file: Any) -> None:
        self._file, self._lock = file, threading.Lock()
        self.size: int = file.seek(0, os.SEEK_END)

    def read(self, offset: int, size: int) -> bytes:
        with self._lock:
            self._file.seek(offset)
            data: bytes = self._file.read(size)
        return data

    def close(self) -> None:
        self._file.close()


def pieces_of(bytes_of: _Descriptor | _FileObject, begin: int, size: int) -> Iterator[tuple[int, bytes]]:
    """The bytes [begin, begin + size) as (offset from begin, piece): one read may give less than was asked for. OSError
    where the file ends before."""
    done = 0
    while done < size:
        data = bytes_of.read(begin + done, size - done)
        if not data or len(data) > size - done:
            raise OSError(f"the file ends at byte {begin + done}: it was changed while it was read")
        yield done, data
        done += len(data)


def whole_of(bytes_of: _Descriptor | _FileObject, begin: int, size: int) -> bytes:
    return b"".join(piece for _, piece in pieces_of(bytes_of, begin, size))


class Reading:
    """A quern_source over `size` bytes of one of the above from byte `begin` on (all without), for the time of a call; what its
    read raises is raised after it."""

    def __init__(self, bytes_of: _Descriptor | _FileObject, begin: int = 0, size: int | None = None) -> None:
        self._bytes, self._begin, self.problem = bytes_of, begin, None
        self._callback = _capi.SourceRead(self._read)
        self.c = _capi.Source(struct_size=ctypes.sizeof(_capi.Source), size=bytes_of.size if size is None else size,
                              read=self._callback)

    problem: BaseException | None

    def _read(self, _user: Any, offset: int, to: int, size: int) -> int:
        try:
            for done, piece in pieces_of(self._bytes, self._begin + offset, size):
                ctypes.memmove(to + done, piece, len(piece))
        except BaseException as problem:  # noqa: B036: raised where the call returns
            self.problem = problem
            return 1
        return 0


def opened_bytes(file: Any) -> tuple[str | None, _Descriptor | _FileObject]:
    """The absolute path, where it is one, and what reads it."""
    if isinstance(file, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(file))
        return path, _Descriptor(path)
    if hasattr(file, "read") and hasattr(file, "seek"):
        return None, _FileObject(file)
    raise TypeError(f"a {type(file).__name__} is no file: give a path, or an object with read() and seek()")


@contextlib.contextmanager
def problems_of(readings: Sequence[Reading]) -> Iterator[None]:
    """Raises what reading raised in the place of what the library says of it."""
    try:
        yield
    except Exception:
        for reading in readings:
            if reading.problem is not None:
                raise reading.problem from None
        raise


class File:
    """The array of a .qn file, of which only what is asked for is read and decoded.

    `file[10:20, :, 5]` takes integers, slices of any step, `...` and None, and gives a new array of just that box;
    `numpy.asarray(file)` gives all. `shape` (slowest axis first), `dtype`, `ndim`, `size`, `nbytes`, `chunks` and `info` come
    from the header, which open() reads. `dask.array.from_array(file)` works: any thread may read, and a File of a path goes to
    other processes by pickle. Errors: CorruptStream for damaged bytes, IndexError, OSError, ValueError once closed."""

    def __init__(self, file: Any, *, threads: int = 1, memory_limit: int | None = None) -> None:
        self.path, self._bytes = opened_bytes(file)
        self._threads, self._memory_limit = threads, memory_limit
        self._header = read_header(self._bytes.read, self._bytes.size)
        self._head = Bytes(self._header, "the header")
        #: What the header says (StreamInfo).
        self.info: StreamInfo = describe(self._head.address, self._head.size)
        self._number = number_of(self._head)

    dtype = property(lambda self: self.info.dtype, doc="NumPy's type of the values; \"bfloat16\" without ml_dtypes.")
    shape = property(lambda self: self.info.shape, doc="Extents, slowest axis first.")
    ndim = property(lambda self: len(self.info.shape), doc="Number of axes.")
    nbytes = property(lambda self: self.info.nbytes, doc="Bytes of the values in memory.")

    @property
    def size(self) -> int:
        """Number of values."""
        count = 1
        for extent in self.info.shape:
            count *= extent
        return count

    @property
    def chunks(self) -> tuple[int, ...]:
        """A shape of blocks, of 1 to 16 MiB, that are read well: what dask takes."""
        return advise_chunks(self.info.shape, self.info.dtype)

    def __len__(self) -> int:
        if not self.info.shape:
            raise TypeError("an array without axes has no length")
        return self.info.shape[0]

    def __getitem__(self, key: Any) -> Decoded:
        begin, end, rest = taken(key, self.info.shape)
        values = self._box(begin, end)
        return values[rest] if isinstance(values, np.ndarray) else type(values)(values.array[rest], values.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("the values are decoded, which takes a new array")
        values = np.asarray(self[...])
        return values if dtype is None else values.astype(dtype, copy=False)

    def level(self, level: int) -> Decoded:
        """The array at a coarse level, where info.levels has it; reads the bytes that the level needs."""
        shape, _ = level_shape(self._head.address, self._head.size, self.ndim, level)
        return self._decoded(shape, lambda context, reading, c: context.run(library().source_level, reading, level, c))

    def _box(self, begin: list[int], end: list[int]) -> Decoded:
        corners = _EXTENTS(*begin), _EXTENTS(*end)
        shape = tuple(b - a for a, b in zip(begin, end))
        return self._decoded(shape, lambda context, reading, c: context.run(library().source_region, reading, *corners, c))

    def _decoded(self, shape: tuple[int, ...], call: Any) -> Decoded:
        array = empty(self._number, shape, self._memory_limit)
        values = Given(self._number, shape, (), array.__array_interface__["data"][0], array)
        reading = Reading(self._bytes)
        limit = limit_beside(self._memory_limit, values.nbytes)
        with use_context(self._threads, limit, nbytes=values.nbytes) as context, problems_of([reading]):
            call(context, byref(reading.c), byref(values.c))
        return finished(self._number, array)

    def close(self) -> None:
        self._bytes.close()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise TypeError("a File of an object cannot be pickled; open a path")
        return _reopened, (self.path, self._threads, self._memory_limit)

    def __repr__(self) -> str:
        return f"<pyquern.File {self.path or 'of an object'}: {self.dtype} {self.shape}, {self.info.enforced}>"


def number_of(head: Bytes) -> int:
    found = _capi.StreamInfo(struct_size=ctypes.sizeof(_capi.StreamInfo))
    library().check(library().inspect(head.address, head.size, byref(found)))
    return int(found.dtype)


def _reopened(path: str, threads: int, memory_limit: int | None) -> File:
    return File(path, threads=threads, memory_limit=memory_limit)


def taken(key: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int], tuple[Any, ...]]:
    """Basic indexing as corners of a box, and what is then taken of it."""
    parts = list(key) if isinstance(key, tuple) else [key]
    given = sum(part is not None and part is not Ellipsis for part in parts)
    gaps = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(gaps) > 1 or given > len(shape):
        raise IndexError(f"{given} indices and {len(gaps)} times ... for an array of {len(shape)} axes")
    at = gaps[0] if gaps else len(parts)
    parts[at:at + 1] = [slice(None)] * (len(shape) - given)
    begin: list[int] = []
    end: list[int] = []
    rest: list[Any] = []
    for part in parts:
        if part is None:
            rest.append(None)
            continue
        extent = shape[len(begin)]
        first, last, then = _axis(part, extent, len(begin))
        begin.append(first)
        end.append(last)
        rest.append(then)
    return begin, end, tuple(rest)


def _axis(part: Any, extent: int, axis: int) -> tuple[int, int, Any]:
    """(begin, end) of what is decoded of an axis, and the index into that."""
    if isinstance(part, slice):
        taken = range(*part.indices(extent))
        if not taken:
            return 0, 0, slice(None)
        first, last = min(taken[0], taken[-1]), max(taken[0], taken[-1])
        return first, last + 1, slice(None, None, taken.step)
    try:
        place = operator.index(part)
    except TypeError:
        raise TypeError(f"axis {axis} is indexed by a {type(part).__name__}: a File takes integers, slices, ... and None; "
                        "for lists and masks, take the box around them first") from None
    if not -extent <= place < extent:
        raise IndexError(f"index {place} is out of bounds for axis {axis} with {extent} places")
    place %= extent
    return place, place + 1, 0


def open_file(file: Any, mode: str = "r", *, threads: int = 1, memory_limit: int | None = None) -> File:
    """A File: the array of a .qn file, of which only what is asked for is read and decoded. `file`: a path, or an object with
    read() and seek(), such as those of fsspec. threads, memory_limit: as in decompress()."""
    if mode != "r":
        raise ValueError(f"mode is {mode!r}: files are opened for reading, 'r'; pyquern.save() writes them")
    return File(file, threads=threads, memory_limit=memory_limit)


def save(path: str | os.PathLike[str], array: ArrayLike, *, abs: float | None = None, rel: float | None = None,
         pwrel: float | None = None, psnr: float | None = None, ratio: float | None = None, lossless: bool = False,
         digits: int | None = None, information: float | None = None, codec: str = "auto", goal: str = "ratio",
         effort: int | None = None, fill: Any = None, metadata: bytes = b"", settings: Mapping[str, object] | None = None,
         threads: int = 1, device: str | None = None, memory_limit: int | None = None,
         progress: ProgressFunction | None = None) -> Report:
    """Compresses an array into the .qn file at `path`, which is there whole or not at all: it is written beside, synced and
    renamed. Arguments and errors: those of compress(), and OSError."""
    bound = chosen_bound(kinds=(*KINDS, *PRECISION_KINDS), abs=abs, rel=rel, pwrel=pwrel, psnr=psnr, ratio=ratio, lossless=lossless,
                         digits=digits, information=information)
    refuse_folder(path)
    stream, report = compress_reported(array, bound, codec=codec, goal=goal, effort=effort, fill=fill, metadata=metadata,
                                       settings=settings, threads=threads, device=device, memory_limit=memory_limit,
                                       progress=progress)
    write_whole(path, lambda file: file.write(stream), new_mode())
    return report


def refuse_folder(path: str | os.PathLike[str]) -> None:
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)


def write_whole(path: str | os.PathLike[str], write: Callable[[BinaryIO], object], mode: int,
                before: Callable[[], None] = lambda: None) -> None:
    """The file at `path` is there whole or not at all: `write` fills one beside it, which is synced, and renamed after a last
    look by `before`."""
    folder, name = os.path.split(os.path.abspath(os.fspath(path)))
    try:
        descriptor, beside = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=folder)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, path) from None  # of the name that was given
    try:
        with open(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        before()
        os.replace(beside, os.path.join(folder, name))
    except BaseException:
        os.unlink(beside)
        raise
    _sync_folder(folder)


def new_mode() -> int:
    """Of a file that a program creates."""
    return 0o666 & ~_umask()


def _umask() -> int:
    # There is no call that reads it alone, and setting it would show in other threads.
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o077


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # a file system that cannot sync folders
    finally:
        os.close(descriptor)
