"""torch.distributed.checkpoint: a model and Adam, in one process, and sharded over two that become one and three."""
import os
import subprocess
import sys
import tempfile
import unittest

from support import StoreTest, import_or_skip

import_or_skip("numpy")
torch = import_or_skip("torch", minimum=(2, 3))
if not torch.distributed.is_available():
    print("SKIP: this PyTorch has no torch.distributed")
    sys.exit(77)
import pyquern as quern  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from pyquern.torch_dcp import QuernReader, QuernWriter  # noqa: E402
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402

ROWS, COLUMNS = 13, 5


def model_and_optimizer(seed):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(3):
        loss = model(torch.randn(10, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, optimizer


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


def whole_tensor():
    return torch.arange(ROWS * COLUMNS, dtype=torch.float32).reshape(ROWS, COLUMNS)


def sharded(full):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return distribute_tensor(full, mesh, [Shard(0)])


def worker(rank, size, rendezvous, store, work):
    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=size)
    try:
        if work == "save":
            state = {"w": sharded(whole_tensor()), "h": sharded(whole_tensor().bfloat16()), "same": torch.arange(6.0),
                     "epoch": 4, "nested": {"list": [torch.ones(2), "text"]}}
            dcp.save(state, storage_writer=QuernWriter(store, step=1, threads=1))
            state["w"] = sharded(whole_tensor() * 1.000001)
            dcp.save(state, storage_writer=QuernWriter(store, base=1, threads=1), checkpoint_id="2")
        else:
            state = {"w": sharded(torch.zeros(ROWS, COLUMNS)), "h": sharded(torch.zeros(ROWS, COLUMNS).bfloat16()),
                     "same": torch.zeros(6), "epoch": 0, "nested": {"list": [torch.zeros(2), ""]}}
            dcp.load(state, storage_reader=QuernReader(store, threads=1))
            assert torch.equal(state["w"].full_tensor(), whole_tensor() * 1.000001)
            assert torch.equal(state["h"].full_tensor(), whole_tensor().bfloat16())
            assert torch.equal(state["same"], torch.arange(6.0))
            assert state["epoch"] == 4 and state["nested"]["list"][1] == "text"
            assert torch.equal(state["nested"]["list"][0], torch.ones(2))
    finally:
        dist.destroy_process_group()


class OneProcess(StoreTest):
    def test_model_and_adam(self):
        model, optimizer = model_and_optimizer(1)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 7}
        dcp.save(state, storage_writer=QuernWriter(self.store, step=3))
        self.assertEqual(quern.checkpoint.ls(self.store), [3])
        names = [t.name for t in quern.checkpoint.info(self.store).tensors]
        self.assertIn("optimizer.state.0.exp_avg", names)

        other, other_optimizer = model_and_optimizer(2)
        room = {"model": other.state_dict(), "optimizer": other_optimizer.state_dict(), "epoch": 0}
        self.assertFalse(equal(room["model"], state["model"]))
        dcp.load(room, storage_reader=QuernReader(self.store))
        self.assertTrue(equal(room, state))

    def test_the_step_is_the_checkpoint_id(self):
        for step in (1, 2):
            dcp.save({"x": torch.full((3,), float(step))}, storage_writer=QuernWriter(self.store), checkpoint_id=str(step))
        room = {"x": torch.zeros(3)}
        dcp.load(room, storage_reader=QuernReader(self.store), checkpoint_id="1")
        self.assertEqual(room["x"].tolist(), [1.0] * 3)
        with self.assertRaises(ValueError):
            QuernWriter(self.store).reset("runs/a")

    def test_what_was_saved_otherwise_is_read(self):
        values = torch.randn(6, 4)
        quern.checkpoint.save(self.store, {"a": {"w": values}}, step=1)
        room = {"a.w": torch.zeros(6, 4)}
        dcp.load(room, storage_reader=QuernReader(self.store))
        self.assertTrue(torch.equal(room["a.w"], values))
        converted = {"a.w": torch.zeros(6, 4, dtype=torch.float64)}
        dcp.load(converted, storage_reader=QuernReader(self.store))
        self.assertTrue(torch.equal(converted["a.w"], values.double()))

    def test_a_failed_save_leaves_no_checkpoint(self):
        with self.assertRaises(CheckpointException):
            dcp.save({"x": torch.eye(3).to_sparse()}, storage_writer=QuernWriter(self.store, step=1))
        self.assertEqual(quern.checkpoint.ls(self.store), [])


class SeveralProcesses(StoreTest):
    def run_workers(self, size, work):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, os.path.abspath(__file__), "worker"]
            arguments = [str(size), os.path.join(folder, "rendezvous"), self.store, work]
            running = [subprocess.Popen(command + [str(rank)] + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True) for rank in range(size)]
            for process in running:
                output, _ = process.communicate(timeout=200)
                self.assertEqual(process.returncode, 0, output)

    @unittest.skipUnless(dist.is_gloo_available(), "this PyTorch has no gloo")
    def test_two_save_and_one_and_three_load(self):
        self.run_workers(2, "save")
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 2])
        quern.checkpoint.verify(self.store)
        tensors = {t.name: t for t in quern.checkpoint.info(self.store).tensors}
        self.assertEqual((tensors["w"].pieces, tensors["w"].shape), (2, (ROWS, COLUMNS)))
        plain = quern.checkpoint.load(self.store, names=["w", "h"], framework="torch")
        self.assertTrue(torch.equal(plain["w"], whole_tensor() * 1.000001))
        self.assertTrue(torch.equal(plain["h"], whole_tensor().bfloat16()))
        self.run_workers(1, "load")
        self.run_workers(3, "load")


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
    else:
        unittest.main()
