"""dcp.async_save through an engine: in one process, lazily with a fence, on two ranks (gloo), and where a rank fails."""
import datetime
import multiprocessing
import os
import pickle
import sys
import time
import unittest

from support import StoreTest, import_or_skip

import_or_skip("numpy")
torch = import_or_skip("torch", minimum=(2, 4))
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    print("SKIP: this PyTorch has no torch.distributed with gloo")
    sys.exit(77)
import pyquern as quern  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from pyquern.torch_dcp import QuernReader  # noqa: E402
from pyquern.torch_dcp_async import AsyncQuernWriter  # noqa: E402
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402

torch.set_num_threads(1)
RING = {"ring": 8 << 20}
_SECONDS = 20  # that ranks wait for each other


def parts(seed):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(64, 400), torch.nn.BatchNorm1d(400), torch.nn.Linear(400, 64))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def train(model, optimizer):
    model(torch.randn(16, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def state_of(model, optimizer, step):
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}


def copied(state):
    if isinstance(state, torch.Tensor):
        return state.detach().clone()
    if isinstance(state, dict):
        return {key: copied(value) for key, value in state.items()}
    return [copied(value) for value in state] if isinstance(state, list) else state


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


class OneProcess(StoreTest):
    def loaded(self, step):
        model, optimizer = parts(99)
        train(model, optimizer)
        room = state_of(model, optimizer, 0)
        dcp.load(room, storage_reader=QuernReader(self.store, step=step))
        return room

    def run_of(self, lazy, **options):
        """Saves after each of four steps, and trains on while they are saved."""
        model, optimizer = parts(1)
        was = {}
        with AsyncQuernWriter(self.store, lazy=lazy, engine=RING, **options) as writer:
            hook = writer.attach(optimizer) if lazy else None
            for step in range(1, 5):
                train(model, optimizer)
                state = state_of(model, optimizer, step)
                was[step] = copied(state)
                saved = dcp.async_save(state, storage_writer=writer, checkpoint_id=str(step))
                if not lazy:  # all may be written to now, by whoever likes
                    with torch.no_grad():
                        for values in model.parameters():
                            values.mul_(1.01)
            saved.result(60)
            if lazy:
                hook.remove()
        for step, state in was.items():
            self.assertTrue(equal(self.loaded(step), state), step)

    def test_what_is_saved_is_the_state_at_the_call(self):
        self.run_of(lazy=False)

    def test_lazily_with_a_fence_before_each_step(self):
        self.run_of(lazy=True, base="newest")
        self.assertEqual(quern.checkpoint.info(self.store, 2).base, 1)

    def test_a_save_that_fails_holds_up_nobody(self):
        class Broken(dcp.DefaultSavePlanner):
            def create_local_plan(self):
                raise RuntimeError("no plan today")

        model, optimizer = parts(1)
        with AsyncQuernWriter(self.store, engine=RING) as writer:
            begun = time.monotonic()
            failed = dcp.async_save(state_of(model, optimizer, 1), storage_writer=writer, checkpoint_id="1", planner=Broken())
            self.assertLess(time.monotonic() - begun, 30)
            self.assertIn("no plan today", str(failed.exception(60)))
            for _ in range(2):  # the second time the step is there
                problem = dcp.async_save({"w": torch.ones(5)}, storage_writer=writer, checkpoint_id="1").exception(60)
            self.assertIsInstance(problem, CheckpointException)
            self.assertIn("step 1", str(problem))
            dcp.async_save({"w": torch.ones(5)}, storage_writer=writer, checkpoint_id="2").result(60)
            with self.assertRaises(TypeError):
                pickle.dumps(writer)
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 2])

    def test_a_tier_gets_what_the_last_share_completes(self):
        shared = self.store + ".shared"
        with AsyncQuernWriter(self.store, engine={**RING, "tiers": [shared]}) as writer:
            dcp.async_save({"w": torch.arange(6.0)}, storage_writer=writer, checkpoint_id="3").result(60)
            self.assertTrue(writer.engine.wait(60))
        room = {"w": torch.zeros(6)}
        dcp.load(room, storage_reader=QuernReader(shared))
        self.assertEqual(room["w"].tolist(), list(range(6)))


def sharded(full):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    return distribute_tensor(full, init_device_mesh("cpu", (2,)), [Shard(0)])


def worker(rank, store, results):
    said = "nothing"
    try:
        torch.distributed.init_process_group("gloo", init_method=f"file://{store}.rendezvous", rank=rank, world_size=2,
                                             timeout=datetime.timedelta(seconds=_SECONDS))
        said = two_ranks(rank, store)
    except BaseException as problem:  # noqa: BLE001: the parent says it
        said = f"{type(problem).__name__}: {problem}"
    results.put((rank, said))
    results.close()
    results.join_thread()
    os._exit(0)


def two_ranks(rank, store):
    torch.manual_seed(3)
    full = torch.randn(257, 300)
    state = {"w": sharded(full), "same": torch.arange(6.0), "step": 0}
    local = state["w"].to_local()
    with AsyncQuernWriter(store, lazy=True, base="newest", engine=RING, timeout=_SECONDS) as writer:
        for step in (1, 2, 3):
            writer.synchronize_staging()
            local += 1
            state["step"] = step
            saved = dcp.async_save(state, storage_writer=writer, checkpoint_id=str(step))
        saved.result(_SECONDS)
        writer.synchronize_staging()

        class Broken(dcp.DefaultSavePlanner):
            def create_local_plan(self):
                if rank == 1:
                    raise RuntimeError("rank 1 has no plan")
                return super().create_local_plan()

        begun = time.monotonic()
        failed = dcp.async_save(state, storage_writer=writer, checkpoint_id="4", planner=Broken())
        writer.synchronize_staging()
        assert "rank 1 has no plan" in str(failed.exception(_SECONDS)) and time.monotonic() - begun < _SECONDS / 2
        dcp.async_save(state, storage_writer=writer, checkpoint_id="5").result(_SECONDS)
    room = {"w": sharded(torch.zeros(257, 300)), "same": torch.zeros(6), "step": 0}
    dcp.load(room, storage_reader=QuernReader(store, step=3))
    assert torch.equal(room["w"].to_local(), local) and room["step"] == 3
    return "done"


class TwoRanks(StoreTest):
    def test_shares_of_two_ranks_are_one_checkpoint(self):
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        ranks = [context.Process(target=worker, args=(rank, self.store, results)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        found = sorted(results.get(timeout=5 * _SECONDS) for _ in ranks)
        for rank in ranks:
            rank.join(_SECONDS)
        self.assertEqual(found, [(0, "done"), (1, "done")])
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 2, 3, 5])
        for step in (1, 2, 3, 5):
            quern.checkpoint.verify(self.store, step)
        whole = {"w": torch.zeros(257, 300), "same": torch.zeros(6), "step": 0}  # read by one process
        dcp.load(whole, storage_reader=QuernReader(self.store, step=2), no_dist=True)
        torch.manual_seed(3)
        self.assertTrue(torch.equal(whole["w"], torch.randn(257, 300) + 1 + 1))


if __name__ == "__main__":
    unittest.main()
