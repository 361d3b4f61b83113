# quern lidar: files in and out, the bound in both directions by a check of this file's own, damage, refusals, and real
# scans where QUERN_LIDAR_DATA or the shared folder has them.
import array
import glob
import math
import os
import random
import re
import signal
import struct
import subprocess
import time
import xml.etree.ElementTree

import harness
from harness import CliTest, read_bytes

THOROUGH = os.environ.get("QUERN_TEST_THOROUGH", "0") not in ("", "0")

CM = 0.01
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("QUERN_LIDAR_DATA", os.path.join(os.path.dirname(ROOT), "shared", "data", "lidar"))


def scan(points=3000, seed=1):
    """Ground, a wall and noise around a sensor: x, y, z, intensity."""
    source, out = random.Random(seed), array.array("f")
    for i in range(points):
        azimuth = 2 * math.pi * i / points
        elevation = -0.4 + 0.5 * (i % 16) / 16
        reach = min(1.7 / math.sin(-elevation) if elevation < -0.02 else 60.0, 40 + 5 * math.sin(7 * azimuth))
        reach += source.gauss(0, 0.02)
        flat = reach * math.cos(elevation)
        out.extend((flat * math.cos(azimuth), flat * math.sin(azimuth), reach * math.sin(elevation),
                    round(source.random(), 2)))
    return out


def ring_scan(seed, rings=32, columns=512):
    """The same ground and walls, ring after ring, with noise of its own."""
    source, out = random.Random(seed), array.array("f")
    for ring in range(rings):
        elevation = -0.4 + 0.5 * ring / rings
        for column in range(columns):
            azimuth = 2 * math.pi * (column + 0.5) / columns
            reach = min(1.7 / math.sin(-elevation) if elevation < -0.02 else 60.0, 9 + 4 * math.sin(7 * azimuth))
            reach += source.gauss(0, 0.02)
            flat = reach * math.cos(elevation)
            out.extend((flat * math.cos(azimuth), flat * math.sin(azimuth), reach * math.sin(elevation), 0.5))
    return out


def rows(values, width):
    return [tuple(values[i:i + width]) for i in range(0, len(values), width)]


class Cells:
    """Points in cubes of a side, for nearest neighbours within it."""

    def __init__(self, points, side):
        self.side, self.cells = side, {}
        for p in points:
            self.cells.setdefault(self.key(p), []).append(p)

    def key(self, p):
        return tuple(math.floor(c / self.side) for c in p[:3])

    def has_near(self, p, bound):
        x, y, z = self.key(p)
        return any(math.dist(p[:3], q[:3]) <= bound
                   for dx in (-1, 0, 1) for dy in (-1, 0, 1) for dz in (-1, 0, 1)
                   for q in self.cells.get((x + dx, y + dy, z + dz), ()))


class Lidar(CliTest):
    def bin(self, name, values):
        return self.write(name, values.tobytes())

    def read_bin(self, path, width=4):
        values = array.array("f")
        values.frombytes(read_bytes(path))
        return rows(values, width)

    def assert_within(self, a, b, bound):
        for one, other in ((a, b), (b, a)):
            cells = Cells(other, bound)
            missed = [p for p in one if not cells.has_near(p, bound)]
            self.assertEqual(missed, [], bound)

    def compress(self, inputs, name, *words):
        out = self.path(name)
        return out, self.json(self.ok("lidar", "compress", *inputs, "-o", out, "--json", *words))

    def test_every_bound_and_mode_holds_in_both_directions(self):
        values = scan()
        source, points = self.bin("a.bin", values), rows(values, 4)
        for cm in (1, 2, 5, 10, 15, 26):
            for mode in ("set", "points"):
                drive, told = self.compress([source], f"{cm}{mode}.qnl", "--max-error", f"{cm}cm", "--mode", mode)
                back = self.path(f"{cm}{mode}.bin")
                self.ok("lidar", "decompress", drive, "-o", back, "-q")
                decoded = self.read_bin(back)
                self.assert_within(points, decoded, cm * CM)
                self.assertLessEqual(told["max_error"], cm * CM)
                self.assertEqual(told["bound"]["value"], cm / 100)
                if mode == "points":
                    self.assertEqual(len(decoded), len(points))
                    for p, q in zip(points, decoded):
                        self.assertLessEqual(math.dist(p[:3], q[:3]), cm * CM)
                        self.assertEqual(p[3], q[3])
                found = self.json(self.ok("lidar", "verify", drive, "--original", source, "--json"))
                self.assertEqual((found["violations"], found["attribute_changes"]), (0, 0))
                self.assertLessEqual(found["max_error"], cm * CM)

    def test_nothing_is_lost_without_a_bound(self):
        values = scan()
        values[0:3] = array.array("f", [float("nan"), float("inf"), -0.0])
        source = self.bin("a.bin", values)
        drive, told = self.compress([source], "a.qnl")
        self.assertEqual((told["mode"], told["max_error"]), ("exact", 0))
        self.ok("lidar", "decompress", drive, "-o", self.path("b.bin"))
        self.assertEqual(read_bytes(self.path("b.bin")), read_bytes(source))
        self.ok("lidar", "verify", drive, "--original", source)

    def test_formats_carry_the_points(self):
        values = scan(500)
        source = self.bin("a.bin", values)
        drive, _ = self.compress([source], "a.qnl", "--max-error", "2cm")
        self.ok("lidar", "decompress", drive, "-o", self.path("a0.bin"), "-q")
        for ending in ("pcd", "ply", "npy", "las"):
            file = self.path("a." + ending)
            self.ok("lidar", "decompress", drive, "-o", file)
            distances = self.json(self.ok("lidar", "compare", self.path("a0.bin"), file, "--json"))
            self.assertLess(distances["max_error"], 1e-5, ending)
            again, told = self.compress([file], ending + ".qnl")
            self.ok("lidar", "decompress", again, "-o", self.path("again"), "--format", ending, "-f", "-q")
            self.assertEqual(read_bytes(self.path("again")), read_bytes(file), ending)

    def test_one_frame_of_many(self):
        folder = self.path("scans")
        os.mkdir(folder)
        originals = [self.bin(f"scans/{i:06}.bin", scan(400, i)) for i in range(5)]
        times = self.write("times.txt", b"2011-09-26 13:02:25.951199337\n1317042146.05\n3\n4.5\n5\n")
        drive, told = self.compress([folder], "a.qnl", "--max-error", "15cm", "-T", "2", "--times", times)
        self.assertEqual(told["frames"], 5)
        self.ok("lidar", "decompress", drive, "--frame", 3, "-o", self.path("three.bin"), "-q")
        self.assert_within(self.read_bin(originals[3]), self.read_bin(self.path("three.bin")), 0.15)
        self.ok("lidar", "decompress", drive, "-o", self.path("back/"), "-T", 2, "-q")
        self.assertEqual(sorted(os.listdir(self.path("back"))), [f"{i:06}.bin" for i in range(5)])
        self.assertEqual(read_bytes(self.path("back/000003.bin")), read_bytes(self.path("three.bin")))
        info = self.json(self.ok("lidar", "info", drive, "--json"))
        self.assertEqual([f["name"] for f in info["each"]], [f"{i:06}" for i in range(5)])
        self.assertEqual([f["time_ns"] for f in info["each"]],
                         [1317042145951199337, 1317042146050000000, 3000000000, 4500000000, 5000000000])
        self.refused(1, "no frame 5", "lidar", "decompress", drive, "--frame", 5, "-o", self.path("x.bin"))
        self.refused(1, "name a folder", "lidar", "decompress", drive, "-o", "-")
        self.ok("lidar", "verify", drive, "--original", folder, "-T", 2)
        self.refused(1, "3 scans", "lidar", "verify", drive, "--original", *originals[:3])
        wrong = self.refused(4, "frame 0 (000000)", "lidar", "verify", drive, "-q", "--original", originals[1], *originals[1:])
        self.assertIn("misses its bound", wrong.stderr.decode())
        self.assertIn("drive     5 frames", self.ok("info", drive).stdout.decode())
        self.ok("verify", drive)
        self.assertEqual(self.json(self.ok("info", "--check", "--json", drive))["streams"][0]["lidar_frames"], 5)

    def test_poses_predict_frames(self):
        inputs = [self.bin(f"{i}.bin", ring_scan(i)) for i in range(4)]
        row = "0.8 -0.6 0 100 0.6 0.8 0 -7.5 0 0 1 2\n"
        poses = self.write("poses.txt", 4 * row.encode())
        words = ("--max-error", "15cm", "--no-attributes")
        alone, plain = self.compress(inputs, "alone.qnl", *words)
        drive, told = self.compress(inputs, "posed.qnl", *words, "--poses", poses, "--key-frames", 3)
        self.assertEqual((plain["predicted_frames"], told["predicted_frames"]), (0, 2))
        self.assertLess(told["each"][1]["output_bytes"], 0.95 * plain["each"][1]["output_bytes"])
        again, _ = self.compress(inputs, "again.qnl", *words, "--poses", poses, "--key-frames", 3, "-T", 2)
        self.assertEqual(read_bytes(drive), read_bytes(again))
        wrong = self.write("wrong.txt", b"".join(
            b"%d 0 0 %d 0 %d 0 0 0 0 1 %d\n" % (1 - 2 * (i % 2), 70 * i, 1 - 2 * (i % 2), i) for i in range(4)))
        self.compress(inputs, "wrong.qnl", *words, "--poses", wrong)
        for name in ("posed.qnl", "wrong.qnl"):
            found = self.json(self.ok("lidar", "verify", self.path(name), "--original", *inputs, "--json", "-T", 2))
            self.assertEqual(found["violations"], 0)
            self.ok("lidar", "decompress", self.path(name), "--frame", 2, "-o", self.path("two.bin"), "-f", "-q")
            self.assert_within(rows(ring_scan(2), 4), self.read_bin(self.path("two.bin")), 0.15)
        out = ("-o", self.path("x.qnl"), *words)
        self.refused(1, "has 4 poses, but there are 3 frames", "lidar", "compress", *inputs[:3], *out, "--poses", poses)
        bent = self.write("bent.txt", row.encode() + b"1 0 0 0 0 1.1 0 0 0 0 1 0\n" + 2 * row.encode())
        self.refused(1, "line 2 is no pose", "lidar", "compress", *inputs, *out, "--poses", bent)
        short = self.write("short.txt", b"1 0 0 0 0 1 0 0 0 0 1\n")
        self.refused(1, "line 1 is not 12 numbers", "lidar", "compress", *inputs, *out, "--poses", short)
        self.refused(1, "--key-frames needs --poses", "lidar", "compress", *inputs, *out, "--key-frames", 3)
        self.refused(1, "64", "lidar", "compress", *inputs, *out, "--poses", poses, "--key-frames", 65)

    def test_threads_change_no_byte(self):
        inputs = [self.bin(f"{i}.bin", scan(300, i)) for i in range(9)]
        drives = [read_bytes(self.compress(inputs, f"t{n}.qnl", "--max-error", "5cm", "-T", n)[0]) for n in (1, 2, 5)]
        self.assertEqual(len(set(drives)), 1)
        single = [read_bytes(self.compress(inputs[:1], f"s{n}.qnl", "--max-error", "15cm", "-T", n)[0]) for n in (1, 4)]
        self.assertEqual(len(set(single)), 1)

    def test_names_that_come_twice_are_both_kept(self):
        os.mkdir(self.path("a"))
        os.mkdir(self.path("b"))
        inputs = [self.bin("a/0.bin", scan(50, 1)), self.bin("b/0.bin", scan(50, 2))]
        drive, _ = self.compress(inputs, "d.qnl")
        self.ok("lidar", "decompress", drive, "-o", self.path("out"), "-q")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["0-1.bin", "0.bin"])
        self.assertEqual(read_bytes(self.path("out/0-1.bin")), read_bytes(inputs[1]))

    def test_columns_are_told_or_asked_for(self):
        five = array.array("f")
        for i, p in enumerate(rows(scan(200), 4)):
            five.extend(p + (float(i % 32),))
        source = self.bin("five.bin", five)
        drive, told = self.compress([source], "a.qnl")
        self.assertEqual(told["points"], 200)
        self.ok("lidar", "decompress", drive, "-o", self.path("b.bin"), "-q")
        self.assertEqual(read_bytes(self.path("b.bin")), read_bytes(source))
        zeros = self.write("z.bin", bytes(80))
        self.refused(1, "--columns", "lidar", "compress", zeros, "-o", self.path("z.qnl"))
        self.assertEqual(self.compress([zeros], "z.qnl", "--columns", 5)[1]["points"], 4)

    def test_hard_clouds(self):
        clouds = {"empty": [], "one": [(1, 2, 3, 0)], "equal": [(1, 2, 3, 0.5)] * 5000, "origin": [(0, 0, 0, 0)] * 7,
                  "far": [(10000 + i * 0.3, -9000, i % 5, 0) for i in range(300)],
                  "bad": [(float("nan"), 0, 0, 0), (float("inf"), 1, 1, 0)] + [(i, i, i, 0) for i in range(20)],
                  "twice": [(i % 10, 0, 0, i) for i in range(100)]}
        for name, points in clouds.items():
            source = self.bin(name + ".bin", array.array("f", [float(c) for p in points for c in p]))
            for words in (["--max-error", "15cm"], ["--max-error", "2cm"], []):
                drive, told = self.compress([source], name + ".qnl", "--columns", 4, "-f", *words)
                self.assertEqual(told["points"], len(points), name)
                self.ok("lidar", "verify", drive, "--original", source, "--columns", 4)
                self.ok("lidar", "decompress", drive, "-o", self.path("x.bin"), "-f", "-q")
        self.assertEqual(told["dropped_points"], 0)
        told = self.compress([self.path("bad.bin")], "bad.qnl", "--columns", 4, "-f", "--max-error", "15cm")[1]
        self.assertEqual(told["dropped_points"], 2)

    def test_zero_points_are_kept_or_dropped_as_asked(self):
        values = scan(300)
        zeros = array.array("f", [0, -0.0, 0, 0.25] * 20)
        source = self.bin("a.bin", zeros + values + zeros)
        plain = self.bin("plain.bin", values)
        for words in (["--max-error", "15cm"], ["--max-error", "2cm"], []):
            kept, told = self.compress([source], "kept.qnl", "-f", *words)
            self.assertEqual((told["points"], told["dropped_zeros"]), (340, 0))
            self.ok("lidar", "verify", kept, "--original", source)
            drive, told = self.compress([source], "dropped.qnl", "-f", "--drop-zeros", *words)
            self.assertEqual((told["points"], told["dropped_zeros"]), (300, 40))
            self.ok("lidar", "verify", drive, "--original", source, "--drop-zeros")
            told = self.refused(4, "dropped.qnl", "lidar", "verify", drive, "--original", source)
            self.assertIn("if it was made with --drop-zeros, type --drop-zeros", told.stderr.decode())
            self.ok("lidar", "verify", drive, "--original", plain)
        self.ok("lidar", "decompress", drive, "-o", self.path("back.bin"), "-q")
        self.assertEqual(read_bytes(self.path("back.bin")), read_bytes(plain))
        told = self.ok("lidar", "compress", source, "-o", drive, "-f", "--drop-zeros").stderr.decode()
        self.assertIn("40 points at 0 0 0 were left out", told)
        self.refused(1, "--drop-zeros", "lidar", "compress", source, "-o", drive, "-f", "--drop-zeros", "--sensor",
                     source)
        self.refused(1, "scans of --original", "lidar", "verify", drive, "--drop-zeros")
        self.refused(1, "which need --poses", "lidar", "history", "add", self.path("h"), drive, "--drop-zeros")
        kept, _ = self.compress([source], "kept.qnl", "-f")
        told = self.json(self.ok("lidar", "compare", kept, plain, "--drop-zeros", "--json"))
        self.assertEqual((told["a_points"], told["b_points"], told["max_error"]), (300, 300, 0))

    def test_a_million_points_at_one_place(self):
        source = self.write("m.bin", struct.pack("<4f", 3.5, -1.25, 0.5, 0.25) * 1000000)
        drive, told = self.compress([source], "m.qnl", "--max-error", "15cm")
        self.assertEqual((told["points"], told["kept_points"]), (1000000, 1))
        self.assertLess(told["output_bytes"], 2000)
        self.ok("lidar", "verify", drive, "--original", source)
        words = ["lidar", "compress", source, "-o", drive, "-f", "--memory"]
        told = self.refused(5, "m.bin: has 1000000 points", *words, "64M", "-T", 2)
        self.assertIn("raise --memory", told.stderr.decode())
        self.assertNotIn("-T", told.stderr.decode())
        # Before it is read.
        self.refused(5, "m.bin: 1000000 points of 16 bytes each", *words, "8M")
        self.refused(5, "m.bin: 1000000 points", "lidar", "verify", drive, "--original", source, "--memory", "8M")

    def test_attributes_count_against_memory(self):
        fields = " ".join(f"a{i}" for i in range(32))
        header = (f"FIELDS x y z {fields}\nSIZE 4 4 4{' 8' * 32}\nTYPE F F F{' U' * 32}\nPOINTS 20000\n"
                  "DATA binary\n")
        source = self.write("wide.pcd", header.encode() + bytes(20000 * (12 + 256)))
        words = ["lidar", "compress", source, "-o", self.path("w.qnl"), "-q", "--memory", "8M"]
        self.refused(5, "wide.pcd: has 20000 points", *words)
        self.ok(*words, "--no-attributes")

    def test_damage_is_told_with_file_and_frame(self):
        inputs = [self.bin(f"{i}.bin", scan(300, i)) for i in range(3)]
        drive, _ = self.compress(inputs, "a.qnl")
        data = bytearray(read_bytes(drive))
        for cut in (0, 10, len(data) // 2, len(data) - 1):
            short = self.write("short.qnl", bytes(data[:cut]))
            for words in (("info", short), ("verify", short), ("decompress", short, "-o", self.path("x"))):
                self.assertIn("short.qnl", self.refused(3, "short.qnl", "lidar", *words).stderr.decode())
        data[len(data) // 2] ^= 1
        broken = self.write("broken.qnl", bytes(data))
        self.refused(3, "broken.qnl", "lidar", "verify", broken)
        self.refused(3, "broken.qnl: frame 1", "lidar", "decompress", broken, "-o", self.path("out"))
        self.assertEqual([f for f in os.listdir(self.folder.name) if f.endswith(".part")], [])
        self.refused(3, "no drive", "lidar", "info", inputs[0])

    def test_refusals(self):
        source = self.bin("a.bin", scan(100))
        out = self.path("o.qnl")
        for words, part in ((["--max-error", "15 km"], "write a length"), (["--max-error", "0"], "write a length"),
                            (["--max-error", "200m"], "104m"), (["--mode", "set"], "--max-error 15cm"),
                            (["--mode", "exact", "--max-error", "1cm"], "leave --max-error out"),
                            (["--mode", "most"], "set, points or exact"), (["--columns", "3"], "use 4 or 5"),
                            (["--max-error", "0.01mm"], "resolution")):
            self.refused(1, part, "lidar", "compress", source, "-o", out, *words)
        self.assertFalse(os.path.exists(out))
        self.refused(2, "none.bin", "lidar", "compress", self.path("none.bin"), "-o", out)
        self.refused(1, "lidar compress", "lidar", "compress")
        self.refused(2, "cut.pcd", "lidar", "compress", self.write("cut.pcd", b"VERSION 0.7\n"), "-o", out)
        os.mkdir(self.path("nothing"))
        self.refused(2, "nothing", "lidar", "compress", self.path("nothing"), "-o", out)
        self.ok("lidar", "compress", source, "-o", out, "-q")
        self.ok("lidar", "compress", source, "-o", self.path("b.qnl"), "--max-error", "1cm", "--mode", "points", "-q")
        self.ok("lidar", "decompress", self.path("b.qnl"), "-o", self.path("b.las"), "-q")
        packed = bytearray(read_bytes(self.path("b.las")))
        packed[104] |= 0x80  # in the number of the point format: its points are compressed
        self.refused(2, "LAZ", "lidar", "compress", self.write("a.laz", packed), "-o", self.path("laz.qnl"))
        self.refused(2, "exists already", "lidar", "compress", source, "-o", out)
        self.refused(1, "same file", "lidar", "compress", source, "-o", source, "-f")
        self.refused(2, "exists already", "lidar", "decompress", out, "-o", source)

    def test_formats_that_cannot_hold_a_cloud_say_so(self):
        header = b"VERSION 0.7\nFIELDS x y z t\nSIZE 8 8 8 8\nTYPE F F F U\nCOUNT 1 1 1 1\nWIDTH 1\nHEIGHT 1\nPOINTS 1\nDATA binary\n"
        source = self.write("w.pcd", header + struct.pack("<3dQ", 512345.123456, 1.1, 2.2, 7))
        drive, _ = self.compress([source], "w.qnl")
        self.refused(1, "frame 0 (w)", "lidar", "decompress", drive, "-o", self.path("w.bin"))
        told = self.ok("lidar", "decompress", drive, "-o", self.path("w.ply")).stderr.decode()
        self.assertIn("column t", told)
        self.ok("lidar", "decompress", drive, "-o", self.path("again.pcd"))
        self.assertEqual(read_bytes(self.path("again.pcd"))[-32:], read_bytes(source)[-32:])

    def test_compare_and_report(self):
        a, b = scan(2000, 1), scan(2000, 1)
        b[1] += 0.125
        one, other = self.bin("a.bin", a), self.bin("b.bin", b)
        found = self.json(self.ok("lidar", "compare", one, other, "--json", "--html", self.path("r.html")))
        self.assertAlmostEqual(found["forward"]["max"], 0.125, places=5)
        self.assertEqual(found["forward"]["worst_point"], 0)
        page = read_bytes(self.path("r.html")).decode()
        xml.etree.ElementTree.fromstring(page.replace("<!DOCTYPE html>", ""))
        for part in ("birds-eye", "range-images", "histogram", "figures"):
            self.assertIn(f'<section id="{part}">', page)
        self.assertGreaterEqual(page.count("data:image/png;base64,"), 10)
        self.assertNotIn(self.folder.name, page)
        self.refused(2, "exists already", "lidar", "compare", one, other, "--html", self.path("r.html"))
        empty = self.bin("e.bin", array.array("f"))
        self.assertIsNone(self.json(self.ok("lidar", "compare", one, empty, "--json", "--html", self.path("e.html")))["forward"]["max"])

    def test_bench(self):
        source = self.bin("a.bin", scan(500))
        lines = self.ok("lidar", "bench", source, "--max-error", "2cm,15cm", "--mode", "set,exact", "--repeats", 1,
                        "--json").stdout.decode().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertIn("bits/pt", self.ok("lidar", "bench", source, "--repeats", 1).stdout.decode())

    def test_progress_and_help(self):
        source = self.bin("a.bin", scan(500))
        told = self.ok("lidar", "compress", source, "-o", self.path("a.qnl"), "--progress", "always").stderr.decode()
        self.assertIn("100 %", told)
        for work in ("compress", "decompress", "info", "verify", "compare", "bench"):
            text = self.ok("lidar", work, "--help").stdout.decode()
            self.assertIn("quern lidar " + work, text)
            self.assertIn("Example", text)

    def test_an_interrupted_run_leaves_nothing(self):
        inputs = [self.bin(f"{i}.bin", scan(20000, i)) for i in range(6)]
        out = self.path("a.qnl")
        process = subprocess.Popen([harness.QUERN, "lidar", "compress", *inputs, "-o", out, "-q"])
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        code = process.wait(60)
        self.assertIn(code, (0, 130))
        if code == 130:
            self.assertEqual([f for f in os.listdir(self.folder.name) if not re.fullmatch(r"\d\.bin", f)], [])


class RealScans(CliTest):
    """Frames of KITTI and nuScenes and a LAS survey, through the command."""

    def scans(self):
        found = sorted(glob.glob(DATA + "/kitti_odometry_00/*.bin"))[:1] + sorted(glob.glob(DATA + "/kitti_raw_0005/*.pcd"))[:1]
        if not found:
            self.skipTest("no real scans: set QUERN_LIDAR_DATA to a folder with kitti_odometry_00 and kitti_raw_0005")
        return found

    def test_bounds_hold(self):
        for source in self.scans():
            for cm in (1, 2, 5, 10, 15, 26) if THOROUGH else (2, 15):
                for mode in ("set", "points"):
                    drive = self.path("d.qnl")
                    self.ok("lidar", "compress", source, "-o", drive, "-f", "--max-error", f"{cm}cm", "--mode", mode, "-q",
                            "-T", 2, timeout=600)
                    found = self.json(self.ok("lidar", "verify", drive, "--original", source, "--json", "-T", 2, timeout=600))
                    self.assertEqual((found["violations"], found["attribute_changes"]), (0, 0), (source, cm, mode))
                    self.assertLessEqual(found["max_error"], cm / 100)
                    print(os.path.basename(source), mode, f"{cm} cm", os.path.getsize(drive), "bytes, largest",
                          round(found["max_error"] * 100, 3), "cm")

    def test_exact_is_the_same_file(self):
        for source in self.scans() + glob.glob(DATA + "/autzen_trim.las"):
            drive, back = self.path("d.qnl"), self.path("back" + os.path.splitext(source)[1])
            self.ok("lidar", "compress", source, "-o", drive, "-f", "-q", "-T", 2, timeout=600)
            self.ok("lidar", "decompress", drive, "-o", back, "-f", "-q", timeout=600)
            if source.endswith(".pcd"):
                self.ok("lidar", "verify", drive, "--original", source)
            else:
                self.assertEqual(read_bytes(back), read_bytes(source), source)
            print(os.path.basename(source), "exact", os.path.getsize(source), "->", os.path.getsize(drive))


if __name__ == "__main__":
    harness.main()
