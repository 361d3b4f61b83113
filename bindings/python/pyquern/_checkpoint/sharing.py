"""Tensors that share memory: which of a state dict are views of one another, and the views made again."""
import ctypes
import sys

import numpy as np

from .._dtypes import count_of


class Span:
    """The memory of a tensor: [first, last) of addresses; `group`: only tensors of one group can be views of one another."""

    def __init__(self, leaf, group, first, last, shape, strides, item_bytes, dense):
        self.leaf, self.group, self.first, self.last = leaf, group, first, last
        self.shape, self.strides, self.item_bytes, self.dense = tuple(shape), tuple(strides), item_bytes, dense

    @property
    def identity(self):
        return self.first, self.shape, self.strides

    @property
    def bytes(self):
        return count_of(self.shape) * self.item_bytes

    def steps(self, first):
        """Addresses that strides lead to from `first`: whole elements apart, or the memory cannot be shared."""
        return (first + stride for stride in self.strides)

    @property
    def start(self):
        """The address of the element at the origin: not the first one where strides are negative."""
        return self.first - sum((n - 1) * s for n, s in zip(self.shape, self.strides) if s < 0)


def span_of(leaf):
    """None for what cannot be a view."""
    value = leaf.value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if (type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided or value.is_quantized
                or value.device.type == "meta" or value.numel() == 0 or value.is_neg() or value.is_conj()):
            return None
        size = value.element_size()
        strides = [stride * size for stride in value.stride()]
        first, group, dense = value.data_ptr(), ("torch", str(value.device), value.dtype), value.is_contiguous()
    elif type(value) in (np.ndarray, np.memmap) and value.size != 0 and not value.dtype.hasobject and value.dtype.itemsize:
        size, strides = value.dtype.itemsize, value.strides
        first = value.__array_interface__["data"][0] + sum((n - 1) * s for n, s in zip(value.shape, strides) if s < 0)
        group, dense = ("numpy", value.dtype), value.flags.c_contiguous
    else:
        return None
    reach = sum((n - 1) * abs(s) for n, s in zip(value.shape, strides)) + size
    return Span(leaf, group, first, first + reach, value.shape, strides, size, dense)


def _overlapping(spans):
    """Lists of spans that are joined by overlaps."""
    found, last = [], 0
    for span in sorted(spans, key=lambda span: span.first):
        if found and span.first < last:
            found[-1].append(span)
        else:
            found.append([span])
            last = 0
        last = max(last, span.last)
    return found


def _flat_base(spans, first, last):
    """A tensor of one axis over all the memory of these, or None."""
    value = spans[0].leaf.value
    if spans[0].group[0] == "numpy":
        room = (ctypes.c_char * (last - first)).from_address(first)
        return np.frombuffer(room, np.uint8).view(value.dtype)
    import torch

    size = value.element_size()
    for span in spans:
        value = span.leaf.value
        begin = value.data_ptr() - value.storage_offset() * size
        storage = value.untyped_storage()
        if begin <= first and last <= begin + storage.nbytes():
            empty = torch.empty(0, dtype=value.dtype, device=value.device)
            return empty.set_(storage, (first - begin) // size, ((last - first) // size,), (1,))
    return None


class Shared:
    """Views of one piece of memory: `base`, the leaf that is all of it, or `made`, a tensor that is, for want of such a leaf."""

    def __init__(self, views, base, made, first):
        self.base, self.made = base, made
        self.views = [(span.leaf, {"offset": span.start - first, "strides": list(span.strides), "shape": list(span.shape)})
                      for span in views]


def shared(leaves):
    """The Shared of a state dict's leaves. Memory is shared where that takes no more bytes than one by one."""
    groups, order, out = {}, {}, []
    for leaf in leaves:
        span = span_of(leaf)
        if span is not None:
            groups.setdefault(span.group, []).append(span)
    for spans in groups.values():
        for together in _overlapping(spans):
            distinct = {span.identity: span for span in together}
            if len(distinct) == 1:
                continue
            first, last = min(span.first for span in together), max(span.last for span in together)
            if not order:
                order.update((id(leaf), i) for i, leaf in enumerate(leaves))
            if any((number - first) % span.item_bytes for span in together for number in (span.first, *span.steps(first))):
                continue
            whole = [span for span in together if span.dense and (span.first, span.last) == (first, last)]
            if whole:
                base = min(whole, key=lambda span: order[id(span.leaf)])
                views = [span for span in together if span.identity != base.identity]
                out.append(Shared(views, base.leaf, None, first))
                continue
            if last - first <= sum(span.bytes for span in distinct.values()):
                made = _flat_base(together, first, last)
                if made is not None:
                    together.sort(key=lambda span: order[id(span.leaf)])
                    out.append(Shared(together, None, made, first))
    return out


def _check(view, item_bytes, total):
    """The view's first and last bytes lie in the memory there is."""
    offset, strides, shape = view["offset"], view["strides"], view["shape"]
    numbers = [offset, *strides, *shape]
    if len(strides) != len(shape) or any(not isinstance(n, int) or isinstance(n, bool) for n in numbers):
        raise ValueError("a view in the state text is none")
    if any(n < 0 for n in shape):
        raise ValueError("a view in the state text has a negative extent")
    low = offset + sum((n - 1) * s for n, s in zip(shape, strides) if s < 0 and n)
    high = offset + sum((n - 1) * s for n, s in zip(shape, strides) if s > 0 and n) + item_bytes
    if low < 0 or high > total:
        raise ValueError("a view in the state text leaves its tensor")


def view_of(base, view):
    """The view as an array or tensor on the memory of `base`, which is contiguous."""
    from .._tensors import TypedArray

    if isinstance(base, TypedArray):
        return TypedArray(view_of(base.array, view), base.dtype)
    shape, strides = tuple(view["shape"]), view["strides"]
    if isinstance(base, np.ndarray):
        _check(view, base.dtype.itemsize, base.nbytes)
        return np.ndarray(shape, base.dtype, base, view["offset"], tuple(strides))
    size = base.element_size()
    _check(view, size, base.numel() * size)
    if any(n % size for n in [view["offset"], *strides]):
        raise ValueError("a view in the state text begins inside an element")
    # PyTorch has no views that run backwards: those become copies.
    backwards = [axis for axis, stride in enumerate(strides) if stride < 0]
    first = view["offset"] + sum((shape[axis] - 1) * strides[axis] for axis in backwards if shape[axis])
    found = base.as_strided(shape, [abs(n) // size for n in strides], first // size)
    return found.flip(backwards) if backwards else found
