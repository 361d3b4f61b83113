"""Thousands of small checkpoints through one engine, with random failures between them: constant memory, and what is
published is whole.

usage: engine_soak.py SAVES [SEED]"""
import os
import random
import sys
import tempfile

import numpy as np

import pyquern as quern


def resident():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def main():
    saves, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    chance = random.Random(seed)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    counts = {"durable": 0, "failed": 0, "cancelled": 0, "refused": 0}
    early = None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        path = os.path.join(folder, "store")
        state = {f"t{i}": np.zeros(chance.choice((1, 100, 3000, 40000)), np.float32) for i in range(20)}
        published = {}
        engine = quern.checkpoint.Engine(path, ring=2 << 20, base="newest")
        for step in range(1, saves + 1):
            engine.fence()
            for values in state.values():
                values += 1
            what = chance.random()
            given = chance.choice(sorted(published)) if what < 0.1 and published else step
            try:
                save = engine.save(state, step=given)
            except quern.checkpoint.Error:  # a save of that step is under way
                counts["refused"] += 1
                continue
            if 0.1 <= what < 0.2:
                save.cancel()
            if what < 0.25:
                problem = save.exception()
                if problem is None:
                    published[given] = step
                else:
                    counts["cancelled" if save.cancelled() else "failed"] += 1
            else:
                published[given] = step
            if step % 50 == 0:
                engine.wait()
                with quern.checkpoint.Store(path, write=True) as store:
                    store.collect(keep=5)
                    there = set(store.steps())
                published = {step: value for step, value in published.items() if step in there}
            if step == max(saves // 10, 1):
                early = resident()
        counts["durable"] = engine.stats().durable
        engine.close()
        for step in quern.checkpoint.ls(path):
            found = quern.checkpoint.load(path, step=step)
            assert all((values == published[step]).all() for values in found.values()), step
        left = os.listdir(os.path.join(path, "tmp"))
        late = resident()
        print(f"{saves} saves, seed {seed}: {counts}; memory {early / 1e6:.1f} MB after a tenth, {late / 1e6:.1f} MB at the end; "
              f"left in tmp: {left}")
        return 1 if left or late > 1.1 * early + (8 << 20) else 0


if __name__ == "__main__":
    sys.exit(main())
