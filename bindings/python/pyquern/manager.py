"""A run's checkpoints: when one is saved, which stay, and how a restart goes on. See docs/checkpoints.md.

    parts = {"model": model, "optimizer": optimizer, "random": pyquern.checkpoint.RandomState()}
    with pyquern.checkpoint.Manager("runs/a", every=500, keep=3) as manager:
        found = manager.restore(into=parts)              # None on the first start
        for step in range(found.step + 1 if found else 1, 10001):
            loss = train(model, optimizer, step)
            manager.step(step, parts, metrics={"loss": loss})
            if manager.should_stop:                      # SIGTERM came, and this step is saved
                break
"""
import logging
import math
import operator
import os
import signal
import time
import warnings
from dataclasses import dataclass, field

from ._checkpoint import store_lock as _store_lock
from ._checkpoint.library import Error
from ._checkpoint.manager_arguments import check_arguments, numbers_of
from ._checkpoint.restore import DAMAGE, repair_hint
from ._checkpoint.run_records import TAG, TAG_TEXT, RunRecords
from ._checkpoint.run_state import collected, put_back
from ._checkpoint.stop_signals import StopSignals
from ._checkpoint.store import Store
from ._checkpoint.together import Together

_log = logging.getLogger("quern")


@dataclass(frozen=True)
class Resumed:
    """What restore() found. passed_over: {step: why} of later checkpoints that are damaged."""
    step: int
    state: object = field(repr=False)
    metrics: dict
    passed_over: dict


class Manager:
    """Saves when due, keeps what is to be kept, restores, and saves once more when the job is told to end.

    path: the store. One Manager at a time works on it; it holds a lock until close() or the end of the process.
    every: save at steps that this divides (and where step() jumps over such a step). minutes: save when so many have gone
    by since the last save. One of the two must be given; with both, whichever is due first.
    keep: the last so many checkpoints stay (None: all). keep_every: steps that this divides stay. keep_best: so many with
    the best metrics[metric] (mode "min" or "max") stay. All others that Managers saved are removed after each save, unless
    what stays needs them. What anybody else saved there stays.
    base, preset, and `options` (threads, parity, policy, tags, ...): as in pyquern.checkpoint.save(). Metrics are tags too.
    save_on_sigterm: after SIGTERM or SIGUSR1 the next step() saves, and sets should_stop. signals: other ones than these.
    on_signal: "flag", or "exit": then step() raises SystemExit(128 + signal) after that save.
    on_error: "raise" what made a save fail, or "warn" and go on without that checkpoint. A run that has not called
    restore() and would write over another is an error either way.
    check: save, load and remove a few bytes now, so that a store that does not work is found out in the first minute.

    With torch.distributed, make it after init_process_group() on all ranks and call its methods on all ranks: rank 0
    saves, all ranks save (or do not), stop and fail together. The state must be the same on all ranks (DDP), and all
    ranks must see the store. Sharded states (FSDP, DTensor) are saved with pyquern.torch_dcp.QuernWriter.

    Errors: ValueError and TypeError for arguments that make no sense, OSError or pyquern.Error for a store that cannot be
    used, RuntimeError where another Manager works on the store."""

    def __init__(self, path, every=None, minutes=None, keep=3, keep_every=None, keep_best=0, metric=None, mode="min",
                 base="newest", preset="exact", save_on_sigterm=True, signals=(signal.SIGTERM, signal.SIGUSR1),
                 on_signal="flag", on_error="raise", check=True, **options):
        self._signals = self._lock = self._records = None
        self._closed = False
        check_arguments(every, minutes, keep, keep_every, keep_best, metric, mode, on_signal, on_error, options)
        self.path = os.path.abspath(os.fspath(path))  # a script may change its folder
        self._every, self._minutes, self._metric, self._keep = every, minutes, metric, keep
        self._options = {"base": base, "preset": preset, **options}
        self._exits, self._warns = on_signal == "exit", on_error == "warn"
        self.should_stop = False  # a signal came, and the step that was given last is saved (or could not be)
        self.last_error = None  # of on_error="warn": what made the last save fail
        self._given = None  # the last step that step() was given
        self._saved = None  # the last step that this run saved
        self._warned = False
        self._together = Together()
        rules = {"keep": keep, "keep_every": keep_every, "keep_best": keep_best, "mode": mode}
        self._together.on_first(lambda: self._open(check, rules))
        self._saved_at = time.monotonic()
        self._signals = StopSignals(signals if save_on_sigterm else ())

    # ---- the loop ----------------------------------------------------------------------------------------------

    def step(self, step, state, metrics=None):
        """To be called after each step. Saves `state` when due; returns Saved (on rank 0), or None.

        step: how many steps are done, a whole number from 0. state: what save() takes; values in it, and in its dicts, lists
        and tuples, that have state_dict() are asked for it; or a function that returns such a state and is called only when it is saved.
        metrics: {name: number}, or a function that returns them; kept with the checkpoint."""
        step = self._check_step(step)
        self._check_metric_names(metrics)
        signalled = self._signals.seen or 0
        due, signalled = self._together.largest(int(self._is_due(step)), signalled)
        self._given = step
        if not due and not signalled:
            return None
        saved = None
        if step != self._saved:
            saved = self._try_save(step, state, metrics)
        if signalled or (self._together.alone and self._signals.seen):
            self._stop(signalled or self._signals.seen)
        return saved

    def save(self, step, state, metrics=None):
        """Saves now, also when the step has been saved before: then it is replaced. Returns Saved (on rank 0)."""
        step = self._check_step(step)
        self._check_metric_names(metrics)
        return self._try_save(step, state, metrics)

    def restore(self, into=None, step=None, framework=None, classes=()):
        """The checkpoint that was saved last and is whole in every value, as Resumed; None when the store has none, so
        that a first start and a restart are the same code. With `step`, that one; what was saved after it belongs to an
        abandoned branch then, and goes with the next save.

        into: {name: target} (or such dicts in each other) like the saved state: targets with load_state_dict() get it
        called, functions are called with the value, tensors and arrays are filled in place, anything else is replaced in the
        dict. So are lists and tuples, but where there are targets with load_state_dict() in them: then each item is such a
        target. Nothing is changed when a name of `into` is missing in the checkpoint (KeyError).
        framework, classes: as in pyquern.checkpoint.load(). Error: checkpoints are there, but none of them is whole."""
        how = {"framework": framework, "classes": classes, "objects": self._options.get("objects")}
        kept = []  # rank 0 has read the values already

        def find():
            number, passed_over, state = self._find(step, how)
            kept.append(state)
            return number, passed_over, {} if number is None else self._records.metrics(number)

        number, passed_over, metrics = self._together.on_first(find)
        self._saved = None  # the run may come to that step again, with another state
        if number is None:
            return None
        state = self._together.on_all(lambda: kept[0] if kept else self._load(number, how))
        self._together.on_all(lambda: put_back(state, into) if into is not None else None)
        if self._together.first:
            self._records.go_on_from(number, passed_over, step is not None)
        self._given = number
        self._saved_at = time.monotonic()
        return Resumed(number, state, metrics, passed_over)

    def check(self, state):
        """Saves `state` beside the checkpoints, compares what comes back by its hashes, and removes it again. Returns Saved.
        Raises what a save would raise, and OSError when keep + 1 such checkpoints do not fit on the disk."""
        copies = (self._keep or 1) + 1
        state = self._together.on_all(lambda: collected(state))
        return self._together.on_first(lambda: _store_lock.try_out_state(self.path, state, copies, self._options))

    def steps(self):
        """Steps of the checkpoints there are, in the order they were saved."""
        return self._together.on_first(lambda: self._records.steps())

    def close(self):
        """Lets go of the store and puts signal handlers back, in another thread than the main one when the next signal comes.
        Saves nothing."""
        self._closed = True
        try:
            if self._lock is not None:
                self._lock.close()
        finally:
            if self._signals is not None:
                self._signals.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- deciding ----------------------------------------------------------------------------------------------

    def _is_due(self, step):
        if self._minutes is not None and time.monotonic() - self._saved_at >= 60 * self._minutes:
            return True
        before = step - 1 if self._given is None else self._given
        return self._every is not None and step > 0 and step // self._every > before // self._every

    def _stop(self, number):
        self.should_stop = True
        _log.warning("%s: %s came; step %d was the last one", self.path, signal.Signals(number).name, self._given)
        if self._exits:
            self.close()
            raise SystemExit(128 + number)

    def _check_step(self, step):
        if self._closed:
            raise ValueError(f"{self.path}: this Manager is closed; make a new one")
        step = operator.index(step)
        if step < 0:
            raise ValueError(f"step {step}: steps are whole numbers from 0")
        return step

    def _check_metric_names(self, metrics):
        if metrics is None or callable(metrics) or self._metric is None or self._metric in metrics:
            return
        raise ValueError(f"keep_best goes by the metric '{self._metric}', which is missing: metrics has {sorted(metrics) or 'nothing'}; "
                         f"give metrics={{'{self._metric}': value}}")

    # ---- saving ------------------------------------------------------------------------------------------------

    def _try_save(self, step, state, metrics):
        self._together.on_first(lambda: self._records.check_may_save(step))  # a wrong script: on_error is not for that
        try:
            return self._save(step, state, metrics)
        except Exception as problem:
            if not self._warns:
                raise
            self.last_error = problem
            self._saved_at = time.monotonic()  # so that minutes= does not try again at once
            text = (f"{self.path}: STEP {step} WAS NOT SAVED, and training goes on without it "
                    f"({type(problem).__name__}: {problem})")
            _log.error("%s", text)
            warnings.warn(text, RuntimeWarning, stacklevel=3)
            return None

    def _save(self, step, state, metrics):
        self._given = step
        state, metrics = self._together.on_all(lambda: (collected(state), self._numbers(metrics, step)))
        saved = self._together.on_first(lambda: self._write(step, state, metrics))
        self._saved = step
        self._saved_at = time.monotonic()
        self.last_error = None
        return saved if self._together.first else None

    def _write(self, step, state, metrics):
        from . import checkpoint

        self._warn_of_metric(metrics, step)
        metrics = metrics or {}
        there, options = step in self._records, dict(self._options)
        if options["base"] == "newest" and (there or self._records.has_after(step)):
            options["base"] = None  # differences to a branch that goes would keep it
        options["tags"] = {**(options.get("tags") or {}), **metrics, TAG: TAG_TEXT}
        saved = checkpoint.save(self.path, state, step, replace=there, **options)
        self._records.add(step, saved.id, metrics)
        self._records.collect()
        return saved

    def _numbers(self, metrics, step):
        """{name: float} of metrics as they are given, None of None."""
        metrics = metrics() if callable(metrics) else metrics
        self._check_metric_names(metrics)
        return None if metrics is None else numbers_of(metrics, step)

    def _warn_of_metric(self, metrics, step):
        if self._metric is None or self._warned:
            return
        if metrics is None:
            text = f"step {step} has no metric '{self._metric}', so it is never among the best; give metrics={{'{self._metric}': value}}"
        elif not math.isfinite(metrics[self._metric]):
            text = f"step {step}: the metric '{self._metric}' is {metrics[self._metric]}, so it is never among the best"
        else:
            return
        self._warned = True
        _log.warning("%s: %s (said once)", self.path, text)

    # ---- opening and restoring ---------------------------------------------------------------------------------

    def _open(self, check, rules):
        self._lock = _store_lock.StoreLock(self.path)
        try:
            if check:
                _store_lock.try_out(self.path)
            self._records = RunRecords(self.path, self._metric, rules)
        except BaseException:
            self._lock.close()
            raise

    def _load(self, step, how):
        with Store(self.path, threads=self._options.get("threads", 0)) as store, store.open(step) as saved:
            return saved.state(**how)

    def _find(self, step, how):
        """(step, passed over, state) of what is to be restored; the step is None where there is nothing."""
        steps = self._records.steps()
        if step is not None:
            step = operator.index(step)
            if step not in steps:
                raise ValueError(f"{self.path} has no step {step}; it has {steps or 'none'}")
            return step, {}, self._load(step, how)
        passed_over, first = {}, None
        for number in reversed(steps):
            try:
                return number, passed_over, self._load(number, how)
            except Error as problem:
                if problem.status not in DAMAGE:
                    raise
                first = first or problem
                passed_over[number] = str(problem) + repair_hint(self.path, number, problem)
                _log.warning("%s: step %d is passed over: %s", self.path, number, passed_over[number])
        if first is not None:
            raise Error(first.status, f"{self.path}: no checkpoint is whole; 'quern checkpoint verify --full --store {self.path}' says "
                        f"what is damaged, 'quern checkpoint repair' mends what parity allows. Of the newest one: {first}")
        return None, {}, None
