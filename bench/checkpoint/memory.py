#!/usr/bin/env python3
"""Time and memory of saving and loading one large tensor, and time of small ones, through libquern-checkpoint.so.

usage: QUERN_LIBRARY=.../libquern-checkpoint.so PYTHONPATH=bindings/python memory.py FOLDER [GIB] [THREADS]

Each line is a process of its own: seconds, processor seconds of user and system, and what VmHWM grew by after the
tensor was made. The folder is emptied.
"""
import os
import resource
import shutil
import subprocess
import sys
import time

import numpy as np


def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def reset_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def made(gib, seed):
    """Weights like those of a layer: 16 normal bits of noise, made piece by piece."""
    out = np.empty((int(gib * 2 ** 28) // 1024, 1024), np.float32)
    generator = np.random.default_rng(seed)
    block = generator.standard_normal((4096, 1024), np.float32) * np.float32(0.02)
    for begin in range(0, len(out), 4096):
        piece = out[begin : begin + 4096]
        piece[:] = block[: len(piece)]
        piece += np.float32(1e-4 * (begin / 4096 + seed))
    return out


def measured(name, call):
    reset_peak()
    before, resident = resource.getrusage(resource.RUSAGE_SELF), status("VmRSS")
    begin = time.perf_counter()
    call()
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{name:<34} {wall:8.2f} s  user {after.ru_utime - before.ru_utime:7.2f}  system "
          f"{after.ru_stime - before.ru_stime:6.2f}  peak beside {max(status('VmHWM') - resident, 0) / 1e6:8.0f} MB",
          flush=True)


def moments(count, mib):
    generator = np.random.default_rng(3)
    tensors = {"model": {}, "state": {}}
    for i in range(count):
        rows = int(mib * 2 ** 20 / 4 / 768)
        scale = np.exp(generator.standard_normal((rows, 1), np.float32))
        g = generator.standard_normal((rows, 768), np.float32) * scale * np.float32(1e-3)
        tensors["model"][f"w{i}"] = generator.standard_normal((rows, 768), np.float32) * np.float32(0.02)
        tensors["state"][i] = {"exp_avg": g, "exp_avg_sq": g * g + np.float32(1e-12)}
    return tensors


def rows(store, step, threads):
    import pyquern.checkpoint as qc

    with qc.open(store, step, threads) as saved:
        assert np.asarray(saved["w"][0:10]).shape == (10, 1024)


def main(folder, gib, threads, work=None):
    import pyquern.checkpoint as qc

    store = os.path.join(folder, "store")
    os.makedirs(store, exist_ok=True)
    if work == "save":
        state = {"w": made(gib, 1)}
        measured(f"save exact {gib:g} GiB", lambda: qc.save(store, state, step=1, threads=threads))
    elif work == "save-base":
        state = {"w": made(gib, 2)}
        measured(f"save exact {gib:g} GiB, base", lambda: qc.save(store, state, step=2, base=1, threads=threads))
    elif work in ("load", "load-base"):
        step = 1 if work == "load" else 2
        size = int(gib * 2 ** 30)
        measured(f"{work} {gib:g} GiB (with the tensor)", lambda: qc.load(store, step=step, threads=threads))
        print(f"{'':<34} the tensor itself is {size / 1e6:.0f} MB")
    elif work == "slice":
        measured("ten rows", lambda: rows(store, 1, threads))
    elif work == "slice-base":
        measured("ten rows, base", lambda: rows(store, 2, threads))
    elif work and work.startswith("preset"):
        _, preset, mib = work.split(":")
        state = moments(int(192 / float(mib) / 3) or 1, float(mib))
        for _ in range(3):
            shutil.rmtree(store, ignore_errors=True)
            measured(f"save {preset}, {mib}-MiB tensors, -T{threads}",
                     lambda: qc.save(store, state, step=1, preset=preset, threads=threads))
        for _ in range(2):
            measured(f"load {preset}, {mib}-MiB tensors, -T{threads}",
                     lambda: qc.load(store, step=1, threads=threads))
    else:
        shutil.rmtree(store, ignore_errors=True)
        for next_work in ("save", "load", "slice", "save-base", "load-base", "slice-base"):
            subprocess.run([sys.executable, __file__, folder, str(gib), str(threads), next_work], check=True)
        shutil.rmtree(store, ignore_errors=True)
        for count in (1, 2):
            for next_work in ("preset:exact:3", "preset:balanced:3", "preset:moments:32"):
                subprocess.run([sys.executable, __file__, folder, str(gib), str(count), next_work], check=True)
        shutil.rmtree(store, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 3.0, int(sys.argv[3]) if len(sys.argv) > 3 else 2,
         sys.argv[4] if len(sys.argv) > 4 else None)
