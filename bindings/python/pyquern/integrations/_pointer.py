"""A small file in the place of a checkpoint that a trainer names by a path: it says where in which store the checkpoint is."""
import json
import os

FORMAT = 1
_MOST = 4096  # bytes; checkpoints of other formats are longer or no such text


def write(path, store, step, identity):
    """Atomically. The store is named from the pointer's folder, so that both may be moved together: by real paths, because
    `..` behind a symbolic link is not the folder that the link lies in."""
    path, folder = os.fspath(path), os.path.realpath(os.path.dirname(os.path.abspath(path)))
    where = os.path.relpath(os.path.realpath(store), folder)
    text = json.dumps({"quern": FORMAT, "store": where, "step": step, "id": identity}) + "\n"
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def read(path):
    """(store, step, id), or None when the file is none of these."""
    path = os.fspath(path)
    if not os.path.isfile(path) or os.path.getsize(path) > _MOST:
        return None
    with open(path, "rb") as file:
        content = file.read()
    try:
        found = json.loads(content)
    except ValueError:
        return None
    if not isinstance(found, dict) or "quern" not in found:
        return None
    if found["quern"] != FORMAT:
        raise ValueError(f"{path}: this pointer has format {found['quern']}; this quern reads format {FORMAT}")
    return os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(path)), found["store"])), found["step"], found["id"]


def named_in(folder):
    """{store: {(step, id)}} of all pointers in the folders of a folder. OSError where one cannot be listed or read."""
    out = {}
    for entry in os.scandir(folder):
        if not entry.is_dir():
            continue
        for name in os.listdir(entry.path):
            found = read(os.path.join(entry.path, name))
            if found is not None:
                out.setdefault(os.path.realpath(found[0]), set()).add(found[1:])
    return out


def free_step(store, wanted, under_way=frozenset()):
    """`wanted`, or the first number above it that no checkpoint of the store has, and none that is being saved."""
    from .. import checkpoint

    taken = set(checkpoint.ls(store)) if os.path.isdir(os.path.join(store, "manifests")) else set()
    while wanted in taken or wanted in under_way:
        wanted += 1
    return wanted


def load(path, map_location=None, objects=None):
    """The state dict that the pointer names, its tensors in host memory, or where `map_location` says as a device or its name; an
    error when another checkpoint has come to that step since."""
    from .. import checkpoint

    store, step, identity = read(path)
    with checkpoint.open(store, step) as saved:
        if saved.info.id != identity:
            raise ValueError(f"{path}: step {step} of {store} is not the checkpoint that this file was written for; it was replaced "
                             f"since. To use what is there now, load it with pyquern.checkpoint.load({store!r}, step={step})")
        state = saved.state(objects=objects)
    return state if map_location is None or callable(map_location) else _moved(state, map_location)


def _moved(value, device):
    import torch

    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        for key in value:
            value[key] = _moved(value[key], device)
        return value
    if type(value) in (list, tuple):
        return type(value)(_moved(item, device) for item in value)
    return value


def collect(store, gone):
    """Removes the checkpoints `gone`, a set of (step, id), where nothing needs them. A step that has another id is another
    checkpoint, which stays. Returns those of `gone` that stay for others, or because the store is in use."""
    from .._checkpoint.library import Error
    from .._checkpoint.manifests import manifests, steps_of
    from .._checkpoint.store import Store

    if not os.path.isdir(os.path.join(store, "manifests")):
        return set()
    try:
        go = steps_of(store, gone)
        if go:
            with Store(store, write=True, threads=1) as opened:
                opened.collect(None, go)
    except Error:
        pass  # the store is in use, most likely: the next save tries again
    return set(gone) & set(manifests(store, hidden=False))
