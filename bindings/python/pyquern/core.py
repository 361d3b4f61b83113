"""Arrays to streams and back, in memory; what streams say; whether their bound holds."""
from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _capi
from ._array import ArrayLike, Bytes, Decoded, Given, dtype_of, empty, fill_elements, finished, given, limit_beside, target
from ._bounds import KINDS, PRECISION_KINDS, Bound, bound_from, checked_effort, chosen_bound
from ._calls import Context, ParamsKey, ProgressFunction, use_context, use_params
from ._capi import library
from ._errors import BoundNotMet, CorruptStream, DeviceError, InvalidArgument, Unsupported

__all__ = ["Precision", "Quality", "Report", "StreamInfo", "Verdict", "compare", "compress", "compress_bound", "decompress",
           "hash_values", "info", "precision", "verify"]

_U64, _EXTENTS = ctypes.c_uint64, _capi.Extents
#: Most bytes of a header: 1 MiB of metadata, 1 MiB of the codec's own, and small things.
_HEADER_READ = 1 << 16


@dataclass(frozen=True)
class Report:
    """What became of a compression: bytes of array and stream, the bound that holds, the codec that wrote it; `psnr_db` where
    it was measured, else NaN."""

    input_bytes: int
    output_bytes: int
    enforced: Bound
    codec: str
    chunks: int
    raw_chunks: int
    masked_elements: int
    psnr_db: float
    ran_on: str

    @property
    def ratio(self) -> float:
        """Raw bytes over stream bytes."""
        return self.input_bytes / self.output_bytes


@dataclass(frozen=True)
class Precision:
    """A bound that was found from an array's values, of kind "abs", "pwrel" or "lossless". By information: how many bits of the
    mantissa have the share, along which axis; None where that is not known, and by digits."""

    bound: Bound
    mantissa_bits: int | None
    axis: int | None


@dataclass(frozen=True)
class StreamInfo:
    """What a stream's header says. Shapes: slowest axis first. `requested` and `enforced`: the bound that was asked for, and
    the one of kind abs, pwrel or lossless that every value keeps. `levels`: shapes of the coarse levels 1, 2, ... `reference`: of
    a stream that was predicted from another array the hash of that one's values, as hash_values() has it, else None;
    `steps_to_key`: how many streams have to be decoded before this one."""

    dtype: Any
    shape: tuple[int, ...]
    requested: Bound
    enforced: Bound
    codec: str
    chunks: int
    levels: tuple[tuple[int, ...], ...]
    fills: tuple[Any, ...]
    metadata: bytes
    version: str
    nbytes: int
    reference: str | None = None
    steps_to_key: int = 0


@dataclass(frozen=True)
class Verdict:
    """`violations`: elements that miss the bound, `specials_lost` among them: NaN, Inf, fill values and signs of zero that did
    not come back bit for bit. `first_index`: of the first violation, in C order; `first_error`: its |x - x'|."""

    violations: int
    specials_lost: int
    first_index: int
    first_error: float

    @property
    def ok(self) -> bool:
        return self.violations == 0


@dataclass(frozen=True)
class Quality:
    """How far `b` is from `a`, over the elements that are valid in `a`: numbers, and no fill values. NaN where a measure does
    not apply. `psnr_db` is infinity when nothing differs."""

    elements: int
    valid: int
    specials_lost: int
    min: float
    max: float
    max_error: float
    max_pointwise_rel: float
    mse: float
    psnr_db: float
    nrmse: float
    ssim: float
    max_ulp: int


def _sized(struct: type[ctypes.Structure]) -> Any:
    return struct(struct_size=ctypes.sizeof(struct))


def _fields(struct: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in names}


@functools.lru_cache(maxsize=1)
def codec_names() -> dict[int, str]:
    lib, names = library(), {0: "stored"}
    for index in range(lib.codec_count()):
        found = _sized(_capi.CodecInfo)
        lib.check(lib.codec_get(index, byref(found)))
        names[found.id] = found.name.decode()
    return names


def _codec_name(number: int) -> str:
    return codec_names().get(number, f"unknown codec {number}")


def device_of(device: str | None) -> tuple[int, int]:
    """(memory space, ordinal) that work runs on: None the host, "cuda" or "cuda:N", "auto" the first device where this build
    and the driver have one."""
    if device is None or device == "cpu":
        return _capi.HOST, 0
    if device == "auto":
        try:
            with use_context(1, None, device=(_capi.CUDA, 0)):
                return _capi.CUDA, 0
        except (DeviceError, NotImplementedError):
            return _capi.HOST, 0
    name, _, number = device.partition(":")
    if name != "cuda" or (number and not number.isdigit()):
        raise ValueError(f"device is {device!r}: give None, 'cuda', 'cuda:1' or 'auto'")
    return _capi.CUDA, int(number or 0)


def params_key(bound: Bound, array: Given, *, codec: str, goal: str, fill: Any, metadata: bytes,
               settings: Mapping[str, object] | None, effort: int | None = None) -> ParamsKey:
    """A request, in the form that finds a thread's parameters again."""
    items = [("codec", codec), ("goal", goal), *((str(k), _text(v)) for k, v in (settings or {}).items())]
    for name, value in items[:2]:
        if not isinstance(value, str):
            raise TypeError(f"{name} is {value!r}: give a name, such as 'auto' for codec and 'ratio' for goal")
    number = checked_effort(effort, goal)
    if number is not None:
        items.append(("effort", str(number)))
    if codec != "auto" and codec not in codec_names().values():
        raise Unsupported(41, f"there is no codec {codec!r}; this library has auto, {', '.join(list(codec_names().values())[1:])}")
    return (bound.number, bound.value, tuple(items), array.dtype, fill_elements(fill, array.dtype), bytes(metadata))


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def room_for(array: Given, metadata_bytes: int) -> int:
    """Bytes that no stream of the array exceeds."""
    lib, room = library(), _U64()
    lib.check(lib.compress_bound(byref(array.c), None, byref(room)))
    return int(room.value) + metadata_bytes


def compress_into(array: Given, key: ParamsKey, address: int, capacity: int, *, threads: int, device: tuple[int, int],
                  memory_limit: int | None, progress: ProgressFunction | None,
                  session: ctypes.c_void_p | None = None) -> Report:
    """Compresses into memory at `address`; the report says how many bytes were written."""
    lib, size, report = library(), _U64(), _sized(_capi.Report)
    step = (lib.compress,) if session is None else (lib.session_compress, session)
    with use_context(threads, memory_limit, progress=progress, nbytes=array.nbytes, device=device) as context:
        with use_params(key) as params:
            context.run(*step, params, byref(array.c), address, capacity, byref(size), byref(report))
    return Report(input_bytes=report.input_bytes, output_bytes=size.value,
                  enforced=bound_from(report.enforced_kind, report.enforced_value), codec=_codec_name(report.codec_id),
                  chunks=report.chunks, raw_chunks=report.raw_chunks, masked_elements=report.masked_elements,
                  psnr_db=report.psnr_db, ran_on="cuda" if report.ran_on == _capi.CUDA else "cpu")


def precision_of(array: Given, asked: Bound, *, fill: Any, threads: int, memory_limit: int | None) -> Precision:
    """The bound that keeps what `asked`, of kind "digits" or "information", wants."""
    lib, found = library(), _sized(_capi.Precision)
    digits = asked.kind == "digits"
    if digits and not (asked.value.is_integer() and 1 <= asked.value <= 17):
        raise ValueError(f"digits is {asked.value:g}: give a whole number from 1 to 17")
    if not digits and not 0 < asked.value < 1:
        raise ValueError(f"information is {asked.value:g}: give a share above 0 and below 1, such as 0.99")
    key = params_key(Bound("lossless", 0.0), array, codec="auto", goal="ratio", fill=fill, metadata=b"", settings=None)
    with use_context(threads, memory_limit) as context, use_params(key) as params:
        if digits:
            context.run(lib.precision_of_digits, params, byref(array.c), int(asked.value), byref(found))
        else:
            context.run(lib.precision_of_information, params, byref(array.c), asked.value, byref(found))
    known = found.mantissa_bits >= 0
    return Precision(bound_from(found.kind, found.value), found.mantissa_bits if known else None, found.axis if known else None)


def precision(array: ArrayLike, *, digits: int | None = None, information: float | None = None, fill: Any = None, threads: int = 1,
              memory_limit: int | None = None) -> Precision:
    """The bound under which every valid value keeps so many significant decimal digits (1 to 17), or the bits of the mantissa
    that have this share of the bitwise real information (above 0, below 1; Kloewer et al. 2021, doi:10.1038/s43588-021-00156-2).

    Give exactly one. array: floating-point numbers, as compress() takes them. Errors: TypeError, ValueError, Unsupported
    (integers). O(n), by information O(n * axes)."""
    asked = chosen_bound(kinds=PRECISION_KINDS, digits=digits, information=information)
    return precision_of(given(array), asked, fill=fill, threads=threads, memory_limit=memory_limit)


def applied_bound(array: Given, asked: Bound, *, fill: Any, threads: int, memory_limit: int | None) -> Bound:
    """A bound as streams have it: what digits or information ask for is found from the values."""
    if asked.kind not in PRECISION_KINDS:
        return asked
    return precision_of(array, asked, fill=fill, threads=threads, memory_limit=memory_limit).bound


def compress_bound(array: ArrayLike, *, metadata: bytes = b"") -> int:
    """Bytes that no stream of this array exceeds: raw + 256 + raw/1000 + metadata. Its values are not read. O(1)."""
    return room_for(given(array), len(metadata))


def compress_reported(array: ArrayLike | Given, bound: Bound, *, codec: str, goal: str, fill: Any, metadata: bytes,
                      settings: Mapping[str, object] | None, threads: int, device: str | None, memory_limit: int | None,
                      progress: ProgressFunction | None, effort: int | None = None,
                      session: ctypes.c_void_p | None = None) -> tuple[memoryview, Report]:
    """The stream in new memory, and the report. `session`: the stream is the next step of that."""
    values = array if isinstance(array, Given) else given(array)
    bound = applied_bound(values, bound, fill=fill, threads=threads, memory_limit=memory_limit)
    key = params_key(bound, values, codec=codec, goal=goal, fill=fill, metadata=metadata, settings=settings, effort=effort)
    room = room_for(values, len(key[5]))
    memory = np.empty(room, np.uint8)
    report = compress_into(values, key, memory.__array_interface__["data"][0], room, threads=threads,
                           device=device_of(device), memory_limit=memory_limit, progress=progress, session=session)
    return memory.data[:report.output_bytes], report


def compress(array: ArrayLike, *, abs: float | None = None, rel: float | None = None, pwrel: float | None = None,
             psnr: float | None = None, ratio: float | None = None, lossless: bool = False, digits: int | None = None,
             information: float | None = None, codec: str = "auto", goal: str = "ratio", effort: int | None = None, fill: Any = None,
             metadata: bytes = b"", settings: Mapping[str, object] | None = None, threads: int = 1, device: str | None = None,
             memory_limit: int | None = None, progress: ProgressFunction | None = None, out: Any = None) -> bytes | memoryview:
    """The stream of an array, which decompress(), `quern decompress` and every other interface read.

    Exactly one bound, which every value keeps: abs (|x - x'| <= abs), rel (of max - min over valid values), pwrel (of |x|),
    psnr (dB), ratio (raw bytes over stream bytes), lossless=True, or one that precision() finds: digits=4, information=0.99. NaN, Inf, -0 and fill values come back bit for bit.

    array: 0 to 8 axes, slowest first, on the host or a CUDA device: NumPy, or anything with __array_interface__, __dlpack__,
    __array__ or the buffer protocol. Types: f2, f4, f8, i1 to i8, u1 to u8, bfloat16 of ml_dtypes or PyTorch; complex numbers
    become an extra last axis of 2. Big-endian arrays and those that are not C-contiguous are copied once.
    codec, goal, settings: as `quern compress` has them; `quern list` names them. goal: "ratio", "psnr" or "speed".
    effort: how much time the search for a small stream may take, from 1 (fast) to 9 (small); None is 6.
    fill: a number or at most 255 that mark missing data, compared by value. metadata: at most 1 MiB, kept for readers.
    threads: 1 the calling one alone, 0 all. device: where the work runs, None (the host), "cuda", "cuda:1", "auto".
    memory_limit: bytes the call may take besides its result. progress(done, total): in elements; False cancels (Cancelled).
    Ctrl-C in the main thread ends the call with KeyboardInterrupt.
    out: a writable buffer; then a memoryview of the part that was written is returned. compress_bound() bytes are always
    enough, fewer may be InvalidArgument.

    Errors: TypeError (no bound, two, an array of no numbers), InvalidArgument, OutOfMemory, Cancelled, DeviceError. O(n)."""
    bound = chosen_bound(kinds=(*KINDS, *PRECISION_KINDS), abs=abs, rel=rel, pwrel=pwrel, psnr=psnr, ratio=ratio, lossless=lossless,
                         digits=digits, information=information)
    if out is None:
        stream, _ = compress_reported(array, bound, codec=codec, goal=goal, effort=effort, fill=fill, metadata=metadata,
                                      settings=settings, threads=threads, device=device, memory_limit=memory_limit,
                                      progress=progress)
        return bytes(stream)
    values, room = given(array), Bytes(out, "out", writable=True)
    bound = applied_bound(values, bound, fill=fill, threads=threads, memory_limit=memory_limit)
    key = params_key(bound, values, codec=codec, goal=goal, fill=fill, metadata=metadata, settings=settings, effort=effort)
    report = compress_into(values, key, room.address, room.size, threads=threads, device=device_of(device),
                           memory_limit=memory_limit, progress=progress)
    return memoryview(out).cast("B")[:report.output_bytes]


def inspected(address: int, size: int) -> Any:
    """The struct of a header, whose stream begins at `address`."""
    lib, found = library(), _sized(_capi.StreamInfo)
    lib.check(lib.inspect(address, size, byref(found)))
    return found


def shape_of(found: Any) -> tuple[int, ...]:
    return tuple(found.extents[:found.rank])


def level_shape(address: int, size: int, rank: int, level: int) -> tuple[tuple[int, ...], int]:
    """Shape of a level, and how many there are. Needs the header alone."""
    extents, count = _EXTENTS(), ctypes.c_uint32()
    with use_context(1, None) as context:
        context.run(library().level_extents, address, size, level, byref(count), extents)
    return tuple(extents[:rank]), count.value


def describe(address: int, size: int) -> StreamInfo:
    """What a header says; the stream may end behind it."""
    lib, found = library(), inspected(address, size)
    metadata = (ctypes.c_char * max(found.metadata_bytes, 1))()
    lib.check(lib.stream_metadata(address, size, metadata, found.metadata_bytes, None))
    dtype, shape = dtype_of(found.dtype), shape_of(found)
    fills = np.zeros(found.fills, dtype if isinstance(dtype, np.dtype) else np.uint16)
    for index in range(found.fills):
        lib.check(lib.stream_fill(address, size, index, fills[index:].__array_interface__["data"][0]))
    _, levels = level_shape(address, size, found.rank, 0)
    count = 1
    for extent in shape:
        count *= extent
    return StreamInfo(
        dtype=dtype, shape=shape, requested=bound_from(found.requested_kind, found.requested_value),
        enforced=bound_from(found.enforced_kind, found.enforced_value), codec=_codec_name(found.codec_id),
        chunks=found.chunks, levels=tuple(level_shape(address, size, found.rank, k)[0] for k in range(1, levels + 1)),
        fills=tuple(fills.tolist()), metadata=metadata.raw[:found.metadata_bytes],
        version=f"{found.format_major}.{found.format_minor}", nbytes=count * fills.itemsize,
        **reference_of(address, size))


def hash_text(number: int) -> str:
    return f"{number:016x}"


def hash_values(array: ArrayLike) -> str:
    """The hash that streams name an array by that they were predicted from, as StreamInfo.reference has it: of its values'
    bytes in C order, 16 digits; type and shape are not part of it. O(bytes)."""
    number, values = _U64(), given(array)
    library().check(library().hash_values(byref(values.c), byref(number)))
    return hash_text(number.value)


def reference_of(address: int, size: int) -> dict[str, Any]:
    """What a stream was predicted from, as StreamInfo has it. Needs the header alone."""
    number, steps = _U64(), ctypes.c_uint32()
    library().check(library().stream_reference(address, size, byref(number), byref(steps)))
    return {"reference": hash_text(number.value) if steps.value else None, "steps_to_key": steps.value}


def read_header(read: Callable[[int, int], bytes], size: int) -> bytes:
    """Bytes that hold the header of a stream of `size` bytes, read with read(offset, bytes)."""
    wanted = min(size, _HEADER_READ)
    while True:
        head = read(0, wanted)
        data = Bytes(head, "the header")
        try:
            inspected(data.address, data.size)
            return head
        except CorruptStream as problem:
            if problem.status != _capi.TRUNCATED or wanted >= size:
                raise
        wanted = min(size, 4 * wanted)


def info(stream: Any) -> StreamInfo:
    """What a stream, or the .qn file at a path, says of itself. Reads the header alone, which is checked; CorruptStream where
    it is damaged."""
    if isinstance(stream, (str, os.PathLike)):
        with open(stream, "rb", buffering=0) as file:
            def read(offset: int, size: int) -> bytes:
                return os.pread(file.fileno(), size, offset)

            stream = read_header(read, os.fstat(file.fileno()).st_size)
    data = Bytes(stream, "the stream")
    return describe(data.address, data.size)


def box_of(region: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Corners of a tuple of slices with step 1; missing ones are whole axes. Slices are cut to the array, as everywhere."""
    slices = region if isinstance(region, tuple) else (region,)
    if len(slices) > len(shape):
        raise ValueError(f"region has {len(slices)} slices; the array has {len(shape)} axes")
    begin, end = [0] * len(shape), list(shape)
    for axis, part in enumerate(slices):
        if not isinstance(part, slice):
            raise TypeError(f"region is {region!r}: give a tuple of slices, such as (slice(0, 10), slice(None))")
        first, last, step = part.indices(shape[axis])
        if step != 1:
            raise ValueError(f"region has a step of {step} on axis {axis}: decode with step 1 and take every {step}th after")
        begin[axis], end[axis] = first, max(first, last)
    return begin, end


def _decode(data: Bytes, found: Any, region: Any, level: int | None, check_faults: bool,
            reference: Given | None) -> tuple[tuple[int, ...], Callable[[Context, Any], None]]:
    """Shape of what is asked for, and the call that decodes it into a struct."""
    lib, shape = library(), shape_of(found)
    if reference is not None:
        if check_faults or region is not None or level is not None:
            raise TypeError("a stream is decoded whole beside its reference: leave region, level and check_faults out")
        return shape, lambda context, c: context.run(lib.decompress_beside, data.address, data.size, byref(reference.c), c)
    if check_faults and (region is not None or level is not None):
        raise TypeError("check_faults=True checks whole arrays: leave region and level out")
    if region is not None and level is not None:
        raise TypeError("region and level were given: decode the one or the other")
    if level is not None:
        number = level
        shape, _ = level_shape(data.address, data.size, found.rank, number)
        return shape, lambda context, c: context.run(lib.decompress_level, data.address, data.size, number, c)
    if region is None:
        entry = lib.decompress_checked if check_faults else lib.decompress
        return shape, lambda context, c: context.run(entry, data.address, data.size, c)
    begin, end = box_of(region, shape)
    corners = _EXTENTS(*begin), _EXTENTS(*end)
    shape = tuple(b - a for a, b in zip(begin, end))
    return shape, lambda context, c: context.run(lib.decompress_region, data.address, data.size, *corners, c)


def decompress(stream: Any, *, out: Any = None, region: Any = None, level: int | None = None, reference: ArrayLike | None = None,
               check_faults: bool = False, threads: int = 1, device: str | None = None, memory_limit: int | None = None,
               progress: ProgressFunction | None = None) -> Decoded:
    """The values of a stream, as a new array of its type and shape, or in `out`, which is returned.

    stream: bytes, or what has the buffer protocol. region: a tuple of slices with step 1; only the parts of the stream that
    meet it are decoded. level: a coarse preview, where info(stream).levels has it. reference: the decoded array that the stream
    was predicted from, whose hash info(stream).reference has; without it, or with another, MissingReference. out: C-contiguous, of the stream's type and
    the shape of what is decoded, on the host or, by __dlpack__, on a CUDA device; else
    ValueError, before any work. threads, device, memory_limit, progress: as in compress(); of memory_limit the new array, which
    lies on the host, is a part. check_faults: what was decoded is held against the stream once more, so that a bit that flipped
    in a register or in memory becomes an Error instead of a wrong value (streams of codec lorenzo; about half as many
    instructions again). bfloat16 comes as ml_dtypes.bfloat16 where that is installed, else as a TypedArray.

    Any bytes may be given: damaged ones are CorruptStream. A header can claim any shape; memory_limit is what a program that
    reads foreign streams should give. O(values decoded)."""
    data = Bytes(stream, "the stream")
    found = inspected(data.address, data.size)
    if level is not None and (not isinstance(level, int) or level < 0):
        raise TypeError(f"level is {level!r}: give 0 (the array), 1, 2, ...")
    shape, call = _decode(data, found, region, level, check_faults, None if reference is None else given(reference))
    if out is not None:
        values, array = target(out, found.dtype, shape), None
    else:
        array = empty(found.dtype, shape, memory_limit)
        values = Given(found.dtype, shape, (), array.__array_interface__["data"][0], array)
        memory_limit = limit_beside(memory_limit, values.nbytes)
    with use_context(threads, memory_limit, progress=progress, nbytes=values.nbytes, device=device_of(device)) as context:
        call(context, byref(values.c))
    return out if array is None else finished(found.dtype, array)


def verify(original: ArrayLike, stream: Any, *, threads: int = 1, raise_: bool = True) -> Verdict:
    """Decodes the stream and compares every element with `original` under the bound the stream states, in arithmetic that
    shares nothing with the encoder. BoundNotMet where it does not hold; with raise_=False the Verdict says so. O(n)."""
    values, data, verdict = given(original), Bytes(stream, "the stream"), _sized(_capi.Verdict)
    with use_context(threads, None, nbytes=values.nbytes) as context:
        try:
            context.run(library().verify, byref(values.c), data.address, data.size, byref(verdict))
        except BoundNotMet:
            if raise_:
                raise
    return Verdict(**_fields(verdict, ("violations", "specials_lost", "first_index", "first_error")))


def compare(a: ArrayLike, b: ArrayLike, *, fill: Any = None, threads: int = 1) -> Quality:
    """How far array `b` is from `a`: maximum error, PSNR, SSIM and more. Equal types and shapes, else InvalidArgument. `fill`:
    values of `a` that do not count. O(n)."""
    first, second, quality = given(a), given(b), _sized(_capi.Quality)
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        raise InvalidArgument(2, f"the arrays differ: {dtype_of(first.dtype)} {first.shape} and {dtype_of(second.dtype)} "
                                 f"{second.shape}")
    key = params_key(Bound("lossless", 0.0), first, codec="auto", goal="ratio", fill=fill, metadata=b"", settings=None)
    with use_context(threads, None, nbytes=first.nbytes) as context, use_params(key) as params:
        context.run(library().compare, params, byref(first.c), byref(second.c), byref(quality))
    return Quality(**_fields(quality, tuple(Quality.__dataclass_fields__)))
