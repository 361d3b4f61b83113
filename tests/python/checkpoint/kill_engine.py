"""Kills a training run that saves each step through an engine with a base (kill -9 at random moments), starts it again each
time, and compares every loss that it logs with the run that nobody killed, to the last bit.

    kill_engine.py --kills 50        minutes; the tests run --kills 4 --steps 40 --fork
"""
import sys

from support import import_or_skip

import_or_skip("numpy")
import_or_skip("torch", (2, 0))
import kill_manager  # noqa: E402


class Trial(kill_manager.Trial):
    module = "engine_run"
    most_lost = 66  # an engine has at most 64 saves under way, and one step is between two of them


if __name__ == "__main__":
    sys.exit(kill_manager.main(Trial, terms=0, every=1))
