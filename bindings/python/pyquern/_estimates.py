"""What a bound would give, from blocks of an array: for choosing one before all of it is compressed."""
from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._array import refuse_masked
from ._bounds import Bound
from ._ranges import common_bound, fills_of
from .core import codec_names, compare, compress_reported, decompress

#: Elements of a block: headers and first predictions of smaller ones would weigh too much.
_BLOCK = 1 << 15


@dataclass(frozen=True)
class Estimate:
    """`bound` as it was asked for; the codec; raw bytes over stream bytes, PSNR in dB (infinity: nothing is lost) and speed in
    10^6 raw bytes a second on one thread, all of the blocks alone: `sampled` is the part of the array that they are."""

    bound: Bound
    codec: str
    ratio: float
    psnr_db: float
    mb_per_s: float
    sampled: float
    estimated: bool = True


def estimate(array: Any, bounds: Sequence[float | Bound] = (1e-2, 1e-3, 1e-4), *, codecs: Iterable[str] | None = None, sample: int = 64,
             fill: Any = None, threads: int = 1) -> list[Estimate]:
    """What each codec would make of an array under each bound, without compressing it all.

    Compresses at most `sample` evenly placed blocks of 2^15 elements. array: NumPy, HDF5 dataset, zarr array or File; of lazy
    ones only the blocks are read. bounds: numbers are relative to the range of the blocks; Bound("abs", 0.1) and other kinds
    as they are. codecs: names; None, all but `lossless`, which has no bound, and `autoencoder`, which wants a model. Small
    arrays are compressed whole, and the numbers are then exact but for what `estimated` says. `quern estimate` does the same by a trained model, with intervals.

    Ratios of large smooth arrays come out too low by what neighbours outside of a block would tell. O(sample)."""
    if not isinstance(sample, int) or sample < 1:
        raise ValueError(f"sample is {sample!r}: give the number of blocks, 1 or more")
    refuse_masked(array)
    blocks = list(_blocks(array, sample))
    size = math.prod(array.shape)
    taken = sum(block.size for block in blocks)
    left_out = ("stored", "lossless", "autoencoder")
    names = [name for name in (codecs or codec_names().values()) if codecs is not None or name not in left_out]
    found = []
    for each in bounds:
        asked = each if isinstance(each, Bound) else Bound("rel", float(each))
        applied = common_bound(asked, blocks, fills_of(fill))
        for name in names:
            found.append(_of_blocks(blocks, asked, applied, name, fill, threads, taken / size if size else 1.0))
    return found


def _of_blocks(blocks: list[Any], asked: Bound, bound: Bound, codec: str, fill: Any, threads: int, sampled: float) -> Estimate:
    raw = stored = valid = 0
    squares = seconds = 0.0
    low, high = math.inf, -math.inf
    for block in blocks:
        begun = time.perf_counter()
        stream, report = compress_reported(block, bound, codec=codec, goal="ratio", fill=fill, metadata=b"", settings=None,
                                           threads=threads, device=None, memory_limit=None, progress=None)
        seconds += time.perf_counter() - begun
        quality = compare(block, decompress(stream, threads=threads), fill=fill, threads=threads)
        raw, stored = raw + report.input_bytes, stored + report.output_bytes
        if quality.valid:
            valid, squares = valid + quality.valid, squares + quality.mse * quality.valid
            low, high = min(low, quality.min), max(high, quality.max)
    error = squares / valid if valid else 0.0
    psnr = math.inf if error == 0 else 10 * math.log10((high - low) ** 2 / error) if high > low else math.nan
    return Estimate(asked, codec, raw / stored if stored else 1.0, psnr, raw / 1e6 / seconds if seconds else math.inf, sampled)


def _blocks(array: Any, sample: int) -> Iterable[Any]:
    """The whole of a small array, else blocks that lie evenly in it."""
    shape = tuple(array.shape)
    if math.prod(shape) <= sample * _BLOCK:
        yield np.ascontiguousarray(array[...]) if shape else np.asarray(array)
        return
    block = _block_shape(shape)
    counts = _counts(shape, block, sample)
    for place in np.ndindex(*counts):
        start = [0 if count == 1 else index * (extent - side) // (count - 1)
                 for index, count, extent, side in zip(place, counts, shape, block)]
        yield np.ascontiguousarray(array[tuple(slice(first, first + side) for first, side in zip(start, block))])


def _block_shape(shape: tuple[int, ...]) -> list[int]:
    """A box of about _BLOCK elements whose sides are alike, in the longest axes; short axes whole."""
    block, left = [1] * len(shape), float(_BLOCK)
    order = sorted(range(len(shape)), key=lambda axis: shape[axis])
    for place, axis in enumerate(order):
        side = max(1, round(left ** (1 / (len(order) - place))))
        block[axis] = min(shape[axis], side)
        left /= block[axis]
    return block


def _counts(shape: tuple[int, ...], block: list[int], sample: int) -> list[int]:
    """Blocks an axis: at most `sample` together, more where the axis holds more of them."""
    most = [extent // side for extent, side in zip(shape, block)]
    counts = [1] * len(shape)
    while True:
        free = [axis for axis in range(len(shape)) if counts[axis] < most[axis]]
        if not free:
            return counts
        axis = max(free, key=lambda a: most[a] / counts[a])
        if math.prod(counts) // counts[axis] * (counts[axis] + 1) > sample:
            return counts
        counts[axis] += 1
