"""Signals that end a job: the step is saved first; what was there before goes on as it did."""
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
import pyquern as quern  # noqa: E402
from pyquern.checkpoint import Manager  # noqa: E402
from pyquern._checkpoint import stop_signals as _stop_signals  # noqa: E402


class Signals(StoreTest):
    def setUp(self):
        super().setUp()
        self.heard = []
        for number in (signal.SIGTERM, signal.SIGUSR1):
            self.addCleanup(signal.signal, number, signal.signal(number, lambda *_: self.heard.append("before")))

    def manager(self, **options):
        manager = Manager(self.store, every=1000, check=False, base=None, **options)
        self.addCleanup(manager.close)
        return manager

    def test_the_next_step_saves_and_says_stop(self):
        for step, number in ((10, signal.SIGTERM), (20, signal.SIGUSR1)):
            with self.manager() as manager:
                self.assertIsNone(manager.step(step, {}))
                os.kill(os.getpid(), number)
                self.assertEqual((manager.should_stop, self.heard), (False, ["before"]))  # chained; nothing is saved yet
                self.assertEqual(manager.step(step + 1, {"w": np.ones(3)}).step, step + 1)
                self.assertTrue(manager.should_stop)
            self.heard.clear()
            os.kill(os.getpid(), number)  # closed: as before
            self.assertEqual(self.heard, ["before"])
            self.heard.clear()
        self.assertEqual(quern.checkpoint.ls(self.store), [11, 21])

    def test_a_signal_during_a_save_needs_no_other_save(self):
        with self.manager() as manager:
            manager._records.collect = lambda: os.kill(os.getpid(), signal.SIGTERM)
            manager.step(1000, {"w": np.ones(3)})
            self.assertTrue(manager.should_stop)
        self.assertEqual(quern.checkpoint.ls(self.store), [1000])

    def test_exit(self):
        manager = self.manager(on_signal="exit")
        os.kill(os.getpid(), signal.SIGTERM)
        with self.assertRaises(SystemExit) as end:
            manager.step(5, {"w": np.ones(3)})
        self.assertEqual(end.exception.code, 128 + signal.SIGTERM)
        self.assertEqual(quern.checkpoint.ls(self.store), [5])

    def test_a_failed_save_stops_as_well(self):
        manager = self.manager(on_error="warn")
        os.kill(os.getpid(), signal.SIGTERM)
        with self.assertWarnsRegex(RuntimeWarning, "STEP 5 WAS NOT SAVED"), self.assertLogs("quern", "ERROR"):
            manager.step(5, {"w": object()})
        self.assertTrue(manager.should_stop)

    def test_two_of_one_notice_are_one_and_a_later_one_is_as_usual(self):
        manager = self.manager()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(self.heard, ["before"])
        manager._signals._since[signal.SIGTERM] -= _stop_signals._SAME_NOTICE
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(self.heard, ["before", "before"])
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(len(self.heard), 3)

    def test_children_die_of_sigterm_as_ever_and_leave_the_other_signal_to_the_parent(self):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        manager = self.manager()
        child = os.fork()
        if child == 0:
            try:
                os.kill(os.getpid(), signal.SIGUSR1)
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os._exit(5)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGTERM)
        self.assertEqual((manager._signals.seen, self.heard), (None, []))

    def test_handlers_that_others_set_since_are_left_alone(self):
        manager = self.manager()
        other = lambda *_: None  # noqa: E731
        signal.signal(signal.SIGTERM, other)
        manager.close()
        self.assertIs(signal.getsignal(signal.SIGTERM), other)

    def test_switched_off(self):
        before = signal.getsignal(signal.SIGTERM)
        self.manager(save_on_sigterm=False)
        self.assertIs(signal.getsignal(signal.SIGTERM), before)

    def test_closed_in_another_thread(self):
        manager, problems = self.manager(), []

        def close():
            try:
                manager.close()
            except BaseException as problem:  # noqa: B902: told to the test
                problems.append(problem)

        with self.assertLogs("quern", "INFO") as said:
            thread = threading.Thread(target=close)
            thread.start()
            thread.join()
        self.assertEqual(problems, [])
        self.assertIn("handlers of signals stay until their signals come", said.output[0])
        before = signal.getsignal(signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual((self.heard, manager.should_stop), (["before"], False))
        self.assertIsNot(signal.getsignal(signal.SIGTERM), before)
        self.manager()  # the store is free

    def test_in_another_thread_it_warns(self):
        def make():
            with self.assertLogs("quern", "WARNING") as said:
                Manager(self.store, every=1, check=False).close()
            self.heard.extend(said.output)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        self.assertIn("must be made in the main thread", self.heard[0])

    def test_a_process_dies_of_the_second_one(self):
        program = textwrap.dedent("""
            import sys, time
            from pyquern._checkpoint import stop_signals as _stop_signals
            from pyquern.checkpoint import Manager
            _stop_signals._SAME_NOTICE = 0.2
            manager = Manager(sys.argv[1], every=1)
            print("ready", flush=True)
            while not manager._signals.seen:
                time.sleep(0.01)
            print("seen", flush=True)
            time.sleep(60)
            """)
        process = subprocess.Popen([sys.executable, "-c", program, self.store], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.terminate()
        self.assertEqual(process.stdout.readline(), "seen\n")
        time.sleep(0.3)
        process.terminate()
        self.assertEqual(process.wait(20), -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
