#!/usr/bin/env python3
"""The least bytes of many variables under PSNR floors: quern compress --psnr beside exhaustive trial.

usage: quota.py QUERN DB FILE...

Exhaustive trial encodes each file with each layout of stencil and with lorenzo under every bound of a grid of eighths
of an octave, then of 64ths around the smallest that measures DB or more, and takes the smallest. Prints bytes and
processor seconds of both.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

# The goal under which a PSNR is searched, too.
WAYS = [["--codec", "lorenzo"]] + [["--goal", "psnr", "--codec", "stencil", "--set", "layout=" + layout]
                                   for layout in ("levels", "wavelet", "raster", "planes")]


def run(*words):
    done = subprocess.run(list(words), capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def least_of(quern, way, floor, file, out):
    """Bytes and way of the smallest stream on the grids that reaches the floor; nothing when none does."""
    best, middle = None, 3 ** 0.5 * 10 ** (-floor / 20)
    first, count, divisor = -12, 45, 8
    for _ in range(2):
        for step in range(first, first + count):
            made = run(quern, "compress", "-f", "--json", "--verify", "--rel", repr(middle * 2 ** (step / divisor)), *way,
                       file, "-o", out)
            if made is None or made["psnr_db"] is None or made["psnr_db"] < floor:
                continue
            if best is None or made["output_bytes"] < best[0]:
                best, at = (made["output_bytes"], way[-1]), step
        if best is None:
            return None
        first, count, divisor = at * 8 - 7, 15, 64
    return best


def main():
    quern, floor, files = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    totals = {"search": [0, 0.0], "trial": [0, 0.0]}
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "x.qn")
        for file in files:
            began = processor_seconds()
            found = run(quern, "compress", "-f", "--json", "--psnr", str(floor), file, "-o", out)
            middle = processor_seconds()
            trials = [least_of(quern, way, floor, file, out) for way in WAYS]
            least = min(trial for trial in trials if trial)
            end = processor_seconds()
            print(f"{os.path.basename(file)}: search {found['output_bytes']} bytes, {found['psnr_db']:.2f} dB, "
                  f"{found['encodings']} encodings, {middle - began:.2f} s; trial {least[0]} bytes ({least[1]}), "
                  f"{end - middle:.2f} s", flush=True)
            for name, size, seconds in (("search", found["output_bytes"], middle - began),
                                        ("trial", least[0], end - middle)):
                totals[name][0] += size
                totals[name][1] += seconds
    print(f"total: search {totals['search'][0]} bytes in {totals['search'][1]:.1f} s, trial {totals['trial'][0]} in "
          f"{totals['trial'][1]:.1f} s: {totals['search'][0] / totals['trial'][0]:.4f}x the bytes, "
          f"{totals['search'][1] / totals['trial'][1]:.3f}x the time")


if __name__ == "__main__":
    main()
