"""A checkpoint's weights as a model that others load, over quern_checkpoint_export of <quern/checkpoint.h>."""
import ctypes
import os
from ctypes import POINTER, c_char_p, c_int32, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass

from . import library as _library
from .reader import step_number
from .store import Store

_DTYPES = {None: 0, "bf16": 2, "f16": 1, "f32": 3, "bfloat16": 2, "float16": 1, "float32": 3}
_SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class _Desc(_library._Sized):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("only", POINTER(c_char_p)), ("only_count", c_uint64),
                ("strip_prefix", POINTER(c_char_p)), ("strip_prefix_count", c_uint64), ("shard_bytes", c_uint64),
                ("replace", c_uint32), ("reserved", c_uint32), ("progress", _library.Progress),
                ("progress_user", c_void_p)]


class _Result(_library._Sized):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32)] + [
        (name, c_uint64) for name in ("step", "files", "tensors", "cast", "inexact", "tied", "bytes")]


@dataclass(frozen=True)
class Exported:
    """What was written. `cast`: tensors that were rounded to `dtype`; `inexact`: tensors that were saved with loss, within
    their bound; `tied`: second names of tensors, which were left out as Hugging Face does; `bytes` of all files."""
    step: int
    files: int
    tensors: int
    cast: int
    inexact: int
    tied: int
    bytes: int


def _texts(values, what):
    values = [values] if isinstance(values, str) else list(values or ())
    if any(not isinstance(value, str) or "\0" in value for value in values):
        raise TypeError(f"{what} is a text or a list of texts, not {values!r}")
    return (c_char_p * max(len(values), 1))(*(value.encode() for value in values)), len(values)


def _size(value):
    """Bytes: a number, or a text such as "5GB" (10^9 bytes each, as Hugging Face counts)."""
    if isinstance(value, str):
        plain = value.strip().upper().removesuffix("B")
        unit = plain[-1:] if plain[-1:] in "KMGT" else ""
        try:
            value = int(float(plain.removesuffix(unit) if unit else plain) * _SIZES[unit])
        except ValueError:
            raise ValueError(f"shard_size is a number of bytes or a text such as '5GB', not {value!r}") from None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63:
        raise ValueError(f"shard_size must be above 0, not {value!r}")
    return value


def export(path, out, step=None, only=None, strip_prefix=None, dtype=None, shard_size="5GB", replace=False, threads=0,
           progress=None):
    """Writes weights of the checkpoint `step` (None: the newest that is whole) of the store at `path` as a model: the folder
    `out` gets model.safetensors, or shards of at most `shard_size` and model.safetensors.index.json, as Hugging Face's
    from_pretrained() reads them. config.json and the tokenizer are no part of a checkpoint. Returns Exported.

    only: globs on names; None: the model of a state dict that has one under a key such as "model", without that key, else
    all tensors. strip_prefix: texts taken from the names that begin with them, one after the other. dtype: "bf16", "f16" or
    "f32": floating-point weights are rounded to it, to nearest even. Of tied weights the first name is written. replace: a
    model in the folder may be replaced. progress(done, total) is called with bytes and ends the export by returning
    False."""
    name = str(dtype).removeprefix("torch.") if dtype is not None else None
    if name not in _DTYPES:
        raise ValueError(f"dtype must be 'bf16', 'f16', 'f32' or None, not {dtype!r}")
    globs, glob_count = _texts(only, "only")
    prefixes, prefix_count = _texts(strip_prefix, "strip_prefix")
    raised = []

    def call(_, done, total):
        try:
            return 0 if progress(done, total) is False else 1
        except BaseException as problem:  # raised again when the library has returned
            raised.append(problem)
            return 0

    desc = _Desc(dtype=_DTYPES[name], only=globs, only_count=glob_count, strip_prefix=prefixes,
                 strip_prefix_count=prefix_count, shard_bytes=_size(shard_size), replace=1 if replace else 0,
                 progress=_library.Progress(call) if progress is not None else _library.Progress())
    result = _Result()
    with Store(path, threads=threads) as store:
        run = _function(store._library)
        try:
            run(store._handle, step_number(step), os.fsencode(out), ctypes.byref(desc), ctypes.byref(result))
        except _library.Error:
            if raised:
                raise raised[0] from None
            raise
    return Exported(**{field: getattr(result, field) for field in Exported.__dataclass_fields__})


def _function(library):
    function = library._library.quern_checkpoint_export
    function.argtypes = [c_void_p, c_uint64, c_char_p, POINTER(_Desc), POINTER(_Result)]
    function.restype = c_int32
    return library._checked(function, library._library.quern_checkpoint_last_error)
