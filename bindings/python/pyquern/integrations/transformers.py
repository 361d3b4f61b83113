"""Checkpoints of the Hugging Face Trainer in a store.

    callback = QuernCallback("runs/a", remove_large=True)
    trainer = Trainer(model, args, callbacks=[callback], ...)
    trainer.train(resume_from_checkpoint=prepare(args.output_dir, "runs/a"))      # None on the first start

The Trainer writes a folder checkpoint-N as always; then the callback saves that folder as step N of the store: model, optimizer,
scheduler, scaler, generators, trainer state, tokenizer, configuration. It replaces nothing of the Trainer: what it saves is space (with
remove_large the files with the tensors are removed from the folder once the store has them, the small ones stay), and what
it adds is that a checkpoint is whole or not there. prepare() writes the folder of the newest whole checkpoint again.
"""
import logging
import os
import re

from transformers import TrainerCallback

from .. import checkpoint as _checkpoint
from .._checkpoint.library import Error
from .._checkpoint.retention import stays
from .._checkpoint.store import Store
from .._checkpoint.together import Together
from . import _folder
from ._behind import SavesBehind

_log = logging.getLogger("quern")


def _path_of(output_dir, step):
    return os.path.join(output_dir, f"checkpoint-{step}")


def _store_of(output_dir, store):
    return os.fspath(store) if store is not None else os.path.join(output_dir, "quern")


class QuernCallback(TrainerCallback):
    """store: its folder; None: `quern` in the output_dir. remove_large: remove files from checkpoint-N whose tensors the store
    has. options: as in pyquern.checkpoint.save() (base="newest" and preset="exact" where they are not given).

    engine: options of pyquern.checkpoint.Engine, or True. Then the files of the folder are read into memory when the Trainer has
    written them, and the rest is done while training goes on; what failed is raised at the next save, or at the end.

    Stays in the store what the Trainer keeps: the last save_total_limit checkpoints and the best one; without a limit, all."""

    def __init__(self, store=None, remove_large=False, engine=None, **options):
        self.store, self.remove_large = store, remove_large
        self._behind = SavesBehind(engine) if engine else None
        self._options = {"base": "newest", **options}
        self._together = None

    def on_train_begin(self, args, state, control, **_):
        if self.remove_large and args.load_best_model_at_end:
            raise ValueError("load_best_model_at_end reads files that remove_large=True removes; give one of the two, and the best "
                             "model is pyquern.integrations.transformers.prepare(output_dir, store, step=...)")
        if getattr(args, "fsdp", None) or getattr(args, "deepspeed", None):
            raise ValueError("FSDP and DeepSpeed write checkpoints in pieces, which QuernCallback does not take; save them with "
                             "pyquern.torch_dcp.QuernWriter")
        self._together = None  # of another process group than this training's, perhaps

    def on_save(self, args, state, control, **_):
        if self._together is None:
            self._together = Together(required=False)
        self._together.on_all(lambda: None)  # waits: each rank has files of its own in the folder
        self._together.on_first(lambda: self._save(args, state) if state.is_world_process_zero else None)

    def _save(self, args, state):
        step, store = state.global_step, _store_of(args.output_dir, self.store)
        folder = _path_of(args.output_dir, step)
        if self._behind is not None:
            self._behind.settle()  # which steps there are, and which stay, is known then
        there = step in _steps(store)
        options = {**self._options, "base": None} if there and self._options["base"] == "newest" else self._options
        keep, best = args.save_total_limit, state.best_model_checkpoint

        def then(saved):
            self._saved(store, folder, saved, large, keep, best)

        content, blobs, large = _folder.read(folder)
        try:
            if self._behind is not None:
                self._behind.save(store, content, step, then, blobs=blobs, replace=there, **options)
            else:
                then(_checkpoint.save(store, content, step, blobs=blobs, replace=there, **options))
        except TypeError as problem:
            raise TypeError(f"{folder}: {problem}") from None

    def _saved(self, store, folder, saved, large, limit, best):
        _log.info("%s: step %d, %d bytes, %.2f of its tensors", store, saved.step, saved.stored_bytes,
                  saved.stored_bytes / max(saved.raw_bytes, 1))
        if self.remove_large:
            _folder.remove_files(folder, large)
        steps = _steps(store)
        keep = set(steps) if limit is None else stays(steps, keep=max(limit, 1)) | {saved.step}
        named = re.search(r"checkpoint-(\d+)$", best or "")
        if named:
            keep.add(int(named.group(1)))
        _remove(store, set(steps) - keep)

    def on_train_end(self, args, state, control, **_):
        if self._together is not None and self._behind is not None:
            self._together.on_first(self._behind.close)


def _steps(store):
    return _checkpoint.ls(store) if os.path.isdir(os.path.join(store, "manifests")) else []


def _remove(store, steps):
    """Removes these checkpoints where nothing needs them."""
    try:
        with Store(store, write=True, threads=1) as opened:
            go = sorted(steps & set(opened.steps()))
            if go:
                opened.collect(None, go)
    except Error as problem:  # another process saves, most likely
        _log.info("%s: nothing was removed this time, the next save tries again: %s", store, problem)


def prepare(output_dir, store=None, step=None):
    """Writes the folder checkpoint-N again, N the largest step that is whole (or `step`), and returns its path for
    Trainer.train(resume_from_checkpoint=...); None when the store has no checkpoint. On several ranks: on one of them,
    before the others go on. A checkpoint that is damaged is passed over with a warning; Error when all are."""
    store = _store_of(output_dir, store)
    steps = _steps(store)
    if step is not None:
        if step not in steps:
            raise ValueError(f"{store} has no step {step}; it has {steps or 'none'}")
        _folder.write_back(store, step, _path_of(output_dir, step))
        return _path_of(output_dir, step)
    first = None
    for number in reversed(steps):
        try:
            _folder.write_back(store, number, _path_of(output_dir, number))
            return _path_of(output_dir, number)
        except Error as problem:
            first = first or problem
            _log.warning("%s: step %d is passed over: %s", store, number, problem)
    if first is not None:
        raise Error(first.status, f"{store}: no checkpoint is whole; 'quern checkpoint repair' mends what parity allows. Of the newest "
                    f"one: {first}")
    return None


__all__ = ["QuernCallback", "prepare"]
