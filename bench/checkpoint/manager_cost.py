"""What a Manager adds to a training loop: making one, a step that saves nothing, the same agreed on by two ranks, and what a
save takes beside quern.checkpoint.save(). Medians. Needs PyTorch with gloo.

    PYTHONPATH=bindings/python QUERN_LIBRARY=.../libquern-checkpoint.so python bench/manager_cost.py
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import pyquern as quern


def median_us(call, times):
    out = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        out.append(1e6 * (time.perf_counter() - begun))
    return statistics.median(out)


def not_due(manager, times):
    steps = iter(range(1, times + 1))
    return median_us(lambda: manager.step(next(steps), None, metrics={"loss": 1.0}), times)


def rank(number, folder):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=number, world_size=2)
    torch.set_num_threads(1)
    manager = quern.checkpoint.Manager(f"{folder}/ranks", every=10**9)
    taken = not_due(manager, 3000)
    if number == 0:
        print(f"step() that saves nothing, two ranks: {taken:.0f} us")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def alone(folder):
    def make():
        quern.checkpoint.Manager(f"{folder}/made", every=10**9).close()

    make()
    print(f"making and closing a Manager, with its check: {median_us(make, 20) / 1000:.1f} ms")
    manager = quern.checkpoint.Manager(f"{folder}/alone", every=10**9)
    print(f"step() that saves nothing: {not_due(manager, 20000):.2f} us")
    manager.close()
    state = {f"w{i}": torch.randn(256, 256) for i in range(64)}
    steps = iter(range(1, 10**6))

    def change():
        for value in state.values():
            value.add_(torch.randn_like(value), alpha=1e-3)

    plain, managed = [], []
    manager = quern.checkpoint.Manager(f"{folder}/managed", every=10**9, keep=3)
    for _ in range(15):
        change()
        step = next(steps)
        plain.append(median_us(lambda: quern.checkpoint.save(f"{folder}/plain", state, step=step, base="newest"), 1) / 1000)
        managed.append(median_us(lambda: manager.save(step, state, metrics={"loss": 1.0}), 1) / 1000)
    print(f"17 MB, base newest: quern.checkpoint.save() {statistics.median(plain):.0f} ms, Manager.save() with removal "
          f"{statistics.median(managed):.0f} ms; checkpoints kept: {quern.checkpoint.ls(f'{folder}/managed')}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        rank(int(sys.argv[1]), sys.argv[2])
        sys.exit()
    with tempfile.TemporaryDirectory() as folder:
        alone(folder)
        ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__), str(i), folder]) for i in range(2)]
        sys.exit(max(process.wait() for process in ranks))
