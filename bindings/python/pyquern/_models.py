"""Models of learned codecs, for every later call of this process."""
from __future__ import annotations

import os

from ._calls import add_model_file


def add_model(model: str | os.PathLike[str] | bytes | bytearray | memoryview) -> str:
    """Gives a model file (.qmodel, what `quern train autoencoder` and `quern train superres` write) to all calls of this
    process that begin later. Its id.

    model: a path, or the bytes of a file, which are copied. codec="autoencoder" and codec="stencil", each with models of its
    own kind, encode with the one that settings={"model": id} names; streams that name a model outside of them find it by
    their id. Adding a model again changes nothing. Errors: OSError, CorruptStream (no model file, or a damaged one), Unsupported (a
    model of another kind). O(bytes)."""
    if isinstance(model, (str, os.PathLike)):
        with open(model, "rb") as file:
            return add_model_file(file.read())
    return add_model_file(bytes(model))
