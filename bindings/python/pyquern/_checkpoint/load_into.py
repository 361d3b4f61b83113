"""Reading a checkpoint into tensors that are there: what goes where, whether it fits, and only then the values."""
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

import numpy as np

from .._dtypes import numpy_dtype, torch_dtype
from .optimizer import Restoring, find_optimizer
from .state import Rebuilder

_MAPPINGS = ("dict", "ordered", "counter", "defaultdict")
_PARTS = ("sparse", "quantized", "wrapper")
_MODEL_KEYS = ("model", "module", "state_dict", "model_state_dict", "net", "network", "weights")


@dataclass(frozen=True)
class LoadedInto:
    """The step that was read; names that the target has and the checkpoint lacks, and the other way round; {step: why} of newer
    steps that were passed over."""
    step: int
    missing: list
    unexpected: list
    passed_over: dict


def is_tensor(value):
    return isinstance(value, np.ndarray) or (hasattr(value, "data_ptr") and hasattr(value, "is_contiguous"))


def members(node):
    """{key: node} of a mapping's node; None for others."""
    (kind, content), *_ = node.items()
    return {key: item for key, item in content if not isinstance(key, dict)} if kind in _MAPPINGS else None


class Plan:
    """What is to be read and where to. Nothing is written before read()."""

    def __init__(self, saved, classes=(), objects=None):
        self._saved = saved
        self._rebuilder = Rebuilder(self._stored, classes, objects)
        self._tensors, self._others, self._seen = [], [], set()
        self.missing, self.unexpected, self.misfits = [], [], []

    def _stored(self, name, node, framework):
        lazy = self._saved._lazy(name, {key: item for key, item in node.items() if key != "view"})
        value = lazy._read(framework or lazy._default_kind())
        return value[()] if node["kind"] == "scalar" else value

    def value(self, node):
        """A value of its own, read at once."""
        return self._rebuilder.value(node)

    def match(self, node, target, path=()):
        """Every tensor of `target`, a dict or list, gets the node that it is read from."""
        inner = members(node)
        if inner is None or not isinstance(target, Mapping):
            self.misfits.append(f"{'.'.join(path) or 'the state dict'}: a dict is expected on both sides")
            return
        for key, item in target.items():
            here = path + (str(key),)
            if key not in inner:
                self.missing.append(".".join(here))
            else:
                self._one(inner[key], target, key, item, here)
        self.unexpected.extend(".".join(path + (str(key),)) for key in inner if key not in target)

    def _one(self, node, holder, key, item, path):
        if is_tensor(item) and ("tensor" in node or next(iter(node)) in _PARTS):
            self.tensor(node, item, ".".join(path))
        elif isinstance(item, Mapping) and members(node) is not None:
            self.match(node, item, path)
        elif isinstance(item, list) and len(node.get("list", ())) == len(item):
            for index, (inner, one) in enumerate(zip(node["list"], item)):
                self._one(inner, item, index, one, path + (str(index),))
        elif isinstance(holder, (MutableMapping, list)):
            self._others.append((holder, key, node))
        else:
            self.misfits.append(f"{'.'.join(path)}: cannot be put into a {type(holder).__name__}")

    def fits(self, node, target):
        """Whether the tensor may be read into `target`: None, or how they differ."""
        if "tensor" not in node:
            return self._part_fits(node, target)
        lazy = self._saved._lazy(node["tensor"], node)
        if hasattr(target, "device_mesh"):
            return "a tensor that is spread over processes; use pyquern.torch_dcp"
        if hasattr(target, "device") and str(target.device) == "meta":
            return "the target has no memory yet; call module.to_empty(device=...) first"
        label = lazy._form.label
        wanted = numpy_dtype(label) if isinstance(target, np.ndarray) else torch_dtype(label)
        theirs = target.dtype.newbyteorder("=") if isinstance(target, np.ndarray) and lazy._form.plain else target.dtype
        if wanted != theirs or lazy.shape != tuple(target.shape):
            return f"{lazy.dtype} of shape {lazy.shape} does not fit into {target.dtype} of shape {tuple(target.shape)}"
        if isinstance(target, np.ndarray) and not target.flags.writeable:
            return "the array is read-only"
        return None

    @staticmethod
    def _part_fits(node, target):
        if isinstance(target, np.ndarray):
            return "a tensor of PyTorch does not fit into an array"
        if "quantized" in node and not target.is_quantized:
            return f"a quantized tensor does not fit into {target.dtype}"
        shape = tuple(node["shape"]) if "shape" in node else tuple(target.shape)
        return None if shape == tuple(target.shape) else f"shape {shape} does not fit into {tuple(target.shape)}"

    def tensor(self, node, target, name):
        problem = self.fits(node, target)
        if problem is not None:
            self.misfits.append(f"{name}: {problem}")
            return
        if "tensor" in node and hasattr(target, "data_ptr"):
            same = (node["tensor"], str(node.get("view")), target.data_ptr(), tuple(target.stride()))
            if same in self._seen:
                return  # tied in the target too
            self._seen.add(same)
        self._tensors.append((node, target))

    def check(self, strict):
        if self.misfits:
            more = f"; and {len(self.misfits) - 10} more" if len(self.misfits) > 10 else ""
            raise ValueError(f"step {self._saved.step} does not fit, nothing was read: " + "; ".join(self.misfits[:10]) + more)
        if strict and (self.missing or self.unexpected):
            said = [f"{what} {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}" for what, names in
                    (("the checkpoint lacks", self.missing), ("the target lacks", self.unexpected)) if names]
            raise ValueError(f"step {self._saved.step} does not fit, nothing was read: {'; '.join(said)}; strict=False reads the rest")

    def read(self):
        for node, target in self._tensors:
            self._read(node, target)
        values = [(holder, key, self.value(node)) for holder, key, node in self._others]
        for holder, key, value in values:
            holder[key] = value

    def _read(self, node, target):
        if "tensor" not in node:
            value = self.value(node)
            if "sparse" in node and not target.is_sparse and str(target.layout) == "torch.strided":
                value = value.to_dense()
            target.detach().copy_(value)
            return
        lazy = self._saved._lazy(node["tensor"], node)
        if isinstance(target, np.ndarray):
            if target.flags.c_contiguous and target.dtype.isnative and lazy._view is None:
                self._saved._read_into(lazy._index, target.ctypes.data, target.nbytes)
            else:
                target[...] = lazy._read("numpy")
            return
        target = target.detach()
        # Memory in which values are stored as they are: no conjugate or negative views.
        plain = target.device.type == "cpu" and target.is_contiguous() and not target.is_neg() and not target.is_conj()
        if plain and lazy._view is None and lazy._form.order is None:
            self._saved._read_into(lazy._index, target.data_ptr(), target.numel() * target.element_size())
            return
        value = lazy._read("torch")
        if target.element_size() == 1:
            import torch

            target, value = target.view(torch.uint8), value.view(torch.uint8)
        target.copy_(value)


def _tree(saved):
    if saved._state is not None:
        return saved._state.tree
    return {"dict": [[name, {"tensor": name, **saved._stored_node(name)}] for name in saved]}


def _at(tree, key):
    keys = key if isinstance(key, tuple) else (key,)
    for one in keys:
        inner = members(tree)
        if inner is None or one not in inner:
            raise ValueError(f"the checkpoint has no {'.'.join(map(str, keys))}")
        tree = inner[one]
    return tree


def _find_model(tree, names):
    """The dict in the state dict that has most of the names: itself, or one in it."""
    found = []
    for path, node in [((), tree)] + [((key,), node) for key, node in (members(tree) or {}).items()]:
        inner = members(node)
        if inner is not None:
            found.append((sum(name in inner for name in names), path, node))
    most = max((count for count, _, _ in found), default=0)
    if most == 0:
        if not names:
            return {"dict": []}
        raise ValueError(f"no dict of the checkpoint has names of the module, such as {next(iter(names))}; say which by key=")
    best = [(path, node) for count, path, node in found if count == most]
    for path, node in best:
        if len(best) == 1 or path in [()] + [(key,) for key in _MODEL_KEYS]:
            return node
    raise ValueError(f"the checkpoint has several dicts that fit: say which by key=: {', '.join(repr(p[-1]) for p, _ in best)}")


def load_into(saved, target, strict, optimizer, key, optimizer_key, classes, objects):
    """Returns (missing, unexpected)."""
    tree = _tree(saved)
    plan = Plan(saved, classes, objects)
    copies = {}
    is_module = hasattr(target, "load_state_dict") and hasattr(target, "state_dict")
    if is_module:
        names = target.state_dict()
        own = {tensor.data_ptr() for tensor in [*target.parameters(), *target.buffers()]}
        # What state_dict() has made anew, and extra states, go the usual way.
        copies = {name: value for name, value in names.items() if not is_tensor(value) or value.data_ptr() not in own}
        node = _find_model(tree, names) if key is None else _at(tree, key)
        plan.match(node, names)
    else:
        plan.match(tree if key is None else _at(tree, key), target)
        if optimizer is not None and optimizer_key is None and key is None:
            raise ValueError("with a dict as the target the optimizer's state is in the dict, or optimizer_key= says where it is")
    restoring = None
    if optimizer is not None:
        where = find_optimizer(tree, members) if optimizer_key is None else _at(tree, optimizer_key)
        restoring = Restoring(optimizer, where, plan, members)
        if is_module and node is tree:  # the module's names and the optimizer's dict side by side
            beside = [str(name) for name, item in members(tree).items() if item is where]
            plan.unexpected[:] = [name for name in plan.unexpected if name not in beside]
    plan.check(strict)
    plan.read()
    if copies:
        changed = {name: names[name] for name in copies if name not in plan.missing}
        target.load_state_dict(changed, strict=False)
    if restoring is not None:
        restoring.finish()
    return plan.missing, plan.unexpected
