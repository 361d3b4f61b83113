"""The Manager on ranks of torch.distributed (gloo): rank 0 saves, and all of them decide, stop and fail together."""
import os
import signal
import subprocess
import sys
import unittest

from support import StoreTest, import_or_skip

import_or_skip("numpy")
torch = import_or_skip("torch", minimum=(2, 0))
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    print("SKIP: this PyTorch has no torch.distributed with gloo")
    sys.exit(77)
import torch.distributed as dist  # noqa: E402
from pyquern.checkpoint import Manager  # noqa: E402


def raised(call):
    try:
        call()
    except Exception as problem:  # noqa: BLE001: compared with that of the other ranks
        return type(problem).__name__, str(problem)
    return None


class Part:
    def __init__(self, broken):
        self.broken = broken

    def state_dict(self):
        if self.broken:
            raise ValueError("no state here")
        return {"w": torch.ones(4)}


def worker(rank, size, rendezvous, store):
    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=size)
    manager = Manager(store, every=10, keep=2, base=None)
    assert manager.restore() is None
    saved = [manager.step(step, {"w": torch.full((4,), float(step))}, metrics={"loss": step}) for step in range(1, 41)]
    assert [one.step for one in saved if one is not None] == ([10, 20, 30, 40] if rank == 0 else []), saved
    assert manager.steps() == [30, 40]

    found = manager.restore()
    assert (found.step, found.metrics, found.state["w"].tolist()) == (40, {"loss": 40.0}, [40.0] * 4)
    # A failure of one rank alone is that of all of them, at once.
    assert raised(lambda: manager.save(41, {"p": Part(rank == 1)})) == (
        ("ValueError", "no state here") if rank == 1 else ("RuntimeError", "rank 1: no state here"))
    assert raised(lambda: manager.save(41, {"w": object() if rank == 0 else 1}))[0] == ("TypeError" if rank == 0 else "RuntimeError")
    # Damage that rank 0 finds is passed over by all.
    dist.barrier()
    if rank == 0:
        (name,) = [name for name in os.listdir(f"{store}/manifests") if name.startswith("000000000040")]
        os.truncate(f"{store}/data/{name.partition('-')[2]}/part-0000", 4100)
    dist.barrier()
    assert manager.restore().step == 30
    assert raised(lambda: manager.restore(step=40))[0] == "Error"
    assert manager.restore().step == 30

    # A signal that one rank alone gets stops all of them at one step.
    if rank == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    manager.step(47, {"w": torch.ones(4)})
    assert manager.should_stop and 47 in manager.steps()
    # Clocks that differ decide together as well.
    manager.close()
    manager = Manager(store, minutes=1e-9 if rank == size - 1 else 1e9, save_on_sigterm=False)
    manager.restore()
    saved = manager.step(48, {"w": torch.ones(4)})
    assert (saved is not None) == (rank == 0) and 48 in manager.steps()
    manager.close()
    dist.barrier()
    dist.destroy_process_group()


class Ranks(StoreTest):
    def test_two_ranks(self):
        rendezvous = self.store + ".rendezvous"
        ranks = [subprocess.Popen([sys.executable, __file__, str(rank), "2", rendezvous, self.store],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(2)]
        said = [rank.communicate(timeout=120)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], "\n".join(said))

    def test_a_manager_before_the_process_group_is_refused(self):
        os.environ.update(RANK="1", WORLD_SIZE="2")
        self.addCleanup(lambda: [os.environ.pop(name) for name in ("RANK", "WORLD_SIZE")])
        with self.assertRaisesRegex(RuntimeError, "make the Manager after torch.distributed.init_process_group"):
            Manager(self.store, every=1)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdecimal():
        worker(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
    else:
        unittest.main()
