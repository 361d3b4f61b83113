#!/usr/bin/env python3
# What a pipeline like that of cuSZ-Hi (arXiv 2507.11165) would take for a field, modelled on a CPU from its
# description. It is not that program, which needs a device. Needs numpy.
"""usage: cusz_hi_model.py [--quern PATH] [--rel E,...] FILE...

FILE is raw with its shape and type in the name (NAME_d0xd1xd2.f32 or .f64), without gaps. Prints a table of ratios at
equal absolute bounds: the model's, and with --quern those of codec interp.

The model: anchors every 16 places (64 where there are two axes), stored as they are; levels of interpolation inside
tiles, in floating point, each with the best of four predictors (linear or cubic; the mean over axes, or one axis after
another) by the sum of magnitudes of codes; codes of one byte, level after level, others as value and place; canonical
Huffman codes; then, in chunks of 16 KiB, repeated words of 4 bytes left out, words of 8 bytes as sign and magnitude,
zero bytes left out, bitmaps compressed in the same way. The mode for ratio alone. It leaves out the tuned shrinking of
bounds by level, and all time.
"""
import argparse
import heapq
import itertools
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

TYPES = {"f32": "<f4", "f64": "<f8"}
RADIUS = 128
CHUNK = 16384


def load(path):
    match = re.fullmatch(r".*_(\d+(?:x\d+)*)\.(f32|f64)", path.name)
    if not match:
        raise ValueError(f"{path.name}: the name must end in _d0xd1.TYPE, TYPE f32 or f64")
    return np.fromfile(path, TYPES[match[2]]).reshape([int(n) for n in match[1].split("x")])


def along(values, axis, places, step, tile, cubic):
    """The interpolation along an axis at odd multiples of `step`, of values whose other axes are at their points."""
    n = values.shape[axis]
    take = lambda at: np.take(values, np.clip(at, 0, n - 1), axis=axis)
    shape = [1] * values.ndim
    shape[axis] = -1
    after = (places + step < n).reshape(shape)
    first = places - places % tile
    outer = cubic & (places - 3 * step >= first) & (places + 3 * step <= first + tile) & (places + 3 * step < n)
    outer = outer.reshape(shape)
    near, far = take(places - step), take(places + step)
    linear = np.where(after, (near + far) / 2, near)
    if not cubic:
        return linear
    spline = (9 * (near + far) - take(places - 3 * step) - take(places + 3 * step)) / 16
    return np.where(outer, spline, linear)


class Level:
    """Codes of the points that a level adds, with one predictor."""

    def __init__(self, array, known, step, tile, bound, cubic, mean):
        self.known = known.copy()
        self.codes, self.outliers = [], 0
        rank = array.ndim
        if mean:
            classes = sorted((c for c in itertools.product((0, 1), repeat=rank) if any(c)), key=sum)
            for parities in classes:
                grids = [np.arange(p * step, n, 2 * step) for p, n in zip(parities, array.shape)]
                self.code(array, grids, [a for a in range(rank) if parities[a]], step, tile, bound, cubic)
        else:
            for axis in range(rank):
                grids = [np.arange(step, n, 2 * step) if a == axis else np.arange(0, n, step if a < axis else 2 * step)
                         for a, n in enumerate(array.shape)]
                self.code(array, grids, [axis], step, tile, bound, cubic)
        self.codes = np.concatenate(self.codes) if self.codes else np.zeros(0, np.int64)
        self.cost = np.log2(1 + 2 * np.abs(self.codes)).sum()

    def code(self, array, grids, axes, step, tile, bound, cubic):
        if any(len(g) == 0 for g in grids):
            return
        parts = []
        for axis in axes:
            lines = [np.arange(array.shape[a]) if a == axis else g for a, g in enumerate(grids)]
            parts.append(along(self.known[np.ix_(*lines)], axis, grids[axis], step, tile, cubic))
        predicted = sum(parts) / len(parts)
        wanted = array[np.ix_(*grids)]
        codes = np.rint((wanted - predicted) / (2 * bound))
        out = np.abs(codes) >= RADIUS
        self.known[np.ix_(*grids)] = np.where(out, wanted, predicted + codes * 2 * bound)
        self.outliers += int(out.sum())
        self.codes.append(np.where(out, -RADIUS, codes).astype(np.int64).ravel())


def huffman_lengths(counts):
    heap = [(int(c), i, (i,)) for i, c in enumerate(counts) if c]
    lengths = np.zeros(len(counts), np.int64)
    if len(heap) == 1:
        lengths[heap[0][1]] = 1
        return lengths
    heapq.heapify(heap)
    number = len(counts)
    while len(heap) > 1:
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        for symbol in a[2] + b[2]:
            lengths[symbol] += 1
        number += 1
        heapq.heappush(heap, (a[0] + b[0], number, a[2] + b[2]))
    return lengths


def huffman_bytes(symbols):
    """The bits of canonical codes, as bytes."""
    lengths = huffman_lengths(np.bincount(symbols, minlength=2 * RADIUS))
    codes = np.zeros(len(lengths), np.int64)
    code, last = 0, 0
    for length, symbol in sorted((l, s) for s, l in enumerate(lengths) if l):
        code <<= length - last
        codes[symbol], last = code, length
        code += 1
    each = lengths[symbols]
    ends = np.cumsum(each)
    bits = np.zeros(int(ends[-1]), np.uint8)
    for bit in range(int(lengths.max())):
        there = each > bit
        bits[ends[there] - 1 - bit] = codes[symbols[there]] >> bit & 1
    return np.packbits(bits)


def bitmap_bytes(bits):
    """A bitmap whose repeated bytes are left out, four times over."""
    kept = 0
    packed = np.packbits(bits)
    for _ in range(3):
        repeats = np.concatenate(([False], packed[1:] == packed[:-1]))
        kept += int((~repeats).sum())
        packed = np.packbits(repeats)
    return kept + len(packed)


def reduced_bytes(chunk):
    """A chunk after the three stages, or as it is."""
    whole = len(chunk) // 8 * 8
    tail = len(chunk) - whole
    words = chunk[:whole].view("<u4")
    repeats = np.concatenate(([False], words[1:] == words[:-1]))
    kept = words[~repeats].tobytes()
    size = bitmap_bytes(repeats) + tail
    rest = np.frombuffer(kept[:len(kept) // 8 * 8], "<i8")
    magnitudes = ((rest << 1) ^ (rest >> 63)).view(np.uint8)
    after = np.concatenate((magnitudes, np.frombuffer(kept[len(rest) * 8:], np.uint8)))
    size += bitmap_bytes(after != 0) + int((after != 0).sum())
    return min(size, len(chunk)) + 2


def model_bytes(array, bound):
    values = array.astype(np.float64)
    tile = 64 if array.ndim == 2 else 16
    anchors = np.ix_(*(np.arange(0, n, tile) for n in array.shape))
    known = np.zeros_like(values)
    known[anchors] = values[anchors]
    total = known[anchors].size * array.itemsize
    codes, outliers, step = [], 0, tile // 2
    while step:
        best = min((Level(values, known, step, tile, bound, cubic, mean)
                    for cubic in (False, True) for mean in (False, True)), key=lambda level: level.cost)
        known = best.known
        outliers += best.outliers
        codes.append(best.codes)
        step //= 2
    stream = huffman_bytes(np.concatenate(codes) + RADIUS)
    total += 2 * RADIUS + outliers * (array.itemsize + 4)
    return total + sum(reduced_bytes(stream[i:i + CHUNK]) for i in range(0, len(stream), CHUNK))


def quern_bytes(path, file, array, bound):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.qn"
        subprocess.run([path, "compress", file, "-t", "f64" if array.itemsize == 8 else "f32", "-s",
                        "x".join(map(str, array.shape)), "--abs", repr(bound), "--codec", "interp", "-q",
                        "-o", out], check=True)
        return out.stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quern")
    parser.add_argument("--rel", default="1e-2,1e-3,1e-4")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    bounds = [float(e) for e in options.rel.split(",")]
    quotients = {rel: [] for rel in bounds}
    what = "interp / model" if options.quern else "model"
    print(f"| {what} | " + " | ".join(f"{rel:g}" for rel in bounds) + " |\n|---|" + "---|" * len(bounds))
    for file in options.files:
        array = load(file)
        span = float(array.max()) - float(array.min())
        cells = []
        for rel in bounds:
            model = array.nbytes / model_bytes(array, rel * span)
            if options.quern:
                ours = array.nbytes / quern_bytes(options.quern, file, array, rel * span)
                quotients[rel].append(ours / model)
                cells.append(f"{ours:.2f} / {model:.2f}")
            else:
                cells.append(f"{model:.2f}")
        print(f"| {file.stem} | " + " | ".join(cells) + " |", flush=True)
    if options.quern:
        means = (math.exp(sum(map(math.log, quotients[rel])) / len(quotients[rel])) for rel in bounds)
        print("| geometric mean of interp / model | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")


if __name__ == "__main__":
    sys.exit(main())
