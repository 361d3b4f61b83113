"""Zarr format 2 and everything else that takes numcodecs: the codec `quern`.

    zarr.create_array(store, shape=t.shape, dtype="f4", zarr_format=2, compressors=pyquern.numcodecs.Quern(abs=0.01), filters=None)

Found by its name, without this import, where pyquern is installed by pip."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._array import NUMBERS
from ._bounds import Bound
from ._chunk_config import ChunkConfig, from_json, make_config
from .core import decompress, info

if TYPE_CHECKING:
    class _Codec:
        codec_id: str | None
else:
    try:
        from numcodecs.abc import Codec as _Codec
    except ImportError:
        raise ImportError("numcodecs is not installed: pip install zarr, or numcodecs") from None

__all__ = ["Quern"]

#: What streams of big-endian arrays have as their metadata; they hold the numbers in the machine's order.
_BIG = b'{"byte_order":"big"}'
_LOSSLESS = ChunkConfig(Bound("lossless", 0.0))


class Quern(_Codec):
    """abs (in the array's units), pwrel, or lossless=True; codec, goal, effort: as in pyquern.compress(). fill: numbers
    that mark missing data. Values that were decoded come back bit for bit when they are encoded again, so that chunks may be written in
    parts.

    The bound is for arrays of numbers. Losslessly encoded are raw buffers (bytes, memoryview: a filter before this codec makes
    such), arrays of 1-byte integers unless `dtype` names them, arrays of another type than `dtype` where that is given, and
    arrays of what are no numbers (texts, dates, booleans). Objects are a TypeError. Immutable and hashable; any number of
    threads may use one."""

    codec_id = "quern"

    def __init__(self, *, abs: float | None = None, pwrel: float | None = None, lossless: bool = False, codec: str = "auto",
                 goal: str = "ratio", effort: int | None = None, fill: Any = None, dtype: Any = None,
                 rel: float | None = None) -> None:
        config = make_config(abs=abs, pwrel=pwrel, lossless=lossless, rel=rel, codec=codec, goal=goal, effort=effort, fill=fill)
        object.__setattr__(self, "_config", config)
        object.__setattr__(self, "_dtype", None if dtype is None else np.dtype(dtype))

    _config: ChunkConfig
    _dtype: np.dtype[Any] | None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Quern codec does not change: make another for another {name}")

    def encode(self, buf: Any) -> bytes:
        """The stream of a chunk; an array in Fortran order is taken as its transpose, without a copy."""
        if not isinstance(buf, np.ndarray):
            raw = np.frombuffer(buf, np.uint8) if memoryview(buf).nbytes else np.empty(0, np.uint8)
            return _LOSSLESS.compressed(raw)
        if buf.dtype.hasobject:
            raise TypeError("arrays of Python objects cannot be encoded: give the array a type of numbers")
        array = buf.T if buf.flags.f_contiguous and not buf.flags.c_contiguous else buf
        if array.ndim > 8:
            array = array.reshape(-1, *array.shape[-7:])
        if array.dtype.name not in NUMBERS and array.dtype.kind != "c":
            return _LOSSLESS.compressed(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        config = self._config if self._is_bounded(array.dtype) else _LOSSLESS
        return config.compressed(array, metadata=b"" if array.dtype.isnative else _BIG)

    def _is_bounded(self, dtype: np.dtype[Any]) -> bool:
        if self._dtype is not None:
            return bool(dtype.newbyteorder("=") == self._dtype.newbyteorder("="))
        return dtype.itemsize > 1

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The values, flat, in the order they lay in memory; in `out` where that is given, which must have their size."""
        values = np.asarray(decompress(buf)).reshape(-1)
        if info(buf).metadata == _BIG:
            values = values.astype(values.dtype.newbyteorder(">"))
        if out is None:
            return values
        target = _flat_bytes(out if isinstance(out, np.ndarray) else np.frombuffer(out, np.uint8))
        if target.nbytes != values.nbytes:
            raise ValueError(f"out has {target.nbytes} bytes; the chunk has {values.nbytes}")
        target[...] = values.view(np.uint8)
        return out

    def get_config(self) -> dict[str, Any]:
        config = {"id": self.codec_id, **self._config.to_json()}
        if self._dtype is not None:
            config["dtype"] = self._dtype.str
        return config

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Quern:
        given = {name: value for name, value in config.items() if name != "id"}
        keywords = from_json(given, ("dtype",))
        return cls(**keywords, dtype=given.get("dtype"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quern) and (repr(self._config), self._dtype) == (repr(other._config), other._dtype)

    def __hash__(self) -> int:
        return hash((repr(self._config), self._dtype))

    def __repr__(self) -> str:
        items = [f"{name}={value!r}" for name, value in self._config.keywords().items()]
        if self._dtype is not None:
            items.append(f"dtype={self._dtype.str!r}")
        return f"Quern({', '.join(items)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Quern.from_config, (self.get_config(),)


def _flat_bytes(out: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array = out.T if out.flags.f_contiguous and not out.flags.c_contiguous else out
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise ValueError("out must be contiguous and writable")
    return array.reshape(-1).view(np.uint8)


def _register() -> None:
    from numcodecs.registry import register_codec

    register_codec(Quern)


_register()
