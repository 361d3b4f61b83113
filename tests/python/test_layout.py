"""The structs of pyquern._capi are those of quern.h, as a C compiler lays them out."""
import ctypes
import os
import subprocess
import sys

from pyquern import _capi


def main():
    lines = subprocess.run([os.environ["QUERN_LAYOUT"]], check=True, capture_output=True, text=True).stdout.split("\n")
    seen = set()
    for line in filter(None, lines):
        struct, member, number = line.split()
        if struct == "abi":
            assert int(number) == _capi.ABI_VERSION, f"quern.h has interface {number}, _capi.py {_capi.ABI_VERSION}"
            continue
        mirror = _capi.STRUCTS[struct]
        found = ctypes.sizeof(mirror) if member == "." else getattr(mirror, member).offset
        assert found == int(number), f"{struct}.{member} is at {number}, in _capi.py at {found}"
        seen.add(struct)
    assert seen == set(_capi.STRUCTS), f"not compared: {set(_capi.STRUCTS) - seen}"
    print(f"{len(seen)} structs agree")


if __name__ == "__main__":
    sys.exit(main())
