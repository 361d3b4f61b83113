#!/usr/bin/env python3
# What it costs that values survive being decoded and encoded again: bytes of idempotent chunks beside chunks that are
# written once, codec lorenzo, and the HDF5 filters of SZ3 and ZFP; and how packed files grow when they are copied.
"""usage: idempotent.py [--quern PATH] [--rel LIST] [--copies] FILE...

FILE is raw with its shape and type in the name (NAME_d0xd1xd2.f32 or .f64), without gaps. Each is one chunk. Needs numpy, and h5py with
hdf5plugin from pip for the peers, which are left out where it is missing. --copies packs each file with `quern h5 pack`, copies it with
h5repack and nccopy (HDF5_PLUGIN_PATH says where they find the filter) and prints bytes before and after.
"""
import argparse
import math
import os
import pathlib
import re
import subprocess
import tempfile

import numpy as np

try:
    import h5py
    import hdf5plugin
except ImportError:
    hdf5plugin = None

TYPES = {"f32": "<f4", "f64": "<f8"}


def load(path):
    match = re.fullmatch(r".*_(\d+(?:x\d+)*)\.(f32|f64)", path.name)
    if not match:
        return None
    array = np.fromfile(path, TYPES[match[2]]).reshape([int(n) for n in match[1].split("x")])
    return array if np.isfinite(array).all() and np.abs(array).max() < 1e20 else None


def compressed(quern, path, array, bound, folder, *options):
    out = os.path.join(folder, "x.qn")
    kind = "f32" if array.dtype.itemsize == 4 else "f64"
    subprocess.run([quern, "compress", "-q", "-f", "-t", kind, "-s", "x".join(map(str, array.shape)), "--abs",
                    repr(bound), *options, path, "-o", out], check=True)
    return os.path.getsize(out)


def filtered(array, bound, folder, options):
    """Bytes of the chunk, and the largest error over the bound."""
    out = os.path.join(folder, "x.h5")
    with h5py.File(out, "w") as f:
        stored = f.create_dataset("x", data=array, chunks=array.shape, **options).id.get_storage_size()
    with h5py.File(out, "r") as f:
        error = np.abs(f["x"][...].astype("f8") - array.astype("f8")).max()
    return stored, error / bound


def copies(quern, array, bound, folder):
    plain, packed, copy = (os.path.join(folder, n) for n in ("plain.nc", "packed.nc", "copy.nc"))
    with h5py.File(plain, "w") as f:
        f.create_dataset("x", data=array, chunks=array.shape)
    subprocess.run([quern, "h5", "pack", "-q", "-f", "--abs", repr(bound), "--dataset", "x", plain, "-o", packed], check=True)
    sizes = [os.path.getsize(packed)]
    for tool in (["h5repack"], ["nccopy"]):
        subprocess.run([*tool, packed, copy], check=True)
        sizes.append(os.path.getsize(copy))
        os.remove(copy)
    return sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quern", default="quern")
    parser.add_argument("--rel", default="1e-2,1e-3,1e-4,1e-5")
    parser.add_argument("--copies", action="store_true")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    for rel in args.rel.split(","):
        quotients = {}
        for path in args.files:
            array = load(path)
            if array is None:
                continue
            bound = float(rel) * (float(array.max()) - float(array.min()))
            with tempfile.TemporaryDirectory() as folder:
                if args.copies:
                    packed, repacked, copied = copies(args.quern, array, bound, folder)
                    sizes = {"h5repack": repacked / packed, "nccopy": copied / packed}
                    line = "packed %d, h5repack %d, nccopy %d" % (packed, repacked, copied)
                else:
                    once = compressed(args.quern, path, array, bound, folder)
                    idempotent = compressed(args.quern, path, array, bound, folder, "--set", "idempotent=1")
                    lorenzo = compressed(args.quern, path, array, bound, folder, "--set", "idempotent=1", "--codec",
                                         "lorenzo")
                    sizes = {"write-once": once / idempotent, "lorenzo": lorenzo / idempotent}
                    line = "idempotent %d, write-once %d, lorenzo %d" % (idempotent, once, lorenzo)
                    if hdf5plugin is not None:
                        for name, options in (("H5Z-SZ3", hdf5plugin.SZ3(absolute=bound)),
                                              ("H5Z-ZFP", hdf5plugin.Zfp(accuracy=bound))):
                            try:
                                size, error = filtered(array, bound, folder, options)
                            except (OSError, ValueError, RuntimeError) as failure:
                                line += ", %s fails (%s)" % (name, str(failure)[:40])
                                continue
                            sizes[name] = size / idempotent
                            line += ", %s %d%s" % (name, size, "" if error <= 1 else " (error %.3f bounds)" % error)
                print("%s %-36s %s" % (rel, path.stem, line), flush=True)
            for name, size in sizes.items():
                quotients.setdefault(name, []).append(size)
        for name, list_of in quotients.items():
            mean = math.exp(sum(map(math.log, list_of)) / len(list_of))
            what = "of the packed file" if args.copies else "of idempotent chunks"
            print("%s %s: %.3f times the bytes %s, geometric mean of %d fields; %.3f to %.3f" % (
                rel, name, mean, what, len(list_of), min(list_of), max(list_of)), flush=True)


if __name__ == "__main__":
    main()
