# scripts/gpu_check.sh --prebuilt with programs that stand in for the built ones and an nvidia-smi that reports a device:
# which programs run, what a failure or a stage that takes too long does to the exit status, and the table of results.
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
KIND = {"bytes": 536870912, "element": "f32", "tile": "block", "field": "mixed", "subject": "lorenzo"}
TIMING = {"record": "timing", **KIND, "step": "decode", "cache": "cold", "queueing": "calls", "gbs": 2500.0, "percent_of_limit": 66.0}
CHECK = {"record": "check", **KIND, "subject": "interp", "ratio": 8.5, "damaged_chunks": 0, "same_values": True}
ENCODED = {"record": "check", **KIND, "subject": "interp_encode", "chunks": 256, "ratio": 8.5, "same_bytes": True}
MACHINE = {"record": "machine", "name": "a device", "multiprocessors": 132, "driver": 13000}


class Prebuilt(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="quern-test-")
        self.addCleanup(folder.cleanup)
        self.built, self.packed, self.tools = (os.path.join(folder.name, n) for n in ("built", "packed", "tools"))
        os.makedirs(os.path.join(self.built, "bin"))
        os.makedirs(self.tools)
        self.program(self.tools, "nvidia-smi", "echo GPU 0: a device")
        self.program(self.tools, "strip", 'shift; cp "$2" "$1"')
        self.program(self.tools, "ldd", "exit 0")
        self.program(self.tools, "compute-sanitizer", "exit 0")
        self.built_program("gpu_equality", "echo equality $QUERN_GPU_EVERY")
        self.built_program("gpu_metrics", "echo metrics")
        self.bench_writes(MACHINE, TIMING)
        self.built_program("quern", "exit 0")

    def program(self, folder, name, body):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write("#!/usr/bin/env bash\n%s\n" % body)
        os.chmod(path, 0o755)

    def built_program(self, name, body):
        self.program(os.path.join(self.built, "bin"), name, body)

    def bench_writes(self, *records):
        lines = "\n".join(json.dumps(record) for record in records)
        self.built_program("bench_gpu", 'cat >"$2" <<"END"\n%s\nEND' % lines)

    def run_script(self, script, *options):
        environment = {**os.environ, "PATH": self.tools + os.pathsep + os.environ["PATH"]}
        return subprocess.run(["bash", script, *options], capture_output=True, text=True, timeout=100, env=environment)

    def pack(self):
        result = self.run_script(os.path.join(TREE, "scripts", "gpu_check.sh"), "--pack", self.packed, "--from", self.built)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        # The round trips need the real command.
        os.remove(os.path.join(self.packed, "tests", "gpu", "test_round_trips.py"))
        self.write_round_trips("")

    def write_round_trips(self, text):
        with open(os.path.join(self.packed, "tests", "gpu", "test_round_trips.py"), "w", encoding="utf-8") as out:
            out.write(text)

    def check(self, *options):
        return self.run_script(os.path.join(self.packed, "scripts", "gpu_check.sh"), "--prebuilt", self.packed, *options)

    def test_Packed_Programs_RunInEveryStage(self):
        self.pack()
        result = self.check()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("equality 4", result.stdout)
        self.assertIn("metrics", result.stdout)
        self.assertIn("clean: memcheck gpu_equality", result.stdout)
        self.assertIn("lorenzo decode | %.4g -> 2500 (66 %%)" % self.committed_rate(), result.stdout)

    def committed_rate(self):
        """What the committed results have for the step that TIMING is of."""
        step = TIMING.keys() - {"gbs", "percent_of_limit"}
        with open(os.path.join(TREE, "bench", "results", "gpu-h200.jsonl"), encoding="utf-8") as lines:
            return next(r["gbs"] for r in map(json.loads, lines) if all(r.get(key) == TIMING[key] for key in step))

    def test_StageInterp_RunsItsTestsAndBenchmarksAlone(self):
        self.bench_writes(MACHINE, TIMING, CHECK, ENCODED, CHECK)
        self.pack()
        result = self.check("--stage", "interp")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("equality 1", result.stdout)
        self.assertNotIn("metrics", result.stdout)
        self.assertTrue(os.path.exists(os.path.join(self.packed, "results", "bench", "bench_interp.jsonl")))

    def test_StageInterp_FailsWithoutChecksThatHold(self):
        for checks, why in (([], "has no checks"),
                            ([CHECK, CHECK], "has no checks of encoding"),
                            ([ENCODED, {**CHECK, "damaged_chunks": 10}], "has damaged chunks"),
                            ([ENCODED, {**CHECK, "same_values": False}], "has damaged chunks, or other values"),
                            ([CHECK, {**ENCODED, "same_bytes": False}], "or other values or bytes than the host")):
            with self.subTest(why):
                self.bench_writes(MACHINE, TIMING, *checks)
                self.pack()
                result = self.check("--stage", "interp")
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                self.assertIn(why, result.stdout)
                self.assertIn("stage interp failed", result.stdout)

    def test_StageOffload_RunsItsTestsAlone(self):
        self.built_program("gpu_offload", "echo steps at rest")
        self.pack()
        result = self.check("--stage", "offload")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("steps at rest", result.stdout)
        self.assertNotIn("metrics", result.stdout)
        self.built_program("gpu_offload", "exit 1")
        self.pack()
        self.assertEqual(self.check("--stage", "offload").returncode, 1)

    def test_FailingProgram_FailsItsStage(self):
        self.built_program("gpu_metrics", "echo broken; exit 1")
        self.pack()
        result = self.check("--stage", "equal")
        self.assertEqual(result.returncode, 1)
        self.assertIn("stage equal failed", result.stdout)

    def test_SlowProgram_IsStoppedAndSaysSo(self):
        self.built_program("gpu_metrics", "sleep 60")
        self.pack()
        os.environ["QUERN_STAGE_SECONDS"] = "1"
        self.addCleanup(os.environ.pop, "QUERN_STAGE_SECONDS")
        result = self.check("--stage", "equal")
        self.assertEqual(result.returncode, 1)
        self.assertIn("not done after 1 s", result.stdout)

    def test_FailingRoundTrip_FailsItsStage(self):
        self.pack()
        self.write_round_trips("raise SystemExit(3)")
        self.assertEqual(self.check("--stage", "equal").returncode, 1)

    def test_FailingBench_StillShowsWhatItWrote(self):
        self.pack()
        with open(os.path.join(self.packed, "bin", "bench_gpu"), "a", encoding="utf-8") as out:
            out.write("exit 1\n")
        result = self.check("--stage", "bench")
        self.assertEqual(result.returncode, 1)
        self.assertIn("-> 2500", result.stdout)

    def test_FolderWithoutPrograms_SaysHowToMakeOne(self):
        result = self.run_script(os.path.join(TREE, "scripts", "gpu_check.sh"), "--prebuilt", self.tools)
        self.assertEqual(result.returncode, 1)
        self.assertIn("gpu_check.sh --pack", result.stderr)

    def test_BuildWithoutPrograms_SaysHowToBuild(self):
        os.remove(os.path.join(self.built, "bin", "bench_gpu"))
        result = self.run_script(os.path.join(TREE, "scripts", "gpu_check.sh"), "--pack", self.packed, "--from", self.built)
        self.assertEqual(result.returncode, 1)
        self.assertIn("--build-only", result.stderr)

    def test_Medians_AreWhatTablesNeed(self):
        path = os.path.join(self.built, "bench.jsonl")
        with open(path, "w", encoding="utf-8") as out:
            for record in ({**MACHINE, "l2_bytes": 1}, {**TIMING, "repeats": 10}, {"record": "end"}):
                out.write(json.dumps(record) + "\n")
        result = subprocess.run([sys.executable, os.path.join(TREE, "bench", "gpu", "table.py"), "--medians", path],
                                capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual([json.loads(line) for line in result.stdout.splitlines()], [MACHINE, TIMING])


if __name__ == "__main__":
    if shutil.which("timeout") is None:
        print("SKIP: no timeout command")
        sys.exit(77)
    unittest.main()
