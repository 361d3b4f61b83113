# quern lidar with range images: bits that come back, points against Ouster's formulas in this file's own binary64, every
# way in and out, metadata that is wrong; and real images where QUERN_LIDAR_DATA or the shared folder has them.
import array
import json
import math
import os
import random
import struct
import unittest

import harness
from harness import CliTest, read_bytes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("QUERN_LIDAR_DATA", os.path.join(os.path.dirname(ROOT), "shared", "data", "lidar"))
ROWS, COLUMNS = 8, 48


def sensor(rows=ROWS, columns=COLUMNS):
    return {"beam_altitude_angles": [20.07 - 5.3 * i for i in range(rows)],
            "beam_azimuth_angles": [4.21 - 2.8 * (i % 4) for i in range(rows)],
            "lidar_origin_to_beam_origin_mm": 15.806,
            "lidar_to_sensor_transform": [-1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 36.18, 0, 0, 0, 1],
            "data_format": {"columns_per_frame": columns, "pixels_per_column": rows,
                            "pixel_shift_by_row": [3 - i % 4 for i in range(rows)]}}


def ranges(images, seed=1):
    source = random.Random(seed)
    return [0 if source.random() < 0.2 else 1000 + source.randrange(250000) for _ in range(images * ROWS * COLUMNS)]


def point(meta, row, measurement, reach):
    """x, y, z in metres, as the user's manual of the sensors has it."""
    n = meta["lidar_origin_to_beam_origin_mm"]
    encoder = 2 * math.pi * (1 - measurement / meta["data_format"]["columns_per_frame"])
    azimuth = -2 * math.pi * meta["beam_azimuth_angles"][row] / 360
    altitude = 2 * math.pi * meta["beam_altitude_angles"][row] / 360
    at = ((reach - n) * math.cos(encoder + azimuth) * math.cos(altitude) + n * math.cos(encoder),
          (reach - n) * math.sin(encoder + azimuth) * math.cos(altitude) + n * math.sin(encoder),
          (reach - n) * math.sin(altitude), 1)
    move = meta["lidar_to_sensor_transform"]
    return tuple(sum(move[4 * axis + k] * at[k] for k in range(4)) / 1000 for axis in range(3))


def sine_cosine(angle):
    """Of millionths of a degree in units of 2^-30, as docs/format-lidar.md has it."""
    quarters, rest = divmod(angle % 360000000, 90000000)
    is_other = 2 * rest > 90000000
    x = ((90000000 - rest if is_other else rest) * 76760392275 // 1000000) >> 12
    y = x * x >> 30
    sine, cosine = 1 << 30, 1 << 30
    for divisor in (72, 42, 20, 6):
        sine = (1 << 30) - (y * sine >> 30) // divisor
    for divisor in (90, 56, 30, 12, 2):
        cosine = (1 << 30) - (y * cosine >> 30) // divisor
    sine = x * sine >> 30
    if is_other:
        sine, cosine = cosine, sine
    for _ in range(quarters):
        sine, cosine = cosine, -sine
    return sine, cosine


def whole_point(meta, row, measurement, reach):
    """The bits of x, y and z by the whole numbers of docs/format-lidar.md."""
    columns = meta["data_format"]["columns_per_frame"]
    n = round(meta["lidar_origin_to_beam_origin_mm"] * 1000)
    se, ce = sine_cosine(360000000 - (720000000 * measurement + columns) // (2 * columns))
    sh, ch = sine_cosine(-round(meta["beam_azimuth_angles"][row] * 1000000))
    sp, cp = sine_cosine(round(meta["beam_altitude_angles"][row] * 1000000))
    k = 1000 * reach - n
    at = ((k * (((ce * ch - se * sh) >> 30) * cp >> 30) + n * ce + (1 << 29)) >> 30,
          (k * (((se * ch + ce * sh) >> 30) * cp >> 30) + n * se + (1 << 29)) >> 30,
          (k * sp + (1 << 29)) >> 30)
    rows = [meta["lidar_to_sensor_transform"][4 * axis:4 * axis + 4] for axis in range(3)]
    moved = [((sum(round(row[i] * 2 ** 30) * at[i] for i in range(3)) + (1 << 29)) >> 30) + round(row[3] * 1000)
             for row in rows]
    return struct.pack("<fff", *(value / 1e6 for value in moved))


def pcd(data, width):
    head, _, rest = data.partition(b"DATA binary\n")
    return head.decode(), [struct.unpack_from("<fff", rest, at) for at in range(0, len(rest), width)]


class Images(CliTest):
    def setUp(self):
        super().setUp()
        self.meta = sensor()
        self.sensor = self.metadata(self.meta)

    def metadata(self, meta, name="os.json"):
        return self.write(name, (meta if isinstance(meta, str) else json.dumps(meta)).encode())

    def images(self, values, name="range.u32", code="I"):
        return self.write(name, array.array(code, values).tobytes())

    def compress(self, path, *words, name="d.qnl"):
        return self.ok("lidar", "compress", path, "--sensor", self.sensor, "-o", self.path(name), "-f", *words)

    def test_images_come_back_bit_for_bit(self):
        image = self.images(ranges(3))
        reflectivity = self.images([i * 7 % 256 for i in range(3 * ROWS * COLUMNS)], "r.u8", "B")
        signal = self.images([i * 31 % 65536 for i in range(3 * ROWS * COLUMNS)], "s.u16", "H")
        channels = ("--channel", "reflectivity=" + reflectivity, "--channel", "signal=" + signal)
        for words in ((), ("--destaggered",)):
            self.compress(image, *channels, *words)
            self.ok("lidar", "decompress", self.path("d.qnl"), "-o", self.path("b.u32"), "-f", "--channel",
                    "signal=" + self.path("b.u16"), "--channel", "reflectivity=" + self.path("b.u8"))
            for made, back in ((image, "b.u32"), (reflectivity, "b.u8"), (signal, "b.u16")):
                self.assertEqual(read_bytes(made), read_bytes(self.path(back)))
            self.ok("lidar", "verify", self.path("d.qnl"), "--original", image, "--sensor", self.sensor, *channels, *words)
        self.ok("lidar", "decompress", self.path("d.qnl"), "-o", self.path("one.u32"), "--frame", "1")
        self.assertEqual(read_bytes(self.path("one.u32")), read_bytes(image)[4 * ROWS * COLUMNS:8 * ROWS * COLUMNS])
        result = self.ok("lidar", "decompress", self.path("d.qnl"), "-o", self.path("only.u32"))
        self.assertIn("column signal of 3 frames", result.stderr.decode())
        told = self.json(self.ok("lidar", "info", self.path("d.qnl"), "--json"))
        self.assertEqual(told["each"][2]["format"], "range image")
        self.assertEqual([c["name"] for c in told["each"][2]["columns"]], ["range", "reflectivity", "signal"])

    def check_points(self, points, values, destaggered=False):
        worst = 0
        for i, (found, reach) in enumerate(zip(points, values)):
            row, column = i // COLUMNS, i % COLUMNS
            if reach == 0:
                self.assertTrue(all(math.isnan(v) for v in found))
                continue
            shift = self.meta["data_format"]["pixel_shift_by_row"][row] if destaggered else 0
            measurement = (column - shift) % COLUMNS
            worst = max(worst, math.dist(found, point(self.meta, row, measurement, reach)))
            self.assertEqual(struct.pack("<fff", *found), whole_point(self.meta, row, measurement, reach))
        # The nearest binary32 numbers of 250 m are 0.015 mm apart.
        self.assertLess(worst, 5e-5)

    def test_points_are_those_of_the_manual(self):
        values = ranges(1)
        self.meta["lidar_to_sensor_transform"] = [0.6, -0.8, 0, 3, 0.8, 0.6, 0, -4.5, 0, 0, 1, 36.18, 0, 0, 0, 1]
        self.sensor = self.metadata(self.meta)
        for words in ((), ("--destaggered",)):
            self.compress(self.images(values), *words)
            self.ok("lidar", "decompress", self.path("d.qnl"), "-o", self.path("p.pcd"), "-f")
            head, points = pcd(read_bytes(self.path("p.pcd")), 16)
            self.assertIn("WIDTH %d\nHEIGHT %d\n" % (COLUMNS, ROWS), head)
            self.check_points(points, values, bool(words))

    def test_info_of_images_and_of_their_drives(self):
        values = ranges(2)
        image = self.images(values)
        channels = ("--channel", "signal=" + self.images([i % 300 for i in range(2 * ROWS * COLUMNS)], "s.u16", "H"))
        words = ("lidar", "info", image, "--sensor", self.sensor, *channels, "--destaggered")
        told = self.json(self.ok(*words, "--json"))
        returns = [v for v in values if v]
        self.assertEqual([told[k] for k in ("images", "rows", "columns", "destaggered", "pixels", "returns")],
                         [2, ROWS, COLUMNS, True, len(values), len(returns)])
        self.assertEqual((told["nearest"], told["farthest"]), (min(returns) / 1000, max(returns) / 1000))
        self.assertEqual([(c["name"], c["dtype"]) for c in told["channels"]], [("signal", "u16")])
        text = self.ok(*words).stdout.decode()
        self.assertIn("2 of 8 x 48 pixels, destaggered", text)
        self.assertIn("signal:u16", text)
        self.refused(1, "say --sensor FILE", "lidar", "info", image)
        self.refused(2, "no whole images", "lidar", "info", self.write("cut.u32", b"x" * 100), "--sensor", self.sensor)
        self.compress(image, *channels)
        drive = self.path("d.qnl")
        source = "range images of 8 x 48 pixels, staggered"
        self.assertIn(source, self.ok("info", drive).stdout.decode())
        self.assertEqual(self.json(self.ok("info", drive, "--json"))["streams"][0]["lidar_sources"], source)
        for extra in ((), ("--sensor", self.sensor)):
            text = self.ok("lidar", "info", drive, *extra).stdout.decode()
            self.assertIn("source      " + source, text)
            self.assertIn("coordinates computed from ranges and the sensor", text)
        told = self.json(self.ok("lidar", "info", drive, "--json"))
        self.assertEqual(told["sources"], [source])
        self.assertEqual(told["each"][0]["image"], {"rows": ROWS, "columns": COLUMNS, "destaggered": False})
        self.assertEqual((told["each"][0]["coordinates"], told["each"][0]["rows"]), ("projected", ROWS))
        self.compress(image, *channels, "--max-error", "5cm")
        told = self.json(self.ok("lidar", "info", drive, "--json"))
        self.assertEqual((told["sources"], told["each"][0]["image"]), (["points of range images"], None))

    def test_newer_metadata_and_npy(self):
        values = ranges(2)
        flat = dict(self.meta)
        form = flat.pop("data_format")
        n = flat.pop("lidar_origin_to_beam_origin_mm")
        flat["beam_to_lidar_transform"] = [1, 0, 0, n, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
        nested = {"beam_intrinsics": {k: v for k, v in flat.items() if k.startswith("beam")},
                  "lidar_intrinsics": {"lidar_to_sensor_transform": flat["lidar_to_sensor_transform"]},
                  "lidar_data_format": form}
        self.compress(self.images(values), name="flat.qnl")
        self.sensor = self.metadata(nested, "nested.json")
        header = str({"descr": "<u4", "fortran_order": False, "shape": (2, ROWS, COLUMNS)}).encode()
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        npy = self.write("range.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header +
                         array.array("I", values).tobytes())
        self.compress(npy, name="nested.qnl")
        self.assertEqual(read_bytes(self.path("flat.qnl")), read_bytes(self.path("nested.qnl")))

    def test_under_a_bound(self):
        values = ranges(2)
        image = self.images(values)
        reflectivity = self.images([i % 256 for i in range(2 * ROWS * COLUMNS)], "r.u8", "B")
        channels = ("--channel", "reflectivity=" + reflectivity)
        for bound, mode in (("2cm", "points"), ("15cm", "set")):
            told = self.json(self.compress(image, *channels, "--max-error", bound, "--json"))
            self.assertEqual((told["mode"], told["frames"]), (mode, 2))
            self.assertEqual(told["points"], sum(v != 0 for v in values))
            self.ok("lidar", "verify", self.path("d.qnl"), "--original", image, "--sensor", self.sensor, *channels)
            self.refused(1, "has no range image", "lidar", "decompress", self.path("d.qnl"), "-o", self.path("b.u32"))
        self.assertNotIn("b.u32", self.files())
        self.compress(image, *channels, "--no-attributes")
        self.ok("lidar", "decompress", self.path("d.qnl"), "-o", self.path("b.u32"))
        self.assertEqual(read_bytes(self.path("b.u32")), read_bytes(image))
        self.ok("lidar", "verify", self.path("d.qnl"), "--original", image, "--sensor", self.sensor, *channels)

    def test_poses_bench_and_compare(self):
        image = self.images(ranges(2))
        poses = self.write("poses.txt", b"1 0 0 5 0 1 0 0 0 0 1 0\n" * 2)
        self.compress(image, "--poses", poses)
        self.ok("lidar", "verify", self.path("d.qnl"), "--original", image, "--sensor", self.sensor)
        rows = self.ok("lidar", "bench", image, "--sensor", self.sensor, "--max-error", "5cm", "--mode", "points,exact",
                       "--repeats", "1", "--json").stdout.decode().splitlines()
        self.assertEqual([json.loads(row)["violations"] for row in rows], [0] * 4)
        told = self.json(self.ok("lidar", "compare", image, self.path("d.qnl"), "--sensor", self.sensor, "--frame", "1",
                                 "--json"))
        self.assertEqual(told["max_error"], 0)

    def test_refusals(self):
        image = self.images(ranges(1))

        def refused(code, part, *words, path=image):
            self.refused(code, part, "lidar", "compress", path, "-o", self.path("x.qnl"), *words)

        def bad(part, **members):
            meta = sensor()
            for name, value in members.items():
                if name in meta["data_format"]:
                    meta["data_format"][name] = value
                elif value is None:
                    del meta[name]
                else:
                    meta[name] = value
            refused(2, part, "--sensor", self.metadata(meta, "bad.json"))
        bad("has no beam_azimuth_angles", beam_azimuth_angles=None)
        bad("beam_altitude_angles is not 8 numbers", beam_altitude_angles=[1, 2])
        bad("beam_altitude_angles is not 8 numbers", beam_altitude_angles=["x"] * 8)
        bad("columns_per_frame is not a whole number", columns_per_frame=0)
        bad("columns_per_frame is not a whole number", columns_per_frame=1.5)
        bad("pixels_per_column is not a whole number", pixels_per_column=10 ** 9)
        bad("beyond what a sensor can have", beam_azimuth_angles=[1e300] * 8)
        bad("beyond what a sensor can have", lidar_to_sensor_transform=[7] * 16)
        bad("beyond what a sensor can have", pixel_shift_by_row=[1000] * 8)
        for text in ("", "[1]", "{", "5"):
            refused(2, "is no JSON object", "--sensor", self.metadata(text, "bad.json"))
        refused(2, "none.json", "--sensor", self.path("none.json"))
        with_sensor = ("--sensor", self.sensor)
        refused(2, "no whole images of 8 x 48", *with_sensor, path=self.write("cut.u32", b"x" * 100))
        refused(2, "no whole images of 8 x 48", *with_sensor, path=self.write("empty.u32", b""))
        refused(2, "ranges are 32-bit whole numbers", *with_sensor, path=self.write("r.u16", bytes(2 * ROWS * COLUMNS)))
        refused(1, "are .u8, .u16, .u32 or .npy files", *with_sensor, path=self.write("a.pcd", b"x"))
        refused(2, "image 0: a range of 1048576 mm", *with_sensor,
                path=self.images([1 << 20] * ROWS * COLUMNS, "far.u32"))
        two = self.write("two.u8", bytes(2 * ROWS * COLUMNS))
        refused(1, "has 2 images, but", *with_sensor, "--channel", "a=" + two)
        refused(1, "write NAME=FILE", *with_sensor, "--channel", "a")
        refused(1, "cannot be the name", *with_sensor, "--channel", "range=" + two)
        refused(1, "need --sensor", "--destaggered")
        self.compress(image)
        self.refused(1, "has no such column", "lidar", "decompress", self.path("d.qnl"), "-o", self.path("b.u32"),
                     "--channel", "signal=" + self.path("s.u16"))
        self.refused(1, "written with them", "lidar", "decompress", self.path("d.qnl"), "-o", self.path("b.pcd"),
                     "--channel", "signal=" + self.path("s.u16"))
        self.assertNotIn("b.u32", self.files())

    def test_no_file_is_lost_to_another(self):
        image = self.images(ranges(1))
        channel = "r=" + self.images([i % 256 for i in range(ROWS * COLUMNS)], "r.u8", "B")
        self.compress(image, "--channel", channel)
        before = {name: read_bytes(self.path(name)) for name in self.files()}
        for output in ("r.u8", "os.json", "range.u32"):
            self.refused(1, "input and output are the same file", "lidar", "compress", image, "--sensor", self.sensor,
                         "--channel", channel, "-f", "-o", self.path(output))
        os.symlink(self.folder.name, self.path("link"))
        back = ("lidar", "decompress", self.path("d.qnl"), "-f", "-o", self.path("b.u32"), "--channel")
        self.refused(1, "name another with --channel", *back, "r=" + self.path("d.qnl"))
        for other in ("b.u32", "./b.u32", "link/b.u32"):
            self.refused(1, "is the same file as the output", *back, "r=" + self.path(other))
        self.refused(1, "are written to files", *back, "r=-")
        self.write("b.u8", b"old")
        self.refused(2, "b.u8", "lidar", "decompress", self.path("d.qnl"), "-o", self.path("b.u32"), "--channel",
                     "r=" + self.path("b.u8"))
        os.remove(self.path("b.u8"))
        os.remove(self.path("link"))
        self.assertEqual({name: read_bytes(self.path(name)) for name in self.files()}, before)

    @unittest.skipUnless(os.path.exists(os.path.join(DATA, "ouster_os2128u1_sensor.json")), "no real images here")
    def test_real_images(self):
        base = os.path.join(DATA, "ouster_os2128u1_")
        words = ("--sensor", base + "sensor.json", "--channel", "reflectivity=" + base + "reflectivity_128x1024.u8")
        image = base + "range_128x1024.u32"
        told = self.json(self.ok("lidar", "compress", image, *words, "-o", self.path("d.qnl"), "--json"))
        self.assertLess(told["output_bytes"], 0.5 * told["input_bytes"])
        self.ok("lidar", "decompress", self.path("d.qnl"), "-o", self.path("b.u32"), "--channel",
                "reflectivity=" + self.path("b.u8"))
        self.assertEqual(read_bytes(self.path("b.u32")), read_bytes(image))
        self.assertEqual(read_bytes(self.path("b.u8")), read_bytes(base + "reflectivity_128x1024.u8"))


if __name__ == "__main__":
    harness.main()
