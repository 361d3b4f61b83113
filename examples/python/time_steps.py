"""Steps of a simulation in one file, each predicted from the one before: written, gone on with, read in parts.

    pip install pyquern
    python time_steps.py"""
import os
import tempfile

import numpy as np
import pyquern as quern


def step(number):
    """A wave that moves by a third of a cell a step over a rough ground."""
    ground = np.random.default_rng(0).random((24, 32, 48), np.float32)
    x = np.arange(48, dtype=np.float32)
    return ground + np.sin((x - number / 3) / 5, dtype=np.float32)


def main(path):
    bound = {"abs": 1e-3, "codec": "stencil"}
    alone = sum(len(quern.compress(step(i), **bound)) for i in range(8))
    for i in range(8):
        quern.append(path, step(i), **bound, key_every=4)
    print(f"8 steps take {os.path.getsize(path)} bytes, {alone} by themselves")
    with quern.open_steps(path) as steps:
        for i, values in enumerate(steps):
            assert np.abs(values - step(i)).max() <= 1e-3
            name = steps.info(i).reference
            print(f"step {i}: {'a key step' if name is None else 'predicted from ' + name}")
        print(f"a box of step 6: {steps[6, 3, 5:7, 40].tolist()}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(os.path.join(folder, "run.qn"))
