"""Models and optimizers of accelerate in a store.

    accelerator = Accelerator()
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    attach(accelerator, "runs/a")                    # after prepare()
    accelerator.save_state("checkpoints/500")        # as always
    accelerator.load_state("checkpoints/500")

save_state() leaves its small files (schedulers, samplers, generators, custom objects) in the folder as always; models and
optimizers go into the store, and a file quern.json in the folder names the step there. The step is the number at the end of the
folder's name, or the first free number above it. Folders that disappear while the run goes on (total_limit) take their
checkpoints with them at the next save, unless what stays needs them. Folders without quern.json are loaded as before.
"""
import os
import re

from .. import checkpoint as _checkpoint
from .._checkpoint.together import Together
from . import _pointer

_FILE = "quern.json"
_STUB = "quern"
_SUPPORTED = ("NO", "MULTI_GPU", "MULTI_CPU", "MULTI_XPU", "MULTI_NPU", "MULTI_MLU", "MULTI_HPU")


def attach(accelerator, store, base="newest", preset="exact", **options):
    """From now on save_state() and load_state() of this Accelerator keep models and optimizers in the store. Returns an
    object whose detach() ends that. options: as in pyquern.checkpoint.save(). Not for FSDP, DeepSpeed and Megatron-LM, whose
    states are spread over processes: ValueError; pyquern.torch_dcp.QuernWriter takes such."""
    kind = accelerator.distributed_type.name
    if kind not in _SUPPORTED:
        raise ValueError(f"accelerate runs as {kind}, where states are spread over processes; save them with "
                         "pyquern.torch_dcp.QuernWriter")
    return Attached(accelerator, os.path.abspath(store), {"base": base, "preset": preset, **options})


class Attached:
    def __init__(self, accelerator, store, options):
        self._accelerator, self._store, self._options = accelerator, store, options
        self._folders = {}  # folder -> (step, id), of those that were there in this run
        self._together = None  # made when all processes save for the first time
        self._leftover = set()  # (step, id) of those that are gone, and needed by others
        self._plain_save = accelerator.save_state
        self._hooks = [accelerator.register_save_state_pre_hook(self._before_save),
                       accelerator.register_load_state_pre_hook(self._before_load)]
        accelerator.save_state = self._save_state

    def detach(self):
        for hook in self._hooks:
            hook.remove()
        del self._accelerator.save_state

    def _save_state(self, *arguments, **named):
        try:
            return self._plain_save(*arguments, **named)
        finally:  # what stood in for state_dict() while accelerate wrote its files
            for optimizer in self._accelerator._optimizers:
                vars(optimizer).pop("state_dict", None)

    def _before_save(self, models, weights, output_dir):
        # Every process comes here; `weights` are the state dicts that accelerate would write, and it writes what stays in the list.
        accelerator = self._accelerator
        if self._together is None:
            self._together = Together(required=False)
        self._together.on_first(lambda: self._save(weights, os.path.abspath(output_dir)))
        weights.clear()
        for optimizer in accelerator._optimizers:
            optimizer.state_dict = lambda: {_STUB: "this optimizer's state is in the store that quern.json names"}

    def _save(self, weights, folder):
        state = {"model": list(weights), "optimizer": [optimizer.state_dict() for optimizer in self._accelerator._optimizers]}
        named = re.search(r"(\d+)\D*$", os.path.basename(folder))
        step = _pointer.free_step(self._store, int(named.group(1)) if named else 0)
        before = _pointer.read(os.path.join(folder, _FILE))
        saved = _checkpoint.save(self._store, state, step, **self._options)
        _pointer.write(os.path.join(folder, _FILE), self._store, saved.step, saved.id)
        gone = {old for known, old in self._folders.items() if not os.path.exists(os.path.join(known, _FILE))}
        if before is not None and os.path.realpath(before[0]) == os.path.realpath(self._store):
            gone.add(before[1:])
        self._folders = {known: old for known, old in self._folders.items() if old not in gone}
        self._folders[folder] = saved.step, saved.id
        self._leftover = _pointer.collect(self._store, self._leftover | gone)

    def _before_load(self, models, input_dir):
        pointer = os.path.join(input_dir, _FILE)
        if _pointer.read(pointer) is None:
            return
        state = _pointer.load(pointer)
        optimizers = self._accelerator._optimizers
        if len(state["model"]) != len(models) or len(state["optimizer"]) != len(optimizers):
            raise ValueError(f"{input_dir}: {len(state['model'])} models and {len(state['optimizer'])} optimizers were saved, and "
                             f"{len(models)} and {len(optimizers)} are prepared; prepare the same ones in the same order")
        for model, weights in zip(models, state["model"]):
            model.load_state_dict(weights)
        models.clear()  # accelerate loads what stays in the list
        for optimizer, content in zip(optimizers, state["optimizer"]):
            _load_in_place_of_stub(optimizer, content)
        self._folders[os.path.abspath(input_dir)] = _pointer.read(pointer)[1:]


def _load_in_place_of_stub(optimizer, content):
    """accelerate is going to give this optimizer the stub that it finds in its file: once, it gets the stored state then."""

    def load_state_dict(given):
        del optimizer.load_state_dict
        optimizer.load_state_dict(content if list(given) == [_STUB] else given)

    optimizer.load_state_dict = load_state_dict


__all__ = ["Attached", "attach"]
