"""Lightning's Trainer on a store: a run that is resumed in a new process has the losses of the run that was not interrupted."""
import logging
import os
import shutil
import unittest
import warnings

from forked import forked
from support import StoreTest, import_or_skip

import_or_skip("numpy")
torch = import_or_skip("torch", minimum=(2, 0))
try:
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint
except ImportError:
    pl = import_or_skip("pytorch_lightning", minimum=(2, 0))
    from pytorch_lightning.callbacks import ModelCheckpoint
import pyquern as quern  # noqa: E402
from pyquern.integrations import _pointer  # noqa: E402
from pyquern.integrations.lightning import QuernCheckpointIO  # noqa: E402

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
warnings.simplefilter("ignore")
torch.set_num_threads(1)


class Net(pl.LightningModule):
    def __init__(self, width=24):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
        self.losses = []

    def training_step(self, batch, _):
        loss = (self.net(batch[0]) - batch[1]).square().mean()
        self.losses.append(loss.item().hex())
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2)}


def batches():
    torch.manual_seed(7)
    data = torch.utils.data.TensorDataset(torch.randn(40, 8), torch.randn(40, 1))
    return torch.utils.data.DataLoader(data, batch_size=8, num_workers=0)


def train(folder, steps, resume=None, plugins=True, engine=None, **options):
    """Losses of the steps that were done here."""
    torch.manual_seed(1)
    net = Net()
    options = {"save_top_k": -1, "every_n_train_steps": 5, **options}
    trainer = pl.Trainer(
        max_steps=steps, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
        plugins=[QuernCheckpointIO(base=None, engine=engine)] if plugins else [], callbacks=[ModelCheckpoint(dirpath=folder, **options)])
    trainer.fit(net, batches(), ckpt_path=resume)
    return net.losses


def train_with(folder, options):
    return train(folder, 20, **options)


def train_with_engine(folder, steps, resume):
    return train(folder, steps, resume, engine={"ring": 4 << 20}, save_top_k=2, monitor="step", mode="max")


def names(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".ckpt"))


def pointed(folder):
    return sorted(_pointer.read(os.path.join(folder, name))[1] for name in names(folder))


class Lightning(StoreTest):
    def test_a_resumed_run_is_the_run(self):
        whole = forked(train, self.store, 22, None, False)
        self.assertEqual(len(whole), 22)
        folder = self.store + "2"
        self.assertEqual(forked(train, folder, 15), whole[:15])
        self.assertEqual(names(folder), ["epoch=0-step=5.ckpt", "epoch=1-step=10.ckpt", "epoch=2-step=15.ckpt"])
        self.assertEqual(quern.checkpoint.ls(f"{folder}/quern"), [5, 10, 15])
        self.assertTrue(all(os.path.getsize(f"{folder}/{name}") < 200 for name in names(folder)))
        self.assertEqual(forked(train, folder, 22, f"{folder}/epoch=1-step=10.ckpt"), whole[10:])
        self.assertEqual(quern.checkpoint.ls(f"{folder}/quern")[:3], [5, 10, 15])
        # A file of Lightning's own is resumed from as well.
        self.assertEqual(forked(train, folder, 22, f"{self.store}/epoch=3-step=20.ckpt"), whole[20:])

    def test_what_lightning_removes_goes(self):
        for options in ({"save_top_k": 2, "monitor": "loss", "save_last": True}, {"save_top_k": 1},
                        {"save_top_k": 2, "monitor": "loss", "save_last": "link"}):
            folder = f"{self.store}-{len(options)}-{options.get('save_last')}"
            forked(train_with, folder, options)
            self.assertEqual(sorted(set(pointed(folder))), quern.checkpoint.ls(f"{folder}/quern"), options)
            self.assertEqual(os.listdir(f"{folder}/quern/tmp"), [])
            for name in names(folder):
                self.assertIn("state_dict", QuernCheckpointIO().load_checkpoint(f"{folder}/{name}"))

    def test_an_engine_saves_while_training_goes_on(self):
        whole = forked(train, self.store, 22, None, False)
        folder = self.store + "2"
        self.assertEqual(forked(train_with_engine, folder, 15, None), whole[:15])
        self.assertEqual(names(folder), ["epoch=1-step=10.ckpt", "epoch=2-step=15.ckpt"])
        self.assertEqual(quern.checkpoint.ls(f"{folder}/quern"), [10, 15])
        self.assertEqual(forked(train_with_engine, folder, 22, f"{folder}/epoch=2-step=15.ckpt"), whole[15:])

    def test_a_save_of_the_engine_that_fails_removes_nothing(self):
        io, path = QuernCheckpointIO(engine={"ring": 2 << 20}), f"{self.store}/a.ckpt"
        io.save_checkpoint({"global_step": 1, "w": torch.ones(3)}, path)
        self.assertEqual(io.load_checkpoint(path)["w"].tolist(), [1.0] * 3)
        shutil.rmtree(f"{self.store}/quern/tmp")
        with open(f"{self.store}/quern/tmp", "w"):
            pass
        with self.assertLogs("quern", "ERROR"):
            io.save_checkpoint({"global_step": 2, "w": torch.ones(3)}, path + "2")
            io.remove_checkpoint(path)
            with self.assertRaises(quern.checkpoint.Error):
                io.teardown()
        self.assertEqual(sorted(os.listdir(self.store)), ["a.ckpt", "quern"])
        self.assertEqual(quern.checkpoint.ls(f"{self.store}/quern"), [1])

    def test_one_file_written_again_and_removed(self):
        io, path = QuernCheckpointIO(base=None), f"{self.store}/last.ckpt"
        for step in (5, 5, 6):
            io.save_checkpoint({"global_step": step, "w": torch.full((100,), float(step))}, path)
            self.assertEqual(io.load_checkpoint(path)["w"][0], step)
        self.assertEqual(quern.checkpoint.ls(f"{self.store}/quern"), [7])  # 6 was taken when 5 was saved again
        io.save_checkpoint({"global_step": 9, "w": torch.ones(3)}, path + "2")
        io.remove_checkpoint(path)
        self.assertFalse(os.path.exists(path))
        self.assertEqual(quern.checkpoint.ls(f"{self.store}/quern"), [9])

    def test_an_old_file_of_another_store_takes_nothing_along(self):
        """Steps count from 0 again where the store was thrown away and the small files were not."""
        path, store = f"{self.store}/last.ckpt", f"{self.store}/quern"
        for value in (1.0, 2.0):
            QuernCheckpointIO().save_checkpoint({"global_step": 100, "w": torch.full((3,), value)}, path)
            shutil.rmtree(store) if value == 1.0 else None
        self.assertEqual(QuernCheckpointIO().load_checkpoint(path)["w"].tolist(), [2.0] * 3)
        shutil.rmtree(store)
        io = QuernCheckpointIO()
        io.save_checkpoint({"global_step": 100, "w": torch.ones(3)}, path + "2")
        io.remove_checkpoint(path)
        self.assertEqual(quern.checkpoint.ls(store), [100])

    def test_a_folder_behind_a_symbolic_link(self):
        os.makedirs(f"{self.store}.real/deep/er")
        os.symlink(f"{self.store}.real/deep/er", f"{self.store}.link")
        io, path = QuernCheckpointIO(f"{self.store}.all", base=None), f"{self.store}.link/last.ckpt"
        for step in (1, 2):
            io.save_checkpoint({"global_step": step, "w": torch.ones(3)}, path)
            self.assertEqual(io.load_checkpoint(path)["global_step"], step)
        self.assertEqual(quern.checkpoint.ls(f"{self.store}.all"), [2])

    def test_sentences(self):
        io, path = QuernCheckpointIO(base=None), f"{self.store}/a.ckpt"
        with self.assertRaisesRegex(FileNotFoundError, "Checkpoint file not found"):
            io.load_checkpoint(path)
        with self.assertRaisesRegex(TypeError, "storage_options has no meaning here"):
            io.save_checkpoint({}, path, storage_options={})
        with self.assertRaisesRegex(ValueError, "give a path without a scheme"):
            io.save_checkpoint({}, "s3://a/b.ckpt")
        io.save_checkpoint({"global_step": 1, "w": torch.ones(3)}, path)
        io.remove_checkpoint(path)
        _pointer.write(path, f"{self.store}/quern", 1, "another")
        quern.checkpoint.save(f"{self.store}/quern", {"w": torch.zeros(3)}, step=1)
        with self.assertRaisesRegex(ValueError, "it was replaced since. To use what is there now, load it with pyquern.checkpoint.load"):
            io.load_checkpoint(path)

    def test_map_location(self):
        io, path = QuernCheckpointIO(), f"{self.store}/a.ckpt"
        io.save_checkpoint({"global_step": 1, "state": [{"w": torch.ones(3)}]}, path)
        self.assertEqual(io.load_checkpoint(path, map_location="meta")["state"][0]["w"].device.type, "meta")
        self.assertEqual(io.load_checkpoint(path, map_location=lambda storage, _: storage)["state"][0]["w"].tolist(), [1, 1, 1])


if __name__ == "__main__":
    unittest.main()
