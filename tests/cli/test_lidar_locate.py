# quern lidar compress --history without poses: frames find their place in a street that was driven before, from another
# line and turned; a history of another street costs next to nothing; real scans where QUERN_LIDAR_DATA or the shared
# folder has them.
import glob
import math
import os
import random
import unittest

import harness
import test_lidar
from harness import CliTest, read_bytes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("QUERN_LIDAR_DATA", os.path.join(os.path.dirname(ROOT), "shared", "data", "lidar"))


def street(seed):
    """Houses on both sides: boxes from the ground up, as (x0, x1, y0, y1, height)."""
    source, out = random.Random(seed), []
    for side in (-1, 1):
        x = -60.0
        while x < 60:
            width, gap, y = source.uniform(4, 14), source.uniform(1, 7), source.uniform(6, 11)
            near, far = sorted((side * y, side * (y + 12)))
            out.append((x, x + width, near, far, source.uniform(2, 9)))
            x += width + gap
    for _ in range(12):
        x, y = source.uniform(-50, 50), source.choice((-1, 1)) * source.uniform(3, 5)
        out.append((x, x + 0.6, y, y + 0.6, source.uniform(1, 5)))
    return out


def reach_to(box, x, y, dx, dy):
    """Where a ray in the plane enters a box; infinity where it does not."""
    first, last = 0.0, math.inf
    for at, by, low, high in ((x, dx, box[0], box[1]), (y, dy, box[2], box[3])):
        if abs(by) < 1e-12:
            if not low <= at <= high:
                return math.inf
            continue
        one, other = sorted(((low - at) / by, (high - at) / by))
        first, last = max(first, one), min(last, other)
    return first if 0 < first <= last else math.inf


def street_scan(boxes, x, y, yaw, seed, rings=32, columns=512):
    """Ring after ring from 1.7 m above the ground, in the sensor's coordinates."""
    source, rays = random.Random(seed), []
    for column in range(columns):
        azimuth = 2 * math.pi * (column + 0.5) / columns
        dx, dy = math.cos(azimuth + yaw), math.sin(azimuth + yaw)
        hits = sorted((reach_to(box, x, y, dx, dy), box[4]) for box in boxes)
        rays.append((azimuth, [hit for hit in hits if hit[0] < 70]))
    out = test_lidar.array.array("f")
    for ring in range(rings):
        slope = math.tan(-0.36 + 0.5 * ring / rings)
        for azimuth, hits in rays:
            flat = 1.7 / -slope if slope < 0 else math.inf
            flat = min([flat] + [reach for reach, height in hits if slope * reach + 1.7 <= height])
            if flat > 70:
                continue
            flat += source.gauss(0, 0.01)
            out.extend((flat * math.cos(azimuth), flat * math.sin(azimuth), flat * slope, 0.5))
    return out


def pose_line(x, y, yaw):
    c, s = math.cos(yaw), math.sin(yaw)
    return "%.9f %.9f 0 %.6f %.9f %.9f 0 %.6f 0 0 1 0\n" % (c, -s, x, s, c, y)


class Locate(CliTest):
    def drive(self, name, boxes, places):
        os.mkdir(self.path(name))
        scans = [self.write(f"{name}/{i:06}.bin", street_scan(boxes, *place, 100 * len(name) + i).tobytes())
                 for i, place in enumerate(places)]
        return scans, self.write(name + ".txt", "".join(pose_line(*place) for place in places).encode())

    def history(self, name, scans, poses):
        folder = self.path(name)
        self.ok("lidar", "history", "init", folder, "-q", "--resolution", "5cm")
        self.ok("lidar", "history", "add", folder, *scans, "--poses", poses, "-q")
        return folder

    def compress(self, scans, name, *words):
        out = self.path(name)
        return out, self.json(self.ok("lidar", "compress", *scans, "-o", out, "--max-error", "15cm", "--json", *words))

    def test_frames_find_their_place(self):
        boxes = street(1)
        history = self.history("streets", *self.drive("before", boxes, [(1.0 * i, 0.1 * (i % 3), 0.02 * i) for i in range(12)]))
        places = [(4.2, 0.5, 2.1), (5.6, 0.55, 2.13), (7.1, 0.6, 2.15)]
        scans, _ = self.drive("day", boxes, places)
        _, alone = self.compress(scans, "alone.qnl")
        drive, told = self.compress(scans, "drive.qnl", "--history", history)
        self.assertEqual((told["located_frames"], told["frames"]), (3, 3))
        self.assertGreaterEqual(told["history_frames"], 2)
        self.assertLess(told["output_bytes"], 0.95 * alone["output_bytes"])
        frames = self.json(self.ok("lidar", "info", drive, "--json"))["each"]
        for frame, (x, y, yaw) in zip(frames, places):
            pose = frame["pose"]
            self.assertLess(math.dist((pose[3], pose[7], pose[11]), (x, y, 0)), 0.05)
            self.assertLess(abs(math.remainder(math.atan2(pose[4], pose[0]) - yaw, 2 * math.pi)), 0.005)
        self.ok("lidar", "verify", drive, "--original", *scans, "--history", history, "-q")
        # Poses that were found can be given back, and threads do not matter.
        found = self.write("found.txt", "".join(" ".join(map(repr, f["pose"])) + "\n" for f in frames).encode())
        for words in (("--poses", found), ("-T", 2)):
            again, _ = self.compress(scans, "again.qnl", "-f", "--history", history, *words)
            self.assertEqual(read_bytes(again), read_bytes(drive))
        text = self.ok("lidar", "compress", *scans, "-o", self.path("text.qnl"), "--max-error", "15cm", "--history",
                       history).stderr.decode()
        self.assertIn("3 of 3 frames found their place", text)

    def test_another_street_costs_next_to_nothing(self):
        scans, _ = self.drive("day", street(1), [(4.2, 0.5, 2.1), (5.6, 0.55, 2.13)])
        _, alone = self.compress(scans, "alone.qnl")
        other = self.history("other", *self.drive("elsewhere", street(2), [(0, 0, 0), (6, 0, 0)]))
        drive, told = self.compress(scans, "other.qnl", "--history", other)
        self.assertLessEqual(told["output_bytes"], 1.01 * alone["output_bytes"] + 16)
        self.ok("lidar", "verify", drive, "--original", *scans, "--history", other, "-q")
        # Without places, or with damaged ones, frames are coded as without a history.
        places, = glob.glob(other + "/places/*")
        damaged = bytearray(read_bytes(places))
        damaged[100] ^= 1
        self.write(os.path.relpath(places, self.folder.name), damaged)
        result = self.ok("lidar", "compress", *scans, "-o", self.path("d.qnl"), "--max-error", "15cm", "--history", other)
        self.assertIn(b"its places are not used", result.stderr)
        self.assertIn(b"0 of 2 frames found their place", result.stderr)
        self.assertEqual(read_bytes(self.path("d.qnl")), read_bytes(self.path("alone.qnl")))
        empty = self.path("empty")
        self.ok("lidar", "history", "init", empty, "-q")
        _, told = self.compress(scans, "e.qnl", "--history", empty)
        self.assertEqual(told["located_frames"], 0)
        self.assertEqual(read_bytes(self.path("e.qnl")), read_bytes(self.path("alone.qnl")))

    @unittest.skipUnless(os.path.exists(os.path.join(DATA, "kitti_raw_0005")), "no real scans here")
    def test_a_real_scan_finds_its_place(self):
        scans = sorted(glob.glob(os.path.join(DATA, "kitti_raw_0005", "*.pcd")))
        with open(glob.glob(os.path.join(DATA, "kitti_raw_0005", "poses*"))[0], "rb") as file:
            lines = file.read().splitlines()
        poses = self.write("poses.txt", b"\n".join(lines[:4] + lines[5:]) + b"\n")
        history = self.history("streets", scans[:4] + scans[5:], poses)
        drive, told = self.compress(scans[4:5], "drive.qnl", "--history", history, "--no-attributes")
        self.assertEqual(told["located_frames"], 1)
        pose = self.json(self.ok("lidar", "info", drive, "--json"))["each"][0]["pose"]
        truth = list(map(float, lines[4].split()))
        self.assertLess(math.dist(pose[3::4], truth[3::4]), 0.1)
        self.ok("lidar", "verify", drive, "--history", history, "-q")


if __name__ == "__main__":
    harness.main()
