"""Kills a training run at random moments (kill -9 and SIGTERM), starts it again each time, and compares every loss that it
logs with the run that nobody killed, to the last bit.

    kill_manager.py --kills 50 --terms 20        minutes; the tests run --kills 2 --terms 1 --steps 60 --fork

--fork: runs are forks of this process, which has PyTorch loaded, and not programs of their own: quicker to start.
"""
import argparse
import collections
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from support import import_or_skip

import_or_skip("numpy")
import_or_skip("torch", (2, 0))
import pyquern as quern  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def lines_of(log):
    if not os.path.exists(log):
        return []
    with open(log) as file:
        text = file.read()
    return [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]  # a killed run may leave half a line


def cut_half_line(log):
    lines = lines_of(log)
    with open(log, "w") as file:
        file.writelines(f"{step} {loss}\n" for step, loss in lines)


class Forked:
    """What is used of subprocess.Popen, for a fork that runs main() of a module."""

    def __init__(self, module, arguments):
        sys.stdout.flush()
        self._status = None
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                status = importlib.import_module(module).main(*arguments)
            finally:
                os._exit(status)

    def poll(self):
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def wait(self):
        while self.poll() is None:
            time.sleep(0.002)
        return self._status

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self._pid, number)


class Trial:
    module = "manager_run"  # whose main() is the run

    def __init__(self, folder, steps, every, seed, fork):
        self.fork = fork
        self.folder, self.steps, self.every = folder, steps, every
        self.random = random.Random(seed)
        self.store, self.log = os.path.join(folder, "store"), os.path.join(folder, "log")
        self.counts = collections.Counter()
        if fork:
            import manager_run

            manager_run.load_all_of_pytorch()
        self.want = self.uninterrupted()

    def start(self, store, log):
        if self.fork:
            return Forked(self.module, (store, log, self.steps, self.every))
        return subprocess.Popen([sys.executable, os.path.join(HERE, self.module + ".py"), store, log, str(self.steps), str(self.every)])

    def uninterrupted(self):
        process = self.start(os.path.join(self.folder, "whole"), os.path.join(self.folder, "whole.log"))
        assert process.wait() == 0, "the uninterrupted run failed"
        want = dict(lines_of(os.path.join(self.folder, "whole.log")))
        assert len(want) == self.steps
        shutil.rmtree(os.path.join(self.folder, "whole"))
        return want

    def check(self, lines, from_line, how):
        """All lines since the run was started again: one step after the other, each with the loss of the whole run."""
        new = lines[from_line:]
        for step, loss in new:
            self.counts["losses"] += 1
            if self.want[step] != loss:
                self.counts["losses that differ"] += 1
                print(f"step {step}: {loss}, not {self.want[step]}, after {how}")
        numbers = [int(step) for step, _ in new]
        if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            self.counts["gaps"] += 1
        if numbers and from_line:
            last = int(lines[from_line - 1][0])
            self.counts["steps done twice"] += max(0, last + 1 - numbers[0])
            self.counts["most steps lost"] = max(last + 1 - numbers[0], self.counts["most steps lost"])
            if not self.check_begin(numbers[0], last, how):
                self.counts["restarts at the wrong step"] += 1
                print(f"began at step {numbers[0]} after {how} at step {last}")

    def check_begin(self, first, last, how):
        """Whether a run may begin at step `first` when the one before logged `last`. A kill may come after a save that step
        `every` made and before its line of the next step: never more are lost."""
        lost = last + 1 - first
        return 0 <= lost <= self.every and (how != "SIGTERM" or lost == 0)

    def may_kill(self, signals_left):
        """Asked when a run has logged enough."""
        return True

    def once(self, signals, how_before):
        """Runs until it is killed or done. How it ended."""
        from_line = len(lines_of(self.log))
        process = self.start(self.store, self.log)
        number = signals.pop() if signals else None
        wanted = from_line + self.random.randint(1, 4 * self.every)
        pause = self.random.uniform(0, 0.03)
        while number is not None and process.poll() is None:
            if len(lines_of(self.log)) >= wanted and self.may_kill(signals):
                time.sleep(pause)
                process.send_signal(number)
                break
            time.sleep(0.002)
        status = process.wait()
        cut_half_line(self.log)
        self.check(lines_of(self.log), from_line, how_before)
        if status == -signal.SIGKILL:
            self.counts["kill -9"] += 1
            return "kill -9"
        if status == 3:
            self.counts["SIGTERM"] += 1
            return "SIGTERM"
        if number is not None:
            signals.append(number)  # it was done first
        assert status == 0, f"the run ended with status {status}"
        return "end"

    def run(self, kills, terms):
        signals = [signal.SIGKILL] * kills + [signal.SIGTERM] * terms
        self.random.shuffle(signals)
        how = "start"
        while True:
            if how == "end":
                self.end_of_run()
                if not signals:
                    return
                how = "start"
            how = self.once(signals, how)

    def end_of_run(self):
        self.counts["runs to the end"] += 1
        assert lines_of(self.log)[-1] == [str(self.steps), self.want[str(self.steps)]]
        for step in quern.checkpoint.ls(self.store):
            quern.checkpoint.verify(self.store, step)
            self.counts["checkpoints verified"] += 1
        left = os.listdir(os.path.join(self.store, "tmp"))
        self.counts["left in tmp"] += len(left)
        shutil.rmtree(self.store)
        os.remove(self.log)


def main(trial_class=Trial, terms=20, every=5, must_be=()):
    """must_be: counts that fail the trial where they are 0."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--terms", type=int, default=terms)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=every)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--fork", action="store_true")
    given = parser.parse_args()
    print(f"seed {given.seed}")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        trial = trial_class(folder, given.steps, given.every, given.seed, given.fork)
        trial.run(given.kills, given.terms)
    for name in ("kill -9", "SIGTERM", "runs to the end", "losses", "losses that differ", "steps done twice", "most steps lost",
                 "gaps", "restarts at the wrong step", "checkpoints verified", "left in tmp", *must_be):
        print(f"{name}: {trial.counts[name]}")
    print(f"{time.monotonic() - begun:.0f} s")
    bad = ("losses that differ", "gaps", "restarts at the wrong step", "left in tmp")
    missing = trial.counts["kill -9"] < given.kills or not all(trial.counts[name] for name in must_be)
    return 1 if any(trial.counts[name] for name in bad) or missing else 0


if __name__ == "__main__":
    sys.exit(main())
