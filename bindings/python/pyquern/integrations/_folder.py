"""A folder of files that a trainer wrote, as one checkpoint of a store, and back as a folder.

Of *.safetensors, and of files of torch.save that can be read without pickled code, the tensors are stored; of all other files the
bytes. What comes back: the same tensors, bit for bit, in files of the same format; all other files byte for byte.
"""
import json
import os

import torch

from .. import checkpoint as _checkpoint

BLOB = "quern.folder"
FORMAT = 1
_BYTES = "file:"
_LARGE = 1 << 16  # files of torch.save below that stay as they are


def _of_safetensors(path):
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})


def _of_torch(path):
    """What torch.save put into the file, or None where only its bytes can be kept."""
    if os.path.getsize(path) < _LARGE or not path.endswith((".pt", ".pth", ".bin")):
        return None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001: no file of torch.save, or one with code in it
        return None


def read(folder):
    """What is saved of the folder: (state, blobs, names of the files whose tensors are in the state)."""
    state, formats, blobs = {}, {}, {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            raise ValueError(f"{path}: a checkpoint with folders in it is spread over processes or over adapters; save such with "
                             "pyquern.torch_dcp.QuernWriter, or one folder at a time")
        if name.endswith(".safetensors"):
            state[name], metadata = _of_safetensors(path)
            formats[name] = {"safetensors": metadata}
            continue
        content = _of_torch(path)
        if content is not None:
            state[name], formats[name] = content, {"torch": True}
            continue
        with open(path, "rb") as file:
            blobs[_BYTES + name] = file.read()
    blobs[BLOB] = json.dumps({"format": FORMAT, "files": formats}).encode()
    return state, blobs, list(formats)


def _description(saved):
    if BLOB not in saved.info.blobs:
        raise ValueError(f"step {saved.step} is a checkpoint, but not of a folder; load it with pyquern.checkpoint.load()")
    document = json.loads(saved.blob(BLOB))
    if document.get("format") != FORMAT:
        raise ValueError(f"step {saved.step}: its folder has format {document.get('format')}; this quern reads format {FORMAT}")
    return document


def _put(path, write):
    """Lets write(path) make a file, which appears whole."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def write_back(store, step, folder):
    """Writes the files of a checkpoint into the folder, which is made when it is missing, each of them whole at once and over
    one that is there: that may be half of a later save. Returns their names."""
    os.makedirs(folder, exist_ok=True)

    def path_of(name):
        if os.path.basename(name) != name or name in ("", ".", ".."):
            raise ValueError(f"step {step}: '{name}' is no name of a file in a folder; nothing is written for it")
        return os.path.join(folder, name)

    with _checkpoint.open(store, step) as saved:
        formats = _description(saved)["files"]
        names = [name[len(_BYTES):] for name in saved.info.blobs if name.startswith(_BYTES)]
        paths = {name: path_of(name) for name in [*names, *formats]}
        state = saved.state("torch") if formats else {}
        for name in formats:
            _put(paths[name], lambda path, name=name: _write_state(path, state[name], formats[name]))
        for name in names:
            content = saved.blob(_BYTES + name)
            _put(paths[name], lambda path, content=content: _write_bytes(path, content))
    return list(paths)


def _write_bytes(path, content):
    with open(path, "wb") as file:
        file.write(content)


def _write_state(path, state, form):
    if "safetensors" in form:
        from safetensors.torch import save_file

        save_file(state, path, metadata=form["safetensors"] or None)
    else:
        torch.save(state, path)


def remove_files(folder, names):
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            os.remove(path)
