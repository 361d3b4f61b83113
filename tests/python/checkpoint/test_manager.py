"""A run under the Manager: when it saves, what it keeps, how it goes on, and what it says when it cannot."""
import os
import random
import re
import subprocess
import sys
import textwrap
import types
import unittest
import warnings
from collections import OrderedDict
from unittest import mock

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
import pyquern as quern  # noqa: E402
from pyquern.checkpoint import Manager  # noqa: E402


def values(seed):
    return np.random.default_rng(seed).standard_normal(5000).astype(np.float32)


def state(step):
    return {"w": values(step), "step": step}


def damage(store, step):
    """Changes a byte in the middle of the values of a checkpoint."""
    (name,) = [name for name in os.listdir(f"{store}/manifests") if re.match(f"{step:012d}[.-]", name)]
    part = f"{store}/data/{name.partition('-')[2]}/part-0000"
    with open(part, "r+b") as file:
        file.seek(9000)
        byte = file.read(1)
        file.seek(9000)
        file.write(bytes([byte[0] ^ 1]))


class ManagerTest(StoreTest):
    def manager(self, every=10, **options):
        # base=None: with differences, what stays may need what would go
        options = {"check": False, "base": None, "save_on_sigterm": False, **options}
        manager = Manager(self.store, every=every, **options)
        self.addCleanup(manager.close)
        return manager

    def run_steps(self, manager, first, last, **more):
        return [s for s in range(first, last + 1) if manager.step(s, lambda: state(s), **more) is not None]


class Saving(ManagerTest):
    def test_steps_that_every_divides_are_saved_and_what_is_jumped_over(self):
        manager = self.manager(keep=None)
        self.assertEqual(self.run_steps(manager, 0, 25), [10, 20])
        self.assertIsNotNone(manager.step(33, state(33)))  # 30 was jumped over
        self.assertIsNone(manager.step(39, state(39)))
        self.assertEqual(quern.checkpoint.ls(self.store), [10, 20, 33])
        manager.close()
        resumed = self.manager(keep=None)
        self.assertEqual(resumed.restore().step, 33)
        self.assertEqual(self.run_steps(resumed, 34, 41), [40])

    def test_minutes(self):
        manager = self.manager(every=None, minutes=1e-9)
        self.assertEqual(self.run_steps(manager, 1, 3), [1, 2, 3])
        manager.close()
        self.assertEqual(self.run_steps(self.manager(every=None, minutes=60), 4, 20), [])

    def test_a_function_is_called_only_when_its_state_is_saved(self):
        manager, calls = self.manager(), []
        for step in range(1, 21):
            manager.step(step, lambda: calls.append(step) or state(step), metrics=lambda: {"loss": calls.append("m") or 1.0})
        self.assertEqual(calls, [10, "m", 20, "m"])

    def test_objects_are_asked_for_their_state_and_get_it_back(self):
        class Part:
            def __init__(self, number):
                self.number = number

            def state_dict(self):
                return {"number": np.int64(self.number)}

            def load_state_dict(self, loaded):
                self.number = loaded["number"]

        parts = {"model": Part(5), "inner": {"optimizer": Part(7)}, "epoch": 3, "table": values(1), "hook": np.int64(4)}
        manager = self.manager()
        manager.save(10, parts)
        heard = []
        into = {"model": Part(0), "inner": {"optimizer": Part(0)}, "epoch": 0, "table": np.zeros(5000, np.float32),
                "hook": heard.append}
        table = into["table"]
        found = manager.restore(into=into)
        self.assertEqual((into["model"].number, into["inner"]["optimizer"].number, into["epoch"], heard), (5, 7, 3, [4]))
        np.testing.assert_array_equal(table, values(1))
        self.assertEqual(found.state["epoch"], 3)
        with self.assertRaisesRegex(KeyError, "has no 'schedule'; it has 'model'"):
            manager.restore(into={"epoch": 0, "schedule": Part(0)})
        with self.assertRaisesRegex(ValueError, r"'table' is float32 of shape \(4,\), saved was float32 of shape \(5000,\)"):
            manager.restore(into={"model": Part(0), "table": np.zeros(4, np.float32)})

    def test_objects_in_lists_tuples_and_ordered_dicts(self):
        class Part:
            def __init__(self, number):
                self.number = number

            def state_dict(self):
                return {"number": self.number}

            def load_state_dict(self, loaded):
                self.number = loaded["number"]

        def parts(first, plain):
            return {"models": [Part(first), Part(first + 1)], "pair": (Part(first + 2), plain),
                    "named": OrderedDict(a=Part(first + 3), b={"c": [Part(first + 4)]}), "losses": [plain] * plain}

        manager = self.manager()
        manager.save(10, parts(1, 9))
        into = parts(50, 3)
        pair = into["pair"][0]
        found = manager.restore(into=into)
        self.assertEqual([part.number for part in into["models"]], [1, 2])
        self.assertEqual((into["pair"][0] is pair, pair.number, into["pair"][1]), (True, 3, 9))
        self.assertEqual((into["named"]["a"].number, into["named"]["b"]["c"][0].number), (4, 5))
        self.assertEqual(into["losses"], [9] * 9)
        self.assertIsInstance(found.state["named"], OrderedDict)
        into["models"].append(Part(0))
        with self.assertRaisesRegex(ValueError, "into 'models' has 3 items, saved was 2"):
            manager.restore(into=into)

        manager.save(20, [Part(7), 8])
        into = [Part(0), 0]
        manager.restore(into=into)
        self.assertEqual((into[0].number, into[1]), (7, 8))
        with self.assertRaisesRegex(TypeError, "into '1' is a value in a tuple, which cannot be replaced; give a list"):
            manager.restore(into=(Part(0), 0))

    def test_containers_without_objects_are_saved_as_they_are(self):
        weights = OrderedDict(w=values(1))
        weights._metadata = {"": {"version": 1}}  # as Module.state_dict() has it
        manager = self.manager()
        manager.save(10, {"model": weights, "pair": (1, [2])})
        self.assertEqual(manager.restore().state["model"]._metadata, {"": {"version": 1}})
        endless = []
        endless.append(endless)
        with self.assertRaisesRegex(ValueError, "the state dict contains itself"):
            manager.save(20, {"list": endless})

    def test_generators_of_devices_that_are_gone_are_told(self):
        torch = types.SimpleNamespace(set_rng_state=lambda _: None, cuda=types.SimpleNamespace(
            is_available=lambda: True, device_count=lambda: 2, set_rng_state_all=lambda states: given.append(states)))
        saved = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": 0, "cuda": [1, 2, 3]}
        given = []
        with mock.patch.dict(sys.modules, torch=torch):
            with self.assertLogs("quern", "WARNING") as said:
                quern.checkpoint.RandomState().load_state_dict(saved)
                torch.cuda.device_count = lambda: 3  # all are there: nothing is said
                quern.checkpoint.RandomState().load_state_dict(saved)
                torch.cuda.is_available = lambda: False
                quern.checkpoint.RandomState().load_state_dict(saved)
        self.assertEqual(given, [[1, 2], [1, 2, 3]])
        self.assertEqual([re.search("of 3 CUDA devices were saved, and (.) devices are visible", line)[1] for line in said.output],
                         ["2", "0"])

    def test_the_generators_go_on_where_they_were(self):
        manager, generators = self.manager(), quern.checkpoint.RandomState()
        random.seed(3)
        np.random.seed(4)
        manager.save(10, {"random": generators})
        want = [random.random(), np.random.rand()]
        manager.restore(into={"random": generators})
        self.assertEqual([random.random(), np.random.rand()], want)

    def test_save_replaces_a_step_of_its_own(self):
        manager = self.manager()
        manager.step(10, state(10))
        self.assertIsNone(manager.step(10, state(11)))
        manager.save(10, {"w": values(99)}, metrics={"loss": 5})
        self.assertEqual(quern.checkpoint.ls(self.store), [10])
        self.assertEqual(manager.steps(), [10])


class Keeping(ManagerTest):
    rules = {"keep": 2, "keep_every": 50, "keep_best": 2, "metric": "loss"}

    def test_what_stays_stays_through_a_restart(self):
        losses = {step: abs(step - 32) for step in range(10, 131, 10)}
        first = self.manager(**self.rules)
        for step in range(1, 71):
            first.step(step, lambda: state(step), metrics={"loss": losses.get(step, 0), "other": 1})
        self.assertEqual(quern.checkpoint.ls(self.store), [30, 40, 50, 60, 70])
        first.close()
        second = self.manager(**self.rules)
        found = second.restore()
        self.assertEqual((found.step, found.metrics, found.passed_over), (70, {"loss": 38.0, "other": 1.0}, {}))
        for step in range(71, 131):
            second.step(step, lambda: state(step), metrics={"loss": losses.get(step, 0)})
        self.assertEqual(quern.checkpoint.ls(self.store), [30, 40, 50, 100, 120, 130])
        self.assertEqual(second.steps(), [30, 40, 50, 100, 120, 130])
        for step in second.steps():
            np.testing.assert_array_equal(quern.checkpoint.load(self.store, step=step)["w"], values(step))
        self.assertEqual(os.listdir(f"{self.store}/tmp"), [])

    def test_with_differences_what_is_needed_stays_and_all_loads(self):
        manager = self.manager(base="newest", keep=2)
        for step in range(10, 201, 10):
            manager.step(step, {"w": values(0) + np.float32(step) * np.float32(1e-6), "same": values(1)})
        kept = quern.checkpoint.ls(self.store)
        self.assertLessEqual({190, 200}, set(kept))
        self.assertLess(len(kept), 6)  # the key that they are differences to
        for step in kept:
            np.testing.assert_array_equal(quern.checkpoint.load(self.store, step=step)["w"],
                                          values(0) + np.float32(step) * np.float32(1e-6))

    def test_max_and_nan(self):
        manager = self.manager(keep=1, keep_best=1, metric="score", mode="max")
        scores = {10: 1.0, 20: 9.0, 30: float("nan"), 40: float("inf"), 50: 2.0}
        with self.assertLogs("quern", "WARNING") as said:
            for step, score in scores.items():
                manager.step(step, state(step), metrics={"score": score})
        self.assertEqual(quern.checkpoint.ls(self.store), [20, 50])
        self.assertEqual([line for line in said.output if "never among the best" in line],
                         [f"WARNING:quern:{self.store}: step 30: the metric 'score' is nan, so it is never among the best (said once)"])

    def test_checkpoints_of_others_are_left_alone(self):
        manager = self.manager(keep=1)
        manager.step(10, state(10))
        quern.checkpoint.save(self.store, state(15), step=15)
        self.run_steps(manager, 20, 40)
        self.assertEqual(quern.checkpoint.ls(self.store), [15, 40])

    def test_what_others_saved_before_it_started_stays_and_its_own_does_not(self):
        for step in (1, 2, 3):
            quern.checkpoint.save(self.store, state(step), step=step, tags={"loss": 0})
        manager = self.manager(keep=2, keep_best=1, metric="loss")
        self.assertEqual(manager.restore().step, 3)
        self.run_steps(manager, 4, 40, metrics={"loss": 1})
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 2, 3, 30, 40])
        manager.close()
        quern.checkpoint.save(self.store, state(45), step=45)
        again = self.manager(keep=1)
        self.assertEqual(again.restore().step, 45)
        self.run_steps(again, 46, 60)
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 2, 3, 45, 60])
        again.restore(step=3)
        again.save(4, state(4))
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 2, 3, 4, 45])

    def test_a_step_that_others_replaced_is_theirs(self):
        manager = self.manager(keep=1)
        manager.step(10, state(10))
        quern.checkpoint.save(self.store, state(11), step=10, replace=True)
        self.run_steps(manager, 20, 30)
        self.assertEqual(quern.checkpoint.ls(self.store), [10, 30])


class Restoring(ManagerTest):
    def test_a_first_start_finds_nothing(self):
        self.assertIsNone(self.manager().restore(into={"anything": 1}))

    def test_a_damaged_value_is_passed_over_and_replaced_when_the_run_gets_there(self):
        manager = self.manager(keep=2)
        self.run_steps(manager, 1, 40)
        manager.close()
        damage(self.store, 40)
        manager = self.manager(keep=2)
        with self.assertLogs("quern", "WARNING") as said:
            found = manager.restore()
        self.assertEqual(found.step, 30)
        self.assertEqual(list(found.passed_over), [40])
        self.assertIn("step 40 is passed over", said.output[0])
        np.testing.assert_array_equal(found.state["w"], values(30))
        self.assertEqual(self.run_steps(manager, 31, 50), [40, 50])
        self.assertEqual(quern.checkpoint.ls(self.store), [40, 50])
        manager.close()
        self.assertEqual(self.manager().restore().step, 50)

    def test_none_whole_is_no_first_start(self):
        manager = self.manager()
        self.run_steps(manager, 1, 20)
        damage(self.store, 10)
        damage(self.store, 20)
        with self.assertRaisesRegex(quern.Error, "no checkpoint is whole; 'quern checkpoint verify"):
            manager.restore()

    def test_going_back_leaves_the_later_branch(self):
        manager = self.manager(keep=10)
        self.run_steps(manager, 1, 50)
        manager.close()
        manager = self.manager(keep=10)
        self.assertEqual(manager.restore(step=20).step, 20)
        manager.save(25, {"w": values(1025)})
        self.assertEqual(manager.steps(), [10, 20, 25])
        self.assertEqual(self.run_steps(manager, 26, 30), [30])
        self.assertEqual(quern.checkpoint.ls(self.store), [10, 20, 25, 30])
        manager.close()
        self.assertEqual(self.manager().restore().step, 30)

    def test_a_step_that_was_saved_before_going_back_is_saved_again(self):
        manager = self.manager(keep=10)
        self.run_steps(manager, 1, 20)
        manager.restore(step=10)
        self.assertIsNotNone(manager.step(20, state(1020)))
        np.testing.assert_array_equal(quern.checkpoint.load(self.store)["w"], values(1020))

    def test_a_step_that_was_found_damaged_is_saved_again(self):
        manager = self.manager(keep=10)
        self.run_steps(manager, 1, 20)
        damage(self.store, 20)
        with self.assertLogs("quern", "WARNING"):
            self.assertEqual(manager.restore().step, 10)
        self.assertEqual(self.run_steps(manager, 11, 20), [20])
        np.testing.assert_array_equal(quern.checkpoint.load(self.store, step=20)["w"], values(20))

    def test_killed_before_the_later_branch_is_gone(self):
        """What was saved last is restored, though a larger step is there still."""
        manager = self.manager(keep=10)
        self.run_steps(manager, 1, 50)
        manager.restore(step=20)
        manager._records.collect = lambda: None
        manager.save(25, {"w": values(1025)})
        manager.close()
        again = self.manager(keep=2)
        self.assertEqual(again.restore().step, 25)
        again.step(30, state(30))
        self.assertEqual(quern.checkpoint.ls(self.store), [25, 30])

    def test_a_run_that_did_not_restore_does_not_write_over_one_that_got_further(self):
        manager = self.manager()
        self.run_steps(manager, 1, 30)
        manager.close()
        manager = self.manager()
        with self.assertRaisesRegex(ValueError, "has step 30, and this run, which did not restore it, would save step 10: call restore"):
            manager.step(10, state(10))
        self.assertEqual(quern.checkpoint.ls(self.store), [10, 20, 30])
        np.testing.assert_array_equal(quern.checkpoint.load(self.store, step=10)["w"], values(10))
        self.assertIsNotNone(manager.step(40, state(40)))

    def test_that_is_an_error_where_failed_saves_are_warnings_too(self):
        quern.checkpoint.save(self.store, state(30), step=30)
        manager = self.manager(on_error="warn")
        with self.assertRaisesRegex(ValueError, "has step 30, and this run, which did not restore it, would save step 10"):
            manager.step(10, state(10))


class Sentences(ManagerTest):
    def test_arguments(self):
        for sentence, options in [
                ("when shall be saved\\? give every=500", {"every": None}),
                ("every=0: give a whole number", {"every": 0}), ("every=2.5: give", {"every": 2.5}),
                ("minutes=0: give a number above 0", {"minutes": 0}), ("minutes=nan", {"minutes": float("nan")}),
                ("keep=0 would remove what has just been saved", {"keep": 0}),
                ("keep_every=15 is no multiple of every=10", {"keep_every": 15}),
                ("keep_best=2: best by what\\? give metric=", {"keep_best": 2}),
                ("mode='least': give 'min'", {"mode": "least"}), ("on_error='ignore': give 'raise' or 'warn'", {"on_error": "ignore"}),
                ("on_signal='stop': give 'flag' or 'exit'", {"on_signal": "stop"})]:
            with self.assertRaisesRegex(ValueError, sentence):
                self.manager(**options)
        with self.assertRaisesRegex(TypeError, "compress is no option of Manager, nor of pyquern.checkpoint.save"):
            self.manager(compress=9)
        self.assertFalse(os.path.exists(self.store))

    def test_metrics(self):
        manager = self.manager(keep_best=1, metric="loss")
        with self.assertRaisesRegex(ValueError, r"metric 'loss', which is missing: metrics has \['lose'\]; give"):
            manager.step(1, state(1), metrics={"lose": 2.0})
        with self.assertRaisesRegex(TypeError, "step 10: the metric 'loss' is a str; metrics are numbers"):
            manager.step(10, state(10), metrics={"loss": "small"})
        with self.assertLogs("quern", "WARNING") as said:
            manager.save(11, state(11))
        self.assertIn("step 11 has no metric 'loss'", said.output[0])

    def test_steps_and_closed(self):
        manager = self.manager()
        with self.assertRaisesRegex(ValueError, "steps are whole numbers from 0"):
            manager.step(-1, {})
        with self.assertRaises(TypeError):
            manager.step(1.5, {})
        with self.assertRaisesRegex(ValueError, "has no step 7; it has none"):
            manager.restore(step=7)
        manager.close()
        with self.assertRaisesRegex(ValueError, "this Manager is closed"):
            manager.step(1, {})

    def test_two_managers(self):
        manager = self.manager()
        with self.assertRaisesRegex(RuntimeError, "this process has a Manager on this store; close"):
            Manager(self.store + "/.", every=1)
        other = textwrap.dedent("""
            import sys
            from pyquern._checkpoint import store_lock as _store_lock
            try:
                _store_lock.StoreLock(sys.argv[1], wait=0.2)
            except RuntimeError as problem:
                print(problem)
            """)
        said = subprocess.run([sys.executable, "-c", other, self.store], capture_output=True, text=True, check=True).stdout
        self.assertIn(f"another Manager works on this store (process {os.getpid()} on ", said)
        manager.close()
        said = subprocess.run([sys.executable, "-c", other, self.store], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, "")
        self.manager()

    def test_a_store_that_cannot_be_written_is_found_out_at_once(self):
        with open(self.store, "w"):
            pass
        with self.assertRaisesRegex(OSError, "checkpoints cannot be saved here: .*give the Manager a folder"):
            self.manager()
        os.remove(self.store)
        with self.assertRaisesRegex(OSError, "/sys/quern: checkpoints cannot be saved here"):
            Manager("/sys/quern", every=1)

    def assert_empty(self):
        self.assertEqual(set(os.listdir(self.store)) - {"lock"}, {"manager.lock", "data", "manifests", "tmp"})
        for folder in ("data", "manifests", "tmp"):
            self.assertEqual(os.listdir(f"{self.store}/{folder}"), [])

    def test_the_check_waits_for_no_other_writer(self):
        with quern.checkpoint.Store(self.store, write=True) as store, store.begin(1):
            self.manager(check=True).close()

    def test_the_check_takes_no_other_failure_for_a_writer(self):
        self.store += " in use"
        quern.checkpoint.save(self.store, state(1), step=1)
        os.remove(f"{self.store}/lock")
        os.symlink("lock", f"{self.store}/lock")
        with self.assertRaisesRegex(quern.Error, "lock: cannot"):
            self.manager(check=True)

    def test_a_script_may_change_its_folder(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.makedirs(self.store)
        os.chdir(self.store)
        with Manager("inner", every=10, save_on_sigterm=False) as manager:
            os.chdir(before)
            manager.save(1, state(1))
        self.assertEqual(quern.checkpoint.ls(f"{self.store}/inner"), [1])

    def test_the_check_leaves_nothing_and_tries_the_store(self):
        self.manager(check=True).close()
        self.assert_empty()
        manager = self.manager(check=True)
        saved = manager.check({"w": values(1)})
        self.assertGreater(saved.stored_bytes, 10000)
        with self.assertRaises(TypeError):
            manager.check({"w": object()})
        self.assert_empty()
        self.assertIsNone(manager.restore())


FULL = textwrap.dedent("""
    import resource, signal, sys, warnings
    import numpy as np
    from pyquern.checkpoint import Manager
    store, mode = sys.argv[1:]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    if mode == "check":
        limit(3000)
        Manager(store, every=1)
    manager = Manager(store, every=1, on_error=mode)
    manager.step(1, {"w": np.random.rand(20000)})
    limit(50000)
    warnings.simplefilter("error" if mode == "raise" else "always")
    manager.step(2, {"w": np.random.rand(20000)})
    print("went on", type(manager.last_error).__name__)
    limit(10**9)
    manager.step(3, {"w": np.random.rand(20000)})
    print(manager.steps(), manager.last_error)
    """)


class DiskFull(ManagerTest):
    """A file that may not grow fails as a full disk does."""

    def full(self, mode):
        return subprocess.run([sys.executable, "-c", FULL, self.store, mode], capture_output=True, text=True)

    def test_it_raises_or_warns_loudly_and_what_was_there_stays(self):
        ended = self.full("raise")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertRegex(ended.stderr, "pyquern.Error: .*part-0000.*File too large")
        self.assertEqual(quern.checkpoint.ls(self.store), [1])
        quern.checkpoint.verify(self.store, 1)

    def test_it_warns_loudly(self):
        ended = self.full("warn")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("STEP 2 WAS NOT SAVED, and training goes on without it (Error: ", ended.stderr)
        self.assertEqual(ended.stdout, "went on Error\n[1, 3] None\n")
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 3])

    def test_the_first_minute(self):
        ended = self.full("check")
        self.assertEqual(ended.returncode, 1)
        self.assertIn(f"{self.store}: checkpoints cannot be saved here: ", ended.stderr)

    def test_warnings_name_the_caller(self):
        manager = self.manager(on_error="warn")
        with warnings.catch_warnings(record=True) as caught, self.assertLogs("quern", "ERROR"):
            warnings.simplefilter("always")
            manager.save(10, {"w": object()})
        self.assertIn("STEP 10 WAS NOT SAVED", str(caught[0].message))
        self.assertIsInstance(manager.last_error, TypeError)


if __name__ == "__main__":
    unittest.main()
