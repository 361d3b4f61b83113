"""The text of a nested state dict, read back: docs/format-state-dict.md."""
import argparse
import collections
import dataclasses
import enum
import json
import types
from collections import OrderedDict

from . import layouts as _layouts
from .classes import REGISTERED, Classes, Registry, is_enum, is_named_tuple
from .flatten import FACTORIES, FORMAT, Flattened
from .sharing import view_of
from .values import READERS

BLOB = "quern.state"
READABLE = (1, 2)
_NAMESPACES = {"argparse": argparse.Namespace, "types": types.SimpleNamespace}
_MAPPINGS = ("dict", "ordered", "counter", "defaultdict", "namespace")

__all__ = ["BLOB", "FORMAT", "Flattened", "StateText"]


class StateText:
    """The JSON, read back. Format 1 is a subset of format 2."""

    def __init__(self, text):
        try:
            document = json.loads(text)
        except RecursionError:
            raise ValueError("this state dict is nested too deep to be read") from None
        if document.get("format") not in READABLE:
            raise ValueError(f"this state dict has format {document.get('format')}; this quern reads formats 1 and 2: install a "
                             "newer one")
        self.tree = document["tree"]

    def nodes(self):
        """{name: node} of all stored tensors: of each the first node that is no view of it, where there is one."""
        out = {}
        open_nodes = [self.tree]
        while open_nodes:
            node = open_nodes.pop()
            if isinstance(node, list):
                open_nodes.extend(reversed(node))
                continue
            if not isinstance(node, dict):
                continue
            name = node.get("tensor")
            if isinstance(name, str) and "kind" in node:
                if name not in out or ("view" in out[name] and "view" not in node):
                    out[name] = node
            else:
                open_nodes.extend(reversed(list(node.values())))
        return out

    def paths(self):
        """{keys joined by dots: node} of all tensors in dicts and lists, the second names of tied ones and views too."""
        out = {}

        def walk(node, path):
            (kind, content), *_ = node.items()
            if kind == "tensor":
                out.setdefault(".".join(path) or "#", node)
            elif kind in _MAPPINGS:
                for key, item in content:
                    walk(item, path + (key if isinstance(key, str) else str(key),))
            elif kind in ("list", "tuple"):
                for index, item in enumerate(content):
                    walk(item, path + (str(index),))

        walk(self.tree, ())
        return out

    def rebuild(self, tensor, classes=(), objects=None):
        """The state dict; `tensor(name, node, framework)` gives a stored tensor, of PyTorch where that is "torch", else as the node
        says, and is called once for each name and kind."""
        return Rebuilder(tensor, classes, objects).value(self.tree)


class Rebuilder:
    """Values of nodes. Never imports a module or calls a function that a text names: see _classes."""

    def __init__(self, tensor, classes=(), objects=None):
        self._tensor = tensor
        self._classes = Classes(classes)
        self._objects = Registry().add_all(objects)
        self._stored, self._made = {}, {}
        self._readers = {"dict": self._mapping, "ordered": self._mapping, "counter": self._mapping,
                         "defaultdict": self._mapping, "list": self._sequence, "tuple": self._sequence, "set": self._set,
                         "frozenset": self._set, "deque": self._deque, "slice": self._slice, "named": self._named,
                         "namespace": self._namespace, "enum": self._enum, "object": self._object,
                         "dataclass": self._dataclass, "tensor": self._tensor_node,
                         "sparse": lambda _, node: _layouts.sparse(node, self._part),
                         "quantized": lambda _, node: _layouts.quantized(node, self._part),
                         "wrapper": lambda _, node: _layouts.wrapper(node, self._part, self.value, self._classes)}

    def value(self, node):
        (kind, content), *_ = node.items()
        reader = self._readers.get(kind) or READERS.get(kind)
        if reader is None:
            raise ValueError(f"the state dict has a '{kind}', which this quern does not know: install a newer one")
        return reader(content, node)

    def key(self, key):
        return self.value(key) if isinstance(key, dict) else key

    def _part(self, node):
        """A tensor of PyTorch of which another one is made."""
        return self._tensor_node(None, node, "torch")

    def _stored_tensor(self, node, framework):
        """The tensor that is stored, of which the node may be a view."""
        name = node["tensor"], node["kind"], framework
        if name not in self._stored:
            self._stored[name] = self._tensor(node["tensor"], node, framework)
        return self._stored[name]

    def _tensor_node(self, _, node, framework=None):
        same = json.dumps(node, sort_keys=True), framework
        if same not in self._made:
            value = self._stored_tensor(node, framework)
            if "view" in node:
                value = view_of(value, node["view"])
            self._made[same] = _layouts.with_flags(value, node)
        return self._made[same]

    def _mapping(self, content, node):
        items = ((self.key(key), self.value(item)) for key, item in content)
        if "dict" in node:
            return dict(items)
        if "counter" in node:
            out = collections.Counter()
            for key, item in items:
                dict.__setitem__(out, key, item)
            return out
        if "defaultdict" in node:
            factory = node["factory"]
            if factory is not None and factory not in FACTORIES:
                raise ValueError(f"'{factory}' is no factory of a defaultdict that is known here")
            return collections.defaultdict(None if factory is None else FACTORIES[factory], items)
        out = OrderedDict(items)
        if "metadata" in node:
            out._metadata = self.value(node["metadata"])
        return out

    def _sequence(self, content, node):
        items = [self.value(item) for item in content]
        return tuple(items) if "tuple" in node else items

    def _set(self, content, node):
        items = [self.key(item) for item in content]
        return set(items) if "set" in node else frozenset(items)

    def _deque(self, content, node):
        return collections.deque([self.value(item) for item in content], node["most"])

    def _slice(self, content, _):
        return slice(*[self.value(item) for item in content])

    def _namespace(self, content, node):
        out = _NAMESPACES[node["class"]]()
        vars(out).update((key, self.value(item)) for key, item in content)
        return out

    def _named(self, content, node):
        cls = self._classes.find(content, is_named_tuple, "a named tuple")
        if list(cls._fields) != node["fields"] or len(node["items"]) != len(cls._fields):
            raise ValueError(f"the named tuple {content} was saved with the fields {', '.join(node['fields'])} and has "
                             f"{', '.join(cls._fields)} now")
        return tuple.__new__(cls, [self.value(item) for item in node["items"]])

    def _enum(self, content, node):
        cls = self._classes.find(content, is_enum, "an Enum")
        if "flags" in node:
            if not issubclass(cls, enum.Flag):
                raise ValueError(f"{content} is no Flag")
            return cls(node["flags"])
        if node["member"] not in cls.__members__:
            raise ValueError(f"the Enum {content} has no member {node['member']} any more")
        return cls.__members__[node["member"]]

    def _object(self, content, node):
        reader = self._objects.reader(content) or REGISTERED.reader(content)
        if reader is None:
            name = content.rpartition(":")[2]
            raise ValueError(f"the state dict holds an object of {content}, saved by a function of the caller's: load with the "
                             f"same objects={{{name}: (to, from_)}}, or call pyquern.checkpoint.register({name}, to, from_) before")
        return reader(self.value(node["value"]))

    def _dataclass(self, content, node):
        cls = self._classes.find(content, dataclasses.is_dataclass, "a dataclass")
        known = {field.name for field in dataclasses.fields(cls)}
        if {name for name, _ in node["fields"]} != known or cls.__new__ is not object.__new__:
            raise ValueError(f"the dataclass {content} has other fields now than it was saved with")
        out = object.__new__(cls)
        for name, item in node["fields"]:
            object.__setattr__(out, name, self.value(item))
        return out
