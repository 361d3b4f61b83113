"""Contexts and parameters of each thread, and calls that progress and Ctrl-C can end.

A handle of the library serves one thread at a time. Each Python thread keeps a few of its own, which go with the thread; a
call takes its context out meanwhile, so that a progress function may call the library again. After a fork they are made
anew."""
from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from ctypes import byref
from typing import Any

from . import _capi
from ._capi import library

#: Called as progress(done, total), in elements, between parts of long work; False cancels it.
ProgressFunction = Callable[[int, int], object]
#: (threads, memory limit, runs on, device, with progress, models)
_ContextKey = tuple[int, int, int, int, bool, int]
#: (bound kind, value, ((key, value), ...), (dtype, (elements, ...)), metadata)
ParamsKey = tuple[int, float, tuple[tuple[str, str], ...], int, tuple[bytes, ...], bytes]

_MOST_CONTEXTS, _MOST_PARAMS = 8, 16
#: Ctrl-C is looked for in calls on at least as many bytes; shorter ones end before anybody can tell.
_LONG = 1 << 20
#: Model files that every context of this process is made with. It only grows, so that its length tells older contexts.
_models: tuple[bytes, ...] = ()
_models_lock = threading.Lock()


def add_model_file(file: bytes) -> str:
    """Gives the bytes of a model file to contexts that are made from now on; calls that run finish without. Its id."""
    with use_context(1, None) as context:
        found = ctypes.create_string_buffer(_capi.MODEL_ID_SIZE)
        context.run(library().context_add_model, file, len(file), found)
    global _models
    with _models_lock:
        if file not in _models:
            _models = (*_models, file)
    return found.value.decode()


class Context:
    """A quern_context with a place for what a callback raised."""

    def __init__(self, key: _ContextKey) -> None:
        self.key = key
        self.problem: BaseException | None = None
        self.function: ProgressFunction | None = None
        threads, limit, runs_on, device, with_progress, _ = key
        self._callback = _capi.Progress(self._progress) if with_progress else _capi.Progress()
        desc = _capi.ContextDesc(struct_size=ctypes.sizeof(_capi.ContextDesc), threads=threads, memory_limit=limit,
                                 runs_on=runs_on, device=device, progress=self._callback)
        self.handle = ctypes.c_void_p()
        lib = library()
        lib.check(lib.context_create(byref(desc), byref(self.handle)))
        for file in _models:
            lib.check(lib.context_add_model(self.handle, file, len(file), None), self.handle)

    def _progress(self, _user: Any, done: int, total: int) -> int:
        if self.problem is not None:
            return 0
        if self.function is None:
            return 1
        try:
            return 0 if self.function(done, total) is False else 1
        except BaseException as problem:  # noqa: B036: it is raised where the call returns
            self.problem = problem
            return 0

    def _take_interrupts(self) -> Callable[..., Any] | None:
        """Puts a handler of SIGINT in the place of the one there is, which it calls and keeps what that raises: nothing may
        be raised inside a callback. Returns the former; None where signals do not come here."""
        if not self.key[4] or not _in_main_thread():
            return None
        former = signal.getsignal(signal.SIGINT)
        if not callable(former):
            return None

        def handler(number: int, frame: Any) -> None:
            try:
                former(number, frame)
            except BaseException as problem:
                self.problem = problem

        try:
            signal.signal(signal.SIGINT, handler)
        except ValueError:
            return None  # another interpreter than the main one
        return former

    def run(self, function: Callable[..., int], *arguments: Any) -> None:
        """function(context, *arguments), checked. What `function` or a signal's handler raises ends it and is raised here."""
        self.problem = None
        former = self._take_interrupts()
        try:
            status = function(self.handle, *arguments)
        finally:
            if former is not None:
                signal.signal(signal.SIGINT, former)
        problem, self.problem = self.problem, None
        if problem is not None:
            raise problem
        library().check(status, self.handle)

    def destroy(self) -> None:
        library().context_destroy(self.handle)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


class _Handles:
    """Of one thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.contexts: dict[_ContextKey, Context] = {}
        self.params: dict[ParamsKey, ctypes.c_void_p] = {}

    def __del__(self) -> None:
        if self.pid != os.getpid():
            return  # the parent's
        for context in self.contexts.values():
            context.destroy()
        for params in self.params.values():
            library().params_destroy(params)


_local = threading.local()


def _handles() -> _Handles:
    found: _Handles | None = getattr(_local, "handles", None)
    if found is None or found.pid != os.getpid():
        found = _local.handles = _Handles()
    return found


class use_context:
    """with use_context(...) as context: one of this thread's, which nobody else gets meanwhile. `bytes`: how much there is to
    do; Ctrl-C can end what is long and runs in the main thread."""

    def __init__(self, threads: int, memory_limit: int | None, *, progress: ProgressFunction | None = None,
                 nbytes: int = 0, device: tuple[int, int] = (_capi.HOST, 0)) -> None:
        if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads <= 4096:
            raise TypeError(f"threads is {threads!r}: give a number, 1 for the calling thread alone, 0 for all")
        if memory_limit is not None and (not isinstance(memory_limit, int) or memory_limit <= 0):
            raise ValueError(f"memory_limit is {memory_limit!r}: give bytes, or None for no limit")
        interruptible = nbytes >= _LONG and _in_main_thread()
        self._progress = progress
        self._key = (threads, memory_limit or 0, *device, progress is not None or interruptible, len(_models))

    def __enter__(self) -> Context:
        self._own = _handles()
        context = self._own.contexts.pop(self._key, None)
        self._context = context if context is not None else Context(self._key)
        self._context.function = self._progress
        return self._context

    def __exit__(self, *_: object) -> None:
        self._context.function = None
        kept = self._own.contexts
        if self._key in kept or self._own.pid != os.getpid():
            self._context.destroy()
            return
        if len(kept) >= _MOST_CONTEXTS:
            kept.pop(next(iter(kept))).destroy()
        kept[self._key] = self._context


class use_params:
    """with use_params(key) as params: a quern_params of this thread's, which nobody else gets meanwhile."""

    def __init__(self, key: ParamsKey) -> None:
        self._key = key

    def __enter__(self) -> ctypes.c_void_p:
        self._own = _handles()
        params = self._own.params.pop(self._key, None)
        self._params = params if params is not None else _new_params(self._key)
        return self._params

    def __exit__(self, *_: object) -> None:
        kept = self._own.params
        if self._key in kept or self._own.pid != os.getpid():
            library().params_destroy(self._params)
            return
        if len(kept) >= _MOST_PARAMS:
            library().params_destroy(kept.pop(next(iter(kept))))
        kept[self._key] = self._params


def _new_params(key: ParamsKey) -> ctypes.c_void_p:
    lib = library()
    kind, value, settings, dtype, fills, metadata = key
    params = ctypes.c_void_p()
    lib.check(lib.params_create(byref(params)))
    try:
        lib.check(lib.params_set_bound(params, kind, value))
        for name, text in settings:
            lib.check(lib.params_set(params, name.encode(), text.encode()))
        for element in fills:
            lib.check(lib.params_add_fill(params, dtype, element))
        if metadata:
            lib.check(lib.params_set_metadata(params, metadata, len(metadata)))
    except BaseException:
        lib.params_destroy(params)
        raise
    return params
