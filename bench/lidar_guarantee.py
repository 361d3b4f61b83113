#!/usr/bin/env python3
"""The guarantee of LiDAR scans: scans are coded under every bound and in every mode, decoded, and checked.

usage: lidar_guarantee.py QUERN --data DIR [--unit PATH] [--days DIR] [--bounds 0.1,1,2,5,10,15,26]
                          [--days-bounds 2,15] [--days-limit N]

DIR of --data holds what the tests' shared folder `lidar` holds: KITTI's and nuScenes' scans, images of Ouster sensors,
a survey (LAS). --unit names the program unit_lidar, whose random and adversarial clouds are run, too: 10,000 with
QUERN_TEST_THOROUGH=1. --days holds day-DD/velodyne and day-DD/poses.txt, as scripts/lidar_days.sh makes them; of these
the first N passes are coded with their poses, so that frames predict each other. Bounds are in cm.

`quern lidar verify --original` checks: a kd-tree and exact integers that share nothing with the encoder. A drive that
misses its bound ends the run with exit code 1. Prints a Markdown table.
"""
import argparse
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile


def told(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 4):
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)


def scans_of(data, folder):
    """Name, inputs, and words of the commands, of what there is."""
    for name in ("kitti_odometry_00", "kitti_raw_0005"):
        files = sorted(glob.glob(f"{data}/{name}/*.bin") + glob.glob(f"{data}/{name}/*.pcd"))
        if files:
            yield name, files, []
    for path in glob.glob(f"{data}/nuscenes_*.f32"):
        copy = os.path.join(folder, "nuscenes.pcd.bin")
        shutil.copy(path, copy)
        yield "nuscenes", [copy], ["--columns", "5"]
    for path in glob.glob(f"{data}/nclt_*.bin"):
        # Records of x, y, z in steps of 5 mm from -100 m, intensity and laser.
        with open(path, "rb") as file:
            points = [[value * 0.005 - 100 for value in record[:3]] + [record[3]]
                      for record in struct.iter_unpack("<HHHBB", file.read())]
        copy = os.path.join(folder, "nclt.bin")
        with open(copy, "wb") as file:
            file.writelines(struct.pack("<4f", *point) for point in points)
        yield "nclt", [copy], ["--columns", "4"]
    for name in ("ouster_os1128", "ouster_os2128u1"):
        for path in glob.glob(f"{data}/{name}_range_*.u32"):
            yield name, [path], ["--sensor", f"{data}/{name}_sensor.json"]
    for path in glob.glob(f"{data}/*.las"):
        yield os.path.basename(path), [path], []


class Checks:
    def __init__(self, quern, folder):
        self.quern, self.drive, self.violations = quern, os.path.join(folder, "drive.qnl"), 0

    def row(self, name, inputs, mode, bound, words, reading):
        coded = ["--mode", mode] + ([] if mode == "exact" else ["--max-error", bound])
        told(self.quern, "lidar", "compress", *inputs, "-o", self.drive, *coded, *words, *reading, "-f", "--json")
        found = told(self.quern, "lidar", "verify", self.drive, "--original", *inputs, *reading, "--json")
        broken = found["violations"] + found["attribute_changes"] + found["failed_frames"]
        self.violations += broken
        print(f"| {name} | {mode} | {'' if mode == 'exact' else bound} | {found['frames']} | {found['points']} "
              f"| {100 * found['max_error']:.4f} | {broken} |", flush=True)


def bounds_of(name, bounds):
    """A survey has its bounds in its own unit, the same numbers, and none below its steps of 0.01."""
    if name.endswith(".las"):
        return [f"{float(bound) / 100:g}" for bound in bounds.split(",") if float(bound) >= 1]
    return [f"{bound}cm" for bound in bounds.split(",")]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("quern")
    parser.add_argument("--data", required=True)
    parser.add_argument("--unit")
    parser.add_argument("--days")
    parser.add_argument("--bounds", default="0.1,1,2,5,10,15,26")
    parser.add_argument("--days-bounds", default="2,15")
    parser.add_argument("--days-limit", type=int)
    args = parser.parse_args()
    if args.unit:
        done = subprocess.run([args.unit, "--gtest_filter=Guarantee_*", "--gtest_brief=1"], stdout=subprocess.PIPE,
                              env={**os.environ, "QUERN_TEST_THOROUGH": "1"}, check=False)
        print(f"unit_lidar: {done.stdout.decode().strip().splitlines()[-1].strip()}\n", flush=True)
        if done.returncode:
            return 1
    print("| scans | mode | bound | frames | decoded points | largest error, 1/100 of the unit | violations |\n"
          "|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(args.quern, folder)
        sources = list(scans_of(args.data, folder))
        if not sources:
            sys.exit(f"{args.data} has no scans: name the tests' shared folder lidar")
        for name, inputs, reading in sources:
            for mode in ("set", "points"):
                for bound in bounds_of(name, args.bounds):
                    checks.row(name, inputs, mode, bound, [], reading)
            checks.row(name, inputs, "exact", "", [], reading)
        passes = sorted(glob.glob(f"{args.days}/day-*"))[:args.days_limit] if args.days else []
        if args.days and not passes:
            sys.exit(f"{args.days} has no scans: make day-DD with scripts/lidar_days.sh")
        for path in passes:
            for bound in args.days_bounds.split(","):
                mode = "points" if float(bound) <= 5 else "set"
                checks.row(os.path.basename(path), [f"{path}/velodyne"], mode, f"{bound}cm",
                           ["--poses", f"{path}/poses.txt"], [])
    print(f"\nviolations: {checks.violations}")
    return 1 if checks.violations else 0


if __name__ == "__main__":
    sys.exit(main())
