"""Open checkpoints, and their tensors, which are read when they are used."""
import ctypes
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from . import _dlpack, _library
from ._handle import Handle
from ._dtypes import DTYPES, FILE_DTYPES, count_of
from ._sharing import view_of
from ._state import BLOB, StateText
from ._tensors import Form, TypedArray, source_of

LAST_STEP = 2**64 - 2


def step_number(step):
    """The step, or what the library calls the newest."""
    if step is None:
        return _library.NEWEST
    return given_step(step)


def given_step(step):
    """Steps are 0 to 2^64 - 2."""
    number = operator.index(step)
    if not 0 <= number <= LAST_STEP:
        raise ValueError(f"a step is 0 to {LAST_STEP}, not {number}")
    return number


@dataclass(frozen=True)
class TensorInfo:
    name: str
    dtype: str
    shape: tuple
    role: str
    mode: str
    lossless: bool
    bound: float
    raw_bytes: int
    stored_bytes: int
    depth: int
    pieces: int


@dataclass(frozen=True)
class Info:
    step: int
    id: str
    base: "int | None"
    parity: "tuple | None"
    raw_bytes: int
    stored_bytes: int
    library: str
    tensors: list = field(repr=False)
    blobs: dict = field(repr=False)
    tags: dict = field(repr=False, default_factory=dict)

    @property
    def ratio(self):
        return self.raw_bytes / max(self.stored_bytes, 1)


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


class Checkpoint(Handle, Mapping):
    """An open checkpoint: a mapping from names to LazyTensors, in the order they were saved."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other

    def __init__(self, store, step=None):
        self._handle = None
        self._store = store  # must outlive the reader
        self._library = store._library
        handle = ctypes.c_void_p()
        self._library.open(store._handle, step_number(step), handle)
        self._handle = handle
        store._users.add(self)
        info = _library.Info()
        self._library.inspect(handle, info)
        self._file_nodes = {}
        tensors = [self._tensor_info(i) for i in range(info.tensors)]
        self._indices = {tensor.name: i for i, tensor in enumerate(tensors)}
        blobs = {}
        self._blob_indices = {}
        for i in range(info.blobs):
            name, size = ctypes.c_char_p(), ctypes.c_uint64()
            self._library.blob_at(handle, i, name, size)
            blobs[name.value.decode()] = size.value
            self._blob_indices[name.value.decode()] = i
        self.info = Info(info.step, info.id.decode(), None if info.base == _library.NO_BASE else info.base,
                         (info.parity_data, info.parity_files) if info.parity_data else None, info.raw_bytes,
                         info.stored_bytes, info.library.decode(), tensors, blobs, self._tags())
        self._state = StateText(self.blob(BLOB).decode()) if BLOB in blobs else None
        self._nodes = {**self._file_nodes, **(self._state.nodes() if self._state else {})}
        self._paths = None

    def _tensor_info(self, index):
        info = _library.TensorInfo()
        self._library.tensor_at(self._handle, index, info)
        name, shape = info.name.decode(), tuple(info.extents[: info.rank])
        dtype = DTYPES.get(info.dtype, f"type {info.dtype}")
        if info.dtype in FILE_DTYPES and info.rank + len(FILE_DTYPES[info.dtype][2]) <= _library.MAX_RANK:
            label, dtype, last = FILE_DTYPES[info.dtype]
            self._file_nodes[name] = {"kind": "numpy", "dtype": label, "shape": list(shape)}
            shape += last
        return TensorInfo(name, dtype, shape, info.role.decode(), info.mode.decode(), bool(info.lossless), info.bound,
                          info.raw_bytes, info.stored_bytes, info.depth, info.pieces)

    def _tags(self):
        out, name, content, count = {}, ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_uint64(1)
        while len(out) < count.value:
            self._library.tag_at(self._handle, len(out), name, content, count)
            if name.value is not None:
                out[name.value.decode()] = content.value.decode()
        return out

    @property
    def step(self):
        return self.info.step

    def __len__(self):
        return len(self._indices)

    def __iter__(self):
        return iter(self._indices)

    def __getitem__(self, name):
        node = self._named_nodes().get(name)
        if node is not None and (node["tensor"] == name or name not in self._indices):
            return self._lazy(node["tensor"], node)
        return self._lazy(name, self._stored_node(name))

    def _lazy(self, name, node):
        index = self._indices[name]
        return LazyTensor(self, index, self.info.tensors[index], node)

    def _stored_node(self, name):
        """What the state text says of a stored tensor, whole."""
        return {key: item for key, item in self._nodes.get(name, {"kind": "numpy"}).items() if key != "view"}

    def _named_nodes(self):
        if self._paths is None:
            self._paths = self._state.paths() if self._state else {}
        return self._paths

    def other_names(self):
        """Names of tensors that are stored under another's name: second names of tied ones, views. `saved[name]` gives them."""
        return [name for name in self._named_nodes() if name not in self._indices]

    def _read_into(self, index, address, size, begin=None, end=None):
        rank = len(self.info.tensors[index].shape)
        box = [None, None]
        if begin is not None:
            box = [(ctypes.c_uint64 * max(rank, 1))(*edge) for edge in (begin, end)]
        self._library.read(self._handle, index, *box, _library.Target(data=address, bytes=size))

    def read_into(self, name, tensor, begin=None, end=None):
        """Reads a tensor, or the box [begin, end) of it, into a contiguous writable one of that dtype and shape (NumPy, or
        PyTorch in host memory), without another copy."""
        lazy = self._lazy(name, self._stored_node(name))
        shape = lazy.info.shape if begin is None else tuple(e - b for b, e in zip(begin, end))
        source = _writable(tensor, name)
        if source.dtype != lazy.info.dtype or source.shape != shape:
            raise ValueError(f"tensor '{name}': {lazy.info.dtype} of shape {shape} does not fit into {source.dtype} of shape "
                             f"{source.shape}")
        size = lazy.info.raw_bytes // max(count_of(lazy.info.shape), 1)
        self._read_into(self._indices[name], source.address, count_of(shape) * size, begin, end)

    def blob(self, name):
        """Opaque bytes that were saved with the checkpoint."""
        out = bytearray(self.info.blobs[name] if hasattr(self, "info") else 0)
        room = (ctypes.c_char * len(out)).from_buffer(out) if out else None
        self._library.read_blob(self._handle, self._blob_indices[name], room, len(out))
        return bytes(out)

    def state(self, framework=None, classes=(), objects=None):
        """The state dict as it was nested. `framework`: "torch" or "numpy" for all tensors; None: as they were saved. A
        checkpoint that was not saved as a state dict (from safetensors files, for instance) is a flat dict.

        classes: Enums, named tuples and dataclasses that are not imported and may be used; objects: {class: (to, from_)}, as
        save() was given. ValueError names what is missing."""

        def tensor(name, node, must_be=None):
            wanted = must_be or framework or ("torch" if node["kind"] == "torch" and has("torch") else "numpy")
            value = self._lazy(name, {key: item for key, item in node.items() if key != "view"})._read(wanted)
            return value[()] if node["kind"] == "scalar" and framework is None else value

        if self._state is None:
            return {name: tensor(name, {"kind": framework or "numpy"}) for name in self}
        return self._state.rebuild(tensor, classes, objects)

    def close(self):
        if self._handle is not None:
            if self._store._handle is not None:  # else a collector of cycles took the store first
                self._library.reader_destroy(self._handle)
            self._handle = None


def _writable(tensor, name):
    plain = tensor.array if isinstance(tensor, TypedArray) else tensor
    if isinstance(plain, np.ndarray):
        if not plain.flags.c_contiguous or not plain.flags.writeable or not plain.dtype.isnative:
            raise ValueError(f"tensor '{name}': only a contiguous, writable array can be read into")
    elif not (hasattr(plain, "is_contiguous") and plain.is_contiguous() and plain.device.type == "cpu"):
        raise ValueError(f"tensor '{name}': only a contiguous tensor in host memory can be read into")
    return source_of(tensor, f"tensor '{name}'")
