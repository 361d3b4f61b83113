#!/usr/bin/env python3
"""Scans by quern and by other compressors, at an equal largest error, in one run.

usage: lidar.py QUERN SCAN... [--bounds 15,10,5,2,1] [--tmc3 PATH] [--pcl PATH] [--json FILE]

SCAN is a .bin (KITTI) or a binary .pcd of x, y, z, intensity; points at the origin are left out. Bounds are in cm.
Coordinates alone are coded. A peer gets the points on a cubic grid whose cells have a diagonal of twice the bound, so
that no point moves further; what it decodes to is written as a file, and `quern lidar compare` measures the largest
distance in both directions, which must keep the bound. `merged`: one point a cell; `all`: as many points as the scan
has.

Peers: draco_encoder and draco_decoder (Debian: draco), zstd, LASzip by laspy (PyPI: laspy, lazrs; as a module of this
Python), TMC13 with --tmc3, the octree of the Point Cloud Library with --pcl (a program made of pcl_octree.cpp beside
this file; voxels, so merged alone). What is not there is a line that says so. Needs NumPy.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr.decode(errors='replace').strip()[-200:]}")
    return done.stdout


def read_scan(path):
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".pcd"):
        data = data[data.index(b"DATA binary\n") + 12:]
    points = numpy.frombuffer(data, "<f4", len(data) // 16 * 4).reshape(-1, 4)[:, :3]
    return points[numpy.any(points != 0, axis=1)]


def write_bin(points, path):
    numpy.hstack([points.astype("<f4"), numpy.zeros((len(points), 1), "<f4")]).tofile(path)


def write_ply(whole, path, name="int", dtype="<i4"):
    """Whole numbers, of a type that a reader takes."""
    header = (f"ply\nformat binary_little_endian 1.0\nelement vertex {len(whole)}\n" +
              "".join(f"property {name} {axis}\n" for axis in "xyz") + "end_header\n")
    with open(path, "wb") as file:
        file.write(header.encode() + whole.astype(dtype).tobytes())


def read_ply(path):
    """Coordinates of a PLY file, whatever their type."""
    types = {"int": "i4", "int32": "i4", "float": "f4", "float32": "f4", "double": "f8", "float64": "f8", "uchar": "u1",
             "uint8": "u1", "ushort": "u2", "uint16": "u2", "uint": "u4", "uint32": "u4"}
    with open(path, "rb") as file:
        data = file.read()
    end = data.index(b"end_header") + len(b"end_header")
    end = data.index(b"\n", end - 1) + 1
    lines = data[:end].decode("ascii").split("\n")
    fields = [(line.split()[2], types[line.split()[1]]) for line in lines
              if line.startswith("property ") and not line.startswith("property list ")]
    count = next(int(line.split()[2]) for line in lines if line.startswith("element vertex"))
    if any(line.startswith("format ascii") for line in lines):
        return numpy.array([line.split()[:3] for line in data[end:].decode().split("\n")[:count]], "f8")
    table = numpy.frombuffer(data, numpy.dtype([(name, "<" + kind) for name, kind in fields]), count, end)
    return numpy.stack([table[axis].astype("f8") for axis in "xyz"], axis=1)


class Draco:
    name = "Draco"

    def __init__(self):
        if not shutil.which("draco_encoder") or not shutil.which("draco_decoder"):
            raise RuntimeError("draco_encoder or draco_decoder was not found (Debian: draco)")

    def code(self, whole, folder):
        source, coded, back = (os.path.join(folder, name) for name in ("in.ply", "scan.drc", "out.ply"))
        write_ply(whole, source)
        run("draco_encoder", "-point_cloud", "-qp", "0", "-i", source, "-o", coded)
        run("draco_decoder", "-i", coded, "-o", back)
        return os.path.getsize(coded), read_ply(back)


class Zstd:
    """Sorted coordinates as differences, low and high bytes apart, under zstd -19."""
    name = "zstd -19 of sorted differences"

    def __init__(self):
        if not shutil.which("zstd"):
            raise RuntimeError("zstd was not found")

    def code(self, whole, folder):
        order = numpy.lexsort((whole[:, 2], whole[:, 1], whole[:, 0]))
        differences = numpy.diff(whole[order], axis=0, prepend=numpy.zeros((1, 3), whole.dtype)).astype("<i4")
        planes = differences.T.copy().view("u1").reshape(3, -1, 4).transpose(0, 2, 1)
        source, coded, back = (os.path.join(folder, name) for name in ("in.raw", "scan.zst", "out.raw"))
        planes.tofile(source)
        run("zstd", "-19", "-f", "-q", source, "-o", coded)
        run("zstd", "-d", "-f", "-q", coded, "-o", back)
        planes = numpy.fromfile(back, "u1").reshape(3, 4, -1).transpose(0, 2, 1)
        return os.path.getsize(coded), numpy.cumsum(planes.copy().view("<i4")[:, :, 0].T, axis=0)


class Laszip:
    name = "LASzip (laspy, lazrs)"

    def __init__(self):
        try:
            import laspy
            import lazrs  # noqa: F401
        except ImportError as error:
            raise RuntimeError(f"{error.name} was not found (PyPI: laspy, lazrs)") from error
        self.laspy = laspy

    def code(self, whole, folder):
        path = os.path.join(folder, "scan.laz")
        header = self.laspy.LasHeader(point_format=0, version="1.2")
        header.scales, header.offsets = [1, 1, 1], [0, 0, 0]
        las = self.laspy.LasData(header)
        las.X, las.Y, las.Z = whole.T
        las.write(path, laz_backend=self.laspy.LazBackend.Lazrs)
        back = self.laspy.read(path)
        return os.path.getsize(path), numpy.stack([back.X, back.Y, back.Z], axis=1)


class Tmc13:
    """Its octree, without laser angles, with the options of the common test conditions for single frames of LiDAR and
    with those for other clouds: the smaller counts."""
    name = "TMC13 octree"
    common = ("--trisoupNodeSizeLog2=0", "--neighbourAvailBoundaryLog2=8", "--intra_pred_max_node_size_log2=6",
              "--minQtbtSizeLog2=0", "--planarEnabled=1", "--partitionMethod=0")
    choices = (("--inferredDirectCodingMode=3", "--maxNumQtBtBeforeOt=6", "--planarModeIdcmUse=32"),
               ("--inferredDirectCodingMode=1", "--maxNumQtBtBeforeOt=4", "--planarModeIdcmUse=0"))

    def __init__(self, path):
        if not path:
            raise RuntimeError("TMC13 was not named (--tmc3 PATH)")
        self.path = path

    def code(self, whole, folder):
        low = whole.min(axis=0)
        return min((self.code_with(choice, whole - low, folder, low) for choice in self.choices), key=lambda one: one[0])

    def code_with(self, choice, whole, folder, low):
        source, coded, back = (os.path.join(folder, name) for name in ("in.ply", "scan.tmc", "out.ply"))
        write_ply(whole, source, "float", "<f4")  # below 2^24: exact
        run(self.path, "--mode=0", f"--uncompressedDataPath={source}", f"--compressedStreamPath={coded}",
            "--positionQuantizationScale=1", "--mergeDuplicatedPoints=1", "--disableAttributeCoding=1", *self.common,
            *choice)
        run(self.path, "--mode=1", f"--compressedStreamPath={coded}", f"--reconstructedDataPath={back}",
            "--outputBinaryPly=1")
        return os.path.getsize(coded), read_ply(back) + low


class Pcl:
    name = "PCL octree"

    def __init__(self, path):
        if not path:
            raise RuntimeError("PCL's octree was not named (--pcl PATH)")
        self.path = path

    def code(self, whole, folder):
        source, coded, back = (os.path.join(folder, name) for name in ("in.raw", "scan.pcl", "out.raw"))
        whole.astype("<f4").tofile(source)  # below 2^24: exact
        run(self.path, "encode", source, coded, "1")
        run(self.path, "decode", coded, back)
        # A point on a corner of the grid is in the voxel whose middle lies half a step above it.
        return os.path.getsize(coded), numpy.fromfile(back, "<f4").reshape(-1, 3).astype("f8") - 0.5


def largest_error(quern, scan, points, folder):
    decoded = os.path.join(folder, "decoded.bin")
    write_bin(points, decoded)
    return json.loads(run(quern, "lidar", "compare", scan, decoded, "--columns", "4", "--json"))["max_error"]


def quern_row(quern, scan, bound, mode, folder):
    drive, back = os.path.join(folder, "scan.qnl"), os.path.join(folder, "back.bin")
    run(quern, "lidar", "compress", scan, "--columns", "4", "-o", drive, "--max-error", f"{bound}cm", "--mode", mode,
        "--no-attributes", "-f", "-q")
    run(quern, "lidar", "decompress", drive, "-o", back, "-f", "-q")
    error = json.loads(run(quern, "lidar", "compare", scan, back, "--columns", "4", "--json"))["max_error"]
    return os.path.getsize(drive), error


def rows_of(args, peers, path, folder):
    points = read_scan(path)
    scan = os.path.join(folder, "scan.bin")
    write_bin(points, scan)
    for bound in args.bounds:
        for mode in ("set", "points"):
            stored, error = quern_row(args.quern, scan, bound, mode, folder)
            yield {"bound_cm": bound, "codec": f"quern, mode {mode}", "points": len(points), "bytes": stored,
                   "error": error}
        # A tenth of a millimetre is left for the rounding to binary32.
        step = 2 * (bound / 100 - 1e-4) / 3**0.5
        whole = numpy.rint(points.astype("f8") / step).astype("i8")
        for merged in (True, False):
            for peer in peers:
                if not merged and isinstance(peer, (Tmc13, Pcl)):
                    continue
                given = numpy.unique(whole, axis=0) if merged else whole
                name = f"{peer.name}, {'merged' if merged else 'all'}"
                row = {"bound_cm": bound, "codec": name, "points": len(points)}
                try:
                    row["bytes"], back = peer.code(given, folder)
                    row["error"] = largest_error(args.quern, scan, back * step, folder)
                except RuntimeError as failed:
                    row["failed"] = str(failed)
                yield row


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("quern")
    parser.add_argument("scans", nargs="+")
    parser.add_argument("--bounds", default="15,5,2")
    parser.add_argument("--tmc3")
    parser.add_argument("--pcl")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.bounds = [float(bound) for bound in args.bounds.split(",")]
    peers = []
    for make in (lambda: Tmc13(args.tmc3), lambda: Pcl(args.pcl), Draco, Laszip, Zstd):
        try:
            peers.append(make())
        except RuntimeError as missing:
            print(f"left out: {missing}")
    print("\n| scan | bound, cm | codec | bytes | ratio to 16 bytes a point | largest error, cm |\n"
          "|---|---|---|---|---|---|")
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for path in args.scans:
            for row in rows_of(args, peers, path, folder):
                row["scan"] = os.path.basename(path)
                table.append(row)
                bound = f"{row['bound_cm']:g}"
                if "failed" in row:
                    print(f"| {row['scan']} | {bound} | {row['codec']} | {row['failed']} | | |", flush=True)
                    continue
                broken = "" if row["error"] <= row["bound_cm"] / 100 else " (above the bound)"
                print(f"| {row['scan']} | {bound} | {row['codec']} | {row['bytes']} | "
                      f"{16 * row['points'] / row['bytes']:.1f} | {100 * row['error']:.2f}{broken} |", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
