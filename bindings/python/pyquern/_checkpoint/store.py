"""Open stores, and checkpoints that are being saved."""
import ctypes
import logging
import os
import weakref
from dataclasses import dataclass

from . import library as _library
from .handle import Handle
from .library import Error, library
from .options import policy_text, tag_arrays, text_of
from .reader import Checkpoint, given_step, step_number
from .._dtypes import NUMBERS

_log = logging.getLogger("quern")


def text(value, what):
    """Bytes for a text of C, which ends at its first NUL."""
    if "\0" in value:
        raise ValueError(f"{what} cannot have a NUL: {value!r}")
    return value.encode()


def given_base(base):
    if base is None:
        return _library.NO_BASE
    if isinstance(base, str):
        if base != "newest":
            raise ValueError(f"a base is a step, None, or 'newest', not {base!r}")
        return _library.BASE_NEWEST
    if given_step(base) == _library.BASE_NEWEST:
        raise ValueError(f"step {base} cannot be a base")
    return given_step(base)


@dataclass(frozen=True)
class Saved:
    """What became of a save, in bytes and tensors. `stored_bytes` leaves out parity and manifest; `lossy` tensors come back other
    than they were, within their bounds: the log says which."""
    step: int
    id: str
    published: bool
    raw_bytes: int
    stored_bytes: int
    manifest_bytes: int
    tensors: int
    stored_already: int
    differences: int
    lossy: int

    @property
    def ratio(self):
        return self.raw_bytes / max(self.stored_bytes, 1)


class Store(Handle):
    """An open store. `threads`: 0 one a hardware thread, 1 the calling one alone. Notes of the library (what was passed
    over, and why) go to the logger "quern"."""

    def __init__(self, path, write=False, threads=0):
        self._handle, self._closing = None, False
        self._users = weakref.WeakSet()  # writers and readers, which must be gone before the store is
        self._library = library()
        self._note = _library.Note(lambda _, text: _log.info("%s", text.decode("utf-8", "replace")))
        desc = _library.StoreDesc(mode=_library.WRITE if write else _library.READ, threads=threads, note=self._note)
        handle = ctypes.c_void_p()
        self._library.store_open(os.fsencode(path), desc, handle)
        self._handle = handle

    def close(self):
        """Closes what was opened of it too."""
        if self._handle is not None and not self._closing:
            self._closing = True
            for user in list(self._users):
                user.close()
            self._library.store_close(self._handle)
            self._handle = None

    def steps(self):
        """Steps of the checkpoints there are, ascending."""
        return self._list(self._library.steps)

    def history(self):
        """The same steps in the order in which they were published, the newest last: after a run was taken up from an older
        step the newest is not the largest."""
        return self._list(self._library.history)

    def _list(self, call):
        count = ctypes.c_uint64()
        call(self._handle, None, 0, count)
        while True:
            room = count.value
            steps = (ctypes.c_uint64 * max(room, 1))()
            call(self._handle, steps, room, count)
            if count.value <= room:
                return list(steps[: count.value])

    def newest_base(self, step=None):
        """The step that base="newest" means now for a save of `step`, None where there is none: for writers of a group, which must
        all have the same."""
        base = ctypes.c_uint64()
        self._library.newest_base(self._handle, base)
        return None if base.value in (_library.NO_BASE, step) else base.value

    def begin(self, step, base=None, preset="exact", parity=None, zstd_level=0, replace=False, group=None, writer=0,
              writers=1, progress=None, policy=None, roles=None, replay=None, tags=None):
        """A Writer. Arguments as those of pyquern.checkpoint.save(); writers of one `group` make one checkpoint together."""
        return Writer(self, step, base, preset, parity, zstd_level, replace, group, writer, writers, progress, policy, roles,
                      replay, tags)

    def open(self, step=None):
        return Checkpoint(self, step)

    def verify(self, step=None, full=True):
        """Raises Error when the checkpoint (None: the newest) is not what was saved."""
        self._library.verify(self._handle, step_number(step), int(full))

    def repair(self, step=None):
        """True when something was mended; raises Error when damage remains."""
        repaired = ctypes.c_int()
        self._library.repair(self._handle, step_number(step), repaired)
        return bool(repaired.value)

    def compact(self, step, parity=None, zstd_level=0):
        """Stores a checkpoint anew so that it needs no other."""
        data, files = parity or (0, 0)
        desc = _library.SaveDesc(parity_data=data, parity_files=files, zstd_level=zstd_level, writers=1)
        self._library.compact(self._handle, given_step(step), desc)

    def collect(self, keep=None, steps=()):
        """Removes all but the newest `keep`, and those steps, unless what stays needs them. How many, and bytes freed."""
        steps = [given_step(step) for step in steps]
        out = _library.Collected()
        self._library.collect(self._handle, _library.KEEP_ALL if keep is None else keep,
                              (ctypes.c_uint64 * max(len(steps), 1))(*steps), len(steps), out)
        return out.removed, out.freed_bytes

    def retain(self, keep=0, keep_every=0, best=0, metric=None, mode="min", dry_run=False):
        """Removes what none of the three keeps: the newest `keep` that are whole, steps that `keep_every` divides, and the
        `best` ones by the tag `metric`, a number (mode "min": the smallest are best; "max"). What a tensor of those needs
        of others stays on the disk. How many were removed, and bytes freed; with dry_run only counted."""
        if mode not in ("min", "max"):
            raise ValueError(f"mode is 'min' or 'max', not {mode!r}")
        desc = _library.Retention(keep=keep, keep_every=keep_every, best=best, best_is_largest=int(mode == "max"),
                                  metric=None if metric is None else metric.encode(), dry_run=int(dry_run))
        out = _library.Collected()
        self._library.retain(self._handle, desc, out)
        return out.removed, out.freed_bytes


def save_desc(step, base, preset, parity, zstd_level, replace, policy, roles, replay, tags, **members):
    """The arguments of a save as C has them."""
    data, files = parity or (0, 0)
    policy, replay = policy_text(policy, roles), text_of(replay, "replay")
    tag_names, tag_texts, tag_count = tag_arrays(tags)
    return _library.SaveDesc(
        policy=None if policy is None else text(policy, "a policy"),
        replay=None if replay is None else text(replay, "a rule of replay"),
        tag_names=tag_names, tag_texts=tag_texts, tag_count=tag_count, step=given_step(step), base=given_base(base),
        preset=preset.encode(), parity_data=data, parity_files=files, zstd_level=zstd_level, replace=int(replace),
        **{"writers": 1, **members})


def tensor_desc(name, source, role=None, piece=None):
    """A Source (pyquern._tensors) as C has it; piece: (extents of the whole, offset in it) where it is a part of a tensor."""
    role = role or source.role
    if len(source.shape) > _library.MAX_RANK:
        raise ValueError(f"tensor '{name}': rank {len(source.shape)} is above {_library.MAX_RANK}")
    tensor = _library.Tensor(
        dtype=NUMBERS[source.dtype], name=text(name, "a tensor's name"), role=role.encode() if role else None,
        data=source.address, memory=source.memory, device=source.device, rank=len(source.shape))
    tensor.extents[: len(source.shape)] = source.shape
    if piece is not None:
        whole, offset = piece
        tensor.is_piece = 1
        tensor.whole[: len(whole)] = tuple(whole)
        tensor.offset[: len(offset)] = tuple(offset)
    return tensor


def saved_of(result):
    return Saved(result.step, result.id.decode(), bool(result.published), result.raw_bytes, result.stored_bytes,
                 result.manifest_bytes, result.tensors, result.stored_already, result.differences, result.lossy)


class Writer(Handle):
    """A checkpoint that is being saved. Threads may add at once. Leaving a `with` block without publish() gives it up."""

    def __init__(self, store, step, base, preset, parity, zstd_level, replace, group, writer, writers, progress, policy,
                 roles, replay, tags):
        self._handle = None
        self._store = store  # must outlive the writer
        self._library = store._library
        self._kept = []
        self._problem = None
        self._progress = _library.Progress(self._on_progress)
        self._wanted = progress
        desc = save_desc(step, base, preset, parity, zstd_level, replace, policy, roles, replay, tags, writer=writer,
                         group=group.encode() if group is not None else None, writers=writers, progress=self._progress)
        handle = ctypes.c_void_p()
        self._library.begin(store._handle, desc, handle)
        self._handle = handle
        store._users.add(self)

    def _on_progress(self, _, done, total):
        # Also where Ctrl-C arrives during a long save: the save is given up and the exception goes on in publish().
        try:
            return 0 if self._wanted is not None and self._wanted(done, total) is False else 1
        except BaseException as problem:  # noqa: B902
            self._problem = problem
            return 0

    def add(self, name, source, role=None, piece=None):
        """Takes a Source (pyquern._tensors) in; piece as in tensor_desc()."""
        self._library.add(self._handle, tensor_desc(name, source, role, piece))
        self._kept.append(source)

    def add_blob(self, name, content):
        self._library.add_blob(self._handle, text(name, "a blob's name"), bytes(content), len(content))

    def publish(self):
        result = _library.Result()
        try:
            self._library.publish(self._handle, result)
        except Error:
            if self._problem is not None:
                raise self._problem from None
            raise
        finally:
            self._kept.clear()
        return saved_of(result)

    def close(self):
        if self._handle is not None:
            if self._store._handle is not None:
                self._library.writer_destroy(self._handle)
            self._handle = None
            self._kept.clear()
