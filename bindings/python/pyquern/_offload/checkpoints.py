"""Checkpoints of offloaded state: its bytes as they lie, in a store, without another encoding.

A checkpoint has the blob "offload", what the state is, and for each subgroup N the tensors "offload.N.weights" (binary32) and
"offload.N.moments" (bytes). What else was saved is a state dict, with the options of the parameter groups under the key
"offload"."""
from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from .library import State

KEY = "offload"


def _checkpoint_modules() -> Any:
    """What is used of them: they have no annotations, and the library of checkpoints may be missing."""
    from .._checkpoint import restore, state, store
    from .._tensors import source_of

    return SimpleNamespace(BLOB=state.BLOB, Flattened=state.Flattened, Store=store.Store, at_step=restore.at_step,
                           newest=restore.newest, source_of=source_of)


def read_subgroup(state: State, subgroup: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and the bytes of moments, in one piece of memory."""
    size, values = state.subgroup_size(subgroup)
    everything = torch.empty(size, dtype=torch.uint8)
    state.read_at_rest(subgroup, 0, size, everything.data_ptr())
    return everything[: 4 * values].view(torch.float32), everything[4 * values:]


def batches_of(sizes: list[int], most: int) -> list[list[int]]:
    """Numbers of subgroups that are saved at once: at most so many bytes, or one subgroup."""
    batches: list[list[int]] = [[]]
    taken = 0
    for number, size in enumerate(sizes):
        if batches[-1] and taken + size > most:
            batches.append([])
            taken = 0
        batches[-1].append(number)
        taken += size
    return batches


def save(state: State, param_groups: list[dict[str, Any]], path: str | os.PathLike[str], step: int, state_dict: dict[str, Any],
         batch_bytes: int, replace: bool, tags: dict[str, Any] | None) -> Any:
    ck = _checkpoint_modules()
    if KEY in state_dict:
        raise ValueError(f"the state dict has a key {KEY!r}, which is that of the optimizer: rename it")
    flat = ck.Flattened({**state_dict, KEY: {"param_groups": param_groups}}, None)
    batches = batches_of([state.subgroup_size(number)[0] for number in range(state.inspect().subgroups)], batch_bytes)
    # Writers of one group, one after the other: the last one makes the checkpoint appear.
    group = uuid.uuid4().hex if len(batches) > 1 else None
    results = []
    with ck.Store(path, write=True) as store:
        for number, batch in enumerate(batches):
            with store.begin(step, group=group, writer=number, writers=len(batches), replace=replace, tags=tags) as writer:
                if number == 0:
                    for name, source in flat.tensors.items():
                        writer.add(name, source)
                    writer.add_blob(ck.BLOB, flat.text.encode())
                    writer.add_blob(KEY, state.describe())
                for subgroup in batch:
                    for part, tensor in zip(("weights", "moments"), read_subgroup(state, subgroup)):
                        name = f"{KEY}.{subgroup}.{part}"
                        writer.add(name, ck.source_of(tensor, name))
                results.append(writer.publish())
    sums = {name: sum(getattr(result, name) for result in results) for name in ("raw_bytes", "stored_bytes", "tensors",
                                                                                "stored_already")}
    return dataclasses.replace(results[-1], **sums)


def load(restore: Callable[..., None], path: str | os.PathLike[str], step: int | None) -> tuple[int, dict[str, Any]]:
    ck = _checkpoint_modules()

    def read(saved: Any) -> tuple[int, dict[str, Any]]:
        if KEY not in saved.info.blobs:
            raise ValueError(f"{os.fsdecode(path)}: step {saved.step} holds no offloaded optimizer; save_checkpoint() writes "
                             "one, load_state_dict() takes the state of an ordinary one")

        def fill(subgroup: int, begin: int, count: int, address: int) -> None:
            weights, moments = (saved._indices[f"{KEY}.{subgroup}.{part}"] for part in ("weights", "moments"))
            if begin == 0:
                saved._read_into(weights, address, count)
            else:
                begin -= saved.info.tensors[weights].raw_bytes
                saved._read_into(moments, address, count, [begin], [begin + count])

        state_dict = saved.state()
        restore(saved.blob(KEY), fill, state_dict.pop(KEY)["param_groups"])
        return saved.step, state_dict

    with ck.Store(path) as store:
        found: tuple[int, dict[str, Any]]
        found = ck.at_step(store, path, step, read) if step is not None else ck.newest(store, path, read)[0]
    return found
