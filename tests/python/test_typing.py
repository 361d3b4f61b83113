"""mypy --strict over the package, but for the modules of checkpoints, which are not annotated."""
import os
import subprocess
import sys
import tempfile

from support import import_or_skip

import_or_skip("mypy")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def main():
    # A folder that is given stays, so that the next run reads what has changed since, and not NumPy's types again.
    with tempfile.TemporaryDirectory() as scratch:
        cache = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else scratch
        return subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", cache, "--config-file",
                               os.path.join(ROOT, "pyproject.toml"), "-p", "pyquern"],
                              cwd=os.path.join(ROOT, "bindings", "python")).returncode


if __name__ == "__main__":
    sys.exit(main())
