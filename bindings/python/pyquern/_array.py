"""Arrays of others as quern_array, and NumPy arrays for what comes back."""
from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import numpy.typing as npt

from . import _capi, _dlpack
from ._errors import DeviceError, InvalidArgument, OutOfMemory
from ._tensors import TypedArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: NumPy's name of a type -> its number in quern.h.
NUMBERS = {"float16": 1, "bfloat16": 2, "float32": 3, "float64": 4, "int8": 8, "int16": 9, "int32": 10, "int64": 11,
           "uint8": 16, "uint16": 17, "uint32": 18, "uint64": 19}
NAMES = {number: name for name, number in NUMBERS.items()}
_SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8", "int16": "i16",
          "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64"}
_FROM_SHORT = {short: name for name, short in _SHORT.items()}
ITEM_BYTES = {number: 1 if number in (8, 16) else 2 if number in (1, 2, 9, 17) else 4 if number in (3, 10, 18) else 8
              for number in NAMES}

#: The same by NumPy's types, in the machine's byte order; others are found by their names.
_BY_TYPE = {np.dtype(name): number for name, number in NUMBERS.items() if name != "bfloat16"}

ArrayLike = Any
Decoded = Union["NDArray[Any]", TypedArray]
_SIZE = ctypes.sizeof(_capi.Array)
_NO_STRIDES = (0,) * _capi.MAX_RANK


class Given:
    """An array of somebody's: `c`, the struct the library takes; `dtype` its number there; `keep` holds the memory."""

    __slots__ = ("c", "dtype", "keep", "nbytes", "shape")

    def __init__(self, dtype: int, shape: tuple[int, ...], strides: tuple[int, ...], address: int, keep: object,
                 memory: int = _capi.HOST, device: int = 0) -> None:
        if len(shape) > _capi.MAX_RANK:
            raise InvalidArgument(2, f"an array of {len(shape)} axes: quern takes up to {_capi.MAX_RANK}. Join some of them "
                                     "with reshape()")
        self.dtype, self.shape, self.keep = dtype, shape, keep
        count = 1
        for extent in shape:
            count *= extent
        self.nbytes = count * ITEM_BYTES[dtype]
        self.c = _capi.Array(_SIZE, dtype, memory, device, len(shape), 0, shape, strides, address)


def _refuse(dtype: np.dtype[Any]) -> TypeError:
    if dtype.kind in "mM":
        advice = "pass its numbers: .view('i8')"
    elif dtype.kind == "b":
        advice = "pass .view('u1'), losslessly"
    elif dtype.kind in "SU":
        advice = "texts are no numbers: encode them, or keep them outside"
    elif dtype.names is not None:
        advice = f"pass one field after the other, such as array[{dtype.names[0]!r}]"
    elif dtype.kind == "O":
        advice = "make an array of numbers of it: .astype(float)"
    else:
        advice = "pass .astype('f8') or another of those types"
    return TypeError(f"arrays of {dtype} cannot be compressed; quern takes float16, bfloat16, float32, float64, complex, and "
                     f"integers of 8 to 64 bits: {advice}")


def refuse_masked(array: Any) -> None:
    """TypeError for a masked array, whose masked places NumPy's other functions would take for values."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array: pass array.filled(value) and fill=value, which keeps the masked places apart")


def refuse_others(dtype: np.dtype[Any]) -> None:
    """TypeError for texts, dates and objects, which no kind of file stores as numbers."""
    if dtype.kind in "OSUmM":
        raise _refuse(dtype)


def _copied(copy: Callable[[], NDArray[Any]], array: NDArray[Any]) -> NDArray[Any]:
    """A copy of what cannot be taken where it lies."""
    try:
        return copy()
    except MemoryError:
        raise OutOfMemory(60, f"the array is repeated, unaligned or of another byte order, and a copy of it, {array.nbytes} bytes, is more "
                              "than this machine has: compress it in parts") from None


def _from_numpy(array: NDArray[Any]) -> Given:
    """Contiguous arrays are taken as they are, others by their strides; one copy is made of what is unaligned, of another byte
    order, or complex."""
    refuse_masked(array)
    dtype, flags = array.dtype, array.flags
    number = _BY_TYPE.get(dtype)
    if number is not None and flags.c_contiguous and flags.aligned:
        return Given(number, array.shape, (), array.__array_interface__["data"][0], array)
    if dtype.kind == "c" and dtype.itemsize in (8, 16):
        parts = np.ascontiguousarray(array.astype(dtype.newbyteorder("="), copy=False)).reshape(array.shape)
        array = parts.reshape((*parts.shape, 1)).view(f"f{dtype.itemsize // 2}")
        dtype = array.dtype
    number = NUMBERS.get(dtype.name) if dtype.names is None and dtype.subdtype is None else None
    if number is None:
        raise _refuse(dtype)
    if not dtype.isnative:
        swapped = array
        array = _copied(lambda: swapped.astype(dtype.newbyteorder("=")), swapped)
    flags, item = array.flags, array.itemsize
    if flags.c_contiguous and flags.aligned:
        strides = _NO_STRIDES[:array.ndim]
    elif flags.aligned and all(step % item == 0 for step in array.strides):
        strides = tuple(step // item for step in array.strides)
        if not any(strides):
            # All zero means contiguous in C.
            repeated = array
            strides, array = _NO_STRIDES[:array.ndim], _copied(lambda: np.ascontiguousarray(repeated), repeated)
    else:
        odd = array
        array = _copied(lambda: odd.copy(order="C"), odd)
        strides = _NO_STRIDES[:array.ndim]
    return Given(number, array.shape, strides, array.__array_interface__["data"][0], array)


def _from_typed(value: TypedArray) -> Given:
    name = _FROM_SHORT.get(value.dtype)
    if name is None:
        raise TypeError(f"a TypedArray of {value.dtype} cannot be compressed; bf16 can")
    array = np.ascontiguousarray(value.array)
    return Given(NUMBERS[name], array.shape, _NO_STRIDES[:array.ndim], array.__array_interface__["data"][0], array)


def _from_dlpack(value: Any, *, writable: bool = False) -> Given:
    borrowed = _dlpack.Borrowed(value)
    name = _FROM_SHORT.get(borrowed.dtype or "")
    if name is None:
        if borrowed.dtype is not None and borrowed.dtype.startswith("complex"):
            raise TypeError("complex values by DLPack: pass their parts, such as torch.view_as_real(tensor)")
        raise TypeError(f"elements of {borrowed.dtype or 'this type'} cannot be compressed; quern takes float16, bfloat16, "
                        "float32, float64 and integers of 8 to 64 bits")
    if writable and borrowed.read_only:
        raise ValueError("out is read-only")
    kind, device = borrowed.device
    on_host = kind in (_dlpack.CPU, _dlpack.CUDA_HOST, _dlpack.CUDA_MANAGED)
    if not on_host and kind != _dlpack.CUDA:
        raise TypeError(f"memory of DLPack device type {kind} cannot be reached: copy the array to the host first")
    strides = _NO_STRIDES[:len(borrowed.shape)] if borrowed.contiguous else borrowed.strides
    return Given(NUMBERS[name], borrowed.shape, strides, borrowed.address, borrowed,
                 _capi.HOST if on_host else _capi.CUDA, 0 if on_host else device)


def _from_cuda_interface(value: Any) -> Given:
    """CUDA memory by version 2 or 3 of __cuda_array_interface__, after what its stream has to do first."""
    found = value.__cuda_array_interface__
    dtype, shape = np.dtype(found["typestr"]), tuple(found["shape"])
    if dtype.name not in NUMBERS or not dtype.isnative:
        raise TypeError(f"elements of {dtype} on a device cannot be compressed: convert them there to floating-point numbers or "
                        "integers of the machine's byte order")
    if found.get("mask") is not None:
        raise TypeError("a masked array on a device: fill its masked places and pass fill=")
    steps = found.get("strides")
    if steps is not None and any(step % dtype.itemsize for step in steps):
        raise TypeError("elements on a device that are not aligned: make a contiguous copy there")
    strides = _NO_STRIDES[:len(shape)] if steps is None else tuple(step // dtype.itemsize for step in steps)
    _wait_for(found.get("stream"))
    device = getattr(getattr(value, "device", None), "id", 0)
    return Given(NUMBERS[dtype.name], shape, strides, found["data"][0], value, _capi.CUDA, device if isinstance(device, int) else 0)


def _wait_for(stream: int | None) -> None:
    """Until a CUDA stream has done its work; None: there is nothing to wait for."""
    if stream is None:
        return
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as problem:
        raise DeviceError(80, f"an array on a CUDA device, and no driver for it here: {problem}") from None
    if driver.cuStreamSynchronize(ctypes.c_void_p(stream)) != 0:
        raise DeviceError(81, "the CUDA stream that an array names could not be waited for")


def given(value: ArrayLike) -> Given:
    """An array to be read. NumPy, __array_interface__, __dlpack__, __cuda_array_interface__, the buffer protocol, __array__;
    TypeError for others."""
    if isinstance(value, np.ndarray):
        return _from_numpy(value)
    if isinstance(value, TypedArray):
        return _from_typed(value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        return _from_dlpack(torch.view_as_real(value) if value.is_complex() else value)
    if hasattr(value, "__array_interface__"):
        return _from_numpy(np.asarray(value))
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value)
    if hasattr(value, "__cuda_array_interface__"):
        return _from_cuda_interface(value)
    if hasattr(value, "__array__"):
        return _from_numpy(np.asarray(value))
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(f"a {type(value).__name__} is no array: pass numpy.asarray(it) with the dtype you mean, or anything with "
                        "__array_interface__, __dlpack__ or the buffer protocol") from None
    return _from_numpy(np.asarray(view))


def _numpy_type(number: int) -> tuple[np.dtype[Any], bool]:
    """NumPy's type of a number of quern.h, and whether it only carries the bits: bfloat16 without ml_dtypes."""
    if NAMES[number] != "bfloat16":
        return np.dtype(NAMES[number]), False
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.uint16), True
    return np.dtype(ml_dtypes.bfloat16), False


def dtype_of(number: int) -> np.dtype[Any] | str:
    """What `StreamInfo.dtype` and `File.dtype` say: NumPy's type, or "bfloat16" where NumPy has none."""
    dtype, carried = _numpy_type(number)
    return "bfloat16" if carried else dtype


def empty(number: int, shape: tuple[int, ...], memory_limit: int | None) -> NDArray[Any]:
    """A new array for decoded values; OutOfMemory where it cannot be had or passes the limit."""
    count = 1
    for extent in shape:
        count *= extent
    nbytes = count * ITEM_BYTES[number]
    what = f"the decoded array, {NAMES[number]} {'x'.join(map(str, shape))}, takes {nbytes} bytes"
    if memory_limit is not None and nbytes > memory_limit:
        raise OutOfMemory(61, f"{what}; memory_limit is {memory_limit}")
    try:
        return np.empty(shape, _numpy_type(number)[0])
    except (MemoryError, ValueError):
        raise OutOfMemory(60, f"{what}, which this machine does not have; decode a part with region=, a preview with level=, "
                              "or use pyquern.open()") from None


def limit_beside(memory_limit: int | None, nbytes: int) -> int | None:
    """What a call may take beside an array of `nbytes` that empty() made under the limit."""
    return None if memory_limit is None else max(memory_limit - nbytes, 1)


def finished(number: int, array: NDArray[Any]) -> Decoded:
    """What a caller gets of an array that empty() made."""
    return TypedArray(array, "bf16") if _numpy_type(number)[1] else array


def target(out: ArrayLike, number: int, shape: tuple[int, ...]) -> Given:
    """`out` as an array to be written: of the stream's type and shape, writable and contiguous; else ValueError or TypeError."""
    if isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise ValueError("out is read-only")
        if not out.flags.c_contiguous or not out.flags.aligned or not out.dtype.isnative:
            raise ValueError("out must be C-contiguous, aligned and of the machine's byte order")
        if isinstance(out, np.ma.MaskedArray):
            raise TypeError("out is a masked array: pass its .data")
        found = _from_numpy(out)
    elif isinstance(out, TypedArray):
        if not out.array.flags.c_contiguous or not out.array.flags.writeable:
            raise ValueError("out must be C-contiguous and writable")
        found = _from_typed(out)
    elif hasattr(out, "__dlpack__"):
        found = _from_dlpack(out, writable=True)
        if any(found.c.strides[:len(found.shape)]):
            raise ValueError("out must be C-contiguous")
    else:
        raise TypeError(f"out is a {type(out).__name__}: pass a NumPy array, or what has __dlpack__")
    if found.dtype != number or found.shape != shape:
        raise ValueError(f"out is {NAMES[found.dtype]} {found.shape}; the values are {NAMES[number]} {shape}")
    return found


class Bytes:
    """Somebody's bytes: `address`, `size`, and what keeps them."""

    __slots__ = ("address", "keep", "size")

    def __init__(self, value: Any, what: str, *, writable: bool = False) -> None:
        try:
            view = memoryview(value)
        except TypeError:
            raise TypeError(f"{what} is a {type(value).__name__}: pass bytes, or what has the buffer protocol") from None
        if not view.c_contiguous:
            raise ValueError(f"{what} is not contiguous: pass a contiguous copy")
        if writable and view.readonly:
            raise ValueError(f"{what} is read-only")
        self.size: int = view.nbytes
        self.keep: object = view
        self.address: int = 0
        if self.size:
            array: NDArray[Any] = np.frombuffer(view, np.uint8)
            self.keep, self.address = array, array.__array_interface__["data"][0]


def fill_elements(fill: npt.ArrayLike | None, number: int) -> tuple[bytes, ...]:
    """Fill values as elements of the array's type. ValueError for what that type cannot hold."""
    if fill is None:
        return ()
    values = np.asarray(fill)
    if values.ndim > 1 or values.dtype.kind not in "biuf":
        raise TypeError(f"fill is {fill!r}: give a number, or a sequence of numbers")
    values = values.reshape(-1)
    if values.size > _capi.MAX_FILLS:
        raise ValueError(f"fill has {values.size} values; a stream declares at most {_capi.MAX_FILLS}")
    name = NAMES[number]
    if name == "bfloat16":
        return tuple(_bf16(float(value)).tobytes() for value in values)
    dtype = np.dtype(name)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        for value in values.tolist():
            if value != int(value) or not limits.min <= value <= limits.max:
                raise ValueError(f"fill {value} is no value of {name}")
    with np.errstate(over="ignore"):
        return tuple(value.tobytes() for value in values.astype(dtype))


def _bf16(value: float) -> NDArray[np.uint16]:
    """Rounded to nearest, ties to even."""
    with np.errstate(over="ignore"):
        bits = int(np.float32(value).view(np.uint32))
    return np.array(bits >> 16 | 0x40 if value != value else bits + 0x7FFF + (bits >> 16 & 1) >> 16, np.uint16)
