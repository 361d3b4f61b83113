"""Checkpoints of Lightning in a store.

    trainer = Trainer(plugins=[QuernCheckpointIO()], callbacks=[ModelCheckpoint(save_top_k=3, every_n_train_steps=500)])
    trainer.fit(model, ckpt_path="checkpoints/epoch=4-step=5000.ckpt")     # resumes, as with Lightning's own files

Where Lightning writes a .ckpt file there is a file of a hundred bytes then, which names the step in the store. Lightning counts,
links and removes these files as its own; what it removes goes from the store as well, unless what stays needs it. Works with
`lightning` and `pytorch_lightning` 2.x, Trainer and Fabric, on devices where rank 0 has the whole state (DDP).

    trainer = Trainer(plugins=[QuernCheckpointIO(engine={"ring": 8 << 30})], ...)      # saves are written while training goes on
"""
import os

try:
    from lightning.fabric.plugins.io import CheckpointIO, TorchCheckpointIO
except ImportError:
    from lightning_fabric.plugins.io import CheckpointIO, TorchCheckpointIO

from .. import checkpoint as _checkpoint
from . import _pointer
from ._behind import SavesBehind


def _base_classes():
    """CheckpointIO of `lightning` and that of `pytorch_lightning` are different classes; a Trainer takes only its own."""
    classes = [CheckpointIO]
    try:
        from lightning_fabric.plugins.io import CheckpointIO as other
    except ImportError:
        return tuple(classes)
    return tuple(classes if other is CheckpointIO else [CheckpointIO, other])


class QuernCheckpointIO(*_base_classes()):
    """store: the folder of the store; None: `quern` beside the .ckpt files. options: as in pyquern.checkpoint.save().

    A checkpoint's step in the store is its global_step, or the first free number above it where Lightning saves one step
    several times (last.ckpt). base="newest" makes later checkpoints differences to earlier ones.

    engine: options of pyquern.checkpoint.Engine, or True. Then save_checkpoint() returns once the state is copied into the
    engine's ring, and the file appears when the checkpoint is durable. A file is removed only after the saves before it have
    ended well. What failed is raised by the next save_checkpoint(), or at the end of fit() by teardown(). With a store of
    None, each folder of .ckpt files has an engine with a ring of its own."""

    def __init__(self, store=None, base="newest", preset="exact", engine=None, **options):
        super().__init__()
        self._behind = SavesBehind(engine) if engine else None
        self._store = None if store is None else os.path.abspath(store)
        self._options = {"base": base, "preset": preset, **options}
        self._leftover = {}  # store -> {(step, id)} that Lightning has removed and others needed

    def _store_of(self, path):
        return self._store or os.path.join(os.path.dirname(os.path.abspath(path)), "quern")

    def save_checkpoint(self, checkpoint, path, storage_options=None):
        if storage_options is not None:
            raise TypeError("storage_options has no meaning here: give QuernCheckpointIO the options of pyquern.checkpoint.save()")
        path = os.fspath(path)
        if "://" in path:
            raise ValueError(f"{path}: a store is a folder of this machine's file systems; give a path without a scheme")
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        store, wanted = self._store_of(path), int(checkpoint.get("global_step", 0))
        if self._behind is None:
            self._point(path, store, _checkpoint.save(store, checkpoint, _pointer.free_step(store, wanted), **self._options))
            return
        step = _pointer.free_step(store, wanted, self._behind.steps_under_way(store))
        self._behind.save(store, checkpoint, step, lambda saved: self._point(path, store, saved), **self._options)
        self._behind.fence()

    def _point(self, path, store, saved):
        before = _pointer.read(path)
        _pointer.write(path, store, saved.step, saved.id)
        if before is not None:
            self._remove(*before)

    def teardown(self):
        """Called at the end of fit(): waits for what is under way."""
        if self._behind is not None:
            self._behind.close()
            for store, gone in self._leftover.items():  # what could not go while the engine saved
                self._leftover[store] = _pointer.collect(store, gone)

    def load_checkpoint(self, path, map_location=None, weights_only=None, **_):
        """The checkpoint of a .ckpt file that save_checkpoint() wrote, or that Lightning wrote itself. Tensors are in host memory, or
        where `map_location` says as a device or its name. No pickle is read from a store, whatever weights_only is."""
        path = os.fspath(path)
        if self._behind is not None:
            self._behind.settle()
        if not os.path.exists(path):
            raise FileNotFoundError(f"Checkpoint file not found: {path}")
        if os.path.isdir(path) or _pointer.read(path) is None:
            given = {} if weights_only is None else {"weights_only": weights_only}
            return TorchCheckpointIO().load_checkpoint(path, map_location=map_location, **given)
        return _pointer.load(path, map_location)

    def remove_checkpoint(self, path):
        if self._behind is None:
            self._remove_file(os.fspath(path))
        else:
            self._behind.after(lambda: self._remove_file(os.fspath(path)))

    def _remove_file(self, path):
        found = None if os.path.islink(path) else _pointer.read(path)
        if found is None:
            TorchCheckpointIO().remove_checkpoint(path)
            return
        os.remove(path)
        self._remove(*found)

    def _remove(self, store, step, identity):
        self._leftover[store] = _pointer.collect(store, self._leftover.get(store, set()) | {(step, identity)})


__all__ = ["QuernCheckpointIO"]
