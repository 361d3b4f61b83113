"""Which chunks an array should be cut into: the rules of docs/hdf5.md, "Chunks and caches"."""
from __future__ import annotations

from typing import Any

import numpy as np

MOST_BYTES, LEAST_BYTES = 16 << 20, 1 << 20
_AIM_BYTES = 4 << 20
_ACCESS = ("all", "time-series", "maps")


def advise_chunks(shape: tuple[int, ...], dtype: Any, access: str = "all", target: str = "hdf5") -> tuple[int, ...]:
    """A shape of chunks, 1 to 16 MiB of values each where the array has as many, with at most 10 % of padding at the edges
    where that can be had.

    shape: slowest axis first. access: "all" (blocks), "time-series" (long on the first axis), "maps" (one step of the first
    axis, whole in the last two). target: "hdf5", which pads edge chunks, or "zarr"."""
    if access not in _ACCESS:
        raise ValueError(f"access is {access!r}: it is one of {', '.join(_ACCESS)}")
    if target not in ("hdf5", "zarr"):
        raise ValueError(f"target is {target!r}: it is hdf5 or zarr")
    item = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
    chunks = [max(1, extent) for extent in shape]
    limits = {"all": [1] * len(chunks), "time-series": [min(c, 1024) for c in chunks[:1]] + [1] * (len(chunks) - 1),
              "maps": [1] * len(chunks)}[access]
    order = list(range(len(chunks)))
    if access == "time-series":
        order = order[1:] + order[:1]
    elif access == "all":
        return _even(_balanced(chunks, _AIM_BYTES // item), shape)
    for axis in order:
        while _count(chunks) * item > _AIM_BYTES and chunks[axis] > limits[axis]:
            chunks[axis] = max(limits[axis], -(-chunks[axis] // 2))
    return _even(chunks, shape)


def _count(chunks: list[int]) -> int:
    count = 1
    for extent in chunks:
        count *= extent
    return count


def _balanced(chunks: list[int], most: int) -> list[int]:
    """The longest axis is halved until there are few enough elements; of equal ones the slowest."""
    chunks = list(chunks)
    while _count(chunks) > most:
        axis = max(range(len(chunks)), key=lambda a: chunks[a])
        chunks[axis] = -(-chunks[axis] // 2)
    return chunks


def _even(chunks: list[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The same number of chunks on each axis, of extents that pad least."""
    return tuple(-(-extent // -(-extent // chunk)) if extent else 1 for extent, chunk in zip(shape, chunks))
