"""Folders of torch.distributed.checkpoint into a store and back: shards of two ranks, objects, types, and every bit."""
import os
import subprocess
import sys
import unittest

from support import StoreTest, import_or_skip

import_or_skip("numpy")
torch = import_or_skip("torch", minimum=(2, 6))
if not torch.distributed.is_available():
    print("SKIP: this PyTorch has no torch.distributed")
    sys.exit(77)
import pyquern as quern  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from pyquern import dcp_convert  # noqa: E402
from pyquern.dcp_convert import from_dcp, to_dcp  # noqa: E402
from pyquern.torch_dcp import QuernReader, QuernWriter  # noqa: E402
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter  # noqa: E402

ROWS, COLUMNS = 13, 5


class Loud:
    """Unpickling it is noticed."""

    made = 0

    def __setstate__(self, state):
        Loud.made += 1
        self.__dict__.update(state)


def full():
    bits = torch.arange(ROWS * COLUMNS, dtype=torch.int32).reshape(ROWS, COLUMNS) * 77777777
    return bits.view(torch.float32)  # NaN with payloads among them


def state_of(make):
    return {"model": {"w": make(full()), "h": make(full().bfloat16())}, "scalar": torch.tensor(3.5, dtype=torch.float64),
            "empty": torch.zeros(0, 4), "c": torch.randn(3, dtype=torch.complex64, generator=torch.manual_seed(1)),
            "f8": torch.arange(8, dtype=torch.uint8).view(torch.float8_e5m2), "epoch": 4, "text": {"list": ["a", torch.ones(2)]}}


def worker(rank, size, rendezvous, folder):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=size)
    mesh = init_device_mesh("cpu", (size,))
    try:
        dcp.save(state_of(lambda whole: distribute_tensor(whole, mesh, [Shard(0)])), storage_writer=FileSystemWriter(folder))
    finally:
        dist.destroy_process_group()


def bits(tensor):
    return tensor.contiguous().view(torch.uint8) if tensor.ndim else tensor.reshape(1).view(torch.uint8)


class Convert(StoreTest):
    def path(self, name):
        return os.path.join(os.path.dirname(self.store), name)

    def assert_same(self, a, b):
        if isinstance(a, torch.Tensor):
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
            self.assertTrue(torch.equal(bits(a), bits(b)))
        elif isinstance(a, dict):
            self.assertEqual(list(a), list(b))
            for key in a:
                self.assert_same(a[key], b[key])
        elif isinstance(a, list):
            self.assertEqual(len(a), len(b))
            for one, other in zip(a, b):
                self.assert_same(one, other)
        else:
            self.assertEqual(a, b)

    def load(self, reader):
        state = state_of(torch.zeros_like)
        state.update(epoch=0, text={"list": ["", torch.zeros(2)]}, c=torch.zeros(3, dtype=torch.complex64),
                     f8=torch.zeros(8, dtype=torch.uint8).view(torch.float8_e5m2), scalar=torch.tensor(0., dtype=torch.float64))
        dcp.load(state, storage_reader=reader, no_dist=True)
        return state

    def objects(self, folder):
        """The bytes of objects, as they lie in the folder."""
        metadata = FileSystemReader(folder).read_metadata()
        out = {}
        for index, where in metadata.storage_data.items():
            if not hasattr(metadata.state_dict_metadata[index.fqn], "size"):
                with open(os.path.join(folder, where.relative_path), "rb") as file:
                    file.seek(where.offset)
                    out[index.fqn] = file.read(where.length)
        return out, metadata.planner_data

    def round_trip(self, folder):
        from_dcp(folder, self.store, step=7)
        self.assertEqual(to_dcp(self.store, self.path("back")), 7)
        self.assertEqual(self.objects(self.path("back")), self.objects(folder))
        for reader in (FileSystemReader(folder), QuernReader(self.store), FileSystemReader(self.path("back"))):
            self.assert_same(self.load(reader), state_of(lambda whole: whole))
        quern.checkpoint.verify(self.store)

    def test_shards_of_two_ranks(self):
        here = os.path.abspath(__file__)
        workers = [subprocess.Popen([sys.executable, here, "worker", str(rank), "2", self.path("rendezvous"), self.path("old")])
                   for rank in range(2)]
        self.assertEqual([process.wait(timeout=120) for process in workers], [0, 0])
        self.round_trip(self.path("old"))
        model = quern.checkpoint.load(self.store, names="model.*", framework="torch")
        self.assertTrue(torch.equal(bits(model["model.w"]), bits(full())))

    def test_several_shares_are_one_checkpoint(self):
        limit, dcp_convert.SHARE_BYTES = dcp_convert.SHARE_BYTES, 200
        self.addCleanup(setattr, dcp_convert, "SHARE_BYTES", limit)
        dcp.save(state_of(lambda whole: whole), storage_writer=FileSystemWriter(self.path("old")), no_dist=True)
        self.round_trip(self.path("old"))
        self.assertEqual(quern.checkpoint.ls(self.store), [7])

    def test_optimizers_with_loss_and_against_a_base(self):
        model = torch.nn.Linear(64, 80)
        optimizer = torch.optim.AdamW(model.parameters())
        for step in range(1, 3):
            model(torch.randn(4, 64)).square().mean().backward()
            optimizer.step()
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            dcp.save(state, storage_writer=FileSystemWriter(self.path(f"old{step}")), no_dist=True)
            from_dcp(self.path(f"old{step}"), self.store, step=step, base="newest", preset="moments")
        back = {"model": {name: torch.zeros_like(value) for name, value in model.state_dict().items()}}
        dcp.load(back, storage_reader=QuernReader(self.store), no_dist=True)
        self.assert_same(back["model"], dict(model.state_dict()))
        self.assertGreater(sum(not t.lossless for t in quern.checkpoint.info(self.store).tensors), 0)

    def test_objects_are_not_unpickled(self):
        dcp.save({"w": torch.ones(3), "loud": Loud()}, storage_writer=FileSystemWriter(self.path("old")), no_dist=True)
        Loud.made = 0
        from_dcp(self.path("old"), self.store, step=1)
        to_dcp(self.store, self.path("back"))
        self.assertEqual(Loud.made, 0)
        self.assertEqual(self.objects(self.path("back")), self.objects(self.path("old")))

    def test_a_state_dict_of_quern_checkpoint(self):
        state = state_of(lambda whole: whole)
        quern.checkpoint.save(self.store, state, step=3)
        to_dcp(self.store, self.path("new"))
        self.assert_same(self.load(FileSystemReader(self.path("new"))), state)

    def test_what_quern_writer_saved(self):
        dcp.save(state_of(lambda whole: whole), storage_writer=QuernWriter(self.store, step=2), no_dist=True)
        to_dcp(self.store, self.path("new"), step=2)
        self.assert_same(self.load(FileSystemReader(self.path("new"))), state_of(lambda whole: whole))

    def test_refusals(self):
        with self.assertRaises(FileNotFoundError):
            from_dcp(self.path("nowhere"), self.store, step=1)
        with self.assertRaises(quern.checkpoint.Error):
            to_dcp(self.store, self.path("new"))
        dcp.save({"w": torch.ones(3)}, storage_writer=FileSystemWriter(self.path("old")), no_dist=True)
        from_dcp(self.path("old"), self.store, step=1)
        with self.assertRaisesRegex(quern.checkpoint.Error, "already"):
            from_dcp(self.path("old"), self.store, step=1)
        from_dcp(self.path("old"), self.store, step=1, replace=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
    else:
        unittest.main()
