"""What a Manager knows of the checkpoints in its store: the order they were saved in, their metrics, and which of them stay."""
import logging
import os
import shutil

from .library import Error
from .manifests import steps_of
from .retention import stays
from .store import Store

_log = logging.getLogger("quern")

#: What a Manager writes among the tags of its checkpoints, so that it knows them after a restart.
TAG, TAG_TEXT = "quern.manager", "yes"


class RunRecords:
    """rules: the arguments of stays() but for what is known here; metric: the name of the one they go by."""

    def __init__(self, path, metric, rules):
        self._path, self._metric, self._rules = path, metric, rules
        self._metrics = {}  # step -> metrics, of all checkpoints in the store, the one saved last at the end
        self._managed = {}  # step -> id, of those that a Manager of this store saved: no others are ever removed
        self._abandoned = set()  # steps of a branch that the run has left
        self._damaged = set()
        self._writable = set()  # steps that this run may write over: it saved them, or goes on from the store that has them
        self._read()

    def __contains__(self, step):
        return step in self._metrics

    def steps(self):
        """In the order they were saved: after a run went back, the last one is not the largest."""
        return list(self._metrics)

    def metrics(self, step):
        return dict(self._metrics[step])

    def has_after(self, step):
        """Whether the run left a later checkpoint behind."""
        return any(other > step for other in self._managed)

    def check_may_save(self, step):
        """A run that forgot to restore must not write over one that got further."""
        others = [other for other in self._metrics if other >= step and other not in self._writable]
        if others:
            raise ValueError(
                f"{self._path} has step {max(others)}, and this run, which did not restore it, would save step {step}: call "
                f"restore() before the first step (restore(step=...) to go back to an earlier one), or use another folder")

    def add(self, step, identity, metrics):
        """That checkpoint is in the store now."""
        self._metrics.pop(step, None)
        self._metrics[step] = dict(metrics)
        self._managed[step] = identity
        self._writable.add(step)
        self._abandoned.discard(step)
        self._damaged.discard(step)

    def go_on_from(self, step, damaged, chosen):
        """The run restored this step. damaged: what it found so on the way; chosen: it was asked for this one, so all that
        Managers saved after it goes."""
        self._writable.update(self._metrics)
        self._damaged = set(damaged)
        if chosen:
            steps = self.steps()
            self._abandoned.update(steps[steps.index(step) + 1:])

    def collect(self):
        """Removes those of Managers that need not stay, unless what stays needs them, and what unfinished saves have left."""
        steps = [step for step in self._metrics if step in self._managed and step not in self._abandoned]
        values = {step: self._metrics[step][self._metric] for step in steps if self._metric in self._metrics[step]}
        stay = stays(steps, values=values, damaged=self._damaged, **self._rules)
        try:
            with Store(self._path, write=True, threads=1) as store:
                go = [step for step in steps_of(self._path, self._managed.items()) if step not in stay]
                if go:
                    store.collect(None, go)
                there = set(store.steps())
        except Error as problem:  # another process saves, most likely
            _log.info("%s: nothing was removed this time, the next save tries again: %s", self._path, problem)
            return
        for step in [step for step in self._metrics if step not in there]:
            del self._metrics[step]
            self._abandoned.discard(step)
            self._managed.pop(step, None)

    def _read(self):
        if not os.path.isdir(os.path.join(self._path, "manifests")):
            return
        stored = 0
        with Store(self._path, threads=1) as store:
            for step in store.history():
                self._metrics[step] = {}
                try:
                    with store.open(step) as saved:
                        stored = saved.info.stored_bytes
                        self._metrics[step] = _numbers_of(saved.info.tags)
                        if TAG in saved.info.tags:
                            self._managed[step] = saved.info.id
                except Error as problem:
                    _log.info("%s: step %d: %s", self._path, step, problem)
        free = shutil.disk_usage(self._path).free
        if free < stored:
            _log.warning("%s: %.1f GB are free, the last checkpoint took %.1f GB; make room, or the next one may not be saved",
                         self._path, free / 1e9, stored / 1e9)


def _numbers_of(tags):
    """The metrics among the tags of a checkpoint."""
    out = {}
    for name, text in tags.items():
        try:
            out[name] = float(text)
        except ValueError:
            continue
    return out
