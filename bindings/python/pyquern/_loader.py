"""Where the native libraries are: in the package (a wheel), in a build tree, in an installation, or where the loader looks."""
from __future__ import annotations

import ctypes
import glob
import os
from collections.abc import Iterator

from ._errors import LibraryNotFound

PACKAGE = os.path.dirname(os.path.abspath(__file__))
#: Build folders of the tree that hold a library, best first.
_PRESETS = ("release", "fast", "install", "dev", "package")


def _named(named: str, stem: str) -> str:
    """QUERN_LIBRARY is a folder, or one of the libraries; the others are beside it."""
    if os.path.isdir(named):
        return os.path.join(named, stem + ".so")
    if os.path.basename(named).startswith(stem + ".so"):
        return named
    return os.path.join(os.path.dirname(named), stem + ".so")


def _candidates(stem: str) -> Iterator[str]:
    named = os.environ.get("QUERN_LIBRARY")
    if named:
        yield _named(named, stem)
        return
    yield os.path.join(PACKAGE, "lib", stem + ".so.0")
    root = os.path.join(PACKAGE, "..", "..", "..")  # bindings/python/pyquern in the tree
    for preset in _PRESETS:
        yield os.path.join(root, "build", preset, "lib", stem + ".so")
    prefix = os.path.join(root, "..")  # share/quern/python/pyquern in an installation
    yield from sorted(glob.glob(os.path.join(prefix, "lib*", stem + ".so"))
                      + glob.glob(os.path.join(prefix, "lib", "*", stem + ".so")))
    yield stem + ".so.0"


def load(stem: str, target: str) -> tuple[ctypes.CDLL, str]:
    """The library `stem` ("libquern") and the path it was loaded from. `target`: what a build calls it. LibraryNotFound lists
    the places that were tried."""
    tried = []
    for path in _candidates(stem):
        if os.sep in path and not os.path.exists(path):
            tried.append(os.path.normpath(path))
            continue
        try:
            return ctypes.CDLL(path), path
        except OSError as problem:
            tried.append(f"{os.path.normpath(path)} ({problem})")
    raise LibraryNotFound(-1, f"{stem} was not found. Build it in quern's tree with 'cmake --preset release && cmake --build "
                              f"--preset release --target {target}', or set QUERN_LIBRARY to it or to its folder. "
                              "Tried:\n  " + "\n  ".join(tried))
