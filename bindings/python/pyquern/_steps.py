"""Time steps, each predicted from what the one before decodes to where that pays: in memory, and in files."""
from __future__ import annotations

import contextlib
import ctypes
import operator
import os
import shutil
import stat
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ctypes import POINTER, byref
from typing import Any, BinaryIO

import numpy as np

from . import _capi
from ._array import ArrayLike, Bytes, Decoded, Given, dtype_of, empty, finished, given, limit_beside, target
from ._bounds import KINDS, PRECISION_KINDS, Bound, chosen_bound
from ._calls import ProgressFunction, use_context
from ._capi import library
from ._errors import CorruptStream, Error, MissingReference, Unsupported
from ._file import Reading, new_mode, number_of, opened_bytes, problems_of, refuse_folder, taken, whole_of, write_whole
from ._tensors import TypedArray
from .core import Report, StreamInfo, compress_reported, describe, inspected, read_header, shape_of

#: A key step at least each so many steps, and the most that may be asked for.
_KEY_EVERY, _MOST_KEY_EVERY = 16, 256
_U64 = ctypes.c_uint64
#: Bounds of steps that may be predicted; those of kind digits may be found to be such a one.
_PREDICTED_KINDS = ("abs", "rel", "digits", "information")


def _checked_key_every(key_every: Any) -> int:
    try:
        number = operator.index(key_every)
    except TypeError:
        number = 0
    if isinstance(key_every, bool) or not 1 <= number <= _MOST_KEY_EVERY:
        raise ValueError(f"key_every is {key_every!r}: give a whole number from 1 (every step alone) to {_MOST_KEY_EVERY}")
    return number


class Session:
    """Arrays of one type and shape in order of time. compress() predicts each from what the last one decodes to where that makes
    it smaller (codec stencil, bounds abs and rel), or codes it alone, as a key step: at least each `key_every`-th. decompress()
    takes the streams in the same order, beginning with any key step. Errors never add up: each step keeps its own bound.

    One Session writes, another reads. It keeps the values of one step. Threads take turns. RuntimeError where a function that
    a call of a Session calls, such as progress, uses that Session, too."""

    def __init__(self, *, key_every: int = _KEY_EVERY) -> None:
        self._handle = ctypes.c_void_p()
        self._key_every = _checked_key_every(key_every)
        self._lock = threading.RLock()
        #: The process that is in a call; 0: none. A fork may copy it, and the lock of a thread that it does not copy.
        self._in_call = 0
        self._create()

    def _create(self) -> None:
        library().check(library().session_create(None, self._key_every, byref(self._handle)))

    def _destroy(self) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            library().session_destroy(handle)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._destroy()

    @contextlib.contextmanager
    def _call(self) -> Iterator[ctypes.c_void_p]:
        """The handle, for one call at a time."""
        if self._in_call in (0, os.getpid()):
            with self._lock:
                if not self._in_call:
                    self._in_call = os.getpid()
                    try:
                        if not self._handle:
                            self._create()
                        yield self._handle
                    finally:
                        self._in_call = 0
                    return
        raise RuntimeError("this Session is in a call: use another one")

    def compress(self, array: ArrayLike, *, abs: float | None = None, rel: float | None = None, pwrel: float | None = None,
                 psnr: float | None = None, ratio: float | None = None, lossless: bool = False, digits: int | None = None,
                 information: float | None = None, codec: str = "auto", goal: str = "ratio", effort: int | None = None,
                 fill: Any = None, metadata: bytes = b"", settings: Mapping[str, object] | None = None, threads: int = 1,
                 memory_limit: int | None = None, progress: ProgressFunction | None = None) -> bytes:
        """The stream of the next step; arguments and errors are those of pyquern.compress(). After an error the next step is a
        key step. Streams of a session one after another are a file of steps. Takes about twice as long as compress()."""
        bound = chosen_bound(kinds=(*KINDS, *PRECISION_KINDS), abs=abs, rel=rel, pwrel=pwrel, psnr=psnr, ratio=ratio,
                             lossless=lossless, digits=digits, information=information)
        stream: bytes
        stream, _ = self._compress(array, bound, bytes, codec=codec, goal=goal, effort=effort, fill=fill, metadata=metadata,
                                   settings=settings, threads=threads, memory_limit=memory_limit, progress=progress)
        return stream

    def _compress(self, array: ArrayLike | Given, bound: Bound, take: Callable[[memoryview], Any],
                  **arguments: Any) -> tuple[Any, Report]:
        """What `take` makes of the stream of the next step, and its report."""
        with self._call() as handle:
            try:
                stream, report = compress_reported(array, bound, device=None, session=handle, **arguments)
                return take(stream), report
            except BaseException:
                # The library may have made a step that nobody gets: no later one may be predicted from it.
                self._destroy()
                raise

    def decompress(self, stream: Any, *, out: Any = None, threads: int = 1, memory_limit: int | None = None,
                   progress: ProgressFunction | None = None) -> Decoded:
        """The values of the stream after the one that this session decoded last, or of a key step; arguments as in
        pyquern.decompress(). MissingReference, with the hash, where it was predicted from another array."""
        data = Bytes(stream, "the stream")
        found = inspected(data.address, data.size)
        shape = shape_of(found)
        array = empty(found.dtype, shape, memory_limit) if out is None else None
        values = target(out, found.dtype, shape) if array is None else \
            Given(found.dtype, shape, (), array.__array_interface__["data"][0], array)
        limit = memory_limit if array is None else limit_beside(memory_limit, values.nbytes)
        with self._call() as handle, use_context(threads, limit, progress=progress, nbytes=values.nbytes) as context:
            context.run(library().session_decompress, handle, data.address, data.size, byref(values.c))
        return out if array is None else finished(found.dtype, array)

    def _resume(self, stream: bytes, values: Given) -> None:
        data = Bytes(stream, "the stream")
        with self._call() as handle, use_context(1, None) as context:
            context.run(library().session_resume, handle, data.address, data.size, byref(values.c))


class Steps(Sequence[Decoded]):
    """The time steps of a file, as `quern compress --append`, append() or streams of a Session one after another make it.

    `steps[3]` is an array, `steps[3, 10:20, :, 5]` a box of it: the bytes that the box needs are read of the step and of those
    back to its key step, at most `key_every`. `steps[2:6]` and iteration decode each step once. `shape` and `dtype` are those
    of a step; `info(3)` says what its header says. Any thread may read.

    Errors: MissingReference where a step was predicted from one that is not in the file, or that was altered; CorruptStream,
    IndexError, OSError, ValueError once closed."""

    def __init__(self, file: Any, *, threads: int = 1, memory_limit: int | None = None) -> None:
        self.path, self._bytes = opened_bytes(file)
        self._threads, self._memory_limit = threads, memory_limit
        self._infos: dict[int, tuple[StreamInfo, int]] = {}
        self._spans = self._find_streams()
        self.info(0)

    dtype = property(lambda self: self.info(0).dtype, doc="NumPy's type of the values; \"bfloat16\" without ml_dtypes.")
    shape = property(lambda self: self.info(0).shape, doc="Extents of a step, slowest axis first.")

    def _find_streams(self) -> list[tuple[int, int]]:
        if self._bytes.size == 0:
            raise CorruptStream(_capi.TRUNCATED, f"{self.path or 'the file'} is empty: pyquern.append() writes files of steps")
        # What is no stream is told by its beginning better than by an end that is not there.
        read_header(self._bytes.read, self._bytes.size)
        lib, count, capacity = library(), _U64(), 64
        while True:
            offsets, sizes, reading = (_U64 * capacity)(), (_U64 * capacity)(), Reading(self._bytes)
            with problems_of([reading]):
                lib.check(lib.source_streams(byref(reading.c), offsets, sizes, capacity, byref(count)))
            if count.value <= capacity:
                return list(zip(offsets[:count.value], sizes[:count.value]))
            capacity = count.value

    def _head(self, step: int) -> tuple[StreamInfo, int]:
        """What a header says, and the number of its type."""
        found = self._infos.get(step)
        if found is None:
            begin, size = self._spans[step]
            head = Bytes(read_header(lambda offset, count: whole_of(self._bytes, begin + offset, count), size), "the header")
            found = self._infos[step] = describe(head.address, head.size), number_of(head)
        return found

    def info(self, step: int) -> StreamInfo:
        """What the header of a step says; of `reference` and `steps_to_key` too."""
        return self._head(self._place(step))[0]

    def stream(self, step: int) -> bytes:
        """The bytes of a step, as a stream by itself."""
        begin, size = self._spans[self._place(step)]
        return whole_of(self._bytes, begin, size)

    def __len__(self) -> int:
        return len(self._spans)

    def _place(self, step: Any) -> int:
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise TypeError(f"steps are indexed by a {type(step).__name__}: give the number of a step, then a box of it")
        if not -len(self) <= step < len(self):
            raise IndexError(f"step {step} of {len(self)} steps")
        return int(step) % len(self)

    def _key_of(self, step: int) -> int:
        """The key step that a step needs; MissingReference where the file begins after it."""
        info = self.info(step)
        if info.steps_to_key > step:
            raise MissingReference(26, f"step {step} was predicted from the array whose values have the hash {info.reference}; of "
                                       f"the steps before it, {info.steps_to_key - step} are missing")
        return step - info.steps_to_key

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            places = range(*key.indices(len(self)))
            number = self._head(0)[1]
            together = empty(number, (len(places), *self.shape), self._memory_limit)
            for step, values in self._run(sorted(places), limit_beside(self._memory_limit, together.nbytes)):
                together[places.index(step)] = values.array if isinstance(values, TypedArray) else values
            return finished(number, together)
        step, box = (key[0], key[1:]) if isinstance(key, tuple) and key else (key, ())
        return self._box(self._place(step), box)

    def __iter__(self) -> Iterator[Decoded]:
        return (values for _, values in self._run(range(len(self)), self._memory_limit))

    def _run(self, wanted: Iterable[int], memory_limit: int | None) -> Iterator[tuple[int, Decoded]]:
        """Of these steps, in order of time; of the others, what they need is decoded, once."""
        session, decoded = Session(), 0
        for step in wanted:
            for place in range(max(self._key_of(step), decoded), step + 1):
                self._check_step(place)
                values = session.decompress(self.stream(place), threads=self._threads, memory_limit=memory_limit)
            yield step, values
            decoded = step + 1

    def _check_step(self, step: int) -> None:
        found, first = self.info(step), self.info(0)
        if (found.dtype, found.shape) != (first.dtype, first.shape):
            raise CorruptStream(22, f"step {step} is {found.dtype} of {found.shape}, the first is {first.dtype} of {first.shape}")

    def _box(self, step: int, key: Any) -> Decoded:
        info, number = self._head(step)
        begin, end, rest = taken(key, info.shape)
        shape = tuple(b - a for a, b in zip(begin, end))
        readings = [Reading(self._bytes, *self._spans[i]) for i in range(self._key_of(step), step + 1)]
        chain = (POINTER(_capi.Source) * len(readings))(*(ctypes.pointer(reading.c) for reading in readings))
        array = empty(number, shape, self._memory_limit)
        values = Given(number, shape, (), array.__array_interface__["data"][0], array)
        limit = limit_beside(self._memory_limit, values.nbytes)
        with use_context(self._threads, limit, nbytes=values.nbytes) as context, problems_of(readings):
            context.run(library().chain_region, chain, len(readings), _capi.Extents(*begin), _capi.Extents(*end), byref(values.c))
        return finished(number, array[rest])

    def close(self) -> None:
        self._bytes.close()

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise TypeError("Steps of an object cannot be pickled; open a path")
        return _reopened, (self.path, self._threads, self._memory_limit)

    def __repr__(self) -> str:
        return f"<pyquern.Steps {self.path or 'of an object'}: {len(self)} of {self.dtype} {self.shape}>"


def _reopened(path: str, threads: int, memory_limit: int | None) -> Steps:
    return Steps(path, threads=threads, memory_limit=memory_limit)


def open_steps(file: Any, *, threads: int = 1, memory_limit: int | None = None) -> Steps:
    """The Steps of a file. `file`: a path, or an object with read() and seek(). threads, memory_limit: as in decompress()."""
    return Steps(file, threads=threads, memory_limit=memory_limit)


def append(path: str | os.PathLike[str], *arrays: ArrayLike, abs: float | None = None, rel: float | None = None,
           pwrel: float | None = None, psnr: float | None = None, ratio: float | None = None, lossless: bool = False,
           digits: int | None = None, information: float | None = None, codec: str = "auto", goal: str = "ratio",
           effort: int | None = None, fill: Any = None, metadata: bytes = b"", settings: Mapping[str, object] | None = None,
           key_every: int = _KEY_EVERY, threads: int = 1, memory_limit: int | None = None,
           progress: ProgressFunction | None = None) -> list[Report]:
    """Puts arrays as time steps behind those of the file at `path`, which is made where it is not there: as `quern compress
    --append` does. Each is predicted from the step before where that makes it smaller, and a key step comes at least each
    `key_every` steps (1 to 256). Other arguments and errors: those of compress(), and OSError; ValueError for another type or
    shape than the file's. A report for each array.

    A copy of the file with its new steps takes its place at the end: whatever happens, the old one is whole. So several
    arrays in one call cost one copy. Where the last step cannot be decoded, a RuntimeWarning says so and the next one is a
    key step. One program at a time writes a file: where another one has changed it meanwhile, that is an OSError."""
    bound = chosen_bound(kinds=(*KINDS, *PRECISION_KINDS), abs=abs, rel=rel, pwrel=pwrel, psnr=psnr, ratio=ratio, lossless=lossless,
                         digits=digits, information=information)
    if not arrays:
        raise TypeError("give at least one array: append(path, array, abs=0.01)")
    steps = _alike(os.fspath(path), arrays)
    refuse_folder(path)
    place, session = os.path.realpath(path), Session(key_every=key_every)
    found = os.stat(place) if os.path.exists(place) else None
    if found is not None:
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{os.fspath(path)} is no regular file: steps are put behind those of one")
        _go_on(session, os.fspath(path), steps[0], key_every, threads, memory_limit,
               predicted=bound.kind in _PREDICTED_KINDS, codec=codec)
    reports: list[Report] = []

    def write(file: BinaryIO) -> None:
        if found is not None:
            with open(place, "rb") as old:
                shutil.copyfileobj(old, file, 1 << 20)
        for step in steps:
            _, report = session._compress(step, bound, file.write, codec=codec, goal=goal, effort=effort, fill=fill,
                                          metadata=metadata, settings=settings, threads=threads, memory_limit=memory_limit,
                                          progress=progress)
            reports.append(report)

    def unchanged() -> None:
        now = os.stat(place) if os.path.exists(place) else None
        if _state(now) != _state(found):
            raise OSError(f"{os.fspath(path)} was changed by another program meanwhile: append the steps again")

    write_whole(place, write, new_mode() if found is None else stat.S_IMODE(found.st_mode), unchanged)
    return reports


def _state(found: os.stat_result | None) -> tuple[int, ...]:
    return () if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _alike(path: str, arrays: Sequence[ArrayLike]) -> list[Given]:
    steps = [given(array) for array in arrays]
    for step in steps[1:]:
        _check_alike(path, step, steps[0].dtype, steps[0].shape)
    return steps


def _check_alike(path: str, step: Given, dtype: int, shape: tuple[int, ...]) -> None:
    if (step.dtype, step.shape) != (dtype, shape):
        raise ValueError(f"{path}: a step is {dtype_of(step.dtype)} of {step.shape}, the steps before it {dtype_of(dtype)} of "
                         f"{shape}: give an array of that type and shape, or another path")


def _go_on(session: Session, path: str, step: Given, key_every: int, threads: int, memory_limit: int | None, *,
           predicted: bool, codec: str) -> None:
    """Makes the session go on after the last step of a file, where `step` may be predicted from that."""
    with Steps(path, threads=threads, memory_limit=memory_limit) as steps:
        last = len(steps) - 1
        info, number = steps._head(last)
        _check_alike(path, step, number, info.shape)
        if not predicted or codec not in ("auto", info.codec) or info.steps_to_key + 1 >= key_every:
            return
        try:
            values = steps[last]
            session._resume(steps.stream(last), given(values))
        except (Error, MemoryError) as problem:
            known = isinstance(problem, (CorruptStream, MissingReference, Unsupported, MemoryError))
            if not known and getattr(problem, "status", None) != _capi.MISSING_MODEL:
                raise
            warnings.warn(f"{path}: the next step is a key step: the last one cannot be decoded ({problem})", RuntimeWarning,
                          stacklevel=3)
