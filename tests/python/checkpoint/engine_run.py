"""A small GPT that saves through an engine, to be killed: engine_run.py STORE LOG STEPS [EVERY]. Each step adds a line to LOG, its
number and loss to the last bit, before its update. Checkpoints are exact, and differences to one of the newest before them."""
import os
import random
import sys

import numpy as np
import torch

import pyquern as quern
from manager_run import Model, load_all_of_pytorch  # noqa: F401: the second is for who forks this


def main(store, log, steps, every=1):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    np.random.seed(2)
    random.seed(3)
    model = Model(words=64, width=96)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step / 100))
    generators = quern.checkpoint.RandomState()
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule, "random": generators}
    first = 1
    if os.path.isdir(os.path.join(store, "manifests")) and quern.checkpoint.ls(store):
        found = quern.checkpoint.restore_newest(store)
        for name, part in parts.items():
            part.load_state_dict(found.state[name])
        first = found.step + 1
    with quern.checkpoint.Engine(store, ring=16 << 20, base="newest") as engine, open(log, "a") as lines:
        engine.attach(optimizer)
        for step in range(first, steps + 1):
            start = np.random.randint(0, 64, (8, 1))
            tokens = torch.from_numpy((start + np.arange(17) * np.random.randint(1, 4)) % 64)
            loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
            optimizer.zero_grad()
            (loss * (1 + 0.001 * random.random())).backward()
            lines.write(f"{step} {loss.item().hex()}\n")
            lines.flush()
            optimizer.step()
            schedule.step()
            if step % every == 0:
                engine.save({name: part.state_dict() for name, part in parts.items()}, step=step)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *map(int, sys.argv[4:])))
