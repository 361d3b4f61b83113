"""A nested state dict taken apart: flat tensors, and a JSON text that puts them together again."""
import argparse
import collections
import dataclasses
import enum
import hashlib
import json
import types
from collections import OrderedDict

from . import layouts as _layouts
from .classes import REGISTERED, Registry, is_importable, is_named_tuple, reference
from .sharing import shared
from .._tensors import NO_ROLE, source_of
from .values import node_of

FORMAT = 2
_NAME_BYTES = 60000
_SEQUENCES = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_NAMESPACES = {argparse.Namespace: "argparse", types.SimpleNamespace: "types"}
#: What defaultdicts may make of nothing.
FACTORIES = {name: cls for name, cls in (("int", int), ("float", float), ("list", list), ("dict", dict), ("set", set),
                                         ("str", str), ("bool", bool), ("tuple", tuple), ("bytes", bytes),
                                         ("complex", complex), ("OrderedDict", OrderedDict),
                                         ("Counter", collections.Counter), ("deque", collections.deque))}
_FACTORY_NAMES = {cls: name for name, cls in FACTORIES.items()}
_HOOK = "say how with save(..., objects={{{0}: (to, from_)}}) or pyquern.checkpoint.register({0}, to, from_)"


def hook(cls):
    return _HOOK.format(cls.__name__)


def _name(path):
    """Keys joined by dots. Names in stores are texts of C: they have no NUL."""
    name = ".".join(str(key) for key in path).replace("\0", "\\0") or "#"
    if len(name.encode()) > _NAME_BYTES:
        name = name[:200] + "~" + hashlib.sha256(name.encode()).hexdigest()
    return name


class Where:
    """The place of a value, as text when a sentence needs it."""

    def __init__(self, path):
        self._path = path

    def __str__(self):
        return ascii("/".join(str(key) for key in self._path))[1:-1] or "the state dict"


class Leaf:
    """A tensor of the state dict, and its node, which gets its content last."""

    def __init__(self, value, path, source=None, role=None, flags=None):
        self.value, self.path, self.source, self.role, self.flags = value, path, source, role, flags or {}
        self.node = {}

    def made_source(self):
        if self.source is None:
            self.source = source_of(self.value, Where(self.path))
        if self.role is not None:
            self.source.role = self.role
        return self.source


class Flattened:
    """`tensors`: {name: Source}, in the order of the state dict; `text`: the JSON. `objects`: {class: (to, from_)}."""

    def __init__(self, state, objects=None):
        self.tensors = {}
        self._objects = Registry().add_all(objects)
        self._names = {}  # identity -> name
        self._open = set()  # containers that the one at hand is in
        self._leaves = []
        self._in_key = 0
        try:
            tree = self._node(state, ())
            self._place()
            self.text = json.dumps({"format": FORMAT, "tree": tree}, allow_nan=False, separators=(",", ":"))
        except RecursionError:
            raise ValueError("the state dict is nested too deep: at most some hundred levels can be saved") from None

    # ---- nodes

    def _node(self, value, path):
        kind = type(value)
        custom = self._objects.writer(kind) or REGISTERED.writer(kind)
        if custom is not None:
            return self._within(value, path, lambda: {"object": custom[0], "value": self._node(custom[1](value), path)})
        try:
            node = node_of(value)
        except TypeError as problem:
            raise TypeError(f"{Where(path)}: {problem}") from None
        if node is not None:
            return node
        if isinstance(value, enum.Enum):
            return self._enum(value, path)
        if isinstance(value, (dict, list, tuple, set, frozenset, collections.deque, slice)) or kind in _NAMESPACES:
            return self._within(value, path, lambda: self._container(value, path))
        return self._tensor(value, path)

    def _within(self, value, path, make):
        if id(value) in self._open:
            raise ValueError(f"{Where(path)}: the state dict contains itself")
        self._open.add(id(value))
        node = make()
        self._open.discard(id(value))
        return node

    def _refuse(self, value, path, why=""):
        cls = type(value)
        return TypeError(f"{Where(path)}: a {cls.__name__} cannot be saved{why}: {hook(cls)}")

    def _named(self, value, path):
        if not is_importable(type(value)):
            raise self._refuse(value, path, ", as its class cannot be found again by its name")
        return reference(type(value))

    def _enum(self, value, path):
        node = {"enum": self._named(value, path)}
        if type(value).__members__.get(value.name) is value:
            return {**node, "member": value.name}
        if isinstance(value, enum.Flag):
            return {**node, "flags": int(value.value)}
        raise self._refuse(value, path)

    def _container(self, value, path):
        cls = type(value)
        if cls in (dict, OrderedDict, collections.Counter, collections.defaultdict):
            return self._mapping(value, path)
        if cls in (list, tuple):
            return {_SEQUENCES[cls]: self._items(value, path)}
        if cls in (set, frozenset):
            return {_SEQUENCES[cls]: sorted((self._key(item, path) for item in value), key=json.dumps)}
        if cls is collections.deque:
            return {"deque": self._items(value, path), "most": value.maxlen}
        if cls is slice:
            return {"slice": self._items((value.start, value.stop, value.step), path)}
        if cls in _NAMESPACES:
            items = [[key, self._node(item, path + (key,))] for key, item in vars(value).items()]
            return {"namespace": items, "class": _NAMESPACES[cls]}
        if is_named_tuple(cls):
            return {"named": self._named(value, path), "fields": list(cls._fields), "items": self._items(value, path)}
        raise self._refuse(value, path, " as what it is")

    def _items(self, values, path):
        return [self._node(item, path + (index,)) for index, item in enumerate(values)]

    def _mapping(self, value, path):
        items = [[self._key(key, path), self._node(item, path + (key,))] for key, item in value.items()]
        if type(value) is dict:
            return {"dict": items}
        if type(value) is collections.Counter:
            return {"counter": items}
        if type(value) is collections.defaultdict:
            factory = value.default_factory
            if factory is not None and factory not in _FACTORY_NAMES:
                raise TypeError(f"{Where(path)}: a defaultdict with the factory {getattr(factory, '__name__', factory)!r} cannot "
                                f"be saved: take one of {', '.join(FACTORIES)}, or {hook(type(value))}")
            return {"defaultdict": items, "factory": None if factory is None else _FACTORY_NAMES[factory]}
        node = {"ordered": items}
        metadata = vars(value).get("_metadata")  # versions of modules, in Module.state_dict()
        if metadata is not None:
            node["metadata"] = self._node(metadata, path + ("_metadata",))
        return node

    def _key(self, key, path):
        """A key of a mapping, an element of a set: a text or a whole number, else a node."""
        if type(key) is str:
            try:
                key.encode()
            except UnicodeEncodeError:
                raise ValueError(f"{Where(path)}: the key {key!a} is no valid text: it has half of a surrogate pair; "
                                 "write it otherwise") from None
            return key
        if type(key) is int:
            return key
        self._in_key += 1
        try:
            return self._node(key, path + (key,))
        finally:
            self._in_key -= 1

    def _tensor(self, value, path):
        if self._in_key:
            raise TypeError(f"{Where(path)}: keys are texts, numbers, None, Enums and tuples of these, not {value!r}")
        node = _layouts.node_of(self, value, path, Where(path))
        if node is not None:
            return node
        if dataclasses.is_dataclass(value) and not isinstance(value, (type, str, int, float, bytes)):
            return self._within(value, path, lambda: self._dataclass(value, path))
        source = None
        if not _layouts.is_dense(value):
            source = source_of(value, Where(path))
            if source is None:
                raise self._refuse(value, path)
        return self.leaf(value, path, source, flags=_layouts.flags_of(value))

    def _dataclass(self, value, path):
        names = [field.name for field in dataclasses.fields(value)]
        if set(getattr(value, "__dict__", names)) - set(names):
            raise self._refuse(value, path, ", as it has attributes that are no fields")
        return {"dataclass": self._named(value, path),
                "fields": [[name, self._node(getattr(value, name), path + (name,))] for name in names]}

    def leaf(self, value, path, source=None, role=None, flags=None):
        """A node for a tensor."""
        leaf = Leaf(value, path, source, role, flags)
        self._leaves.append(leaf)
        return leaf.node

    # ---- tensors and their names

    def _place(self):
        sharings = shared([leaf for leaf in self._leaves if leaf.source is None])
        views = {id(leaf) for sharing in sharings for leaf, _ in sharing.views}
        for leaf in self._leaves:
            if id(leaf) not in views:
                self._fill(leaf, self._add(leaf.made_source(), leaf.path), leaf.source)
        for sharing in sharings:
            if sharing.base is not None:
                base, name = sharing.base.source, sharing.base.node["tensor"]
            else:
                path = sharing.views[0][0].path
                base = source_of(sharing.made, Where(path))
                base.role = NO_ROLE  # it is no weight, but memory that has some
                name = self._add(base, path)
            for leaf, view in sharing.views:
                self._fill(leaf, name, base, view)

    @staticmethod
    def _fill(leaf, name, source, view=None):
        leaf.node.update({"tensor": name, **source.node})
        if view is not None:
            leaf.node["view"] = view
        leaf.node.update(leaf.flags)

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
