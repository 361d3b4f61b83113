#!/usr/bin/env python3
"""Reads a field of a file that quern-insitu --way streams wrote: cuts out its streams, hands each to the quern command.

usage: read_streams.py FILE FIELD OUT.npy     the whole array, put together from all ranks' blocks
       read_streams.py FILE                   what is in the file
"""
import json
import os
import subprocess
import sys

import numpy as np

QUERN = os.environ.get("QUERN", "quern")
TAIL = 21  # bytes: where the index begins, as 20 digits and a line end


def read_index(file):
    size = file.seek(0, os.SEEK_END)
    if size < TAIL:
        raise ValueError("too short to be a file of streams")
    file.seek(size - TAIL)
    tail = file.read(TAIL)
    if not tail[:-1].isdigit() or int(tail) > size - TAIL:
        raise ValueError("no index at the end: not a file of streams, or not complete")
    file.seek(int(tail))
    return json.loads(file.read(size - TAIL - int(tail)))


def read_field(path, name):
    with open(path, "rb") as file:
        index = read_index(file)
        entries = [s for s in index["streams"] if s["field"] == name]
        if sum(s["planes"] for s in entries) != index["shape"][0]:
            raise ValueError("no complete field %s in %s" % (name, path))
        field = np.empty(index["shape"])
        for entry in entries:
            file.seek(entry["offset"])
            done = subprocess.run([QUERN, "decompress", "-q", "-", "-o", "-"], input=file.read(entry["bytes"]),
                                  stdout=subprocess.PIPE, check=True)
            block = field[entry["first"]:entry["first"] + entry["planes"]]
            block[...] = np.frombuffer(done.stdout, "<f8").reshape(block.shape)
    return field


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    try:
        if len(sys.argv) == 2:
            with open(sys.argv[1], "rb") as opened:
                print(json.dumps(read_index(opened), indent=1))
        else:
            np.save(sys.argv[3], read_field(sys.argv[1], sys.argv[2]))
    except (OSError, ValueError, KeyError, subprocess.CalledProcessError) as error:
        sys.exit("read_streams.py: %s" % error)
