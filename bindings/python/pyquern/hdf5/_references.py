"""Where the chunks of an HDF5 file lie, for readers of Zarr: a reference file system (kerchunk's JSON, version 1) over the file.
Each chunk that the filter wrote is a quern stream, which the codec `quern` of Zarr decodes as it is."""
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._errors import Unsupported
from .._hdf5_libraries import FILTER_ID

_DEFLATE, _SHUFFLE = 1, 2
#: Of dimension scales and of netCDF-4, which name dimensions; readers of Zarr have _ARRAY_DIMENSIONS.
_HIDDEN = ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties",
           "_FillValue")


def references(path: str | os.PathLike[str], *, url: str | None = None) -> dict[str, Any]:
    """The chunks of an HDF5 or netCDF-4 file as references that fsspec's "reference" file system takes, so that xarray and
    zarr read the file where it lies, by ranges of bytes, without HDF5:

        xr.open_dataset("reference://", engine="zarr",
                        backend_kwargs={"consolidated": False, "storage_options": {"fo": references("t.nc")}})

    url: what the references name in the place of the path, such as "s3://bucket/t.nc". Datasets of numbers with quern, with
    deflate and shuffle, or without a filter; of others, Unsupported. Groups become groups. O(chunks)."""
    import h5py

    target = os.fspath(path) if url is None else url
    found: dict[str, Any] = {}
    with h5py.File(path, "r") as file:
        _add_group(found, "", file, target)
    return {"version": 1, "refs": found}


def _add_group(found: dict[str, Any], prefix: str, group: Any, target: str) -> None:
    import h5py

    found[prefix + ".zgroup"] = json.dumps({"zarr_format": 2})
    found[prefix + ".zattrs"] = json.dumps(_attributes(group))
    for name, item in group.items():
        if isinstance(item, h5py.Group):
            _add_group(found, f"{prefix}{name}/", item, target)
        elif isinstance(item, h5py.Dataset) and not _is_bare_dimension(item):
            _add_dataset(found, f"{prefix}{name}/", item, target)


def _is_bare_dimension(dataset: Any) -> bool:
    """A dimension of netCDF-4 without a variable."""
    text = dataset.attrs.get("NAME", b"")
    return bytes(text if isinstance(text, (bytes, np.bytes_)) else str(text).encode()).startswith(b"This is a netCDF dimension but not")


def _attributes(item: Any) -> dict[str, Any]:
    found = {}
    for name, value in item.attrs.items():
        if name in _HIDDEN:
            continue
        if isinstance(value, (bytes, np.bytes_)):
            value = value.decode("utf-8", "replace")
        elif isinstance(value, (np.ndarray, np.generic)):
            value = value.tolist()
            value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, (str, int, float, list)):
            found[name] = value
    return found


def _add_dataset(found: dict[str, Any], prefix: str, dataset: Any, target: str) -> None:
    dtype = dataset.dtype
    if dtype.kind not in "fiub" or dtype.itemsize > 8 or dtype.metadata:
        raise Unsupported(40, f"{dataset.name} holds {dtype}: references are for datasets of numbers. Delete it, or read the file with h5py")
    compressor, filters = _codecs(dataset)
    chunks = dict(_chunks(dataset))
    grid = dataset.chunks or tuple(max(extent, 1) for extent in dataset.shape)
    expected = int(np.prod([-(-extent // chunk) for extent, chunk in zip(dataset.shape, grid)], dtype=np.int64))
    fill = dataset.fillvalue if "_FillValue" in dataset.attrs or len(chunks) < expected else None
    array = {"zarr_format": 2, "shape": list(dataset.shape), "chunks": list(grid), "order": "C",
             "dtype": dtype.str, "compressor": compressor, "filters": filters, "fill_value": _json_number(fill)}
    found[prefix + ".zarray"] = json.dumps(array)
    found[prefix + ".zattrs"] = json.dumps({**_attributes(dataset), "_ARRAY_DIMENSIONS": _dimensions(dataset)})
    for key, (offset, size) in chunks.items():
        found[prefix + key] = [target, offset, size]


def _json_number(value: Any) -> Any:
    if value is None:
        return None
    number = np.asarray(value).item()
    if isinstance(number, float) and not np.isfinite(number):
        return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return number


def _codecs(dataset: Any) -> tuple[dict[str, Any] | None, list[dict[str, Any]] | None]:
    """numcodecs' names of the dataset's filters: (compressor, filters)."""
    from . import settings_of

    properties = dataset.id.get_create_plist()
    pipeline = [properties.get_filter(place) for place in range(properties.get_nfilters())]
    numbers = [each[0] for each in pipeline]
    if numbers == []:
        return None, None
    if numbers == [FILTER_ID]:
        asked = settings_of(dataset) or {}
        bound = asked["bound"]
        config: dict[str, Any] = {"id": "quern", "bound": bound.kind, "codec": asked["codec"], "goal": asked["goal"]}
        if bound.kind != "lossless":
            config["value"] = bound.value
        return config, None
    if numbers in ([_DEFLATE], [_SHUFFLE, _DEFLATE]):
        shuffle = [{"id": "shuffle", "elementsize": dataset.dtype.itemsize}] if len(numbers) == 2 else None
        return {"id": "zlib", "level": int(pipeline[-1][2][0])}, shuffle
    raise Unsupported(40, f"{dataset.name} has the HDF5 filters {numbers}: references are for quern alone, for deflate with and without "
                          "shuffle, and for datasets without filters")


def _chunks(dataset: Any) -> Iterator[tuple[str, tuple[int, int]]]:
    if 0 in dataset.shape:
        return
    if dataset.chunks is None:
        offset = dataset.id.get_offset()
        if offset is not None:
            yield ".".join("0" for _ in dataset.shape) or "0", (offset, dataset.id.get_storage_size())
        return
    for number in range(dataset.id.get_num_chunks()):
        chunk = dataset.id.get_chunk_info(number)
        if chunk.filter_mask:
            raise Unsupported(40, f"{dataset.name} has chunks that left filters out: rewrite it, such as by h5repack")
        key = ".".join(str(start // extent) for start, extent in zip(chunk.chunk_offset, dataset.chunks))
        yield key, (chunk.byte_offset, chunk.size)


def _dimensions(dataset: Any) -> list[str]:
    """Names of the dataset's dimensions: of its scales, of itself where it is one, else made up."""
    names = []
    for axis in range(len(dataset.shape)):
        scales = list(dataset.dims[axis].values())
        if scales:
            names.append(scales[0].name.rpartition("/")[2])
        elif dataset.attrs.get("CLASS") == b"DIMENSION_SCALE" and axis == 0:
            names.append(dataset.name.rpartition("/")[2])
        else:
            names.append(f"{dataset.name.rpartition('/')[2]}_{axis}")
    return names
