"""torch.distributed.checkpoint.async_save() through an engine: saves are captured, coded and written while training goes on.

    with AsyncQuernWriter("runs/a", lazy=True) as writer:
        writer.attach(optimizer)                       # a fence before each optimizer.step()
        for step in range(1, 1001):
            train(model, optimizer, step)
            saved = dcp.async_save({"model": model}, storage_writer=writer, checkpoint_id=str(step))
        saved.result()

Checkpoints are those of QuernWriter, which QuernReader and all other tools read.
"""
import copy
import threading
import time

import torch
from torch.distributed.checkpoint.staging import AsyncStager

from ._checkpoint.engine import _SMALL, Engine
from .torch_dcp import BLOB, QuernWriter, _add_items, _describe, _done

_SLICE = 0.05  # seconds between checks whether a thread has ended


class _Run:
    """One async_save(): `thread` saves in the background; `handed` once the engine has the tensors, or never will."""

    def __init__(self):
        self.thread, self.handed = None, False

    @property
    def is_over(self):
        """PyTorch lets the thread of a save end with it."""
        return self.thread is not None and not self.thread.is_alive()


def _local(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _apart(value):
    """A state whose small tensors and other values no longer change with the trainer's; large tensors stay where they are."""
    if isinstance(value, dict):
        return {key: _apart(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_apart, value))
    if isinstance(value, torch.Tensor):
        local = _local(value)
        return value.detach().clone() if local.numel() * local.element_size() <= _SMALL else value
    return value if hasattr(value, "local_shards") else copy.deepcopy(value)


class AsyncQuernWriter(QuernWriter, AsyncStager):
    """For dcp.async_save(storage_writer=...): no copy of the state is made beside the engine's ring. One writer serves all saves
    of a run; options as those of QuernWriter, and `engine`: {option: value} of pyquern.checkpoint.Engine (ring, threads, tiers,
    ...). async_save() returns once the state may be written to again: after planning and a copy into the ring.

    lazy=True: async_save() returns at once, and the state is copied while forward and backward passes only read it. Then
    fence() must have returned before anything of the state is written to: attach() every optimizer, or call it. Tensors
    of up to 64 KiB, as running statistics, and values other than tensors are copied before.

    The future of async_save() has its result once the checkpoint is in the store; tiers of the engine get it after that. A save
    that begins before the one before has ended waits for it, in its thread. timeout: seconds that each wait for other ranks, for
    capturing and for writing may take. Saving in a process (AsyncCheckpointerType.PROCESS) is not possible: it copies."""

    def __init__(self, path, step=None, lazy=False, timeout=1800.0, engine=None, **options):
        super().__init__(path, step, **options)
        self.engine = Engine(path, **{"threads": max(self.threads, 1), **(engine or {})})
        self._lazy, self._timeout = bool(lazy), float(timeout)
        self._changed = threading.Condition()
        self._runs = []  # that may go on, in their order

    # ---- the trainer's thread ----------------------------------------------------------------------------------

    @property
    def should_synchronize_after_execute(self):
        return not self._lazy

    def stage(self, state_dict):
        """Called by async_save()."""
        self._wait(lambda: all(run.thread is not None for run in self._runs), "the thread of the save before to begin")
        with self._changed:
            self._runs = [run for run in self._runs if not run.is_over] + [_Run()]
        return _apart(state_dict) if self._lazy else state_dict

    def synchronize_staging(self):
        """Called by async_save() unless it is lazy."""
        if not self.fence(self._timeout):
            raise TimeoutError(f"{self.path}: the state is not captured after {self._timeout} s; it must not be written to while this "
                               "save is under way")

    def fence(self, timeout=None):
        """True once everything that was given to async_save() may be written to, False after `timeout` seconds."""
        end = time.monotonic() + (self._timeout if timeout is None else timeout)
        with self._changed:
            runs = list(self._runs)
        if not self._wait(lambda: all(run.handed or run.is_over for run in runs), None, end):
            return False
        return self.engine.fence(timeout=max(end - time.monotonic(), 0.0))

    def attach(self, optimizer):
        """Has the fence called before each step of a torch.optim.Optimizer. `attach(...).remove()` ends it."""
        return optimizer.register_step_pre_hook(lambda *_: self.synchronize_staging())

    def close(self, how=None, timeout=None):
        """Waits for the threads of saves, then closes the engine as Engine.close() does."""
        self._wait(lambda: all(run.is_over for run in self._runs), "saves under way to end")
        self.engine.close(how, timeout)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close("drain")
        else:  # other ranks may never come: no thread of a save is waited for
            self.engine.__exit__(kind, None, None)

    def __getstate__(self):
        raise TypeError("AsyncQuernWriter saves in a thread: leave async_checkpointer_type as it is")

    def _wait(self, is_so, what, end=None):
        """Whether it is so at the time `end`; without one, TimeoutError with `what` was waited for."""
        last = time.monotonic() + self._timeout if end is None else end
        with self._changed:
            while not is_so():
                left = last - time.monotonic()
                if left <= 0:
                    if what is None:
                        return False
                    raise TimeoutError(f"{self.path}: waited {self._timeout} s for {what}")
                self._changed.wait(min(left, _SLICE))
        return True

    # ---- the thread of a save ----------------------------------------------------------------------------------

    def reset(self, checkpoint_id=None):
        with self._changed:
            begun = next((run for run in self._runs if run.thread is None), None)
            before = self._runs[: self._runs.index(begun)] if begun is not None else []
            if begun is not None:
                begun.thread = threading.current_thread()
            self._changed.notify_all()
        self._wait(lambda: all(run.is_over for run in before), "the save before to end")
        super().reset(checkpoint_id)

    def write_data(self, plan, planner):
        tensors, blobs = [], {}
        try:
            share = dict(plan.storage_data)
            results = _add_items(plan, planner, lambda name, source, piece=None: tensors.append((name, source, piece)),
                                 blobs.__setitem__)
            save = self._submit(share, tensors, blobs)
        finally:
            with self._changed:
                for run in self._runs:
                    run.handed = run.handed or run.thread is threading.current_thread()
                self._changed.notify_all()
        self._written(save)
        return _done(results)

    def finish(self, metadata, results):
        save = self._submit(dict(self._share), [], {BLOB: _describe(metadata)})
        self._check_published(self._written(save))

    def _submit(self, share, tensors, blobs):
        step, base = share.pop("step"), share.pop("base")
        return self.engine.save_share(tensors, step, blobs, share, base=base, **self._options)

    def _written(self, save):
        """Saved, once it is in the store, or waits there for the other shares."""
        end = time.monotonic() + self._timeout
        while not save.wait("local", _SLICE) and not save.done():
            if time.monotonic() >= end:
                save.cancel()
                raise TimeoutError(f"{self.path}: step {save.step} is not written after {self._timeout} s")
        save.wait("local", 0)  # it may have failed between the two looks: this raises then
        return save.saved()


__all__ = ["AsyncQuernWriter"]
