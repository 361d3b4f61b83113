"""What the page shows: for each bound the stream's size and quality, slices of values and errors, histogram, spectrum."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._bounds import Bound
from .._estimates import estimate
from .._ranges import fills_of, range_of
from ..core import compare, compress_reported, decompress
from .pictures import data_url, thinned

_BINS, _WAVES = 41, 96


@dataclass
class View:
    """One bound: numbers for the page, and the decoded array for its pictures."""

    bound: Bound
    numbers: dict[str, Any]
    decoded: Any = field(repr=False)


def crop(array: Any, most: int) -> tuple[Any, tuple[slice, ...]]:
    """A box in the middle of an array of at most about `most` elements, and where it lies. Long axes are cut first."""
    sides = list(array.shape)
    while math.prod(sides) > most:
        axis = max(range(len(sides)), key=lambda k: sides[k])
        sides[axis] = max(1, sides[axis] * 3 // 4)
    place = tuple(slice((extent - side) // 2, (extent - side) // 2 + side) for extent, side in zip(array.shape, sides))
    return np.ascontiguousarray(array[place] if place else np.asarray(array)), place


def views(box: Any, bounds: Iterable[Bound], codec: str, fill: Any, threads: int) -> list[View]:
    found = []
    for bound in bounds:
        stream, report = compress_reported(box, bound, codec=codec, goal="ratio", fill=fill, metadata=b"", settings=None,
                                           threads=threads, device=None, memory_limit=None, progress=None)
        decoded = decompress(stream, threads=threads)
        quality = compare(box, decoded, fill=fill, threads=threads)
        enforced = report.enforced.value if report.enforced.kind == "abs" else quality.max_error
        errors = _errors(box, decoded)
        found.append(View(bound, {
            "bound": f"{bound.kind}={bound.value:g}", "codec": report.codec, "bytes": report.output_bytes, "ratio": report.ratio,
            "psnr": _finite(quality.psnr_db), "ssim": _finite(quality.ssim), "max_error": quality.max_error, "limit": enforced,
            "histogram": _histogram(errors, enforced), "spectrum": _spectrum_ratio(box, decoded)}, decoded))
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _errors(box: Any, decoded: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.asarray(decoded, np.float64) - np.asarray(box, np.float64)


def _histogram(errors: Any, limit: float) -> list[int]:
    valid = errors[np.isfinite(errors)]
    counts, _ = np.histogram(valid, _BINS, (-limit, limit) if limit > 0 else (-1.0, 1.0))
    return [int(count) for count in counts]


def _power(values: Any) -> Any:
    rows = np.asarray(values, np.float64).reshape(-1, values.shape[-1])
    rows = rows[np.isfinite(rows).all(axis=1)][:4096]
    if rows.shape[0] == 0 or rows.shape[1] < 4:
        return np.zeros(0)
    return (np.abs(np.fft.rfft(rows - rows.mean(axis=1, keepdims=True), axis=1)) ** 2).mean(axis=0)[1:]


def _spectrum_ratio(box: Any, decoded: Any) -> list[float | None]:
    """Power of the decoded rows of the last axis over that of the original ones, by wave number, low to high."""
    if box.ndim == 0:
        return []
    first, second = _power(box), _power(decoded)
    if first.size == 0 or first.size != second.size:
        return []
    places = np.unique(np.linspace(0, first.size - 1, min(first.size, _WAVES)).astype(int))
    return [float(second[k] / first[k]) if first[k] > 0 else None for k in places]


def curves(array: Any, bounds: Sequence[Bound], fill: Any, sample: int) -> dict[str, list[dict[str, float | None]]]:
    """Bits an element against PSNR, codec by codec, from blocks of the whole array."""
    bits = 8 * np.dtype(array.dtype).itemsize
    found: dict[str, list[dict[str, float | None]]] = {}
    for each in estimate(array, bounds, sample=sample, fill=fill):
        found.setdefault(each.codec, []).append({"bits": bits / each.ratio, "psnr": _finite(each.psnr_db), "ratio": each.ratio})
    return found


def _planes(shape: tuple[int, ...], count: int) -> list[tuple[int, int]]:
    """(axis, place) of the slices to show: at most `count` an axis of the last three, through the middle of the others."""
    found: list[tuple[int, int]] = []
    axes = range(max(0, len(shape) - 3), len(shape)) if len(shape) >= 3 else [-1]
    for axis in axes:
        places = range(shape[axis]) if axis >= 0 else [0]
        step = np.unique(np.linspace(0, len(places) - 1, min(count, len(places)) + 2).astype(int)[1:-1])
        found += [(axis, int(places[k])) for k in step]
    return found


def _plane(values: Any, axis: int, place: int) -> Any:
    """A slice as rows and columns; of fewer axes than two, a row."""
    if axis < 0:
        return values if values.ndim == 2 else np.atleast_2d(values)
    leading = tuple(extent // 2 for extent in values.shape[:-3])
    cube = values[leading]
    return np.take(cube, place, axis=axis - (values.ndim - 3))


def slices(box: Any, found: Sequence[View], fill: Any, count: int, pixels: int) -> list[dict[str, Any]]:
    """The pictures: of each slice the original, and of each bound what was decoded and its error."""
    low, high = range_of(box, fills_of(fill)) or (0.0, 1.0)
    shown = []
    for axis, place in _planes(box.shape, count):
        original = thinned(_plane(box, axis, place), pixels)
        pictures = []
        for view in found:
            decoded = thinned(_plane(view.decoded, axis, place), pixels)
            limit = view.numbers["limit"] or 1.0
            pictures.append({"decoded": data_url(decoded, low, high, "values"),
                             "error": data_url(_errors(original, decoded), -limit, limit, "errors")})
        shown.append({"axis": axis, "place": place, "original": data_url(original, low, high, "values"), "bounds": pictures})
    return shown
