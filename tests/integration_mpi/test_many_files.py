# quern-mpi: the same outputs for any number of ranks, a journal that a killed run goes on from, errors of single files.
# usage: test_many_files.py MPIEXEC QUERN_MPI QUERN
import array
import fcntl
import glob
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from mpi_harness import MPIEXEC, MpiTest, environment, mpirun, need_mpi, start

PROGRAM, QUERN = sys.argv.pop(1), sys.argv.pop(1)


class ManyFiles(MpiTest):
    def make(self, count, elements=2000, folder="run"):
        """Files of float32 in two folders, no two alike."""
        os.makedirs(self.path(folder + "/deep"), exist_ok=True)
        names = []
        for i in range(count):
            source = random.Random(i)
            values = array.array("f", (math.sin(k * 0.01 * (i + 1)) + source.random() * 1e-3 for k in range(elements)))
            names.append("%s%s/f%03d_%d.f32" % (folder, "/deep" if i % 3 == 0 else "", i, elements))
            with open(self.path(names[-1]), "wb") as out:
                out.write(values.tobytes())
        return names

    def below(self, folder):
        paths = glob.glob(self.path(folder) + "/**", recursive=True)
        return sorted(os.path.relpath(p, self.path(folder)) for p in paths if os.path.isfile(p) and "journal" not in p)

    def mpi(self, ranks, *words):
        return mpirun(ranks, PROGRAM, *words, env=environment())

    def quern(self, *words):
        done = start([QUERN, *words], dict(os.environ))
        self.assert_ran(done)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_AnyNumberOfRanks_WritesWhatQuernWrites(self):
        self.make(7)
        self.quern("compress", "--rel", "1e-3", "-r", self.path("run"), "-o", self.path("alone"))
        for ranks in (1, 2, 4):
            folder = "ranks%d" % ranks
            done = self.mpi(ranks, "compress", "--rel", "1e-3", "-r", self.path("run"), "-o", self.path(folder))
            self.assert_ran(done)
            self.assertIn("7 files: 7 done", done.stderr)
            self.assertEqual(self.below(folder), self.below("alone"))
            for name in self.below("alone"):
                self.assertEqual(self.read(folder + "/" + name), self.read("alone/" + name), name)
        self.assert_ran(self.mpi(2, "verify", "-r", self.path("run"), "-o", self.path("ranks2")))
        self.assert_ran(self.mpi(3, "decompress", "-r", self.path("ranks4"), "-o", self.path("back")))
        self.assertEqual(self.below("back"), self.below("run"))

    def test_KilledRun_GoesOnWithWhatIsLeft(self):
        names = self.make(40, elements=60000)
        words = ["compress", "--rel", "1e-5", "--codec", "stencil", "-r", self.path("run"), "-o", self.path("out")]
        job = subprocess.Popen([MPIEXEC, "-n", "3", PROGRAM, *words], env=environment(), start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        journal = self.path("out/quern-mpi.journal")
        for _ in range(3000):
            if os.path.exists(journal) and self.read("out/quern-mpi.journal").count(b"\ndone\t") >= 3:
                break
            time.sleep(0.01)
        with open("/proc/%d/task/%d/children" % (job.pid, job.pid), encoding="ascii") as children:
            os.kill(int(children.read().split()[-1]), signal.SIGKILL)  # a rank; mpirun then ends the others
        job.wait()
        self.wait_for_lock(journal)
        before = self.read("out/quern-mpi.journal").count(b"\ndone\t")
        self.assertGreaterEqual(before, 3)
        self.assertLess(before, len(names))
        # What a quern that was killed as well would have left, and what is not its.
        lines = self.read("out/quern-mpi.journal").decode().splitlines()
        done = {line.split("\t")[-1] for line in lines if line.startswith("done")}
        begun = [line.split("\t")[-1] for line in lines if line.startswith("begun") and line.split("\t")[-1] not in done]
        self.assertTrue(begun)
        output = self.path("out") + begun[0][len(self.path("run")):] + ".qn"
        folder, name = os.path.split(output)
        left, other = os.path.join(folder, "." + name + ".abcdefgh42.part"), os.path.join(folder, "." + name + ".part")
        for path in (left, other):
            with open(path, "wb") as out:
                out.write(b"half")
        # As if the last line had been cut by the end of the machine.
        with open(journal, "ab") as out:
            out.write(b"done\t1\t2")
        done = self.mpi(2, *words)
        self.assert_ran(done)
        self.assertIn("40 files: %d done, %d done before" % (40 - before, before), done.stderr)
        self.assertFalse(os.path.exists(left))
        self.assertTrue(os.path.exists(other))
        lines = [line.split(b"\t")[-1] for line in self.read("out/quern-mpi.journal").splitlines() if line.startswith(b"done")]
        self.assertEqual(len(lines), 40)
        self.assertEqual(len(set(lines)), 40)
        self.assert_ran(self.mpi(2, "verify", "-r", self.path("run"), "-o", self.path("out")))
        self.assertIn("0 done, 40 done before", self.mpi(2, *words).stderr)

    def wait_for_lock(self, path):
        with open(path, "rb") as file:
            for _ in range(3000):
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    time.sleep(0.01)
        self.fail("the ranks of a run that was killed go on")

    def test_JournalInUse_IsRefused(self):
        self.make(1)
        os.makedirs(self.path("out"))
        with open(self.path("out/quern-mpi.journal"), "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            done = self.mpi(1, "compress", "--rel", "1e-3", "-r", self.path("run"), "-o", self.path("out"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("another run works with this journal", done.stderr)

    def test_ChangedInput_IsDoneAgain(self):
        names = self.make(3)
        words = ["compress", "--rel", "1e-3", "-r", self.path("run"), "-o", self.path("out")]
        self.assert_ran(self.mpi(2, *words))
        self.make(1)
        os.utime(self.path(names[0]), (1, 1))
        self.assertIn("1 done, 2 done before", self.mpi(2, *words).stderr)

    def test_FileThatFails_OthersGoOnAndItIsTriedAgain(self):
        names = self.make(5)
        with open(self.path(names[1]), "wb") as out:
            out.write(b"short")
        words = ["compress", "--rel", "1e-3", "-r", self.path("run"), "-o", self.path("out")]
        done = self.mpi(2, *words)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("4 done, 1 failed", done.stderr)
        self.assertIn(names[1], done.stderr)
        self.make(5)
        again = self.mpi(2, *words, "--json")
        self.assert_ran(again)
        inputs = {json.loads(line)["input"] for line in again.stdout.splitlines()}
        self.assertIn(self.path(names[1]), inputs)

    def test_OutputOfSomebodyElse_IsNotReplaced(self):
        self.make(2)
        os.makedirs(self.path("out"))
        with open(self.path("out/f001_2000.f32.qn"), "wb") as out:
            out.write(b"precious")
        done = self.mpi(2, "compress", "--rel", "1e-3", "-r", self.path("run"), "-o", self.path("out"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(self.read("out/f001_2000.f32.qn"), b"precious")

    def test_OtherOptions_NeedAnotherJournal(self):
        self.make(2)
        self.assert_ran(self.mpi(1, "compress", "--rel", "1e-3", "-r", self.path("run"), "-o", self.path("out")))
        done = self.mpi(2, "compress", "--rel", "1e-4", "-r", self.path("run"), "-o", self.path("out"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("other options", done.stderr)

    def test_WrongWords_OneLineThatSaysWhatToType(self):
        self.make(1)
        for part, words in (("no error bound", ["compress", "-r", self.path("run"), "-o", self.path("out")]),
                            ("compress, decompress, verify or h5-pack", []),
                            ("no such option", ["compress", "--rel", "1", "--sideways", self.path("run")]),
                            ("-o FOLDER", ["compress", "--rel", "1", "-r", self.path("run")]),
                            ("no file was named", ["compress", "--rel", "1", "-o", self.path("out")]),
                            ("-r takes the files", ["compress", "--rel", "1", self.path("run"), "-o", self.path("out")]),
                            ("not over MPI", ["compress", "--rel", "1", "-r", self.path("run"), "-c"])):
            done = self.mpi(2, *words)
            self.assertEqual(done.returncode in (1, 2), True, (words, done.stderr))
            said = [line for line in done.stderr.splitlines() if line.startswith("quern: ")]
            self.assertEqual(len(said), 1, done.stderr)
            self.assertIn(part, said[0])
        self.assertFalse(os.path.exists(self.path("out/f000_2000.f32.qn")))

    def test_H5Pack(self):
        self.make(2)
        self.quern("compress", "--lossless", "-r", self.path("run"), "-o", self.path("qn"))
        os.makedirs(self.path("h5"))
        for i, stream in enumerate(self.below("qn")):
            if subprocess.run([QUERN, "decompress", self.path("qn/" + stream), "-o", self.path("h5/%d.h5" % i)],
                              capture_output=True).returncode != 0:
                self.skipTest("this build writes no HDF5")
        self.assert_ran(self.mpi(2, "h5-pack", "--abs", "1e-3", "-r", self.path("h5"), "-o", self.path("packed")))
        self.assertEqual(self.below("packed"), ["0.h5", "1.h5"])


if __name__ == "__main__":
    need_mpi()
    unittest.main()
