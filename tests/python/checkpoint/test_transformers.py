"""The Hugging Face Trainer on a store: a run that is resumed in a new process has the losses of the run that was not interrupted."""
import os
import shutil
import tempfile
import types
import unittest
import warnings

from forked import forked
from support import StoreTest, import_or_skip

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ["HF_HUB_OFFLINE"] = "1"
import_or_skip("numpy")
torch = import_or_skip("torch", minimum=(2, 0))
import_or_skip("safetensors")
import_or_skip("accelerate")
transformers = import_or_skip("transformers", minimum=(4, 40))
import pyquern as quern  # noqa: E402
from pyquern.integrations import _folder  # noqa: E402
from pyquern.integrations.transformers import QuernCallback, prepare  # noqa: E402

warnings.simplefilter("ignore")
torch.set_num_threads(1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 3000), torch.nn.Dropout(0.1), torch.nn.Linear(3000, 1))
        self.losses = []

    def forward(self, x, labels):
        loss = (self.net(x)[:, 0] - labels).square().mean()
        self.losses.append(loss.item().hex())
        return {"loss": loss, "logits": loss}


class Data(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(5)
        self.x, self.y = torch.randn(48, 8, generator=generator), torch.randn(48, generator=generator)

    def __len__(self):
        return 48

    def __getitem__(self, index):
        return {"x": self.x[index], "labels": self.y[index]}


def trainer_of(net, folder, steps, callback=None, limit=None):
    arguments = transformers.TrainingArguments(
        folder, max_steps=steps, per_device_train_batch_size=8, save_steps=4, logging_steps=100, report_to=[], use_cpu=True,
        disable_tqdm=True, save_total_limit=limit, dataloader_num_workers=0, seed=3, learning_rate=1e-2,
        lr_scheduler_type="constant_with_warmup", warmup_steps=6)
    return transformers.Trainer(net, arguments, train_dataset=Data(), callbacks=[] if callback is None else [QuernCallback(**callback)])


def train(folder, steps, callback=None, resume=None, limit=None):
    """Losses of the steps that were done here."""
    torch.manual_seed(1)
    net = Net()
    trainer_of(net, folder, steps, callback, limit).train(resume_from_checkpoint=resume)
    return net.losses


def save_folder(store, folder, step):
    """Names of the files whose tensors the store has."""
    state, blobs, large = _folder.read(folder)
    quern.checkpoint.save(store, state, step, blobs=blobs)
    return large


class HuggingFace(StoreTest):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:  # what it imports late, so that forks need not
            trainer_of(Net(), folder, 1).create_optimizer()

    def test_a_resumed_run_is_the_run(self):
        whole = forked(train, self.store, 18)
        self.assertEqual(len(whole), 18)
        folder = self.store + "2"
        options = {"store": f"{folder}.store", "remove_large": True}
        self.assertIsNone(prepare(folder, options["store"]))
        self.assertEqual(forked(train, folder, 10, options), whole[:10])
        self.assertEqual(quern.checkpoint.ls(options["store"]), [4, 8, 10])
        self.assertFalse({"model.safetensors", "optimizer.pt"} & set(os.listdir(f"{folder}/checkpoint-8")))
        path = prepare(folder, options["store"], step=8)
        self.assertEqual(path, f"{folder}/checkpoint-8")
        self.assertEqual(sorted(os.listdir(path)), sorted(os.listdir(f"{self.store}/checkpoint-8")))
        self.assertEqual(forked(train, folder, 18, options, path), whole[8:])
        # A folder that is gone is written anew.
        shutil.rmtree(folder)
        self.assertEqual(forked(train, folder, 18, options, prepare(folder, options["store"], step=12)), whole[12:])

    def test_what_the_trainer_keeps_stays(self):
        forked(train, self.store, 22, {"base": None}, None, 2)
        self.assertEqual(quern.checkpoint.ls(f"{self.store}/quern"), [20, 22])
        self.assertEqual(sorted(name for name in os.listdir(self.store) if name != "quern"), ["checkpoint-20", "checkpoint-22"])

    def test_an_engine_saves_while_training_goes_on(self):
        options = {"remove_large": True, "engine": {"ring": 4 << 20}, "base": None}
        first = forked(train, self.store, 10, options, None, 2)
        self.assertEqual(quern.checkpoint.ls(f"{self.store}/quern"), [8, 10])
        self.assertNotIn("model.safetensors", os.listdir(f"{self.store}/checkpoint-10"))
        again = forked(train, self.store, 10, options, prepare(self.store, step=8), 2)
        self.assertEqual(again, first[8:])

    def test_a_damaged_checkpoint_is_passed_over(self):
        forked(train, self.store, 8, {"base": None, "remove_large": True})
        store = f"{self.store}/quern"
        with quern.checkpoint.open(store, 8) as saved:
            part = f"{store}/data/{saved.info.id}/part-0000"
        with open(part, "r+b") as file:
            middle = os.path.getsize(part) // 2
            file.seek(middle)
            byte = file.read(1)
            file.seek(middle)
            file.write(bytes([byte[0] ^ 1]))
        with self.assertLogs("quern", "WARNING") as said:
            self.assertEqual(prepare(self.store), f"{self.store}/checkpoint-4")
        self.assertIn("step 8 is passed over", said.output[0])

    def test_sentences(self):
        arguments = types.SimpleNamespace(load_best_model_at_end=True, fsdp=None, deepspeed=None)
        with self.assertRaisesRegex(ValueError, "load_best_model_at_end reads files that remove_large=True removes"):
            QuernCallback(remove_large=True).on_train_begin(arguments, None, None)
        arguments.load_best_model_at_end, arguments.fsdp = False, ["full_shard"]
        with self.assertRaisesRegex(ValueError, "FSDP and DeepSpeed write checkpoints in pieces"):
            QuernCallback().on_train_begin(arguments, None, None)
        quern.checkpoint.save(self.store, {"w": torch.ones(3)}, step=3)
        with self.assertRaisesRegex(ValueError, "has no step 4; it has \\[3\\]"):
            prepare(self.store + "2", self.store, step=4)
        with self.assertRaisesRegex(ValueError, "step 3 is a checkpoint, but not of a folder"):
            prepare(self.store + "2", self.store)


class Folders(StoreTest):
    def test_bytes_and_tensors(self):
        from safetensors.torch import load_file, save_file

        folder, back = self.store + ".folder", self.store + ".back"
        os.mkdir(folder)
        tensors = {"a.b": torch.randn(300, 90), "half": torch.randn(5).to(torch.bfloat16), "empty": torch.empty(0, 3)}
        save_file(tensors, f"{folder}/model.safetensors", metadata={"format": "pt"})
        moments = {"state": {0: {"exp_avg": torch.randn(300, 90), "step": torch.tensor(3.0)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
        torch.save(moments, f"{folder}/optimizer.pt")
        torch.save({"code": train, "w": torch.randn(30000)}, f"{folder}/code.pt")  # cannot be read without code: its bytes stay
        for name, content in (("small.json", b"{}"), ("empty", b""), ("large.bin", os.urandom(100000))):
            with open(f"{folder}/{name}", "wb") as file:
                file.write(content)
        large = save_folder(self.store, folder, 7)
        self.assertEqual(large, ["model.safetensors", "optimizer.pt"])
        self.assertEqual(sorted(_folder.write_back(self.store, 7, back)), sorted(os.listdir(folder)))
        for name in sorted(set(os.listdir(folder)) - {"optimizer.pt"}):
            with open(f"{folder}/{name}", "rb") as one, open(f"{back}/{name}", "rb") as other:
                self.assertEqual(one.read(), other.read(), name)
        again = torch.load(f"{back}/optimizer.pt", weights_only=True)
        self.assertTrue(torch.equal(again["state"][0]["exp_avg"], moments["state"][0]["exp_avg"]))
        self.assertEqual(again["param_groups"], moments["param_groups"])
        self.assertEqual(load_file(f"{back}/model.safetensors")["half"].dtype, torch.bfloat16)
        os.truncate(f"{back}/model.safetensors", 1000)  # as a save that was killed leaves it
        _folder.write_back(self.store, 7, back)
        self.assertTrue(torch.equal(load_file(f"{back}/model.safetensors")["a.b"], tensors["a.b"]))
        self.assertEqual([name for name in os.listdir(back) if name.endswith(".tmp")], [])
        os.mkdir(f"{folder}/inner")
        with self.assertRaisesRegex(ValueError, "a checkpoint with folders in it is spread over processes"):
            save_folder(self.store, folder, 8)

    def test_names_that_lead_out_of_the_folder_are_refused(self):
        import json

        for name in ("../evil", "/tmp/evil", "..", ""):
            description = json.dumps({"format": 1, "files": {}}).encode()
            quern.checkpoint.save(self.store, {}, step=1, replace=True, blobs={"quern.folder": description, "file:" + name: b"x"})
            with self.assertRaisesRegex(ValueError, "is no name of a file in a folder"):
                _folder.write_back(self.store, 1, self.store + ".back")


if __name__ == "__main__":
    unittest.main()
