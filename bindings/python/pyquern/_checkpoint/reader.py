"""Open checkpoints."""
import ctypes
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from . import library as _library
from .._dtypes import DTYPES, FILE_DTYPES, count_of
from .handle import Handle
from .lazy import LazyTensor, has
from .state import BLOB, StateText
from .._tensors import TypedArray, source_of

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
            return {name: tensor(name, {**self._stored_node(name), "kind": framework or "numpy"}) for name in self}
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
