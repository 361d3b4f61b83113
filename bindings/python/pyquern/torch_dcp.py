"""torch.distributed.checkpoint on a store: one checkpoint that all ranks write and that ranks of any number read.

    dcp.save(state_dict, storage_writer=QuernWriter("runs/a", step=500))
    dcp.load(state_dict, storage_reader=QuernReader("runs/a"))

Each rank leaves its tensors under a name that the coordinator has made up; the checkpoint appears, wholly, when the
coordinator finishes. What is needed to read it again is in the checkpoint as JSON, without pickle; objects that are no tensors
are the bytes that the planner makes of them. A checkpoint's id, where one is given to save() or load(), is its step.
Checkpoints that were saved otherwise (pyquern.checkpoint, `quern checkpoint`) are read as well.
"""
import dataclasses
import io
import json
import uuid

import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadItemType, WriteItemType
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from ._dtypes import MAX_RANK, TORCH, is_complex, stored_form, torch_dtype
from ._checkpoint.reader import Checkpoint
from ._checkpoint.store import Store
from ._tensors import source_of

BLOB = "quern.dcp"
BYTES_PREFIX = "dcp:"
FORMAT = 1


def _done(value):
    future = Future()
    future.set_result(value)
    return future


def _step_of(checkpoint_id, otherwise):
    if checkpoint_id is None:
        return otherwise
    if not QuernWriter.validate_checkpoint_id(checkpoint_id):
        raise ValueError(f"a checkpoint's id is its step here, a whole number, not {checkpoint_id!r}")
    return int(str(checkpoint_id))


def _describe(metadata):
    """Metadata as JSON, without what only the planner that made it could understand."""
    items = []
    for name, item in metadata.state_dict_metadata.items():
        if isinstance(item, BytesStorageMetadata):
            items.append({"name": name})
            continue
        items.append({"name": name, "dtype": str(item.properties.dtype), "requires_grad": bool(item.properties.requires_grad),
                      "shape": list(item.size), "chunks": [[list(c.offsets), list(c.sizes)] for c in item.chunks]})
    mappings = None
    if metadata.planner_data is not None:
        mappings = {name: list(path) for name, path in metadata.planner_data.items()}
    return json.dumps({"format": FORMAT, "items": items, "mappings": mappings}, separators=(",", ":")).encode()


def _tensor_metadata(dtype, requires_grad, shape, chunks):
    return TensorStorageMetadata(
        properties=TensorProperties(dtype=dtype, requires_grad=requires_grad), size=torch.Size(shape),
        chunks=[ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes)) for offsets, sizes in chunks])


def _metadata(text):
    document = json.loads(text)
    if document.get("format") != FORMAT:
        raise ValueError(f"this checkpoint has format {document.get('format')}; this quern reads format {FORMAT}")
    entries = {}
    for item in document["items"]:
        if "dtype" not in item:
            entries[item["name"]] = BytesStorageMetadata()
            continue
        dtype = torch_dtype(item["dtype"].partition(".")[2])
        if dtype is None:
            raise ValueError(f"'{item['name']}' is of {item['dtype']}, which this PyTorch ({torch.__version__}) does not have")
        entries[item["name"]] = _tensor_metadata(dtype, item["requires_grad"], item["shape"], item["chunks"])
    mappings = document["mappings"]
    if mappings is not None:
        mappings = {name: tuple(path) for name, path in mappings.items()}
    return Metadata(entries, planner_data=mappings)


def _metadata_of_tensors(saved):
    """Of a checkpoint that was not saved through here: every tensor in one chunk."""
    entries = {}
    for name in [*saved, *saved.other_names()]:
        lazy = saved[name]
        dtype = torch_dtype(lazy._form.label)
        if dtype is not None:
            entries[name] = _tensor_metadata(dtype, False, lazy.shape, [([0] * lazy.ndim, lazy.shape)])
    return Metadata(entries)


def _stored_name(name):
    """Names in stores are texts of C: they have no NUL."""
    return name.replace("\0", "\\0")


def _tensor_nodes(text):
    """What elements are that are stored as others: as the state texts of pyquern.checkpoint say it."""
    known = {"torch." + name for name in TORCH.values()}
    out = {}
    for item in json.loads(text)["items"]:
        node = {"kind": "torch", "shape": item.get("shape")}
        if item.get("dtype") not in known:
            node["dtype"] = item.get("dtype", "").partition(".")[2]
        if "dtype" in item and ("dtype" in node or len(item["shape"]) > MAX_RANK):
            out[_stored_name(item["name"])] = node
    return out


def _stored_piece(source, value, whole, offset):
    """Extents and offset, as they are stored, of a tensor of which `value` is a piece."""
    if source.is_plain:
        return whole, offset
    label = source.node.get("dtype")
    if len(whole) + is_complex(label) > MAX_RANK:
        raise ValueError(f"pieces of tensors of {len(whole)} axes cannot be saved; reshape to fewer axes, or save it whole")
    stored = stored_form(label, value.element_size(), whole)[1]
    return stored, tuple(offset) + (0,) * (len(stored) - len(whole))


class QuernWriter(StorageWriter):
    """Saves the checkpoint `step` of the store at `path`. Options as in pyquern.checkpoint.save(); all ranks must be given the same.
    The coordinator alone finds out what base="newest" is. replace=True: the step may be there already, as after a resume.

    Where a rank fails, dcp.save() raises a CheckpointException with its sentence on every rank, and there is no new
    checkpoint."""

    def __init__(self, path, step=None, base=None, preset="exact", threads=0, parity=None, zstd_level=0, replace=False,
                 policy=None, roles=None, replay=None, tags=None):
        super().__init__()
        self.path, self.step, self.threads, self.base = path, step, threads, base
        self._options = {"preset": preset, "parity": parity, "zstd_level": zstd_level, "replace": replace,
                         "policy": policy, "roles": roles, "replay": replay, "tags": tags}
        self._share = None

    def reset(self, checkpoint_id=None):
        self.step = _step_of(checkpoint_id, self.step)
        self._share = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return str(checkpoint_id).isdecimal()

    def storage_meta(self):
        return StorageMeta(checkpoint_id=str(self.step))

    def set_up_storage_writer(self, is_coordinator, *args, use_collectives=True, **kwargs):
        if not use_collectives:
            raise ValueError("ranks that do not talk cannot make one checkpoint: save with use_collectives=True")
        if self.step is None:
            raise ValueError("the step is not known: QuernWriter(path, step=...) or dcp.save(checkpoint_id=...)")

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        # The coordinator's description is the share of a last writer: nothing appears before it has come.
        group = uuid.uuid4().hex
        base = self.base
        if base == "newest":
            with Store(self.path, write=True, threads=self.threads) as store:
                base = store.newest_base(self.step)
        shares = [{"group": group, "writer": i, "writers": len(plans) + 1, "step": self.step, "base": base}
                  for i in range(len(plans) + 1)]
        self._share = shares[-1]
        return [dataclasses.replace(plan, storage_data=share) for plan, share in zip(plans, shares)]

    def _begin(self, store, share):
        share = dict(share)
        return store.begin(share.pop("step"), **share, **self._options)

    def write_data(self, plan, planner):
        with Store(self.path, write=True, threads=self.threads) as store, self._begin(store, plan.storage_data) as writer:
            results = _add_items(plan, planner, writer.add, writer.add_blob)
            writer.publish()
        return _done(results)

    def finish(self, metadata, results):
        with Store(self.path, write=True, threads=self.threads) as store, self._begin(store, self._share) as writer:
            writer.add_blob(BLOB, _describe(metadata))
            self._check_published(writer.publish())

    def _check_published(self, saved):
        if not saved.published:
            raise RuntimeError(f"step {self.step} was not published: a rank has not left its share")


def _add_items(plan, planner, add, add_blob):
    """Calls add(name, source, piece=...) for each tensor that a plan has this rank write, as Writer.add(), and add_blob(name,
    bytes) for everything else. Returns the WriteResults."""
    results = []
    for item in plan.items:
        value = planner.resolve_data(item)
        name = _stored_name(item.index.fqn)
        if item.type == WriteItemType.BYTE_IO:
            content = value.getvalue()
            add_blob(BYTES_PREFIX + name, content)
            results.append(WriteResult(item.index, len(content), None))
            continue
        source = source_of(value, item.index.fqn)
        whole, chunk = tuple(item.tensor_data.size), item.tensor_data.chunk
        size = value.numel() * value.element_size()
        if tuple(value.shape) == whole:
            add(name, source)
        elif size != 0:  # ranks may hold nothing of a tensor
            add(name, source, piece=_stored_piece(source, value, whole, tuple(chunk.offsets)))
        results.append(WriteResult(item.index, size, None))
    return results


class QuernReader(StorageReader):
    """Reads the checkpoint `step` (None: the newest that is whole) of the store at `path`."""

    def __init__(self, path, step=None, threads=0):
        super().__init__()
        self.path, self.step, self.threads = path, step, threads
        self._saved = None

    def reset(self, checkpoint_id=None):
        self.step = _step_of(checkpoint_id, self.step)
        self._saved = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return QuernWriter.validate_checkpoint_id(checkpoint_id)

    def _open(self):
        if self._saved is None:
            self._saved = Checkpoint(Store(self.path, threads=self.threads), self.step)
            if BLOB in self._saved.info.blobs:
                self._saved._nodes.update(_tensor_nodes(self._saved.blob(BLOB)))
        return self._saved

    def read_metadata(self, *args, **kwargs):
        saved = self._open()
        if BLOB in saved.info.blobs:
            metadata = _metadata(saved.blob(BLOB))
        else:
            metadata = _metadata_of_tensors(saved)
        metadata.storage_meta = StorageMeta(checkpoint_id=str(saved.step))
        return metadata

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        # All ranks read the step that the coordinator found, also when a newer one has appeared meanwhile.
        if metadata.storage_meta is not None and metadata.storage_meta.checkpoint_id is not None:
            self.step = int(metadata.storage_meta.checkpoint_id)
            if self._saved is not None and self._saved.step != self.step:
                self._saved = None

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner):
        saved = self._open()
        # Parts of one tensor in turn: the last tensor decoded is kept.
        for item in sorted(plan.items, key=lambda item: item.storage_index.fqn):
            name = item.storage_index.fqn
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(saved.blob(BYTES_PREFIX + _stored_name(name))))
                continue
            chunk = item.storage_index.offset or [0] * len(item.storage_offsets)
            begin = [c + o for c, o in zip(chunk, item.storage_offsets)]
            end = [b + length for b, length in zip(begin, item.lengths)]
            target = planner.resolve_tensor(item).detach()
            self._read_into(saved, name, target, begin, end)
            planner.commit_tensor(item, target)
        return _done(None)

    @staticmethod
    def _read_into(saved, name, target, begin, end):
        lazy = saved[_stored_name(name)]
        shape = torch.Size([e - b for b, e in zip(begin, end)])
        if target.size() != shape:
            raise ValueError(f"tensor '{name}': {tuple(shape)} cannot be read into {tuple(target.size())}")
        same_type = target.dtype == torch_dtype(lazy._form.label) and not (target.is_conj() or target.is_neg())
        straight = same_type and lazy._view is None and lazy._form.same_axes and lazy._form.order is None
        if straight and target.is_contiguous() and target.device.type == "cpu":
            size = target.numel() * target.element_size()
            saved._read_into(lazy._index, target.data_ptr(), size, *lazy._stored_box(begin, end))
            return
        value = torch.as_tensor(lazy._read("torch", begin, end))
        if same_type and target.element_size() == 1:  # PyTorch can copy few of these types
            target, value = target.view(torch.uint8), value.view(torch.uint8)
        target.copy_(value)


__all__ = ["QuernReader", "QuernWriter"]
