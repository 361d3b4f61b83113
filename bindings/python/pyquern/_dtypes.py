"""Element types: which ones stores have, and how all others are stored, bit for bit, as ones that stores have.

A *label* says what the elements are when the stored type does not: the name of a type ("complex64", "float8_e8m0fnu") or, for
types of NumPy that have no such name, a description ({"numpy": "<M8[ns]"}, {"fields": ...})."""
import re

import numpy as np

# Numbers of <quern/checkpoint.h>.
DTYPES = {1: "f16", 2: "bf16", 3: "f32", 4: "f64", 5: "f8_e4m3", 6: "f8_e5m2", 8: "i8", 9: "i16", 10: "i32", 11: "i64",
          16: "u8", 17: "u16", 18: "u32", 19: "u64", 24: "bool"}
NUMBERS = {name: number for number, name in DTYPES.items()}
#: Those that files have and this package saves as others: the label, and the type and last axis they are read as.
FILE_DTYPES = {25: ("float8_e4m3fnuz", "u8", ()), 26: ("float8_e5m2fnuz", "u8", ()), 27: ("float8_e8m0fnu", "u8", ()),
               28: ("complex64", "f32", (2,)), 29: ("complex128", "f64", (2,))}
NUMPY = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16", "i32": "int32",
         "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool"}
ML_DTYPES = {"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}
TORCH = {**NUMPY, **ML_DTYPES}
BY_NAME = {name: dtype for dtype, name in TORCH.items()}
COMPLEX = {"complex32": "f16", "complex64": "f32", "complex128": "f64"}
MAX_RANK = 8
_LABEL = re.compile(r"(b?complex|float|u?int|bits)[0-9][a-z0-9_]{0,40}")


def element_bytes(dtype):
    return {"f16": 2, "bf16": 2, "f8_e4m3": 1, "f8_e5m2": 1, "bool": 1}.get(dtype) or int(dtype[1:]) // 8


def is_complex(label):
    return isinstance(label, str) and label in COMPLEX


def is_label(text):
    return isinstance(text, str) and bool(_LABEL.fullmatch(text))


def count_of(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def stored_form(label, item_bytes, shape):
    """(dtype, shape) in which elements of `label`, `item_bytes` each, in an array of `shape`, are stored: complex numbers as
    two real ones on a last axis; what has the size of an integer as that; else as bytes on a last axis."""
    shape = tuple(shape)
    if is_complex(label):
        return low_rank(COMPLEX[label], shape + (2,))
    if item_bytes in (1, 2, 4, 8):
        return low_rank(f"u{8 * item_bytes}", shape)
    if item_bytes == 0:
        return "u8", (0,)
    return low_rank("u8", shape + (item_bytes,))


def low_rank(dtype, shape):
    """Stores have 8 axes at most: the first ones become one."""
    shape = tuple(shape)
    extra = len(shape) - MAX_RANK
    if extra > 0:
        shape = (count_of(shape[: extra + 1]),) + shape[extra + 1 :]
    return dtype, shape


def numpy_label(dtype):
    """The label of a NumPy type that stores lack; None where it holds Python objects."""
    if dtype.hasobject or dtype.kind == "T":
        return None
    if dtype.names is not None:
        fields = []
        for name in dtype.names:
            kind, offset = dtype.fields[name][:2]
            inner = describe(kind)
            if inner is None:
                return None
            fields.append([name, inner, offset])
        return {"fields": fields, "size": dtype.itemsize}
    if dtype.subdtype is not None:
        inner = describe(dtype.subdtype[0])
        return None if inner is None else {"sub": inner, "shape": list(dtype.subdtype[1])}
    name = dtype.newbyteorder("=").name
    if is_label(name) and dtype.isnative and name in ("complex64", "complex128"):
        return name
    if dtype.isbuiltin == 2:  # of a package, such as ml_dtypes
        return name if is_label(name) and _of_ml_dtypes(name) == dtype else None
    if dtype.kind in "fc" and np.dtype("longdouble").itemsize > 8 and dtype.itemsize >= 12 and name != "complex128":
        return {"numpy": dtype.str, "mantissa": int(np.finfo(dtype).nmant)}
    return {"numpy": dtype.str}


def describe(dtype):
    """JSON of any NumPy type that can be stored: also of those that stores have."""
    known = BY_NAME.get(dtype.name) if dtype.isnative and dtype.names is None and dtype.subdtype is None else None
    return known or numpy_label(dtype)


def numpy_dtype(label):
    """The NumPy type of a label or of a stored type; None where it is not to be had here."""
    if isinstance(label, dict):
        return _described(label)
    if label in NUMPY:
        return np.dtype(NUMPY[label])
    if label in ("complex64", "complex128"):
        return np.dtype(label)
    return _of_ml_dtypes(ML_DTYPES.get(label, label))


def _described(label):
    if "fields" in label:
        names, formats, offsets = [], [], []
        for name, inner, offset in label["fields"]:
            kind = numpy_dtype(inner)
            if kind is None:
                return None
            names.append(name)
            formats.append(kind)
            offsets.append(offset)
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": label["size"]})
    if "sub" in label:
        inner = numpy_dtype(label["sub"])
        return None if inner is None else np.dtype((inner, tuple(label["shape"])))
    if not re.fullmatch(r"[<>|=][a-zA-Z][0-9]*(\[[0-9]*[a-zA-Z]+(/[0-9]+)?\])?", label["numpy"]):
        raise ValueError(f"'{label['numpy']}' is no type of NumPy")
    try:
        dtype = np.dtype(label["numpy"])
    except TypeError:
        raise ValueError(f"this machine's NumPy has no type '{label['numpy']}'") from None
    if dtype.hasobject:
        raise ValueError("arrays of Python objects are not read")
    if "mantissa" in label and np.finfo(dtype).nmant != label["mantissa"]:
        raise ValueError(f"a long double of {label['mantissa']} bits was saved, and this machine's is another one")
    return dtype


def _of_ml_dtypes(name):
    try:
        import ml_dtypes
    except ImportError:
        return None
    kind = getattr(ml_dtypes, name, None) if is_label(name) or name in ML_DTYPES.values() else None
    return np.dtype(kind) if isinstance(kind, type) and issubclass(kind, np.generic) else None


def torch_dtype(label):
    """The PyTorch type of a label or of a stored type; None where this PyTorch lacks it."""
    import torch

    kind = getattr(torch, TORCH.get(label, label), None) if isinstance(label, str) else None
    return kind if isinstance(kind, torch.dtype) else None


def label_name(label):
    return label if isinstance(label, str) else str(label.get("numpy", "a structured type"))
