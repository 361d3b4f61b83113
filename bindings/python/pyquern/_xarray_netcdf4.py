"""xarray's engine netcdf4, which hands no foreign filter on: variables get it when they are made, before their values."""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from xarray.backends import NetCDF4DataStore
from xarray.backends.common import ArrayWriter

from .hdf5._netcdf import define_filter


class _Store(NetCDF4DataStore):  # type: ignore[misc]  # mypy does not check xarray
    """A netCDF4 file whose new variables get the filter with these words."""

    words: Mapping[Hashable, tuple[int, ...]] = {}

    def prepare_variable(self, name: Any, variable: Any, check_encoding: Any = False, unlimited_dims: Any = None) -> Any:
        is_new = name not in self.ds.variables
        target, data = super().prepare_variable(name, variable, check_encoding=check_encoding, unlimited_dims=unlimited_dims)
        if is_new and name in self.words:
            define_filter(self.ds.variables[name], self.words[name])
        return target, data


def write(ds: Any, path: Any, encoding: Mapping[Hashable, Mapping[str, Any]], *, mode: str = "w", group: str | None = None,
          unlimited_dims: Any = None) -> None:
    """Writes a dataset by netCDF4-python. encoding: as for the engine h5netcdf; the filter's words are taken out of it."""
    words, rest = {}, {}
    for name, given in encoding.items():
        own = dict(given)
        own.pop("compression", None)
        found = own.pop("compression_opts", None)
        if found is not None:
            words[name] = tuple(found)
        rest[name] = own
    if unlimited_dims is None:
        unlimited_dims = ds.encoding.get("unlimited_dims")
    store = _Store.open(path, mode=mode, group=group)
    store.words = words
    try:
        writer = ArrayWriter()
        ds.dump_to_store(store, writer=writer, encoding=rest, unlimited_dims=unlimited_dims)
        writer.sync()
    finally:
        store.close()
