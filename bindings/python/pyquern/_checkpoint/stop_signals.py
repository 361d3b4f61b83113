"""Signals that announce the end of a job (SIGTERM; SIGUSR1 of Slurm's --signal), as a flag that a loop asks for."""
import logging
import os
import signal
import threading
import time

_log = logging.getLogger("quern")
_SAME_NOTICE = 2.0  # seconds: schedulers and launchers both signal one process


class StopSignals:
    """From now to close(), the first of the signals sets `seen` to its number and calls the handler that was there before,
    if that is a Python function. The next one of that number, 2 seconds or more later, does what it did before. In a
    forked child SIGTERM does at once what it did before, and the others are left to the parent: schedulers signal all processes of a
    job. Python lets the main thread alone set handlers: in another thread nothing is caught, and a warning says so."""

    def __init__(self, signals):
        self.seen = None
        self._closed = False
        self._process = os.getpid()
        self._since = {}
        self._previous = {}
        if not signals:
            return
        if threading.current_thread() is not threading.main_thread():
            _log.warning("signals are not caught: a Manager that saves on SIGTERM must be made in the main thread")
            return
        for number in signals:
            self._previous[number] = signal.signal(number, self._on_signal)

    def _on_signal(self, number, frame):
        now = time.monotonic()
        before = self._previous.get(number)
        if self._closed:
            self._as_before(number)
        elif os.getpid() != self._process:
            if number == signal.SIGTERM:
                self._as_before(number)
        elif number not in self._since:
            self._since[number] = now
            self.seen = number
            if callable(before):
                before(number, frame)
        elif now - self._since[number] >= _SAME_NOTICE:
            self._as_before(number)

    def _as_before(self, number):
        before = self._previous.get(number)
        signal.signal(number, signal.SIG_DFL if before is None else before)
        os.kill(os.getpid(), number)

    def close(self):
        """Puts the handlers back that were there before, where nobody has set another since. In another thread than the main
        one each goes back when its signal comes next, which then does what it did before."""
        self._closed = True
        if self._previous and threading.current_thread() is not threading.main_thread():
            _log.info("handlers of signals stay until their signals come: Python lets the main thread alone put them back")
            return
        previous, self._previous = self._previous, {}
        for number, handler in previous.items():
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
