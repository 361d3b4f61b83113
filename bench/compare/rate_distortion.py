#!/usr/bin/env python3
# Bits a value at equal PSNR: quern's codecs beside SZ3, QoZ and SPERR. Every reconstruction is measured here, by one
# function for all. Needs numpy.
"""usage: rate_distortion.py --out FOLDER [--quern PATH] [--sz3 PATH] [--qoz PATH] [--sperr LIBRARY] FILE...
       rate_distortion.py --out FOLDER --summary

FILE is raw with its shape and type in the name (NAME_d0xd1xd2.f32 or .f64), without gaps. --sz3 and --qoz are their commands,
--sperr is libSPERR.so; a peer that is not given is left out. Writes FOLDER/curves.csv (every run), FOLDER/rates.csv (bits a
value at 45, 55, ... 105 dB, interpolated between runs about 4 dB apart) and FOLDER/summary.md. --summary makes the latter two
from the former.
"""
import argparse
import csv
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

TYPES = {"f32": "<f4", "f64": "<f8"}
TARGETS = range(45, 106, 10)
STEP_DB = 4
LOWEST_DB, HIGHEST_DB = 21, 117  # of runs, so that every target, and the rates of rivals there, lie between two


def load(path):
    match = re.fullmatch(r".*_(\d+(?:x\d+)*)\.(f32|f64)", path.name)
    if not match:
        raise ValueError(f"{path.name}: the name must end in _d0xd1.TYPE, TYPE f32 or f64")
    array = np.fromfile(path, TYPES[match[2]]).reshape([int(n) for n in match[1].split("x")])
    if not np.isfinite(array).all():
        raise ValueError(f"{path.name}: has NaN or infinities, which not all peers take")
    return array


def psnr_of(array, back):
    """20 log10((max - min) / RMSE), in binary64."""
    original = array.astype(np.float64)
    mse = np.mean((original - back.astype(np.float64)) ** 2)
    span = original.max() - original.min()
    return float("inf") if mse == 0 else float(20 * np.log10(span) - 10 * np.log10(mse))


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError((done.stderr or done.stdout).strip()[-200:] or f"exit status {done.returncode}")


class Command:
    """A compressor that reads and writes files. Gives its bytes and the reconstruction for a PSNR, or for the absolute bound
    that comes near it."""

    def __init__(self, name, make_calls):
        self.name = name
        self.make_calls = make_calls

    def points(self, array, folder):
        raw, stream, back = (folder / n for n in ("x.raw", "x.stream", "x.back"))
        array.tofile(raw)
        span = float(array.max()) - float(array.min())
        for db in range(LOWEST_DB, HIGHEST_DB + 1, STEP_DB):
            # Errors spread evenly over [-E, E] have a mean square of E^2 / 3.
            bound = span * 10 ** (-db / 20) * 3 ** 0.5
            for call in self.make_calls(array, raw, stream, back, db, repr(bound)):
                run(*call)
            yield bound, stream.stat().st_size, np.fromfile(back, array.dtype).reshape(array.shape)


def quern(path, codec):
    def calls(array, raw, stream, back, db, bound):
        kind = "f64" if array.dtype.itemsize == 8 else "f32"
        yield path, "compress", "-t", kind, "-s", "x".join(map(str, array.shape)), "--psnr", db, "--codec", codec, "-q", "-f", \
            "-o", stream, raw
        yield path, "decompress", "-q", "-f", "-o", back, stream
    return Command(f"quern {codec}", calls)


def sz_family(name, path, *options):
    def calls(array, raw, stream, back, db, bound):
        kind = "-d" if array.dtype.itemsize == 8 else "-f"
        # Their first dimension is the fastest.
        yield path, kind, "-i", raw, "-z", stream, "-o", back, f"-{array.ndim}", *array.shape[::-1], "-M", "ABS", bound, \
            *options
    return Command(name, calls)


class Sperr:
    """libSPERR through its C interface, the whole array as one chunk: under a bound, or for a PSNR."""

    def __init__(self, library, mode):
        self.library = library
        self.mode = mode
        self.name = {2: "SPERR psnr", 3: "SPERR bound"}[mode]
        self.free = ctypes.CDLL(None).free

    def take(self, pointer, count, dtype):
        try:
            return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(np.ctypeslib.as_ctypes_type(dtype))),
                                         (count,)).copy()
        finally:
            self.free(pointer)

    def code(self, array, quality):
        lib, size = self.library, ctypes.c_size_t
        is_float = 1 if array.dtype.itemsize == 4 else 0
        dims = [size(n) for n in array.shape[::-1]]
        stream, length, back = ctypes.c_void_p(), size(), ctypes.c_void_p()
        source = array.ctypes.data_as(ctypes.c_void_p)
        mode, quality = ctypes.c_int(self.mode), ctypes.c_double(quality)
        if array.ndim == 2:
            status = lib.sperr_comp_2d(source, is_float, *dims, mode, quality, 0, ctypes.byref(stream), ctypes.byref(length))
        else:
            status = lib.sperr_comp_3d(source, is_float, *dims, *dims, mode, quality, size(1), ctypes.byref(stream),
                                       ctypes.byref(length))
        if status != 0:
            raise RuntimeError(f"SPERR refuses with {status}")
        if array.ndim == 2:
            status = lib.sperr_decomp_2d(stream, length, is_float, *dims, ctypes.byref(back))
        else:
            found = [size() for _ in range(3)]
            status = lib.sperr_decomp_3d(stream, length, is_float, size(1), *map(ctypes.byref, found), ctypes.byref(back))
        self.free(stream)
        if status != 0:
            raise RuntimeError(f"SPERR cannot decode: {status}")
        return length.value, self.take(back, array.size, array.dtype).reshape(array.shape)

    def points(self, array, folder):
        if array.ndim not in (2, 3):
            raise RuntimeError("SPERR takes 2 or 3 axes")
        span = float(array.max()) - float(array.min())
        for db in range(LOWEST_DB, HIGHEST_DB + 1, STEP_DB):
            quality = db if self.mode == 2 else span * 10 ** (-db / 20) * 3 ** 0.5
            yield (quality, *self.code(array, quality))


def open_sperr(path):
    library = ctypes.CDLL(path)
    for name in ("sperr_comp_2d", "sperr_comp_3d", "sperr_decomp_2d", "sperr_decomp_3d"):
        getattr(library, name).restype = ctypes.c_int
    return library


def interpolate(curve, psnr):
    """Bits a value at a PSNR, linear between runs; nothing outside them."""
    curve = sorted(curve)
    for (p0, b0), (p1, b1) in zip(curve, curve[1:]):
        if p0 <= psnr <= p1 and p1 > p0:
            return b0 + (b1 - b0) * (psnr - p0) / (p1 - p0)
    return None


def psnr_at(curve, bits):
    return interpolate([(b, p) for p, b in curve], bits)


def gains(ours, theirs):
    """By how many dB `ours` lies above `theirs` at theirs' rates from 45 to 105 dB, a target every 2 dB."""
    out = []
    for target in range(45, 106, 2):
        bits = interpolate(theirs, target)
        if bits is None or not ours:
            continue
        psnr = psnr_at(ours, bits)
        if psnr is None and bits < min(b for _, b in ours):
            psnr = min(p for p, _ in ours)  # or less: no run of ours is as small
        if psnr is not None:
            out.append((target, psnr - target))
    return out


def best_of(curves):
    """The upper hull of several curves at one target: for peers that have several modes."""
    def bits(target):
        found = [b for b in (interpolate(c, target) for c in curves) if b is not None]
        return min(found, default=None)
    return [(t, b) for t in range(LOWEST_DB, HIGHEST_DB + 1) if (b := bits(t)) is not None]


def quotients(names, curves, file):
    """Geometric mean over fields of a rival's bits in ours, and on how many fields ours are no more."""
    print("\nBits of each rival in bits of `quern stencil` at equal PSNR, geometric mean over the fields that reach it (fields where "
          "`stencil` takes no more).\n", file=file)
    print("| rival | " + " | ".join(map(str, TARGETS)) + " |", file=file)
    print("|---|" + "---|" * len(TARGETS), file=file)
    for rival in ["quern lorenzo", *dict.fromkeys(n.split(" psnr")[0] for n in names
                                                   if not n.startswith("quern") and n != "SPERR bound")]:
        cells = []
        for target in TARGETS:
            found = []
            for by_codec in curves.values():
                ours = interpolate(by_codec.get("quern stencil", []), target)
                theirs = min((b for n, c in by_codec.items() if n.startswith(rival)
                              and (b := interpolate(c, target)) is not None), default=None)
                if ours is not None and theirs is not None:
                    found.append(theirs / ours)
            cells.append(f"{np.exp(np.mean(np.log(found))):.2f} ({sum(q >= 1 for q in found)} of {len(found)})" if found else "-")
        print(f"| {rival} | " + " | ".join(cells) + " |", file=file)


def summarise(names, curves, file):
    print("Bits a value at equal PSNR (dB).\n", file=file)
    print("| field | codec | " + " | ".join(map(str, TARGETS)) + " |", file=file)
    print("|---|---|" + "---|" * len(TARGETS), file=file)
    for field, by_codec in curves.items():
        for name in names:
            rates = [interpolate(by_codec.get(name, []), t) for t in TARGETS]
            print(f"| {field} | {name} | " + " | ".join("-" if r is None else f"{r:.3f}" for r in rates) + " |", file=file)
    quotients(names, curves, file)
    rivals = [n for n in names if not n.startswith("quern")]
    print("\ndB of `quern stencil` above each rival at the rival's rates, 45 to 105 dB: mean (least). SPERR is the better of its "
          "two modes at each PSNR. *above*: at no rate more than 0.05 dB below SPERR.\n", file=file)
    peers = [n for n in rivals if not n.startswith("SPERR")] + ["SPERR"]
    print("| field | " + " | ".join(["quern lorenzo", *peers]) + " | against SPERR |", file=file)
    print("|---|" + "---|" * (len(peers) + 2), file=file)
    for field, by_codec in curves.items():
        ours = by_codec.get("quern stencil", [])
        cells, verdict = [], "-"
        for peer in ["quern lorenzo", *peers]:
            theirs = best_of([by_codec.get(n, []) for n in rivals if n.startswith("SPERR")]) if peer == "SPERR" \
                else by_codec.get(peer, [])
            found = gains(ours, theirs)
            if not found:
                cells.append("-")
                continue
            values = [g for _, g in found]
            cells.append(f"{np.mean(values):+.2f} ({min(values):+.2f})")
            if peer == "SPERR":
                below = [t for t, g in found if g < -0.05]
                verdict = "above" if not below else f"below at {min(below)} to {max(below)} dB" if len(below) < len(found) \
                    else "below"
        print(f"| {field} | " + " | ".join(cells) + f" | {verdict} |", file=file)


def write_summaries(folder, names, curves):
    with open(folder / "rates.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["field", "codec", *(f"bits_at_{t}_db" for t in TARGETS)])
        for field, by_codec in curves.items():
            for name in names:
                rates = [interpolate(by_codec.get(name, []), t) for t in TARGETS]
                writer.writerow([field, name, *("" if r is None else f"{r:.4f}" for r in rates)])
    with open(folder / "summary.md", "w") as file:
        summarise(names, curves, file)


def read_curves(path):
    curves = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            points = curves.setdefault(row["field"], {}).setdefault(row["codec"], [])
            if np.isfinite(float(row["psnr_db"])):
                points.append((float(row["psnr_db"]), float(row["bits_per_value"])))
    return curves


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--quern", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/release/bin/quern"))
    parser.add_argument("--sz3")
    parser.add_argument("--qoz")
    parser.add_argument("--sperr")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    if args.summary:
        curves = read_curves(args.out / "curves.csv")
        write_summaries(args.out, list(dict.fromkeys(n for by_codec in curves.values() for n in by_codec)), curves)
        return
    if not args.files:
        parser.error("no FILE")
    codecs = [quern(args.quern, "stencil"), quern(args.quern, "lorenzo")]
    if args.sz3:
        codecs.append(sz_family("SZ3", args.sz3))
    if args.qoz:
        codecs.append(sz_family("QoZ -q 4", args.qoz, "-q", "4", "-T", "PSNR"))
    if args.sperr:
        library = open_sperr(args.sperr)
        codecs += [Sperr(library, 2), Sperr(library, 3)]
    args.out.mkdir(parents=True, exist_ok=True)
    curves = {}
    with open(args.out / "curves.csv", "w", newline="") as file, tempfile.TemporaryDirectory() as folder:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["field", "codec", "asked", "bytes", "bits_per_value", "psnr_db", "max_error"])
        for path in args.files:
            array = load(path)
            field = path.stem
            curves[field] = {}
            for codec in codecs:
                points = curves[field].setdefault(codec.name, [])
                try:
                    for asked, size, back in codec.points(array, pathlib.Path(folder)):
                        psnr, bits = psnr_of(array, back), 8 * size / array.size
                        error = float(np.abs(array.astype(np.float64) - back.astype(np.float64)).max())
                        writer.writerow([field, codec.name, repr(asked), size, f"{bits:.6f}", f"{psnr:.4f}", repr(error)])
                        if np.isfinite(psnr):
                            points.append((psnr, bits))
                except (RuntimeError, ValueError, OSError) as problem:
                    print(f"{field}: {codec.name}: {problem}", file=sys.stderr)
                file.flush()
            print(field, flush=True)
    names = [codec.name for codec in codecs]
    write_summaries(args.out, names, curves)


if __name__ == "__main__":
    main()
