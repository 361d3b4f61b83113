"""python -m pyquern info | plugin-path | explore FILE | COMMAND...: what this package runs with, the folder of the HDF5 filter,
a page to choose a bound on, or the `quern` command that the wheel brings."""
from __future__ import annotations

import json
import os
import shutil
import sys

from ._loader import PACKAGE


def _bundled() -> str | None:
    """The command in the package; None in a tree or an installation that has its own."""
    path = os.path.join(PACKAGE, "bin", "quern")
    return path if os.access(path, os.X_OK) else None


def command() -> None:
    """Becomes the `quern` command with this program's arguments; the verb `explore` is the package's own."""
    if sys.argv[1:2] == ["explore"]:
        from ._explore.program import main as explore

        sys.exit(explore(sys.argv[2:]))
    path = _bundled()
    if path is None:
        own = os.path.realpath(sys.argv[0])
        path = next((found for found in [shutil.which("quern")] if found and os.path.realpath(found) != own), None)
    if path is None:
        sys.exit("quern: this installation of pyquern has no quern command; a wheel made by scripts/wheel.sh has, and "
                 "'cmake --build --preset release' makes build/release/bin/quern")
    os.execv(path, [path, *sys.argv[1:]])


def main() -> None:
    words = sys.argv[1:]
    if words == ["info"]:
        from ._build import build_info

        print(json.dumps(build_info(), indent=2))
    elif words == ["plugin-path"]:
        from ._hdf5_libraries import plugin_file

        print(os.path.dirname(plugin_file()))
    elif not words or words[0] in ("-h", "--help"):
        print(__doc__)
    else:
        command()


if __name__ == "__main__":
    main()
