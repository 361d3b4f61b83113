#!/usr/bin/env python3
"""What calls from Python cost and hold up: time over the library's own, two threads beside each other, a counter meanwhile, Ctrl-C,
chunks of HDF5 side by side. Run it on an idle machine: it measures, and fails nothing.

    PYTHONPATH=bindings/python python3 bench/python_calls.py"""
import ctypes
import os
import signal
import statistics
import tempfile
import threading
import time
from ctypes import byref

import numpy as np
import pyquern as quern
from pyquern import _capi
from pyquern._array import given
from pyquern._calls import use_context, use_params
from pyquern.core import params_key


def best(work, rounds):
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def field(nbytes):
    return np.cumsum(np.random.default_rng(1).normal(size=(nbytes // 4 // 1024, 1024)), axis=1).astype("f4")


def overhead():
    """compress() with a buffer of the caller's, against the same call of the C interface with everything ready."""
    for nbytes, rounds in ((64 << 10, 200), (64 << 20, 3)):
        values, lib = field(nbytes), _capi.library()
        out = np.empty(quern.compress_bound(values), np.uint8)
        array, size = given(values), ctypes.c_uint64()
        report = _capi.Report(struct_size=ctypes.sizeof(_capi.Report))
        key = params_key(quern.Bound("abs", 0.01), array, codec="lorenzo", goal="ratio", fill=None, metadata=b"", settings=None)
        with use_context(1, None) as context, use_params(key) as params:
            arguments = (context.handle, params, byref(array.c), out.ctypes.data, out.nbytes, byref(size), byref(report))
            inside = best(lambda: lib.compress(*arguments), rounds)
        whole = best(lambda: quern.compress(values, abs=0.01, codec="lorenzo", out=out), rounds)
        print(f"overhead, {nbytes >> 10} KiB: {1e6 * (whole - inside):.1f} us, {(whole - inside) / inside:.1%} of {1e3 * inside:.2f} ms")


def beside():
    """Two threads compress 64 MiB each against one after the other; how fast a loop of Python counts meanwhile."""
    values = field(64 << 20)

    def work():
        quern.compress(values, abs=0.01, codec="lorenzo")

    def pace_beside(function):
        """Rounds a second of a loop of Python while another thread is in `function`."""
        thread, count = threading.Thread(target=function), 0
        begun = time.perf_counter()
        thread.start()
        while thread.is_alive():
            count += 1
        return count / (time.perf_counter() - begun)

    serial = best(lambda: (work(), work()), 1)
    threads = [threading.Thread(target=work) for _ in range(2)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"two threads: {(time.perf_counter() - begun) / serial:.2f} of the time of one after the other")
    idle = pace_beside(lambda: time.sleep(0.5))
    busy = pace_beside(lambda: quern.compress(values[:4096], abs=0.01, codec="stencil"))
    print(f"a counter beside a call: {busy / idle:.0%} of its pace beside a thread that sleeps")


def interrupted():
    """From SIGINT, 0.3 s into a long call, to KeyboardInterrupt."""
    values = np.cumsum(np.random.default_rng(2).normal(size=(128, 512, 512)), axis=2).astype("f4")
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, send)
    timer.start()
    try:
        quern.compress(values, abs=1e-5, codec="stencil")
        timer.cancel()
        print("interrupt: the call ended before it")
    except KeyboardInterrupt:
        print(f"interrupt: {time.perf_counter() - sent[0]:.3f} s from SIGINT to KeyboardInterrupt")


def chunks():
    """hdf5.write() on all threads against the filter."""
    try:
        import h5py
        import pyquern.hdf5 as qh
    except ImportError:
        print("chunks: no h5py here")
        return
    values = field(16 << 20)
    with tempfile.TemporaryDirectory() as folder, h5py.File(os.path.join(folder, "x.h5"), "w") as file:
        made = {name: file.create_dataset(name, shape=values.shape, dtype="f4", chunks=(512, 1024), compression=qh.filter(abs=0.01))
                for name in ("filter", "direct")}
        # The default codec: with a faster one HDF5's own work, on one thread, is most of the time. Flushed, since HDF5 keeps
        # chunks in its cache and calls the filter later.
        alone = best(lambda: (made["filter"].__setitem__(..., values), file.flush()), 1)
        beside = best(lambda: (qh.write(made["direct"], values, threads=0), file.flush()), 1)
        print(f"chunks: filter {alone:.2f} s, write(threads=0) {alone / beside:.2f} times as fast")


if __name__ == "__main__":
    overhead()
    beside()
    interrupted()
    chunks()
