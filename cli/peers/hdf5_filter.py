"""Compresses and decompresses a raw array with a filter of hdf5plugin, the array as one chunk.

usage: FILTER INPUT STREAM OUTPUT TYPE SHAPE BOUND
FILTER is sz3, zfp or sperr, BOUND absolute. STREAM becomes the stored chunk, OUTPUT what comes back. Prints the
processor seconds of both ways, without what starting Python takes.
"""
import sys
import time

import h5py
import hdf5plugin
import numpy as np

KINDS = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "i8": "i1", "u8": "u1", "i16": "<i2", "u16": "<u2", "i32": "<i4",
         "u32": "<u4", "i64": "<i8", "u64": "<u8"}


def main(name, source, stream, output, kind, shape, bound):
    bound = float(bound)
    array = np.fromfile(source, KINDS[kind]).reshape([int(n) for n in shape.split("x")])
    if name == "sperr":  # for two and three axes; those of length 1 say nothing
        array = array.reshape([n for n in array.shape if n > 1])
        if array.ndim not in (2, 3):
            sys.exit("SPERR takes arrays of two and three axes")
    if name != "sz3" and array.dtype.kind != "f":
        sys.exit(name + " takes floating-point numbers")
    if array.ndim > 4:
        sys.exit(name + " takes up to four axes")
    chosen = {"sz3": lambda: hdf5plugin.SZ3(absolute=bound), "zfp": lambda: hdf5plugin.Zfp(accuracy=bound),
              "sperr": lambda: hdf5plugin.Sperr(absolute=bound)}[name]()
    with h5py.File("memory.h5", "w", driver="core", backing_store=False) as file:
        began = time.process_time()
        data = file.create_dataset("x", data=array, chunks=array.shape, **chosen)
        file.flush()
        packed = time.process_time() - began
        if data.id.get_num_chunks() != 1:
            sys.exit("the filter stored nothing")
        mask, chunk = data.id.read_direct_chunk((0,) * array.ndim)
        if mask:
            sys.exit("the filter refused the array")
        del data  # a handle of its own decodes: this one's chunk is still in memory
        began = time.process_time()
        back = file["x"][...]
        unpacked = time.process_time() - began
    with open(stream, "wb") as out:
        out.write(chunk)
    back.tofile(output)
    print(f"seconds: {packed:.9f} {unpacked:.9f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
