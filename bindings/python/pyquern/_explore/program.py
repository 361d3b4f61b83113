"""`quern explore FILE [--dataset V] [--bounds 1e-2,1e-3] [-o page.html]`."""
from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import Any

import numpy as np

from .._array import _FROM_SHORT
from .._file import open_file
from . import _BOUNDS, explore


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quern explore", description="Writes one page on which a bound is chosen by looking.")
    parser.add_argument("file", metavar="FILE", help=".npy, .qn, .h5, .nc, or raw values with -t and -s")
    parser.add_argument("-o", "--output", metavar="PAGE", help="the page (default: FILE.html)")
    parser.add_argument("--dataset", metavar="NAME", help="of an HDF5 or netCDF-4 file (default: the only one of two axes or more)")
    parser.add_argument("--bounds", metavar="LIST", help="2 to 9 bounds relative to the range, as in 1e-2,1e-3")
    parser.add_argument("--codec", default="auto", help="as of quern compress (default: auto)")
    parser.add_argument("--fill", action="append", type=float, metavar="VALUE", help="marks missing data; repeatable")
    parser.add_argument("-t", "--type", choices=[name for name in _FROM_SHORT if name != "bf16"], help="element type of raw values")
    parser.add_argument("-s", "--shape", metavar="SHAPE", help="of raw values, slowest axis first, as in 50x100x100")
    parser.add_argument("-T", "--threads", type=int, default=1, metavar="N", help="threads; 0 = all")
    return parser


def _opened(arguments: Any, parser: argparse.ArgumentParser) -> tuple[Any, str]:
    """The array, and what the command says of it besides its file."""
    path = arguments.file
    ending = os.path.splitext(path)[1].lower()
    if ending == ".npy":
        return np.load(path, mmap_mode="r"), ""
    if ending == ".qn":
        return open_file(path), ""
    if ending in (".h5", ".hdf5", ".nc", ".nc4", ".he5"):
        try:
            import h5py
        except ImportError:
            parser.error("HDF5 and netCDF-4 files need h5py: pip install h5py")
        from .. import hdf5

        hdf5.register()
        file = h5py.File(path, "r")
        dataset = arguments.dataset
        if not dataset:
            names: list[str] = []
            file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) and item.ndim > 1 else None)
            if len(names) != 1:
                parser.error(f"--dataset is needed; {path} has {', '.join(names) or 'no array'}")
            dataset = names[0]
        return file[dataset], f" --dataset {shlex.quote(dataset)}"
    if not arguments.type or not arguments.shape:
        parser.error("raw values need -t and -s, as in -t f32 -s 50x100x100")
    shape = tuple(int(extent) for extent in arguments.shape.split("x"))
    return np.memmap(path, _FROM_SHORT[arguments.type], "r", shape=shape), f" -t {arguments.type} -s {arguments.shape}"


def main(words: list[str]) -> int:
    """Runs the command; returns its exit status."""
    parser = _parser()
    arguments = parser.parse_args(words)
    bounds = [float(text) for text in arguments.bounds.split(",")] if arguments.bounds else _BOUNDS
    try:
        array, options = _opened(arguments, parser)
        page = explore(array, bounds, codec=arguments.codec, fill=arguments.fill, name=os.path.basename(arguments.file),
                       command=f"quern compress {shlex.quote(arguments.file)}{options}", threads=arguments.threads)
        output = arguments.output or arguments.file + ".html"
        page.save(output)
    except (OSError, RuntimeError, ValueError, TypeError, KeyError) as problem:
        text = str(problem)
        if isinstance(problem, OSError) and problem.filename is not None:
            text = f"{problem.filename}: {problem.strerror}"
        print(f"quern explore: {text}", file=sys.stderr)
        return 1
    print(f"{output}: {len(page.html)} bytes")
    return 0
