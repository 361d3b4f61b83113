# quern offload bench: what is measured of each form, the page, refusals, and that nothing is left behind.
import os
import signal
import subprocess
import time

import harness
from harness import CliTest


class OffloadBench(CliTest):
    def bench(self, *words):
        return ("offload", "bench", "--folder", self.folder.name + "=400M", *words)

    def test_forms_beside_each_other(self):
        page = self.path("steps.html")
        second = self.path("second")
        os.mkdir(second)
        told = self.json(self.ok(*self.bench("--folder", second + "=200M", "--parameters", "500000", "--subgroup", "16K",
                                             "--steps", "2", "--html", page, "--json")))
        forms = {form["form"]: form for form in told["forms"]}
        self.assertEqual(list(forms), ["in memory", "raw", "8 bits", "4 bits"])
        self.assertEqual((told["parameters"], told["subgroup"], told["steps"]), (500000, 16384, 2))
        self.assertEqual([folder["rate"] for folder in told["folders"]], [400 << 20, 200 << 20])
        self.assertEqual((forms["raw"]["read_bytes"], forms["raw"]["written_bytes"]), (6000000, 6000000))
        self.assertEqual(forms["in memory"]["read_bytes"], 0)
        limit = max(12 * 500000 // 8, 4 * 12 * 16384)
        for form, bytes_a_value in (("8 bits", 6.03), ("4 bits", 5.03)):
            told = forms[form]
            self.assertLess(told["written_bytes"], 1.3 * bytes_a_value * 500000)
            self.assertGreaterEqual(told["written_bytes"], (bytes_a_value - 0.03) * 500000)
            # What was still in memory was not read.
            self.assertLess(told["read_bytes"], told["written_bytes"])
            self.assertLess(told["memory_bytes"], 1.1 * limit)
            self.assertGreater(told["expected_seconds"], 0)
            # No more than the throttles allow, but for what they hold.
            for share in ("read_share", "write_share"):
                self.assertGreater(told[share], 0)
                self.assertLess(told["step_seconds"] * (told[share] - 1), 0.03)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count("<svg"), 3)
        for what in ("<title>read: ", "<title>write: ", "<title>update: ", "write 2"):
            self.assertIn(what, text)
        self.refused(2, "exists", *self.bench("--html", page))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["second", "steps.html"])
        self.assertEqual(os.listdir(second), [])

    def test_a_table(self):
        out = self.ok(*self.bench("--parameters", "64K", "--subgroup", "16K", "--steps", "1", "--forms", "8")).stdout.decode()
        self.assertIn("65536 parameters in subgroups of 16384, folders: 1", out)
        self.assertIn("8 bits", out)
        self.assertNotIn("raw  ", out.split("\n", 2)[2])

    def test_coded_files(self):
        told = self.json(self.ok(*self.bench("--parameters", "256K", "--subgroup", "64K", "--steps", "1", "--memory", "6M",
                                             "--forms", "8,8-packed,8-coarse-packed,4-measured", "--json")))
        forms = {form["form"]: form for form in told["forms"]}
        self.assertEqual(list(forms), ["in memory", "8 bits", "8-packed", "8-coarse-packed", "4-measured"])
        # The coders' 4 MiB are more than an eighth of the memory: measured codes nothing.
        self.assertEqual([form.get("packed_share") for form in forms.values()], [None, 0, 1, 1, 0])
        self.assertLess(forms["8-packed"]["written_bytes"], 0.95 * forms["8 bits"]["written_bytes"])
        self.assertLess(forms["8-coarse-packed"]["written_bytes"], forms["8-packed"]["written_bytes"])

    def test_memory_for_coded_files_is_there_without_being_asked_for(self):
        second = self.path("second")
        os.mkdir(second)
        told = self.json(self.ok(*self.bench("--folder", second, "--parameters", "128K", "--steps", "1",
                                             "--forms", "raw,8,8-packed", "--json")))
        self.assertEqual([form.get("packed_share") for form in told["forms"]], [None, None, 0, 1])

    def test_refusals(self):
        for words, part in ((["--subgroup", "1000"], "multiple of 16K"), (["--forms", "16"], "raw, 8 or 4"),
                            (["--forms", "8-packed-coarse"], "-coarse, then -packed"),
                            (["--forms", "raw,,8"], ""), (["--steps", "0"], "--steps 0"), (["--parameters", "0"], ""),
                            (["--folder", "=3M"], "empty"), (["--folder", "/tmp=fast"], "fast"),
                            (["--memory", "100K", "--forms", "8"], "less than two subgroups"),
                            (["--memory", "2M", "--forms", "8,raw"], "--memory 2359296 or more"),
                            (["--memory", "4M", "--forms", "8,8-packed"], "or --forms without -packed"),
                            (["--parameters", "4T"], "2^40")):
            self.refused(5 if "100K" in words else 1, part, *self.bench(*words))
        self.refused(2, self.path("nowhere"), "offload", "bench", "--folder", self.path("nowhere"))
        self.refused(1, "offload bench", "offload")
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_interrupted(self):
        process = subprocess.Popen([harness.QUERN, *self.bench("--steps", "100000", "--parameters", "200K", "-q")],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not os.listdir(self.folder.name) and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 130)
        self.assertEqual(os.listdir(self.folder.name), [])


    def test_interrupted_while_a_folder_is_slow(self):
        folder = self.path("a=b")
        os.mkdir(folder)
        for form in ("raw", "8"):
            process = subprocess.Popen([harness.QUERN, "offload", "bench", "--folder", folder + "=100K", "--parameters", "1M",
                                        "--forms", form, "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # The first files are there: 12 MB would take two minutes, and 6 MB one.
            end = time.monotonic() + 30
            while not any(files for _, _, files in os.walk(folder)) and time.monotonic() < end:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(20), 130)
            self.assertEqual(os.listdir(folder), [])
        self.ok("offload", "bench", "--folder", folder + "=0", "--parameters", "64K", "--steps", "1", "--forms", "raw")


if __name__ == "__main__":
    harness.main()
