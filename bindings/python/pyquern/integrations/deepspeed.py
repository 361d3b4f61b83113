"""Checkpoints of DeepSpeed in stores, through engines.

    model, optimizer, _, _ = deepspeed.initialize(model=net, config=config)
    model.checkpoint_engine = QuernCheckpointEngine()       # on every rank, before the first save or load
    model.save_checkpoint("checkpoints")                    # as always
    model.load_checkpoint("checkpoints")

Where DeepSpeed writes a file (mp_rank_00_model_states.pt) there is a file of a hundred bytes then, which names a step in a
store. Each such file has a store of its own, `quern/mp_rank_00_model_states` in the folder that save_checkpoint() was given, so that
ranks do not meet and a file is a difference to the same file of an earlier tag.
"""
import logging
import os
import re

from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointEngine

from . import _pointer
from ._behind import SavesBehind

_log = logging.getLogger("quern")


def _loss_scalers():
    """DeepSpeed keeps objects of its own in its states: what a state dict may hold of them are their numbers."""
    from deepspeed.runtime.fp16 import loss_scaler

    return {cls: (dict_of, maker_of(cls)) for cls in (loss_scaler.LossScaler, loss_scaler.DynamicLossScaler)}


def dict_of(scaler):
    return {name: value for name, value in vars(scaler).items() if value is None or isinstance(value, (bool, int, float, str))}


def maker_of(cls):
    def make(values):
        made = cls.__new__(cls)
        vars(made).update(values)
        return made

    return make


class QuernCheckpointEngine(CheckpointEngine):
    """In the place of DeepSpeed's own checkpoint engine. config_params: not used, as DeepSpeed gives it.

    store: the folder of the stores; None: `quern` in the folder that is saved to. engine: options of pyquern.checkpoint.Engine (ring,
    threads, tiers...), of which each file has one, with a ring of its own. options: as in pyquern.checkpoint.save(); base is "newest"
    where it is not given. timeout: seconds that commit() waits at most.

    decoupled=False: save_checkpoint() returns when all files are durable; they are captured and coded side by side. decoupled=True:
    it returns at once, and DeepSpeed calls commit() before the next step of the optimizer, which waits until they are durable: all that
    the passes before it take is gained. Nothing of the state but what an optimizer's step changes may change meanwhile; tensors of up to
    64 KiB, such as running statistics, are copied.

    Files whose tag folder was removed while the run went on go from the stores at the next commit, unless a folder beside it has
    them, as after renaming. A tag that is moved elsewhere loses them: move the stores, too. Files that DeepSpeed wrote itself are
    loaded by it. No pickle is read from a store."""

    def __init__(self, config_params=None, store=None, engine=True, decoupled=False, timeout=1800.0, objects=None, **options):
        super().__init__(config_params)
        self.name = "QuernCheckpointEngine"
        self._store = None if store is None else os.path.abspath(store)
        self._decoupled, self._timeout = bool(decoupled), float(timeout)
        self._options = {"base": "newest", **options, "objects": {**_loss_scalers(), **(objects or {})}}
        self._behind = SavesBehind(engine or True)
        self._info = None
        self._files, self._leftover = {}, {}  # {path: (store, step, id)}; {store: {(step, id)}} that others needed

    def is_decoupled(self):
        return self._decoupled

    def preserves_storage_sharing(self):
        return False  # tensors are read by their elements: no copy is needed to keep a view's whole memory away

    def create(self, info):
        self._info = info

    def get_commit_info(self):
        return self._info

    def set_commit_info(self, info):
        self._info = info

    def save(self, state_dict, path):
        path = os.path.abspath(path)
        root = self._store or os.path.join(os.path.abspath(self._info.save_dir), "quern")
        store = os.path.join(root, os.path.splitext(os.path.basename(path))[0])
        named = re.search(r"(\d+)\D*$", str(self._info.tag))
        step = _pointer.free_step(store, int(named.group(1)) if named else 0, self._behind.steps_under_way(store))
        self._behind.save(store, state_dict, step, lambda saved: self._point(path, store, saved), **self._options)

    def _point(self, path, store, saved):
        before = _pointer.read(path)
        _pointer.write(path, store, saved.step, saved.id)
        if before is not None:
            self._leftover.setdefault(before[0], set()).add(before[1:])
        self._files[path] = store, saved.step, saved.id

    def _collect(self, folder):
        """Removes from the stores what no file of the tags in `folder` names any more: a tag may have been renamed."""
        if all(map(os.path.exists, self._files)) and not any(self._leftover.values()):
            return
        try:
            named = _pointer.named_in(folder)
        except (OSError, ValueError) as problem:
            _log.warning("%s: nothing was removed from the stores, as it is not known which checkpoints are named: %s", folder, problem)
            return
        for path in [path for path in self._files if not os.path.exists(path)]:
            store, *checkpoint = self._files.pop(path)
            self._leftover.setdefault(store, set()).add(tuple(checkpoint))
        for store, gone in self._leftover.items():
            kept = gone & named.get(os.path.realpath(store), set())
            self._leftover[store] = _pointer.collect(store, gone - kept) | kept  # until that file is gone, too

    def commit(self, info):
        """True once all files of the tag are durable and named. What failed is raised: DeepSpeed does not call the tag the latest
        then."""
        if not self._behind.settle(self._timeout):
            raise TimeoutError(f"{info.tag}: its files are not durable after {self._timeout} s")
        self._info = None
        self._collect(info.save_dir)
        return True

    def load(self, path, map_location=None):
        self._behind.settle(self._timeout)
        if _pointer.read(path) is None:
            from deepspeed.runtime.checkpoint_engine.torch_checkpoint_engine import TorchCheckpointEngine

            return TorchCheckpointEngine().load(path, map_location)
        return _pointer.load(path, map_location, self._options["objects"])

    def cleanup(self):
        """Waits for what is under way; DeepSpeed calls it at the end where it is decoupled."""
        self._behind.close()


__all__ = ["QuernCheckpointEngine"]
