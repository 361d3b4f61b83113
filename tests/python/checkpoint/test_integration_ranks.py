"""Integrations on two ranks (gloo): a save that fails on rank 0 fails on all ranks, at once and with the reason."""
import datetime
import multiprocessing
import os
import sys
import time
import types
import unittest

from support import StoreTest, import_or_skip

import_or_skip("numpy")
torch = import_or_skip("torch", minimum=(2, 0))
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    print("SKIP: this PyTorch has no torch.distributed with gloo")
    sys.exit(77)
try:
    import accelerate
except ImportError:
    accelerate = None
try:
    import transformers
except ImportError:
    transformers = None
import pyquern as quern  # noqa: E402

_SECONDS = 20  # that ranks would wait for each other


def with_transformers(rank, folder, store):
    from pyquern.integrations.transformers import QuernCallback

    callback = QuernCallback(store)
    arguments = types.SimpleNamespace(output_dir=folder, save_total_limit=None)

    def save(step):
        state = types.SimpleNamespace(global_step=step, is_world_process_zero=rank == 0, best_model_checkpoint=None)
        callback.on_save(arguments, state, None)

    if rank == 0:
        for step in (1, 2):
            os.makedirs(f"{folder}/checkpoint-{step}")
            with open(f"{folder}/checkpoint-{step}/trainer_state.json", "w") as file:
                file.write("{}")
        os.mkdir(f"{folder}/checkpoint-1/inner")  # which is refused
    return lambda: save(1), lambda: save(2)


def with_accelerate(rank, folder, store):
    from pyquern.integrations.accelerate import attach

    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                      MASTER_PORT="29500")  # the group is there already
    accelerator = accelerate.Accelerator(cpu=True)
    model = torch.nn.Linear(3, 2)
    accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    attached = attach(accelerator, store)

    def fail():
        attached._options["preset"] = "none of the kind" if rank == 0 else "exact"
        try:
            accelerator.save_state(f"{folder}/1")
        finally:
            attached._options["preset"] = "exact"

    return fail, lambda: accelerator.save_state(f"{folder}/2")


def worker(rank, make, folder, store, results):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}.rendezvous", rank=rank, world_size=2,
                                         timeout=datetime.timedelta(seconds=_SECONDS))
    fail, save = make(rank, folder, store)
    begun = time.monotonic()
    try:
        fail()
        said = "nothing"
    except Exception as problem:  # noqa: BLE001: compared with that of the other rank
        said = f"{type(problem).__name__}: {problem}"
    took = time.monotonic() - begun
    if took < _SECONDS / 2:  # else the ranks are apart
        save()
    results.put((rank, said, took))
    results.close()
    results.join_thread()
    os._exit(0)


class Ranks(StoreTest):
    def both(self, make):
        """What rank 0 and rank 1 said."""
        context = multiprocessing.get_context("fork")
        folder, results = self.store + ".folder", context.Queue()
        os.mkdir(folder)
        ranks = [context.Process(target=worker, args=(rank, make, folder, self.store, results)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        found = sorted(results.get(timeout=3 * _SECONDS) for _ in ranks)
        for rank in ranks:
            rank.join()
        self.assertLess(max(took for _, _, took in found), _SECONDS / 2, found)
        self.assertEqual(quern.checkpoint.ls(self.store), [2])
        return [said for _, said, _ in found]

    @unittest.skipIf(transformers is None, "no transformers here")
    def test_transformers(self):
        first, second = self.both(with_transformers)
        self.assertRegex(first, "^ValueError: .*a checkpoint with folders in it")
        self.assertRegex(second, "^RuntimeError: .*a checkpoint with folders in it")

    @unittest.skipIf(accelerate is None, "no accelerate here")
    def test_accelerate(self):
        first, second = self.both(with_accelerate)
        self.assertRegex(first, "none of the kind")
        self.assertRegex(second, "none of the kind")


if __name__ == "__main__":
    unittest.main()
