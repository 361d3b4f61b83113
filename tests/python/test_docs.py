"""Every block of Python in docs/python.md, one after the other, as a reader would run them."""
import os
import re
import sys
import warnings

from support import import_or_skip

for needed in ("h5py", "netCDF4", "h5netcdf", "zarr", "dask"):
    import_or_skip(needed)
import_or_skip("xarray", (2023, 1))
import_or_skip("zarr", (3, 0))
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "python.md")


def main():
    warnings.simplefilter("ignore")
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    names, blocks = {}, list(re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M))
    for block in blocks:
        line = text.count("\n", 0, block.start()) + 2
        exec(compile("\n" * (line - 1) + block.group(1), PAGE, "exec"), names)
    print(f"{len(blocks)} blocks ran")
    return 0 if len(blocks) >= 10 else 1


if __name__ == "__main__":
    sys.exit(main())
