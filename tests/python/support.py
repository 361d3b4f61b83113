"""A store in a folder that goes with the test, and tests that a missing module skips."""
import importlib
import os
import sys
import tempfile
import unittest


def import_or_skip(name, minimum=None):
    """The module, or the whole file ends as skipped: a line that says why, and exit status 77."""
    try:
        module = importlib.import_module(name)
    except ImportError as problem:
        print(f"SKIP: no {name} here ({problem})")
        sys.exit(77)
    version = getattr(module, "__version__", "0").split("+")[0]
    if minimum and tuple(int(part) for part in version.split(".")[:2]) < minimum:
        print(f"SKIP: {name} {version} is older than {minimum[0]}.{minimum[1]}")
        sys.exit(77)
    return module


class StoreTest(unittest.TestCase):
    def setUp(self):
        # In memory where there is such a folder: saves sync their files.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        folder = tempfile.TemporaryDirectory(dir=memory)
        self.addCleanup(folder.cleanup)
        self.store = os.path.join(folder.name, "store")
