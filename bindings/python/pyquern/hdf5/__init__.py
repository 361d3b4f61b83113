"""HDF5 and netCDF-4: the filter in every HDF5 of the process.

    import h5py
    import pyquern.hdf5 as qh

    with h5py.File("out.h5", "w") as file:
        file.create_dataset("t", data=t, chunks=(16, 128, 128), compression=qh.filter(abs=0.01))

Files that were written so are read by h5py, netCDF4, xarray and any program that finds the plugin (plugin_path()). What the
filter wrote comes back bit for bit from any number of later writes and copies under the same bound."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._array import ArrayLike, refuse_masked, refuse_others
from .._bounds import Bound, chosen_bound
from .._calls import ProgressFunction
from .._chunks import advise_chunks
from .._errors import Unsupported
from .._hdf5_libraries import FILTER_ID, plugin_file
from .._loss import declared_fills, loss_attributes
from .._ranges import bound_of
from .._requests import request_bound
from ._references import references
from ._register import register, watch_imports
from ._words import request_words, settings

__all__ = ["FILTER_ID", "bound_of", "create_dataset", "define", "filter", "plugin_path", "read", "references",
           "register", "settings_of", "write"]

if TYPE_CHECKING:
    _Base = Mapping[str, Any]
else:
    try:
        import h5py

        _Base = h5py.filters.FilterRefBase
    except ImportError:  # netCDF4 alone: filter() says what to do
        _Base = Mapping


def plugin_path() -> str:
    """The folder for HDF5_PLUGIN_PATH of other programs: `python -m pyquern plugin-path` prints it."""
    return os.path.dirname(plugin_file())


class filter(_Base):  # noqa: N801: it stands where h5py's filters do
    """What h5py's create_dataset() takes: compression=filter(abs=1e-3), or **filter(abs=1e-3).

    Bounds: abs (in the dataset's units), pwrel, or lossless=True; a bound relative to the range needs bound_of(). codec, goal,
    effort: as in pyquern.compress(). fill: NumPy scalars of the dataset's type that mark missing data, besides h5py's fillvalue=; at
    most 8. A dataset that cannot be served (booleans, texts, records) is a ValueError with the reason; with optional=True it
    is created without compression. What was written comes back bit for bit when it is written again under the same bound."""

    filter_id = FILTER_ID

    def __init__(self, *, abs: float | None = None, pwrel: float | None = None, lossless: bool = False, codec: str = "auto",
                 goal: str = "ratio", effort: int | None = None, fill: Any = None, optional: bool = False,
                 rel: float | None = None, psnr: float | None = None, ratio: float | None = None) -> None:
        self.bound = request_bound(abs=abs, pwrel=pwrel, lossless=lossless, rel=rel, psnr=psnr, ratio=ratio)
        self.filter_options = request_words(self.bound, codec=codec, goal=goal, effort=effort, fill=fill,
                                            mandatory=not optional)
        _need_h5py()
        register()

    @property
    def _kwargs(self) -> dict[str, Any]:
        return {"compression": self.filter_id, "compression_opts": self.filter_options}

    def __getitem__(self, name: str) -> Any:
        return self._kwargs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kwargs)

    def __len__(self) -> int:
        return len(self._kwargs)

    def __hash__(self) -> int:
        return hash(self.filter_options)

    def __repr__(self) -> str:
        return f"filter({self.bound})"


def _need_h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise ImportError("h5py is not installed: pip install h5py. For netCDF4-python use pyquern.hdf5.define()") from None
    return h5py


def create_dataset(group: Any, name: str, data: ArrayLike, *, abs: float | None = None, rel: float | None = None,
                   pwrel: float | None = None, lossless: bool = False, chunks: Any = "auto", codec: str = "auto",
                   goal: str = "ratio", effort: int | None = None, fill: Any = None, attrs: bool = True, threads: int = 1,
                   progress: ProgressFunction | None = None, **h5py_kwargs: Any) -> Any:
    """A new h5py.Dataset with the values of `data` within the bound; rel is of the range of the whole array.

    chunks: a shape, or "auto" (advise_chunks()). fill: values in `data` that mark missing data. attrs: attributes say what was
    lost, as those of `quern h5 pack`. threads, progress: as in write(). Other arguments are h5py's."""
    requested = chosen_bound(kinds=("abs", "rel", "pwrel", "lossless"), abs=abs, rel=rel, pwrel=pwrel, lossless=lossless)
    values = data if hasattr(data, "shape") and hasattr(data, "dtype") else np.asarray(data)
    refuse_masked(values)
    fills = [] if fill is None else list(np.atleast_1d(np.asarray(fill)))
    if h5py_kwargs.get("fillvalue") is not None:
        fills.append(h5py_kwargs["fillvalue"])
    bound = Bound("abs", bound_of(values, rel=requested.value, fill=fills or None)) if requested.kind == "rel" else requested
    dtype = np.dtype(h5py_kwargs.pop("dtype", values.dtype))
    refuse_others(dtype)
    missing = None if fill is None else [np.asarray(value).astype(dtype) for value in np.atleast_1d(np.asarray(fill))]
    words = request_words(bound, codec=codec, goal=goal, effort=effort, fill=missing)
    if chunks == "auto" or chunks is True:
        chunks = advise_chunks(values.shape, dtype)
    _need_h5py()
    register()
    _refuse_ranks(group.file)
    if 0 in values.shape and h5py_kwargs.get("maxshape") is None:
        return group.create_dataset(name, shape=values.shape, dtype=dtype, **h5py_kwargs)  # HDF5 has no chunks of nothing
    dataset = group.create_dataset(name, shape=values.shape, dtype=dtype, chunks=chunks, compression=FILTER_ID,
                                   compression_opts=words, **h5py_kwargs)
    try:
        write(dataset, values, threads=threads, progress=progress)
    except BaseException:
        del group[name]
        raise
    if attrs:
        previous = getattr(data, "attrs", None)
        for key, value in loss_attributes(bound, requested, previous).items():
            dataset.attrs[key] = value
    return dataset


def write(dataset: Any, array: ArrayLike, *, threads: int = 0, progress: ProgressFunction | None = None) -> None:
    """Writes a whole h5py.Dataset that has the filter, many chunks at once and outside h5py's lock; its bytes are those that
    `dataset[...] = array` gives. threads: 0 all, 1 one. progress(done, total): in elements; False cancels. A dataset with other
    filters besides, or of an h5py before 3.8, is written through HDF5's own pipeline."""
    from ._direct import is_alone, words_of, write_chunks

    register()
    values = array if hasattr(array, "shape") and hasattr(array, "__getitem__") else np.asarray(array)
    refuse_masked(values)
    _refuse_ranks(dataset.file)
    if dataset.file.mode == "r":
        raise OSError(f"{dataset.file.filename} is open for reading: open it with the mode 'r+' to write {dataset.name}")
    if tuple(values.shape) != tuple(dataset.shape):
        raise ValueError(f"the array has the shape {tuple(values.shape)}, the dataset {tuple(dataset.shape)}")
    if words_of(dataset) is None:
        raise ValueError(f"{dataset.name} does not have the filter: create it with compression=pyquern.hdf5.filter(...)")
    if dataset.size and is_alone(dataset):
        write_chunks(dataset, values, threads, progress)
    else:
        dataset[...] = np.asarray(values[...])


def _refuse_ranks(file: Any) -> None:
    """Unsupported for a file that MPI ranks share, which takes collective writes and no direct chunks."""
    if file.driver == "mpio":
        raise Unsupported(40, f"{file.filename} is shared by MPI ranks: create the dataset with compression=pyquern.hdf5.filter(...), and "
                              "write a part of it on each rank with 'with dataset.collective: dataset[box] = values'")


def read(dataset: Any, selection: Any = (), *, threads: int = 0, out: Any = None) -> Any:
    """Values of an h5py.Dataset that has the filter, many chunks at once and outside h5py's lock. selection: as in
    `dataset[selection]`; boxes with step 1 are read so, all else as h5py does. out: a NumPy array of that shape, in the
    machine's byte order, that is filled and returned."""
    from ._direct import is_alone, read_chunks

    register()
    box = _box(selection, dataset.shape)
    if box is None or not is_alone(dataset) or 0 in dataset.shape:
        values = dataset[selection]
        if out is None:
            return values
        out[...] = values
        return out
    shape = tuple(part.stop - part.start for part in box)
    native = dataset.dtype.newbyteorder("=")
    values = np.empty(shape, native) if out is None else out
    if values.shape != shape or values.dtype != native or not values.flags.writeable:
        raise ValueError(f"out must be a writable array of {native} with the shape {shape}")
    if 0 not in shape:
        read_chunks(dataset, box, values, threads)
    return values


def _box(selection: Any, shape: tuple[int, ...]) -> tuple[slice, ...] | None:
    parts = list(selection) if isinstance(selection, tuple) else [selection]
    gaps = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(gaps) > 1 or any(part is not Ellipsis and not isinstance(part, slice) for part in parts):
        return None
    at = gaps[0] if gaps else len(parts)
    parts[at:at + 1] = [slice(None)] * (len(shape) - len(parts) + len(gaps))
    if len(parts) != len(shape):
        return None
    limits = [part.indices(extent) for part, extent in zip(parts, shape)]
    if any(step != 1 for _, _, step in limits):
        return None
    return tuple(slice(first, max(first, last)) for first, last, _ in limits)


def define(variable: Any, *, abs: float | None = None, rel: float | None = None, pwrel: float | None = None,
           lossless: bool = False, codec: str = "auto", goal: str = "ratio", effort: int | None = None, fill: Any = None) -> None:
    """Gives a netCDF4.Variable the filter, between createVariable() and its first values; a contiguous one gets chunks. The
    bound is in the units of the numbers that are stored (those of a packed variable: of its integers). fill: values of the
    variable's type that mark missing data; _FillValue is kept anyway. Unsupported where netCDF refuses, with its reason."""
    from ._netcdf import define_filter

    bound = request_bound(abs=abs, pwrel=pwrel, lossless=lossless, rel=rel)
    fills = [] if fill is None else list(np.atleast_1d(np.asarray(fill)))
    fills += declared_fills({name: variable.getncattr(name) for name in variable.ncattrs()})
    register()
    define_filter(variable, request_words(bound, codec=codec, goal=goal, effort=effort, fill=fills or None, dtype=variable.dtype))


def settings_of(dataset: Any) -> dict[str, Any] | None:
    """Bound, codec, goal, effort and flags of a dataset of h5py or a variable of netCDF4; None without the filter."""
    if hasattr(dataset, "_varid"):
        from ._netcdf import words_of_variable

        words = words_of_variable(dataset)
    else:
        from ._direct import words_of

        words = words_of(dataset)
    return None if words is None else settings(words)


watch_imports()
register(strict=False)
