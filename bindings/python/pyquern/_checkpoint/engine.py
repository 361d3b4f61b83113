"""Checkpoints without waiting: states are handed to an engine, which captures and writes them while training goes on."""
import contextlib
import copy
import ctypes
import itertools
import logging
import os
import threading
import time
import weakref
from dataclasses import dataclass

from .._dtypes import count_of, element_bytes
from .._tensors import HOST
from . import library as _library
from .library import Error, library
from .reader import given_step
from .state import BLOB, Flattened
from .store import save_desc, saved_of, tensor_desc, text

_log = logging.getLogger("quern")

LEVELS = {"submitted": 0, "captured": 1, "host": 2, "local": 3, "durable": 4}
_WHEN_FULL = {"block": 0, "skip": 1, "compress-first": 2}
_AT_END = {"drain": 0, "drop": 1}
_CANCELLED = 63
_SLICE = 0.1  # seconds in the library before Ctrl-C is looked for
_SMALL = 1 << 16  # bytes up to which tensors are copied by save()
_MUST_STAY = "must stay as they are"  # of a close() whose threads still read
_still_read = []  # what those read: never let go


def _number_of(name, names, what):
    if name not in names:
        raise ValueError(f"{what} is one of {', '.join(map(repr, names))}, not {name!r}")
    return names[name]


@dataclass(frozen=True)
class EngineStats:
    """What an engine did so far. Saves: `submitted`, `durable`, `failed`, `skipped`, `cancelled`, `under_way`. Tensors:
    `copied_tensors` into the ring; coded where they lie because that frees them sooner (`first_by_rate`), because the ring
    was full (`first_for_room`), because they are larger than the ring (`first_for_size`). Rates are bytes a second. `fence_seconds`
    is what callers waited in `fences` calls, `longest_fence` the longest of them; bytes: `ring_peak`, `coding_peak`."""
    submitted: int
    durable: int
    failed: int
    skipped: int
    cancelled: int
    under_way: int
    copied_tensors: int
    copied_bytes: int
    first_by_rate: int
    first_for_room: int
    first_for_size: int
    first_bytes: int
    copy_rate: float
    code_rate: float
    fence_seconds: float
    longest_fence: float
    submit_inside: float
    fences: int
    ring_bytes: int
    ring_peak: int
    coding_peak: int
    written_bytes: int


@dataclass(frozen=True)
class Tier:
    """A folder behind an engine's store, as on a shared file system, which gets copies of its checkpoints. every: steps that are
    multiples of it, with what they need of others. write_rate: most bytes a second (0: no limit); share: of its measured bandwidth that
    may be used. most_waiting: saves that may wait for it; when more do, the oldest is passed over."""
    path: str
    every: int = 1
    write_rate: float = 0.0
    share: float = 1.0
    most_waiting: int = 16


@dataclass(frozen=True)
class TierStats:
    """What became of a tier: `checkpoints` and `bytes` copied; saves `waiting`, `failed`, `passed_over`; `rate`, a moving average of
    bytes a second, and `depth`, blocks of 1 MiB written at once, learnt from a probe and from use; `problem` of the last attempt, empty
    where it went well."""
    path: str
    checkpoints: int
    bytes: int
    waiting: int
    failed: int
    passed_over: int
    rate: float
    depth: int
    problem: str


def _tier_desc(tier):
    tier = tier if isinstance(tier, Tier) else Tier(tier)
    return _library.Tier(path=os.fsencode(tier.path), every=tier.every, write_rate=tier.write_rate, share=tier.share,
                         most_waiting=tier.most_waiting)


class Save:
    """A save under way, as a future: done(), result(), exception(), cancel() as those of concurrent.futures."""

    def __init__(self, engine, step):
        self._engine, self.step = engine, step

    def __repr__(self):
        return f"<Save of step {self.step}>"

    def _progress(self):
        out = _library.EngineProgress()
        with self._engine._open.call() as handle:
            self._engine._library.engine_poll(handle, self.step, out)
        return out

    @property
    def level(self):
        """"submitted", "captured", "host", "local" (in the engine's store) or "durable" (on the last tier that wants it)."""
        return list(LEVELS)[self._progress().level]

    def wait(self, level="durable", timeout=None):
        """True once the save has the level, False after `timeout` seconds. Error where the save failed; one that a tier could not
        take is "local" all the same."""
        number = _number_of(level, LEVELS, "level")
        return self._engine._wait("engine_wait", timeout, self.step, number)

    def done(self):
        """Whether it is durable, or failed."""
        return bool(self._progress().finished)

    def result(self, timeout=None):
        """Saved, once it is durable. TimeoutError after `timeout` seconds; Error where it failed, was skipped or cancelled."""
        if not self.wait("durable", timeout):
            raise TimeoutError(f"step {self.step} is not durable after {timeout} s")
        self._engine._open.forget_captured()
        return self.saved()

    def saved(self):
        """Saved of what is written so far, without waiting."""
        return saved_of(self._progress().result)

    def exception(self, timeout=None):
        """The Error of a save that failed, or None."""
        try:
            self.result(timeout)
        except Error as problem:
            return problem
        return None

    def cancel(self):
        """Drops the save, unless it is over: then False. Fence all the same before its tensors are written to."""
        try:
            with self._engine._open.call() as handle:
                self._engine._library.engine_cancel(handle, self.step)
        except Error:
            return False
        return True

    def cancelled(self):
        return self._progress().error == _CANCELLED


def _small_copy(source):
    """A copy of a small tensor in host memory; of others the Source itself."""
    size = element_bytes(source.dtype) * count_of(source.shape)
    if not 0 < size <= _SMALL or source.memory != HOST:
        return source
    room = ctypes.create_string_buffer(size)
    ctypes.memmove(room, source.address, size)
    copied = copy.copy(source)
    copied.address, copied.keep = ctypes.addressof(room), room
    return copied


class _Kept:
    """What a submitted save borrows."""

    def __init__(self, step, sources):
        self.step, self.sources, self.submitted = step, sources, False


class _Open:
    """The library's engine, the calls on it that threads are in, and what it reads. `note` lives until the library's
    threads have ended."""

    def __init__(self, handle, note):
        self._handle, self.note = handle, note
        self._process = os.getpid()
        self._idle = threading.Condition()
        self._calls = 0
        self._numbers = itertools.count()
        self.kept = {}  # {number of a save: _Kept}

    @contextlib.contextmanager
    def call(self):
        """The handle, which is not closed before this is left."""
        with self._idle:
            if self._handle is None:
                raise ValueError("the engine was closed")
            handle = self._handle
            self._calls += 1
        try:
            yield handle
        finally:
            with self._idle:
                self._calls -= 1
                self._idle.notify_all()

    def keep(self, step, sources):
        with self._idle:
            number = next(self._numbers)
            self.kept[number] = _Kept(step, sources)
        return number

    def forget(self, number):
        with self._idle:
            self.kept.pop(number, None)

    def forget_captured(self):
        with self._idle:
            submitted = [(number, kept.step) for number, kept in self.kept.items() if kept.submitted]
        # A step is under way once only: what is said of it is about this save, or a later one.
        for number, step in submitted:
            progress = _library.EngineProgress()
            try:
                with self.call() as handle:
                    library().engine_poll(handle, step, progress)
            except Error:
                continue
            if progress.finished or progress.level >= LEVELS["captured"]:
                self.forget(number)

    @property
    def is_closed(self):
        return self._handle is None

    def close(self, how, timeout):
        """Waits for the calls of other threads; new ones are refused."""
        if os.getpid() != self._process:  # the threads that call are the parent's
            handle, self._handle = self._handle, None
        else:
            with self._idle:
                handle, self._handle = self._handle, None
                try:
                    self._idle.wait_for(lambda: self._calls == 0)
                except BaseException:  # Ctrl-C: it is open still
                    self._handle = handle
                    raise
        if handle is None:
            return
        try:
            library().engine_close(handle, how, timeout)
        except Error as problem:
            if _MUST_STAY in str(problem):
                _still_read.append((dict(self.kept), self.note))
            raise
        finally:
            self.kept.clear()


def _close(open_engine, how, timeout):
    """For the end of the process, or of an engine that nobody holds any more."""
    try:
        open_engine.close(how, timeout)
    except Error as problem:
        _log.error("%s", problem)


class Engine:
    """Saves states while training goes on.

        with pyquern.checkpoint.Engine("runs/a") as engine:
            engine.attach(optimizer)                       # a fence before each optimizer.step()
            for step in range(1, 1001):
                loss = model(batch(step)).sum()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                engine.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, step=step)

    save() returns at once; tensors are read while forward and backward go on, and must not be written to before fence() has returned.
    Tensors of host memory above 64 KiB are borrowed. save() itself copies smaller ones, such as the running statistics that a forward
    pass writes to, and those that are on a device or not contiguous.

    ring: bytes that copies of tensors may take, all of them taken when the engine is opened; a state that fits frees the trainer
    soonest. coding: most bytes beside the ring (0: no limit). threads: that code; 0: one a hardware thread. when_full:
    "block" (the fence waits), "skip" (a save for which earlier ones leave no room is dropped), "compress-first" (what finds no
    room is coded where it lies). at_exit: "drain" or "drop" what is under way when the with block is left by an exception,
    when close() is not told, and at the end of the process. exit_timeout: seconds that draining may take. check_changes: for
    debugging, a hash of each tensor at save() and at its capture, so that one written to too early is named. write_rate: most bytes
    a second that are written, so that others can use the disk (0: no limit).

    tiers: folders behind the store, nearest first, each a path or a Tier, which get copies of its checkpoints. keep_local: newest
    checkpoints that stay in the store; others are removed once each tier that wants their step, and at least one tier, has them
    whole (0: all stay). What no tier has stays until it is collected.

        Engine("/local/runs/a", tiers=[Tier("/shared/runs/a", every=10)], keep_local=3)

    base, preset and the others of save() may be given here for all saves. Notes go to the logger "quern"."""

    def __init__(self, path, ring=1 << 28, coding=0, threads=1, when_full="block", at_exit="drain", exit_timeout=600.0,
                 check_changes=False, write_rate=0.0, tiers=(), keep_local=0, **defaults):
        self._library = library()
        self._defaults = defaults
        self._counting = threading.Lock()
        self._fences, self._longest_fence = 0, 0.0  # the library counts slices of them
        self._at_exit = _number_of(at_exit, _AT_END, "at_exit")
        self._exit_timeout = float(exit_timeout)
        note = _library.Note(lambda _, note: _log.info("%s", note.decode("utf-8", "replace")))
        save_desc(step=0, **self._arguments({}))  # wrong ones are refused here
        if isinstance(tiers, (str, bytes, os.PathLike, Tier)):
            raise TypeError("tiers is a list of paths and Tiers")
        descs = [_tier_desc(tier) for tier in tiers]
        self._tiers = [os.fsdecode(desc.path) for desc in descs]
        pointers = (ctypes.POINTER(_library.Tier) * len(descs))(*map(ctypes.pointer, descs))
        desc = _library.EngineDesc(
            tiers=pointers, tier_count=len(descs), keep_local=keep_local,
            threads=threads, ring_bytes=ring, coding_bytes=coding, at_exit=self._at_exit, exit_seconds=self._exit_timeout,
            when_full=_number_of(when_full, _WHEN_FULL, "when_full"), check_changes=int(check_changes), note=note,
            write_rate=write_rate)
        handle = ctypes.c_void_p()
        self._library.engine_open(os.fsencode(path), desc, handle)
        self._open = _Open(handle, note)
        self._finalizer = weakref.finalize(self, _close, self._open, self._at_exit, self._exit_timeout)
        self._process = os.getpid()

    def _arguments(self, given):
        known = {"base": None, "preset": "exact", "parity": None, "zstd_level": 0, "replace": False, "policy": None,
                 "roles": None, "replay": None, "tags": None}
        for name in (*self._defaults, *given):
            if name not in known:
                raise TypeError(f"a save has no argument '{name}'; it has {', '.join(known)}")
        return {**known, **self._defaults, **given}

    def _wait(self, function, timeout, *arguments):
        """Calls a function of the library that waits, for up to `timeout` seconds (None: without end): whether it said yes."""
        end = None if timeout is None else time.monotonic() + timeout
        flag = ctypes.c_uint32()
        while True:
            left = _SLICE if end is None else min(_SLICE, max(end - time.monotonic(), 0.0))
            with self._open.call() as handle:
                getattr(self._library, function)(handle, *arguments, left, flag)
            if flag.value:
                return True
            if end is not None and time.monotonic() >= end:
                return False

    def save(self, state_dict, step, objects=None, blobs=None, **arguments):
        """Hands a state over and returns a Save. Arguments as those of pyquern.checkpoint.save(); what cannot be saved is a
        TypeError or ValueError here, what goes wrong later is found by the Save."""
        flat = Flattened(state_dict, objects)
        return self.save_tensors(flat.tensors, step, {BLOB: flat.text.encode(), **(blobs or {})}, **arguments)

    def save_tensors(self, tensors, step, blobs=None, **arguments):
        """The same of {name: Source}, without a state dict around them."""
        return self.save_share([(name, source, None) for name, source in tensors.items()], step, blobs, {}, **arguments)

    def save_share(self, tensors, step, blobs, group, **arguments):
        """The same of [(name, Source, piece)], one writer's share of a checkpoint: piece as tensor_desc() takes it; group: `group`,
        `writer` and `writers` of save_desc(), empty for the only writer. A share that does not complete its checkpoint stays at
        "host": done() tells when it is written."""
        if "group" in group:
            group = {**group, "group": text(group["group"], "a group's name")}
        with self._open.call() as handle:
            desc = save_desc(given_step(step), **self._arguments(arguments), **group)
            self._open.forget_captured()
            tensors = [(name, _small_copy(source), piece) for name, source, piece in tensors]
            pending = ctypes.c_void_p()
            self._library.engine_begin(handle, desc, pending)
            try:
                for name, source, piece in tensors:
                    self._library.engine_add(pending, tensor_desc(name, source, piece=piece))
                for name, content in (blobs or {}).items():
                    self._library.engine_add_blob(pending, text(name, "a blob's name"), bytes(content), len(content))
            except BaseException:
                self._library.engine_forget(pending)
                raise
            number = self._open.keep(step, [source for _, source, _ in tensors])
            try:
                self._library.engine_submit(pending)
            except Error:
                self._open.forget(number)
                raise
            finally:  # of Ctrl-C, too, which may come after it was submitted
                if number in self._open.kept:
                    self._open.kept[number].submitted = True
        return Save(self, step)

    def fence(self, tensor=None, timeout=None):
        """Returns True once no tensor that was given to save() is read any more, or no tensor of that name; False after
        `timeout` seconds. Call it before the optimizer's step, or attach() it."""
        name = None if tensor is None else text(tensor, "a tensor's name")
        begin = time.monotonic()
        try:
            free = self._wait("engine_fence", timeout, name)
        finally:
            with self._counting:
                self._fences += 1
                self._longest_fence = max(self._longest_fence, time.monotonic() - begin)
        if self._open.kept:
            self._open.forget_captured()
        return free

    def attach(self, optimizer):
        """Has the fence called before each step of a torch.optim.Optimizer. `attach(...).remove()` ends it."""
        return optimizer.register_step_pre_hook(lambda *_: self.fence() and None)

    def wait(self, timeout=None):
        """True once no save is under way or on its way to a tier, False after `timeout` seconds."""
        return self._wait("engine_wait_all", timeout)

    def stats(self):
        out = _library.EngineStats()
        with self._open.call() as handle:
            self._library.engine_measure(handle, out)
        measured = {name: getattr(out, name) for name in EngineStats.__dataclass_fields__}
        with self._counting:
            return EngineStats(**{**measured, "fences": self._fences, "longest_fence": self._longest_fence})

    def tier_stats(self):
        """A TierStats for each tier, in their order."""
        out = []
        for number, path in enumerate(self._tiers):
            stats = _library.TierStats()
            with self._open.call() as handle:
                self._library.engine_measure_tier(handle, number, stats)
            known = {name: getattr(stats, name) for name in TierStats.__dataclass_fields__ if name not in ("path", "problem")}
            out.append(TierStats(path=path, problem=stats.problem.decode("utf-8", "replace"), **known))
        return out

    def close(self, how=None, timeout=None):
        """"drain" waits (`timeout` seconds, None: without end) for what is under way, "drop" drops it; without `how` as at_exit
        says. Error where a save was dropped, or had failed and nobody asked. May be called again, and while other threads wait:
        they get a ValueError."""
        if self._open.is_closed:
            return
        number = self._at_exit if how is None else _number_of(how, _AT_END, "how")
        if number == 0 and os.getpid() == self._process:
            with contextlib.suppress(ValueError):  # another thread has closed it
                self.wait(timeout)  # so that Ctrl-C ends it
        self._open.close(number, 0.0 if timeout is not None else float("inf"))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close("drain")
            return
        try:
            self.close(timeout=self._exit_timeout)
        except Error as problem:  # what the trainer raised says more
            _log.error("%s", problem)


def newest_of(paths):
    """(path, step) of the newest checkpoint that any of the stores has whole, all of it compared with its hashes."""
    paths = [os.fspath(path) for path in paths]
    names = (ctypes.c_char_p * len(paths))(*map(os.fsencode, paths))
    place, step = ctypes.c_uint64(), ctypes.c_uint64()
    library().newest_of(names, len(paths), place, step)
    return paths[place.value], step.value
