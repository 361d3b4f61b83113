#!/usr/bin/env python3
"""Reads a field of a file that quern-insitu --way streams wrote: cuts out its streams, hands each to the quern command.

usage: read_streams.py FILE FIELD OUT.npy     the whole array, put together from all ranks' blocks
       read_streams.py FILE                   what is in the file

A stream may have been predicted from that of the step before: the files of earlier steps are looked for beside FILE.
"""
import glob
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


def read_stream(file, entry):
    file.seek(entry["offset"])
    return file.read(entry["bytes"])


def earlier_streams(path, entry, count):
    """The same block's streams of the `count` steps before, first step first."""
    steps = sorted(glob.glob(glob.escape(path[:path.rindex("_")]) + "_*.qns"))
    before = steps[:steps.index(path)][-count:]
    if len(before) < count:
        raise ValueError("%s was predicted from steps whose files are not beside it" % path)
    streams = []
    for other in before:
        with open(other, "rb") as file:
            same = [e for e in read_index(file)["streams"]
                    if all(e[key] == entry[key] for key in ("field", "first", "planes"))]
            if len(same) != 1:
                raise ValueError("%s has other blocks than %s" % (other, path))
            streams.append(read_stream(file, same[0]))
    return b"".join(streams)


def decode(path, entry, stream):
    told = subprocess.run([QUERN, "info", "--json", "-"], input=stream, stdout=subprocess.PIPE, check=True)
    depth = json.loads(told.stdout)["streams"][0]["steps_to_key"]
    chain = (earlier_streams(path, entry, depth) if depth else b"") + stream
    return subprocess.run([QUERN, "decompress", "-q", "--step", str(depth), "-", "-o", "-"], input=chain,
                          stdout=subprocess.PIPE, check=True).stdout


def read_field(path, name):
    with open(path, "rb") as file:
        index = read_index(file)
        entries = [s for s in index["streams"] if s["field"] == name]
        if sum(s["planes"] for s in entries) != index["shape"][0]:
            raise ValueError("no complete field %s in %s" % (name, path))
        field = np.empty(index["shape"])
        for entry in entries:
            block = field[entry["first"]:entry["first"] + entry["planes"]]
            block[...] = np.frombuffer(decode(path, entry, read_stream(file, entry)), "<f8").reshape(block.shape)
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
