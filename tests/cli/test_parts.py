# Arrays in parts: unlike variables on one axis, what info says, regions, previews, masks, damage, steps.
import array
import math
import random

import harness
from harness import read_array, read_bytes

SHAPE = (4, 64, 80)
BOUND = 0.002
NAN = float("nan")


def unlike():
    """Four planes that have nothing to do with each other."""
    _, y, x = SHAPE
    source = random.Random(harness.SEED)
    values = array.array("f")
    for part in range(4):
        for j in range(y):
            for k in range(x):
                smooth = math.sin(k / (3 + 4 * part) + part) * math.cos(j / (9 - 2 * part))
                values.append((1, 0.05, 6, 1)[part] * smooth + 0.01 * source.random() * (part == 1))
    return values


class Parts(harness.CliTest):
    def make(self, values, *options, name="a.qn"):
        self.values = values
        self.raw = self.write("a.f32", values.tobytes())
        self.ok("compress", "-q", "-f", "--abs", BOUND, "--codec", "stencil", "-t", "f32", "-s", "%dx%dx%d" % SHAPE,
                *options, self.raw, "-o", self.path(name))
        return self.path(name)

    def info(self, path):
        return self.json(self.ok("info", "--json", path))["streams"][0]

    def test_unlike_planes_are_cut_and_smaller(self):
        path = self.make(unlike(), "--verify")
        whole = self.make(unlike(), "--set", "parts=off", name="whole.qn")
        stream = self.info(path)
        self.assertEqual([part["slices"] for part in stream["parts"]], [1, 1, 1, 1])
        self.assertEqual(self.info(whole)["parts"], [])
        self.assertLess(stream["stream_bytes"], self.info(whole)["stream_bytes"])
        self.assertIn("parts     4: 1 slice ", self.ok("info", path).stdout.decode())
        self.ok("verify", self.raw, path)
        self.ok("info", "--check", path)
        self.ok("decompress", "-q", path, "-o", self.path("b.f32"))
        self.assert_within(read_array(self.path("b.f32"), "f"), self.values, BOUND)

    def test_threads_pipes_and_memory_change_no_byte(self):
        one = read_bytes(self.make(unlike()))
        self.assertEqual(one, read_bytes(self.make(unlike(), "-T", "3")))
        self.assertEqual(one, read_bytes(self.make(unlike(), "--memory", "64M")))
        piped = self.ok("compress", "-q", "--abs", BOUND, "--codec", "stencil", "-t", "f32", "-s", "%dx%dx%d" % SHAPE,
                        "-", "-o", "-", stdin=read_bytes(self.raw)).stdout
        self.assertEqual(one, piped)

    def test_regions_and_previews(self):
        path = self.make(unlike(), "--set", "parts=1,2,1")
        self.ok("decompress", "-q", path, "-o", self.path("b.f32"))
        back = read_array(self.path("b.f32"), "f")
        _, y, x = SHAPE
        self.ok("decompress", "-q", "--region", "1:4,7:9,:", path, "-o", self.path("r.f32"))
        wanted = [back[(z * y + j) * x + k] for z in range(1, 4) for j in range(7, 9) for k in range(x)]
        self.assertEqual(list(read_array(self.path("r.f32"), "f")), wanted)
        self.assertEqual(self.info(path)["levels"][1], [4, 16, 20])
        self.ok("decompress", "-q", "--level", "2", path, "-o", self.path("l.f32"))
        wanted = [back[(z * y + j) * x + k] for z in range(4) for j in range(0, y, 4) for k in range(0, x, 4)]
        self.assertEqual(list(read_array(self.path("l.f32"), "f")), wanted)

    def test_masked_parts_come_back(self):
        values = unlike()
        plane = SHAPE[1] * SHAPE[2]
        for i in range(plane):
            values[plane + i] = NAN
            if i % 80 < 20:
                values[3 * plane + i] = NAN
        path = self.make(values, "--set", "parts=1,1,1,1", "--verify")
        self.ok("verify", self.raw, path)
        self.ok("decompress", "-q", path, "-o", self.path("b.f32"))
        back = read_array(self.path("b.f32"), "f")
        self.assertTrue(all(math.isnan(b) if math.isnan(v) else abs(b - v) <= BOUND for b, v in zip(back, values)))

    def test_a_damaged_part_leaves_the_others(self):
        path = self.make(unlike(), "--set", "parts=1,1,1,1")
        data = bytearray(read_bytes(path))
        self.ok("decompress", "-q", path, "-o", self.path("b.f32"))
        before = read_array(self.path("b.f32"), "f")
        data[len(data) - 200] ^= 0x40
        broken = self.write("broken.qn", bytes(data))
        self.refused(3, "", "decompress", "-q", broken, "-o", self.path("x"))
        harness.run("decompress", "-q", "--keep-going", broken, "-o", self.path("c.f32"))
        after = read_array(self.path("c.f32"), "f")
        plane = SHAPE[1] * SHAPE[2]
        self.assertEqual(list(after[:3 * plane]), list(before[:3 * plane]))
        self.assertTrue(all(math.isnan(v) for v in after[3 * plane:]))

    def test_steps_in_parts(self):
        files, steps = [], []
        for step in range(4):
            values = unlike()
            for i in range(len(values)):
                values[i] += 0.01 * step * math.sin(i / 7)
            steps.append(values)
            files.append(self.write("s%d.f32" % step, values.tobytes()))
        path = self.path("run.qn")
        self.ok("compress", "-q", "--abs", BOUND, "--codec", "stencil", "-t", "f32", "-s", "%dx%dx%d" % SHAPE,
                "--append", "-o", path, *files)
        streams = self.json(self.ok("info", "--json", path))["streams"]
        self.assertEqual([s["steps_to_key"] for s in streams], [0, 1, 2, 3])
        self.assertTrue(all(len(s["parts"]) == 4 for s in streams))
        self.ok("decompress", "-q", path, "-o", self.path("all.f32"))
        self.assert_within(read_array(self.path("all.f32"), "f"), [v for s in steps for v in s], BOUND)
        one = self.ok("decompress", "-q", "--step", "3", "--region", "2,:,5", path, "-o", "-").stdout
        self.assertEqual(len(one), 4 * SHAPE[1])

    def test_targets_of_named_parts_are_searched_on_a_sample(self):
        """Of an array with more slices than the sample has."""
        raw = self.write("t.u8", bytes(range(0, 250, 5)) * 42000)
        path = self.path("t.qn")
        self.ok("compress", "-q", "--psnr", 40, "--effort", "1", "--codec", "stencil", "-t", "u8", "-s", "2100x10x100",
                "--set", "parts=700,1400", raw, "-o", path)
        self.assertEqual([part["slices"] for part in self.info(path)["parts"]], [700, 1400])
        self.ok("verify", raw, path)

    def test_parts_that_do_not_add_up_are_refused(self):
        self.write("a.f32", unlike().tobytes())
        for parts in ("1,1", "5", "0,4", "x"):
            self.refused(1, "parts=1,1,3", "compress", "--abs", BOUND, "--codec", "stencil", "-t", "f32", "-s",
                         "%dx%dx%d" % SHAPE, "--set", "parts=" + parts, self.path("a.f32"), "-o", self.path("x.qn"))


harness.main()
