"""Training data that is held compressed: decoded by the sample or batch, in the workers of a DataLoader.

    data = CompressedDataset(images, labels, rel=1e-2)
    loader = DataLoader(data, batch_size=64, sampler=BlockSampler(data), num_workers=2)

Every value keeps the bound, as everywhere."""
from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ._array import given
from ._bounds import Bound, chosen_bound
from ._ranges import common_bound, fills_of
from .core import compress, decompress

try:
    import torch
    from torch.utils.data import Dataset, Sampler
except ImportError:
    raise ImportError("PyTorch is not installed: pip install torch") from None

__all__ = ["BlockSampler", "CompressedDataset"]

#: Raw bytes of a block where none is asked for: a stream's own bytes weigh little then, and it decodes within milliseconds.
_BLOCK_BYTES = 1 << 18
_DESCRIPTION, _TARGETS = "set.json", "targets.npy"
_KINDS = ("abs", "rel", "pwrel", "lossless")


class CompressedDataset(Dataset):  # type: ignore[misc]  # mypy does not check PyTorch
    """Samples in blocks, each a quern stream, in memory or in a folder.

    samples: an array (sample, ...) or a sequence of arrays of one type, whose first extents may differ (particles of a
    frame, points of a cloud) and whose other extents are the same. Fields, images, particles: any real numbers. targets: an
    array or sequence with an item a sample, kept as it is; None, there are none. Exactly one bound; rel is of the range of all
    samples. block: samples a stream; None, some 256 KiB. transform: called with each sample's tensor. cache: blocks that a
    worker keeps decoded.

    data[i] is a tensor, or (tensor, target). A batch decodes each block once, so BlockSampler spares the most. Copies by
    pickle (workers that are spawned) hold the streams, not the cache. Memory: the streams, and cache blocks a worker."""

    def __init__(self, samples: Any, targets: Any = None, *, abs: float | None = None, rel: float | None = None,
                 pwrel: float | None = None, lossless: bool = False, codec: str = "auto", goal: str = "ratio",
                 effort: int | None = None, fill: Any = None, block: int | None = None,
                 transform: Callable[[Any], Any] | None = None, cache: int = 4, threads: int = 1) -> None:
        asked = chosen_bound(kinds=_KINDS, abs=abs, rel=rel, pwrel=pwrel, lossless=lossless)
        if len(samples) == 0:
            raise ValueError("there are no samples")
        if targets is not None and len(targets) != len(samples):
            raise ValueError(f"{len(targets)} targets for {len(samples)} samples")
        arrays = [_as_numpy(sample) for sample in samples]
        if any(a.dtype != arrays[0].dtype or a.ndim != arrays[0].ndim or a.shape[1:] != arrays[0].shape[1:] for a in arrays):
            raise ValueError("samples differ in type or in more than their first extent")
        self.bound = common_bound(asked, arrays, fills_of(fill))
        self.transform, self._cache_blocks = transform, cache
        self._targets = None if targets is None else np.asarray(targets)
        self._same = all(a.shape == arrays[0].shape for a in arrays)
        self._lengths = np.array([a.shape[0] if a.ndim else 1 for a in arrays], np.int64)
        self.block = block or max(1, _BLOCK_BYTES * len(arrays) // max(1, sum(a.nbytes for a in arrays)))
        self.nbytes: int = sum(a.nbytes for a in arrays)
        keywords: dict[str, Any] = {"lossless": True} if self.bound.kind == "lossless" else {self.bound.kind: self.bound.value}
        self._blocks: list[bytes | str] = []
        for first in range(0, len(arrays), self.block):
            part = arrays[first:first + self.block]
            joined = np.stack(part) if self._same else np.concatenate(part)
            self._blocks.append(bytes(compress(joined, codec=codec, goal=goal, effort=effort, fill=fill, threads=threads, **keywords)))
        self.stored_bytes: int = sum(len(stream) for stream in self._blocks)
        self._decoded: OrderedDict[int, Any] = OrderedDict()

    @property
    def ratio(self) -> float:
        """Raw bytes of the samples over bytes of their streams."""
        return self.nbytes / self.stored_bytes

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes a new folder: one .qn file a block, the targets, and what they are. open() reads it."""
        os.makedirs(folder)
        for number in range(len(self._blocks)):
            with open(os.path.join(folder, f"{number:06}.qn"), "wb") as file:
                file.write(self._stream(number))
        if self._targets is not None:
            np.save(os.path.join(folder, _TARGETS), self._targets, allow_pickle=False)
        text = {"block": self.block, "blocks": len(self._blocks), "same": self._same, "lengths": self._lengths.tolist(),
                "nbytes": self.nbytes, "bound": self.bound.kind, "value": self.bound.value}
        with open(os.path.join(folder, _DESCRIPTION), "w", encoding="utf-8") as file:
            json.dump(text, file)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, transform: Callable[[Any], Any] | None = None, cache: int = 4) -> CompressedDataset:
        """The set of a folder that save() wrote. Blocks are read when they are used."""
        self = cls.__new__(cls)
        with open(os.path.join(folder, _DESCRIPTION), encoding="utf-8") as file:
            text = json.load(file)
        self.bound, self.block, self.nbytes = Bound(text["bound"], text["value"]), text["block"], text["nbytes"]
        self.transform, self._cache_blocks, self._decoded = transform, cache, OrderedDict()
        self._same, self._lengths = text["same"], np.array(text["lengths"], np.int64)
        self._blocks = [os.path.join(os.path.abspath(folder), f"{number:06}.qn") for number in range(text["blocks"])]
        self.stored_bytes = sum(os.path.getsize(path) for path in self._blocks)
        targets = os.path.join(folder, _TARGETS)
        self._targets = np.load(targets, allow_pickle=False) if os.path.exists(targets) else None
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_decoded": OrderedDict()}

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        number, place = divmod(index % len(self), self.block)
        values = self._block(number)
        if self._same:
            sample = values[place]
        else:
            first = number * self.block
            start = int(self._lengths[first:first + place].sum())
            sample = values[start:start + int(self._lengths[first + place])]
        # A copy of its own: the block may go, and transforms may write.
        tensor = torch.from_numpy(np.array(sample))
        if self.transform is not None:
            tensor = self.transform(tensor)
        return tensor if self._targets is None else (tensor, self._targets[index])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """A batch in the order asked for; each block is decoded once, however many it meets."""
        found: list[Any] = [None] * len(indices)
        for place in sorted(range(len(indices)), key=lambda k: indices[k] // self.block):
            found[place] = self[indices[place]]
        return found

    def _stream(self, number: int) -> bytes:
        block = self._blocks[number]
        if isinstance(block, bytes):
            return block
        with open(block, "rb") as file:
            return file.read()

    def _block(self, number: int) -> Any:
        values = self._decoded.pop(number, None)
        if values is None:
            values = np.asarray(decompress(self._stream(number)))
            while len(self._decoded) >= max(self._cache_blocks, 1):
                self._decoded.popitem(last=False)
        self._decoded[number] = values
        return values


def _as_numpy(sample: Any) -> Any:
    if isinstance(sample, torch.Tensor):
        sample = sample.detach().cpu().numpy()
    array = np.asarray(sample)
    given(array)  # a TypeError for what is no array of numbers
    return array


class BlockSampler(Sampler):  # type: ignore[misc]  # mypy does not check PyTorch
    """Every sample once in a random order that takes `window` blocks at a time and mixes their samples, so that a worker
    decodes a block about once an epoch. generator: a torch.Generator; None, PyTorch's own."""

    def __init__(self, data: CompressedDataset, *, window: int = 4, generator: Any = None) -> None:
        self._count, self._block, self._window, self._generator = len(data), data.block, window, generator

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        blocks = torch.randperm(-(-self._count // self._block), generator=self._generator).tolist()
        for first in range(0, len(blocks), self._window):
            samples = [index for number in blocks[first:first + self._window]
                       for index in range(number * self._block, min((number + 1) * self._block, self._count))]
            for place in torch.randperm(len(samples), generator=self._generator).tolist():
                yield samples[place]
