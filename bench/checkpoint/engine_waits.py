"""How long a trainer waits for a checkpoint of a made-up AdamW state: torch.save and fsync, DCP async_save, by its own
writer and by AsyncQuernWriter, save(), the engine with a fence at once and with a fence after a computation. Ways take turns in one run; medians.

usage: engine_waits.py [--megabytes 201] [--rounds 5] [--folder DIR]; needs PyTorch for the first two."""
import argparse
import json
import os
import shutil
import statistics
import tempfile
import time

import numpy as np

import pyquern as quern

try:
    import torch
    import torch.distributed.checkpoint as dcp
    from pyquern.torch_dcp_async import AsyncQuernWriter
except ImportError:
    torch = None


def made_up(megabytes, tensors=96):
    """{name: array}: weights, first and second moments."""
    count = int(megabytes * 1e6 / 4 / tensors)
    source = np.random.default_rng(1)
    state = {}
    for i in range(tensors // 3):
        first = source.standard_normal(count, np.float32) * 1e-3
        state[f"model.layer{i}.weight"] = source.standard_normal(count, np.float32) * np.float32(0.02)
        state[f"optimizer.state.layer{i}.weight.exp_avg"] = first
        state[f"optimizer.state.layer{i}.weight.exp_avg_sq"] = first * first + np.float32(1e-12)
    return state


def memory(what):
    """Bytes of this process that are in memory (VmRSS), or the most there were (VmHWM) since forget_peak()."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(what))


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


class Clock:
    def __enter__(self):
        self.begin = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.begin


def compute(seconds):
    """Arithmetic of one core until the time is over."""
    a = np.full((128, 128), 1 / 128, np.float32)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        a = a @ a


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=201)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(dir=options.folder)
    state = made_up(options.megabytes)
    total = sum(values.nbytes for values in state.values())
    times = {}

    def note(what, seconds):
        times.setdefault(what, []).append(seconds)

    copies = {name: np.ones_like(values) for name, values in state.items()}
    # The library, its tables and its threads' stacks are not the engine's memory.
    with quern.checkpoint.Engine(os.path.join(folder, "first"), ring=2 << 20) as engine:
        engine.save({"w": np.arange(1000)}, step=1).result()
    before = memory("VmRSS")
    forget_peak()
    with Clock() as cold:
        engine = quern.checkpoint.Engine(os.path.join(folder, "engine"), ring=total + total // 8)
    note("engine: opening, all of the ring's memory", cold.seconds)
    writers = {}
    try:
        engine.save(state, step=1_000_000).result()
        note("memory at most beside the state, of the ring", (memory("VmHWM") - before) / engine.stats().ring_bytes)
        if torch is not None:
            writers = {lazy: AsyncQuernWriter(os.path.join(folder, f"dcp-{lazy}"), lazy=lazy, engine={"ring": total + total // 8})
                       for lazy in (False, True)}
        for step in range(1, options.rounds + 1):
            with Clock() as clock:
                for name, values in state.items():
                    np.copyto(copies[name], values)
            note("memcpy", clock.seconds)
            copying = clock.seconds
            if torch is not None:
                tensors = {name: torch.from_numpy(values) for name, values in state.items()}
                path = os.path.join(folder, "torch.pt")
                with Clock() as clock, open(path, "wb") as file:
                    torch.save(tensors, file)
                    file.flush()
                    os.fsync(file.fileno())
                note("torch.save and fsync", clock.seconds)
                os.unlink(path)
                path = os.path.join(folder, f"dcp{step}")
                with Clock() as clock:
                    future = dcp.async_save(tensors, checkpoint_id=path)
                note("DCP async_save", clock.seconds)
                with Clock() as clock:
                    future.result()
                note("DCP async_save, rest until it is there", clock.seconds)
                shutil.rmtree(path)
                for lazy, writer in writers.items():
                    name = f"DCP async_save, AsyncQuernWriter{', lazy' if lazy else ''}"
                    with Clock() as clock:
                        future = dcp.async_save(tensors, checkpoint_id=str(step), storage_writer=writer)
                    blocked = clock.seconds
                    if lazy:
                        compute(4 * copying + 0.05)
                        with Clock() as clock:
                            writer.synchronize_staging()
                        blocked += clock.seconds
                    note(name, blocked)
                    with Clock() as clock:
                        future.result()
                    note(f"{name}, rest until it is there", clock.seconds)
            with Clock() as clock:
                quern.checkpoint.save(os.path.join(folder, "saved"), state, step=step, threads=1)
            note("save()", clock.seconds)
            for way, first in (("fence at once", step), ("fence after a computation", options.rounds + step)):
                for values in state.values():
                    values *= np.float32(1.0001)
                with Clock() as submitting:
                    save = engine.save(state, step=first)
                if way != "fence at once":
                    compute(4 * copying + 0.05)
                with Clock() as fencing:
                    engine.fence()
                note(f"engine, {way}: save()", submitting.seconds)
                note(f"engine, {way}: fence", fencing.seconds)
                note(f"engine, {way}: blocked", submitting.seconds + fencing.seconds)
                with Clock() as rest:
                    save.result()
                note(f"engine, {way}: rest until durable", rest.seconds)
        stats = engine.stats()
        for closed in (engine, *writers.values()):
            closed.close()
        # Submitting alone: 1000 small tensors, by the library's own clock.
        small = {f"t{i}": np.full(250, i, np.float32) for i in range(1000)}
        with quern.checkpoint.Engine(os.path.join(folder, "small"), ring=8 << 20) as engine:
            inside = 0.0
            for step in range(1, 22):
                engine.save(small, step=step).result()
                now = engine.stats().submit_inside
                note("engine: submit of 1000 tensors, in the library", now - inside)
                inside = now
        medians = {name: statistics.median(values) for name, values in times.items()}
        print(json.dumps({"state_bytes": total, "medians": medians, "blocked_to_memcpy":
                          medians["engine, fence at once: blocked"] / medians["memcpy"],
                          "ring_peak": stats.ring_peak, "coding_peak": stats.coding_peak,
                          "coded_first": stats.first_by_rate + stats.first_for_room}, indent=1))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
