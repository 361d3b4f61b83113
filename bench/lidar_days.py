#!/usr/bin/env python3
"""What days of history save: the drive of one day, predicted from more and more days before it.

usage: lidar_days.py QUERN DAYS [--day 60] [--history 0,1,2,7,14,30,59] [--bounds 15cm,26cm] [--every 2]
                     [--resolution 2cm] [--pose-error METRES,DEGREES] [--oldest]

DAYS holds day-DD/velodyne and day-DD/poses.txt, as quern-drives or scripts/lidar_days.sh make them. Days are added to
one history, the newest first (which cells a history has does not depend on the order), every Nth scan of each. At each
count of --history the drive of --day is compressed with its poses, with what the history has then, without attributes;
another process verifies it in both directions. Ratios are those of 16 bytes a point against all bytes of a frame. With
--pose-error each pass of the history is off by so much (normal, fixed seed); --oldest begins with day 1 instead, whose
season is another. Prints a Markdown table.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE).stdout


def passes_of(folder, day):
    names = sorted(name for name in os.listdir(folder) if name == f"day-{day:02}" or name.startswith(f"day-{day:02}-"))
    return [os.path.join(folder, name) for name in names]


def read_poses(path):
    with open(path) as file:
        return [[float(word) for word in line.split()] for line in file if line.strip()]


def shifted(rows, chance, metres, degrees):
    """A pose that stands a little elsewhere and is turned about the vertical."""
    angle = math.radians(degrees * chance.gauss(0, 1))
    move = [metres * chance.gauss(0, 1) for _ in range(3)]
    cosine, sine = math.cos(angle), math.sin(angle)
    centre = (rows[0][3], rows[0][7])

    def turned(pose):
        x, y, z = pose[:4], pose[4:8], pose[8:12]
        x, y = x[:3] + [x[3] - centre[0]], y[:3] + [y[3] - centre[1]]
        first = [cosine * a - sine * b for a, b in zip(x, y)]
        second = [sine * a + cosine * b for a, b in zip(x, y)]
        return [*first[:3], first[3] + centre[0] + move[0], *second[:3], second[3] + centre[1] + move[1],
                *z[:3], z[3] + move[2] / 3]

    return [turned(pose) for pose in rows]


def add_day(args, history, day, folder, chance):
    for path in passes_of(args.days, day):
        poses = read_poses(os.path.join(path, "poses.txt"))
        if args.pose_error:
            poses = shifted(poses, chance, *args.pose_error)
        scans = sorted(os.listdir(os.path.join(path, "velodyne")))[::args.every]
        lines = os.path.join(folder, "poses.txt")
        with open(lines, "w") as file:
            file.writelines(" ".join(f"{value:.9f}" for value in pose) + "\n" for pose in poses[::args.every])
        run(args.quern, "lidar", "history", "add", history, *[os.path.join(path, "velodyne", scan) for scan in scans],
            "--poses", lines, "-q")


def measure(args, bound, history, folder):
    """Points and bytes of each frame, and the mean distance of a scan's points in metres."""
    path = passes_of(args.days, args.day)[0]
    drive = os.path.join(folder, "drive.qnl")
    words = ["--history", history] if history else []
    run(args.quern, "lidar", "compress", os.path.join(path, "velodyne"), "-o", drive, "--max-error", bound,
        "--mode", "set", "--no-attributes", "--poses", os.path.join(path, "poses.txt"), *words, "-f", "-q")
    checked = json.loads(run(args.quern, "lidar", "verify", drive, "--original", os.path.join(path, "velodyne"), *words,
                             "--json"))
    each = json.loads(run(args.quern, "lidar", "info", drive, "--json"))["each"]
    return [(frame["source_points"], frame["stored_bytes"]) for frame in each], checked["mean_error"]


def row(args, bound, days, history, folder):
    frames, mean = measure(args, bound, history, folder)
    ratios = [16 * points / stored for points, stored in frames]
    kept = json.loads(run(args.quern, "lidar", "history", "stat", history, "--json"))["bytes"] if history else 0
    print(f"| {bound} | {days} | {statistics.median(stored for _, stored in frames):.0f} "
          f"| {statistics.median(ratios):.1f} | {min(ratios):.1f} | {max(ratios):.1f} "
          f"| {100 * mean:.2f} | {kept} |", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("quern")
    parser.add_argument("days")
    parser.add_argument("--day", type=int, default=60)
    parser.add_argument("--history", default="0,1,2,7,14,30,59")
    parser.add_argument("--bounds", default="15cm,26cm")
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--resolution", default="2cm")
    parser.add_argument("--pose-error")
    parser.add_argument("--oldest", action="store_true")
    args = parser.parse_args()
    args.pose_error = [float(part) for part in args.pose_error.split(",")] if args.pose_error else None
    counts = sorted(int(count) for count in args.history.split(","))
    chance = random.Random(1)
    print("| bound | days of history | bytes a frame, median | ratio, median | least | most | mean error, cm "
          "| history |\n"
          "|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        history = os.path.join(folder, "history")
        run(args.quern, "lidar", "history", "init", history, "--resolution", args.resolution, "-q")
        added = 0
        for count in counts:
            for day in range(added, count):
                add_day(args, history, 1 + day if args.oldest else args.day - 1 - day, folder, chance)
            added = max(added, count)
            for bound in args.bounds.split(","):
                row(args, bound, count, history if added else None, folder)


if __name__ == "__main__":
    sys.exit(main())
