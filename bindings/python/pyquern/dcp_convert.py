"""Folders of torch.distributed.checkpoint into a store and out of it, in one process.

    from_dcp("old/step-500", "runs/a", step=500)      # what FileSystemWriter wrote, by any number of ranks
    to_dcp("runs/a", "new/step-500", step=500)        # for dcp.load(..., storage_reader=FileSystemReader(...))

Tensors come back bit for bit and whole, objects as the very bytes that the folder had: they are not unpickled. (PyTorch
unpickles the folder's own .metadata: import only folders that you trust.) The folder's shards are joined; dcp.load() hands
every rank its part of them, as before.
"""
import dataclasses
import io
import uuid
import warnings

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.metadata import BytesStorageMetadata
from torch.distributed.checkpoint.planner import WriteItemType

from . import checkpoint as _checkpoint
from ._checkpoint.store import Store
from ._tensors import source_of
from .torch_dcp import BLOB, BYTES_PREFIX, QuernReader, _describe, _stored_name

#: Tensors that are held at once.
SHARE_BYTES = 2**30


class _LoadPlanner(DefaultLoadPlanner):
    """Loads a flat dict; keeps the bytes of objects as they are."""

    def __init__(self):
        super().__init__(flatten_state_dict=False, flatten_sharded_tensors=False)
        self.objects = {}

    def load_bytes(self, read_item, value):
        self.objects[read_item.dest_index.fqn] = value.getvalue()


class _SavePlanner(DefaultSavePlanner):
    """Saves what `read(name)` gives, a tensor or the bytes of an object, asked for when it is written."""

    def __init__(self, read, mappings):
        super().__init__(flatten_state_dict=False, flatten_sharded_tensors=False)
        self._read, self._mappings = read, mappings

    def create_global_plan(self, all_plans):
        plans, metadata = super().create_global_plan(all_plans)
        return plans, dataclasses.replace(metadata, planner_data=self._mappings)

    def resolve_data(self, write_item):
        value = self._read(write_item.index.fqn)
        return io.BytesIO(value) if write_item.type == WriteItemType.BYTE_IO else value


def _quietly(call, *arguments, **options):
    """Without the warning that one process is at work."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)
        return call(*arguments, **options)


def _read(reader, items):
    """({name: tensor}, {name: bytes}) of the items of metadata, by that reader."""
    tensors = {name: torch.empty(item.size, dtype=item.properties.dtype) for name, item in items.items()
               if not isinstance(item, BytesStorageMetadata)}
    planner = _LoadPlanner()
    wanted = {name: tensors.get(name) for name in items}
    if wanted:
        _quietly(dcp.load, wanted, storage_reader=reader, planner=planner, no_dist=True)
    return tensors, planner.objects


def _shares(items, limit):
    """Items in lists of at most `limit` bytes, or one that is larger."""
    shares, size = [{}], 0
    for name, item in items.items():
        bytes_of = 0
        if not isinstance(item, BytesStorageMetadata):
            bytes_of = item.size.numel() * item.properties.dtype.itemsize
        if shares[-1] and limit is not None and size + bytes_of > limit:
            shares.append({})
            size = 0
        shares[-1][name] = item
        size += bytes_of
    return shares


def from_dcp(folder, store, step, base=None, preset="exact", threads=0, **options):
    """Saves a folder of torch.distributed.checkpoint as the checkpoint `step` of the store at the path `store`; options as in
    pyquern.checkpoint.save(). Returns the Saved of the last share.

    Reads the folder in shares of SHARE_BYTES, so that little of it is in memory at once; where something may be lost, what
    is predicted from one another must be together, and all of it is."""
    metadata = FileSystemReader(folder).read_metadata()
    may_lose = preset != "exact" or options.get("policy") is not None or options.get("replay") is not None
    shares = _shares(metadata.state_dict_metadata, None if may_lose else SHARE_BYTES)
    saved = None
    with Store(store, write=True, threads=threads) as target:
        if base == "newest":
            base = target.newest_base()
        group = {"group": uuid.uuid4().hex, "writers": len(shares)} if len(shares) > 1 else {}
        for number, items in enumerate(shares):
            if group:
                group["writer"] = number
            with target.begin(step, base=base, preset=preset, **group, **options) as writer:
                tensors, objects = _read(FileSystemReader(folder), items)
                for name, tensor in tensors.items():
                    writer.add(_stored_name(name), source_of(tensor, name))
                for name, content in objects.items():
                    writer.add_blob(BYTES_PREFIX + _stored_name(name), content)
                if number == len(shares) - 1:
                    writer.add_blob(BLOB, _describe(metadata))
                saved = writer.publish()
    return saved


def to_dcp(store, folder, step=None, threads=0):
    """Writes the checkpoint `step` (None: the newest that is whole) of the store at the path `store` into a folder, as
    dcp.save() with FileSystemWriter does. One tensor is in memory at a time. Of a checkpoint that pyquern.checkpoint.save()
    made, the state dict is loaded and saved. Returns the step."""
    reader = QuernReader(store, step, threads)
    metadata = reader.read_metadata()
    step = int(metadata.storage_meta.checkpoint_id)
    if BLOB not in reader._open().info.blobs:
        state = _checkpoint.load(store, step=step, framework="torch", threads=threads)
        _quietly(dcp.save, state, storage_writer=FileSystemWriter(folder), no_dist=True)
        return step

    def read(name):
        tensors, objects = _read(reader, {name: metadata.state_dict_metadata[name]})
        return tensors[name] if name in tensors else objects[name]

    plan = {name: None if isinstance(item, BytesStorageMetadata)
            else torch.empty(item.size, dtype=item.properties.dtype, device="meta")
            for name, item in metadata.state_dict_metadata.items()}
    planner = _SavePlanner(read, metadata.planner_data)
    _quietly(dcp.save, plan, storage_writer=FileSystemWriter(folder), planner=planner, no_dist=True)
    return step


__all__ = ["from_dcp", "to_dcp"]
