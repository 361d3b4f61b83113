"""Saves through engines, one for each store, and what follows each of them once it is durable."""
import concurrent.futures
import contextlib
import logging
import os

from .._checkpoint.engine import Engine

_log = logging.getLogger("quern")


class SavesBehind:
    """`options`: those of pyquern.checkpoint.Engine, for each store that is saved to; True for none. Saves are coded and
    written while training goes on, and what follows them is done in one thread, in the order of the calls. The process waits for
    both at its end. A failure is raised by the next save() or settle(). For one thread of the trainer."""

    def __init__(self, options):
        self._options = {} if options is True else dict(options)
        if self._options.get("when_full") == "skip":
            raise ValueError('engine={"when_full": "skip"}: it drops saves, and a dropped one is a failure here; give "block" or '
                             '"compress-first"')
        self._engines, self._steps = {}, {}  # {store: Engine}, {store: steps under way}
        self._thread = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="quern-behind")
        self._tasks = []  # futures, in order: those under way, and those whose failure nobody has been told

    def steps_under_way(self, store):
        return set(self._steps.get(store, ()))

    def save(self, store, state, step, then, **arguments):
        """Hands a state over; once it is durable, calls then(Saved). Tensors may be written to after fence()."""
        self._raise_failure()
        if store not in self._engines:
            os.makedirs(os.path.dirname(os.path.abspath(store)), exist_ok=True)
            self._engines[store] = Engine(store, **self._options)
        save = self._engines[store].save(state, step, **arguments)
        under_way = self._steps.setdefault(store, set())
        under_way.add(step)

        def finish():
            try:
                then(save.result())
            except Exception as problem:
                _log.error("%s", problem)
                raise
            finally:
                under_way.discard(step)

        self._tasks.append(self._thread.submit(finish))

    def after(self, call):
        """Calls it after all that was given before, unless some of that failed: what is to be removed may be needed then."""
        before = list(self._tasks)

        def finish():
            if all(task.exception() is None for task in before):
                call()

        self._tasks.append(self._thread.submit(finish))

    def fence(self, timeout=None):
        """True once no tensor that was given to save() is read any more."""
        return all([engine.fence(timeout=timeout) for engine in self._engines.values()])

    def settle(self, timeout=None):
        """True once all that was given is done, False after `timeout` seconds. Raises what failed first."""
        left = concurrent.futures.wait(self._tasks, timeout).not_done
        self._raise_failure()
        return not left

    def close(self):
        """The same, and closes the engines."""
        try:
            self.settle()
        finally:
            engines, self._engines = self._engines, {}
            with contextlib.ExitStack() as closing:  # all of them, also when one fails
                for engine in engines.values():
                    closing.callback(engine.close, "drain")

    def _raise_failure(self):
        done = [task for task in self._tasks if task.done()]
        failed = [task.exception() for task in done if task.exception() is not None]
        self._tasks = [task for task in self._tasks if task not in done]
        if failed:
            raise failed[0]
