"""Training checkpoints in a store.

    pyquern.checkpoint.save("runs/a", {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, step=500)
    state = pyquern.checkpoint.load("runs/a")                 # the newest that is whole in every value
    pyquern.checkpoint.load_into("runs/a", model, optimizer=optimizer)     # without a second copy of the model
    with pyquern.checkpoint.open("runs/a", step=500) as saved:
        rows = saved["model.layer.weight"][10:20]           # a tensor of it, or a part

Tensors may be of PyTorch, NumPy, ml_dtypes or anything that speaks DLPack or the buffer protocol, of every element type: each comes
back bit for bit (under a preset, within its bound), with the type, shape and class that it had. Contiguous ones in host memory
are read where they lie, until save() returns; of views that skip elements, and of PyTorch tensors on a device, a copy in host
memory is made first. Names of tensors are the keys, joined by dots.

Beside tensors a state dict may hold what docs/format-state-dict.md lists: numbers, texts, bytes, containers of the
standard library, named tuples, Enums, dataclasses, paths, times, dtypes. Other objects are refused by a TypeError that names the
hook: `objects=` or register(). Nothing is ever pickled, and loading runs no code that a file names.
"""
import fnmatch

from ._checkpoint.classes import REGISTERED
from ._checkpoint.engine import Engine, EngineStats, Save, Tier, TierStats, newest_of
from ._checkpoint.export import Exported, export
from ._checkpoint.library import Error
from ._checkpoint.load_into import LoadedInto
from ._checkpoint.load_into import load_into as _load_into
from ._checkpoint.reader import Checkpoint, Info, LazyTensor, TensorInfo
from ._checkpoint.restore import Restored, at_step, newest
from ._checkpoint.state import BLOB, Flattened
from ._checkpoint.store import Saved, Store, Writer

__all__ = ["Checkpoint", "Engine", "EngineStats", "Error", "Exported", "Info", "LazyTensor", "LoadedInto", "Manager",
           "RandomState", "Restored", "Resumed", "Save", "Saved", "Store", "TensorInfo", "Tier", "TierStats", "Writer", "export",
           "info", "load", "load_into", "ls", "newest_of", "open", "register",
           "restore_newest", "save", "verify"]


class _Opened(Checkpoint):
    """A checkpoint that closes its store."""

    def close(self):
        super().close()
        self._store.close()


def register(cls, to, from_, name=None):
    """Says how objects of exactly the class `cls` are saved, from now on and for all saves and loads of this process: `to(object)`
    gives a value that can be saved (a dict of tensors and numbers, say), `from_(value)` an object again. `name` stands in
    the checkpoint; without it "module:Class".

        pyquern.checkpoint.register(Vocabulary, to=lambda v: v.words, from_=Vocabulary)
    """
    REGISTERED.add(cls, to, from_, name)


def save(path, state_dict, step, base=None, preset="exact", threads=0, parity=None, zstd_level=0, replace=False,
         progress=None, objects=None, policy=None, roles=None, replay=None, tags=None,
         blobs=None):
    """Saves a state dict as the checkpoint `step` (0 to 2^64 - 2) of the store at `path`, which is made when it is missing.
    Returns Saved.

    base: step of an earlier checkpoint that tensors may be differences to, or "newest": the newest one that has no base
    itself, and none when it is time to store one whole again. What of a base is missing, damaged or of another shape is not used.
    parity: (k, m), m of k + m files may be lost. replace: the step may be there already, as after a resume.
    progress(done, total) is called with bytes and ends the save by returning False. objects: {class: (to, from_)}, as
    register() takes them, for this save. blobs: {name: bytes}, opaque bytes that are kept with it (Checkpoint.blob).

    preset, policy, roles, replay: as the options of `quern checkpoint save`. preset: what may be lost. policy: rules that come
    before the preset's; replay: the optimizer's rule, to store a step as its gradient; each is a dict, a JSON text, or the
    path of a file. roles: {glob: role} of tensors by their names ("param", "exp_avg", ...; "other": nothing of the kind).
    tags: {name: text or number}; numbers are metrics, by which collection can tell the best. They come back as
    info(path).tags, texts all.

        save("runs/a", state, step=500, base="newest", preset="moments", tags={"loss": 2.75}, roles={"ema.*": "param"},
             policy={"rules": [{"name": "*.lora_*", "mode": "exact"}]})

    Saved.lossy counts the tensors that lost something; a line of the logger "quern" says which. TypeError or ValueError names the place of what cannot be saved, before anything is written; Error is the library's, and
    then there is no new checkpoint. Tensors must not change until save() returns."""
    with Store(path, write=True, threads=threads) as store:
        flat = Flattened(state_dict, objects)
        with store.begin(step, base, preset, parity, zstd_level, replace, progress=progress, policy=policy, roles=roles,
                         replay=replay, tags=tags) as writer:
            for name, source in flat.tensors.items():
                writer.add(name, source)
            writer.add_blob(BLOB, flat.text.encode())
            for name, content in (blobs or {}).items():
                writer.add_blob(name, content)
            return writer.publish()


def load(path, step=None, names=None, framework=None, threads=0, classes=(), objects=None):
    """The state dict of the checkpoint `step`, or, without one, of the newest that is whole in every value: which steps were passed
    over, and why, is a warning of the logger "quern" (restore_newest() returns it). A step that is named and damaged is an
    Error; its sentence says which older steps are whole.

    names: texts that may hold * and ?; then only these tensors, as a flat dict. framework, classes, objects: see
    Checkpoint.state(). KeyError: there is no such tensor; ValueError: a class that the state dict names is missing."""

    def read(saved):
        return saved.state(framework, classes, objects) if names is None else _named(saved, names, framework)

    with Store(path, threads=threads) as store:
        return newest(store, path, read)[0] if step is None else at_step(store, path, step, read)


def restore_newest(path, framework=None, threads=0, classes=(), objects=None, tiers=()):
    """As load(path), with what was passed over: Restored(state, step, passed_over). Error where no checkpoint is whole, with
    what is wrong with each. tiers: further folders with copies of the store's checkpoints, as an Engine writes them; the newest
    that any of them has comes back, read twice, for it is checked before it is chosen.

        restored = pyquern.checkpoint.restore_newest("runs/a")
        model.load_state_dict(restored.state["model"])
        first_step = restored.step + 1
    """
    if tiers:
        path, step = newest_of([path, *(tier.path if isinstance(tier, Tier) else tier for tier in tiers)])
        return Restored(load(path, step, None, framework, threads, classes, objects), step, [])
    with Store(path, threads=threads) as store:
        return Restored(*newest(store, path, lambda saved: saved.state(framework, classes, objects)))


def load_into(path, target, step=None, strict=True, optimizer=None, key=None, optimizer_key=None, threads=0, classes=(),
              objects=None):
    """Reads a checkpoint straight into tensors that are there, without a second copy of the model. Returns
    LoadedInto(step, missing, unexpected, passed_over).

    target: a torch.nn.Module, or a (nested) dict whose tensors are read into and whose other values are replaced. optimizer: a
    torch.optim.Optimizer to be restored too. key, optimizer_key: where in the saved state dict they are ("model"; a tuple
    for keys within keys); None: found by their names. strict: ValueError where the target has names that the checkpoint
    lacks, or the other way round; else they are in the result.

    Names, shapes and dtypes are compared before anything is written: ValueError lists what does not fit, and the target
    is as it was. Only damage that shows up in the values leaves a target half-written: without `step` an older
    checkpoint is read then, with it Error is raised. Keys are taken as they are: hooks of modules that rename them on loading do
    not run. Sharded tensors are for pyquern.torch_dcp."""
    with Store(path, threads=threads) as store:

        def read(saved):
            return _load_into(saved, target, strict, optimizer, key, optimizer_key, classes, objects)

        if step is not None:
            missing, unexpected = at_step(store, path, step, read)
            return LoadedInto(step, missing, unexpected, {})
        (missing, unexpected), found, passed_over = newest(store, path, read)
        return LoadedInto(found, missing, unexpected, passed_over)


def _named(saved, names, framework):
    globs = [names] if isinstance(names, str) else list(names)
    known = list(saved) + saved.other_names()
    out = {}
    for glob in globs:
        found = [name for name in known if fnmatch.fnmatchcase(name, glob)] if glob not in known else [glob]
        if not found:
            raise KeyError(f"step {saved.step} has no tensor '{glob}'")
        for name in found:
            lazy = saved[name]
            out[name] = lazy._read(framework or lazy._default_kind())
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


from ._checkpoint.run_state import RandomState  # noqa: E402
from .manager import Manager, Resumed  # noqa: E402: they use what is above
