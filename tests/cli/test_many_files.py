# Many files in one run: folders, lists of names, files side by side in processes of their own.
import json
import os
import signal
import subprocess
import time

import harness
from harness import CliTest, read_bytes, run, wave


class ManyFiles(CliTest):
    def tree(self, names, count=600):
        """A folder of float32 files; each holds other values."""
        for at, name in enumerate(names):
            path = self.path(name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(wave(count, seed=at).tobytes())
        return [self.path(name) for name in names]

    def below(self, folder):
        found = []
        for where, _, files in os.walk(self.path(folder)):
            found += [os.path.relpath(os.path.join(where, name), self.path(folder)) for name in files]
        return sorted(found)

    NAMES = ["run/a_20x30.f32", "run/deep/er/b_20x30.f32", "run/deep/c_20x30.f32", "run/z_600.f32"]

    def test_Folder_OutputsRepeatItsTree(self):
        self.tree(self.NAMES)
        result = self.ok("compress", "--abs", "1e-3", "-r", self.path("run"), "-o", self.path("out"))
        self.assertEqual(self.below("out"), ["a_20x30.f32.qn", "deep/c_20x30.f32.qn", "deep/er/b_20x30.f32.qn",
                                             "z_600.f32.qn"])
        self.assertIn("4 compressed;", result.stderr.decode())
        self.ok("decompress", "-r", self.path("out"), "-o", self.path("back"))
        self.assertEqual(self.below("back"), self.below("run"))
        for name in self.NAMES:
            self.ok("verify", self.path(name), self.path(name).replace("/run/", "/out/") + ".qn")

    def test_Folder_WithoutOutput_StreamsLieBesideTheirInputs(self):
        self.tree(self.NAMES)
        self.ok("compress", "--abs", "1e-3", "-r", self.path("run"))
        self.assertEqual(len([n for n in self.below("run") if n.endswith(".qn")]), 4)

    def test_Folder_TakesWhatItKnowsAndCountsTheRest(self):
        self.tree(self.NAMES)
        self.tree(["run/notes.txt", "run/.hidden/h_20x30.f32", "run/old_20x30.f32.qn"])
        os.symlink(self.path("run"), self.path("run/round"))
        os.symlink(self.path("run/a_20x30.f32"), self.path("run/link_20x30.f32"))
        result = self.ok("compress", "--abs", "1e-3", "-r", self.path("run"), "-o", self.path("out"))
        self.assertEqual(len(self.below("out")), 4)
        self.assertIn("2 other files passed over", result.stderr.decode())

    def test_TypeAndShape_TakeFilesOfThatSize(self):
        self.tree(["run/plain.dat", "run/more.bin"])
        self.tree(["run/short.dat"], count=599)
        self.ok("compress", "--abs", "1e-3", "-t", "f32", "-s", "20x30", "-r", self.path("run"), "-o", self.path("out"))
        self.assertEqual(self.below("out"), ["more.bin.qn", "plain.dat.qn"])

    def test_FolderWithoutR_SaysWhatToType(self):
        self.tree(self.NAMES)
        self.refused(2, "-r takes the files below it", "compress", "--abs", "1", self.path("run"))

    def test_MissingFolder_SaysSo(self):
        for verb in (["compress", "--abs", "1"], ["decompress"]):
            self.refused(2, "there is no such folder", *verb, "-r", self.path("missing") + "/", "-o", self.path("out"))
        self.assertEqual(self.files(), [])

    def test_FolderWithoutArrays_SaysWhatIsLookedFor(self):
        self.tree(["run/notes.txt"])
        self.refused(1, "no array was found", "compress", "--abs", "1", "-r", self.path("run"))
        self.refused(1, "no stream was found", "decompress", "-r", self.path("run"))

    def test_ManyFilesIntoAFile_IsRefused(self):
        self.tree(self.NAMES)
        self.refused(1, "is a file", "compress", "--abs", "1", "-r", self.path("run"), "-o", self.write("out", b"old"))
        self.assertEqual(read_bytes(self.path("out")), b"old")
        self.refused(1, "not with standard output", "compress", "--abs", "1", "-r", self.path("run"), "-c")

    def test_List_OfLinesOrZeros(self):
        paths = self.tree(["run/a_20x30.f32", "run/with\nbreak_20x30.f32", "run/last_20x30.f32"])
        lines = "\n".join([paths[0], "", paths[2]])
        self.ok("compress", "--abs", "1", "--files-from", self.write("lines", lines.encode()), "-o", self.path("one"))
        self.assertEqual(self.below("one"), ["a_20x30.f32.qn", "last_20x30.f32.qn"])
        zeros = "\0".join(paths) + "\0"
        self.ok("compress", "--abs", "1", "--files-from", "-", "-o", self.path("two"), stdin=zeros.encode())
        self.assertEqual(len(self.below("two")), 3)

    def test_List_ThatIsMissing(self):
        self.refused(2, "no_such_list", "compress", "--abs", "1", "--files-from", self.path("no_such_list"))

    def test_NothingNamed_SaysWhatToType(self):
        self.refused(1, "a file is missing after compress", "compress", "--abs", "1")
        self.refused(1, "a file is missing after decompress", "decompress")

    def test_BadFile_OthersGoOn(self):
        paths = self.tree(self.NAMES)
        with open(paths[1], "wb") as out:
            out.write(b"short")
        with open(self.path("run/broken.npy"), "wb") as out:
            out.write(b"no npy file")
        for threads in ("1", "3"):
            result = run("compress", "--abs", "1e-3", "-f", "-T", threads, "-r", self.path("run"), "-o", self.path("out"))
            self.assertEqual(result.returncode, 2, result.stderr)
            text = result.stderr.decode()
            self.assertIn("3 compressed, 2 failed;", text)
            self.assertIn("b_20x30.f32", text)
            self.assertEqual(len(self.below("out")), 3)

    def test_SideBySide_SameBytesAndLinesInOrder(self):
        names = ["run/f%02d_20x30.f32" % i for i in range(17)]
        self.tree(names)
        one = self.ok("compress", "--rel", "1e-3", "--json", "-T", "1", "-r", self.path("run"), "-o", self.path("one"))
        many = self.ok("compress", "--rel", "1e-3", "--json", "-T", "4", "-r", self.path("run"), "-o", self.path("many"))
        inputs = [[json.loads(line)["input"] for line in r.stdout.decode().splitlines()] for r in (one, many)]
        self.assertEqual(inputs[0], [self.path(name) for name in names])
        self.assertEqual(inputs[1], inputs[0])
        for name in self.below("one"):
            self.assertEqual(read_bytes(self.path("one/" + name)), read_bytes(self.path("many/" + name)))
        self.ok("decompress", "-T", "4", "-r", self.path("many"), "-o", self.path("back"))
        self.ok("decompress", "-r", self.path("one"), "-o", self.path("again"))
        for name in self.below("back"):
            self.assertEqual(read_bytes(self.path("back/" + name)), read_bytes(self.path("again/" + name)))

    def test_SkipExisting_LeavesOutputsAlone(self):
        self.tree(self.NAMES)
        words = ["compress", "--abs", "1e-3", "-r", self.path("run"), "-o", self.path("out")]
        self.ok(*words)
        os.remove(self.path("out/z_600.f32.qn"))
        before = read_bytes(self.path("out/a_20x30.f32.qn"))
        self.assertEqual(run(*words).returncode, 2)  # outputs exist, and nobody said what to do with them
        os.remove(self.path("out/z_600.f32.qn"))
        result = self.ok(*words, "--skip-existing", "--rm")
        self.assertIn("1 compressed, 3 left alone", result.stderr.decode())
        self.assertEqual(read_bytes(self.path("out/a_20x30.f32.qn")), before)
        # Only what this run wrote is removed.
        self.assertEqual(self.below("run"), ["a_20x30.f32", "deep/c_20x30.f32", "deep/er/b_20x30.f32"])

    def test_SeveralArraysOfAFile_InputGoesWhenThisRunWroteAll(self):
        self.tree(["a_20x30.f32", "b_20x30.f32"])
        streams = [self.path("a_20x30.f32.qn"), self.path("b_20x30.f32.qn")]
        self.ok("compress", "--lossless", self.path("a_20x30.f32"), self.path("b_20x30.f32"))
        os.makedirs(self.path("run"))
        if run("decompress", *streams, "-o", self.path("run/both.h5")).returncode != 0:
            self.skipTest("this build writes no HDF5")
        words = ["compress", "--abs", "1e-3", "--dataset", "*", "--rm", "-T", "2", "-r", self.path("run"), "-o",
                 self.path("out"), "--skip-existing"]
        os.makedirs(self.path("out"))
        self.write("out/both.a_20x30.qn", b"already here")
        self.assertIn("1 compressed, 1 left alone", self.ok(*words).stderr.decode())
        self.assertEqual(self.below("run"), ["both.h5"])
        for name in self.below("out"):
            os.remove(self.path("out/" + name))
        self.assertIn("2 compressed;", self.ok(*words).stderr.decode())
        self.assertEqual(self.below("run"), [])

    def test_Remove_KeepsInputsThatFailed(self):
        paths = self.tree(self.NAMES)
        with open(paths[0], "wb") as out:
            out.write(b"short")
        result = run("compress", "--abs", "1e-3", "--rm", "-T", "2", "-r", self.path("run"), "-o", self.path("out"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(self.below("run"), ["a_20x30.f32"])

    def test_SameNameFromTwoFolders_IsRefused(self):
        self.tree(["one/a_20x30.f32", "two/a_20x30.f32"])
        self.refused(1, "two inputs would be written", "compress", "--abs", "1", "-r", self.path("one"), self.path("two"),
                     "-o", self.path("out"))

    def test_Append_TakesAFolderAsSteps(self):
        self.tree(["run/s2_20x30.f32", "run/s1_20x30.f32"])
        self.ok("compress", "--abs", "1e-3", "--append", "-r", self.path("run"), "-o", self.path("all.qn"))
        self.ok("decompress", self.path("all.qn"), "-o", self.path("all.raw"))
        self.assertEqual(os.path.getsize(self.path("all.raw")), 2 * 600 * 4)

    def begin(self, files, elements):
        """A run of two processes over files that take seconds each."""
        self.tree(["run/f%02d_%d.f32" % (i, elements) for i in range(files)], count=elements)
        return subprocess.Popen([harness.QUERN, "compress", "--rel", "1e-5", "--codec", "stencil", "-T", "2", "-r",
                                 self.path("run"), "-o", self.path("out")], stderr=subprocess.PIPE, text=True)

    def workers(self, process):
        """Processes that the command has made, once both are there."""
        for _ in range(500):
            with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="ascii") as children:
                found = [int(word) for word in children.read().split()]
            if len(found) == 2:
                return found
            time.sleep(0.01)
        self.fail("no two processes were seen")

    def test_KilledProcess_LosesItsFileAlone(self):
        process = self.begin(files=5, elements=300000)
        os.kill(self.workers(process)[0], signal.SIGKILL)
        _, text = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 5, text)
        self.assertIn("was ended by signal 9", text)
        self.assertIn("4 compressed, 1 failed;", text)
        self.assertEqual(len([n for n in self.below("out") if n.endswith(".qn")]), 4)

    def test_EndedRun_LeavesNoHalfWrittenFile(self):
        process = self.begin(files=40, elements=300000)
        workers = self.workers(process)
        time.sleep(0.05)
        process.terminate()
        process.communicate(timeout=100)
        self.assertEqual(process.returncode, 130)
        for _ in range(500):
            if not any(os.path.exists("/proc/%d" % worker) for worker in workers):
                break
            time.sleep(0.01)
        for name in self.below("out"):
            self.assertTrue(name.endswith(".f32.qn"), name)
            self.ok("info", "--check", self.path("out/" + name))


if __name__ == "__main__":
    harness.main()
