"""Values that are no tensors and hold no others, as nodes of the state text and back: docs/format-state-dict.md."""
import base64
import datetime
import decimal
import fractions
import math
import pathlib
import struct
import sys
import uuid

import numpy as np

from .._dtypes import describe, numpy_dtype

_NAN = struct.pack("<d", float("nan"))
_TEXTS = {"decimal": decimal.Decimal, "fraction": fractions.Fraction, "uuid": uuid.UUID}
_TEXT_KINDS = {cls: kind for kind, cls in _TEXTS.items()}
_PATHS = {cls.__name__: cls for cls in (pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath, pathlib.WindowsPath)}


def _float(value):
    """A member of a node: a finite number, or a text."""
    if math.isfinite(value):
        return value
    bits = struct.pack("<d", value)
    if math.isnan(value) and bits != _NAN:
        return "nan:" + bits[::-1].hex()
    return str(value)


def _read_float(content):
    if isinstance(content, str) and content.startswith("nan:"):
        return struct.unpack(">d", bytes.fromhex(content[4:]))[0]
    return float(content)


def _bytes(value):
    return base64.b64encode(bytes(value)).decode("ascii")


def _zone(zone):
    if zone is None:
        return None
    if type(zone) is datetime.timezone:
        offset = zone.utcoffset(None)
        return {"offset": [offset.days, offset.seconds, offset.microseconds],
                "name": zone.tzname(None) if zone.__reduce__()[1][1:] else None}
    key = getattr(zone, "key", None)
    if type(zone).__name__ == "ZoneInfo" and isinstance(key, str):
        return {"zone": key}
    raise TypeError(f"a time zone of {type(zone).__name__} cannot be saved; use datetime.timezone or zoneinfo.ZoneInfo")


def _read_zone(node):
    if node is None:
        return None
    if "zone" in node:
        import zoneinfo

        return zoneinfo.ZoneInfo(node["zone"])
    offset = datetime.timedelta(*node["offset"])
    return datetime.timezone(offset) if node["name"] is None else datetime.timezone(offset, node["name"])


def _of_torch(value):
    """torch.float32, torch.device(...), torch.strided, torch.contiguous_format."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return {"torch": str(value).partition(".")[2]}
    if type(value) is torch.Size:
        return {"size": list(value)}
    return None


def node_of(value):
    """The node of a value; None for what is none of these."""
    kind = type(value)
    if value is None or kind in (bool, str, int):
        return {"value": value}
    if kind is float:
        content = _float(value)
        return {"float": content} if isinstance(content, str) else {"value": content}
    if kind is bytes:
        return {"bytes": _bytes(value)}
    if kind is bytearray:
        return {"bytearray": _bytes(value)}
    if kind is complex:
        return {"complex": [_float(value.real), _float(value.imag)]}
    if kind is range:
        return {"range": [value.start, value.stop, value.step]}
    if kind.__name__ in _PATHS and isinstance(value, pathlib.PurePath):
        return {"path": str(value), "class": kind.__name__}
    if kind in _TEXT_KINDS:
        return {_TEXT_KINDS[kind]: str(value)}
    if kind is datetime.datetime:
        return {"datetime": value.replace(tzinfo=None, fold=0).isoformat(), "fold": value.fold, "zone": _zone(value.tzinfo)}
    if kind is datetime.time:
        return {"time": value.replace(tzinfo=None, fold=0).isoformat(), "fold": value.fold, "zone": _zone(value.tzinfo)}
    if kind is datetime.date:
        return {"date": value.isoformat()}
    if kind is datetime.timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if kind is datetime.timezone or kind.__module__ == "zoneinfo":
        return {"zone": _zone(value)}
    if value is Ellipsis:
        return {"ellipsis": None}
    if isinstance(value, np.dtype):
        content = describe(value)
        if content is None:
            raise TypeError(f"the dtype {value} cannot be saved")
        return {"dtype": content}
    return _of_torch(value)


def _torch_constant(name, _):
    import torch

    found = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(found, (torch.dtype, torch.layout, torch.memory_format)):
        raise ValueError(f"this PyTorch has no torch.{name}")
    return found


def _torch_call(name):
    def make(content, _):
        import torch

        return getattr(torch, name)(content)

    return make


def _path(content, node):
    cls = _PATHS.get(node["class"])
    if cls is None:
        raise ValueError(f"'{node['class']}' is no class of paths")
    try:
        return cls(content)
    except NotImplementedError:  # of another system: its names still mean what they meant
        return _PATHS["Pure" + node["class"]](content)


def _dtype(content, _):
    found = numpy_dtype(content)
    if found is None:
        raise ValueError(f"the dtype {content} needs ml_dtypes: pip install ml_dtypes")
    return found


#: kind: function of (content, node).
READERS = {
    "value": lambda content, _: content,
    "float": lambda content, _: _read_float(content),
    "bytes": lambda content, _: base64.b64decode(content),
    "bytearray": lambda content, _: bytearray(base64.b64decode(content)),
    "complex": lambda content, _: complex(*map(_read_float, content)),
    "range": lambda content, _: range(*content),
    "path": _path,
    "datetime": lambda content, node: datetime.datetime.fromisoformat(content).replace(
        fold=node["fold"], tzinfo=_read_zone(node["zone"])),
    "time": lambda content, node: datetime.time.fromisoformat(content).replace(
        fold=node["fold"], tzinfo=_read_zone(node["zone"])),
    "date": lambda content, _: datetime.date.fromisoformat(content),
    "timedelta": lambda content, _: datetime.timedelta(*content),
    "zone": lambda content, _: _read_zone(content),
    "ellipsis": lambda content, _: Ellipsis,
    "dtype": _dtype,
    "torch": _torch_constant,
    "device": _torch_call("device"),
    "size": _torch_call("Size"),
    **{kind: (lambda content, _, cls=cls: cls(content)) for kind, cls in _TEXTS.items()},
}
