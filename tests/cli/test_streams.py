# Several streams in one file, damage, and files of named variables.
import array
import json
import os
import subprocess
import sys
import unittest

import harness
from harness import CliTest, read_array, read_bytes, run, wave


class Steps(CliTest):
    def setUp(self):
        super().setUp()
        self.steps = [wave(600, seed=i, scale=1 + i) for i in range(4)]
        self.files_in = [self.write("s%d_20x30.f32" % i, step.tobytes()) for i, step in enumerate(self.steps)]
        self.run_file = self.path("run.qn")
        self.ok("compress", "--append", "--abs", "0.01", *self.files_in[:3], "-o", self.run_file)
        self.ok("compress", "--append", "--abs", "0.01", self.files_in[3], "-o", self.run_file)
        self.all = array.array("f")
        for step in self.steps:
            self.all.extend(step)

    def test_one_array_with_a_new_slowest_axis(self):
        report = self.json(self.ok("decompress", "--json", self.run_file, "-o", self.path("all.raw")))
        self.assertEqual(report["shape"], [4, 20, 30])
        self.assertEqual(report["streams"], 4)
        self.assert_within(self.all, read_array(self.path("all.raw"), "f"), 0.01)
        piped = self.ok("decompress", "-", stdin=read_bytes(self.run_file))
        self.assertEqual(piped.stdout, read_bytes(self.path("all.raw")))
        self.ok("decompress", self.run_file, "-o", self.path("all.npy"))
        self.assertIn(b"(4, 20, 30)", read_bytes(self.path("all.npy"))[:128])

    def test_small_memory_gives_the_same(self):
        self.ok("decompress", self.run_file, "-o", self.path("a.raw"))
        self.ok("decompress", "--memory", "1M", self.run_file, "-o", self.path("b.raw"))
        self.assertEqual(read_bytes(self.path("a.raw")), read_bytes(self.path("b.raw")))

    def test_info_lists_them(self):
        info = self.json(self.ok("info", "--json", "--check", self.run_file))
        self.assertEqual(len(info["streams"]), 4)
        self.assertTrue(info["whole"])
        self.assertEqual(sum(s["stream_bytes"] for s in info["streams"]), os.path.getsize(self.run_file))
        self.assertIn(b"4 streams", self.ok("info", self.run_file).stdout)

    def test_region_across_steps(self):
        self.ok("decompress", "--region", "1:3,5,0:10", self.run_file, "-o", self.path("part"))
        part = read_array(self.path("part"), "f")
        expected = [self.steps[t][5 * 30 + x] for t in (1, 2) for x in range(10)]
        self.assert_within(expected, part, 0.01)

    def test_verify_against_all_steps(self):
        whole = self.write("whole_4x20x30.f32", self.all.tobytes())
        report = self.json(self.ok("verify", "--json", whole, self.run_file))
        self.assertEqual(len(report["steps"]), 4)
        self.refused(1, "needs 9600 bytes", "verify", self.files_in[0], self.run_file)

    def test_other_shape_or_type_is_refused(self):
        before = read_bytes(self.run_file)
        other = self.write("o_30x20.f32", self.steps[0].tobytes())
        self.refused(1, "must be equal", "compress", "--append", "--abs", "1", other, "-o", self.run_file)
        other = self.write("o_20x30.i32", self.steps[0].tobytes())
        self.refused(1, "must be equal", "compress", "--append", "--abs", "1", self.files_in[0], other, "-o",
                     self.run_file)
        self.assertEqual(read_bytes(self.run_file), before)

    def test_append_to_something_else_is_refused(self):
        self.refused(3, "not a quern stream", "compress", "--append", "--abs", "1", self.files_in[0], "-o",
                     self.write("text", b"this is a text file, not a stream"))

    def test_keep_going_saves_the_whole_streams(self):
        data = read_bytes(self.run_file)
        cut = self.write("cut.qn", data[:-5])
        self.refused(3, "cut.qn", "decompress", cut, "-o", self.path("x"))
        self.assertNotIn("x", self.files())
        info = run("info", "--json", cut)
        self.assertEqual(info.returncode, 3)
        ratios = [stream["ratio"] for stream in json.loads(info.stdout)["streams"]]
        self.assertEqual([ratio is None for ratio in ratios], [False, False, False, True])
        result = run("decompress", "--keep-going", cut, "-o", self.path("x"))
        back = read_array(self.path("x"), "f")
        self.assertGreaterEqual(len(back), 3 * 600, result.stderr)
        self.assert_within(self.all[:1800], back[:1800], 0.01)


class Damage(CliTest):
    def spoilt(self, name, values, *options):
        """The stream of an array with 40 bytes flipped in its middle."""
        raw = self.write(name, values.tobytes())
        self.ok("compress", "--abs", "1e-3", *options, raw)
        data = bytearray(read_bytes(raw + ".qn"))
        for i in range(len(data) // 2, len(data) // 2 + 40):
            data[i] ^= 0xFF
        return self.write("bad.qn", bytes(data))

    def test_refusals_name_segment_and_chunk(self):
        bad = self.spoilt("v_64x128x128.f32", wave(1 << 20))
        for words in (["decompress", bad, "-o", self.path("x")], ["verify", self.path("v_64x128x128.f32"), bad]):
            result = self.refused(3, "bad.qn: segment ", *words)
            self.assertRegex(result.stderr.decode(), r"segment \d+, chunk \d+ is damaged: .*--keep-going")
        self.assertNotIn("x", self.files())
        damage = json.loads(run("info", "--check", "--json", bad).stdout)["streams"][0]["damage"]
        self.assertRegex(damage[0], r"segment \d+, chunk \d+")

    def test_holes_have_the_fill_value_and_are_listed(self):
        values = wave(1 << 20)
        for i in range(0, len(values), 1000):
            values[i] = -9999.0
        bad = self.spoilt("v_64x128x128.f32", values, "--fill", "-9999")
        result = run("decompress", "--keep-going", "--json", bad, "-o", self.path("x"))
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stderr.decode(), r"chunk \d+ of segment \d+ is lost: ")
        holes = json.loads(result.stdout)["holes"]
        lost_elems = sum(h["extents"][0] * h["extents"][1] * h["extents"][2] for h in holes)
        back = read_array(self.path("x"), "f")
        self.assertTrue(all(y == -9999.0 or abs(x - y) <= 1e-3 for x, y in zip(values, back)))
        self.assertTrue(all(y == -9999.0 for y in back[::1000]))
        lost = sum(1 for x, y in zip(values, back) if y == -9999.0 != x)
        self.assertGreater(lost, 0.99 * lost_elems)
        self.assertLess(lost, lost_elems)

    def test_holes_of_integers_are_zero(self):
        values = array.array("i", [5 + i * 7919 % 1000 for i in range(1 << 20)])
        bad = self.spoilt("v_64x128x128.i32", values)
        result = run("decompress", "--keep-going", "--json", bad, "-o", self.path("x"))
        self.assertEqual(result.returncode, 3)
        back = read_array(self.path("x"), "i")
        lost = [i for i in range(len(values)) if back[i] != values[i]]
        self.assertGreater(len(lost), 0)
        self.assertEqual({back[i] for i in lost}, {0})
        holes = json.loads(result.stdout)["holes"]
        self.assertEqual(len(lost), sum(h["extents"][0] * h["extents"][1] * h["extents"][2] for h in holes))

    def test_keep_going_fills_the_holes_and_says_so(self):
        values = wave(1 << 20)
        raw = self.write("v_64x128x128.f32", values.tobytes())
        self.ok("compress", "--abs", "1e-3", "--goal", "speed", raw)  # in many chunks
        data = bytearray(read_bytes(raw + ".qn"))
        for i in range(len(data) // 2, len(data) // 2 + 40):
            data[i] ^= 0xFF
        bad = self.write("bad.qn", bytes(data))
        self.refused(3, "bad.qn", "decompress", bad, "-o", self.path("x"))
        result = run("decompress", "--keep-going", "--json", bad, "-o", self.path("x"))
        self.assertEqual(result.returncode, 3)
        holes = json.loads(result.stdout)["holes"]
        self.assertGreater(len(holes), 0)
        back = read_array(self.path("x"), "f")
        self.assertEqual(len(back), len(values))
        lost = sum(1 for x in back if x != x)
        self.assertGreater(lost, 0)
        self.assertLess(lost, len(values))
        self.assertTrue(all(abs(x - y) <= 1e-3 for x, y in zip(values, back) if y == y))
        piped = run("decompress", "--keep-going", "-", stdin=bytes(data))
        self.assertEqual(piped.returncode, 3)
        self.assertEqual(piped.stdout, read_bytes(self.path("x")))
        whole = self.ok("decompress", "--keep-going", "-", stdin=read_bytes(raw + ".qn"))
        self.assert_within(values, array.array("f", whole.stdout), 1e-3)
        info = run("info", "--check", "--json", bad)
        self.assertEqual(info.returncode, 3)
        self.assertFalse(json.loads(info.stdout)["whole"])
        self.assertGreater(len(json.loads(info.stdout)["streams"][0]["damage"]), 0)


MAKE_NETCDF = """
import sys, numpy, netCDF4
with netCDF4.Dataset(sys.argv[1], 'w') as f:
    f.createDimension('y', 30); f.createDimension('x', 40)
    t = f.createVariable('temp', 'i2', ('y', 'x'), fill_value=-32768)
    t.scale_factor = 0.01; t.add_offset = 273.15; t.units = 'K'
    t.set_auto_maskandscale(False)
    data = (numpy.arange(1200).reshape(30, 40) * 7 % 5000).astype('i2'); data[3, 4] = -32768
    t[:] = data
    w = f.createVariable('wind', 'f4', ('y', 'x')); w.units = 'm s-1'; w[:] = numpy.sin(numpy.arange(1200) * 0.01).reshape(30, 40)
    n = f.createVariable('count', 'i4', ('y',)); n[:] = numpy.arange(30)
"""
CHECK_NETCDF = """
import sys, numpy, netCDF4
a, b = netCDF4.Dataset(sys.argv[1]), netCDF4.Dataset(sys.argv[2])
for name in ('temp', 'wind', 'count'):
    x, y = a[name], b[name]
    x.set_auto_maskandscale(False); y.set_auto_maskandscale(False)
    assert x.dtype == y.dtype and x.dimensions == y.dimensions and x.shape == y.shape, name
    assert {k: x.getncattr(k) for k in x.ncattrs()} == {k: y.getncattr(k) for k in y.ncattrs()}, name
x, y = a['temp'][:].astype('i8'), b['temp'][:].astype('i8')
fill = x == -32768
assert (y[fill] == -32768).all()
assert (abs(x - y)[~fill] * 0.01 <= 0.05 + 1e-12).all() and (x != y).any()
assert (abs(a['wind'][:].astype('f8') - b['wind'][:].astype('f8')) <= 1e-3).all()
assert (a['count'][:] == b['count'][:]).all()
"""


def has_python_module(name):
    return subprocess.run([sys.executable, "-c", "import " + name], capture_output=True).returncode == 0


class NamedVariables(CliTest):
    def setUp(self):
        super().setUp()
        if b"netcdf" not in run("doctor").stdout.split(b"files", 1)[1].splitlines()[0]:
            self.skipTest("this build has no netCDF")
        if not has_python_module("netCDF4"):
            self.skipTest("python3 has no netCDF4 to make the files with")
        self.nc = self.path("model.nc")
        subprocess.run([sys.executable, "-c", MAKE_NETCDF, self.nc], check=True)
        self.bounds = self.write("bounds.txt", b"# comment\ntemp abs 0.05  # kelvin\n\nwind abs 1e-3\n")

    def test_bounds_file_and_all_back_into_one_file(self):
        os.mkdir(self.path("out"))
        self.ok("compress", "--bounds", self.bounds, "--lossless", "--goal", "speed", "--verify", self.nc, "-o",
                self.path("out"))
        streams = sorted(os.listdir(self.path("out")))
        self.assertEqual(streams, ["model.count.qn", "model.temp.qn", "model.wind.qn"])
        info = self.json(self.ok("info", "--json", self.path("out/model.temp.qn")))["streams"][0]
        self.assertEqual(info["dataset"], "temp")
        self.assertEqual(info["scale_factor"], 0.01)
        self.assertLessEqual(info["enforced"]["value"], 5)
        back = self.path("back.nc")
        self.ok("decompress", *[self.path("out/" + s) for s in ("model.temp.qn", "model.wind.qn", "model.count.qn")],
                "-o", back)
        check = subprocess.run([sys.executable, "-c", CHECK_NETCDF, self.nc, back], capture_output=True)
        self.assertEqual(check.returncode, 0, check.stderr.decode())

    def test_reports_have_the_units_of_the_file(self):
        self.ok("compress", "--rel", "1e-3", "--dataset", "wind", self.nc, "-o", self.path("wind.qn"))
        self.ok("decompress", self.path("wind.qn"), "-o", self.path("back.nc"))
        self.ok("compare", "--dataset", "wind", self.nc, self.path("back.nc"), "--html", self.path("r.html"))
        page = read_bytes(self.path("r.html")).decode()
        self.assertIn("wind [m s-1]", page)
        self.assertIn("back.nc wind against model.nc wind", page)
        self.ok("compare", "--dataset", "temp", self.nc, self.nc, "--html", self.path("packed.html"))
        self.assertIn("temp [packed units]", read_bytes(self.path("packed.html")).decode())

    def test_variables_without_a_bound_are_skipped_with_a_note(self):
        result = self.ok("compress", "--bounds", self.bounds, self.nc)
        self.assertIn(b"model.nc count: skipped", result.stderr)
        self.assertEqual(sorted(f for f in self.files() if f.endswith(".qn")), ["model.temp.qn", "model.wind.qn"])

    def test_datasets(self):
        self.ok("compress", "--rel", "1e-3", "--dataset", "temp", "--dataset", "wind", self.nc)
        self.assertEqual(sorted(f for f in self.files() if f.endswith(".qn")), ["model.temp.qn", "model.wind.qn"])
        self.ok("verify", "--dataset", "wind", self.nc, self.path("model.wind.qn"))
        self.ok("compress", "--rel", "1e-3", "--dataset", "wind", self.nc)
        self.assertIn("model.nc.qn", self.files())

    def test_refusals(self):
        self.refused(1, "temp", "compress", "--abs", "1", self.nc)
        self.refused(1, "pwrel", "compress", "--pwrel", "0.1", "--dataset", "temp", self.nc)
        self.refused(1, "nosuch", "compress", "--abs", "1", "--dataset", "nosuch", self.nc)
        for text, part in ((b"temp", "line 1"), (b"temp abs", "line 1"), (b"\ntemp abs x", "line 2"),
                           (b"temp abs 1 2", "one word too many"), (b"temp cube 1", "cube"), (b"", "no bounds"),
                           (b"nosuch abs 1", "nosuch"), (b"temp abs 1\ntemp abs 2", "already")):
            self.refused(1, part, "compress", "-q", "--bounds", self.write("b.txt", text), self.nc)
        self.assertEqual([f for f in self.files() if f.endswith(".qn")], [])

    def test_steps_of_a_variable(self):
        self.ok("compress", "--append", "--abs", "0.1", "--dataset", "wind", self.nc, self.nc, "-o", self.path("w.qn"))
        self.ok("decompress", self.path("w.qn"), "-o", self.path("w.nc"))
        self.ok("decompress", self.path("w.qn"), "-o", self.path("w.h5"))
        self.ok("decompress", "--region", "0,:,3", self.path("w.qn"), "-o", self.path("part.nc"))


if __name__ == "__main__":
    harness.main()
