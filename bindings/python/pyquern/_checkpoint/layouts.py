"""Tensors of PyTorch that are more than dense values: sparse and quantized ones and wrappers, kept by their parts."""
import sys

import numpy as np

from .classes import is_importable, reference
from .._tensors import NO_ROLE

_COMPRESSED = {"sparse_csr": "crow_indices col_indices", "sparse_csc": "ccol_indices row_indices",
               "sparse_bsr": "crow_indices col_indices", "sparse_bsc": "ccol_indices row_indices"}
_QUANTIZED = ("quint8", "qint8", "qint32")


def _need_torch(what):
    try:
        import torch
    except ImportError:
        raise ValueError(f"the state dict holds {what} of PyTorch, which is not installed: pip install torch, or read single "
                         "tensors by load(names=...)") from None
    return torch


def _torch():
    return sys.modules.get("torch")


def is_dense(value):
    """A tensor of PyTorch or an array of NumPy whose memory may be shared with others."""
    torch = _torch()
    return (torch is not None and isinstance(value, torch.Tensor)) or isinstance(value, np.ndarray)


def flags_of(value):
    """Members of the node: is it a Parameter, does it want a gradient."""
    torch = _torch()
    if torch is None or not isinstance(value, torch.Tensor):
        return {}
    flags = {}
    if isinstance(value, torch.nn.Parameter):
        flags["parameter"] = True
    if value.requires_grad:
        flags["requires_grad"] = True
    return flags


def node_of(flattened, value, path, where):
    """The node of such a tensor; None for all else."""
    torch = _torch()
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    if getattr(value, "is_nested", False):
        raise TypeError(f"{where}: a nested tensor cannot be saved: save list(tensor.unbind())")
    cls = type(value)
    if hasattr(value, "device_mesh") or cls.__name__ == "ShardedTensor":
        return None  # source_of() says what to do
    if cls not in (torch.Tensor, torch.nn.Parameter):
        return _wrapper(flattened, value, path, where)
    layout = str(value.layout).partition(".")[2]

    def part(tensor, key):
        return flattened.leaf(tensor, path + (key,), role=NO_ROLE)

    flags = flags_of(value)
    value = value.detach()
    if layout == "sparse_coo":
        return {"sparse": layout, "shape": list(value.shape), "coalesced": value.is_coalesced(),
                "indices": part(value._indices(), "indices"), "values": part(value._values(), "values"), **flags}
    if layout in _COMPRESSED:
        first, second = _COMPRESSED[layout].split()
        return {"sparse": layout, "shape": list(value.shape), "offsets": part(getattr(value, first)(), first),
                "indices": part(getattr(value, second)(), second), "values": part(value.values(), "values"), **flags}
    if layout != "strided":
        raise TypeError(f"{where}: a tensor of layout {layout} cannot be saved: save tensor.to_dense()")
    if value.is_quantized:
        return _quantized(value, part, where)
    return None


def _quantized(value, part, where):
    torch = _torch()
    dtype, scheme = str(value.dtype).partition(".")[2], value.qscheme()
    if dtype not in _QUANTIZED or scheme not in (torch.per_tensor_affine, torch.per_channel_affine):
        raise TypeError(f"{where}: a quantized tensor of {dtype} and {scheme} cannot be saved: save tensor.dequantize()")
    node = {"quantized": dtype, "values": part(value.int_repr(), "values")}
    if scheme == torch.per_tensor_affine:
        return {**node, "scale": value.q_scale(), "zero_point": value.q_zero_point()}
    return {**node, "scale": part(value.q_per_channel_scales(), "scales"),
            "zero_point": part(value.q_per_channel_zero_points(), "zero_points"), "axis": value.q_per_channel_axis()}


def _wrapper(flattened, value, path, where):
    """A class of its own that says what tensors it is made of, as torch.compile asks of it."""
    cls = type(value)
    if not hasattr(value, "__tensor_flatten__") or not hasattr(cls, "__tensor_unflatten__") or not is_importable(cls):
        raise TypeError(f"{where}: a {cls.__name__} would come back as a plain tensor: save tensor.as_subclass(torch.Tensor), or "
                        f"say how with objects= or pyquern.checkpoint.register({cls.__name__}, to, from_)")
    names, context = value.__tensor_flatten__()
    tensors = [[name, flattened.leaf(getattr(value, name), path + (name,), role=NO_ROLE)] for name in names]
    return {"wrapper": reference(cls), "tensors": tensors, "context": flattened._node(context, path + ("context",)),
            "shape": list(value.shape), "strides": list(value.stride()), **flags_of(value)}


def with_flags(value, node):
    """The tensor as the Parameter it was, and wanting the gradient it wanted."""
    torch = _torch()
    if torch is None or not isinstance(value, torch.Tensor):
        return value
    if node.get("parameter"):
        return torch.nn.Parameter(value, requires_grad=bool(node.get("requires_grad")))
    if node.get("requires_grad"):
        return value.detach().requires_grad_()
    return value


def sparse(node, read):
    torch = _need_torch("a sparse tensor")
    values, indices = read(node["values"]), read(node["indices"])
    if node["sparse"] == "sparse_coo":
        made = torch.sparse_coo_tensor(indices, values, node["shape"], check_invariants=True)
        if node["coalesced"]:
            made = made._coalesced_(True)
    elif node["sparse"] in _COMPRESSED:
        made = torch.sparse_compressed_tensor(read(node["offsets"]), indices, values, node["shape"],
                                              layout=getattr(torch, node["sparse"]), check_invariants=True)
    else:
        raise ValueError(f"'{node['sparse']}' is no layout of sparse tensors")
    return with_flags(made, node)


def quantized(node, read):
    torch = _need_torch("a quantized tensor")
    values = read(node["values"])
    if node["quantized"] not in _QUANTIZED:
        raise ValueError(f"'{node['quantized']}' is no type of quantized tensors")
    if "axis" in node:
        return torch._make_per_channel_quantized_tensor(values, read(node["scale"]), read(node["zero_point"]), node["axis"])
    return torch._make_per_tensor_quantized_tensor(values, node["scale"], node["zero_point"])


def wrapper(node, read, value, classes):
    torch = _need_torch("a wrapper")
    cls = classes.find(node["wrapper"], lambda found: issubclass(found, torch.Tensor) and hasattr(found, "__tensor_unflatten__"),
                       "a tensor")
    tensors = {name: read(inner) for name, inner in node["tensors"]}
    made = cls.__tensor_unflatten__(tensors, value(node["context"]), torch.Size(node["shape"]), tuple(node["strides"]))
    return with_flags(made, node)
