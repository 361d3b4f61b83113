# Coarse previews: decompress --level.
import array
import math
import os
import unittest

import harness
from harness import CliTest, read_array, read_bytes, run, wave

SHAPE = (24, 61, 70)
STREAM_KEYS = ("--abs", "1e-3", "--codec", "stencil")


def points(values, shape, step):
    """Every step-th place of three axes."""
    return array.array("f", [values[(z * shape[1] + y) * shape[2] + x] for z in range(0, shape[0], step)
                             for y in range(0, shape[1], step) for x in range(0, shape[2], step)])


class CoarseLevels(CliTest):
    def setUp(self):
        super().setUp()
        self.values = wave(SHAPE[0] * SHAPE[1] * SHAPE[2])
        for i in range(0, len(self.values), 64):
            self.values[i] = -9999.0
        self.raw = self.write("a_24x61x70.f32", self.values.tobytes())
        self.stream = self.path("a.qn")
        self.ok("compress", *STREAM_KEYS, "--fill", "-9999", "--set", "layout=levels", self.raw, "-o", self.stream)
        self.ok("decompress", self.stream, "-o", self.path("whole"))
        self.whole = read_array(self.path("whole"), "f")

    def test_are_points_of_the_whole(self):
        for level, extents in ((0, [24, 61, 70]), (1, [12, 31, 35]), (2, [6, 16, 18]), (3, [3, 8, 9]), (7, [1, 1, 1])):
            out = self.path("level%d" % level)
            report = self.json(self.ok("decompress", "--level", level, "--json", self.stream, "-o", out))
            self.assertEqual(report["shape"], extents)
            self.assertEqual(report["level"], level)
            self.assertEqual(read_array(out, "f"), points(self.whole, SHAPE, 2**level))
            piped = self.ok("decompress", "--level", level, "-", stdin=read_bytes(self.stream))
            self.assertEqual(piped.stdout, read_bytes(out))
        values = read_array(self.path("level1"), "f")
        self.assertGreater(sum(1 for v in values if v == -9999.0), 10)

    def test_read_a_fraction_and_say_so(self):
        size = os.path.getsize(self.stream)
        read = [self.json(self.ok("decompress", "--level", level, "--json", self.stream, "-o",
                                  self.path("r%d" % level)))["bytes_read"] for level in (0, 1, 2)]
        self.assertGreaterEqual(read[0], size)
        self.assertLess(read[1] * 2, size)
        self.assertLess(read[2], read[1])
        text = self.ok("decompress", "-v", "--level", "1", self.stream, "-o", self.path("v")).stderr.decode()
        self.assertIn("%d of %d bytes read" % (read[1], size), text)

    def test_other_kinds_of_files(self):
        self.ok("decompress", "--level", "1", self.stream, "-o", self.path("p.npy"))
        npy = read_bytes(self.path("p.npy"))
        self.assertIn(b"(12, 31, 35)", npy[:128])
        self.assertEqual(npy[-4 * 12 * 31 * 35:], points(self.whole, SHAPE, 2).tobytes())
        kinds = run("doctor").stdout.split(b"files", 1)[1].splitlines()[0]
        for name, kind in (("p.h5", b"hdf5"), ("p.nc", b"netcdf")):
            if kind not in kinds:
                continue
            self.ok("decompress", "--level", "2", self.stream, "-o", self.path(name))
            self.ok("compress", "--lossless", self.path(name), "-o", self.path(name + ".qn"))
            self.assertEqual(self.json(self.ok("info", "--json", self.path(name + ".qn")))["streams"][0]["shape"],
                             [6, 16, 18])
            self.ok("decompress", self.path(name + ".qn"), "-o", self.path(name + ".raw"))
            self.assertEqual(read_array(self.path(name + ".raw"), "f"), points(self.whole, SHAPE, 4))

    def test_regions_count_places_of_the_level(self):
        self.ok("decompress", "--level", "1", "--region", "2:4,:,30", self.stream, "-o", self.path("part"))
        level = points(self.whole, SHAPE, 2)
        wanted = array.array("f", [level[(z * 31 + y) * 35 + 30] for z in (2, 3) for y in range(31)])
        self.assertEqual(read_array(self.path("part"), "f"), wanted)
        self.refused(1, "12x31x35", "decompress", "--level", "1", "--region", "20,:,:", self.stream, "-o",
                     self.path("no"))

    def test_steps(self):
        run_file = self.path("run.qn")
        for _ in range(2):
            self.ok("compress", "--append", "--key-every", "1", *STREAM_KEYS, "--set", "layout=planes", self.raw, "-o",
                    run_file)
        report = self.json(self.ok("decompress", "--level", "2", "--json", run_file, "-o", self.path("steps")))
        self.assertEqual(report["shape"], [2, 24, 16, 18])
        piped = self.ok("decompress", "--level", "2", "-", stdin=read_bytes(run_file))
        self.assertEqual(piped.stdout, read_bytes(self.path("steps")))
        self.ok("decompress", "--level", "2", "--region", "1,:,:,:", run_file, "-o", self.path("second"))
        half = len(piped.stdout) // 2
        self.assertEqual(read_bytes(self.path("second")), piped.stdout[half:])

    def test_under_the_wavelet_they_are_means(self):
        smooth = array.array("f", [math.sin(z * 0.04) + math.cos(y * 0.05 + x * 0.03) for z in range(SHAPE[0])
                                   for y in range(SHAPE[1]) for x in range(SHAPE[2])])
        for i in range(0, len(smooth), 64):
            smooth[i] = -9999.0
        raw = self.write("b_24x61x70.f32", smooth.tobytes())
        stream = self.path("b.qn")
        self.ok("compress", *STREAM_KEYS, "--fill", "-9999", "--set", "layout=wavelet", raw, "-o", stream)
        told = self.json(self.ok("info", "--json", stream))["streams"][0]
        self.assertEqual(told["levels"], [[12, 31, 35], [6, 16, 18], [3, 8, 9], [2, 4, 5], [1, 2, 3], [1, 1, 2],
                                          [1, 1, 1]])
        self.assertTrue(told["levels_are_means"])
        self.assertIn("levels    7: 1 of 12x31x35, 2 of 6x16x18", self.ok("info", stream).stdout.decode())
        self.assertIn("7 of 1x1x1 (local means)", self.ok("info", stream).stdout.decode())
        for level in (1, 2, 5):
            out = self.path("means%d" % level)
            report = self.json(self.ok("decompress", "--level", level, "--json", stream, "-o", out))
            self.assertEqual(report["shape"], told["levels"][level - 1])
            # No part of a chunk is enough.
            self.assertGreaterEqual(report["bytes_read"], os.path.getsize(stream))
            values = read_array(out, "f")
            there = points(smooth, SHAPE, 2**level)
            self.assertEqual([v == -9999.0 for v in values], [v == -9999.0 for v in there])
            worst = max(abs(v - w) for v, w in zip(values, there))
            self.assertLess(worst, 0.05 * (2**level - 1))
            self.assertGreater(worst, 1e-3)
            piped = self.ok("decompress", "--level", level, "-", stdin=read_bytes(stream))
            self.assertEqual(piped.stdout, read_bytes(out))
            threads = self.ok("decompress", "--level", level, "--threads", "3", "-", stdin=read_bytes(stream))
            self.assertEqual(threads.stdout, read_bytes(out))
        self.ok("decompress", "--level", "1", "--region", "2:4,:,30", stream, "-o", self.path("part"))
        level = read_array(self.path("means1"), "f")
        wanted = array.array("f", [level[(z * 31 + y) * 35 + 30] for z in (2, 3) for y in range(31)])
        self.assertEqual(read_array(self.path("part"), "f"), wanted)
        self.refused(1, "has 7 coarse levels", "decompress", "--level", "8", stream, "-o", self.path("no"))
        data = bytearray(read_bytes(stream))
        data[len(data) // 2] ^= 1
        damaged = self.write("damaged_means.qn", bytes(data))
        self.refused(3, "damaged", "decompress", "--level", "2", damaged, "-o", self.path("no"))

    def test_chunks_under_the_wavelet_count_places_by_themselves(self):
        shape = (131, 130, 150)  # more than a chunk: the last axis is cut in two of 75
        smooth = array.array("f", [math.sin(z * 0.04) + math.cos(y * 0.05 + x * 0.03) for z in range(shape[0])
                                   for y in range(shape[1]) for x in range(shape[2])])
        raw = self.write("c_131x130x150.f32", smooth.tobytes())
        stream = self.path("c.qn")
        self.ok("compress", *STREAM_KEYS, "--set", "layout=wavelet:3d:1,2", raw, "-o", stream)
        told = self.json(self.ok("info", "--json", stream))["streams"][0]
        depth, height, width = told["grid"]["chunk"]
        self.assertEqual(width, 75)
        places = [z for begin in range(0, 131, depth) for z in range(begin, min(begin + depth, 131), 4)]
        rows = [y for begin in range(0, 130, height) for y in range(begin, min(begin + height, 130), 4)]
        columns = [x for begin in range(0, 150, width) for x in range(begin, min(begin + width, 150), 4)]
        self.assertEqual(told["levels"][1], [len(places), len(rows), len(columns)])
        self.ok("decompress", "--level", "2", stream, "-o", self.path("means"))
        values = read_array(self.path("means"), "f")
        there = [smooth[(z * 130 + y) * 150 + x] for z in places for y in rows for x in columns]
        self.assertEqual(len(values), len(there))
        self.assertLess(max(abs(v - w) for v, w in zip(values, there)), 0.15)

    def test_info_lists_them(self):
        stream = self.json(self.ok("info", "--json", self.stream))["streams"][0]
        self.assertEqual(stream["levels"][:3], [[12, 31, 35], [6, 16, 18], [3, 8, 9]])
        self.assertEqual(len(stream["levels"]), 7)
        self.assertIn("levels    7: 1 of 12x31x35, 2 of 6x16x18", self.ok("info", self.stream).stdout.decode())

    def test_streams_without_levels_are_refused(self):
        for codec, setting in (("lorenzo", None), ("stencil", "layout=raster")):
            other = self.path(codec + ".qn")
            extra = ["--set", setting] if setting else []
            self.ok("compress", "--abs", "1e-3", "--codec", codec, *extra, self.raw, "-o", other)
            self.assertIn("levels    none", self.ok("info", other).stdout.decode())
            self.assertEqual(self.json(self.ok("info", "--json", other))["streams"][0]["levels"], [])
            self.refused(1, "--set layout=levels", "decompress", "--level", "1", other, "-o", self.path("no"))
            self.refused(1, "--set layout=levels", "decompress", "--level", "1", "-", stdin=read_bytes(other))
        self.refused(1, "has 7 coarse levels", "decompress", "--level", "8", self.stream, "-o", self.path("no"))
        self.refused(1, "an integer", "decompress", "--level", "-1", self.stream)
        self.refused(1, "an integer", "decompress", "--level", "two", self.stream)
        self.refused(1, "--rm", "decompress", "--level", "1", "--rm", self.stream)
        self.assertFalse(os.path.exists(self.path("no")))

    def test_damage(self):
        data = bytearray(read_bytes(self.stream))
        data[len(data) // 2] ^= 1  # in the finest level, which is not read
        damaged = self.write("damaged.qn", bytes(data))
        self.ok("decompress", "--level", "2", damaged, "-o", self.path("fine"))
        self.assertEqual(read_array(self.path("fine"), "f"), points(self.whole, SHAPE, 4))
        self.refused(3, "checksum", "decompress", damaged, "-o", self.path("no"))
        self.refused(3, "checksum", "decompress", "--level", "2", "-", stdin=bytes(data))
        cut = self.write("cut.qn", bytes(data[:-100]))
        self.refused(3, "", "decompress", "--level", "2", cut, "-o", self.path("no"))
        self.ok("decompress", "--level", "2", "--keep-going", cut, "-o", self.path("saved"))
        self.assertEqual(read_bytes(self.path("saved")), read_bytes(self.path("fine")))


if __name__ == "__main__":
    harness.main()
