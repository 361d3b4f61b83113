#!/usr/bin/env python3
"""The command quern-drives: the same bytes for any number of threads, and what Draco makes of its scans.

usage: test_drives.py QUERN-DRIVES

Draco (Debian's package draco) is to need as many bytes as for real frames of KITTI; without it that is left out.
"""
import array
import os
import shutil
import subprocess
import sys
import tempfile

# Bytes of Draco's kd-tree for real frames of 64 lasers, duplicates kept, by step in cm: least and most of seven frames.
REAL = {1: (163645, 192233), 2: (120884, 146278), 5: (68421, 93467), 17.32: (25399, 39308), 30: (15161, 24134)}


def files_below(folder):
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), folder)] = file.read()
    return found


def make(command, folder, *words):
    subprocess.run([command, "--out", folder, *words], check=True)
    return files_below(folder)


def write_ply(scan, step, path):
    """Points rounded to a step, in metres, as whole numbers."""
    floats = array.array("f", scan)
    whole = array.array("i")
    for i in range(0, len(floats), 4):
        whole.extend(round(value / step) for value in floats[i:i + 3])
    if sys.byteorder != "little":
        whole.byteswap()
    with open(path, "wb") as file:
        file.write(b"ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % (len(whole) // 3) +
                   b"property int x\nproperty int y\nproperty int z\nend_header\n" + whole.tobytes())


def draco_bytes(scan, step, folder):
    ply, drc = os.path.join(folder, "scan.ply"), os.path.join(folder, "scan.drc")
    write_ply(scan, step, ply)
    words = ["draco_encoder", "-point_cloud", "-qp", "0", "-i", ply, "-o", drc]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return os.path.getsize(drc)


def test_threads(command, folder):
    words = ["--days", "2", "--frames", "1", "--sensor", "vlp16", "--town", "2"]
    one = make(command, os.path.join(folder, "one"), *words, "-T", "1")
    two = make(command, os.path.join(folder, "two"), *words, "-T", "2")
    assert sorted(one) == ["day-01/poses.txt", "day-01/velodyne/000000.bin", "day-02/poses.txt",
                           "day-02/velodyne/000000.bin"], sorted(one)
    assert one == two, "the bytes depend on threads"
    assert len(one["day-01/poses.txt"].split()) == 12


def test_refusals(command, folder):
    for words in (["--days", "61"], ["--frames", "0"], ["--sensor", "eye"], []):
        words += ["--out", folder] if words else []
        done = subprocess.run([command, *words], capture_output=True, check=False)
        assert done.returncode == 1 and done.stderr, (words, done)
    blocked = os.path.join(folder, "blocked")
    with open(blocked, "w", encoding="ascii") as file:
        file.write("no folder")
    done = subprocess.run([command, "--out", blocked, "--days", "1", "--frames", "1"], capture_output=True, check=False)
    assert done.returncode == 2 and b"blocked" in done.stderr, done


def test_draco(command, folder):
    scans = make(command, os.path.join(folder, "draco"), "--days", "1", "--frames", "1")
    scan = scans["day-01/velodyne/000000.bin"]
    for step, (least, most) in REAL.items():
        stored = draco_bytes(scan, step / 100, folder)
        print(f"Draco, step {step} cm: {stored} bytes; real frames {least} to {most}")
        assert least <= stored <= most, (step, stored)


def main():
    command = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        test_threads(command, folder)
        test_refusals(command, folder)
        if shutil.which("draco_encoder"):
            test_draco(command, folder)
        else:
            print("draco_encoder was not found (Debian: draco): bytes of real and made scans are not compared")


if __name__ == "__main__":
    main()
