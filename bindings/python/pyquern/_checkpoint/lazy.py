"""Tensors of open checkpoints, which are read when they are used."""
import operator

import numpy as np

from .. import _dlpack
from .._dtypes import count_of
from .sharing import view_of
from .._tensors import Form, TypedArray


class LazyTensor:
    """A tensor of an open checkpoint. Its values are read when they are asked for: whole by numpy(), torch(), DLPack or
    the array protocol, in part by slices with step 1 (`t[3:7]`, `t[..., 0]`). Reading a part decodes the chunks of 1 MiB
    that it meets, of this tensor and of those it was saved as a difference to; the last 32 chunks are kept. Chunks have
    checksums; the hash of all values is checked where all of them are read.

    `dtype` and `shape` are those of the tensor that was saved; `info` says how it is stored (complex numbers as two real ones on
    a last axis, for instance)."""

    def __init__(self, checkpoint, index, info, node=None):
        self._checkpoint, self._index, self.info = checkpoint, index, info
        self._node = node or {"kind": "numpy"}
        kind = self._node["kind"]
        self._kind = "numpy" if kind == "scalar" else kind
        self._form = Form(info, self._node, f"tensor '{info.name}'")
        self._view = self._node.get("view")
        self.name = info.name
        self.dtype = self._form.label if isinstance(self._form.label, str) else str(self._form.label)
        self.shape = tuple(self._view["shape"]) if self._view else self._form.shape

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def nbytes(self):
        return count_of(self.shape) * self._form.item_bytes

    def __len__(self):
        if not self.shape:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    def _read(self, kind, begin=None, end=None):
        """The tensor, or the box [begin, end) of it, as a new one of that kind."""
        form = self._form
        if self._view is not None or (begin is not None and not form.same_axes):
            whole = self._read_stored(kind, form.shape)
            if self._view is not None:
                whole = view_of(whole, self._view)
            if begin is None:
                return whole
            box = tuple(slice(b, e) for b, e in zip(begin, end))
            return TypedArray(whole.array[box], whole.dtype) if isinstance(whole, TypedArray) else whole[box]
        if begin is None:
            return self._read_stored(kind, form.shape)
        return self._read_stored(kind, tuple(e - b for b, e in zip(begin, end)), *self._stored_box(begin, end))

    def _stored_box(self, begin, end):
        return list(begin) + [0] * len(self._form.extra), list(end) + list(self._form.extra)

    def _read_stored(self, kind, shape, begin=None, end=None):
        tensor, address, size = self._form.empty(kind, tuple(shape))
        self._checkpoint._read_into(self._index, address, size, begin, end)
        return self._form.finish(tensor)

    def _default_kind(self):
        return self._kind if has(self._kind) else "numpy"

    def numpy(self):
        """NumPy array; of types that NumPy lacks an array of ml_dtypes where that is installed, else a TypedArray."""
        return self._read("numpy")

    def torch(self):
        return self._read("torch")

    def value(self):
        """Of the kind it was saved from, when that library is imported or can be."""
        return self._read(self._default_kind())

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.numpy(), dtype)

    def __dlpack__(self, **_):
        if not self._form.plain or self._view is not None:
            raise BufferError(f"tensor '{self.name}' of {self.dtype} cannot be lent by DLPack: take numpy() or torch()")
        array = np.empty(self.nbytes, np.uint8)
        self._checkpoint._read_into(self._index, array.ctypes.data, array.nbytes)
        return _dlpack.export(array, self.dtype, self.shape)

    def __dlpack_device__(self):
        return (_dlpack.CPU, 0)

    def __getitem__(self, key):
        begin, end, dropped = _box(key, self.shape)
        part = self._read(self._default_kind(), begin, end)
        if not dropped:
            return part
        kept = tuple(e - b for a, (b, e) in enumerate(zip(begin, end)) if a not in dropped)
        if isinstance(part, TypedArray):
            return TypedArray(part.array.reshape(kept), part.dtype)
        return part.reshape(kept)

    def __repr__(self):
        return f"LazyTensor('{self.name}', {self.dtype}, shape={self.shape})"


def _box(key, shape):
    """begin, end, and the axes that an index picks one place of."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if keys.count(Ellipsis) > 1:
        raise IndexError("an index has one '...' at most")
    if Ellipsis in keys:
        at = keys.index(Ellipsis)
        keys[at : at + 1] = [slice(None)] * (len(shape) - len(keys) + 1)
    keys += [slice(None)] * (len(shape) - len(keys))
    if len(keys) != len(shape):
        raise IndexError(f"{len(keys)} indices for a tensor of rank {len(shape)}")
    begin, end, dropped = [], [], set()
    for axis, (one, extent) in enumerate(zip(keys, shape)):
        if isinstance(one, slice):
            first, last, step = one.indices(extent)
            if step != 1:
                raise IndexError("slices of stored tensors have step 1")
            last = max(first, last)
        else:
            first = operator.index(one)
            first += extent if first < 0 else 0
            if not 0 <= first < extent:
                raise IndexError(f"index {one} is out of range on axis {axis} of extent {extent}")
            last = first + 1
            dropped.add(axis)
        begin.append(first)
        end.append(last)
    return begin, end, dropped


def has(kind):
    if kind != "torch":
        return True
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True
