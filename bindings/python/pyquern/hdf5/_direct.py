"""Whole datasets chunk by chunk past HDF5's pipeline: the calling thread talks to HDF5, all threads compress. Bytes are those
that the filter writes."""
from __future__ import annotations

import ctypes
import itertools
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from .._calls import ProgressFunction
from .._errors import Cancelled, Error
from .._hdf5_libraries import FILTER_ID
from ..core import decompress
from ._register import plugin

_TEXT = 512


def words_of(dataset: Any) -> tuple[int, ...] | None:
    """cd_values of the filter; None when the dataset does not have it. h5py before 3.8 shows the first 16 alone."""
    properties = dataset.id.get_create_plist()
    for place in range(properties.get_nfilters()):
        number, _, words, _ = properties.get_filter(place)
        if number == FILTER_ID:
            return tuple(word & 0xFFFFFFFF for word in words)
    return None


def is_alone(dataset: Any) -> bool:
    """Whether quern is the dataset's only filter and its words are all shown."""
    words = words_of(dataset)
    return words is not None and len(words) >= 18 and dataset.id.get_create_plist().get_nfilters() == 1 and _shown_right()


def _shown_right() -> bool:
    import h5py

    return tuple(h5py.version.version_tuple[:2]) >= (3, 8)


def workers(threads: int) -> int:
    return threads if threads else len(os.sched_getaffinity(0))


def encode(words: tuple[int, ...], chunk: Any) -> bytes:
    """The stream of one chunk, in the machine's byte order and C order."""
    given = (ctypes.c_uint * len(words))(*words)
    room = chunk.nbytes + chunk.nbytes // 1000 + 1024
    stream, size, text = np.empty(room, np.uint8), ctypes.c_uint64(), ctypes.create_string_buffer(_TEXT)
    address = chunk.__array_interface__["data"][0]
    if plugin().quern_hdf5_any_encode(given, len(words), address, chunk.nbytes, stream.__array_interface__["data"][0], room,
                                      ctypes.byref(size), text, _TEXT) != 0:
        raise Error(1, text.value.decode("utf-8", "replace"))
    return stream[:size.value].tobytes()


def _corners(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(0, extent, chunk) for extent, chunk in zip(shape, chunks)))


def _box(corner: tuple[int, ...], shape: tuple[int, ...], chunks: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(first, min(first + chunk, extent)) for first, chunk, extent in zip(corner, chunks, shape))


def _in_order(pool: ThreadPoolExecutor, jobs: Iterator[Callable[[], Any]], ahead: int) -> Iterator[Any]:
    """Results of the jobs, in order, with a few under way."""
    running: deque[Future[Any]] = deque()
    try:
        for job in jobs:
            running.append(pool.submit(job))
            if len(running) >= ahead:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()


def _report(progress: ProgressFunction | None, done: int, total: int) -> None:
    if progress is not None and progress(done, total) is False:
        raise Cancelled(63, f"progress returned False after {done} of {total} elements")


def write_chunks(dataset: Any, array: Any, threads: int, progress: ProgressFunction | None) -> None:
    """`array` has the dataset's shape and anything that indexes as NumPy does."""
    words = words_of(dataset)
    assert words is not None
    shape, chunks, native = dataset.shape, dataset.chunks, dataset.dtype.newbyteorder("=")
    padding = np.zeros((), native) if dataset.fillvalue is None else np.asarray(dataset.fillvalue).astype(native)

    def job(corner: tuple[int, ...]) -> tuple[tuple[int, ...], int, bytes]:
        part = np.asarray(array[_box(corner, shape, chunks)])
        count = part.size
        chunk = part.astype(native, order="C", copy=False) if part.shape == chunks else np.full(chunks, padding, native)
        if part.shape != chunks:
            chunk[tuple(slice(0, extent) for extent in part.shape)] = part
        return corner, count, encode(words, np.ascontiguousarray(chunk))

    done, total, number = 0, dataset.size, workers(threads)
    with ThreadPoolExecutor(number) as pool:
        corners = _corners(shape, chunks)
        for corner, count, stream in _in_order(pool, (lambda c=c: job(c) for c in corners), 2 * number):  # type: ignore[misc]
            dataset.id.write_direct_chunk(corner, stream)
            done += count
            _report(progress, done, total)


def read_chunks(dataset: Any, selection: tuple[slice, ...], out: Any, threads: int) -> None:
    """The box of `selection` (step 1) into `out`, which has its shape."""
    shape, chunks, native = dataset.shape, dataset.chunks, dataset.dtype.newbyteorder("=")
    begins = tuple(part.start for part in selection)
    ends = tuple(part.stop for part in selection)
    first = tuple(begin // chunk * chunk for begin, chunk in zip(begins, chunks))
    corners = [tuple(a + b for a, b in zip(first, corner)) for corner in _corners(
        tuple(end - start for end, start in zip(ends, first)), chunks)]

    def place(corner: tuple[int, ...], values: Any) -> None:
        low = tuple(max(a, b) for a, b in zip(corner, begins))
        high = tuple(min(a + c, b) for a, c, b in zip(corner, chunks, ends))
        target = tuple(slice(a - b, c - b) for a, b, c in zip(low, begins, high))
        source = tuple(slice(a - b, c - b) for a, b, c in zip(low, corner, high))
        out[target] = values[source]

    def job(corner: tuple[int, ...], stream: bytes) -> Callable[[], None]:
        def run() -> None:
            chunk = np.empty(chunks, native)
            decompress(stream, out=chunk, memory_limit=chunk.nbytes * 8 + (64 << 20))
            place(corner, chunk)

        return run

    def jobs() -> Iterator[Callable[[], None]]:
        for corner in corners:
            stream = _stored(dataset, corner)
            if stream is None:
                box = _box(corner, shape, chunks)
                values = dataset[box]  # never written, or stored as it is
                place(corner, values)
            else:
                yield job(corner, stream)

    number = workers(threads)
    with ThreadPoolExecutor(number) as pool:
        for _ in _in_order(pool, jobs(), 2 * number):
            pass


def _stored(dataset: Any, corner: tuple[int, ...]) -> bytes | None:
    """The bytes of a chunk that has a stream."""
    info = dataset.id.get_chunk_info_by_coord(corner)
    if info.byte_offset is None or info.size == 0 or info.filter_mask != 0:
        return None
    mask, stream = dataset.id.read_direct_chunk(corner)
    return bytes(stream) if mask == 0 else None
