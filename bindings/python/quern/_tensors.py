"""Tensors of NumPy, PyTorch and whatever speaks DLPack or the buffer protocol, as addresses; and new ones to read into."""
import sys

import numpy as np

from . import _dlpack
from ._library import CUDA, HOST

# Numbers of <quern/checkpoint.h>.
DTYPES = {1: "f16", 2: "bf16", 3: "f32", 4: "f64", 5: "f8_e4m3", 6: "f8_e5m2", 8: "i8", 9: "i16", 10: "i32", 11: "i64",
          16: "u8", 17: "u16", 18: "u32", 19: "u64", 24: "bool"}
NUMBERS = {name: number for number, name in DTYPES.items()}
_NUMPY = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16", "i32": "int32",
          "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool"}
_ML_DTYPES = {"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}
_TORCH = {**_NUMPY, **_ML_DTYPES}
_BY_NUMPY_NAME = {name: dtype for dtype, name in {**_NUMPY, **_ML_DTYPES}.items()}
_BY_TORCH_NAME = {"torch." + name: dtype for dtype, name in _TORCH.items()}


def element_bytes(dtype):
    return {"f16": 2, "bf16": 2, "f8_e4m3": 1, "f8_e5m2": 1, "bool": 1}.get(dtype) or int(dtype[1:]) // 8


class TypedArray:
    """Elements of a type that NumPy lacks (bf16, f8_e4m3, f8_e5m2), as a NumPy array of unsigned integers with the same
    bits (`array`) and the name of the type (`dtype`). Goes into save(), comes out of load() where neither PyTorch nor
    ml_dtypes is there, and can be handed on by DLPack."""

    def __init__(self, array, dtype):
        array = np.asarray(array)
        if dtype not in NUMBERS:
            raise TypeError(f"'{dtype}' is no dtype: {', '.join(NUMBERS)}")
        if array.dtype.kind not in "uib" or array.dtype.itemsize != element_bytes(dtype):
            raise TypeError(f"elements of {dtype} are carried in integers of {element_bytes(dtype)} bytes, not {array.dtype}")
        self.array, self.dtype = array, dtype

    @property
    def shape(self):
        return self.array.shape

    def __array__(self, dtype=None, copy=None):
        if dtype is None or np.dtype(dtype) == self.array.dtype:
            return self.array.copy() if copy else self.array
        return self.array.astype(dtype)

    def __dlpack__(self, **_):
        return _dlpack.export(np.ascontiguousarray(self.array), self.dtype, self.array.shape)

    def __dlpack_device__(self):
        return (_dlpack.CPU, 0)

    def __repr__(self):
        return f"TypedArray({self.dtype}, shape={self.shape})"


class Source:
    """A tensor to be saved: dtype, shape, and the address of its contiguous values, which `keep` keeps alive."""

    def __init__(self, kind, dtype, shape, address, keep, identity, memory=HOST, device=0):
        self.kind, self.dtype, self.shape, self.address, self.keep = kind, dtype, tuple(shape), address, keep
        self.identity = identity  # equal for tensors that are one and the same memory; None: never
        self.memory, self.device = memory, device


def _from_torch(value, where):
    if hasattr(value, "device_mesh") or type(value).__name__ == "ShardedTensor":
        raise TypeError(f"{where}: a {type(value).__name__} is spread over processes; save it with quern.torch_dcp")
    dtype = _BY_TORCH_NAME.get(str(value.dtype))
    if dtype is None:
        raise TypeError(f"{where}: tensors of {value.dtype} cannot be saved")
    if str(value.layout) != "torch.strided" or value.device.type == "meta":
        raise TypeError(f"{where}: only dense tensors with values can be saved, not {value.layout} on {value.device}")
    given = value.detach()
    identity = None
    if given.numel() != 0:
        identity = (str(given.device), given.data_ptr(), tuple(given.shape), given.stride(), dtype)
    host = given.cpu()
    if hasattr(host, "resolve_neg"):
        host = host.resolve_neg()
    host = host.contiguous()  # a copy of views that skip elements, the tensor itself otherwise
    return Source("torch", dtype, given.shape, host.data_ptr(), (host, value), identity)


def _from_numpy(array, kind, where, dtype=None):
    dtype = dtype or _BY_NUMPY_NAME.get(array.dtype.newbyteorder("=").name)
    if dtype is None:
        raise TypeError(f"{where}: arrays of {array.dtype} cannot be saved")
    identity = None
    if array.size != 0:
        identity = ("cpu", array.__array_interface__["data"][0], array.shape, array.strides, dtype)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    dense = np.ascontiguousarray(native)
    return Source(kind, dtype, array.shape, dense.ctypes.data, (dense, array), identity)


def _from_dlpack(value, where):
    borrowed = _dlpack.Borrowed(value)
    if borrowed.dtype is None:
        raise TypeError(f"{where}: elements of this type cannot be saved")
    if not borrowed.contiguous:
        raise TypeError(f"{where}: this {type(value).__name__} is not contiguous; make a contiguous copy first")
    kind, device = borrowed.device
    on_host = kind in (_dlpack.CPU, _dlpack.CUDA_HOST, _dlpack.CUDA_MANAGED)
    if not on_host and kind != _dlpack.CUDA:
        raise TypeError(f"{where}: memory of DLPack device type {kind} cannot be read")
    identity = (borrowed.device, borrowed.address, borrowed.shape, borrowed.dtype)
    return Source("numpy", borrowed.dtype, borrowed.shape, borrowed.address, borrowed, identity,
                  HOST if on_host else CUDA, 0 if on_host else device)


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
        return _from_numpy(value, "numpy", where)
    if isinstance(value, (str, bytes, bytearray)):
        return None
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, where)
    try:
        return _from_numpy(np.asarray(memoryview(value)), "numpy", where)
    except TypeError:
        return None


def _torch_dtype(torch, dtype):
    return getattr(torch, _TORCH[dtype], None)


def empty(kind, dtype, shape):
    """(tensor, address, bytes) of a new tensor of that kind: "torch" or "numpy". What PyTorch lacks is NumPy's."""
    if kind == "torch":
        import torch

        torch_dtype = _torch_dtype(torch, dtype)
        if torch_dtype is not None:
            tensor = torch.empty(shape, dtype=torch_dtype)
            return tensor, tensor.data_ptr(), tensor.numel() * element_bytes(dtype)
    if dtype in _NUMPY:
        array = np.empty(shape, _NUMPY[dtype])
        return array, array.ctypes.data, array.nbytes
    array = np.empty(shape, f"uint{8 * element_bytes(dtype)}")
    try:
        import ml_dtypes
    except ImportError:
        return TypedArray(array, dtype), array.ctypes.data, array.nbytes
    return array.view(getattr(ml_dtypes, _ML_DTYPES[dtype])), array.ctypes.data, array.nbytes
