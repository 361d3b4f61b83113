"""Nested state dicts as flat tensors and one JSON text that puts them together again: docs/format-state-dict.md."""
import base64
import json
import math
from collections import OrderedDict

from ._tensors import source_of

BLOB = "quern.state"
FORMAT = 1


def _name(path):
    return ".".join(str(key) for key in path) or "#"


class Flattened:
    """`tensors`: {name: Source}, in the order of the state dict; `text`: the JSON."""

    def __init__(self, state):
        self.tensors = {}
        self._names = {}  # identity -> name
        self._open = set()  # containers above the one that is looked at
        tree = self._node(state, ())
        self.text = json.dumps({"format": FORMAT, "tree": tree}, allow_nan=False, separators=(",", ":"))

    def _node(self, value, path):
        where = "/".join(str(key) for key in path) or "the state dict"
        if value is None or isinstance(value, (bool, str)):
            return {"value": value}
        if isinstance(value, int):
            return {"value": value}
        if isinstance(value, float) and type(value) is float:
            return {"value": value} if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, (bytes, bytearray)):
            return {"bytes": base64.b64encode(bytes(value)).decode("ascii")}
        if isinstance(value, dict):
            return self._container("dict", value, path, where)
        if isinstance(value, (list, tuple)):
            return self._container("tuple" if isinstance(value, tuple) else "list", value, path, where)
        source = source_of(value, where)
        if source is None:
            raise TypeError(f"{where}: a {type(value).__name__} cannot be saved: tensors, numbers, texts, bytes, None, lists, "
                            "tuples and dicts of these can")
        return {"tensor": self._add(source, path), "kind": source.kind}

    def _container(self, kind, value, path, where):
        if id(value) in self._open:
            raise ValueError(f"{where}: the state dict contains itself")
        self._open.add(id(value))
        if kind == "dict":
            items = []
            for key, item in value.items():
                if not isinstance(key, (str, int)) or isinstance(key, bool):
                    raise TypeError(f"{where}: keys are texts or whole numbers, not {key!r}")
                items.append([key, self._node(item, path + (key,))])
            node = {"ordered" if isinstance(value, OrderedDict) else "dict": items}
        else:
            node = {kind: [self._node(item, path + (index,)) for index, item in enumerate(value)]}
        self._open.discard(id(value))
        return node

    def _add(self, source, path):
        """The name of a tensor: that of an earlier one which is the same memory, else made of the keys."""
        if source.identity is not None and source.identity in self._names:
            return self._names[source.identity]
        plain = name = _name(path)
        number = 1
        while name in self.tensors:  # {"a.b": x, "a": {"b": y}}
            number += 1
            name = f"{plain}#{number}"
        self.tensors[name] = source
        if source.identity is not None:
            self._names[source.identity] = name
        return name


class StateText:
    """The JSON, read back."""

    def __init__(self, text):
        document = json.loads(text)
        if document.get("format") != FORMAT:
            raise ValueError(f"this state dict has format {document.get('format')}; this quern reads format {FORMAT}")
        self._tree = document["tree"]

    def kinds(self):
        """{name: kind} of all tensors."""
        out = {}
        self._walk(self._tree, lambda name, kind: out.setdefault(name, kind))
        return out

    def rebuild(self, tensor):
        """The state dict; `tensor(name, kind)` gives the tensors, and is called once for each."""
        made = {}

        def once(name, kind):
            if (name, kind) not in made:
                made[name, kind] = tensor(name, kind)
            return made[name, kind]

        return self._walk(self._tree, once)

    def _walk(self, node, tensor):
        (kind, content), *_ = node.items()
        if kind == "tensor":
            return tensor(content, node["kind"])
        if kind == "value":
            return content
        if kind == "float":
            return float(content)
        if kind == "bytes":
            return base64.b64decode(content)
        if kind in ("dict", "ordered"):
            out = OrderedDict() if kind == "ordered" else {}
            for key, item in content:
                out[key] = self._walk(item, tensor)
            return out
        items = [self._walk(item, tensor) for item in content]
        return tuple(items) if kind == "tuple" else items
