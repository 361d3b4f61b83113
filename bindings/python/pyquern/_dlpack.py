"""DLPack by ctypes: looking into capsules of others (versions 0 and 1), and making capsules of memory that a NumPy array holds."""
import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_NAME, _VERSIONED_NAME = b"dltensor", b"dltensor_versioned"
_READ_ONLY = 1

# (DLPack's type code, bits) of dtype names.
_CODES = {"i8": (0, 8), "i16": (0, 16), "i32": (0, 32), "i64": (0, 64), "u8": (1, 8), "u16": (1, 16), "u32": (1, 32),
          "u64": (1, 64), "f16": (2, 16), "f32": (2, 32), "f64": (2, 64), "bf16": (4, 16), "bool": (6, 8),
          "f8_e4m3": (10, 8), "f8_e5m2": (12, 8)}
_DTYPES = {code: name for name, code in _CODES.items()}


class _DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _DLManagedTensor(Structure):
    pass


class _DLManagedTensorVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("dl_tensor", _DLTensor)]


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)
_DLManagedTensor._fields_ = [("dl_tensor", _DLTensor), ("manager_ctx", c_void_p), ("deleter", _Deleter)]


def _api(name, result, *arguments):
    # A prototype of its own, not shared with whoever else uses ctypes.pythonapi. Raises what Python's call left behind.
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_capsule_pointer = _api("PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
_capsule_new = _api("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
# With addresses, for destructors: a capsule that is going must not be counted again.
_dying_is_valid = _api("PyCapsule_IsValid", ctypes.c_int, c_void_p, c_char_p)
_dying_pointer = _api("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)


_capsule_is_valid = _api("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, c_char_p)


class Borrowed:
    """What a `__dlpack__` of somebody else's describes. The memory is valid while this object lives."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        try:
            self._capsule = producer.__dlpack__(max_version=(1, 0))
        except TypeError:
            self._capsule = producer.__dlpack__()  # from before version 1
        self.read_only = False
        if _capsule_is_valid(self._capsule, _VERSIONED_NAME):
            managed = _DLManagedTensorVersioned.from_address(_capsule_pointer(self._capsule, _VERSIONED_NAME))
            if managed.major > 1:
                raise BufferError(f"DLPack {managed.major}.{managed.minor} is newer than what is known here, 1.x")
            self.read_only = bool(managed.flags & _READ_ONLY)
            tensor = managed.dl_tensor
        else:
            tensor = _DLManagedTensor.from_address(_capsule_pointer(self._capsule, _NAME)).dl_tensor
        self.dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
        self.shape = tuple(tensor.shape[a] for a in range(tensor.ndim))
        self.device = (tensor.device_type, tensor.device_id)
        self.address = (tensor.data or 0) + tensor.byte_offset
        strides = [tensor.strides[a] for a in range(tensor.ndim)] if tensor.strides else None
        self.strides = tuple(strides or ())
        self.contiguous = strides is None or _is_contiguous(self.shape, strides)


def _is_contiguous(shape, strides):
    if 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


_exported = {}  # address of a managed tensor -> what keeps its memory alive


@_Deleter
def _forget(address):
    _exported.pop(address, None)


@ctypes.CFUNCTYPE(None, c_void_p)
def _capsule_destroyed(capsule):
    # A consumer renames the capsule and calls the deleter itself; a capsule nobody took goes here.
    if _dying_is_valid(capsule, _NAME):
        _exported.pop(_dying_pointer(capsule, _NAME), None)


def export(array, dtype, shape):
    """A capsule of the contiguous NumPy array `array` as elements of the named dtype; it keeps the array alive."""
    code, bits = _CODES[dtype]
    extents = (c_int64 * max(len(shape), 1))(*shape)
    tensor = _DLTensor(array.ctypes.data, CPU, 0, len(shape), code, bits, 1, extents, None, 0)
    managed = _DLManagedTensor(tensor, None, _forget)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, extents, array)
    return _capsule_new(address, _NAME, ctypes.cast(_capsule_destroyed, c_void_p))
