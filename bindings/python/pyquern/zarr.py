"""Zarr format 3: the codec `quern`, which turns arrays into bytes and so goes into `serializer`.

    zarr.create_array(store, shape=t.shape, dtype="f4", serializer=pyquern.zarr.QuernCodec(abs=0.01), compressors=None)

Found by its name, without this import, where pyquern is installed by pip. Format 2: pyquern.numcodecs."""
from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import numpy as np

try:
    from zarr.abc.codec import ArrayBytesCodec
    from zarr.core.buffer.cpu import NDBuffer as HostArrays
    from zarr.core.common import parse_named_configuration
    from zarr.registry import register_codec
except ImportError:
    raise ImportError("zarr 3 is not installed: pip install 'zarr>=3'. Of zarr 2 use pyquern.numcodecs.Quern") from None

from ._array import NUMBERS
from ._chunk_config import ChunkConfig, from_json, make_config
from ._errors import CorruptStream
from .core import decompress, info

__all__ = ["QuernCodec"]


class _Serializer(type(ArrayBytesCodec)):  # type: ignore[misc]  # mypy does not check zarr
    """The class of QuernCodec. zarr answers a codec in the wrong place with the name of its class alone: "Expected a
    BytesBytesCodec. Got <class ...> instead." So the class says where it belongs."""

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__qualname__}'> (from array to bytes: pass it as serializer=, with compressors=None)"


@dataclass(frozen=True)
class QuernCodec(ArrayBytesCodec, metaclass=_Serializer):  # type: ignore[misc]  # mypy does not check zarr
    """abs (in the array's units), pwrel, or lossless=True; codec, goal, effort: as in pyquern.compress(). fill: numbers
    that mark missing data; the array's fill_value always does. For arrays of float16, float32, float64 and integers.

    Values that were decoded come back bit for bit when they are encoded again, so that chunks may be written in parts. The
    configuration is a request: reading takes nothing from it, and checks that a chunk has the array's type and shape."""

    config: ChunkConfig
    is_fixed_size = False

    def __init__(self, *, abs: float | None = None, pwrel: float | None = None, lossless: bool = False, codec: str = "auto",
                 goal: str = "ratio", effort: int | None = None, fill: Any = None, rel: float | None = None) -> None:
        object.__setattr__(self, "config", make_config(abs=abs, pwrel=pwrel, lossless=lossless, rel=rel, codec=codec, goal=goal,
                                                       effort=effort, fill=fill))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> QuernCodec:
        _, configuration = parse_named_configuration(data, "quern")
        return cls(**from_json(configuration))

    def to_dict(self) -> dict[str, Any]:
        return {"name": "quern", "configuration": self.config.to_json()}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """TypeError or ValueError for arrays that the codec does not take."""
        native = dtype.to_native_dtype() if hasattr(dtype, "to_native_dtype") else np.dtype(dtype)
        if native.name not in NUMBERS:
            raise TypeError(f"quern takes float16, float32, float64 and integers, not {native}: leave out serializer= for this array, or "
                            "store its numbers, such as .view('i8') of dates or a last axis of 2 for complex numbers")
        if native.kind in "iu" and self.config.bound.kind == "pwrel":
            raise ValueError("a pointwise relative bound is for floating-point numbers: give abs= for integers")
        if len(shape) > 8:
            raise ValueError(f"quern takes up to 8 axes, not {len(shape)}")

    def evolve_from_array_spec(self, array_spec: Any) -> QuernCodec:
        return self

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("the size of a quern stream depends on the values")

    def _encode_sync(self, chunk_array: Any, chunk_spec: Any) -> Any:
        array = chunk_array.as_ndarray_like()
        if isinstance(array, np.ndarray) and array.shape != chunk_spec.shape:
            array = array.reshape(chunk_spec.shape)
        fill = chunk_spec.fill_value
        stream = self.config.compressed(array, () if fill is None else (np.asarray(fill).item(),))
        return chunk_spec.prototype.buffer.from_bytes(stream)

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        stream = chunk_bytes.to_bytes()
        header = info(stream)
        dtype = chunk_spec.dtype.to_native_dtype()
        if header.dtype != dtype.newbyteorder("=") or header.shape != tuple(chunk_spec.shape):
            raise CorruptStream(22, f"the chunk holds {header.dtype} {header.shape}; the array's chunks are {dtype} {chunk_spec.shape}: it "
                                    "belongs to another array")
        arrays = chunk_spec.prototype.nd_buffer
        if not issubclass(arrays, HostArrays) and dtype.isnative:
            found = arrays.create(shape=chunk_spec.shape, dtype=dtype)  # memory on a device
            decompress(stream, out=found.as_ndarray_like())
            return found
        values = np.asarray(decompress(stream)).astype(dtype, copy=False)
        if chunk_spec.order == "F":
            values = np.asfortranarray(values)
        return arrays.from_numpy_array(values)

    async def _encode_single(self, chunk_array: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_array, chunk_spec)

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)


register_codec("quern", QuernCodec)
