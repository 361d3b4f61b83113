"""What the ranks of torch.distributed decide together. Without a process group, a process decides alone."""
import datetime
import os
import sys

from .library import Error


def _distributed():
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed if distributed.get_world_size() > 1 else None


def _as_text(problem):
    return (problem.status if isinstance(problem, Error) else None), f"{problem}"


def _as_error(status, text):
    return RuntimeError(text) if status is None else Error(status, text)


class Together:
    """Collective calls: every rank makes them, in the same order. They go over a gloo group of their own, so that no
    device waits for them; a rank that does not come, or a save that takes longer than an hour, is an error of the others.

    required: RuntimeError where a launcher has started several processes and torch.distributed is not up."""

    def __init__(self, required=True):
        self._distributed = _distributed()
        self._group = None
        if self._distributed is not None:
            self._group = self._distributed.new_group(backend="gloo", timeout=datetime.timedelta(hours=1))
        elif required and int(os.environ.get("WORLD_SIZE") or 1) > 1 and "RANK" in os.environ:
            raise RuntimeError(
                f"this is rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']} processes, but torch.distributed is not up: make "
                "the Manager after torch.distributed.init_process_group()")

    @property
    def first(self):
        """True on the rank that reads and writes the store: rank 0."""
        return self._distributed is None or self._distributed.get_rank() == 0

    @property
    def alone(self):
        return self._distributed is None

    def largest(self, *numbers):
        """The largest that any rank has, of each of the numbers."""
        if self.alone:
            return numbers
        import torch

        values = torch.tensor(numbers, dtype=torch.int64)
        self._distributed.all_reduce(values, op=self._distributed.ReduceOp.MAX, group=self._group)
        return tuple(values.tolist())

    def on_first(self, call):
        """What call() gives on rank 0, on all ranks; its exception on all ranks as well."""
        if self.alone:
            return call()
        box, own = [None, None], None
        if self.first:
            try:
                box = [call(), None]
            except Exception as problem:  # noqa: BLE001: raised again below, when all ranks know of it
                box, own = [None, _as_text(problem)], problem
        self._distributed.broadcast_object_list(box, src=0, group=self._group)
        if box[1] is not None:
            raise own if own is not None else _as_error(*box[1])
        return box[0]

    def on_all(self, call):
        """What call() gives on this rank, once it has succeeded on all of them; else an exception on all of them."""
        if self.alone:
            return call()
        value = problem = None
        try:
            value = call()
        except Exception as found:  # noqa: BLE001: raised again below, when all ranks know of it
            problem = found
        problems = [None] * self._distributed.get_world_size()
        self._distributed.all_gather_object(problems, None if problem is None else _as_text(problem), group=self._group)
        if problem is not None:
            raise problem
        for rank, other in enumerate(problems):
            if other is not None:
                raise _as_error(other[0], f"rank {rank}: {other[1]}")
        return value
