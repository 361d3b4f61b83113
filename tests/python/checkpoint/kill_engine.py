"""Kills a training run that saves each step through an engine with a base (kill -9 at random moments), starts it again each
time, and compares every loss that it logs with the run that nobody killed, to the last bit. Each run begins behind the newest
checkpoint that the kill before it left.

    kill_engine.py --kills 50        minutes; the tests run --kills 3 --steps 20 --fork
"""
import os
import sys

from support import import_or_skip

import_or_skip("numpy")
import_or_skip("torch", (2, 0))
import kill_manager  # noqa: E402
import pyquern as quern  # noqa: E402


class Trial(kill_manager.Trial):
    module = "engine_run"

    def newest(self):
        """0 where no save was published before the kill."""
        is_store = os.path.isdir(os.path.join(self.store, "manifests"))
        return max(quern.checkpoint.ls(self.store), default=0) if is_store else 0

    def once(self, signals, how_before):
        how = super().once(signals, how_before)
        if how == "kill -9":
            self.left = self.newest()
            self.counts["kills that left a checkpoint"] += self.left > 0
        return how

    def may_kill(self, signals_left):
        """The last kill waits for a checkpoint where those before it found none."""
        return bool(signals_left) or self.counts["kills that left a checkpoint"] > 0 or self.newest() > 0

    def check_begin(self, first, last, how):
        return first == self.left + 1 and first <= last + 1


def main():
    return kill_manager.main(Trial, terms=0, every=1, must_be=("kills that left a checkpoint",))


if __name__ == "__main__":
    sys.exit(main())
