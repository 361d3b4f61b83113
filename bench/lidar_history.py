#!/usr/bin/env python3
"""What a history saves: each frame of a sequence alone, and predicted from all others.

usage: lidar_history.py QUERN SCANS POSES [--bounds 15cm,5cm] [--resolutions 2cm] [--mode set] [--frames K,...]

SCANS is a folder, POSES has a line for each scan in it. For each frame a history of all other scans is made, the frame
is compressed with and without it, decoded by another process, and verified in both directions. A frame is a drive of
its own here, so it has pose, epoch and the rays of the sensor, some 300 bytes, which a key frame holds for up to 64
frames; `coordinates` leaves them out. No attributes. Prints a Markdown table.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE).stdout


def frame_bytes(quern, drive):
    """Of the frame, and of its coordinates alone."""
    frame = json.loads(run(quern, "lidar", "info", drive, "--json"))["each"][0]
    return [frame["stored_bytes"], frame["geometry_bytes"]]


def measure(quern, scans, poses, index, bound, mode, resolution, folder):
    """Bytes alone, with the history, and of the history."""
    one = os.path.join(folder, "one.txt")
    others = os.path.join(folder, "others.txt")
    with open(one, "w") as file:
        file.write(poses[index])
    with open(others, "w") as file:
        file.writelines(poses[:index] + poses[index + 1:])
    history = os.path.join(folder, f"history-{index}-{resolution}")
    if not os.path.exists(history):
        run(quern, "lidar", "history", "init", history, "--resolution", resolution, "-q")
        run(quern, "lidar", "history", "add", history, *scans[:index], *scans[index + 1:], "--poses", others, "-q")
    words = [quern, "lidar", "compress", scans[index], "--max-error", bound, "--mode", mode, "--no-attributes", "-f", "-q"]
    drive = os.path.join(folder, "drive.qnl")
    run(*words, "-o", drive)
    alone = frame_bytes(quern, drive)
    run(*words, "-o", drive, "--poses", one, "--history", history)
    back = os.path.join(folder, "back.pcd")
    run(quern, "lidar", "decompress", drive, "-o", back, "--history", history, "-f", "-q")
    run(quern, "lidar", "verify", drive, "--original", scans[index], "--history", history, "-q")
    stat = json.loads(run(quern, "lidar", "history", "stat", history, "--json"))
    return alone, frame_bytes(quern, drive), stat["bytes"]


def row(bound, resolution, name, alone, with_it, kept):
    changes = " | ".join(f"{a} | {b} | {100 * b / a - 100:+.1f} %" for a, b in zip(alone, with_it))
    return f"| {bound} | {resolution} | {name} | {changes} | {kept} |"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("quern")
    parser.add_argument("scans")
    parser.add_argument("poses")
    parser.add_argument("--bounds", default="15cm,5cm")
    parser.add_argument("--resolutions", default="2cm")
    parser.add_argument("--mode", default="set")
    parser.add_argument("--frames")
    args = parser.parse_args()
    scans = sorted(os.path.join(args.scans, name) for name in os.listdir(args.scans) if name.endswith((".bin", ".pcd")))
    with open(args.poses) as file:
        poses = [line for line in file if line.strip()]
    frames = [int(k) for k in args.frames.split(",")] if args.frames else range(len(scans))
    print("| bound | cells | frame | alone | with history | change | coordinates alone | with history | change | history |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for bound in args.bounds.split(","):
            for resolution in args.resolutions.split(","):
                sums = [[0, 0], [0, 0]]
                for index in frames:
                    alone, with_it, kept = measure(args.quern, scans, poses, index, bound, args.mode, resolution, folder)
                    sums = [[a + b for a, b in zip(*pair)] for pair in zip(sums, (alone, with_it))]
                    print(row(bound, resolution, os.path.basename(scans[index]), alone, with_it, kept), flush=True)
                print(row(bound, resolution, "all", *sums, ""), flush=True)


if __name__ == "__main__":
    sys.exit(main())
