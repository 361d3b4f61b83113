"""DeepSpeed on stores. With the package: training by ZeRO that is resumed in a new process has the losses of the run that was
not interrupted (QUERN_TEST_THOROUGH=1: DeepSpeed compiles parts of itself first). Without: the interface that DeepSpeed calls, as its class declares it."""
import abc
import dataclasses
import os
import shutil
import sys
import types
import unittest
import warnings

from forked import forked
from support import StoreTest, import_or_skip

import_or_skip("numpy")
torch = import_or_skip("torch", minimum=(2, 0))
os.environ.update(DS_ACCELERATOR="cpu", DS_BUILD_OPS="0", LOCAL_RANK="0")


def stand_in():
    """Modules with the classes of DeepSpeed that pyquern.integrations.deepspeed uses: abstract methods and defaults as there."""

    class CheckpointEngine(abc.ABC):
        def __init__(self, config_params=None):
            self.name = None

        create = abc.abstractmethod(lambda self, info: None)
        save = abc.abstractmethod(lambda self, state_dict, path: None)
        load = abc.abstractmethod(lambda self, path, map_location=None: None)
        commit = abc.abstractmethod(lambda self, info: None)

        def makedirs(self, path, exist_ok=False):
            os.makedirs(path, exist_ok=exist_ok)

    class TorchCheckpointEngine:
        def load(self, path, map_location=None):
            return torch.load(path, map_location=map_location, weights_only=False)

    class LossScaler:
        pass

    class DynamicLossScaler:
        pass

    root = "deepspeed.runtime."
    contents = {root + "checkpoint_engine.checkpoint_engine": {"CheckpointEngine": CheckpointEngine},
                root + "checkpoint_engine.torch_checkpoint_engine": {"TorchCheckpointEngine": TorchCheckpointEngine},
                root + "fp16.loss_scaler": {"LossScaler": LossScaler, "DynamicLossScaler": DynamicLossScaler}}
    for name, content in contents.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
            if end > 1:
                setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], sys.modules[".".join(parts[:end])])
        vars(sys.modules[name]).update(content)


try:
    import deepspeed
except ImportError:
    deepspeed = None
    stand_in()
import pyquern as quern  # noqa: E402
from pyquern.integrations.deepspeed import QuernCheckpointEngine  # noqa: E402

warnings.simplefilter("ignore")
torch.set_num_threads(1)
RING = {"ring": 4 << 20}


@dataclasses.dataclass
class Info:  # of one save_checkpoint(), as DeepSpeed hands it over
    tag: str
    save_dir: str
    save_latest: bool = True


class Interface(StoreTest):
    def save(self, engine, step, value):
        info = Info(f"global_step{step}", self.store)
        engine.makedirs(os.path.join(self.store, info.tag), exist_ok=True)
        engine.create(info)
        for name in ("mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"):
            engine.save({"w": torch.full((5000,), float(value)), "name": name}, self.path(step, name))
        self.assertTrue(engine.commit(info))

    def path(self, step, name="mp_rank_00_model_states.pt"):
        return os.path.join(self.store, f"global_step{step}", name)

    def test_create_save_commit_load(self):
        engine = QuernCheckpointEngine(engine=RING)
        self.assertFalse(engine.is_decoupled())
        for step in (1, 2, 3):
            self.save(engine, step, step)
        self.save(engine, 3, 33)  # the tag again: what was there before goes
        for step, value in ((1, 1), (2, 2), (3, 33)):
            self.assertLess(os.path.getsize(self.path(step)), 4096)
            self.assertEqual(engine.load(self.path(step))["w"].unique().tolist(), [value])
            loaded = QuernCheckpointEngine().load(self.path(step, "zero_pp_rank_0_mp_rank_00_optim_states.pt"), "cpu")
            self.assertEqual((loaded["name"][:4], float(loaded["w"][7])), ("zero", value))
        shutil.rmtree(os.path.join(self.store, "global_step1"))
        self.save(engine, 5, 5)
        engine.cleanup()
        self.assertEqual(quern.checkpoint.ls(os.path.join(self.store, "quern", "mp_rank_00_model_states")), [2, 4, 5])

    def test_a_tag_that_is_renamed_keeps_its_checkpoints(self):
        engine = QuernCheckpointEngine(engine=RING)
        self.save(engine, 1, 1)
        kept = os.path.join(self.store, "best")
        os.rename(os.path.join(self.store, "global_step1"), kept)
        self.save(engine, 2, 2)
        self.save(engine, 3, 3)
        self.assertEqual(engine.load(os.path.join(kept, "mp_rank_00_model_states.pt"))["w"].unique().tolist(), [1])
        shutil.rmtree(kept)
        self.save(engine, 4, 4)
        self.assertEqual(quern.checkpoint.ls(os.path.join(self.store, "quern", "mp_rank_00_model_states")), [2, 3, 4])
        engine.cleanup()

    def test_saves_that_may_be_dropped_are_refused(self):
        with self.assertRaisesRegex(ValueError, "when_full"):
            QuernCheckpointEngine(engine={"when_full": "skip"})

    def test_a_file_that_fails_fails_the_tag_and_others_load(self):
        engine = QuernCheckpointEngine(engine=RING, decoupled=True)
        self.save(engine, 1, 1)
        store = os.path.join(self.store, "quern", "mp_rank_00_model_states")
        shutil.rmtree(os.path.join(store, "tmp"))
        with open(os.path.join(store, "tmp"), "w"):
            pass
        with self.assertRaises(quern.checkpoint.Error):
            self.save(engine, 2, 2)
        self.assertFalse(os.path.exists(self.path(2)))
        self.assertEqual(engine.load(self.path(1))["w"][0], 1)
        own = os.path.join(self.store, "own.pt")
        torch.save({"x": 3}, own)
        self.assertEqual(engine.load(own), {"x": 3})
        engine.cleanup()


def train(folder, stage, steps, resume, decoupled):
    """Losses of the steps that were done here; saves after every third one."""
    deepspeed.init_distributed(dist_backend="gloo", auto_mpi_discovery=False, verbose=False,
                               init_method=f"file://{folder}.{stage}.{resume}.{steps}", rank=0, world_size=1)
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    config = {"train_batch_size": 16, "zero_optimization": {"stage": stage}, "bf16": {"enabled": stage > 0},
              "zero_allow_untested_optimizer": True}
    model, _, _, _ = deepspeed.initialize(model=net, config=config, optimizer=torch.optim.AdamW(net.parameters(), lr=1e-2))
    model.checkpoint_engine = QuernCheckpointEngine(engine=RING, decoupled=decoupled)
    losses = []
    if resume:
        path, client = model.load_checkpoint(folder)
        assert path is not None and client["note"] == "mine", (path, client)
    for step in range(model.global_steps, steps):
        generator = torch.Generator().manual_seed(step)
        x, y = (torch.randn(16, n, generator=generator).to(next(net.parameters()).dtype) for n in (8, 1))
        loss = (model(x) - y).square().mean()
        model.backward(loss)
        model.step()
        losses.append(loss.item().hex())
        if (step + 1) % 3 == 0:
            model.save_checkpoint(folder, client_state={"note": "mine"})
    model.checkpoint_engine.cleanup()
    return losses


@unittest.skipIf(deepspeed is None, "no deepspeed here")
@unittest.skipUnless(os.environ.get("QUERN_TEST_THOROUGH"), "minutes: set QUERN_TEST_THOROUGH=1")
class Real(StoreTest):
    def resumed(self, stage, decoupled):
        whole = forked(train, self.store + ".whole", stage, 8, False, False)
        first = forked(train, self.store, stage, 7, False, decoupled)
        self.assertEqual(first, whole[:7])
        self.assertEqual(forked(train, self.store, stage, 8, True, decoupled), whole[6:])

    def test_without_zero(self):
        self.resumed(0, False)

    def test_zero_1_decoupled(self):
        self.resumed(1, True)


if __name__ == "__main__":
    unittest.main()
