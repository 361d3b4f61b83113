"""Tensors of NumPy, PyTorch and whatever speaks DLPack or the buffer protocol, as addresses; and new ones to read into."""
from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from . import _dlpack
from ._dtypes import (
    BY_NAME,
    NUMBERS,
    count_of,
    element_bytes,
    is_complex,
    is_label,
    label_name,
    low_rank,
    numpy_dtype,
    numpy_label,
    stored_form,
    torch_dtype,
)
from ._capi import CUDA, HOST

#: The role of what must never be taken for weights or moments.
NO_ROLE = "other"


class TypedArray:
    """Elements of a type that NumPy lacks (bf16, f8_e4m3, f8_e5m2, or a name such as float8_e8m0fnu), as a NumPy array of
    unsigned integers with the same bits (`array`) and the name of the type (`dtype`). Goes into save(), comes out of load()
    where neither PyTorch nor ml_dtypes has the type, and can be handed on by DLPack where that has it."""

    def __init__(self, array: Any, dtype: str) -> None:
        array = np.asarray(array)
        if dtype in NUMBERS:
            size = element_bytes(dtype)
        elif is_label(dtype):
            size = array.dtype.itemsize
        else:
            raise TypeError(f"'{dtype}' is no dtype: {', '.join(NUMBERS)}, or a name such as float8_e8m0fnu")
        if array.dtype.kind not in "uib" or array.dtype.itemsize != size:
            raise TypeError(f"elements of {dtype} are carried in integers of {size} bytes, not {array.dtype}")
        self.array, self.dtype = array, dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype is None or np.dtype(dtype) == self.array.dtype:
            return self.array.copy() if copy else self.array
        return self.array.astype(dtype)

    def __dlpack__(self, **_: Any) -> Any:
        return _dlpack.export(np.ascontiguousarray(self.array), self.dtype, self.array.shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_dlpack.CPU, 0)

    def __repr__(self) -> str:
        return f"TypedArray({self.dtype}, shape={self.shape})"


class Source:
    """A tensor to be saved: the dtype and shape it is stored in, and the address of its contiguous values, which `keep` keeps
    alive. `node`: what the state text says of it beyond its name ("kind" always; "dtype", "shape", "order" where the
    tensor is not the stored one). `role`: None, told from the name."""

    def __init__(self, node, dtype, shape, address, keep, identity, memory=HOST, device=0):
        self.node, self.dtype, self.shape, self.address, self.keep = node, dtype, tuple(shape), address, keep
        self.identity = identity  # equal for tensors that are one and the same memory; None: never
        self.memory, self.device = memory, device
        self.role = NO_ROLE if "dtype" in node else None

    @property
    def kind(self):
        return self.node["kind"]

    @property
    def is_plain(self):
        """True when dtype and shape are the tensor's own."""
        return "dtype" not in self.node and "shape" not in self.node


def _form(kind, known, label, item_bytes, shape):
    """(node, dtype, shape) of a tensor of the stored type `known` or, where that is None, of `label`."""
    shape = tuple(shape)
    node = {"kind": kind}
    dtype, stored = low_rank(known, shape) if known else stored_form(label, item_bytes, shape)
    if not known:
        node["dtype"] = label
    if stored != shape:
        node["shape"] = list(shape)
    return node, dtype, stored


def _from_torch(value, where):
    import torch

    if hasattr(value, "device_mesh") or type(value).__name__ == "ShardedTensor":
        raise TypeError(f"{where}: a {type(value).__name__} is spread over processes; save it with pyquern.torch_dcp")
    if value.layout != torch.strided or value.device.type == "meta" or value.is_quantized:
        what = "a quantized tensor" if value.is_quantized else f"{value.layout} on {value.device}"
        raise TypeError(f"{where}: only dense tensors with values can be saved here, not {what}")
    name = str(value.dtype).partition(".")[2]
    known = BY_NAME.get(name)
    given = value.detach()
    identity = None
    if given.numel() != 0:
        identity = (str(given.device), given.data_ptr(), tuple(given.shape), given.stride(), name, given.is_neg(),
                    given.is_conj())
    shape, size = given.shape, given.element_size()
    given = given.resolve_conj().resolve_neg()
    if not known and size == 1:
        given = given.view(torch.uint8)  # PyTorch can copy few of the others
    elif is_complex(name):
        given = torch.view_as_real(given)
    host = given.cpu().contiguous()  # a copy of views that skip elements, the tensor itself otherwise
    return Source(*_form("torch", known, name, size, shape), host.data_ptr(), (host, value), identity)


@functools.lru_cache(maxsize=256)
def _numpy_type(dtype):
    """(stored type or None, label, order) of a type of NumPy; label None: it cannot be stored."""
    plain = dtype.names is None and dtype.subdtype is None
    known = BY_NAME.get(dtype.newbyteorder("=").name) if plain else None
    label = known
    if known is None:
        swapped = plain and not dtype.isnative and dtype.name in ("complex64", "complex128")
        label = dtype.name if swapped else numpy_label(dtype)
    order = dtype.str[0] if (known or is_complex(label)) and not dtype.isnative else None
    return known, label, order


def _from_numpy(array, kind, where, dtype=None):
    if dtype is not None:
        known, label, order = dtype if dtype in NUMBERS else None, dtype, None
    else:
        known, label, order = _numpy_type(array.dtype)
    if label is None:
        raise TypeError(f"{where}: arrays of {array.dtype} cannot be saved: their elements are no numbers, but Python objects; "
                        "make a list of them, or an array of fixed-size texts")
    identity = None
    if array.size != 0:
        identity = ("cpu", array.__array_interface__["data"][0], array.shape, array.strides, dtype or array.dtype)
    native = array.astype(array.dtype.newbyteorder("="), copy=False) if order else array
    dense = np.ascontiguousarray(native)
    node, stored, shape = _form(kind, known, label, array.dtype.itemsize, array.shape)
    if order:
        node["order"] = order
    return Source(node, stored, shape, dense.ctypes.data, (dense, array), identity)


def _from_dlpack(value, where):
    borrowed = _dlpack.Borrowed(value)
    if borrowed.dtype is None:
        raise TypeError(f"{where}: elements of this type cannot be saved; hand over an array of NumPy or PyTorch")
    if not borrowed.contiguous:
        raise TypeError(f"{where}: this {type(value).__name__} is not contiguous; make a contiguous copy first")
    kind, device = borrowed.device
    on_host = kind in (_dlpack.CPU, _dlpack.CUDA_HOST, _dlpack.CUDA_MANAGED)
    if not on_host and kind != _dlpack.CUDA:
        raise TypeError(f"{where}: memory of DLPack device type {kind} cannot be read; copy it to the host first")
    identity = (borrowed.device, borrowed.address, borrowed.shape, borrowed.dtype)
    form = _form("numpy", borrowed.dtype, None, 0, borrowed.shape)
    return Source(*form, borrowed.address, borrowed, identity, HOST if on_host else CUDA, 0 if on_host else device)


def source_of(value, where):
    """The Source of a tensor, or None for what is no tensor."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(value, where)
    if isinstance(value, TypedArray):
        return _from_numpy(value.array, "numpy", where, value.dtype)
    if isinstance(value, np.generic):
        return _from_numpy(np.asarray(value), "scalar", where)
    if isinstance(value, np.ndarray):
        if type(value) not in (np.ndarray, np.memmap):
            raise TypeError(f"{where}: a {type(value).__name__} would come back as a plain array; save its parts, such as "
                            "np.asarray(it), or say how with objects= or pyquern.checkpoint.register()")
        return _from_numpy(value, "numpy", where)
    if isinstance(value, (str, bytes, bytearray)):
        return None
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, where)
    try:
        return _from_numpy(np.asarray(memoryview(value)), "numpy", where)
    except TypeError:
        return None


class Form:
    """A stored tensor as the state text describes it: what it is, and how it is had."""

    def __init__(self, info, node, where):
        if info.dtype not in NUMBERS:
            raise ValueError(f"{where}: its elements, {info.dtype} of the library, are not known here; `quern checkpoint load` writes "
                             "it to a file")
        self.label = node.get("dtype", info.dtype)
        self.shape = tuple(node.get("shape", info.shape))
        self.order = node.get("order")
        self.plain = "dtype" not in node
        self.same_axes = info.shape[: len(self.shape)] == self.shape  # then boxes of it are boxes of what is stored
        count = count_of(self.shape)
        if any(not isinstance(extent, int) or extent < 0 for extent in self.shape):
            raise ValueError(f"{where}: {list(self.shape)} is no shape")
        if self.plain:
            size = element_bytes(info.dtype)
        else:
            size = info.raw_bytes // count if count else _size_of(self.label)
        if (info.dtype, info.shape) != (low_rank(info.dtype, self.shape) if self.plain else
                                        stored_form(self.label, size, self.shape)):
            raise ValueError(f"{where}: the state text does not fit the tensor that is stored")
        self.item_bytes = size
        self.extra = info.shape[len(self.shape):] if self.same_axes else ()

    def empty(self, kind, shape):
        """(tensor, address, bytes) of a new one: of "torch" or "numpy". What PyTorch lacks is NumPy's."""
        if kind == "torch":
            dtype = torch_dtype(self.label)
            if dtype is not None:
                import torch

                tensor = torch.empty(shape, dtype=dtype)
                return tensor, tensor.data_ptr(), tensor.numel() * tensor.element_size()
        dtype = numpy_dtype(self.label)
        if dtype is None:
            array = np.empty(shape, f"uint{8 * self.item_bytes}")
            return TypedArray(array, label_name(self.label)), array.ctypes.data, array.nbytes
        if dtype.subdtype is not None or dtype.itemsize != self.item_bytes:
            raise ValueError(f"elements of {label_name(self.label)} have another size here")
        array = np.empty(shape, dtype) if dtype.itemsize else np.ndarray(shape, dtype, b"")  # empty() makes S1 of S0
        return array, array.ctypes.data, array.nbytes

    def finish(self, tensor):
        """After reading: bytes in the order they had."""
        if self.order is None or not isinstance(tensor, np.ndarray) or tensor.dtype.str[0] == self.order:
            return tensor
        return tensor.byteswap(inplace=True).view(tensor.dtype.newbyteorder(self.order))


def _size_of(label):
    dtype = numpy_dtype(label)
    if dtype is not None:
        return dtype.itemsize
    if "torch" in sys.modules:
        kind = torch_dtype(label)
        if kind is not None:
            return kind.itemsize
    return 1
