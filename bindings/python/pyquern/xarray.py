"""xarray: a bound for each variable, in physical units, and attributes that say what was lost.

    import pyquern.xarray as qx

    qx.to_netcdf(ds, "out.nc", rel=1e-4, per={"t2m": {"abs": 0.01}, "mask": {"lossless": True}})
    qx.to_zarr(ds, "out.zarr", rel=1e-4)

Any program reads such a netCDF file that has the filter: xarray with both engines after `import pyquern.hdf5`. Saving a file
again under the same absolute bounds changes no value."""
from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from ._bounds import Bound, chosen_bound
from ._chunks import advise_chunks
from ._errors import Unsupported
from ._hdf5_libraries import FILTER_ID
from ._loss import loss_attributes
from ._ranges import bound_of

try:
    import xarray
except ImportError:
    raise ImportError("xarray is not installed: pip install xarray h5netcdf, or xarray zarr") from None

__all__ = ["Encoding", "clean", "encoding", "mark", "to_netcdf", "to_zarr"]

_KINDS = ("abs", "rel", "pwrel", "lossless")
_TARGETS = ("h5netcdf", "zarr3", "zarr2")
#: Values with fewer elements are not worth a filter.
_SMALLEST = 1024
#: What xarray's encoders take out of an encoding before the engine sees it.
_CONVENTIONS = ("dtype", "scale_factor", "add_offset", "_FillValue", "missing_value", "units", "calendar", "_Unsigned",
                "coordinates", "grid_mapping")
#: Attributes that name variables which are no quantities (CF-1.12, 8.4).
_REFERENCES = ("bounds", "climatology", "coordinates", "cell_measures", "formula_terms", "grid_mapping", "ancillary_variables")
_PLACE_OR_TIME = re.compile(r"degrees?_?(north|south|east|west|[NSEW])\b|\bsince\b")
_BOUND_ARGUMENTS = ("abs", "rel", "pwrel", "lossless", "per", "only", "chunks", "codec", "goal", "effort")


class Encoding(dict[Hashable, dict[str, Any]]):
    """What to_netcdf() and to_zarr() of xarray take as encoding=; `bounds`: of each variable that loses something, the bound
    in physical units and the one that was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.bounds: dict[Hashable, tuple[Bound, Bound]] = {}


def encoding(ds: Any, *, abs: float | None = None, rel: float | None = None, pwrel: float | None = None, lossless: bool = False,
             per: Mapping[Hashable, Mapping[str, Any]] | None = None, only: Iterable[Hashable] | None = None,
             target: str = "h5netcdf", chunks: Any = "auto", codec: str = "auto", goal: str = "ratio",
             effort: int | None = None) -> Encoding:
    """encoding= for ds.to_netcdf(engine="h5netcdf") or ds.to_zarr(), over what the dataset's own encodings say.

    abs, rel, pwrel, lossless: for data variables of floating-point numbers that are quantities. Exact stay coordinates, times,
    integers, flags, variables that an attribute such as `bounds` or `cell_measures` names, and those in degrees or "since".
    per: bounds of single variables, {"t2m": {"abs": 0.01}}. only: the names the common bound is for. Bounds are in physical
    units: those of packed variables are divided by scale_factor, and hold for the packed numbers. rel is of the whole
    variable's range, which is read once. chunks: "auto", or a shape by name, {"t2m": (1, 200, 200)}; dask arrays keep theirs.
    target: "h5netcdf", "zarr3" or "zarr2". codec, goal, effort: as in pyquern.compress()."""
    if target not in _TARGETS:
        raise ValueError(f"target is {target!r}: it is one of {', '.join(_TARGETS)}")
    single = {name: dict(bound) for name, bound in (per or {}).items()}
    missing = [name for name in [*single, *(only or ())] if name not in ds.variables]
    if missing:
        raise KeyError(f"the dataset has no variable {', '.join(map(repr, missing))}; it has {', '.join(map(repr, ds.variables))}")
    given = {"abs": abs, "rel": rel, "pwrel": pwrel, "lossless": lossless}
    common = chosen_bound(kinds=_KINDS, **given) if any(v is not None and v is not False for v in given.values()) or not single \
        else Bound("lossless", 0.0)
    exact, found = _not_quantities(ds), Encoding()
    for name, variable in ds.variables.items():
        if name in single:
            requested = chosen_bound(kinds=_KINDS, **single[name])
        elif name in exact or (only is not None and name not in set(only)) or variable.dtype.kind != "f":
            requested = Bound("lossless", 0.0)
        else:
            requested = common
        own = _kept(variable)
        stored = np.dtype(own.get("dtype") or variable.dtype)
        if name not in single and (variable.size < _SMALLEST or name in ds.coords) or not _is_served(stored):
            if name in single and requested.kind != "lossless":
                raise TypeError(f"{name!r} is stored as {stored}, which takes no bound")
            found[name] = own
            continue
        bound = _absolute(variable, requested)
        if bound.kind != "lossless":
            found.bounds[name] = (bound, requested)
        own.update(_target_encoding(variable, own, _stored_bound(bound, own, stored, name), stored, target,
                                    {"codec": codec, "goal": goal, "effort": effort},
                                    chunks if chunks == "auto" else chunks.get(name, "auto")))
        found[name] = own
    return found


def _not_quantities(ds: Any) -> set[Hashable]:
    """Names of variables that a common bound is not for."""
    exact: set[Hashable] = set(ds.coords)
    for name, variable in ds.variables.items():
        for place in (variable.attrs, variable.encoding):
            for reference in _REFERENCES:
                exact.update(re.findall(r"[\w.@+-]+", str(place.get(reference, ""))))
            if _PLACE_OR_TIME.search(str(place.get("units", ""))):
                exact.add(name)
        if "flag_values" in variable.attrs or "flag_masks" in variable.attrs:
            exact.add(name)
    for reference in _REFERENCES:
        exact.update(re.findall(r"[\w.@+-]+", str(ds.attrs.get(reference, ""))))
    return exact


def _kept(variable: Any) -> dict[str, Any]:
    return {name: variable.encoding[name] for name in _CONVENTIONS if name in variable.encoding}


def _is_served(stored: np.dtype[Any]) -> bool:
    return stored.kind in "fiu" and stored.itemsize <= 8


def _absolute(variable: Any, requested: Bound) -> Bound:
    """A relative bound as an absolute one; the one that was recorded, where the same was asked for and it serves."""
    if requested.kind != "rel":
        return requested
    bound = bound_of(variable.data, rel=requested.value)
    recorded = variable.attrs.get("lossy_compression_bound")
    if (recorded is not None and variable.attrs.get("lossy_compression_requested") == f"rel={requested.value:.9g}"
            and 0 < float(recorded) <= bound):
        bound = float(recorded)
    return Bound("abs", bound) if bound > 0 else Bound("lossless", 0.0)


def _stored_bound(bound: Bound, own: Mapping[str, Any], stored: np.dtype[Any], name: Hashable) -> Bound:
    """The bound of the numbers that are stored."""
    scale, offset = own.get("scale_factor"), own.get("add_offset")
    if bound.kind == "abs" and scale is not None:
        return Bound("abs", float(np.nextafter(bound.value / float(np.abs(scale)), 0.0)))
    if bound.kind == "pwrel" and (stored.kind != "f" or offset):
        raise ValueError(f"{name!r} is stored as {stored} with an offset or as integers: a pointwise relative bound is for "
                         "floating-point numbers; give abs=, or drop the packing with ds[name].encoding.clear()")
    return bound


def _fills(own: Mapping[str, Any]) -> list[Any]:
    found = []
    for key in ("_FillValue", "missing_value"):
        value = own.get(key)
        if value is not None:
            found += [v for v in np.atleast_1d(np.asarray(value)).tolist() if v == v and v not in found]
    return found


def _chunks_for(variable: Any, stored: np.dtype[Any], chunks: Any, target: str) -> tuple[int, ...]:
    if chunks != "auto":
        return tuple(chunks)
    if variable.chunks is not None:
        return tuple(axis[0] for axis in variable.chunks)
    return advise_chunks(variable.shape, stored, target="hdf5" if target == "h5netcdf" else "zarr")


def _target_encoding(variable: Any, own: Mapping[str, Any], bound: Bound, stored: np.dtype[Any], target: str,
                     ways: Mapping[str, Any], chunks: Any) -> dict[str, Any]:
    shape, fills = _chunks_for(variable, stored, chunks, target), _fills(own)
    if target == "h5netcdf":
        from .hdf5._words import request_words

        found: dict[str, Any] = {"compression": FILTER_ID, "compression_opts": request_words(
            bound, **ways, fill=fills or None, dtype=stored)}
        return {**found, "chunksizes": shape} if shape else {}
    keywords: dict[str, Any] = {"lossless": True} if bound.kind == "lossless" else {bound.kind: bound.value}
    keywords.update(**ways, fill=fills or None)
    if target == "zarr3":
        from .zarr import QuernCodec

        return {"serializer": QuernCodec(**keywords), "compressors": None, "filters": None, "chunks": shape}
    from .numcodecs import Quern

    quern = Quern(**keywords, dtype=stored)
    return {**({"compressor": quern} if _is_zarr_2() else {"compressors": (quern,)}), "filters": None, "chunks": shape}


def _is_zarr_2() -> bool:
    import zarr

    return int(zarr.__version__.split(".")[0]) < 3


def mark(ds: Any, enc: Mapping[Hashable, Any], *, previous: bool = True) -> Any:
    """A shallow copy of the dataset whose variables have attributes that say what saving with `enc`, of encoding(), loses.
    previous: what was lost before counts: under another bound the sum of both is recorded, too."""
    bounds = getattr(enc, "bounds", {})
    marked = ds.copy()
    for name, (bound, requested) in bounds.items():
        attributes = dict(ds[name].attrs)
        new = loss_attributes(bound, requested, attributes if previous else None)
        kept = {key: value for key, value in attributes.items() if not key.startswith("lossy_compression")}
        marked[name].attrs = {**kept, **new}
    return marked


def clean(ds: Any) -> Any:
    """A shallow copy of the dataset without what a file or store with quern leaves in the encodings of its variables, which
    other engines and filters stumble over. The values are what they were."""
    cleaned = ds.copy()
    for variable in cleaned.variables.values():
        for key in ("compression", "compression_opts", "compressor", "compressors", "serializer", "filters"):
            if key in variable.encoding and _is_ours(variable.encoding[key], key):
                del variable.encoding[key]
    return cleaned


def _is_ours(value: Any, key: str) -> bool:
    if key in ("compression", "compression_opts"):
        return value in ("unknown", FILTER_ID, str(FILTER_ID)) or key == "compression_opts"
    values = value if isinstance(value, (tuple, list)) else [value]
    return any(type(each).__module__.startswith("pyquern") for each in values)


def _register_in_workers() -> None:
    """The filter in the HDF5 of the workers of the Dask cluster that this program uses, if it uses one."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return
    try:
        client = distributed.get_client()
    except ValueError:
        return
    from . import hdf5

    if not client.asynchronous:
        client.run(hdf5.register)


def _parted(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return ({name: value for name, value in arguments.items() if name in _BOUND_ARGUMENTS},
            {name: value for name, value in arguments.items() if name not in _BOUND_ARGUMENTS})


def to_netcdf(ds: Any, path: Any, *, engine: str = "h5netcdf", **arguments: Any) -> Any:
    """encoding(), mark() and ds.to_netcdf() in one. Bounds as in encoding(). engine: "h5netcdf", where other arguments are
    xarray's, or "netcdf4", which takes mode, group and unlimited_dims. Either gives a netCDF-4 file that both engines read."""
    if engine not in ("h5netcdf", "netcdf4"):
        raise Unsupported(40, f"the engine {engine!r} writes no filters: take 'h5netcdf' or 'netcdf4', whose files are the same")
    from . import hdf5

    hdf5.register()
    if any(variable.chunks is not None for variable in ds.variables.values()):
        _register_in_workers()
    bounds, others = _parted(arguments)
    ds = clean(ds)
    enc = encoding(ds, target="h5netcdf", **bounds)
    marked = mark(ds, enc)
    if engine == "netcdf4":
        from ._xarray_netcdf4 import write

        return write(marked, path, enc, **others)
    return marked.to_netcdf(path, engine=engine, encoding=dict(enc), **others)


def to_zarr(ds: Any, store: Any, *, zarr_format: int | None = None, **arguments: Any) -> Any:
    """encoding(), mark() and ds.to_zarr() in one. Bounds as in encoding(); other arguments are xarray's. zarr_format: 2 or 3; None,
    the newest that the installed zarr writes."""
    number = zarr_format or (2 if _is_zarr_2() else 3)
    bounds, others = _parted(arguments)
    ds = clean(ds)
    enc = encoding(ds, target="zarr2" if number == 2 else "zarr3", **bounds)
    if not _is_zarr_2():
        others["zarr_format"] = number
    return mark(ds, enc).to_zarr(store, encoding=dict(enc), **others)
