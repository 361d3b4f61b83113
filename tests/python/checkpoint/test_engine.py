"""Checkpoints without waiting: saves, fences, futures, failures, and a run that is killed."""
import contextlib
import os
import shutil
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
from pyquern.checkpoint import Engine  # noqa: E402


def state(step, n=100_000):
    return {"model": {"w": np.random.default_rng(step).standard_normal(n).astype(np.float32), "n": np.arange(5)},
            "step": step, "names": ["a", "b"]}


class Engines(StoreTest):
    def assert_saved(self, step, expected):
        found = quern.checkpoint.load(self.store, step=step)
        self.assertEqual((found["step"], found["names"]), (expected["step"], expected["names"]))
        for name, values in expected["model"].items():
            np.testing.assert_array_equal(found["model"][name], values)

    def test_saves_hold_what_was_there_before_the_fence(self):
        with Engine(self.store, ring=4 << 20, threads=1) as engine:
            trained = state(0)
            was = {}
            for step in range(1, 6):
                self.assertTrue(engine.fence())
                trained["model"]["w"] += 1
                trained["step"] = step
                was[step] = {**trained, "model": {name: values.copy() for name, values in trained["model"].items()}}
                save = engine.save(trained, step=step, base="newest", tags={"loss": 1 / step})
            result = save.result(60)
            self.assertEqual((result.step, result.published, result.tensors), (5, True, 2))
            self.assertTrue(save.done())
            self.assertEqual(save.level, "durable")
            self.assertIsNone(save.exception())
            self.assertFalse(save.cancelled())
            self.assertEqual(engine.stats().durable + engine.stats().under_way, 5)
            self.assertEqual(engine._open.kept, {})
        for step, expected in was.items():
            self.assert_saved(step, expected)
        self.assertEqual(quern.checkpoint.info(self.store, 5).tags, {"loss": "0.2"})

    def test_what_goes_wrong_is_an_error_with_the_step(self):
        with Engine(self.store, ring=2 << 20) as engine:
            engine.save(state(1), step=1).result(60)
            again = engine.save(state(1), step=1)
            self.assertIn("step 1", str(again.exception(60)))
            with self.assertRaises(quern.checkpoint.Error):
                again.result(60)
            with self.assertRaises(TypeError):
                engine.save({"f": lambda: 0}, step=2)
            with self.assertRaises(TypeError):
                engine.save(state(1), step=2, bases=3)
            with self.assertRaises(ValueError):
                again.wait("soon")
        with self.assertRaises(ValueError):
            engine.fence()
        engine.close()
        for arguments, error in (({"when_full": "burst"}, ValueError), ({"ring": 5}, quern.checkpoint.Error),
                                 ({"preset": "none"}, None), ({"color": 1}, TypeError)):
            if error is not None:
                with self.assertRaises(error):
                    Engine(self.store, **arguments)

    def test_cancel_drop_and_an_exception_of_the_trainer(self):
        engine = Engine(self.store, ring=64 << 20, at_exit="drop", write_rate=8e6)  # half a second each
        saves = [engine.save(state(step, 1_000_000), step=step) for step in range(1, 5)]
        self.assertTrue(saves[3].cancel())
        self.assertTrue(engine.fence())
        self.assertIn("step 4: cancelled", str(saves[3].exception(60)))
        self.assertTrue(saves[3].cancelled())
        self.assertFalse(saves[3].cancel())
        with self.assertLogs("quern", "ERROR") as logged, self.assertRaises(ZeroDivisionError), engine:
            engine.save(state(9, 3_000_000), step=9)
            1 / 0
        self.assertIn("did not reach the disk", "".join(logged.output))
        for step in quern.checkpoint.ls(self.store):
            quern.checkpoint.verify(self.store, step)

    def test_a_tensor_that_changes_too_early_is_named(self):
        # A ring that the state does not fit in: its last tensor is still borrowed when it is written to.
        tensors = {str(i): np.random.default_rng(i).standard_normal(400_000) for i in range(6)}
        with Engine(self.store, ring=2 << 20, check_changes=True, write_rate=8e6) as engine:
            save = engine.save(tensors, step=1)
            for values in tensors.values():
                values += 1
            self.assertRegex(str(save.exception(60)), "step 1: tensor '[0-5]' changed")

    def test_an_engine_that_nobody_closes_drains_at_the_end(self):
        script = textwrap.dedent(f"""
            import numpy as np, pyquern as quern
            engine = quern.checkpoint.Engine({self.store!r}, ring=64 << 20)
            for step in range(1, 4):
                engine.save({{"w": np.full(1_000_000, step, np.float32)}}, step=step)
            """)
        subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 2, 3])
        self.assertEqual(quern.checkpoint.load(self.store)["w"][5], 3)

    def test_a_killed_trainer_leaves_whole_checkpoints(self):
        script = textwrap.dedent(f"""
            import numpy as np, pyquern as quern
            engine = quern.checkpoint.Engine({self.store!r}, ring=8 << 20, base="newest")
            step = (quern.checkpoint.ls({self.store!r}) or [0])[-1]
            w = quern.checkpoint.load({self.store!r})["w"] if step else np.zeros(500_000, np.float32)
            print("ready", flush=True)
            while True:
                engine.fence()
                step += 1
                w += np.float32(1)
                engine.save({{"w": w}}, step=step)
            """)
        steps = []
        for round_ in range(3):
            child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
            self.assertEqual(child.stdout.readline(), b"ready\n")
            end = time.monotonic() + 60
            while quern.checkpoint.ls(self.store) == steps and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(0.03 * round_)
            child.send_signal(signal.SIGKILL)
            child.wait(60)
            child.stdout.close()
            self.assertGreater(len(quern.checkpoint.ls(self.store)), len(steps))
            steps = quern.checkpoint.ls(self.store)
            for step in steps[-8:]:
                quern.checkpoint.verify(self.store, step)
                self.assertTrue((quern.checkpoint.load(self.store, step)["w"] == step).all())

    def test_close_while_other_threads_wait(self):
        engine = Engine(self.store, ring=2 << 20, write_rate=4e6)
        save = engine.save(state(1, 1_000_000), step=1)
        ended = []

        def wait(call):
            try:
                call()
            except (ValueError, quern.checkpoint.Error) as problem:
                ended.append(problem)

        threads = [threading.Thread(target=wait, args=(call,)) for call in (save.result, engine.wait, engine.fence)]
        for thread in threads:
            thread.start()
        with contextlib.suppress(quern.checkpoint.Error):
            engine.close("drop")
        for thread in threads:
            thread.join(60)
        self.assertFalse(any(thread.is_alive() for thread in threads))
        self.assertGreaterEqual(len(ended), 1)  # the fence may have been through

    def test_a_forked_process_is_refused(self):
        with Engine(self.store, ring=2 << 20) as engine:
            child = os.fork()
            if child == 0:
                try:
                    engine.save(state(1), step=1)
                    os._exit(1)
                except quern.checkpoint.Error as problem:
                    os._exit(0 if "forked" in str(problem) else 2)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            engine.save(state(1), step=1).result(60)

    def test_tiers_get_copies_and_give_them_back(self):
        folder = os.path.dirname(self.store)
        shared, blocked = os.path.join(folder, "shared"), os.path.join(folder, "file", "tier")
        with open(os.path.dirname(blocked), "w"):
            pass
        with Engine(self.store, ring=2 << 20, tiers=[quern.checkpoint.Tier(shared, every=2)], keep_local=1) as engine:
            for step in (1, 2, 3, 4):
                saved = engine.save(state(step), step=step)
                self.assertEqual(saved.result(60).step, step)
                self.assertEqual(saved.level, "durable")
            self.assertTrue(engine.wait(60))
            stats = engine.tier_stats()[0]
            self.assertEqual((stats.path, stats.checkpoints, stats.waiting, stats.problem), (shared, 2, 0, ""))
            self.assertGreater(stats.rate, 0)
            self.assertIn(stats.depth, (1, 2, 4, 8))
        self.assertEqual(quern.checkpoint.ls(shared), [2, 4])
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 3, 4])  # what no tier has stays
        shutil.rmtree(self.store)
        self.assertEqual(quern.checkpoint.newest_of([self.store, shared]), (shared, 4))
        restored = quern.checkpoint.restore_newest(self.store, tiers=[shared])
        self.assertEqual((restored.step, restored.state["step"]), (4, 4))
        # A tier that cannot be written: the save is in the store, and its result says what is missing.
        with self.assertRaises(quern.checkpoint.Error) as raised:
            with Engine(self.store, ring=2 << 20, tiers=[blocked]) as engine:
                saved = engine.save(state(5), step=5)
                self.assertTrue(saved.wait("local", 60))
        self.assertIn(blocked, str(raised.exception))
        self.assert_saved(5, state(5))
        for wrong in ({"tiers": shared}, {"tiers": [quern.checkpoint.Tier(shared, every=0)]}, {"keep_local": 3}):
            with self.assertRaises((TypeError, quern.checkpoint.Error)):
                Engine(self.store, ring=2 << 20, **wrong)

    def test_small_tensors_are_copied_and_a_long_fence_is_one(self):
        big, small = np.zeros(2_000_000, np.float32), np.zeros(16_384, np.float32)  # the second: 64 KiB
        big += np.random.default_rng(1).standard_normal(big.size).astype(np.float32)
        with Engine(self.store, ring=2 << 20, write_rate=16e6) as engine:
            save = engine.save({"big": big, "small": small}, step=1)
            small += 1
            self.assertTrue(engine.fence())
            self.assertEqual(engine.stats().fences, 1)
            self.assertGreater(engine.stats().longest_fence, 0.1)  # longer than one call of the library
            save.result(60)
        self.assertEqual(quern.checkpoint.load(self.store)["small"].max(), 0)


class Hook(StoreTest):
    def test_attach_has_the_fence_called_with_whatever_arguments(self):
        class Optimizer:
            def register_step_pre_hook(self, hook):
                self.hook = hook

        optimizer = Optimizer()
        with Engine(self.store, ring=2 << 20) as engine:
            engine.attach(optimizer)
            engine.save(state(1), step=1)
            self.assertIsNone(optimizer.hook(optimizer, (), {}))  # anything else would replace the step's arguments
            self.assertEqual(engine.stats().fences, 1)

    def test_a_fence_before_each_step_of_an_optimizer(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no torch here")
        torch.manual_seed(1)
        model = torch.nn.Linear(200, 300)
        optimizer = torch.optim.AdamW(model.parameters())
        with Engine(self.store, ring=2 << 20) as engine:
            hook = engine.attach(optimizer)
            was = {}
            for step in range(1, 6):
                model(torch.randn(4, 200)).square().sum().backward()
                optimizer.step()
                optimizer.zero_grad()
                was[step] = model.weight.detach().clone()
                engine.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, step=step)
            self.assertGreaterEqual(engine.stats().fences, 5)
            hook.remove()
        for step, weight in was.items():
            self.assertTrue(torch.equal(quern.checkpoint.load(self.store, step)["model"]["weight"], weight))


if __name__ == "__main__":
    unittest.main()
