"""Training checkpoints in a store.

    quern.checkpoint.save("runs/a", {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, step=500)
    state = quern.checkpoint.load("runs/a")                 # the newest that is whole
    with quern.checkpoint.open("runs/a", step=500) as saved:
        rows = saved["model.layer.weight"][10:20]           # a tensor of it, or a part

Tensors may be of PyTorch, NumPy, ml_dtypes or anything that speaks DLPack or the buffer protocol. Contiguous ones in host
memory are read where they lie; of views that skip elements, and of PyTorch tensors on a device, a copy in host memory is
made first and kept until the save is done. Names of tensors are the keys, joined by dots.
"""
import fnmatch

from ._library import Error
from ._reader import Checkpoint, Info, LazyTensor, TensorInfo, has
from ._state import BLOB, Flattened
from ._store import Saved, Store, Writer

__all__ = ["Checkpoint", "Error", "Info", "LazyTensor", "Manager", "RandomState", "Restored", "Saved", "Store", "TensorInfo",
           "Writer", "info", "load", "ls", "open", "save", "verify"]


class _Opened(Checkpoint):
    """A checkpoint that closes its store."""

    def close(self):
        super().close()
        self._store.close()


def save(path, state_dict, step, base=None, preset="exact", threads=0, parity=None, zstd_level=0, replace=False,
         progress=None, blobs=None):
    """Saves a state dict as the checkpoint `step` of the store at `path`, which is made when it is missing. Returns Saved.

    base: step of an earlier checkpoint that tensors may be differences to ("newest": the newest one; the same tensors,
    in dtype and shape); preset: what may be lost (docs of `quern checkpoint save`); parity: (k, m), m of k + m files may
    be lost; progress(done, total) is called with bytes and ends the save by returning False; blobs: {name: bytes}, opaque bytes that
    are kept with it (Checkpoint.blob)."""
    with Store(path, write=True, threads=threads) as store:
        if base == "newest":
            base = store.open().step if store.steps() else None
        flat = Flattened(state_dict)
        with store.begin(step, base, preset, parity, zstd_level, replace, progress=progress) as writer:
            for name, source in flat.tensors.items():
                writer.add(name, source)
            writer.add_blob(BLOB, flat.text.encode())
            for name, content in (blobs or {}).items():
                writer.add_blob(name, content)
            return writer.publish()


def load(path, step=None, names=None, framework=None, threads=0):
    """The state dict of the checkpoint `step` (None: the newest that is whole). With `names` (texts that may hold * and ?)
    only these tensors, as a flat dict. `framework`: see Checkpoint.state()."""
    with open(path, step, threads) as saved:
        if names is None:
            return saved.state(framework)
        globs = [names] if isinstance(names, str) else list(names)
        out = {}
        for glob in globs:
            found = [name for name in saved if fnmatch.fnmatchcase(name, glob)] if glob not in saved else [glob]
            if not found:
                raise KeyError(f"step {saved.step} has no tensor '{glob}'")
            for name in found:
                out[name] = saved[name]._read(framework or (saved[name]._kind if has(saved[name]._kind) else "numpy"))
        return out


def open(path, step=None, threads=0):  # noqa: A001: the name says what it does
    """A Checkpoint: a mapping from names to tensors that are read when they are used."""
    store = Store(path, threads=threads)
    try:
        return _Opened(store, step)
    except BaseException:
        store.close()
        raise


def ls(path):
    """Steps of the checkpoints in the store, ascending."""
    with Store(path, threads=1) as store:
        return store.steps()


def info(path, step=None):
    """What a checkpoint is: Info, with a TensorInfo for each tensor."""
    with open(path, step, threads=1) as saved:
        return saved.info


def verify(path, step=None, full=True, threads=0):
    """Raises Error when the checkpoint is not what was saved."""
    with Store(path, threads=threads) as store:
        store.verify(step, full)


from ._run_state import RandomState  # noqa: E402
from .manager import Manager, Restored  # noqa: E402: they use what is above
