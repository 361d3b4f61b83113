# quern checkpoint bench: how long a trainer waits, what is stored, and that nothing is left behind.
import os
import signal
import subprocess
import time

import harness
from harness import CliTest


class CheckpointBench(CliTest):
    def test_the_bench_of_waiting(self):
        page = self.path("waits.html")
        out = self.ok("checkpoint", "bench", "--store", self.folder.name, "--size", "2M", "--tensors", "6", "--steps", "4",
                      "--every", "2", "--html", page, "--json")
        told = self.json(out)
        self.assertEqual((told["state_bytes"], told["tensors"], told["steps"]), (2097144, 6, 12))
        ways = {way["way"]: way for way in told["ways"]}
        self.assertEqual(list(ways), ["none", "wait", "copy", "raw", "lazy"])
        self.assertEqual(ways["none"]["stored_bytes"], 0)
        self.assertGreater(ways["raw"]["stored_bytes"], 2097144)
        self.assertLess(ways["lazy"]["stored_bytes"], 2097144)
        # By its size alone: what is told of tensors in manifests may differ by some bytes.
        self.assertLess(abs(ways["lazy"]["stored_bytes"] - ways["copy"]["stored_bytes"]), 0.01 * ways["copy"]["stored_bytes"])
        for way in ("wait", "copy", "raw", "lazy"):
            self.assertGreater(ways[way]["durable_seconds"], 0)
            self.assertGreaterEqual(ways[way]["blocked_longest"], ways[way]["blocked_seconds"])
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count("<svg"), 5)
        self.assertIn("<title>forward: ", text)
        self.assertEqual([name for name in os.listdir(self.folder.name) if name.startswith("quern-bench")], [])
        for arguments in (["--size", "8", "--tensors", "9"], ["--every", "5", "--steps", "4"], ["--preset", "none"],
                          ["--base", "3"]):
            self.refused(1, "", "checkpoint", "bench", "--store", self.folder.name, *arguments)

    def test_the_bench_of_waiting_with_a_base(self):
        self.ok("checkpoint", "bench", "--store", self.folder.name, "--size", "256K", "--tensors", "2", "--steps", "4",
                "--every", "2", "--base", "newest")

    def test_the_bench_of_waiting_interrupted(self):
        process = subprocess.Popen([harness.QUERN, "checkpoint", "bench", "--store", self.folder.name, "--size", "4M",
                                    "--steps", "100000", "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        folders = lambda: [name for name in os.listdir(self.folder.name) if name.startswith("quern-bench")]
        end = time.monotonic() + 30
        while not folders() and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 130)
        self.assertEqual(folders(), [])


if __name__ == "__main__":
    harness.main()
