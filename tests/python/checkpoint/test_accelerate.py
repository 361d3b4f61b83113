"""accelerate on a store: a run that is resumed in a new process has the losses of the run that was not interrupted."""
import os
import shutil
import types
import unittest

from forked import forked
from support import StoreTest, import_or_skip

import_or_skip("numpy")
torch = import_or_skip("torch", minimum=(2, 0))
accelerate = import_or_skip("accelerate", minimum=(0, 30))
import pyquern as quern  # noqa: E402
from accelerate.utils import ProjectConfiguration  # noqa: E402
from pyquern.integrations.accelerate import attach  # noqa: E402

torch.set_num_threads(1)


def prepared(**options):
    torch.manual_seed(1)
    accelerator = accelerate.Accelerator(cpu=True, **options)
    model = torch.nn.Sequential(torch.nn.Linear(8, 500), torch.nn.Dropout(0.1), torch.nn.Linear(500, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    return accelerator, *accelerator.prepare(model, optimizer, schedule)


def train(folder, steps, store=None, resume=None, every=4):
    """Losses of the steps that were done here; a state is saved after each `every` steps."""
    accelerator, model, optimizer, schedule = prepared()
    if store:
        attach(accelerator, store)
    first = 0
    if resume is not None:
        accelerator.load_state(f"{folder}/step_{resume}")
        first = resume
    losses = []
    for step in range(first + 1, steps + 1):
        loss = model(torch.randn(16, 8)).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item().hex())
        if step % every == 0:
            accelerator.save_state(f"{folder}/step_{step}")
    return losses


def rotate(folder, store):
    """What stays of seven states, with a limit of two."""
    accelerator, model, optimizer, _ = prepared(
        project_config=ProjectConfiguration(project_dir=folder, automatic_checkpoint_naming=True, total_limit=2))
    attach(accelerator, store, base=None)
    for _ in range(7):
        accelerator.backward(model(torch.randn(16, 8)).square().mean())
        optimizer.step()
        accelerator.save_state()
    return [quern.checkpoint.ls(store), sorted(os.listdir(f"{folder}/checkpoints"))]


def what_stands_in_is_gone(folder, store):
    accelerator, model, optimizer, _ = prepared()
    attached = attach(accelerator, store)
    accelerator.backward(model(torch.randn(16, 8)).square().mean())
    optimizer.step()
    accelerator.save_state(f"{folder}/1")
    assert list(optimizer.state_dict()) == ["state", "param_groups"]
    accelerator._custom_objects.append(types.SimpleNamespace())  # save_state() fails on it, after its optimizers
    try:
        accelerator.save_state(f"{folder}/2")
    except AttributeError:
        pass
    else:
        raise AssertionError("no failure")
    accelerator._custom_objects.clear()
    assert list(optimizer.state_dict()) == ["state", "param_groups"]
    before = {key: value.clone() for key, value in model.state_dict().items()}
    accelerator.backward(model(torch.randn(16, 8)).square().mean())
    optimizer.step()
    accelerator.load_state(f"{folder}/1")
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    optimizer.load_state_dict(optimizer.state_dict())
    attached.detach()
    accelerator.save_state(f"{folder}/3")
    assert os.path.exists(f"{folder}/3/model.safetensors") and not os.path.exists(f"{folder}/3/quern.json")
    accelerator.load_state(f"{folder}/3")
    accelerator._optimizers.clear()
    attach(accelerator, store)
    try:
        accelerator.load_state(f"{folder}/1")
    except ValueError as problem:
        return str(problem)


def saved_again(folder, store):
    """Steps of the store after a folder was saved again, whose store had been thrown away, and after that once more."""
    accelerator, _, _, _ = prepared()
    found = []
    for _ in range(2):
        shutil.rmtree(store, ignore_errors=True)
        attached = attach(accelerator, store, base=None)
        accelerator.save_state(f"{folder}/500")
        accelerator.load_state(f"{folder}/500")
        attached.detach()
    found.append(quern.checkpoint.ls(store))
    attached = attach(accelerator, store, base=None)
    accelerator.save_state(f"{folder}/500")
    found.append(quern.checkpoint.ls(store))
    return found


class Accelerate(StoreTest):
    @classmethod
    def setUpClass(cls):
        prepared()  # what it imports late, so that forks need not
        torch.optim.AdamW([torch.zeros(1, requires_grad=True)]).step()

    def test_a_resumed_run_is_the_run(self):
        folder, store = self.store + ".states", self.store
        whole = forked(train, self.store + ".plain", 18)
        self.assertEqual(forked(train, folder, 10, store), whole[:10])
        self.assertEqual(quern.checkpoint.ls(store), [4, 8])
        files = {name: os.path.getsize(f"{folder}/step_8/{name}") for name in os.listdir(f"{folder}/step_8")}
        self.assertNotIn("model.safetensors", files)
        self.assertLess(files["optimizer.bin"], 2000)
        self.assertEqual(forked(train, folder, 18, store, 8), whole[8:])
        # States that accelerate wrote alone are loaded as before.
        self.assertEqual(forked(train, self.store + ".plain", 18, store, 12), whole[12:])
        # Both may be moved together.
        os.mkdir(self.store + ".moved")
        shutil.move(store, self.store + ".moved/store")
        shutil.move(folder, self.store + ".moved/store.states")
        self.assertEqual(forked(train, self.store + ".moved/store.states", 18, self.store + ".moved/store", 8), whole[8:])

    def test_folders_that_accelerate_removes_take_theirs_along(self):
        steps, folders = forked(rotate, self.store + ".project", self.store)
        self.assertEqual(folders, ["checkpoint_5", "checkpoint_6"])
        self.assertEqual(steps, [5, 6])

    def test_an_old_file_of_another_store_takes_nothing_along(self):
        self.assertEqual(forked(saved_again, self.store + ".states", self.store), [[500], [501]])

    def test_a_folder_behind_a_symbolic_link(self):
        os.makedirs(f"{self.store}.real/deep/er")
        os.symlink(f"{self.store}.real/deep/er", f"{self.store}.link")
        self.assertEqual(forked(saved_again, self.store + ".link", self.store), [[500], [501]])

    def test_nothing_stands_in_for_a_state_afterwards(self):
        said = forked(what_stands_in_is_gone, self.store + ".states", self.store)
        self.assertIn("1 models and 1 optimizers were saved, and 1 and 0 are prepared; prepare the same ones", said)

    def test_sharded_states_are_refused(self):
        fsdp = types.SimpleNamespace(distributed_type=types.SimpleNamespace(name="FSDP"))
        with self.assertRaisesRegex(ValueError, "accelerate runs as FSDP, .*save them with pyquern.torch_dcp.QuernWriter"):
            attach(fsdp, self.store)


if __name__ == "__main__":
    unittest.main()
