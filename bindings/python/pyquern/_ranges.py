"""The absolute bound that a relative one is for a whole variable: filters and chunk codecs see one chunk at a time."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ._array import refuse_masked
from ._bounds import Bound
from ._loss import declared_fills

_BLOCK = 1 << 22  # elements read at once


def _blocks(values: Any) -> Iterator[Any]:
    """Parts of an array or dataset along its first axis, as NumPy arrays."""
    shape = values.shape
    if not shape or 0 in shape:
        yield np.asarray(values[...])
        return
    rows = max(1, _BLOCK * shape[0] // max(1, int(np.prod(shape, dtype=np.float64))))
    chunks = getattr(values, "chunks", None)
    if isinstance(chunks, tuple) and chunks and isinstance(chunks[0], int):
        rows = max(chunks[0], rows // chunks[0] * chunks[0])
    for first in range(0, shape[0], rows):
        yield np.asarray(values[first:first + rows])


def _valid(block: Any, fills: Iterable[Any]) -> Any:
    flat = block.reshape(-1)
    if flat.dtype.kind == "f" or flat.dtype.name == "bfloat16":
        flat = flat.astype(np.float32, copy=False) if flat.dtype.name == "bfloat16" else flat
        keep = np.isfinite(flat)
    elif flat.dtype.kind in "iu":
        keep = np.ones(flat.shape, bool)
    elif flat.dtype.kind == "c":
        return _valid(flat.view(f"f{flat.dtype.itemsize // 2}"), fills)
    else:
        raise TypeError(f"values of {flat.dtype} have no range")
    for fill in fills:
        with np.errstate(over="ignore", invalid="ignore"):
            keep &= flat != np.asarray(fill).astype(flat.dtype)
    return flat[keep]


def range_of(values: Any, fills: Iterable[Any] = ()) -> tuple[Any, Any] | None:
    """Smallest and largest valid value, as Python numbers; None when no value is valid."""
    fills, low, high = list(fills), None, None
    for block in _blocks(values):
        valid = _valid(block, fills)
        if valid.size == 0:
            continue
        first, last = valid.min().item(), valid.max().item()
        low = first if low is None or first < low else low
        high = last if high is None or last > high else high
    return None if low is None else (low, high)


def scaled(low: Any, high: Any, rel: float) -> float:
    """rel * (high - low), rounded down: never more than was asked for."""
    width = float(high - low)
    if width == 0.0:
        return 0.0
    return float(np.nextafter(rel * np.nextafter(width, 0.0), 0.0))


def fills_of(fill: Any) -> list[Any]:
    """The fill values of an argument `fill`: None, a number or several."""
    return [] if fill is None else np.atleast_1d(np.asarray(fill)).tolist()


def common_bound(bound: Bound, arrays: Iterable[Any], fills: Iterable[Any]) -> Bound:
    """A relative bound as the absolute one of several arrays together, lossless where their values are all equal; others as
    they are."""
    if bound.kind != "rel":
        return bound
    ranges = [found for found in (range_of(array, fills) for array in arrays) if found is not None]
    value = scaled(min(low for low, _ in ranges), max(high for _, high in ranges), bound.value) if ranges else 0.0
    return Bound("abs", value) if value > 0 else Bound("lossless", 0.0)


def _dask_range(array: Any, fills: list[Any]) -> tuple[Any, Any] | None:
    """One pass over a dask array."""
    import dask

    def of_block(block: Any) -> Any:
        found = range_of(np.asarray(block), fills)
        return np.array([[np.nan, np.nan]] if found is None else [[float(found[0]), float(found[1])]])

    parts = dask.compute(*[dask.delayed(of_block)(block) for block in array.to_delayed().reshape(-1)])
    limits = np.concatenate(parts)
    limits = limits[~np.isnan(limits[:, 0])]
    return None if limits.size == 0 else (limits[:, 0].min(), limits[:, 1].max())


def bound_of(values: Any, *, rel: float, fill: Any = None) -> float:
    """The absolute bound that is `rel` of the range (max - min) of a whole variable, in its units. NaN, infinities and fill
    values are left out: `fill`, and what the attributes _FillValue and missing_value declare. A h5py or netCDF4 dataset is read
    in parts, a dask array in one pass by its scheduler. 0 where all valid values are equal, or none is valid."""
    if isinstance(rel, bool) or not isinstance(rel, (int, float)) or not rel >= 0 or rel == float("inf"):
        raise ValueError(f"rel is {rel!r}: give a number that is not negative, such as 1e-3")
    refuse_masked(values)
    fills = list(np.atleast_1d(np.asarray(fill))) if fill is not None else []
    attributes = getattr(values, "attrs", None)
    if attributes is not None:
        fills += declared_fills(attributes)
    if hasattr(values, "ncattrs"):
        fills += declared_fills({name: values.getncattr(name) for name in values.ncattrs()})
        values = _Unscaled(values)
    values = getattr(values, "data", values) if type(values).__module__.startswith("xarray") else values
    if hasattr(values, "to_delayed"):
        found = _dask_range(values, fills)
    else:
        found = range_of(values if hasattr(values, "shape") else np.asarray(values), fills)
    return 0.0 if found is None else scaled(*found, rel)


class _Unscaled:
    """A netCDF4 variable's numbers as they are stored."""

    def __init__(self, variable: Any) -> None:
        self._variable, self.shape = variable, variable.shape

    def __getitem__(self, key: Any) -> Any:
        variable = self._variable
        former = variable.mask, variable.scale
        variable.set_auto_maskandscale(False)
        try:
            return variable[key]
        finally:
            variable.set_auto_mask(former[0])
            variable.set_auto_scale(former[1])
