# Time steps in one file: chains that --append makes, single steps, damage, missing steps, what info and verify say.
import array
import math
import os
import random

import harness
from harness import read_array, read_bytes

SHAPE = (10, 18, 24)
BOUND = 0.01


def moving(step):
    """Rough values that move by one place a step along the last axis, and change a little."""
    z, y, x = SHAPE
    source = random.Random(harness.SEED)
    rough = [source.random() for _ in range(z * y * x)]
    return array.array("f", [rough[(i * y + j) * x + (k - step) % x] + 0.002 * ((7 * i + 5 * j + 3 * k + step) % 11)
                             for i in range(z) for j in range(y) for k in range(x)])


class Steps(harness.CliTest):
    def make(self, count, *options, name="run.qn", at_once=True):
        self.steps = [moving(i) for i in range(count)]
        files = [self.write("s%02d.f32" % i, values.tobytes()) for i, values in enumerate(self.steps)]
        common = ["--abs", str(BOUND), "--codec", "stencil", "-t", "f32", "-s", "%dx%dx%d" % SHAPE, "-o",
                  self.path(name), "--append", "-q", *options]
        for part in [files] if at_once else [[f] for f in files]:
            self.ok("compress", *common, *part)
        return self.path(name)

    def chain(self, path):
        streams = self.json(self.ok("info", "--json", path))["streams"]
        return [s["steps_to_key"] for s in streams], streams

    def test_all_steps_come_back_within_the_bound(self):
        path = self.make(9, "--key-every", "4", "--verify")
        depths, streams = self.chain(path)
        self.assertEqual(depths, [0, 1, 2, 3, 0, 1, 2, 3, 0])
        self.assertTrue(all((s["reference"] is None) == (d == 0) for s, d in zip(streams, depths)))
        self.ok("decompress", "-q", path, "-o", self.path("all.f32"))
        self.assert_within(read_array(self.path("all.f32"), "f"), [v for s in self.steps for v in s], BOUND)
        # From a pipe, step by step, the same.
        piped = self.ok("decompress", "-q", "-", "-o", "-", stdin=read_bytes(path))
        self.assertEqual(piped.stdout, read_bytes(self.path("all.f32")))
        alone = self.make(9, "--key-every", "1", name="alone.qn")
        self.assertLess(os.path.getsize(path), 0.8 * os.path.getsize(alone))
        original = self.write("original.f32", b"".join(s.tobytes() for s in self.steps))
        self.ok("verify", original, path)
        self.ok("info", "--check", path)
        self.assertIn("key + 3", self.ok("info", path).stdout.decode())

    def test_calls_and_threads_change_no_byte(self):
        one = read_bytes(self.make(6, name="one.qn"))
        self.assertEqual(one, read_bytes(self.make(6, name="each.qn", at_once=False)))
        self.assertEqual(one, read_bytes(self.make(6, "-T", "3", name="threads.qn")))

    def test_one_step_and_regions_of_it(self):
        path = self.make(5)
        self.assertEqual(self.chain(path)[0], [0, 1, 2, 3, 4])
        self.ok("decompress", "-q", path, "-o", self.path("all.f32"))
        size = 4 * len(self.steps[0])
        for step in (0, 3, 4):
            done = self.ok("decompress", "-q", "--step", step, path, "-o", "-")
            self.assertEqual(done.stdout, read_bytes(self.path("all.f32"))[step * size:(step + 1) * size])
        whole = self.ok("decompress", "-q", "--region", "3:5,2:4,:,7", path, "-o", "-").stdout
        parts = [self.ok("decompress", "-q", "--step", s, "--region", "2:4,:,7", path, "-o", "-").stdout for s in (3, 4)]
        self.assertEqual(whole, b"".join(parts))
        self.refused(1, "steps 0 to 4", "decompress", "--step", "5", path, "-o", self.path("x"))

    def test_missing_and_altered_steps_are_named(self):
        path = self.make(4)
        streams = self.chain(path)[1]
        data = read_bytes(path)
        at = [s["offset"] for s in streams] + [len(data)]
        cut = self.write("cut.qn", data[at[2]:])
        self.refused(6, streams[2]["reference"], "decompress", "-q", cut, "-o", self.path("x"))
        # Step 1 of another run.
        other = self.make(4, "--set", "fit=off", name="other.qn")
        there = self.chain(other)[1]
        mixed = self.write("mixed.qn", data[:at[1]] + read_bytes(other)[there[1]["offset"]:there[2]["offset"]] +
                           data[at[2]:])
        self.refused(6, "hash", "decompress", "-q", mixed, "-o", self.path("x"))
        self.refused(6, streams[3]["reference"], "decompress", "-q", "-", "-o", "-", stdin=data[at[3]:])

    def test_damage_ends_at_the_next_key_step(self):
        path = self.make(8, "--key-every", "4")
        streams = self.chain(path)[1]
        data = bytearray(read_bytes(path))
        data[streams[1]["offset"] + streams[1]["stream_bytes"] // 2] ^= 0x20
        broken = self.write("broken.qn", bytes(data))
        self.assertEqual(harness.run("decompress", "-q", broken, "-o", self.path("x")).returncode, 3)
        result = harness.run("decompress", "-q", "--keep-going", broken, "-o", self.path("kept.f32"))
        self.assertEqual(result.returncode, 3)
        kept, size = read_array(self.path("kept.f32"), "f"), len(self.steps[0])
        for step in range(8):
            values = kept[step * size:(step + 1) * size]
            if step in (1, 2, 3):
                self.assertTrue(all(math.isnan(v) for v in values))
            else:
                self.assert_within(values, self.steps[step], BOUND)

    def append(self, path, step, *options):
        one = self.write("next.f32", moving(step).tobytes())
        return self.ok("compress", "--abs", str(BOUND), "--codec", "stencil", "-t", "f32", "-s", "%dx%dx%d" % SHAPE, "-o",
                       path, "--append", *options, one)

    def test_what_cannot_be_decoded_is_gone_on_behind(self):
        path = self.make(3)
        streams = self.chain(path)[1]
        data = bytearray(read_bytes(path))
        data[streams[1]["offset"] + streams[1]["stream_bytes"] // 2] ^= 0x20
        broken = self.write("broken.qn", bytes(data))
        self.assertIn("the next step is a key step", self.append(broken, 3).stderr.decode())
        self.append(broken, 4, "-q")
        self.assertEqual(self.chain(broken)[0], [0, 1, 2, 0, 1])
        self.assertEqual(read_bytes(broken)[:len(data)], bytes(data))
        # A step that has to stand alone needs nothing decoded, and no note.
        alone = self.write("alone.qn", bytes(data))
        self.assertNotIn("key step", self.append(alone, 3, "--key-every", "3").stderr.decode())

    def test_calibration_is_of_steps_that_stand_alone(self):
        self.make(3, "--key-every", "3", "--calibration", self.path("seen.jsonl"))
        lines = [line for line in read_bytes(self.path("seen.jsonl")).splitlines() if b"stencil" in line]
        self.assertEqual(len(lines), 1)

    def test_what_steps_cannot_do_is_refused(self):
        path = self.make(2)
        self.refused(1, "--level 1", "decompress", "--level", "1", path, "-o", self.path("x"))
        self.refused(1, "--append", "compress", "--key-every", "3", "--abs", "1", path, "-o", self.path("y"))
        self.refused(1, "--key-every", "compress", "--append", "--key-every", "0", "--abs", "1", "-t", "f32", "-s",
                     "%dx%dx%d" % SHAPE, self.path("s00.f32"), "-o", self.path("y"))


harness.main()
