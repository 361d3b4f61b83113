"""torch.distributed.checkpoint where something goes wrong: every rank ends, soon, with the sentence."""
import glob
import importlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest

from support import StoreTest, import_or_skip

import_or_skip("numpy")
torch = import_or_skip("torch", minimum=(2, 3))
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    print("SKIP: this PyTorch has no torch.distributed with gloo")
    sys.exit(77)
import pyquern as quern  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from pyquern.torch_dcp import QuernReader, QuernWriter  # noqa: E402
from test_torch_dcp import sharded  # noqa: E402
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402

SECONDS = 10
ODD = getattr(torch, "float8_e8m0fnu", torch.float8_e4m3fnuz)  # stores have no such type


def values():
    return torch.arange(40000, dtype=torch.float32).reshape(200, 200) * 1e-3


def state(factor=1.0):
    return {"w": sharded(values() * factor), "same": torch.arange(6.0) * factor, "epoch": 4}


def save(store, step, factor=1.0, **options):
    dcp.save(state(factor), storage_writer=QuernWriter(store, step=step, threads=1, **options))


def there_already(store):
    save(store, 1)



def no_folder(store):
    save("/proc/nowhere", 1)


def in_the_middle(store):
    # A disk that is full for one of the ranks, while it writes.
    if dist.get_rank() == dist.get_world_size() - 1:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    save(store, 2)


def other_exception(store):
    class Failing(QuernWriter):
        def write_data(self, plan, planner):
            if dist.get_rank() == 1:
                raise OSError(28, "No space left on device")
            return super().write_data(plan, planner)

    dcp.save(state(), storage_writer=Failing(store, step=2, threads=1))


def damaged(store):
    dcp.load(state(0.0), storage_reader=QuernReader(store, step=5, threads=1))


FAILURES = {"there_already": "is in the store already", "no_folder": "/proc/nowhere",
            "in_the_middle": "part", "other_exception": "No space left", "damaged": "part"}


def worker(rank, size, rendezvous, store, works):
    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=size)
    try:
        for work in works.split(","):
            if work == "save":
                save(store, 1)
            elif work == "again":
                save(store, 1, 2.0, replace=True)
            elif work == "newest":
                save(store, 3 + size, 1.0000001, base="newest")
            elif work == "load":
                room = state(0.0)
                dcp.load(room, storage_reader=QuernReader(store, threads=1))
                assert torch.equal(room["w"].full_tensor(), values() * 1.0000001)
            else:
                begun = time.monotonic()
                try:
                    globals()[work](store)
                    raise AssertionError(f"{work} did not fail")
                except CheckpointException as problem:
                    assert FAILURES[work] in str(problem), f"{work}: {problem}"
                took = time.monotonic() - begun
                assert took < SECONDS, f"{work} took {took} s"
            dist.barrier()
    finally:
        dist.destroy_process_group()


def launch(store, phases):
    """Phases "SIZE:WORK,WORK": so many ranks, forked from one process that has PyTorch loaded and no threads yet; or
    "STEP:damage"."""
    importlib.import_module("torch._dynamo")  # by DTensor's first use; once, before there are ranks
    for phase in phases:
        size, _, works = phase.partition(":")
        if works == "damage":
            damage(store, int(size))
            continue
        with tempfile.TemporaryDirectory() as folder:
            ranks = []
            for rank in range(int(size)):
                ranks.append(os.fork())
                if ranks[-1] == 0:
                    try:
                        worker(rank, int(size), os.path.join(folder, "rendezvous"), store, works)
                        os._exit(0)
                    except BaseException:
                        traceback.print_exc()
                        sys.stderr.flush()
                        os._exit(1)
            if any([os.waitpid(rank, 0)[1] for rank in ranks]):
                sys.exit(1)


def damage(store, step):
    data, = glob.glob(os.path.join(store, "manifests", f"{step:012d}*"))
    os.remove(os.path.join(store, "data", os.path.basename(data).partition("-")[2], "part-0000"))


class Failures(StoreTest):
    def test_every_rank_ends_with_the_sentence(self):
        phases = ["2:save,there_already,no_folder,other_exception,newest,in_the_middle", "3:newest,load",
                  "5:damage", "3:damaged,there_already,in_the_middle"]
        done = subprocess.run([sys.executable, "-W", "ignore", os.path.abspath(__file__), "launch", self.store, *phases],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 5, 6])


class OneProcess(StoreTest):
    def test_options_are_those_of_save(self):
        w = torch.randn(100, 100)
        for number, options in enumerate(({}, {"base": "newest"}, {"replace": True, "base": "newest"}, {"parity": (2, 1)})):
            dcp.save({"model": {"w": w + number * 1e-7}},
                     storage_writer=QuernWriter(self.store, step=10 if "replace" in options else number, **options))
        self.assertEqual(quern.checkpoint.info(self.store, 1).base, 0)
        self.assertEqual(quern.checkpoint.info(self.store, 3).parity, (2, 1))
        for _ in range(2):
            dcp.save({"x": w}, storage_writer=QuernWriter(self.store, step=20, replace=True))
        self.assertEqual(quern.checkpoint.ls(self.store), [0, 1, 3, 10, 20])

    def test_every_dtype_and_any_name(self):
        state = {"complex": torch.randn(3, 4, dtype=torch.complex64), "odd": torch.arange(200, dtype=torch.uint8).view(ODD),
                 "high": torch.randn((2,) * 9), "nul\0": {"a\0b": torch.ones(2), "text\0": "x\0"}}
        dcp.save(state, storage_writer=QuernWriter(self.store, step=1))
        room = {"complex": torch.zeros(3, 4, dtype=torch.complex64), "odd": torch.zeros(200, dtype=torch.uint8).view(ODD),
                "high": torch.zeros((2,) * 9), "nul\0": {"a\0b": torch.zeros(2), "text\0": ""}}
        dcp.load(room, storage_reader=QuernReader(self.store))
        self.assertTrue(torch.equal(room["complex"], state["complex"]) and torch.equal(room["high"], state["high"]))
        self.assertTrue(torch.equal(room["odd"].view(torch.uint8), state["odd"].view(torch.uint8)))
        self.assertEqual((room["nul\0"]["a\0b"].tolist(), room["nul\0"]["text\0"]), ([1, 1], "x\0"))

    def test_what_save_made_is_read_in_its_types(self):
        w = torch.randn(4, 6, dtype=torch.complex128)
        quern.checkpoint.save(self.store, {"m": {"w": w, "row": w[1]}}, step=1)
        room = {"m.w": torch.zeros(4, 6, dtype=torch.complex128), "m.row": torch.zeros(6, dtype=torch.complex128)}
        dcp.load(room, storage_reader=QuernReader(self.store))
        self.assertTrue(torch.equal(room["m.w"], w) and torch.equal(room["m.row"], w[1]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["launch"]:
        launch(sys.argv[2], sys.argv[3:])
    else:
        unittest.main()
