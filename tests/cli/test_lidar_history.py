# quern lidar history: drives predicted from earlier ones, each command a process of its own; damage, wrong histories, two
# writers, kills and full disks.
import fcntl
import glob
import os
import random
import resource
import shutil
import signal
import subprocess
import time

import harness
import test_lidar
from harness import CliTest, read_bytes

BOUND = 0.15
POSE = b"1 0 0 %d 0 1 0 2 0 0 1 0\n"


def limit_file_size(bytes_):
    def apply():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))
    return apply


class History(CliTest):
    def scans(self, name, seeds):
        folder = self.path(name)
        os.mkdir(folder)
        return [self.write(f"{name}/{seed:06}.bin", test_lidar.ring_scan(seed).tobytes()) for seed in seeds]

    def poses(self, count, at=1):
        return self.write(f"poses{count}-{at}.txt", count * (POSE % at))

    def made(self, at=1, *words):
        """A history of two scans."""
        history = self.path(f"streets{at}")
        self.ok("lidar", "history", "init", history, "-q", *words)
        if not os.path.exists(self.path("before")):
            self.scans("before", (1, 2))
        added = self.ok("lidar", "history", "add", history, self.path("before"), "--poses", self.poses(2, at), "--json")
        return history, self.json(added)

    def compress(self, inputs, name, *words):
        out = self.path(name)
        return out, self.json(self.ok("lidar", "compress", *inputs, "-o", out, "--max-error", "15cm", "--poses",
                                      self.poses(len(inputs)), "--json", *words))

    def assert_holds(self, inputs, folder):
        for path in inputs:
            both = []
            for name in (path, os.path.join(folder, os.path.basename(path))):
                values = test_lidar.array.array("f")
                values.frombytes(read_bytes(name))
                both.append(test_lidar.rows(values, 4))
            for one, other in (both, both[::-1]):
                cells = test_lidar.Cells(other, BOUND)
                self.assertEqual([p for p in one if not cells.has_near(p, BOUND)], [])

    def test_a_drive_comes_back_with_its_history_or_its_bundle(self):
        history, added = self.made()
        self.assertEqual((added["epoch"], added["frames"]), (1, 2))
        inputs = self.scans("day", (3, 4, 5))
        plain, alone = self.compress(inputs, "plain.qnl")
        drive, told = self.compress(inputs, "drive.qnl", "--history", history)
        self.assertGreaterEqual(told["history_frames"], 1)
        self.assertLess(told["output_bytes"], 0.95 * alone["output_bytes"])
        without, _ = self.compress(inputs, "without.qnl", "--history", history, "--no-history")
        self.assertEqual(read_bytes(without), read_bytes(plain))
        again, _ = self.compress(inputs, "again.qnl", "--history", history, "-T", 2)
        self.assertEqual(read_bytes(again), read_bytes(drive))
        info = self.json(self.ok("lidar", "info", drive, "--json"))
        self.assertEqual({frame["epoch"] for frame in info["each"]}, {added["root"], None})
        # A later epoch changes nothing for this drive.
        self.ok("lidar", "history", "add", history, plain, "-q")
        bundle = self.path("bundle")
        self.ok("lidar", "history", "bundle", history, drive, "-o", bundle, "-q")
        for folder in (history, bundle):
            out = self.path("back-" + os.path.basename(folder))
            self.ok("lidar", "decompress", drive, "-o", out + "/", "--history", folder, "-q")
            self.assert_holds(inputs[1:2], out)
            self.ok("lidar", "verify", drive, "--original", *inputs, "--history", folder, "-q")
            self.ok("lidar", "history", "verify", folder, "-q")
        self.ok("lidar", "compare", inputs[1], drive, "--frame", 1, "--history", bundle, "-q")
        said = self.json(self.ok("verify", drive, "--json"))
        self.assertEqual(said["streams"][0]["frames_without_history"], 3)
        self.assertIn(b"3 frames need a history", self.ok("verify", drive).stdout)
        out = ("-o", self.path("none/"))
        self.refused(6, "frame 0", "lidar", "decompress", drive, *out)
        self.refused(6, "--history DIR", "lidar", "verify", drive)
        elsewhere = self.refused(2, "there is no history; name the folder", "lidar", "decompress", drive, *out,
                                 "--history", self.path("before"))
        self.assertNotIn(b"history init", elsewhere.stderr)
        self.refused(1, "--history: the name", "lidar", "decompress", drive, *out, "--history", "")
        self.refused(1, "this is a bundle", "lidar", "history", "add", bundle, plain)
        self.refused(1, "no frame of it", "lidar", "history", "bundle", history, plain, "-o", self.path("b2"))
        self.refused(2, "something already", "lidar", "history", "bundle", history, drive, "-o", bundle)

    def test_what_is_missing_is_named_and_the_rest_comes_back(self):
        history, _ = self.made()
        near, far = self.scans("day", (3, 4)), self.scans("far", (5,))
        poses = self.write("mixed.txt", 2 * (POSE % 1) + POSE % 900)
        drive = self.path("drive.qnl")
        self.ok("lidar", "compress", *near, *far, "-o", drive, "--max-error", "15cm", "--poses", poses, "--history",
                history, "--key-frames", 1, "-q")
        segment, = glob.glob(history + "/segments/*")
        whole = read_bytes(segment)
        damaged = bytearray(whole)
        damaged[40] ^= 1
        for content in (None, bytes(damaged)):
            os.remove(segment)
            if content is not None:
                self.write(os.path.relpath(segment, self.folder.name), content)
            refused = self.refused(6, "tile ", "lidar", "decompress", drive, "-o", self.path("a/"), "--history", history)
            self.assertIn(b"frame 0", refused.stderr)
            self.assertIn(b"--keep-going", refused.stderr)
            refused = self.refused(6, "tile ", "lidar", "verify", drive, "--history", history)
            self.assertNotIn(b"--keep-going", refused.stderr)
            self.refused(6, "tile ", "lidar", "history", "bundle", history, drive, "-o", self.path("bundle"))
            self.assertEqual(glob.glob(self.path("bundle*")), [])
            out = self.path("rest")
            rest = harness.run("lidar", "decompress", drive, "-o", out + "/", "--history", history, "--keep-going", "-f")
            self.assertEqual(rest.returncode, 6, rest.stderr)
            self.assertEqual(os.listdir(out), ["000005.bin"])
            self.assert_holds(far, out)
            self.refused(3, "damaged or missing", "lidar", "history", "verify", history, "-q")
            self.refused(6, "--no-history", "lidar", "compress", *near, "-o", self.path("b.qnl"), "--max-error", "15cm",
                         "--poses", self.poses(2), "--history", history)
            if content is None:
                self.write(os.path.relpath(segment, self.folder.name), b"")
        os.remove(segment)
        os.symlink(os.path.basename(segment), segment)  # a file that cannot be opened is not a missing one
        self.refused(2, "symbolic links", "lidar", "decompress", drive, "-o", self.path("c/"), "--history", history)
        os.remove(glob.glob(history + "/epochs/*")[0])
        self.refused(6, "is not in this history", "lidar", "history", "bundle", history, drive, "-o", self.path("b"))
        self.refused(6, "is not in this history", "lidar", "history", "gc", history, "--keep", 1, "--drive", drive)
        self.refused(6, "is not in this history", "lidar", "decompress", drive, "-o", self.path("c/"), "--history", history)

    def test_a_history_of_another_place_costs_nothing(self):
        inputs = self.scans("day", (3, 4))
        _, alone = self.compress(inputs, "plain.qnl")
        for at in (3, 5000):
            history, _ = self.made(at)
            drive, told = self.compress(inputs, f"{at}.qnl", "--history", history)
            self.assertLessEqual(told["output_bytes"], 1.01 * alone["output_bytes"] + 16)
            self.ok("lidar", "verify", drive, "--original", *inputs, "--history", history, "-q")
        empty = self.path("empty")
        self.ok("lidar", "history", "init", empty, "-q")
        drive, told = self.compress(inputs, "empty.qnl", "--history", empty)
        self.assertEqual(read_bytes(drive), read_bytes(self.path("plain.qnl")))

    def test_old_epochs_go_and_those_of_drives_stay(self):
        history, first = self.made()
        drive, _ = self.compress(self.scans("day", (3,)), "drive.qnl", "--history", history)
        for seed in (6, 7, 8):
            scans = self.scans(f"more{seed}", (seed,))
            self.ok("lidar", "history", "add", history, *scans, "--poses", self.poses(1), "-q")
        listed = self.json(self.ok("lidar", "history", "ls", history, "--json"))["epochs"]
        self.assertEqual([epoch["epoch"] for epoch in listed], [1, 2, 3, 4])
        words = ("lidar", "history", "gc", history, "--keep", 1, "--drive", drive, "--json")
        dry = self.json(self.ok(*words, "--dry-run"))
        self.assertEqual(len(self.json(self.ok("lidar", "history", "ls", history, "--json"))["epochs"]), 4)
        done = self.json(self.ok(*words))
        self.assertEqual([epoch["epoch"] for epoch in done["removed"]], [2, 3])
        self.assertEqual(dry["removed"], done["removed"])
        self.ok("lidar", "verify", drive, "--history", history, "-q")
        self.ok("lidar", "history", "verify", history, "-q")
        self.ok("lidar", "history", "gc", history, "--keep", 1, "-q")
        self.refused(6, first["root"], "lidar", "verify", drive, "--history", history)
        stat = self.json(self.ok("lidar", "history", "stat", history, "--json"))
        self.assertEqual((stat["epochs"], stat["bundle"], stat["cells"]), (1, False, listed[-1]["cells"]))

    def test_damage_does_not_stop_a_history(self):
        history, first = self.made()
        words = ("lidar", "history", "add", history, self.path("before"), "--poses", self.poses(2), "--json")
        segment, = glob.glob(history + "/segments/*")
        damaged = bytearray(read_bytes(segment))
        damaged[40] ^= 1
        self.write(os.path.relpath(segment, self.folder.name), damaged)
        again = self.ok(*words)
        self.assertIn(b"begins anew", again.stderr)
        self.assertGreater(self.json(again)["new_cells"], 0)
        self.ok("lidar", "history", "verify", history, "-q")
        epoch = sorted(glob.glob(history + "/epochs/*"))[1]
        damaged = bytearray(read_bytes(epoch))
        damaged[40] ^= 1
        self.write(os.path.relpath(epoch, self.folder.name), damaged)
        self.refused(3, "gc --damaged", *words)
        self.refused(3, "gc --damaged", "lidar", "history", "verify", history)
        self.refused(3, "--damaged", "lidar", "history", "gc", history, "--keep", 2)
        listed = self.json(self.ok("lidar", "history", "ls", history, "--json"))["epochs"]
        self.assertEqual([one["damaged"] for one in listed], [False, True])
        self.assertTrue(self.json(self.ok("lidar", "history", "stat", history, "--json"))["damaged"])
        self.assertIn(b"damaged", self.ok("lidar", "history", "stat", history).stdout)
        done = self.json(self.ok("lidar", "history", "gc", history, "--damaged", "--json"))
        self.assertEqual([one["epoch"] for one in done["removed"]], [2])
        self.ok(*words)
        self.ok("lidar", "history", "verify", history, "-q")

    def test_an_epoch_that_goes_while_a_drive_is_made(self):
        history, first = self.made()
        inputs = self.scans("day", range(3, 13))
        self.compress(inputs, "whole.qnl", "--history", history)
        read_end, write_end = os.pipe()
        room = fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
        self.assertGreater(os.path.getsize(self.path("whole.qnl")), 2 * room)
        process = subprocess.Popen([harness.QUERN, "lidar", "compress", *inputs, "-o", "-", "--max-error", "15cm", "--poses",
                                    self.poses(10), "--history", history], stdout=write_end, stderr=subprocess.PIPE)
        os.close(write_end)
        os.read(read_end, 1)  # it writes: all frames are coded
        self.ok("lidar", "history", "add", history, *self.scans("more", (14,)), "--poses", self.poses(1), "-q")
        self.ok("lidar", "history", "gc", history, "--keep", 1, "-q")
        while os.read(read_end, 1 << 16):
            pass
        os.close(read_end)
        said = process.communicate()[1]
        self.assertEqual(process.returncode, 6, said)
        self.assertIn(first["root"].encode(), said)
        self.assertIn(b"compress again", said)

    def test_lost_files_come_back_from_parity(self):
        history, _ = self.made()
        self.ok("lidar", "history", "add", history, *self.scans("more", (6,)), "--poses", self.poses(1), "-q")
        self.assertIn(b"has no parity", self.ok("lidar", "history", "repair", history).stderr)
        made = harness.run("lidar", "history", "parity", history, "--parity", "4+2", "--json")
        if b"made without ISA-L" in made.stderr:
            self.skipTest("built without ISA-L")
        self.assertEqual(self.json(made)["guarded_files"], 4)
        whole = {name: read_bytes(name) for kind in ("epochs", "segments", "parity")
                 for name in glob.glob(history + "/" + kind + "/*")}
        self.assertEqual(len(whole), 6)
        verify = ("lidar", "history", "verify", history)
        self.assertIn(b"parity over 4 files", self.ok(*verify).stdout)
        segment, other = glob.glob(history + "/segments/*")
        bare = self.path("bare")
        shutil.copytree(history, bare)
        shutil.rmtree(bare + "/parity")
        os.remove(bare + "/segments/" + os.path.basename(segment))
        self.refused(3, "there is no parity; restore", "lidar", "history", "repair", bare)
        os.remove(segment)
        damaged = bytearray(whole[other])
        damaged[40] ^= 1
        self.write(os.path.relpath(other, self.folder.name), damaged)
        self.assertIn(b"history repair", self.refused(3, "damaged or missing", *verify, "-q").stderr)
        self.refused(3, "history repair", "lidar", "history", "parity", history)
        told = self.json(self.ok("lidar", "history", "repair", history, "--json"))
        self.assertEqual(sorted(told["mended"]), sorted("segments/" + os.path.basename(n) for n in (segment, other)))
        self.assertEqual({name: read_bytes(name) for name in whole}, whole)
        for name in list(whole)[:3]:
            os.remove(name)
        self.refused(3, "beyond their parity", "lidar", "history", "repair", history)
        for name in list(whole)[:3]:
            self.write(os.path.relpath(name, self.folder.name), whole[name])
        self.ok("lidar", "history", "add", history, *self.scans("again", (7,)), "--poses", self.poses(1), "-q")
        self.assertIn(b"2 files have no parity yet", self.ok(*verify).stderr)
        self.assertEqual(self.json(self.ok("lidar", "history", "parity", history, "--json"))["made_sets"], 1)
        self.assertIn(b"files lost their parity", self.ok("lidar", "history", "gc", history, "--keep", 1).stderr)
        self.ok("lidar", "history", "parity", history, "-q")
        self.ok("lidar", "history", "parity", history, "--parity", "none", "-q")
        self.assertEqual(os.listdir(history + "/parity"), [])
        for text in ("3", "0+2", "3+0", "60+9"):
            self.refused(1, "parity", "lidar", "history", "parity", history, "--parity", text)

    def test_links_are_not_followed(self):
        history, _ = self.made()
        papers = self.path("papers")
        os.mkdir(papers)
        for name in ("thesis.tex", "segment", "history"):
            self.write("papers/" + name, b"years of work")
        os.rmdir(history + "/tmp")
        os.symlink(papers, history + "/tmp")
        for words in (("gc", history), ("gc", history, "--dry-run"),
                      ("add", history, self.path("before"), "--poses", self.poses(2))):
            self.refused(1, "symbolic link", "lidar", "history", *words)
        self.assertEqual(sorted(os.listdir(papers)), ["history", "segment", "thesis.tex"])
        # A file that cannot be opened is not taken for a missing one.
        other = self.path("other")
        self.ok("lidar", "history", "init", other, "-q")
        os.remove(other + "/history")
        os.symlink("history", other + "/history")
        self.refused(2, "symbolic links", "lidar", "history", "init", other)
        self.assertTrue(os.path.islink(other + "/history"))

    def test_two_writers(self):
        history, _ = self.made()
        with open(history + "/lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.refused(2, "another process", "lidar", "history", "add", history, self.path("before"), "--poses",
                         self.poses(2))
            self.refused(2, "another process", "lidar", "history", "gc", history)
            os.rename(history + "/history", self.path("kept"))
            self.refused(2, "another process", "lidar", "history", "init", history)
            os.rename(self.path("kept"), history + "/history")
            self.compress(self.scans("day", (3,)), "drive.qnl", "--history", history)
        self.ok("lidar", "history", "add", history, self.path("before"), "--poses", self.poses(2), "-q")

    def test_killed_and_out_of_room(self):
        history, first = self.made()
        kept = shutil.copytree(history, self.path("kept"))
        source, epochs = random.Random(harness.SEED), 1
        words = ["lidar", "history", "add", history, self.path("before"), "--poses", self.poses(2, 3), "-q"]
        for _ in range(12):
            process = subprocess.Popen([harness.QUERN, *words], stderr=subprocess.DEVNULL)
            time.sleep(source.random() * 0.05)
            process.kill()
            process.wait()
            self.ok("lidar", "history", "verify", history, "-q")
            listed = self.json(self.ok("lidar", "history", "ls", history, "--json"))["epochs"]
            self.assertEqual(listed[0]["root"], first["root"])
            self.assertIn(len(listed), (epochs, epochs + 1))
            epochs = len(listed)
        shutil.rmtree(history)
        for size in (1, 60, 1000, 20000):
            history = shutil.copytree(kept, self.path(f"full{size}"))
            words[3] = history
            result = harness.run(*words, preexec=limit_file_size(size))
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(b"File too large", result.stderr)
            listed = self.json(self.ok("lidar", "history", "ls", history, "--json"))["epochs"]
            self.assertEqual([epoch["root"] for epoch in listed], [first["root"]])
            self.ok("lidar", "history", "verify", history, "-q")
            self.ok(*words)

    def test_refusals(self):
        history, _ = self.made()
        scan = self.path("before/000001.bin")
        self.refused(2, "already", "lidar", "history", "init", history)
        self.refused(1, "goes into 32 m", "lidar", "history", "init", self.path("x"), "--resolution", "7cm")
        self.refused(1, "scans need --poses", "lidar", "history", "add", history, scan)
        self.refused(2, "history init", "lidar", "history", "ls", self.path("nowhere"))
        self.refused(1, "type quern lidar history init", "lidar", "history")
        self.refused(5, "add fewer scans at a time", "lidar", "history", "add", history, scan, "--poses", self.poses(1),
                     "--memory", "512K")
        self.refused(5, "points of 16 bytes each", "lidar", "history", "add", history, scan, "--poses", self.poses(1),
                     "--memory", "64K")
        self.refused(1, "--keep 0", "lidar", "history", "gc", history, "--keep", 0)
        self.refused(1, "is missing after lidar history add", "lidar", "history", "add")
        drive = self.path("exact.qnl")
        self.ok("lidar", "compress", scan, "-o", drive, "-q")
        self.refused(1, "has no pose", "lidar", "history", "add", history, drive)
        help_text = self.ok("lidar", "history", "add", "--help").stdout.decode()
        self.assertIn("quern lidar history add", help_text)


if __name__ == "__main__":
    harness.main()
